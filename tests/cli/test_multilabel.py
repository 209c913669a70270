"""Several labels a query on the command line: one run, whatever form its labels take."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from pate_cli.disclosure.report import report_schema

QUERIES, TEACHERS, LABELS = 40, 25, 3
NAMES = "mild,severe,new"
TOLD = ("--layout", "multilabel", "--label-names", NAMES)


@pytest.fixture
def ballots():
    random = np.random.default_rng(12)
    chances = random.choice([0.05, 0.9], size=(QUERIES, 1, LABELS))
    return (random.random((QUERIES, TEACHERS, LABELS)) < chances).astype(np.uint8)


@pytest.fixture
def votes(ballots, tmp_path):
    np.save(tmp_path / "ballots.npy", ballots)
    return tmp_path / "ballots.npy"


@pytest.fixture
def run(pate):
    def aggregate(votes, *flags, told=TOLD, report="r.json"):
        line = ["aggregate", votes, "--seed", 5, "--report", report, "--force", "--workers", 1]
        done = pate(*line, *told, *flags)
        assert done.exit_code == 0, done.stderr
        public = json.loads(Path(report).read_text())
        jsonschema.validate(public, report_schema())
        return public, done.stderr

    return aggregate


def test_limits_count_queries_and_a_target_asks_whole_ones(votes, run):
    public, _ = run(votes, "-o", "l.jsonl", "--max-queries", 7)
    assert public["queries"] == 21
    rows = [json.loads(line) for line in Path("l.jsonl").read_text().splitlines()]
    assert [row["query_id"] for row in rows] == list(range(40))
    assert all(row["labels"] == [] and len(row["unanswered"]) == LABELS for row in rows[7:])
    run(votes, "-o", "p.csv", "--max-queries", 7)
    pairs = list(csv.DictReader(Path("p.csv").read_text().splitlines()))
    assert [row["source"] == "not asked" for row in pairs] == [False] * 21 + [True] * 99
    public, _ = run(votes, "-o", "t.jsonl", "--target-epsilon", 3)
    assert 0 < public["queries"] < 120
    assert public["queries"] % LABELS == 0
