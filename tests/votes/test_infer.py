"""The layout is inferred where only one reading is left, and never otherwise."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from opened import refused
from pate_cli.core.errors import VoteError
from pate_cli.core.words import Layout
from pate_cli.votes.opening import open_votes
from slices import tries

RNG = np.random.default_rng(11)
COUNTS = RNG.multinomial(250, np.ones(10) / 10, size=64)
LABELS = RNG.integers(0, 10, size=(640, 250))
NAMES = ("no", "yes", "perhaps")


def guess(source, **told):
    """The layout that is told, None where it is asked for."""
    try:
        with open_votes(source, **told) as file:
            return file.layout
    except VoteError:
        return None


def with_ids(array):
    columns = {f"x{place}": column for place, column in enumerate(array.T)}
    return pa.table({"query_id": np.arange(len(array)), **columns})


def test_plain_counts_are_recognised():
    for told in ({}, {"classes": 10}, {"teachers": 250}, {"classes": 10, "teachers": 250}):
        assert guess(COUNTS, **told) is Layout.COUNTS
    for told in ({"classes": 9}, {"teachers": 249}, {"teachers": 251}):
        assert guess(COUNTS, **told) is None
    few = np.array([[240, 6, 4], [10, 230, 10]])
    assert (guess(few), guess(few, teachers=250)) == (None, Layout.COUNTS)


def test_a_wrong_number_of_teachers_does_not_turn_counts_into_labels():
    """A slip of the caller must not put a guarantee on the wrong histograms."""
    wide = RNG.multinomial(400, np.ones(300) / 300, size=64)  # many classes, small counts
    for counts in (COUNTS, wide):
        for teachers in counts.shape:
            for source in (counts, with_ids(counts)):
                assert guess(source, teachers=teachers) in (None, Layout.COUNTS)


def test_counts_with_missing_votes_are_not_guessed():
    gaps, empty, damaged = COUNTS.copy(), COUNTS.copy(), COUNTS.copy()
    gaps[17, gaps[17].argmax()] -= 1
    empty[17] = 0
    damaged[17, 3] += 1
    for counts in (gaps, empty, damaged):
        for told in ({}, {"teachers": 250}, {"teachers": 10}, {"teachers": 64}, {"classes": 10}):
            assert guess(counts, **told) is None


def test_label_matrices_need_teachers_and_classes():
    assert guess(LABELS) is guess(LABELS, classes=10) is guess(LABELS, teachers=250) is None
    told = {"teachers": 250, "classes": 10}
    assert guess(LABELS, **told) is guess(with_ids(LABELS), **told) is Layout.LABELS
    assert guess(LABELS.T, **told) is Layout.LABELS_BY_TEACHER
    assert guess(with_ids(LABELS.T), **told) is None  # a table has a row a query
    assert guess(LABELS[:250], **told) is None  # square
    assert guess(with_ids(LABELS), classes=10) is None
    assert guess(with_ids(LABELS), teachers=640, classes=10) is None
    words = np.array(NAMES)[LABELS % 3]
    assert guess(words, label_names=NAMES) is None
    assert guess(words, label_names=NAMES, teachers=250) is Layout.LABELS
    assert guess(words.T, label_names=NAMES, teachers=250) is Layout.LABELS_BY_TEACHER


@pytest.mark.parametrize(
    "labels",
    [
        np.ones((20, 250), dtype=int),  # unanimous: all totals are 250
        np.tile(np.arange(6), (20, 1)),  # all rows equal
        np.array([np.roll(np.arange(9), k) for k in range(9)]),  # permutations: equal totals
        np.array([[0, 1], [1, 0]] * 20),  # two teachers who never agree
        np.eye(30, dtype=int),  # one dissent a query
        np.full((1, 3), 5),  # one query
        np.arange(10)[:, np.newaxis],  # one teacher
        RNG.integers(0, 2, size=(250, 40)),  # binary
    ],
)
def test_awkward_labels_are_never_taken_for_counts(labels):
    for matrix in (labels, labels.T):
        assert guess(matrix) is None
        assert guess(matrix, teachers=labels.shape[1]) is not Layout.COUNTS


SMALL = hnp.arrays(
    np.int64, st.tuples(st.integers(1, 12), st.integers(1, 4)), elements=st.integers(0, 3)
)


@settings(max_examples=tries(300))
@given(labels=SMALL, told=st.booleans(), flip=st.booleans(), classes=st.sampled_from([None, 4]))
def test_small_label_matrices_are_read_rightly_or_not_at_all(labels, told, flip, classes):
    teachers = labels.shape[1] if told else None
    right = Layout.LABELS_BY_TEACHER if flip else Layout.LABELS
    matrix = labels.T if flip else labels
    assert guess(matrix, teachers=teachers, classes=classes) in (None, right)


@settings(max_examples=tries(300))
@given(
    classes=st.integers(2, 6),
    teachers=st.integers(1, 12),
    rows=st.integers(1, 14),
    seed=st.integers(0, 2**20),
    told=st.sampled_from([(), ("teachers",), ("classes",), ("teachers", "classes")]),
    damage=st.booleans(),
)
def test_counts_are_read_rightly_or_not_at_all(classes, teachers, rows, seed, told, damage):
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(teachers, rng.dirichlet(np.ones(classes)), size=rows)
    if damage:
        assume(rows > 2)
        counts[rng.integers(rows), rng.integers(classes)] += 1
    facts = {"teachers": teachers, "classes": classes}
    assert guess(counts, **{fact: facts[fact] for fact in told}) in (None, Layout.COUNTS)


def test_lists_with_gaps_and_the_numbers_of_unlisted_names_are_not_guessed(tmp_path):
    table = pa.table({"query_id": [1, 2, 3], "v": [[0, 9, 9], [9, 8], [7, None, 9]]})
    assert "the layout is not certain" in refused(table, teachers=3)
    rows = "".join(f"{q},2,{q % 3},{(q + 1) % 3}\n" for q in range(30))
    (tmp_path / "v.csv").write_text("query_id,ann,bob,eve\n" + rows)
    told = {"any_name": True, "teachers": 3}
    assert guess(tmp_path / "v.csv", **told) is None
    assert guess(tmp_path / "v.csv", layout="labels", **told) is Layout.LABELS


def test_the_message_names_the_choices():
    assert "give `layout`: counts, labels or labels-by-teacher" in refused(
        np.array([[3, 1], [1, 1]])
    )
    assert refused(pa.table({"v": [[0, 1], [1, 1]]})).endswith("give `layout`: counts or labels")
    # Names of rows or columns leave no doubt who is a row.
    columns = {f"teacher_{t}": [0, 1] for t in range(5)}
    for names in ({"query_id": [1, 2]}, {}):
        with open_votes(pa.table({**names, **columns})) as file:
            assert (file.queries, file.teachers) == (2, 5)


def test_a_later_row_that_breaks_the_inference_is_an_error():
    counts = np.tile(COUNTS, (625, 1))
    counts[39_000, 0] += 1
    assert "row 39000 is the first row whose number of votes differs" in refused(counts)


# Every way to write labels [queries, teachers] in which [teachers, queries] would be read, too.
TURNABLE = {
    "array": (lambda labels: labels, "labels"),
    "by teacher": (lambda labels: labels.T, "labels-by-teacher"),
    "words": (lambda labels: np.array(NAMES)[labels], "labels"),
    "columns": (lambda labels: pa.table({f"t{k}": c for k, c in enumerate(labels.T)}), "labels"),
    "lists": (lambda labels: pa.table({"v": labels.tolist()}), "labels"),
    "labels": (lambda labels: pa.table({"labels": labels.tolist()}), "labels"),
    "lists of words": (lambda labels: pa.table({"v": np.array(NAMES)[labels].tolist()}), "labels"),
    "scores": (lambda labels: np.eye(3)[labels], "scores"),
}


@pytest.mark.parametrize("way", TURNABLE)
@settings(max_examples=tries(25))
@given(
    shape=st.tuples(st.integers(1, 12), st.integers(1, 12)).filter(lambda s: s[0] > s[1]),
    seed=st.integers(0, 99),
)
def test_votes_that_are_turned_round_are_refused(way, shape, seed):
    write, layout = TURNABLE[way]
    queries, teachers = shape
    labels = np.random.default_rng(seed).integers(0, 3, size=shape)
    right, turned = write(labels), write(labels.T)

    def reading(source, said=layout, **told):
        try:
            with open_votes(source, label_names=NAMES, layout=said, **told) as file:
                return file.queries, file.teachers
        except VoteError:
            return None

    for said in (layout,) if way == "scores" else (layout, None):
        assert reading(right, said) in (shape, None)
        assert reading(turned, said) is None
        assert reading(turned, said, teachers=teachers) in (shape, None)
    assert reading(right) == reading(right, teachers=teachers) == shape
    assert reading(turned, teachers=teachers) is None
    assert reading(turned, teachers=queries) == (teachers, queries)
    assert reading(right, teachers=queries) is None
