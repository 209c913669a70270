"""Votes in words that are no names: who is told, who is not, and when a file is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

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
REFUSED = (
    "375 of 500 votes match no label name: 325 would match with --normalise, 25 read as "
    "abstentions, 25 are other words (see --aliases); give the --label-names of these votes, or go "
    "on with --accept-unmatched"
)


def ballots(path, *strays):
    """25 queries of 20 teachers: these words of the first ones, `cat` of the others."""
    said = [*strays, *["cat"] * (20 - len(strays))]
    pq.write_table(pa.table({f"teacher_{t}": [word] * 25 for t, word in enumerate(said)}), path)
    return path


@pytest.fixture
def some(tmp_path):
    """500 votes, of which 200 are no names."""
    return ballots(tmp_path / "some.parquet", *["Cat"] * 8)


@pytest.fixture
def most(tmp_path):
    """500 votes, of which 375 are none."""
    return ballots(tmp_path / "most.parquet", *["Cat"] * 13, "N/A", "zebra")


def labels_of(path):
    """The labels of a CSV file."""
    return [line.split(",")[1] for line in Path(path).read_text().splitlines()[1:]]


def test_other_spellings_and_words_give_the_labels_of_the_names(pate, most, tmp_path):
    """Either flag turns lost votes into votes."""
    words = ("--label-names", NAMES, "--seed", 5, *SMALL, "--report", "r.json", "--force")
    (tmp_path / "aliases.csv").write_text("alias,name\nCat,cat\n")
    for lenient in (("--normalise",), ("--aliases", tmp_path / "aliases.csv")):
        done = pate("aggregate", most, *words, *lenient, "-o", "l.csv")
        assert done.exit_code == 0, done.stderr
        assert labels_of("l.csv") == ["cat"] * 25
        assert json.loads(Path("r.json").read_text())["label_names"] == ["cat", "dog"]


@pytest.mark.parametrize("verb", ["aggregate", "cost", "smooth-sensitivity"])
def test_a_person_at_a_terminal_is_told(terminal, some, verb):
    """How many votes are lost, which, and what would help; never with --quiet."""
    line = (verb, some, "--label-names", NAMES, *VERBS[verb])
    seen = terminal("stderr", *line).decode().replace("\r\n", "\n")
    assert (
        "pate: WARNING: 200 of 500 votes (40.0%) match no label name and count as missing:\n"
    ) in seen
    assert "pate:   200 x 'Cat', " in seen
    assert "pate: --normalise would match 200 of them\n" in seen
    force = ("--force",) if verb == "aggregate" else ()
    assert b"match no" not in terminal("stderr", *line, "--quiet", *force)
    assert b"match no" not in terminal("stderr", *line, "--normalise", *force)


def test_a_dry_run_tells_a_person_alone(pate, terminal, some):
    """What a script keeps does not say how many votes are lost."""
    line = ("aggregate", some, "--label-names", NAMES, *SMALL, "--dry-run")
    assert b"200 of 500" in terminal("stderr", *line)
    seen = [pate(*line, *more) for more in ((), ("--normalise",))]
    assert [each.exit_code for each in seen] == [0, 0]
    assert (seen[0].stdout, seen[0].stderr) == (seen[1].stdout, seen[1].stderr)


def test_off_a_terminal_nothing_follows_from_how_many_there_are(pate, tmp_path, folder):
    """Once accepted, the same words on everything but the labels, however many are lost."""
    seen = []
    for strays in ([], ["Cat"] * 8, ["Cat"] * 20):
        votes = ballots(tmp_path / "v.parquet", *strays)
        done = pate(
            *("aggregate", votes, "--label-names", NAMES, *SMALL, "--max-queries", 5, "--force"),
            *("-o", "l.npy", "--report", "r.json", "--seed", 3, "--accept-unmatched"),
        )
        assert done.exit_code == 0, done.stderr
        report = json.loads(Path("r.json").read_text())
        for name in ("time", "labels"):
            del report[name]
        seen.append((done.stdout, done.stderr, report))
    assert seen[0] == seen[1] == seen[2]


def test_what_a_text_says_commands_no_terminal(screen, tmp_path):
    """Votes are what models wrote."""
    votes = ballots(tmp_path / "v.parquet", "[bold]\x1b[2Jx[/]")
    table = screen("cost", votes, "--label-names", NAMES, *SMALL)
    assert "[bold]" in table
    assert "\x1b[2J" not in table


@pytest.mark.parametrize("verb", VERBS)
def test_a_file_of_other_words_is_refused_by_every_verb(pate, refused, most, leftovers, verb):
    """By counts of their causes and no text of a vote, before anything is written."""
    before = leftovers()
    line = (verb, most, "--label-names", NAMES, *VERBS[verb])
    refused(pate(*line), 3, f"{most}: {REFUSED}")
    assert leftovers() == before
    for more in ("--normalise", "--accept-unmatched"):
        force = ("--force",) if verb == "aggregate" else ()
        assert pate(*line, more, *force).exit_code == 0


@pytest.mark.parametrize("more", [(), ("--target-epsilon", 3), ("--dry-run",)])
def test_it_is_refused_before_the_record(pate, refused, most, leftovers, more):
    """Votes that are lost cost nothing, in the first run or in a later one."""
    record = Path(f"{most}.spent.json")
    line = ("aggregate", most, "--label-names", NAMES, "--max-epsilon", 1000)
    plain = () if "--target-epsilon" in more else SMALL
    refused(pate(*line, *plain, *more), 3, f"{most}: {REFUSED}")
    assert not record.exists()
    assert leftovers() == []
    assert pate(*line, *SMALL, "--accept-unmatched").exit_code == 0
    before = record.read_bytes()
    again = pate(*line, *plain, *more, "--force")
    assert (again.exit_code, again.stdout) == (3, "")
    assert again.stderr.splitlines()[-1] == f"pate: {most}: {REFUSED}"
    assert record.read_bytes() == before
