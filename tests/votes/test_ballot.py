"""Votes on one query, in every form, against counting by hand."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pate_cli.core.arrays import SparseCounts
from pate_cli.core.errors import ParameterError, VoteError
from pate_cli.votes import TeacherGroups
from pate_cli.votes.ballot import MOST_NAMED, BallotReader
from pate_cli.votes.matching import Matching
from refusals import refusal

NUMBERED = BallotReader(10, 4)
NAMED = BallotReader(10, 3, Matching(("cat", "dog", "bird")))
OPEN = BallotReader(10, None)
WIDE = BallotReader(10, 50_000)


def counted(reader, votes, **more):
    ballot = reader.ballot(votes, **more)
    return dict(zip(ballot.classes.tolist(), ballot.counts.tolist(), strict=True))


@given(st.lists(st.one_of(st.none(), st.integers(0, 3)), max_size=10))
def test_what_teachers_said_is_counted(votes):
    expected = dict(sorted(Counter(vote for vote in votes if vote is not None).items()))
    assert counted(NUMBERED, votes, by_teacher=True) == expected
    assert counted(NUMBERED, expected) == expected
    assert counted(NUMBERED, {str(name): n for name, n in expected.items()}) == expected
    full = [expected.get(place, 0) for place in range(4)]
    assert counted(NUMBERED, full) == counted(NUMBERED, np.array(full)) == expected
    assert counted(NUMBERED, [float(n) for n in full]) == expected


@given(st.lists(st.sampled_from(["cat", "dog", "bird", "Cat", "cow", "", " ", None]), max_size=10))
def test_texts_are_votes_for_names_and_others_count_as_missing(votes):
    ballot = NAMED.ballot(votes)
    expected = Counter(vote for vote in votes if vote in ("cat", "dog", "bird"))
    assert ballot.counts.sum() == sum(expected.values())
    assert ballot.said == Counter(vote for vote in votes if vote and vote.strip())
    dense = NAMED.histograms([ballot])[0]
    assert dense.tolist() == [expected[name] for name in ("cat", "dog", "bird")]


@given(st.lists(st.sampled_from(["a", "b", "c ", "A", "", None]), max_size=10))
def test_names_that_nobody_listed_are_counted_as_they_are_spelled(votes):
    ballot = OPEN.ballot(votes)
    found = dict(zip(ballot.names, ballot.counts.tolist(), strict=True))
    assert found == Counter(vote for vote in votes if vote)
    loose = BallotReader(10, None, normalise=True).ballot(votes)
    assert loose.counts.sum() == ballot.counts.sum()
    assert set(loose.names) <= {"a", "b", "c"}


def test_histograms_are_dense_or_by_their_votes():
    ballots = [WIDE.ballot({3: 2, 49_999: 1}), WIDE.ballot({}), WIDE.ballot({"7": 4})]
    found = WIDE.histograms(ballots)
    assert isinstance(found, SparseCounts)
    assert found.shape == (3, 50_000)
    assert found.labels.tolist() == [[3, 49_999], [50_000] * 2, [7, 50_000]]
    assert found.counts.tolist() == [[2, 1], [0, 0], [4, 0]]
    assert OPEN.histograms([OPEN.ballot(["x", "y"])]).classes == MOST_NAMED
    dense = NUMBERED.histograms([NUMBERED.ballot([1, 0, 0, 2]), NUMBERED.ballot([0] * 4)])
    assert dense.tolist() == [[1, 0, 0, 2], [0, 0, 0, 0]]


@pytest.mark.parametrize("place", [0, 2, 3])
def test_a_guess_votes_beside_the_teachers(place):
    ballot = NUMBERED.ballot([1, 0, 0, 2])
    found = NUMBERED.histograms([ballot.with_guess(place, 5)])[0]
    expected = np.array([1, 0, 0, 2])
    expected[place] += 5
    assert found.tolist() == expected.tolist()
    assert ballot.counts.tolist() == [1, 2]  # as it was


def test_teachers_of_groups_count_for_their_weights():
    groups = TeacherGroups(groups=["a", "a", "b"], weights=[1, 2, 4])
    reader = BallotReader(7, 2, groups=groups)
    assert counted(reader, [0, None, 1]) == {0: 1, 1: 4}
    for votes in ([0, 1], {0: 3}, [0, 1, 1, 1]):
        refusal(VoteError, reader.ballot, votes)


@pytest.mark.parametrize(
    ("reader", "votes"),
    [
        (NUMBERED, [1, 2, 3]),
        (NUMBERED, [5, 5, 5, 0]),
        (NUMBERED, [-1, 0, 0, 0]),
        (NUMBERED, [0.5, 0, 0, 0]),
        (NUMBERED, [True, 0, 0, 0]),
        (NUMBERED, [float("nan"), 0, 0, 0]),
        (NUMBERED, [1 << 40, 0, 0, 0]),
        (NUMBERED, [[1, 0, 0, 0]]),
        (NUMBERED, np.zeros((2, 4))),
        (NUMBERED, "0123"),
        (NUMBERED, b"0123"),
        (NUMBERED, 7),
        (NUMBERED, None),
        (NUMBERED, {4: 1}),
        (NUMBERED, {-1: 1}),
        (NUMBERED, {"cat": 1}),
        (NUMBERED, {True: 1}),
        (NUMBERED, {0: 11}),
        (NUMBERED, {0: "1"}),
        (NUMBERED, ["cat"]),
        (NUMBERED, []),
        (NAMED, {3: 1}),
        (NAMED, {"cow": 11}),
        (NAMED, ["cow"] * 11),
        (NAMED, ["cat", {}]),
        (OPEN, ["a"] * 11),
        (OPEN, [["a"]]),
        (OPEN, {"a": 11}),
        (OPEN, [1.5]),
    ],
)
def test_what_is_no_votes_is_refused_and_not_shown(reader, votes):
    text = refusal(VoteError, reader.ballot, votes)
    assert "cow" not in text
    assert "11" not in text


def test_a_guess_is_one_of_the_classes():
    assert NAMED.place("bird") == NAMED.place(2) == 2
    assert NUMBERED.place("3") == 3
    for guess in ("cow", 3, "3", None, 1.5, ["cat"]):
        refusal(ParameterError, NAMED.place, guess)
