"""`pate explain` and `pate verify`: a report in words, and line by line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

NOISE = ("--threshold", 24, "--sigma1", 12, "--sigma2", 6)


@pytest.fixture
def released(pate, votes, folder):
    """A report and the labels it was written with."""
    done = pate("aggregate", votes, *NOISE, "-o", "l.csv", "--report", "r.json")
    assert done.exit_code == 0, done.stderr
    return "r.json", "l.csv"


def test_a_forged_report_has_nothing_to_sign(pate, released):
    """Whatever was changed, in the text and on the page."""
    report = json.loads(Path("r.json").read_text())
    Path("r.json").write_text(json.dumps(report | {"epsilon": 0.125}))
    told = pate("explain", "r.json")
    assert told.exit_code == 0
    assert told.stdout.startswith("Nothing is promised\n  This report does not hold: ")
    assert pate("explain", "r.json", "--html", "page.html").exit_code == 0
    for words in (told.stdout, Path("page.html").read_text()):
        assert "0.125" not in words
        assert "Signature" not in words
        assert report["run"] not in words


def test_what_was_not_checked_is_exit_11_where_that_is_asked_for(pate, votes, folder):
    words = ("--target-epsilon", 60, "--max-queries", 60, "-o", "t.csv", "--report", "t.json")
    assert pate("aggregate", votes, *NOISE, *words).exit_code == 0
    for name in ("t.json", "t.csv"):
        assert Path(name).exists()
    left = ["whether runs are missing, and what earlier ones did", "settings that the labels carry"]
    said = f"Every check that could be made passed. Not checked: {'; '.join(left)}."
    told = pate("verify", "t.json", "t.csv", "--table", "--without-dp-accounting")
    assert told.stdout.splitlines()[-1] == said
    assert (told.exit_code, told.stderr) == (0, "")
    strict = pate("verify", "t.json", "t.csv", "--strict", "--without-dp-accounting")
    assert (strict.exit_code, strict.stderr) == (11, f"pate: {said}\n")
    piped = json.loads(pate("verify", "t.json", "t.csv").stdout)
    assert (piped["holds"], piped["not_checked"]) == (True, left)


def test_answers_are_quiet_on_request(pate, released):
    """The exit code says it all, and stderr why."""
    for verb, more in (("explain", ()), ("verify", ("l.csv", "--without-dp-accounting"))):
        done = pate(verb, "r.json", *more, "-q")
        assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")
        for other in ("--json", "--table"):
            assert pate(verb, "r.json", "--quiet", other).stdout == ""
        done = pate(verb, "r.json", "--json", "--table")
        assert done.exit_code == 2
        assert "--json and --table contradict each other" in done.stderr
    done = pate("explain", "l.csv", "-q")
    assert (done.exit_code, done.stdout) == (3, "")
    assert done.stderr.startswith("pate: l.csv is not a report")
    report = json.loads(Path("r.json").read_text())
    Path("r.json").write_text(json.dumps(report | {"epsilon": report["epsilon"] - 0.25}))
    done = pate("verify", "r.json", "l.csv", "-q")
    assert (done.exit_code, done.stdout, done.stderr) == (
        10,
        "",
        "pate: does not hold: numbers and words\n",
    )
