"""`pate aggregate` with other mechanisms and the published analysis: labels, reports, refusals."""

from __future__ import annotations

import json

import numpy as np
import pyarrow.parquet as pq
import pytest


@pytest.fixture
def ran(pate, votes, folder):
    """Run `aggregate`; the report, and labels and sources by row."""

    def run(*words, at=votes):
        dear = ["--max-epsilon", 1000]  # small teachers cost much
        result = pate("aggregate", at, "-o", "l.parquet", "--force", *dear, *words)
        assert result.exit_code == 0, result.stderr
        table = pq.read_table(folder / "l.parquet").to_pydict()
        labels = [-1 if label is None else label for label in table["label"]]
        return json.loads(result.stdout), np.array(labels), np.array(table["source"])

    return run


STABLE = [["--mechanism", "stability"], ["--mechanism", "sparse-vector"]]


def test_a_stable_epsilon_does_not_look_at_the_votes(pate, ran, counts, tmp_path):
    np.save(tmp_path / "other.npy", np.ascontiguousarray(np.roll(counts, 1, axis=1)[::-1]))
    for words in STABLE:
        one, _, _ = ran(*words)
        other, _, _ = ran(*words, at=tmp_path / "other.npy")
        assert one["epsilon"] == other["epsilon"]
        assert one["mechanism"] == other["mechanism"]
