"""The parts of the benchmark: its files, its tables. Nothing here looks at a clock."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from benchmarks.__main__ import SAVED, process_seconds, slower, table, votes_file
from readme_blocks import DOCS, fill


def test_made_up_votes_are_histograms_that_differ_in_agreement(tmp_path):
    columns = pq.read_table(votes_file(300, tmp_path)).columns
    votes = np.column_stack([column.to_numpy() for column in columns])
    assert (votes.astype(int).sum(axis=1) == 250).all()
    assert len(np.unique(votes, axis=0)) > 0.95 * len(votes)
    assert votes.max(axis=1).min() < 100
    assert votes.max(axis=1).max() > 240


def test_a_command_that_fails_is_told(tmp_path):
    with pytest.raises(SystemExit, match="ended with 3:\npate: "):
        process_seconds(["cost", "nothing.parquet"], tmp_path)


def test_only_a_line_that_takes_longer_by_the_factor_is_told():
    old = json.loads(SAVED.read_text(encoding="utf-8"))
    lines = [{**each, "seconds": 1.3 * each["seconds"]} for each in old["lines"]]
    new = {**old, "lines": [lines[0], *old["lines"][1:]]}
    assert len(list(slower(old, new, 1.25))) == 1
    assert list(slower(old, new, 1.35)) == []


def test_the_page_holds_the_table_that_is_kept():
    text = (DOCS / "evidence.md").read_text(encoding="utf-8")
    kept = json.loads(SAVED.read_text(encoding="utf-8"))
    assert fill(text, {"speed": table(kept)}) == text, "run: make bench-docs"
