"""Sparse counts are read as the dense ones would be; scores are votes for the best class."""

import pickle

import numpy as np
import pyarrow as pa
import pytest

from opened import by_hand, counts_of, read, refused
from pate_cli.core.arrays import DENSE_CLASSES, SparseCounts
from pate_cli.core.errors import ParameterError, UsageError
from pate_cli.core.words import Layout
from pate_cli.votes.facts import TeacherGroups
from pate_cli.votes.opening import open_votes

MANY = DENSE_CLASSES + 30
QUERIES, TEACHERS, CLASSES = 30, 7, 4


def sparse(label, count, kind=None, **more):
    kind = kind or pa.list_(pa.int64())
    return pa.table({"label": pa.array(label, kind), "count": pa.array(count, kind), **more})


@pytest.mark.parametrize("kind", [pa.list_(pa.int32()), pa.large_list(pa.uint16())])
@pytest.mark.parametrize("batch_rows", [None, 7])
def test_the_same_votes_as_dense_ones(kind, batch_rows):
    random = np.random.default_rng(3)
    counts = random.multinomial(25, [0.6, 0.2, 0.2, 0], size=40)
    labels = [random.permutation(np.flatnonzero(row)) for row in counts]
    votes = [row[label] for row, label in zip(counts, labels, strict=True)]
    for options in ({}, {"layout": "sparse"}, {"teachers": 25}):
        file, ids, found = read(
            sparse(labels, votes, kind), classes=4, batch_rows=batch_rows, **options
        )
        np.testing.assert_array_equal(found, counts)
        assert ids == [*range(40)]
        assert (file.layout, file.classes, file.teachers) == (Layout.SPARSE, 4, 25)
        assert file.facts.read_off == ()


def test_a_row_of_many_classes_costs_as_much_as_it_has_votes():
    """Memory follows from the number of teachers, not from millions of classes."""
    label = [[row, 2**24 - 1 - row] for row in range(40)]
    with open_votes(sparse(label, [[2, 1]] * 40), classes=2**24) as file:
        assert file.width == 3
        assert len(file.ranges(limit=40, entries=8)) == 2
        (batch,) = file.batches()
        (again,) = pickle.loads(pickle.dumps(file)).batches()  # noqa: S301 - our own
    assert isinstance(batch.counts, SparseCounts)
    for found in (batch, again):
        np.testing.assert_array_equal(found.counts.labels, label)
        np.testing.assert_array_equal(found.counts.counts, [[2, 1]] * 40)


def test_rows_without_votes_where_teachers_may_be_missing():
    table = sparse([[], [3], [1, 0]], [[], [2], [1, 3]], query_id=["a", "b", "c"])
    expected = [[0, 0, 0, 0], [0, 0, 0, 2], [3, 1, 0, 0]]
    np.testing.assert_array_equal(counts_of(table, classes=4, teachers=4), expected)
    assert "row 0 has no votes at all" in refused(table, classes=4)
    assert not counts_of(sparse([[], []], [[], []]), classes=2, teachers=1).any()
    assert not counts_of(sparse([[], []], [[], []]), classes=MANY, teachers=1).any()


@pytest.mark.parametrize("place", [0, 3, 5])
@pytest.mark.parametrize(
    ("label", "count", "message"),
    [
        ([1, 1], [1, 2], "lists a label twice"),
        ([1, 3], [3, 0], "has a count of 0"),
        ([1, 3], [4, -1], "has a negative number"),
        ([1, -1], [2, 1], "has a negative number"),
        ([1, 3], [3], "lists label and count of different lengths"),
        ([], [3], "lists label and count of different lengths"),
        ([1, 4], [2, 1], "has a label outside 0..3"),
        (None, [3], "has a null instead of a list"),
        ([3], None, "has a null instead of a list"),
        ([1, None], [2, 1], "has an entry that is empty"),
        ([1, 3], [None, 1], "has an entry that is empty"),
        ([1, 3], [2, 2**31], "has a number above 2147483647"),
        ([], [], "has no votes at all"),
    ],
)
def test_rows_are_refused(label, count, message, place):
    rows = [([1, 3], [2, 1])] * 6
    rows[place] = label, count
    for batch_rows in (None, 2):
        found = refused(sparse(*zip(*rows, strict=True)), classes=4, batch_rows=batch_rows)
        assert f"row {place} " in found
        assert message in found


def test_more_votes_than_teachers_are_refused():
    for row, first in enumerate((3, 2)):
        votes = sparse([[1], [0, 1, 2]], [[first], [1] * 3])
        assert f"row {row} has " in refused(votes, classes=4, teachers=2)
    fewer = refused(sparse([[1], [1]], [[3], [2]]), classes=4)
    assert "row 1 is the first row whose number of votes" in fewer


def test_sparse_counts_need_their_classes_and_columns():
    table = sparse([[1]], [[3]])
    assert "needs `classes`, the number of classes" in refused(table, UsageError)
    assert "must be between 2" in refused(table, ParameterError, classes=2**24 + 1)
    floats = pa.table({"label": [[1.0]], "count": [[2.5]]})
    assert "row 0 has a fractional number" in refused(floats, classes=2)
    for column, values in (("cat", [1.0]), ("teacher_id", ["a"])):
        other = refused(table.append_column(column, pa.array(values)), classes=4)
        assert f"column {column!r} and the lists in column 'label' could both be votes" in other
    told = {"layout": "sparse", "classes": 4}
    assert "column 'count' is missing" in refused(pa.table({"label": [[1]]}), **told)
    words = pa.table({"label": [["a"]], "count": [[1]]})
    assert "must have a list of numbers" in refused(words, **told)
    groups = TeacherGroups(["a"])
    assert "the vote of each teacher" in refused(table, UsageError, classes=4, groups=groups)


@pytest.fixture
def scores():
    return np.random.default_rng(3).normal(size=(QUERIES, TEACHERS, CLASSES))


def best(scores):
    """Histograms of the best classes, the first of equal ones."""

    def vote(each):
        return -1 if np.isnan(each).all() else max(range(len(each)), key=lambda c: (each[c], -c))

    return by_hand([[vote(each) for each in row] for row in scores], scores.shape[2])


@pytest.mark.parametrize("kind", [np.float16, np.float32, ">f8", np.int32, np.uint8])
def test_every_teacher_votes_for_its_best_class(scores, kind, tmp_path):
    coarse = np.floor(3 * np.abs(scores)).astype(kind)
    turned = np.ascontiguousarray(coarse.transpose(1, 0, 2))
    np.save(tmp_path / "v.npy", coarse)
    for source in (tmp_path / "v.npy", coarse, np.asfortranarray(coarse)):
        found = counts_of(source, layout="scores", batch_rows=8)
        np.testing.assert_array_equal(found, best(coarse))
    for source in (turned, list(turned)):
        found = counts_of(source, layout="scores-by-teacher", batch_rows=8)
        np.testing.assert_array_equal(found, best(coarse))


def test_logarithms_of_zero_are_scores(scores):
    scores[2, 1, :3] = -np.inf
    scores[5, :, 0] = -np.inf
    found = counts_of(scores, layout="scores")
    np.testing.assert_array_equal(found, best(scores))
    scores[9, 4] = -np.inf
    for teachers in (None, TEACHERS):
        message = refused(scores, layout="scores", teachers=teachers)
        assert "row 9 has a teacher whose best score is NaN or infinite" in message


@pytest.mark.parametrize("teachers", [None, TEACHERS])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_no_number_among_scores_is_damage(scores, teachers, value):
    scores[7, 3, 2] = value
    for source, how in ((scores, "scores"), (scores.transpose(1, 0, 2), "scores-by-teacher")):
        message = refused(source, layout=how, teachers=teachers)
        assert f"{'column' if how != 'scores' else 'row'} 7 has a teacher" in message


def test_a_teacher_with_nan_alone_is_missing(scores):
    scores[3, 2] = np.nan
    scores[4] = np.nan
    assert "`teachers` N" in refused(scores, layout="scores")
    found = counts_of(scores, layout="scores", teachers=TEACHERS)
    np.testing.assert_array_equal(found, best(scores))
    assert (found[3].sum(), found[4].sum()) == (TEACHERS - 1, 0)


@pytest.mark.parametrize(
    ("shape", "options", "text"),
    [
        ((3, 5, 4), {}, "5 teachers and 3 queries"),
        ((3, 5, 4), {"teachers": 3}, "rows and columns are exchanged"),
        ((9, 5, 4), {"teachers": 6}, "the votes have 5 teachers, but `teachers` is 6"),
        ((9, 5, 4), {"classes": 5}, "has 4 classes, but `classes` is 5"),
        ((9, 5, 1), {}, "only one class"),
        ((9, 5, 0), {}, "no dimension of size 0"),
        ((0, 5, 2), {}, "no dimension of size 0"),
        ((9, 5), {}, "three dimensions"),
    ],
)
def test_shapes_that_are_refused(shape, options, text):
    assert text in refused(np.zeros(shape), layout="scores", **options)
    assert "true and false" in refused(np.zeros((9, 5, 2), dtype=bool), layout="scores")


def test_three_sides_are_never_guessed():
    array = np.ones((9, 5, 2), dtype=int)
    assert "need `layout`" in refused(array, teachers=5)
    with open_votes(array, layout="scores") as file:
        assert (file.facts.read_off, file.facts.label_set) == ((), None)
