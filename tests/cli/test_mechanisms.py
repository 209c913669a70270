"""`pate aggregate` with other mechanisms and the published analysis: labels, reports, refusals."""

from __future__ import annotations

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from pate_cli.core.noise import RunKey
from pate_cli.mechanisms.sparse_vector import SparseVector
from pate_cli.mechanisms.stability import Stability


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
WIDE = ["--query-epsilon", 5, "--query-delta", 1e-7]


@pytest.mark.parametrize("words", STABLE, ids=lambda words: words[1])
def test_stable_labels_are_exact_pluralities(ran, counts, words):
    report, labels, sources = ran(*words, *WIDE, "--seed", 4)
    answered = labels >= 0
    assert 5 < answered.sum() < 60
    np.testing.assert_array_equal(labels[answered], counts[answered].argmax(axis=1))
    np.testing.assert_array_equal(sources, np.where(answered, "teachers", "none"))
    if words[1] == "stability":
        mechanism = Stability(40, 4, query_epsilon=5.0, query_delta=1e-7)
        price = mechanism.privacy(60, 1e-5)
    else:
        mechanism = SparseVector(40, 4, query_epsilon=5.0, query_delta=1e-7, refusals=10)
        price = mechanism.privacy(60, 1e-5)
        refusals = np.flatnonzero(~answered)
        if len(refusals) >= 10:
            np.testing.assert_array_equal(refusals[9:], np.arange(refusals[9], 60))
    np.testing.assert_array_equal(labels, mechanism.label(counts, RunKey.of(4).rows(0, 1)))
    assert price.epsilon <= report["epsilon"] <= price.epsilon + 1.01e-4
    assert report["mechanism"] == mechanism.parameters()
    assert report["rounds"][0]["analysis"] == "composition"
    assert report["data_independent"]["method"] == price.method
    assert report.get("sanitized") is None


def test_a_stable_epsilon_does_not_look_at_the_votes(pate, ran, counts, tmp_path):
    np.save(tmp_path / "other.npy", np.ascontiguousarray(np.roll(counts, 1, axis=1)[::-1]))
    for words in STABLE:
        one, _, _ = ran(*words)
        other, _, _ = ran(*words, at=tmp_path / "other.npy")
        assert one["epsilon"] == other["epsilon"]
        assert one["mechanism"] == other["mechanism"]
