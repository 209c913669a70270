"""`--target-epsilon`: what is written when labels pass, when they are refused, and in between."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from pate_cli.core.noise import Noise
from pate_cli.disclosure.record import SpendRecord
from pate_cli.files.document import encoded
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.votes.vote_file import VoteFile

RECORD = "votes.spent.json"
SETTINGS = ("--threshold", 32, "--sigma1", 24, "--sigma2", 6.4)
ROWS = ("--max-queries", 60, "--bound", "two-tail")
# Coins are set here, whatever chance they would have.
START = ("--min-pass", 0)
BARE = (*ROWS, *SETTINGS)
ALL = (*BARE, *START, "--spend", RECORD)


@pytest.fixture
def heads(monkeypatch):
    """A coin that says what the test wants; what it was asked is kept."""
    asked = []

    def toss(refuse):
        def comes_up(self, log_chance):
            asked.append(log_chance)
            return refuse

        monkeypatch.setattr(Noise, "comes_up", comes_up)
        return asked

    return toss


def attempts(path=RECORD):
    return [encoded(run) for run in SpendRecord.read(path).runs]


def spent_of(report):
    spent = report["spent"]
    return (len(spent["runs"]), spent["epsilon"], spent["delta"])


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_run_that_would_hardly_pass_is_not_started(pate, votes, folder, heads):
    """Nothing is spent or written; what the message says would pass is started."""
    asked = heads(refuse=False)
    words = ("aggregate", votes, "--target-epsilon", 1.5, *SETTINGS, "--bound", "two-tail")
    before = names(folder)
    done = pate(*words, "--max-queries", 60, "--spend", RECORD)
    assert done.exit_code == 5
    assert "--min-pass 0.5; nothing was drawn or spent" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 2
    assert (names(folder), asked) == (before, [])
    rows = int(re.search(r"--max-queries (\d+)", done.stderr)[1])
    assert 1 <= rows < 60
    assert pate(*words, "--max-queries", rows, "--no-record").exit_code == 0
    assert len(asked) == 1
    anyway = ("--min-pass", 0, "--no-record", "--force")
    assert pate(*words, "--max-queries", 60, *anyway).exit_code == 0
    warned = json.loads(pate(*words, "--max-queries", 60, "--dry-run").stdout)["warnings"]
    assert "would not start" in warned[0]


def test_no_byte_of_a_label_leaves_on_a_refusal(pate, votes, heads):
    heads(refuse=True)
    words = ("-o", "-", "--format", "csv", "--report", "report.json")
    done = pate("aggregate", votes, "--target-epsilon", 1.5, *ALL, *words)
    assert (done.exit_code, done.stdout) == (8, "")
    assert json.loads(Path("report.json").read_text())["passed"] is False


def test_nothing_public_depends_on_the_votes_but_the_outcome(pate, votes, counts, tmp_path, heads):
    """Two vote files of one shape, both refused: the same report, but for its random id."""
    heads(refuse=True)
    other = tmp_path / "other" / "votes.npy"
    other.parent.mkdir()
    np.save(other, np.sort(counts, axis=1)[::-1])
    words = ("--target-epsilon", 1.5, *BARE, *START, "--force")
    reports = [
        re.sub(r'"(run|id)": "[0-9a-f]{32}"', "", pate("aggregate", *given, *words).stdout)
        for given in ((votes, "--spend", "one.json"), (other, "--spend", "two.json"))
    ]
    assert reports[0] == reports[1]
    assert '"refusal"' in reports[0]
    assert [set(one) for one in attempts("one.json")] == [set(one) for one in attempts("two.json")]


def test_attempts_add_up_to_a_budget(pate, votes, heads):
    words = ("aggregate", votes, *ALL, "--force", "--budget", 3.0)
    heads(refuse=True)
    assert pate(*words, "--target-epsilon", 1.6).exit_code == 8
    heads(refuse=False)
    done = pate(*words, "--target-epsilon", 1.5)
    assert spent_of(json.loads(done.stdout)) == (2, 2.3, 2e-5)
    before = attempts()
    over = pate(*words, "--target-epsilon", 1.2)
    assert over.exit_code == 5
    assert "and 2 runs in votes.spent.json spent epsilon 2.3000 at delta 2e-05" in over.stderr
    assert "with this run the total would be 3.5000" in over.stderr
    assert attempts() == before


def test_an_interruption_costs_nothing_until_votes_are_priced(pate, votes, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    words = ("aggregate", votes, "--target-epsilon", 1.5, *ALL)
    with monkeypatch.context() as patch:
        patch.setattr(VoteFile, "batches", interrupted)
        assert pate(*words).exit_code == 130
    assert not Path(RECORD).exists()
    monkeypatch.setattr(ConfidentGNMax, "score", interrupted)
    done = pate(*words)
    assert done.exit_code == 130
    assert done.stderr.endswith(
        "interrupted; nothing was released; the run at epsilon 1.5 stays in votes.spent.json "
        "and counts\n"
    )
    assert [one["outcome"] for one in attempts()] == ["pending"]


def test_a_budget_and_nothing_else_is_a_target(pate, two_classes, heads):
    heads(refuse=False)
    words = ("aggregate", two_classes, "--spend", RECORD, "--force")
    assert json.loads(pate(*words, "--budget", 1).stdout)["rounds"][0]["target"]["epsilon"] == 1.0
    report = json.loads(pate(*words, "--budget", 2.5).stdout)
    assert report["rounds"][0]["target"]["epsilon"] == 1.5
    assert report["spent"]["epsilon"] <= 2.5
    done = pate(*words, "--budget", 2.5)
    assert done.exit_code == 5
    assert "the budget is epsilon 2.5" in done.stderr
    # With settings it is a limit, as ever.
    assert pate(*words, "--budget", 3, "--sigma2", 9).exit_code == 5
