"""`pate spent`: the account of all runs, for a person and for a pipe, and held against reports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

RUN = ("--max-queries", 20, "--force")


@pytest.fixture
def account(pate, votes):
    """Two runs, their reports, and the record beside the votes."""
    for number, words in enumerate(((), ("--mechanism", "gnmax", "--budget", 9))):
        report = f"{number}.json"
        done = pate("aggregate", votes, *RUN, *words, "--report", report, "-o", f"{number}.csv")
        assert done.exit_code == 0, done.stderr
    return f"{votes}.spent.json"


def test_reports_are_held_against_it(pate, votes, account):
    done = pate("spent", account, "--verify", "0.json", "--verify", "1.json")
    assert done.exit_code == 0
    assert [one["outcome"] for one in json.loads(done.stdout)["reports"]] == ["ok", "ok"]
    other = pate("aggregate", votes, *RUN, "--no-record", "--report", "free.json")
    assert other.exit_code == 0
    done = pate("spent", account, "--verify", "free.json")
    assert done.exit_code == 10
    assert "the record does not have this run" in done.stderr
    forged = json.loads(Path("1.json").read_text())
    forged["answers"] -= 1
    Path("1.json").write_text(json.dumps(forged))
    done = pate("spent", account, "--verify", "1.json")
    assert done.exit_code == 10
    assert "answers is " in done.stderr


def test_the_total_of_a_release_is_in_it(pate, account):
    assert pate("release", account, "--report", "all.json").exit_code == 0
    done = pate("spent", account, "--verify", "all.json")
    assert done.exit_code == 0
    assert "a total of 2 runs, all in the record" in done.stdout
