"""Every layout of the same votes gives the same histograms."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from advice import MISSING
from pate_cli.votes import Layout, open_votes
from slices import tries

CLASSES = 5


def by_hand(labels):
    return np.array([[list(row).count(c) for c in range(CLASSES)] for row in labels.tolist()])


label_matrices = hnp.arrays(
    np.int64, st.tuples(st.integers(1, 7), st.integers(1, 6)), elements=st.integers(0, CLASSES - 1)
)
DTYPES = ["<i1", "<u1", "<i2", ">i2", "<u4", ">i4", "<i8", ">u8", "<f8", ">f4"]


@settings(max_examples=tries(60))
@given(
    labels=label_matrices,
    dtype=st.sampled_from(DTYPES),
    order=st.sampled_from("CF"),
    rows=st.integers(1, 9),
)
def test_npy_layouts_agree(read, labels, dtype, order, rows):
    expected = by_hand(labels)
    told = {"classes": CLASSES, "teachers": labels.shape[1]}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "votes"
        shapes = {
            Layout.COUNTS: expected,
            Layout.LABELS: labels,
            Layout.LABELS_BY_TEACHER: labels.T,
        }
        for layout, array in shapes.items():
            with path.open("wb") as file:
                np.save(file, np.asarray(array.astype(dtype), order=order))
            _, ids, counts = read(path, layout=layout, batch_rows=rows, **told)
            np.testing.assert_array_equal(counts, expected)
            assert ids == list(range(len(labels)))
            array = np.asarray(array.astype(dtype), order=order)
            _, ids, counts = read(array, layout=layout, batch_rows=rows, **told)
            np.testing.assert_array_equal(counts, expected)
            assert ids == list(range(len(labels)))


def parquet_tables(labels, ids, types):
    """Every Parquet way to write these labels, as (layout, table)."""
    queries, teachers = labels.shape
    integer, name = types
    lists = {
        "var": pa.list_(integer),
        "large": pa.large_list(integer),
        "fixed": None,
    }
    expected = by_hand(labels)
    wide = {f"c{c}": pa.array(expected[:, c], integer) for c in range(CLASSES)}
    yield Layout.COUNTS, pa.table({"query_id": ids, **wide})
    yield (
        Layout.LABELS,
        pa.table(
            {
                "query_id": ids,
                **{f"teacher_{t}": pa.array(labels[:, t], integer) for t in range(teachers)},
            }
        ),
    )
    for layout, matrix in ((Layout.COUNTS, expected), (Layout.LABELS, labels)):
        kind = lists[name] or pa.list_(integer, matrix.shape[1])
        yield layout, pa.table({"v": pa.array(matrix.tolist(), kind), "query_id": ids})
    order = np.random.default_rng(queries).permutation(queries * teachers)
    yield (
        Layout.LONG,
        pa.table(
            {
                "teacher_id": pa.array([f"t{k % teachers}" for k in order]).dictionary_encode(),
                "query_id": ids.take(pa.array(order // teachers)),
                "label": pa.array(labels.ravel()[order], integer),
            }
        ),
    )


@settings(max_examples=tries(40))
@given(
    labels=label_matrices,
    integer=st.sampled_from([pa.int8(), pa.uint16(), pa.int64(), pa.float64()]),
    kind=st.sampled_from(["var", "large", "fixed"]),
    texts=st.booleans(),
    cut=st.integers(0, 7),
    rows=st.integers(1, 9),
    group=st.integers(1, 5),
)
def test_parquet_layouts_agree(read, labels, integer, kind, texts, cut, rows, group):
    expected = by_hand(labels)
    numbers = list(range(100, 100 + len(labels)))
    told = [f"q{n}" for n in numbers] if texts else numbers
    for layout, table in parquet_tables(labels, pa.array(told), (integer, kind)):
        with tempfile.TemporaryDirectory() as folder:
            pq.write_table(table.slice(0, cut), Path(folder) / "part-0", row_group_size=group)
            pq.write_table(table.slice(cut), Path(folder) / "part-1", row_group_size=group)
            _, ids, counts = read(folder, layout=layout, classes=CLASSES, batch_rows=rows)
        np.testing.assert_array_equal(counts, expected, err_msg=str(layout))
        assert ids == told
        pieces = pa.concat_tables([table.slice(0, cut), table.slice(cut)])
        _, ids, counts = read(pieces, layout=layout, classes=CLASSES, batch_rows=rows)
        np.testing.assert_array_equal(counts, expected, err_msg=str(layout))
        assert ids == told


def test_classes_come_from_the_largest_label_when_not_told(npy):
    path = npy([[0, 2, 1], [3, 3, 0], [0, 0, 0]])
    with open_votes(path, layout=Layout.LABELS) as votes:
        assert (votes.classes, votes.classes_from_data) == (4, True)
        assert (votes.teachers, votes.teachers_from_data) == (3, True)
        assert not votes.rows_from_data
        assert votes.describe() == (
            f"{path}: 3 queries x 4 classes, 3 teachers, layout labels (as told); "
            "the number of classes was taken from the data, `classes` is safer"
        )
    with open_votes(path, layout=Layout.LABELS, classes=9, teachers=4) as votes:
        assert (votes.classes, votes.classes_from_data) == (9, False)
        assert (votes.teachers, votes.teachers_from_data) == (4, False)


@pytest.mark.parametrize("layout", [Layout.COUNTS, Layout.LABELS])
def test_gaps_are_allowed_only_with_teachers(layout, parquet, npy, drain, refusal):
    if layout is Layout.COUNTS:
        path = npy([[2, 1], [1, 1], [0, 3]])
        assert refusal(path, layout=layout) == (
            f"v.npy: row 1 is the first whose total is not the 3 votes of row 0. {MISSING}"
        )
        assert refusal(path, layout=layout, teachers=2) == (
            "v.npy: row 0 has more votes than `teachers` 2"
        )
    else:
        path = parquet({"v": [[0, 0, 1], [0, 1], [None, 1, 1]]})
        assert refusal(path, layout=layout, classes=2) == (
            "v.parquet: row 1 is the first whose list is not as long as row 0's; give "
            "`teachers` N if the file holds labels and teachers may be missing"
        )
        assert refusal(path, layout=layout, teachers=2) == (
            "v.parquet: as labels it has 3 teachers, more than `teachers` 2"
        )
    with open_votes(path, layout=layout, teachers=4) as votes:
        assert votes.teachers == 4
        counts = np.concatenate([b.counts for b in votes.batches()])
    expected = {"counts": [[2, 1], [1, 1], [0, 3]], "labels": [[2, 1], [1, 1], [0, 2]]}
    np.testing.assert_array_equal(counts, expected[layout])
