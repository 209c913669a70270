"""Histograms by their votes: the same votes as dense ones, whatever is asked of them."""

import pickle

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from opened import by_hand
from pate_cli.core.arrays import (
    DENSE_CLASSES,
    SparseCounts,
    compact,
    dense,
    largest_two,
    row_width,
    stacked,
    winners,
)

SHAPES = st.tuples(st.integers(1, 6), st.integers(2, 9), st.integers(1, 7), st.integers(0, 2**32))


@given(shape=SHAPES)
def test_the_same_votes_either_way(shape):
    rows, classes, teachers, seed = shape
    random = np.random.default_rng(seed)
    votes = random.integers(-1, classes, size=(rows, teachers))
    counts = by_hand(votes, classes)
    for sparse in (SparseCounts.of(counts), SparseCounts.of_votes(votes, classes)):
        assert sparse.shape == counts.shape
        assert len(sparse) == rows
        assert sparse.ndim == counts.ndim
        np.testing.assert_array_equal(dense(sparse), counts)
        np.testing.assert_array_equal(sparse.zeros, (counts == 0).sum(axis=1))
        np.testing.assert_array_equal(winners(sparse), winners(counts))
        np.testing.assert_array_equal(largest_two(sparse), np.sort(counts, axis=1)[:, -2:])
        np.testing.assert_array_equal(largest_two(counts), np.sort(counts, axis=1)[:, -2:])
        assert row_width(sparse) == max(1, (counts > 0).sum(axis=1).max())
    weights = random.integers(1, 5, size=teachers)
    np.testing.assert_array_equal(
        SparseCounts.of_votes(votes, classes, weights).dense(), by_hand(votes, classes, weights)
    )
    # Rows cut elsewhere are wider or narrower, and stacked again the same.
    parts = [SparseCounts.of(counts[:1]), SparseCounts.of(counts)[1:]]
    np.testing.assert_array_equal(stacked(parts).dense(), counts)
    some = random.permutation(rows)
    np.testing.assert_array_equal(SparseCounts.of(counts)[some].dense(), counts[some])
    np.testing.assert_array_equal(stacked([counts[:1], counts[1:]]), counts)


@given(shape=SHAPES)
def test_the_jth_class_without_a_vote(shape):
    rows, classes, teachers, seed = shape
    votes = np.random.default_rng(seed).integers(-1, classes, size=(rows, teachers))
    for row in by_hand(votes, classes):
        without, sparse = np.flatnonzero(row == 0), SparseCounts.of(row[None])
        found = [int(sparse.without_votes(np.array([j]))[0]) for j in range(without.size)]
        assert found == without.tolist()


def test_many_classes_are_kept_by_their_votes():
    counts = np.zeros((3, DENSE_CLASSES + 1), dtype=np.int64)
    counts[1, [4, DENSE_CLASSES]] = 3, 5
    found = compact(counts)
    assert isinstance(found, SparseCounts)
    np.testing.assert_array_equal(found.labels[1], [4, DENSE_CLASSES])
    np.testing.assert_array_equal(found.dense(), counts)
    assert compact(found) is found
    few = counts[:, 1:]
    assert compact(few) is few
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(found)).dense(), counts)  # noqa: S301
