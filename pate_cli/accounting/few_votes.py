"""The cost of replacing one voter who votes on few of many queries.

Each voter has at most one vote on a query and at most K in all. Replace one voter, and let nobody
else's votes change. A query on which neither the old nor the new voter has a vote has the same law
for both vote files, so it costs nothing. On any other query a vote *moves* if both have one, and is
*lone* if one of them has: it appears or goes missing (THEORY.md, section 21).

If it is public who may vote on what (`assigned`), at most K queries are touched, and each of them
counts as moved. If voters choose for themselves, j queries are moved and l are lone with 2j + l ≤
2K. The costs of one query of either kind are known, as a whole (w) and by its steps (w1 of a test,
w2 of an answer). Queries that may be chosen after seeing earlier answers then cost at most

  max over j and l of j·w + l·w_lone,   and of (j + l)·w1 + a·w2 + b·w2_lone,

where moved queries have a answers and lone queries have b, within the public cap a + b ≤ A.
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
    """Worst-case RDP costs of one query by its steps, [orders], nats.

    Attributes:
        test: the cost of the step that decides whether to answer; 0 if there is none.
        answer: the cost of an answer, without the test.
        whole: the cost of the query as a whole, which may be less than the sum of both.
    """

    test: Floats
    answer: Floats
    whole: Floats


@dataclass(frozen=True)
class FewVotes:
    """A promise that no voter votes on more than a few queries.

    Attributes:
        votes: K ≥ 1, the most votes of one voter.
        assigned: whether a public list says who may vote on which query.
    """

    votes: int
    assigned: bool = False

    def __post_init__(self) -> None:
        check_whole("votes", self.votes)

    def on_each(self, teachers: int, queries: int) -> int:
        """Return how many votes each query gets if all teachers spread their votes evenly.

        With an assignment, `teachers` are those who may vote on one query, so they are the result.
        """
        return teachers if self.assigned else min(teachers * self.votes // queries, teachers)

    def cases(self, queries: int, answers: int) -> tuple[Ints, Ints, Ints, Ints]:
        """Return numbers of moved and lone queries and of their answers, for every extreme case.

        A cost that is linear in these numbers is piecewise linear in the number of moved queries,
        so it is largest at an end or where one of the limits below begins to hold.
        """
        most = min(self.votes, queries)
        ends = [most, 0, 2 * most - queries, answers, 2 * most - answers]
        moved = np.unique(np.clip(ends, most if self.assigned else 0, most))
        lone = np.minimum(2 * (most - moved), queries - moved)
        answered = np.minimum(moved, answers)
        return moved, lone, answered, np.minimum(lone, answers - answered)

    def rdp(self, queries: int, answers: int, *, moved: StepCosts, lone: StepCosts) -> Floats:
        """Return the cost of all queries with at most this many answers, [orders], nats."""
        one, other, a, b = (each[:, None] for each in self.cases(queries, answers))
        whole = one * moved.whole + other * lone.whole
        steps = one * moved.test + other * lone.test + a * moved.answer + b * lone.answer
        return np.minimum(whole.max(axis=0), steps.max(axis=0))


Few: TypeAlias = FewVotes | None
"""A promise of few votes, or None if a voter may vote on every query."""


def touched(few: Few, queries: int, answers: int) -> tuple[int, int]:
    """Return the most queries that one voter touches, and their answers; lone ones count half."""
    if few is None:
        return queries, answers
    return min(few.votes if few.assigned else 2 * few.votes, queries), min(few.votes, answers)


def costliest(few: FewVotes, costs: Floats, numbers: Ints) -> tuple[Ints, Ints]:
    """Return which states hold the K costliest queries, and how many of these are in each of them.

    K is the most queries that a voter touches, so the sum of their costs bounds what one voter
    changes (THEORY.md, 26.4).

    Args:
        few: the promise.
        costs: the cost of a query in each state, [..., states], nats.
        numbers: how many queries are in each state, [states] or [..., states].

    Returns:
        Places of states, the costliest first, and numbers of queries, [..., at most K] each.
    """
    most = touched(few, int(np.max(numbers.sum(axis=-1), initial=0)), 0)[0]
    places = np.argsort(-costs, axis=-1, kind="stable")[..., :most]
    reached = np.take_along_axis(np.broadcast_to(numbers, costs.shape), places, axis=-1)
    kept = np.minimum(np.cumsum(reached, axis=-1), most)
    return places, np.diff(kept, axis=-1, prepend=0)


def summed(few: Few, costs: Floats, numbers: Ints) -> Floats:
    """Return the sum of the costs of queries, [...]; with a limit, of the K costliest ones only.

    The arguments are as in `costliest`.
    """
    if few is None:
        return np.asarray(costs @ numbers)
    places, kept = costliest(few, costs, numbers)
    return np.asarray((np.take_along_axis(costs, places, axis=-1) * kept).sum(axis=-1))


class CostSum:
    """The sum of costs of queries that come in parts: of all, or of the K costliest. SECRET."""

    def __init__(self, few: Few, kinds: int) -> None:
        """Begin with no queries, whose costs are of so many kinds."""
        self._few, self._all = few, np.zeros(kinds)
        self._costs, self._numbers = np.zeros((kinds, 0)), np.zeros((kinds, 0), dtype=np.int64)

    def add(self, costs: Floats, numbers: Ints) -> None:
        """Add queries with costs [kinds, states], as many in each state as `numbers` [states]."""
        if self._few is None:
            self._all += costs @ numbers
            return
        every = np.hstack([self._numbers, np.broadcast_to(numbers, costs.shape)])
        costs = np.hstack([self._costs, costs])
        places, self._numbers = costliest(self._few, costs, every)
        self._costs = np.take_along_axis(costs, places, axis=1)

    @property
    def total(self) -> Floats:
        """Return the sum, [kinds], nats."""
        return self._all + (self._costs * self._numbers).sum(axis=1)


def mu_squared(few: Few, mu: Callable[..., float], *, queries: int, answers: int) -> float:
    """Return μ² of Gaussian DP (THEORY.md, 9.3 and 26.2).

    A lone vote changes one count instead of two, which is half of the squared shift.

    Args:
        few: the promise, if there is one.
        mu: returns μ of this many `queries` and `answers`, all of them moved.
        queries, answers: k1 and k2.
    """
    if few is None:
        return mu(queries=queries, answers=answers) ** 2
    test, both = mu(queries=1, answers=0) ** 2, mu(queries=1, answers=1) ** 2
    moved, lone, a, b = few.cases(queries, answers)
    return float(np.max((moved + lone) * test + (a + b / 2.0) * (both - test)))
