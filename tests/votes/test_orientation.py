"""A file of labels that is turned round is refused, or at least not guessed, in every layout."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pate_cli.core.errors import VoteError
from pate_cli.votes import Layout, open_votes
from slices import some, tries

NAMES = ("no", "yes", "perhaps")


def numbers(labels):
    return [pa.array(column) for column in labels.T]


def words(labels):
    return [pa.array([NAMES[label] for label in column]) for column in labels.T]


def table(columns):
    return pa.table({f"t{k}": column for k, column in enumerate(columns)})


# Every way to write labels [queries, teachers] in which [teachers, queries] would be read, too.
TURNABLE = {
    "array": (lambda labels: labels, Layout.LABELS),
    "array by teacher": (lambda labels: labels.T, Layout.LABELS_BY_TEACHER),
    "array of words": (lambda labels: np.array(NAMES)[labels], Layout.LABELS),
    "columns": (lambda labels: table(numbers(labels)), Layout.LABELS),
    "columns of words": (lambda labels: table(words(labels)), Layout.LABELS),
    "lists": (lambda labels: pa.table({"v": labels.tolist()}), Layout.LABELS),
    "lists called labels": (lambda labels: pa.table({"labels": labels.tolist()}), Layout.LABELS),
    "lists of words": (
        lambda labels: pa.table({"v": [[NAMES[v] for v in row] for row in labels.tolist()]}),
        Layout.LABELS,
    ),
}
shapes = st.tuples(st.integers(1, 12), st.integers(1, 12)).filter(lambda shape: shape[0] > shape[1])


def reading(source, **told):
    """What a file is read as, (queries, teachers); None where it is refused."""
    try:
        with open_votes(source, label_names=NAMES, **told) as votes:
            return votes.queries, votes.teachers
    except VoteError:
        return None


@pytest.mark.parametrize("way", some(TURNABLE, 2))
@settings(max_examples=tries(25))
@given(shape=shapes, seed=st.integers(0, 99))
def test_turned_round(way, shape, seed):
    write, layout = TURNABLE[way]
    queries, teachers = shape
    labels = np.random.default_rng(seed).integers(0, 3, size=shape)
    right, turned = write(labels), write(labels.T)
    for said in (layout, None):
        # Without the number of teachers, by shape: more queries than teachers.
        assert reading(right, layout=said) in (shape, None)
        assert reading(turned, layout=said) is None
        assert reading(turned, layout=said, teachers=teachers) in (shape, None)
    assert reading(right, layout=layout) == shape
    # With it, whichever is larger.
    assert reading(right, layout=layout, teachers=teachers) == shape
    assert reading(turned, layout=layout, teachers=teachers) is None
    assert reading(turned, layout=layout, teachers=queries) == (teachers, queries)
    assert reading(right, layout=layout, teachers=queries) is None


def test_both_readings_are_told(npy, parquet, refusal):
    labels = np.tile([0, 1], (3, 20))  # 3 x 40
    assert refusal(npy(labels), layout="labels") == (
        "v.npy: as labels it has 40 teachers and 3 queries, turned round 3 teachers and 40 "
        "queries; give `teachers` 40 or 3 to say which"
    )
    path = parquet({"v": labels.tolist()})
    assert refusal(path, layout="labels", teachers=3) == (
        "v.parquet: with `teachers` 3 its 3 rows are teachers; store one row per query, or "
        "query_id, teacher_id, label"
    )


@pytest.mark.parametrize("names", [{"query_id": [1, 2]}, {}])
def test_a_file_that_names_rows_or_columns_cannot_be_turned(names):
    columns = {f"teacher_{t}": [0, 1] for t in range(5)}
    lists = {"query_id": [1, 2], "v": [[0] * 5, [1] * 5]}
    assert reading(pa.table({**names, **columns})) == (2, 5)
    assert reading(pa.table(lists), layout="labels") == (2, 5)
