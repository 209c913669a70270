"""Only the first votes of a teacher count, where the votes show who voted."""

import numpy as np
import pyarrow as pa
import pytest

from opened import by_hand, counts_of, read, refused
from pate_cli.core.errors import ParameterError, UsageError
from pate_cli.votes import long, matrix
from pate_cli.votes.facts import Voting
from pate_cli.votes.opening import open_votes
from refusals import refusal

K, CLASSES = 3, 4
GIVEN = {"classes": CLASSES, "teachers": 9, "votes_per_teacher": K}
random = np.random.default_rng(11)
LABELS = np.where(random.random((20, 9)) < 0.4, random.integers(0, CLASSES, (20, 9)), -1)


def first_of_each(labels):
    """Votes after the K-th of their column taken out, one by one."""
    kept = labels.copy()
    for column in kept.T:
        column[np.flatnonzero(column >= 0)[K:]] = -1
    return kept


@pytest.fixture(params=[1, 7, 1 << 20])
def at_once(request, monkeypatch):
    """Votes are read so many at once."""
    monkeypatch.setattr(long, "VOTES_AT_ONCE", request.param)
    monkeypatch.setattr(matrix, "_ENTRIES_AT_ONCE", 9 * request.param)


def cases():
    lists = [[None if each < 0 else each for each in row] for row in LABELS.tolist()]
    columns = {f"teacher_{t}": LABELS[:, t] for t in range(9)}
    return {
        "array": (LABELS, {"layout": "labels"}),
        "by teacher": (LABELS.T.copy(), {"layout": "labels-by-teacher"}),
        "lists": (pa.table({"votes": pa.array(lists, pa.list_(pa.int64()))}), {"layout": "labels"}),
        "columns": (pa.table(columns), {"layout": "labels"}),
    }


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("form", cases())
def test_the_first_votes_of_a_matrix_count(form):
    source, told = cases()[form]
    file, _, counts = read(source, **GIVEN, **told, batch_rows=6)
    np.testing.assert_array_equal(counts, by_hand(first_of_each(LABELS), CLASSES))
    assert file.facts.voting == Voting(K)
    _, _, later = read(source, **GIVEN, **told, start=13)
    np.testing.assert_array_equal(later, counts[13:])


@pytest.mark.usefixtures("at_once")
def test_the_first_votes_of_several_labels_are_whole_ballots():
    ballots = random.integers(0, 2, (12, 9, 3))
    ballots[random.random((12, 9)) < 0.5] = -1
    counts = counts_of(ballots, layout="multilabel", teachers=9, votes_per_teacher=K)
    kept = np.stack([first_of_each(ballots[..., label]) for label in range(3)], axis=2)
    wanted = np.stack([(kept == side).sum(axis=1) for side in (0, 1)], axis=2)
    np.testing.assert_array_equal(counts, wanted.reshape(-1, 2))


def table(rows):
    query, teacher, label = zip(*rows, strict=True)
    label = pa.array([None if each < 0 else each for each in label], pa.int64())
    return pa.table({"query_id": query, "teacher_id": teacher, "label": label})


@pytest.mark.usefixtures("at_once")
def test_the_first_votes_of_long_form_are_those_of_its_rows():
    rows = [(q, t, int(LABELS[q, t])) for q in range(20) for t in range(9)]
    shuffled = [rows[at] for at in random.permutation(len(rows))]
    cast, wanted = dict.fromkeys(range(9), 0), np.zeros((20, CLASSES), int)
    for query, teacher, label in shuffled:
        if label >= 0 and cast[teacher] < K:
            wanted[query, label] += 1
        cast[teacher] += label >= 0
    file, _, counts = read(table(shuffled), **GIVEN, queries=list(range(20)))
    np.testing.assert_array_equal(counts, wanted)
    assert (file.facts.voting, file.facts.read_off) == (Voting(K), ())


def test_one_voter_changes_no_vote_of_others_and_the_file_is_never_refused():
    """Whatever one voter sends, the histograms differ by votes of its own, at most K of them."""
    rows = [(q, t, q % CLASSES) for t in range(1, 9) for q in range(20)]
    for own in ([], [(q, 0, 1) for q in range(20)], [(4, 0, 2)], [(q, 0, -1) for q in range(9)]):
        given = {**GIVEN, "queries": list(range(20))}
        apart = counts_of(table(rows + own), **given) - counts_of(table(rows), **given)
        cast = sum(label >= 0 for _, _, label in own)
        assert (apart >= 0).all()
        assert apart.sum() == min(cast, K)


def test_counts_cannot_show_it_and_say_so():
    counts = by_hand(LABELS, CLASSES)
    file, _, found = read(counts, **GIVEN, layout="counts", assigned=True)
    np.testing.assert_array_equal(found, counts)
    assert file.facts.voting == Voting(K, assigned=True, claimed=True)


def test_with_an_assignment_teachers_are_those_of_one_query():
    rows = [(q, t, 0) for q in range(5) for t in range(q * 4, q * 4 + 4)]
    given = {"classes": 2, "votes_per_teacher": 1, "assigned": True}
    assert "has 20 teacher ids" in refused(table(rows), **{**given, "assigned": False}, teachers=4)
    matrix_of = np.full((5, 20), -1)
    for query, teacher, label in rows:
        matrix_of[query, teacher] = label
    matrix_with = matrix_of.copy()
    matrix_with[3, 0] = 0
    long, wide = {"queries": list(range(5)), **given}, {"layout": "labels", **given}
    for source, one_more, how in (
        (table(rows), table([*rows, (3, 0, 0)]), long),
        (matrix_of, matrix_with, wide),
    ):
        file, _, counts = read(source, teachers=4, **how)
        assert (file.teachers, counts.tolist()) == (4, [[4, 0]] * 5)
        more = "has votes of more than 3 teachers, but `teachers` is 3"
        assert more in refused(source, teachers=3, **how)
        # Votes that the list cannot name for their teacher: once they were left out in silence.
        late = "has a vote of a teacher who voted on `votes_per_teacher` earlier queries"
        assert late in refused(one_more, teachers=5, **how)


@pytest.mark.parametrize(("told", "words"), [
    ({"votes_per_teacher": 2}, "`votes_per_teacher` needs `teachers`, the number of"),
    ({"votes_per_teacher": 2, "groups": pa.table({"group": ["a"] * 9})}, "with `groups`"),
    ({"assigned": True, "teachers": 9}, "`assigned` needs `votes_per_teacher`"),
    ({"votes_per_teacher": 0, "teachers": 9}, "must be between 1"),
    ({"votes_per_teacher": 2, "teachers": 9, "layout": "scores"}, "be used with layout scores"),
])  # fmt: skip
def test_what_says_nothing_is_refused(told, words):
    votes = random.random((5, 9, CLASSES)) if "layout" in told else LABELS
    told = {"layout": "labels", "classes": CLASSES, **told}
    assert words in refused(votes, UsageError, **told)


def test_open_votes_keep_their_limit_and_take_no_other():
    with open_votes(LABELS, layout="labels", **GIVEN) as file:
        for told in ({"votes_per_teacher": 2}, {"assigned": True}):
            text = refusal(ParameterError, read, file, **told)
            assert text.startswith("the array is already open; give the options for reading votes")
            assert text.endswith(" to `open_votes`, which opened it")
        with open_votes(file) as again:
            assert again.facts.voting == Voting(K)
