"""Scores of three sides: who votes for what, and what is refused."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from pate_cli.core.errors import VoteError
from pate_cli.votes import Layout, open_votes

QUERIES, TEACHERS, CLASSES = 30, 7, 4


@pytest.fixture
def scores():
    return np.random.default_rng(3).normal(size=(QUERIES, TEACHERS, CLASSES))


def counted(scores):
    """Histograms of the best classes, one vote at a time."""
    found = np.zeros((len(scores), scores.shape[2]), dtype=np.int64)
    for row, teachers in enumerate(scores):
        for each in teachers:
            best = max(range(len(each)), key=lambda c: (each[c], -c))
            found[row, best] += 1
    return found


@pytest.mark.parametrize("kind", [np.float16, np.float32, ">f8", np.int32, np.uint8])
def test_every_teacher_votes_for_its_best_class(scores, kind, npy, drain):
    # Coarse enough for ties, which go to the first class.
    coarse = np.floor(3 * np.abs(scores)).astype(kind)
    assert (coarse == coarse.max(axis=2, keepdims=True)).sum(axis=2).max() > 1
    expected = counted(coarse)
    turned = np.ascontiguousarray(coarse.transpose(1, 0, 2))
    for source in (npy(coarse), coarse, np.asfortranarray(coarse)):
        np.testing.assert_array_equal(drain(source, layout="scores", batch_rows=8), expected)
    for source in (npy(turned), turned):
        by_teacher = drain(source, layout="scores-by-teacher", batch_rows=8)
        np.testing.assert_array_equal(by_teacher, expected)


def test_what_is_said_of_the_file(scores, npy):
    with open_votes(npy(scores), layout="scores") as file:
        assert file.describe() == (
            f"{file.name}: 30 queries x 4 classes, 7 teachers, layout scores (as told)"
        )
        assert not file.classes_from_data  # the shape says it, whatever the votes
        assert file.label_set is None
        assert file.portable
        copy = pickle.loads(pickle.dumps(file))  # noqa: S301 - our own
        whole = np.concatenate([batch.counts for batch in file.batches()])
        part = np.concatenate([batch.counts for batch in copy.batches(start=5, limit=11)])
        np.testing.assert_array_equal(part, whole[5:16])


def test_a_teacher_with_nan_alone_is_missing(scores, drain):
    scores[3, 2] = np.nan
    scores[4] = np.nan
    found = drain(scores, layout="scores", teachers=TEACHERS)
    present = np.nan_to_num(scores, nan=-1e9)
    expected = counted(present)
    expected[3, 0] -= 1  # where all are equal the first class would have had the vote
    expected[4] = 0
    np.testing.assert_array_equal(found, expected)


def spoiled(row, teacher, label, value):
    found = np.zeros((QUERIES, TEACHERS, CLASSES))
    found[row, teacher, label] = value
    return found


SHAPE = "the array has shape"
REFUSED = [
    (
        spoiled(2, 1, 0, np.nan),
        {},
        "row 2 has NaN or infinity among the scores of a teacher; a "
        "teacher with NaN alone may be missing where `teachers` N is given",
    ),
    (
        spoiled(2, 1, 0, np.nan),
        {"teachers": TEACHERS},
        "row 2 has NaN or infinity among the scores of a teacher",
    ),
    (
        spoiled(9, 1, 3, -np.inf),
        {"teachers": TEACHERS},
        "row 9 has NaN or infinity among the scores of a teacher",
    ),
    (
        np.zeros((3, 5, 4)),
        {},
        "as scores an array of shape (3, 5, 4) has 5 teachers and only 3 "
        "queries, as scores-by-teacher 3 teachers and 5 queries; give `teachers` N to settle it",
    ),
    (
        np.zeros((5, 3, 4)),
        {"layout": "scores-by-teacher"},
        "as scores-by-teacher an array of shape "
        "(5, 3, 4) has 5 teachers and only 3 queries, as scores 3 teachers and 5 queries; give "
        "`teachers` N to settle it",
    ),
    (
        np.zeros((3, 5, 4)),
        {"teachers": 3},
        "with `teachers` 3 an array of shape (3, 5, 4) is `layout` scores-by-teacher, not scores",
    ),
    (
        np.zeros((9, 5, 4)),
        {"teachers": 6},
        "as scores it has 5 teachers, but `teachers` 6; one who is missing is NaN throughout",
    ),
    (np.zeros((9, 5, 4)), {"classes": 5}, "has scores of 4 classes, but `classes` 5"),
    (np.zeros((9, 5, 1)), {}, "has scores of one class only; there is nothing to choose from"),
    (np.zeros((9, 5, 0)), {}, f"{SHAPE[:9]} has an empty side (shape (9, 5, 0))"),
    (np.zeros((0, 5, 2)), {}, f"{SHAPE[:9]} has no rows (shape (0, 5, 2))"),
    (np.zeros((9, 5)), {}, f"{SHAPE} (9, 5); layout scores needs [queries, teachers, classes]"),
    (
        np.zeros((9, 5, 2), dtype=bool),
        {},
        "the array holds true/false values; under layout scores votes are numbers; "
        "convert it first, as by astype('uint8')",
    ),
    (
        np.zeros((9, 5, 2), dtype=complex),
        {},
        "the array holds complex numbers; votes are stored as integers",
    ),
]


@pytest.mark.parametrize(("array", "options", "text"), REFUSED)
def test_what_is_refused(array, options, text, npy, refusal):
    options = {"layout": "scores", **options}
    assert refusal(npy(array), **options) == f"v.npy: {text}"
    assert refusal(array, **options) == f"array: {text}"


def test_three_sides_are_never_guessed(npy, refusal):
    for layout in (None, Layout.COUNTS, Layout.LABELS):
        assert refusal(npy(np.ones((9, 5, 2), dtype=int)), layout=layout, teachers=5) == (
            "v.npy: the array has shape (9, 5, 2); votes need two dimensions, [queries, classes] "
            "or [queries, teachers]; with three, say `layout` scores|scores-by-teacher|"
            "multilabel-counts|multilabel|multilabel-by-teacher"
        )


@pytest.mark.parametrize("layout", ["scores", "scores-by-teacher", "multilabel"])
def test_they_are_not_for_tables(layout, parquet, refusal):
    path = parquet({"a": [1, 2], "b": [3, 4]})
    assert refusal(path, layout=layout) == (
        f"v.parquet: layout {layout} is for NPY files and arrays, which have three sides"
    )


def test_a_large_file_is_mapped_not_loaded(tmp_path):
    """A sparse file of 3.2 GB opens at once; its first rows are read without the rest."""
    path = tmp_path / "v.npy"
    shape = (1_000_000, 40, 10)
    mapped = np.lib.format.open_memmap(path, mode="w+", dtype=np.float64, shape=shape)
    mapped[:3, :, 7] = 1.0
    del mapped
    with open_votes(path, layout="scores") as votes:
        batches = list(votes.batches(limit=3))
        assert [batch.counts.tolist() for batch in batches] == [[[0] * 7 + [40, 0, 0]] * 3]
    turned = tmp_path / "t.npy"
    np.lib.format.open_memmap(turned, mode="w+", dtype=np.float64, shape=(40, 1_000_000, 10))
    with open_votes(turned, layout="scores-by-teacher") as votes:
        assert next(votes.batches(start=999_998)).counts.tolist() == [[40] + [0] * 9] * 2


def test_a_file_that_changed_is_told(scores, npy):
    path = npy(scores)
    with open_votes(path, layout="scores") as file:
        copy = pickle.dumps(file)
    npy(scores[:-1])
    with pytest.raises(VoteError, match="has changed while it was read"):
        list(pickle.loads(copy).batches())  # noqa: S301 - our own
