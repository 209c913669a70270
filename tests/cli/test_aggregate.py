"""`pate aggregate`: what it writes, where, and what a target lets out."""

import json
import re
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from pate_cli.core.noise import Noise


def test_without_options_labels_go_to_a_file_and_the_report_to_stdout(pate, votes, folder):
    result = pate("aggregate", votes, code=0)
    report = json.loads(result.stdout)
    labels = pq.read_table(folder / "votes.labels.parquet").to_pydict()
    assert labels["query_id"] == list(range(60))
    answered = [label for label in labels["label"] if label is not None]
    assert report["answers"] == len(answered)
    assert all(0 <= label < 4 for label in answered)
    assert {(a is None, s) for a, s in zip(labels["label"], labels["source"], strict=True)} <= {
        (True, "none"),
        (False, "teachers"),
    }
    # The proportions of the documentation: 0.8, 0.6 and 0.16 of 40 teachers.
    expected = {"name": "confident", "teachers": 40, "classes": 4}
    expected |= {"threshold": 32.0, "sigma1": 24.0, "sigma2": 6.4}
    assert expected.items() <= report["mechanism"].items()
    assert (report["delta"], report["private"], report["releasable"]) == (1e-5, True, True)


def test_dry_run_prices_and_leaves_nothing(pate, votes, monkeypatch, leftovers):
    def refuse(*_args, **_kwargs):
        raise AssertionError("a dry run must not draw")

    monkeypatch.setattr("pate_cli.verbs.aggregate.run", refuse)
    monkeypatch.setattr("pate_cli.core.noise.Noise.normal", refuse)
    result = pate("aggregate", votes, "--dry-run", "--ledger", "l.json", code=0)
    priced = json.loads(result.stdout)
    assert priced["dry_run"] is True
    assert leftovers() == []
    assert "nothing was drawn or spent" in result.stderr


RECORD = "votes.spent.json"
SETTINGS = ("--threshold", 32, "--sigma1", 24, "--sigma2", 6.4)


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


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_run_that_would_hardly_pass_is_not_started(pate, votes, folder, heads):
    """Nothing is spent or written; what the message says would pass is started."""
    asked = heads(refuse=False)
    words = ("aggregate", votes, "--target-epsilon", 1.5, *SETTINGS, "--bound", "two-tail")
    before = names(folder)
    done = pate(*words, "--max-queries", 60, "--spend", RECORD, code=5)
    assert "--min-pass 0.5; nothing was drawn or spent" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 2
    assert (names(folder), asked) == (before, [])
    rows = int(re.search(r"--max-queries (\d+)", done.stderr)[1])
    assert 1 <= rows < 60
    pate(*words, "--max-queries", rows, "--no-record", code=0)
    assert len(asked) == 1
    anyway = ("--min-pass", 0, "--no-record", "--force")
    pate(*words, "--max-queries", 60, *anyway, code=0)
    warned = json.loads(pate(*words, "--max-queries", 60, "--dry-run").stdout)["warnings"]
    assert "would not start" in warned[0]


def test_no_byte_of_a_label_leaves_on_a_refusal(pate, votes, heads):
    heads(refuse=True)
    words = ("--target-epsilon", 1.5, *SETTINGS, "--bound", "two-tail", "--max-queries", 60)
    to = ("-o", "-", "--format", "csv", "--report", "report.json", "--no-record", "--min-pass", 0)
    done = pate("aggregate", votes, *words, *to)
    assert (done.exit_code, done.stdout) == (8, "")
    assert json.loads(Path("report.json").read_text())["passed"] is False


def test_a_budget_and_nothing_else_is_a_target(pate, two_classes, heads):
    heads(refuse=False)
    words = ("aggregate", two_classes, "--spend", RECORD, "--force")
    assert json.loads(pate(*words, "--budget", 1).stdout)["rounds"][0]["target"]["epsilon"] == 1.0
    report = json.loads(pate(*words, "--budget", 2.5).stdout)
    assert report["rounds"][0]["target"]["epsilon"] == 1.5
    assert report["spent"]["epsilon"] <= 2.5
    done = pate(*words, "--budget", 2.5, code=5)
    assert "the budget is epsilon 2.5" in done.stderr
    # With settings it is a limit, as ever.
    pate(*words, "--budget", 3, "--sigma2", 9, code=5)


def test_limits_and_targets_of_several_labels_ask_whole_queries(pate, folder):
    random = np.random.default_rng(12)
    chances = random.choice([0.05, 0.9], size=(40, 1, 3))
    np.save(folder / "ballots.npy", (random.random((40, 25, 3)) < chances).astype(np.uint8))
    words = ("--layout", "multilabel", "--label-names", "mild,big,new", "--seed", 5, "--force")

    def asked(labels, *more):
        done = pate("aggregate", "ballots.npy", *words, "-o", labels, *more)
        return json.loads(done.stdout)["queries"]

    assert asked("l.jsonl", "--max-queries", 7) == 21
    rows = [json.loads(line) for line in Path("l.jsonl").read_text().splitlines()]
    assert [row["query_id"] for row in rows] == list(range(40))
    assert all(row["labels"] == [] and len(row["unanswered"]) == 3 for row in rows[7:])
    assert asked("p.csv", "--max-queries", 7) == 21
    pairs = Path("p.csv").read_text().splitlines()[1:]
    assert [pair.endswith("not asked") for pair in pairs] == [False] * 21 + [True] * 99
    queries = asked("t.jsonl", "--target-epsilon", 3)
    assert 0 < queries < 120
    assert queries % 3 == 0


# 10 * (60 * 5 * cell + 10^4 * 2^-64) * (1 + e^10), rounded up to two digits; cells of 2^-53 last.
LEAST = {"confident": 1.3e-10, "gnmax": 1.3e-10, "lnmax": 1.3e-10, "sparse-vector": 7.5e-9}
# So little noise that the labels cost more than 10.
NOISY = {"confident": ["--sigma2", 1], "gnmax": ["--sigma2", 1]}


@pytest.mark.parametrize("name", LEAST)
def test_a_delta_that_floating_point_noise_would_show_in(pate, refused, votes, leftovers, name):
    least = LEAST[name]
    words = ["aggregate", votes, "--mechanism", name, *NOISY.get(name, []), "--delta"]
    for delta, more in ((1e-15, []), (0.99 * least, ["--dry-run"])):
        line = refused(pate(*words, delta, *more), 2)
        assert line == (
            f"pate: --delta must be at least {least:g} for 60 queries over 4 classes, got "
            f"{delta:g}: below {least:g}, the error of floating-point noise is too large"
        )
    assert leftovers() == []
    pate(*words, least, "--dry-run", code=0)
    line = refused(pate(*words, 1e-15, "--max-queries", 20, "--dry-run"), 2)
    assert "for 20 queries over 4 classes" in line
