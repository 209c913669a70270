"""The cost of replacing one voter who votes on few of many queries.

Each voter has at most one vote on a query, and at most K votes on all queries. Let a new voter
replace an old voter, and let no other voter change a vote. If neither the old nor the new voter
votes on a query, its output has the same distribution for both vote files, so the query costs
nothing. A query is *moved* if both the old and the new voter vote on it: a vote moves from one
class to another. A query is *lone* if only the old or only the new voter votes on it: a vote is
added or removed (THEORY.md, section 21).

If a public list names at most K queries for each voter (`assigned`), and nobody votes on other
queries, at most K queries change. Each changed query is charged as if a vote on it moved. If voters
choose their queries, the new voter moves a vote on j *moved* queries, and a vote is added or
removed on l *lone* queries, with 2j + l ≤ 2K. If a vote on a query moves, the worst-case RDP costs
are w for the whole query, w1 for the test and w2 for an answer. If a vote on a query is added or
removed, the worst-case RDP costs are w_lone for the whole query, w1 for the test and w2_lone for an
answer. There are two bounds on the cost of all queries together. Both bounds also hold if queries
are chosen after seeing earlier answers:

  by whole query: max over j and l of j·w + l·w_lone,
  by step: max over j and l of (j + l)·w1 + a·w2 + b·w2_lone.

Here a is the number of answers to moved queries (a vote moves to another class), and b is the
number of answers to lone queries (a vote is added or removed). A public cap A bounds a + b.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from pate_cli.core.arrays import Floats, Ints
from pate_cli.core.checks import check_whole


@dataclass(frozen=True)
class StepCosts:
    """Worst-case RDP costs of one query and of its steps, [orders], nats.

    Attributes:
        test: the cost of the step that decides whether to answer; 0 if every query is answered.
        answer: the cost of an answer, without the test.
        whole: the cost of the whole query, which may be less than `test` plus `answer`.
    """

    test: Floats
    answer: Floats
    whole: Floats


@dataclass(frozen=True)
class FewVotes:
    """A promise that no voter votes on more than a few queries.

    Attributes:
        votes: K ≥ 1, the largest number of votes of one voter.
        assigned: whether each voter votes only on queries that a public list names for this voter;
            the list names at most `votes` queries for each voter.
    """

    votes: int
    assigned: bool = False

    def __post_init__(self) -> None:
        check_whole("votes", self.votes)

    def on_each(self, teachers: int, queries: int) -> int:
        """Return how many votes each query gets if all teachers spread their votes evenly.

        If a public list assigns voters to queries, `teachers` is the number of voters who may vote
        on one query, and this number is returned.
        """
        return teachers if self.assigned else min(teachers * self.votes // queries, teachers)

    def cases(self, queries: int, answers: int) -> tuple[Ints, Ints, Ints, Ints]:
        """Return how many queries and answers a new voter changes, in all cases that may cost most.

        The results are the number j of queries on which a vote moves to another class, the number l
        of queries on which a vote is added or removed, the number of answers to the j queries, and
        the number of answers to the l queries, [cases] each. A cost that is linear in the four
        results is a piecewise linear function of j, and is largest at the smallest or largest j, or
        at a j at which the slope of this function changes.
        """
        most = min(self.votes, queries)
        ends = [most, 0, 2 * most - queries, answers, 2 * most - answers]
        moved = np.unique(np.clip(ends, most if self.assigned else 0, most))
        lone = np.minimum(2 * (most - moved), queries - moved)
        answered = np.minimum(moved, answers)
        return moved, lone, answered, np.minimum(lone, answers - answered)

    def rdp(self, queries: int, answers: int, *, moved: StepCosts, lone: StepCosts) -> Floats:
        """Return the worst-case cost if at most `answers` queries are answered, [orders], nats."""
        one, other, a, b = (each[:, None] for each in self.cases(queries, answers))
        whole = one * moved.whole + other * lone.whole
        steps = one * moved.test + other * lone.test + a * moved.answer + b * lone.answer
        return np.minimum(whole.max(axis=0), steps.max(axis=0))


Few: TypeAlias = FewVotes | None
"""A promise of few votes, or None if a voter may vote on every query."""


def touched(few: Few, queries: int, answers: int) -> tuple[int, int]:
    """Return how many queries and how many answers one voter can change at most.

    A changed answer counts as half an answer if a vote on its query is only added or removed.
    """
    if few is None:
        return queries, answers
    return min(few.votes if few.assigned else 2 * few.votes, queries), min(few.votes, answers)


def costliest(few: FewVotes, costs: Floats, numbers: Ints) -> tuple[Ints, Ints]:
    """Return the states of the K costliest queries, and how many of them each state has.

    A state is a group of queries that have the same cost. Here K is how many queries one voter can
    change, which may be twice `few.votes`. So the sum of the costs of the K costliest queries
    bounds the cost of replacing one voter (THEORY.md, section 21.4).

    Args:
        few: on how many queries one voter votes.
        costs: the cost of a query in each state, [..., states], nats.
        numbers: how many queries are in each state, [states] or [..., states].

    Returns:
        The indices of the states, the costliest first, and the numbers of queries, [..., at most K]
        each.
    """
    most = touched(few, int(np.max(numbers.sum(axis=-1), initial=0)), 0)[0]
    places = np.argsort(-costs, axis=-1, kind="stable")[..., :most]
    reached = np.take_along_axis(np.broadcast_to(numbers, costs.shape), places, axis=-1)
    kept = np.minimum(np.cumsum(reached, axis=-1), most)
    return places, np.diff(kept, axis=-1, prepend=0)


def summed(few: Few, costs: Floats, numbers: Ints) -> Floats:
    """Return the sum of the costs of all queries, or of the K costliest queries if `few` is given.

    The arguments are as in `costliest`; the result has the shape of `costs` without its last axis.
    """
    if few is None:
        return np.asarray(costs @ numbers)
    places, kept = costliest(few, costs, numbers)
    return np.asarray((np.take_along_axis(costs, places, axis=-1) * kept).sum(axis=-1))


class CostSum:
    """The sum of the costs of all queries, or of the K costliest, added in parts. SECRET."""

    def __init__(self, few: Few, kinds: int) -> None:
        """Start a sum without queries; each query has `kinds` costs, such as one per distance."""
        self._few, self._all = few, np.zeros(kinds)
        self._costs, self._numbers = np.zeros((kinds, 0)), np.zeros((kinds, 0), dtype=np.int64)

    def add(self, costs: Floats, numbers: Ints) -> None:
        """Add queries to the sum.

        Queries with the same costs are in one state. `costs` has the costs of one query in each
        state, [kinds, states], and `numbers` has how many queries are in each state, [states].
        """
        if self._few is None:
            self._all += costs @ numbers
            return
        every = np.hstack([self._numbers, np.broadcast_to(numbers, costs.shape)])
        costs = np.hstack([self._costs, costs])
        places, self._numbers = costliest(self._few, costs, every)
        self._costs = np.take_along_axis(costs, places, axis=1)

    @property
    def total(self) -> Floats:
        """Return the sum of the costs of the queries, one sum per kind of cost, [kinds], nats."""
        return self._all + (self._costs * self._numbers).sum(axis=1)


def mu_squared(few: Few, mu: Callable[..., float], *, queries: int, answers: int) -> float:
    """Return μ² of the Gaussian-DP bound on all queries (THEORY.md, sections 9.3 and 21.2).

    If a vote is added or removed, one count changes, and if a vote moves, two counts change. So the
    squared shift of the counts is half as large if a vote is added or removed.

    Args:
        few: on how many queries one voter votes; None if there is no limit.
        mu: returns the μ of this many `queries` and `answers` if a vote moves on every query.
        queries, answers: the number of queries, and the largest number of answers.
    """
    if few is None:
        return mu(queries=queries, answers=answers) ** 2
    test, both = mu(queries=1, answers=0) ** 2, mu(queries=1, answers=1) ** 2
    moved, lone, a, b = few.cases(queries, answers)
    return float(np.max((moved + lone) * test + (a + b / 2.0) * (both - test)))
