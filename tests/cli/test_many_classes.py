"""Votes over more classes than have draws of their own, from a file to labels and back."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

CLASSES, TEACHERS, QUERIES = 60_000, 40, 50


@pytest.fixture
def tokens(folder):
    """The same votes as sparse histograms and as labels."""
    random = np.random.default_rng(6)
    own = random.integers(CLASSES, size=(QUERIES, 1))
    agree = random.random((QUERIES, TEACHERS)) < random.random((QUERIES, 1)) ** 0.4
    votes = np.where(agree, own, random.integers(CLASSES, size=(QUERIES, TEACHERS)))
    found = [np.unique(row, return_counts=True) for row in votes]
    table = {"label": [label for label, _ in found], "count": [count for _, count in found]}
    pq.write_table(pa.table(table), folder / "tokens.parquet", row_group_size=13)
    np.save(folder / "labels.npy", votes)
    return votes


def test_labels_do_not_depend_on_the_layout(tokens, pate, folder):
    for name, layout in (("tokens.parquet", "sparse"), ("labels.npy", "labels")):
        words = ["--layout", layout, "--classes", CLASSES, "--seed", 4, "-o", f"{layout}-out.npy"]
        result = pate("aggregate", name, *map(str, words))
        assert result.exit_code == 0, result.stderr
        report = json.loads(result.stdout)
        assert report["rounds"][0]["mechanism"]["classes"] == CLASSES
    found, other = (np.load(folder / f"{layout}-out.npy") for layout in ("sparse", "labels"))
    assert 5 < np.count_nonzero(found >= 0) < QUERIES
    np.testing.assert_array_equal(found, other)
