"""Sparse histograms are read as the dense ones would be, and refused by row."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest

from advice import FRACTION, MISSING, NO_VOTES
from pate_cli.core.arrays import DENSE_CLASSES, SparseCounts, stacked
from pate_cli.core.errors import ParameterError, UsageError, VoteError
from pate_cli.mechanisms.gnmax import GNMax
from pate_cli.run.passes import FilePasses
from pate_cli.votes import Layout, TeacherGroups, open_votes

MANY = DENSE_CLASSES + 30


def lists(counts, *, seed=0, **kinds):
    """The two columns of dense histograms, in no order."""
    random = np.random.default_rng(seed)
    labels = [random.permutation(np.flatnonzero(row)) for row in counts]
    votes = [row[label] for row, label in zip(counts, labels, strict=True)]
    kind = pa.list_(pa.int64())
    return {
        "label": pa.array(labels, kinds.get("label", kind)),
        "count": pa.array(votes, kinds.get("count", kind)),
    }


def columns(label, count, **more):
    kind = pa.list_(pa.int64())
    return {"label": pa.array(label, kind), "count": pa.array(count, kind), **more}


def many_votes(rows=40, teachers=25):
    random = np.random.default_rng(7)
    return np.minimum(random.zipf(1.4, size=(rows, teachers)), MANY) - 1


@pytest.mark.parametrize("kind", [pa.list_(pa.int32()), pa.large_list(pa.uint16())])
def test_the_same_votes_as_dense_ones(kind, histograms, parquet, read):
    path = parquet(lists(histograms, label=kind, count=kind), row_group_size=9)
    for options in ({}, {"layout": "sparse"}, {"batch_rows": 7}, {"teachers": 25}):
        file, ids, counts = read(path, classes=4, **options)
        np.testing.assert_array_equal(counts, histograms)
        assert ids == list(range(40))
        assert (file.layout, file.classes, file.teachers) == (Layout.SPARSE, 4, 25)
        assert file.read_off == ()
        assert file.portable
    assert file.describe() == (
        f"{path}: 40 queries x 4 classes, 25 teachers, layout sparse (inferred)"
    )


def test_many_classes_are_sparse_in_every_layout(parquet, npy):
    votes = many_votes()
    counts = np.zeros((len(votes), MANY), dtype=np.int64)
    np.add.at(counts, (np.arange(len(votes))[:, None], votes), 1)
    rows, teachers = np.indices(votes.shape)
    long = {"query_id": rows.ravel(), "teacher_id": teachers.ravel(), "label": votes.ravel()}
    shuffled = pa.table(long).take(np.random.default_rng(2).permutation(votes.size))
    sources = {
        Layout.SPARSE: parquet(lists(counts), "s.parquet", row_group_size=11),
        Layout.COUNTS: npy(counts, "c.npy"),
        Layout.LABELS: npy(votes, "l.npy"),
        Layout.LABELS_BY_TEACHER: npy(votes.T, "t.npy"),
        Layout.LONG: parquet(shuffled, "long.parquet"),
    }
    mechanism = GNMax(25, MANY, sigma2=4.0)
    for layout, source in sources.items():
        with open_votes(source, layout=layout, classes=MANY, batch_rows=9) as file:
            assert file.classes == MANY
            batches = list(file.batches())
            assert all(isinstance(batch.counts, SparseCounts) for batch in batches)
            found = stacked([batch.counts for batch in batches])
            np.testing.assert_array_equal(found.dense(), counts)
            np.testing.assert_array_equal(
                mechanism.scores(found), mechanism.scores(SparseCounts.of(counts))
            )
            np.testing.assert_array_equal(
                stacked([batch.counts for batch in file.batches(start=13, limit=20)]).dense(),
                counts[13:33],
            )


def test_a_row_costs_as_much_as_it_has_teachers(parquet):
    label = [[row, 2**24 - 1 - row] for row in range(40)]
    path = parquet(columns(label, [[2, 1]] * 40))
    with open_votes(path, classes=2**24) as file:
        assert file.reader.width == 3
        (batch,) = file.batches()
        assert len(file.ranges(limit=40, entries=60)) == 2
        carried = pickle.dumps(file)
        assert len(carried) < 2000
        (again,) = pickle.loads(carried).batches()  # noqa: S301 - our own
        first = FilePasses(file, 40).fingerprint(GNMax(3, 2**24, sigma2=2.0))
    np.testing.assert_array_equal(batch.counts.labels, label)
    np.testing.assert_array_equal(again.counts.labels, label)
    with open_votes(path, classes=2**24) as file:
        assert FilePasses(file, 40).fingerprint(GNMax(3, 2**24, sigma2=2.0)) == first
    other = parquet(columns(label, [[1, 2]] * 40), "o.parquet")
    with open_votes(other, classes=2**24) as file:
        assert FilePasses(file, 40).fingerprint(GNMax(3, 2**24, sigma2=2.0)) != first


def test_rows_without_votes_where_teachers_may_be_missing(parquet, drain, refusal):
    path = parquet(columns([[], [3], [1, 0]], [[], [2], [1, 3]], query_id=["a", "b", "c"]))
    expected = [[0, 0, 0, 0], [0, 0, 0, 2], [3, 1, 0, 0]]
    np.testing.assert_array_equal(drain(path, classes=4, teachers=4), expected)
    assert refusal(path, classes=4) == (f"v.parquet: row 0 {NO_VOTES}")
    none = parquet(columns([[], []], [[], []]))
    np.testing.assert_array_equal(drain(none, classes=2, teachers=1), np.zeros((2, 2)))


GOOD = [1, 3], [2, 1]
BAD = [
    ([[1, 1], [1, 2]], "lists a label twice; add its votes"),
    ([[1, 3], [3, 0]], "has a count of 0; list only the classes that have votes"),
    ([[1, 3], [4, -1]], "has a negative number or NaN in its list of count"),
    ([[1, -3], [2, 1]], "has a negative number or NaN in its list of label"),
    ([[1, -1], [2, 1]], "has a negative number or NaN in its list of label"),
    ([[1, -1], [3, -1]], "has a negative number or NaN in its list of label"),
    ([[1, 3], [3]], "has lists label and count of different lengths"),
    ([[], [3]], "has lists label and count of different lengths"),
    (
        [[1, 4], [2, 1]],
        "has a label outside 0..3; labels count from 0: check `classes` and the file",
    ),
    ([None, [3]], "has a null instead of a list"),
    ([[3], None], "has a null instead of a list"),
    ([[1, None], [2, 1]], "has a null in its list of label"),
    ([[1, 3], [None, 1]], "has a null in its list of count"),
    ([[1, 3], [2, 2**31]], "has a number above 2147483647, which is no vote; check the file"),
]
TOTALS = [
    (
        [[1, 3], [2, 2]],
        f"is the first whose total is not the 3 votes of row 0. {MISSING}",
    ),
    ([[], []], NO_VOTES),
]


@pytest.mark.parametrize(("row", "message"), BAD + TOTALS)
@pytest.mark.parametrize("place", [0, 3, 5])
def test_rows_are_refused(row, message, place, parquet, refusal):
    if place == 0 and "total is not" in message:
        return
    rows = [GOOD] * 6
    rows[place] = row
    path = parquet(columns(*zip(*rows, strict=True)), row_group_size=2)
    for options in ({}, {"batch_rows": 4}):
        assert refusal(path, classes=4, **options) == f"v.parquet: row {place} {message}"


def test_more_votes_than_teachers_are_refused(parquet, refusal):
    path = parquet(columns([[1], [0, 1, 2]], [[3], [1, 1, 1]]))
    assert refusal(path, classes=4, teachers=2) == (
        "v.parquet: row 0 has more votes than `teachers` 2"
    )
    path = parquet(columns([[1], [0, 1, 2]], [[2], [1, 1, 1]]))
    assert refusal(path, classes=4, teachers=2) == (
        "v.parquet: row 1 lists more classes than there are votes, 2"
    )


def test_fractions_are_refused_and_whole_floats_are_not(parquet, drain, refusal):
    kind = pa.list_(pa.float32())
    path = parquet({"label": pa.array([[1.0]], kind), "count": pa.array([[3.0]], kind)})
    np.testing.assert_array_equal(drain(path, classes=2), [[0, 3]])
    path = parquet({"label": pa.array([[1.0]], kind), "count": pa.array([[2.5]], kind)})
    assert refusal(path, classes=2) == (f"v.parquet: row 0 {FRACTION}")
    path = parquet({"label": pa.array([[np.nan]], kind), "count": pa.array([[3.0]], kind)})
    assert refusal(path, classes=2) == (
        "v.parquet: row 0 has a negative number or NaN in its list of label"
    )


def test_classes_are_public_and_must_be_given(parquet, npy):
    path = parquet(columns(*([part] for part in GOOD)))
    with pytest.raises(UsageError, match="`layout` sparse needs `classes`, how many there are"):
        open_votes(path).__enter__()
    with pytest.raises(ParameterError, match="between 2 and 16777216"):
        open_votes(path, classes=2**24 + 1).__enter__()
    with pytest.raises(UsageError, match="`queries` goes with `layout` long"):
        open_votes(path, classes=4, queries=[1, 2]).__enter__()
    with pytest.raises(VoteError, match="layout sparse is for tables"):
        open_votes(npy([[1, 2]]), layout="sparse", classes=4).__enter__()


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            {"label": [[1]]},
            "layout sparse needs the list columns label and count; 'count' is missing",
        ),
        ({"label": [[1]], "count": [1]}, "column 'count' holds int64; use lists of integers"),
        (
            {"label": [["a"]], "count": [[1]]},
            "column 'label' holds list<element: string>; use lists of integers",
        ),
        (
            {"label": [[1]], "count": [[1]], "weight": [1.0]},
            "column 'weight' beside 'label' and 'count' could be votes; drop it",
        ),
        (
            {"label": [[1]], "count": [[1]], "teacher_id": ["a"]},
            "column 'teacher_id' beside 'label' and 'count' could be votes; drop it",
        ),
        (
            {"label": [[1]], "count": [[1]], "query_id": [1.5]},
            "column 'query_id' is float; use integers or strings",
        ),
    ],
)
def test_columns_are_refused(table, message, parquet, refusal):
    assert refusal(parquet(table), layout="sparse", classes=4) == f"v.parquet: {message}"


def test_other_columns_and_parts(parquet, read, refusal, tmp_path):
    """Texts beside the votes are no votes; parts must agree; ids must differ."""
    first = columns([[1], [2]], [[3], [3]], query_id=["a", "b"], prompt=["x", "y"])
    second = columns([[0]], [[3]], query_id=["c"], prompt=["z"])
    parquet(first, "parts/1.parquet")
    parquet(second, "parts/2.parquet")
    _, ids, counts = read(tmp_path / "parts", classes=3)
    assert ids == ["a", "b", "c"]
    np.testing.assert_array_equal(counts, [[0, 3, 0], [0, 0, 3], [3, 0, 0]])
    parquet({**second, "query_id": ["a"]}, "parts/2.parquet")
    assert refusal(tmp_path / "parts", classes=3).endswith(
        "row 2 repeats the query_id of an earlier row"
    )


def test_a_label_list_beside_counts_of_another_name_is_no_sparse_histogram(parquet, refusal):
    text = refusal(parquet({"label": [[1]], "counts": [[1]]}), classes=4)
    assert text == (
        "v.parquet: the list columns 'label' and 'counts' could both be the votes; keep one"
    )


@pytest.mark.parametrize("classes", [4, MANY])
def test_an_open_table_is_read_as_its_file(histograms, parquet, read, classes):
    table = pa.table(lists(histograms))
    with (
        open_votes(table, classes=classes) as held,
        open_votes(parquet(table), classes=classes) as file,
    ):
        for one, other in zip(held.batches(), file.batches(), strict=True):
            here, there = (stacked([batch.counts]) for batch in (one, other))
            if classes == MANY:
                here, there = here.dense(), there.dense()
            np.testing.assert_array_equal(here, there)


def test_names_of_the_classes_tell_how_many_there_are(parquet, read):
    """Labels stay numbers, of the names in order."""
    names = [f"t{place}" for place in range(5)]
    file, _, counts = read(parquet(columns(*([part] for part in GOOD))), label_names=names)
    assert (file.classes, file.label_names) == (5, tuple(names))
    np.testing.assert_array_equal(counts, [[0, 2, 0, 1, 0]])


def test_groups_of_teachers_are_weighed_in_every_form(parquet, npy):
    votes = many_votes(teachers=4)
    weights = np.array([3, 1, 1, 2])
    rows, teachers = np.indices(votes.shape)
    long = {"query_id": rows.ravel(), "teacher_id": teachers.ravel(), "label": votes.ravel()}
    groups = TeacherGroups(("a", "b", "b", "c"), weights=(3, 1, 1, 2), ids=(0, 1, 2, 3))
    in_order = TeacherGroups(("a", "b", "b", "c"), weights=(3, 1, 1, 2))
    counts = np.zeros((len(votes), MANY), dtype=np.int64)
    np.add.at(counts, (np.arange(len(votes))[:, None], votes), weights)
    for layout, source, who in (
        (Layout.LABELS, npy(votes), in_order),
        (Layout.LONG, parquet(long), groups),
    ):
        with open_votes(source, layout=layout, classes=MANY, groups=who) as file:
            assert file.teachers == 7
            found = stacked([batch.counts for batch in file.batches()])
            np.testing.assert_array_equal(found.dense(), counts)
    with pytest.raises(UsageError, match="`groups` needs to know who voted"):
        open_votes(parquet(lists(counts), "s.parquet"), classes=MANY, groups=groups).__enter__()


@pytest.mark.parametrize("classes", [5, MANY])
def test_missing_votes_in_long_form(parquet, classes):
    """Texts that are no name are missing votes, whatever form the histograms have."""
    names = [f"t{place}" for place in range(classes)]
    rows = {
        "query_id": [1, 1, 1, 2, 2, 2],
        "teacher_id": [1, 2, 3, 1, 2, 3],
        "label": ["t4", "t4", "?", "no", "t1", "?"],
    }
    with open_votes(parquet(rows), label_names=names) as file:
        (batch,) = file.batches()
        assert file.teachers == 3
    found = batch.counts.dense() if classes == MANY else batch.counts
    expected = np.zeros((2, classes))
    expected[0, 4], expected[1, 1] = 2, 1
    np.testing.assert_array_equal(found, expected)
