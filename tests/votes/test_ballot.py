"""Votes on one query, in every form, against counting by hand; only their shape is refused."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pate_cli as pate
from pate_cli.core.arrays import SparseCounts
from pate_cli.core.checks import MOST_CLASSES
from pate_cli.core.errors import ParameterError, VoteError
from pate_cli.votes.ballot import BallotReader
from pate_cli.votes.facts import TeacherGroups
from pate_cli.votes.names import ClassNames
from refusals import refusal

NUMBERED = BallotReader(10, 4)
NAMED = BallotReader(10, 3, ClassNames(("cat", "dog", "bird")))
OPEN = BallotReader(10, None, ClassNames((), listed=False))
WIDE = BallotReader(10, 50_000)


def counted(reader, votes, **more):
    return reader.ballot(votes, **more).counts


@given(st.lists(st.one_of(st.none(), st.integers(-2, 6)), max_size=10))
def test_what_teachers_said_is_counted(votes):
    expected = dict(sorted(Counter(v for v in votes if v is not None and 0 <= v < 4).items()))
    assert counted(NUMBERED, votes, by_teacher=True) == expected
    assert counted(NUMBERED, Counter(votes)) == expected
    assert counted(NUMBERED, {str(name): n for name, n in Counter(votes).items()}) == expected
    full = [expected.get(place, 0) for place in range(4)]
    assert counted(NUMBERED, full) == counted(NUMBERED, np.array(full)) == expected
    assert counted(NUMBERED, [float(n) for n in full]) == expected


@given(st.lists(st.sampled_from(["cat", "dog ", "bird", "Cat", "cow", "", " ", None]), max_size=10))
def test_texts_are_votes_for_names_and_others_are_for_nobody(votes):
    ballot = NAMED.ballot(votes)
    expected = Counter(vote.strip() for vote in votes if vote)
    assert NAMED.histograms([ballot])[0].tolist() == [expected[n] for n in ("cat", "dog", "bird")]
    assert ballot.said == Counter(vote for vote in votes if vote is not None)


@given(st.lists(st.sampled_from(["a", "b", "c ", "A", "", None]), max_size=10))
def test_names_that_nobody_listed_are_counted_as_they_are_compared(votes):
    ballot = OPEN.ballot(votes)
    found = {ballot.names[place]: count for place, count in ballot.counts.items()}
    assert found == Counter(vote.strip() for vote in votes if vote)
    loose = BallotReader(10, None, ClassNames((), normalise=True, listed=False)).ballot(votes)
    assert sum(loose.counts.values()) == sum(ballot.counts.values())
    assert set(loose.names) <= {"a", "b", "c"}
    assert OPEN.ballot([7, 7, "7"]).names == ("7",)


def test_histograms_are_dense_or_by_their_votes():
    ballots = [WIDE.ballot({3: 2, 49_999: 1}), WIDE.ballot({}), WIDE.ballot({"7": 4})]
    found = WIDE.histograms(ballots)
    assert isinstance(found, SparseCounts)
    assert found.shape == (3, 50_000)
    assert found.labels.tolist() == [[3, 49_999], [50_000] * 2, [7, 50_000]]
    assert found.counts.tolist() == [[2, 1], [0, 0], [4, 0]]
    assert OPEN.histograms([OPEN.ballot(["x", "y"])]).classes == MOST_CLASSES
    dense = NUMBERED.histograms([NUMBERED.ballot([1, 0, 0, 2]), NUMBERED.ballot([0] * 4)])
    assert dense.tolist() == [[1, 0, 0, 2], [0, 0, 0, 0]]


@pytest.mark.parametrize(
    ("place", "expected"), [(0, [6, 0, 0, 2]), (2, [1, 0, 5, 2]), (3, [1, 0, 0, 7])]
)
def test_a_guess_votes_beside_the_teachers(place, expected):
    ballot = NUMBERED.ballot([1, 0, 0, 2])
    found = NUMBERED.histograms([ballot.with_guess(place, 5)])[0]
    assert found.tolist() == expected
    assert ballot.counts == {0: 1, 3: 2}  # as it was


def test_teachers_of_groups_count_for_their_weights():
    groups = TeacherGroups(groups=["a", "a", "b"], weights=[1, 2, 4])
    reader = BallotReader(7, 2, groups=groups)
    assert counted(reader, [0, None, 1]) == {0: 1, 1: 4}
    assert counted(reader, [0, 9, 1]) == {0: 1, 1: 4}
    for votes in ([0, 1], {0: 3}, [0, 1, 1, 1]):
        refusal(VoteError, reader.ballot, votes)


@pytest.mark.parametrize(
    ("reader", "every"),
    [
        (NUMBERED, ([1, 2, 3], [], [5, 5, 5, 0], [-1, 0, 0, 0])),
        (NUMBERED, ([0.5, 0, 0, 0], [True, 0, 0, 0], [1 << 40, 0, 0, 0], [float("nan"), 0, 0, 0])),
        (NUMBERED, ([[1, 0, 0, 0]], np.zeros((2, 4)), np.array(7), "0123", b"0123", 7, None)),
        (NUMBERED, ({True: 1}, {1.5: 1}, {0: 11}, {4: 11}, {0: "1"})),
        (NUMBERED, ([0, 0, 0, None],)),  # four counts, or three votes and a missing one
        (NAMED, (["cat", 1, 0], {"cow": 11}, ["cow"] * 11, [None] * 11, ["cat", {}])),
        (OPEN, (["a"] * 11, [["a"]], {"a": 11}, [1.5])),
    ],
)
def test_only_the_shape_is_refused_and_no_vote_is_shown(reader, every):
    """How many there are and of what type, which whoever asks knows beforehand."""
    for votes in every:
        text = refusal(VoteError, reader.ballot, votes)
        assert "cow" not in text
        assert "11" not in text


@pytest.mark.parametrize(
    ("reader", "votes", "more"),
    [
        (NUMBERED, [0, 1, 7], {"by_teacher": True}),
        (NUMBERED, [0, 1, -7], {"by_teacher": True}),
        (NUMBERED, {4: 1, 0: 1, 1: 1}, {}),
        (NUMBERED, {"cat": 1, "1": 1, "0": 1}, {}),
        (NUMBERED, ["cat", "1", "0"], {}),
        (NUMBERED, {"9" * 5000: 1, "1": 1, "0": 1}, {}),
        (NAMED, ["cow", "dog", "cat"], {}),
        (NAMED, [3, 1, "cat"], {"by_teacher": True}),
        (NAMED, {3: 1, 1: 1, "cat": 1}, {}),
    ],
)
def test_what_names_no_class_is_a_vote_for_nobody(reader, votes, more):
    """A refusal would tell for nothing that a teacher said it."""
    assert counted(reader, votes, **more) == {0: 1, 1: 1}


def test_a_guess_is_one_of_the_classes():
    assert NAMED.place("bird") == NAMED.place(2) == 2
    assert NUMBERED.place("3") == 3
    for guess in ("cow", 3, "3", None, 1.5, ["cat"]):
        refusal(ParameterError, NAMED.place, guess)
    refusal(ParameterError, OPEN.place, "cat")


TEST = {"mechanism": "gnmax", "sigma2": 40.0, "record": False, "seed": 5, "max_queries": 5}


def test_a_session_tells_its_holder_what_matched_no_name():
    with pate.Session(teachers=3, label_names="ant, bee", **TEST) as session:
        session.ask(["ant", "Ant", "wasp"])
        session.ask({"bee": 2, "wasp": 1})
        found = session.unmatched
    assert (found.cast, found.votes, found.mended) == (6, 3, 1)
    assert found.texts[0][:2] == ("wasp", 2)
    with pate.Session(teachers=3, classes=2, **TEST) as session:
        session.ask([1, 2])
        assert session.unmatched.cast == 0
        text = refusal(VoteError, session.ask, [1, None, 2])
        assert text.endswith("ask with `pate.Ask(votes, by_teacher=True)`")
        session.ask_all([pate.Ask([1, None, 2], by_teacher=True)])
