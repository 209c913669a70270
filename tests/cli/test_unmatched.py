"""Votes in words that are no names: who is told, who is not, and when a file is none of these."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pate_cli
from pate_cli.core.errors import VoteError

NAMES = "cat,dog"
SMALL = ("--mechanism", "gnmax", "--sigma2", 2)
VERBS = {
    "aggregate": (*SMALL, "--max-epsilon", 1000, "-o", "labels.csv"),
    "cost": SMALL,
    "smooth-sensitivity": SMALL,
    "tune": (
        *("--target-epsilon", 900, "--release", "none", "--min-agreement", 0),
        *("--threshold", 2, "--sigma1", 2, "--sigma2", 2),
    ),
}
ADVICE = (
    "no vote is one of --label-names cat, dog; give --normalise if they differ in case, blanks, "
    "punctuation or Unicode form alone, --aliases if other words stand for them"
)


def ballots(path, said, *, rows=25, teachers=20):
    """Every teacher says the same of every query, but for what the first one says of the first."""
    columns = {f"teacher_{t}": [said] * rows for t in range(teachers)}
    columns["teacher_0"] = ["dog", *columns["teacher_0"][1:]]
    pq.write_table(pa.table(columns), path)
    return path


@pytest.fixture
def mostly(tmp_path):
    """500 votes, of which one is a name."""
    return ballots(tmp_path / "ballots.parquet", "Cat")


@pytest.fixture
def strange(tmp_path):
    """500 votes, of which none is."""
    path = tmp_path / "strange.parquet"
    pq.write_table(pa.table({f"teacher_{t}": ["Cat"] * 25 for t in range(20)}), path)
    return path


def labels_of(path):
    return [line.split(",")[1] for line in Path(path).read_text().splitlines()[1:]]


def test_other_spellings_and_words_give_the_labels_of_the_names(pate, mostly, tmp_path):
    words = ("--label-names", NAMES, "--seed", 5, *SMALL, "--report", "r.json", "--force")
    (tmp_path / "aliases.csv").write_text("alias,name\nCat,cat\n")
    for lenient in (("--normalise",), ("--aliases", tmp_path / "aliases.csv")):
        done = pate("aggregate", mostly, *words, *lenient, "-o", "l.csv")
        assert done.exit_code == 0, done.stderr
        assert labels_of("l.csv") == ["cat"] * 25
        assert json.loads(Path("r.json").read_text())["label_names"] == ["cat", "dog"]


@pytest.mark.parametrize("verb", VERBS)
def test_a_person_at_a_terminal_is_told(terminal, mostly, verb):
    line = (verb, mostly, "--label-names", NAMES, *VERBS[verb])
    seen = terminal("stderr", *line).decode().replace("\r\n", "\n")
    assert (
        "pate: WARNING: 499 of 500 votes (99.8%) match no label name and count as missing:\n"
        "pate:   499 x 'Cat', differs only in case\n"
        "pate: --normalise would match 499 of them\n"
    ) in seen
    force = ("--force",) if verb == "aggregate" else ()
    assert b"match no" not in terminal("stderr", *line, "--quiet", *force)
    assert b"match no" not in terminal("stderr", *line, "--normalise", *force)


def test_a_dry_run_tells_a_person_alone(pate, terminal, mostly):
    line = ("aggregate", mostly, "--label-names", NAMES, *SMALL, "--dry-run")
    assert b"499 of 500" in terminal("stderr", *line)
    assert told(pate(*line), ()) == told(pate(*line, "--normalise"), ())


def told(done, outputs):
    """All that leaves: the labels apart, which are drawn under noise."""
    assert done.exit_code == 0, done.stderr
    return (done.stdout, done.stderr, *(Path(name).read_text() for name in outputs))


def test_off_a_terminal_nothing_follows_from_how_many_there_are(pate, tmp_path, folder):
    """Votes that are names, and hardly any that is: the same words on everything but the labels."""
    seen = []
    for said in ("cat", "Cat"):
        votes = ballots(tmp_path / "v.parquet", said)
        done = pate(
            *("aggregate", votes, "--label-names", NAMES, *SMALL, "--max-queries", 5, "--force"),
            *("-o", "l.npy", "--report", "r.json", "--seed", 3),
        )
        report = json.loads(Path("r.json").read_text())
        for name in ("time", "labels"):
            del report[name]
        assert done.exit_code == 0
        seen.append((done.stdout, done.stderr, report))
    assert seen[0] == seen[1]


def test_cost_has_them_in_its_table_and_in_json(pate, screen, mostly):
    line = ("cost", mostly, "--label-names", NAMES, *SMALL)
    found = json.loads(pate(*line).stdout)
    assert found["releasable"] is False
    assert found["unmatched_votes"] == {
        "cast": 500,
        "votes": 499,
        "share": 0.998,
        "normalise_would_match": 499,
        "commonest": [{"text": "Cat", "votes": 499, "cause": "differs only in case"}],
    }
    few = json.loads(pate(*line, "--max-queries", 2).stdout)["unmatched_votes"]
    assert (few["cast"], few["votes"]) == (40, 39)
    table = screen(*line)
    assert "499 of 500 votes (99.8%) match no label name and count as missing" in table
    assert "--normalise would match 499 of them" in table
    assert [line.split() for line in table.splitlines() if "'Cat'" in line] == [
        ["'Cat'", "499", "differs", "only", "in", "case"]
    ]
    every = json.loads(pate(*line, "--normalise").stdout)["unmatched_votes"]
    assert (every["votes"], every["commonest"]) == (0, [])


def test_what_a_text_says_commands_no_terminal(screen, tmp_path):
    votes = ballots(tmp_path / "v.parquet", "[bold]\x1b[2Jx[/]")
    table = screen("cost", votes, "--label-names", NAMES, *SMALL)
    assert "[bold]" in table
    assert "\x1b[2J" not in table


def test_votes_in_numbers_have_none(pate, votes):
    line = ("cost", votes, "--label-names", "a,b,c,d", *SMALL)
    assert "unmatched_votes" not in json.loads(pate(*line).stdout)


@pytest.mark.parametrize("verb", VERBS)
def test_a_file_without_a_name_is_refused(pate, refused, strange, leftovers, verb):
    before = leftovers()
    line = (verb, strange, "--label-names", NAMES, *VERBS[verb])
    refused(pate(*line), 3, f"{strange}: {ADVICE}")
    assert leftovers() == before
    assert pate(*line, "--normalise").exit_code == 0


@pytest.mark.parametrize("more", [(), ("--target-epsilon", 3), ("--dry-run",), ("--plot", "p.png")])
def test_it_is_refused_before_the_record(pate, refused, strange, leftovers, more):
    record = Path(f"{strange}.spent.json")
    line = ("aggregate", strange, "--label-names", NAMES, "--max-epsilon", 1000)
    plain = () if "--target-epsilon" in more else SMALL
    refused(pate(*line, *plain, *more), 3, f"{strange}: {ADVICE}")
    assert not record.exists()
    assert leftovers() == []
    assert pate(*line, *SMALL, "--normalise").exit_code == 0
    before = record.read_bytes()
    again = pate(*line, *plain, *more, "--force")
    assert (again.exit_code, again.stdout) == (3, "")
    assert again.stderr.splitlines()[-1] == f"pate: {strange}: {ADVICE}"
    assert record.read_bytes() == before


def test_the_advice_does_not_depend_on_the_votes(pate, refused, tmp_path):
    lines = set()
    for said in ("Cat", "katze", " cat.", "12"):
        path = tmp_path / "v.parquet"
        pq.write_table(pa.table({f"teacher_{t}": [said] * 3 for t in range(4)}), path)
        lines.add(refused(pate("aggregate", path, "--label-names", NAMES, *SMALL), 3))
    assert len(lines) == 1


def test_with_normalise_the_advice_is_another(pate, refused, tmp_path):
    path = tmp_path / "v.parquet"
    pq.write_table(pa.table({f"teacher_{t}": ["bird"] * 3 for t in range(4)}), path)
    line = refused(pate("cost", path, "--label-names", NAMES, "--normalise", *SMALL), 3)
    assert line.endswith(
        "give --aliases if other words stand for them, and see that the file is the one"
    )


@pytest.mark.parametrize("verb", [pate_cli.aggregate, pate_cli.quote, pate_cli.cost])
def test_the_library_refuses_alike(strange, verb):
    words = {"mechanism": "gnmax", "sigma2": 2.0, "label_names": NAMES}
    with pytest.raises(VoteError, match="no vote is one of `label_names` cat, dog; give `normalis"):
        verb(strange, **words)
    assert not Path(f"{strange}.spent.json").exists()
    assert verb(strange, **words, normalise=True, **_record(verb)) is not None


def _record(verb):
    return {} if verb is pate_cli.cost else {"record": False, "max_epsilon": 1000.0}


def test_both_flags_need_names(pate, refused, votes):
    refused(pate("cost", votes, "--normalise"), 2, "--normalise goes with --label-names")
    refused(pate("cost", votes, "--aliases", "a.csv"), 2, "--aliases goes with --label-names")


def test_the_line_that_tune_prints_has_both(pate, tmp_path):
    votes = ballots(tmp_path / "v.parquet", "Cat")
    (tmp_path / "a.json").write_text('{"Katze": "cat"}')
    lenient = ("--normalise", "--aliases", tmp_path / "a.json")
    done = pate("tune", votes, "--label-names", NAMES, *lenient, *VERBS["tune"])
    assert done.exit_code == 0, done.stderr
    assert "--normalise --aliases" in done.stdout


def test_a_run_that_was_cut_short_does_not_go_on_under_other_rules(pate, mostly, monkeypatch):
    from pate_cli.run import publication

    line = ("aggregate", mostly, "--label-names", NAMES, *SMALL, "--max-epsilon", 1000)
    kept = ("--checkpoint", "kept", "-o", "l.csv")
    with monkeypatch.context() as patch:

        def full(*_words, **_named):
            raise OSError(28, "No space left on device")

        patch.setattr(publication.Publication, "publish", full)
        assert pate(*line, *kept).exit_code != 0
    assert Path("kept").exists()
    done = pate(*line, *kept, "--normalise")
    assert done.exit_code != 0
    assert "is of a run with other flags or other votes" in done.stderr
    assert pate(*line, *kept).exit_code == 0
