"""The layout is inferred where only one reading is left, and never otherwise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pate_cli.core.errors import VoteError
from pate_cli.votes import Layout, open_votes
from pate_cli.votes.layouts.infer import Evidence, infer
from slices import tries

RNG = np.random.default_rng(11)
COUNTS = RNG.multinomial(250, np.ones(10) / 10, size=64)
LABELS = RNG.integers(0, 10, size=(640, 250))


def guess(array, classes=None, teachers=None, *, transposable=True, **more):
    array = np.asarray(array)
    known = Evidence(*array.shape, classes, teachers, transposable=transposable, **more)
    try:
        return infer("f", array, known)
    except VoteError:
        return None


def test_plain_counts_are_recognised():
    assert guess(COUNTS) is Layout.COUNTS
    assert guess(COUNTS, classes=10) is Layout.COUNTS
    assert guess(COUNTS, teachers=250) is Layout.COUNTS
    assert guess(COUNTS, classes=10, teachers=250) is Layout.COUNTS


def test_flags_that_contradict_counts():
    assert guess(COUNTS, classes=9) is None
    assert guess(COUNTS, teachers=249) is None
    assert guess(COUNTS, teachers=251) is None


def test_few_rows_need_the_number_of_teachers():
    few = [[240, 6, 4], [10, 230, 10]]
    assert guess(few) is None
    assert guess(few, teachers=250) is Layout.COUNTS


def test_a_wrong_number_of_teachers_does_not_turn_counts_into_labels():
    wide = RNG.multinomial(400, np.ones(300) / 300, size=64)  # many classes, small counts
    for counts in (COUNTS, wide):
        for teachers in counts.shape:
            assert guess(counts, teachers=teachers) in (None, Layout.COUNTS)
            assert guess(counts, teachers=teachers, rows_are_queries=True) in (None, Layout.COUNTS)


def test_missing_votes_need_the_number_of_teachers():
    gaps = COUNTS.copy()
    gaps[17, gaps[17].argmax()] -= 1
    assert guess(gaps) is None
    assert guess(gaps, teachers=250) is Layout.COUNTS


def test_a_damaged_row_does_not_turn_counts_into_labels():
    damaged = COUNTS.copy()
    damaged[17, 3] += 1
    for flags in ({}, {"teachers": 250}, {"teachers": 10}, {"teachers": 64}, {"classes": 10}):
        assert guess(damaged, **flags) is not Layout.LABELS
        assert guess(damaged, **flags) is not Layout.LABELS_BY_TEACHER
    ten = RNG.multinomial(10, np.ones(10) / 10, size=64)  # as many teachers as classes
    ten[5, 5] += 1
    assert guess(ten, teachers=10) is None


def test_label_matrices_need_teachers_to_know_their_orientation():
    assert guess(LABELS) is None
    assert guess(LABELS, classes=10) is None
    assert guess(LABELS, teachers=250) is Layout.LABELS
    assert guess(LABELS.T, teachers=250) is Layout.LABELS_BY_TEACHER
    assert guess(LABELS.T, teachers=250, transposable=False) is None
    assert guess(LABELS, teachers=250, classes=9) is None  # a label is out of range
    assert guess(LABELS[:250], teachers=250, classes=10) is None  # square


def test_query_ids_settle_the_orientation():
    assert guess(LABELS, classes=10, rows_are_queries=True) is Layout.LABELS
    assert guess(LABELS[:250], teachers=250, rows_are_queries=True) is Layout.LABELS
    assert guess(LABELS, teachers=640, classes=10, rows_are_queries=True) is None
    assert guess(LABELS, rows_are_queries=True) is None


@pytest.mark.parametrize(
    "labels",
    [
        np.ones((20, 250), dtype=int),  # unanimous: all totals are 250
        np.tile(np.arange(6), (20, 1)),  # all rows equal
        np.array([np.roll(np.arange(9), k) for k in range(9)]),  # permutations: equal totals
        np.array([[0, 1], [1, 0]] * 20),  # two teachers who never agree
        np.eye(30, dtype=int),  # one dissent per query
        np.full((1, 3), 5),  # one query
        np.arange(10)[:, np.newaxis],  # one teacher
        RNG.integers(0, 2, size=(250, 40)),  # binary
    ],
)
def test_awkward_labels_are_never_taken_for_counts(labels):
    for matrix in (labels, labels.T):
        assert guess(matrix) is None
        assert guess(matrix, teachers=labels.shape[1]) is not Layout.COUNTS


small = hnp.arrays(
    np.int64, st.tuples(st.integers(1, 12), st.integers(1, 4)), elements=st.integers(0, 3)
)


@settings(max_examples=tries(300))
@given(labels=small, told=st.booleans(), flip=st.booleans())
def test_small_label_matrices_are_read_rightly_or_not_at_all(labels, told, flip):
    """Labels of four classes with the true number of teachers, or none, told."""
    teachers = labels.shape[1] if told else None
    matrix = labels.T if flip else labels
    right = Layout.LABELS_BY_TEACHER if flip else Layout.LABELS
    assert guess(matrix, teachers=teachers) in (None, right)
    assert guess(matrix, teachers=teachers, classes=4) in (None, right)


@settings(max_examples=tries(300))
@given(
    classes=st.integers(2, 6),
    teachers=st.integers(1, 12),
    rows=st.integers(1, 14),
    seed=st.integers(0, 2**20),
    told=st.sampled_from(["", "teachers", "classes", "both"]),
    damage=st.booleans(),
)
def test_counts_are_read_rightly_or_not_at_all(classes, teachers, rows, seed, told, damage):
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(teachers, rng.dirichlet(np.ones(classes)), size=rows)
    if damage:
        assume(rows > 2)
        counts[rng.integers(rows), rng.integers(classes)] += 1
    flags = {
        "teachers": teachers if told in ("teachers", "both") else None,
        "classes": classes if told in ("classes", "both") else None,
    }
    assert guess(counts, **flags) in (None, Layout.COUNTS)


def test_the_message_names_the_choices_and_the_odd_row(npy, parquet, refusal):
    path = npy([[3, 1], [1, 1], [2, 2], [4, 0]])
    assert refusal(path) == (
        "v.npy: the layout cannot be told from the numbers; "
        "say `layout` counts|labels|labels-by-teacher (as counts, row 1 is the first with another "
        "total)"
    )
    assert refusal(parquet({"v": [[0, 1], [1, 1]]})) == (
        "v.parquet: the layout cannot be told from the numbers; say `layout` counts|labels; "
        "`teachers` and `classes` help to tell"
    )


def test_lists_with_gaps_are_not_guessed(parquet, refusal):
    lists = [[0, 9, 9], [9, 8], [7, None, 9]]
    path = parquet({"query_id": [1, 2, 3], "v": lists})
    assert refusal(path, teachers=3).startswith("v.parquet: the layout cannot be told")


def test_a_later_row_that_breaks_the_inference_is_an_error(npy, refusal):
    counts = RNG.multinomial(250, np.ones(10) / 10, size=40_000)
    counts[39_000, 0] += 1
    assert refusal(npy(counts)).startswith("v.npy: row 39000 is the first whose total is not")


def test_inference_does_not_depend_on_the_batch_size(npy):
    path = npy(COUNTS)
    with open_votes(path, batch_rows=1) as votes:
        assert votes.inferred
        assert votes.layout is Layout.COUNTS
        assert votes.describe() == (
            f"{path}: 64 queries x 10 classes, 250 teachers, layout counts (inferred)"
        )


@pytest.mark.parametrize(
    ("columns", "layout"),
    [
        ({"class_0": [2, 1], "class_1": [1, 2]}, Layout.COUNTS),
        ({"votes0": [2, 1], "votes1": [1, 2]}, Layout.COUNTS),
        ({"counts": [[2, 1], [1, 2]]}, Layout.COUNTS),
        ({"teacher_0": [0, 1], "teacher_1": [1, 1]}, Layout.LABELS),
        ({"query_id": [5, 6], "labels": [[0, 1], [1, 1]]}, Layout.LABELS),
        ({"query_id": [5, 6], "labels": [[0, 7], [1, 1]]}, Layout.LABELS),
        ({"labels": [[0, 1], [1, 1]]}, None),
        ({"votes": [[0, 1], [1, 1]]}, None),
        ({"query_id": [5, 5], "teacher_id": [1, 2], "label": [0, 1]}, Layout.LONG),
    ],
)
def test_column_names_that_speak(columns, layout, parquet, refusal):
    path = parquet(columns)
    if layout is None:
        assert "say `layout`" in refusal(path)
        return
    with open_votes(path) as votes:
        assert votes.inferred
        assert votes.layout is layout


def test_a_list_named_labels_needs_ids_or_teachers(parquet, refusal):
    path = parquet({"labels": [[], [5, None], [1, 1, 1], [0]]})
    with open_votes(path, teachers=3) as votes:
        assert (votes.layout, votes.classes) == (Layout.LABELS, 6)
    assert "say `layout` counts|labels" in refusal(path, teachers=4)  # a row per teacher?


def test_an_empty_row_does_not_hide_counts():
    gaps = COUNTS.copy()
    gaps[17] = 0
    assert guess(gaps, teachers=250) is Layout.COUNTS
    assert guess(gaps) is None
