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


def ballots(path, *strays):
    """25 queries of 20 teachers: these words of the first ones, `cat` of the others."""
    said = [*strays, *["cat"] * (20 - len(strays))]
    pq.write_table(pa.table({f"teacher_{t}": [word] * 25 for t, word in enumerate(said)}), path)
    return path


@pytest.fixture
def some(tmp_path):
    """500 votes, of which 200 are no names."""
    return ballots(tmp_path / "some.parquet", *["Cat"] * 8)


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
