"""What a person at a terminal sees: summaries, tables and progress, whole at every width."""

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from pate_cli.core.said import Grid, Pairs, on_terminal
from pate_cli.disclosure.guarantee import verdict
from slices import some

WHATEVER = "it holds whatever the votes were"
COLOUR = re.compile(rb"\x1b\[[0-9;]*\b(3[0-8]|4[0-8]|9[0-7])[0-9;]*m")


def told(shown):
    """The rows of a summary by their names, lines joined."""
    rows, name = {}, ""
    for line in shown.replace("\r", "").splitlines():
        name = line[:12].strip() or name
        rows[name] = f"{rows.get(name, '')} {line[12:]}".strip()
    return rows


def test_a_summary_tells_what_happened_and_what_to_do(screen, votes, folder):
    shown = screen("aggregate", votes, "--max-queries", 20, "--ledger", "kept.ledger")
    rows, report = told(shown), json.loads((folder / "votes.report.json").read_text())
    assert rows["answered"] == f"{report['answers']} of 20 queries"
    assert rows["epsilon"] == f"{report['epsilon']:.4f} at delta 1e-05; {WHATEVER}"
    assert "worst case" not in rows
    assert rows["privacy"] == str(verdict(report["epsilon"], 1e-5))
    assert rows["publish"] == "votes.labels.parquet, votes.report.json"
    assert rows["keep secret"] == f"{votes}, kept.ledger"
    # The rest of the votes has no labels.
    first = "asked the first 20 queries; the 40 after them were not asked answered"
    assert first in " ".join(shown.split())
    rows = told(screen("aggregate", votes, "--dry-run"))
    assert rows["would ask"] == "60 rows, for at most 60 answers"
    assert rows["epsilon"].startswith("at most ")


def test_a_refusal_is_summed_up_too(pate, votes, folder, monkeypatch):
    monkeypatch.setattr("pate_cli.cli.terminal.read_by_person", lambda: True)
    monkeypatch.setattr("pate_cli.core.noise.Noise.comes_up", lambda *_: True)
    words = ("--threshold", 32, "--sigma1", 24, "--sigma2", 6.4, "--bound", "two-tail")
    words += ("--target-epsilon", 2, "--max-queries", 60, "--min-pass", 0)
    result = pate("aggregate", votes, *words, code=8)
    rows = told(result.stdout)
    assert rows["answered"] == "0 of 60 queries"
    assert (
        rows["epsilon"]
        == f"1 at delta 1e-05, which is the cost of a failed release test; {WHATEVER}"
    )
    assert rows["privacy"] == verdict(1.0, 1e-5, "refusal")
    assert json.loads((folder / "votes.report.json").read_text())["passed"] is False


NUMBER = re.compile(r"(?<![\w.])\d[\d.]*(?:e-?\d+)?%?")
# As wide as results get.
SAID = [
    Pairs(
        [
            ("epsilon", "12345.6789 at delta 1.25e-15, order 1234.56 of 1024.25 to 1234.56"),
            ("answers", "11234567.89 of 12000000 queries (98.765%), smallest epsilon 123.4567"),
        ]
    ),
    Grid(
        "Queries by the votes of the plurality",
        ("mechanism", "from", "to", "queries", "answers", "mean cost", "share"),
        [
            ("open-vocabulary", "123450", "234560", "10000001", "9000001.5", "1.23e-10", "98.7%"),
            ("open-vocabulary", "234560", "345670", "1999999", "1900001.5", "1.99e-11", "1.3%"),
        ],
    ),
]


def shown_at(width, said):
    console = Console(width=width, file=None, force_terminal=False)
    with console.capture() as capture:
        on_terminal(console, said)
    return capture.get()


def test_a_narrow_terminal_cuts_no_number():
    wide = set(NUMBER.findall(shown_at(300, SAID)))
    assert len(wide) > 15
    for width in (60, 40):
        narrow = shown_at(width, SAID)
        assert not wide - set(NUMBER.findall(narrow))
        assert max(map(len, narrow.splitlines())) <= width


def test_texts_stand_in_one_column_beside_the_longest_name():
    pairs = Pairs([("queries", "500"), ("voters right 80%", "21.4% of labels")])
    assert shown_at(60, [pairs]).splitlines() == [
        "queries          500",
        "voters right 80% 21.4% of labels",
    ]


def test_columns_that_do_not_fit_stand_below_beside_the_first():
    rows = [("a", "1.25", "22.5", "333.75"), ("bb", "4", "5", "6")]
    grid = Grid("Title", ("name", "first", "second", "third"), rows)
    assert shown_at(19, [grid]).splitlines() == [
        *("", "Title"),
        *("name  first  second", "─" * 19, "a      1.25    22.5", "bb        4       5"),
        *("", "name   third", "─" * 12, "a     333.75", "bb         6"),
    ]


@pytest.mark.parametrize(
    "environment", some([{"PYTHONIOENCODING": "ascii"}, {"TERM": "dumb"}], 2), ids=list
)
def test_ascii_terminals_get_ascii(command, votes, environment, folder):
    plain = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    result = subprocess.run(
        ["script", "-qec", shlex.join(command("cost", votes, "-q")), "/dev/null"],
        check=False,
        capture_output=True,
        env=plain | {"TERM": "xterm", "COLUMNS": "75"} | environment,
    )
    assert result.returncode == 0, result.stdout
    assert result.stdout.isascii()
    assert b"\\u" not in result.stdout
    assert b"-----" in result.stdout
    shown = re.sub(rb"\x1b\[[0-9;]*m", b"", result.stdout)
    assert max(len(line.rstrip(b"\r")) for line in shown.split(b"\n")) <= 75


def test_progress_shows_on_a_terminal_alone(terminal, pate, votes, capsys):
    for environment in ({}, {"NO_COLOR": "1"}):
        seen = terminal("stderr", "aggregate", votes, "--force", **environment)
        json.loads(capsys.readouterr().out)
        assert b"aggregating" in seen
        assert b"60/60" in seen
        assert bool(COLOUR.search(seen)) is not bool(environment)
        # The bar is wiped; the notes stay.
        assert b"pate: answered" in seen
    result = pate("aggregate", votes, "--force")
    assert "aggregating" not in result.stderr
    assert not re.search(rb"[\x1b\r]", result.stderr_bytes + result.stdout_bytes)


SMALL = ("--label-names", "cat,dog", "--mechanism", "gnmax", "--sigma2", 2)


def ballots(path, *strays):
    """25 queries of 20 teachers: these words of the first ones, `cat` of the others."""
    said = [*strays, *["cat"] * (20 - len(strays))]
    pq.write_table(pa.table({f"teacher_{t}": [word] * 25 for t, word in enumerate(said)}), path)
    return path


@pytest.mark.parametrize("verb", ["aggregate", "cost", "smooth-sensitivity"])
def test_who_has_votes_that_are_no_names_is_told(terminal, tmp_path, verb):
    """How many votes are lost, which, and what would help; never with --quiet."""
    votes = ballots(tmp_path / "some.parquet", *["Cat"] * 8)
    line = (verb, votes, *SMALL)
    line += ("--max-epsilon", 1000, "-o", "labels.csv", "--force") if verb == "aggregate" else ()
    seen = terminal("stderr", *line).decode().replace("\r\n", "\n")
    assert (
        "pate: WARNING: 200 of 500 votes (40.0%) match no label name and count as missing:\n"
    ) in seen
    assert "pate:   200 x 'Cat', " in seen
    assert "pate: --normalise would match 200 of the unmatched votes\n" in seen
    assert b"match no" not in terminal("stderr", *line, "--quiet")
    assert b"match no" not in terminal("stderr", *line, "--normalise")


def test_off_a_terminal_nothing_follows_from_how_many_there_are(pate, tmp_path):
    """Once accepted, the same words on everything but the labels, however many are lost."""
    seen = []
    for strays in ([], ["Cat"] * 8, ["Cat"] * 20):
        votes = ballots(tmp_path / "v.parquet", *strays)
        words = ("--max-queries", 5, "--force", "-o", "l.npy", "--report", "r.json", "--seed", 3)
        done = pate("aggregate", votes, *SMALL, *words, "--accept-unmatched", code=0)
        report = json.loads(Path("r.json").read_text()) | {"time": None, "labels": None}
        seen.append((done.stdout, done.stderr, report))
    assert seen[0] == seen[1] == seen[2]


def test_what_a_text_says_commands_no_terminal(screen, tmp_path):
    """Votes are what models wrote."""
    votes = ballots(tmp_path / "v.parquet", "[bold]\x1b[2Jx[/]")
    table = screen("cost", votes, *SMALL)
    assert "[bold]" in table
    assert "\x1b[2J" not in table
