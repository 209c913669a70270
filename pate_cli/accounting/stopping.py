"""When questions that are asked one by one have to stop: a rule of constants, fixed beforehand.

Whoever asks may choose each query, and the votes on it, by the answers before. The rule looks at
two public counts only, t queries asked and a of them answered. N queries may be asked in any case.
More may where few were answered: another one as long as (t + 1)x + (a + 1)y ≤ B, x being at most
what a query costs, and y what its answer adds. What N queries of any kind cost is then paid for all
of it, by proof (accounting/THEORY.md, section 22) and not by adding up what came to be charged: how
much that is depends on the votes.

At one order λ, c = λ − 1, let V(t, a) be the most that the rest of a run multiplies its moment by.
A query with chance p of an answer, which neighbours turn into p', does so by

    (1 − p)^λ (1 − p')^{1−λ} V(t + 1, a) + p^λ p'^{1−λ} e^{cF} V(t + 1, a + 1),

one line r ↦ A + Br in r = V(t + 1, a + 1)/V(t + 1, a) for every case there is, so that

    V(t, a) ≤ V(t + 1, a) · g(r),   g(r) = max over cases of A + Br.

g is convex: between nodes its chord is above it, and so is what is computed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from pate_cli.core.arrays import Floats
from pate_cli.core.checks import check_order
from pate_cli.core.errors import ParameterError

_NODES: Final = 4097
_AT_ONCE: Final = 1024  # lines
_MOST_STATES: Final = 20_000_000
# What the second half of the rule is tried with, in shares of what all may cost.
_SHARES: Final = (0.98, 0.96, 0.94, 0.92, 0.9, 0.87, 0.84, 0.8, 0.75, 0.7, 0.6, 0.5)
_ROUND_OFF: Final = 1e-9
MOST_ASKED: Final = 10**9
"""No rule lets more queries be asked."""


@dataclass(frozen=True, eq=False)
class QueryMoments:
    """What one query multiplies a moment by, whatever the votes, [cases]: see the module's text.

    Attributes:
        order: λ > 1.
        refuse: A of every case.
        answer: B of every case, ≥ 0.
        answer_cost: what an answer costs by itself, nats: y of a rule.

    Raises:
        ParameterError: an order ≤ 1, a number that is not finite, or none at all.
    """

    order: float
    refuse: Floats
    answer: Floats
    answer_cost: float

    def __post_init__(self) -> None:
        check_order(self.order)
        whole = np.isfinite(self.refuse) & np.isfinite(self.answer) & (self.answer >= 0.0)
        if self.refuse.shape != self.answer.shape or not whole.size or not whole.all():
            raise ParameterError("a query's moments must be finite, a line for every case")

    def growth(self, ratio: Floats) -> Floats:
        """g at ratios r, exact, at least 1: nobody has to ask."""
        found = np.ones(ratio.size)
        for start in range(0, self.refuse.size, _AT_ONCE):
            some = slice(start, start + _AT_ONCE)
            lines = self.refuse[some, None] + self.answer[some, None] * ratio
            found = np.maximum(found, lines.max(axis=0))
        return found

    def test_cost(self, answer_cost: float) -> float:
        """The least x at which x for a query and `answer_cost` y more bound every case, nats.

        e^{cx} = g(e^{−cy}): then e^{−c(tx + ay)} times the moment never grows.
        """
        c = self.order - 1.0
        ratio = np.array([math.exp(-c * answer_cost)])
        return float(np.log(self.growth(ratio)[0])) / c


@dataclass(frozen=True)
class Beyond:
    """Up to where more may be asked, if few of the queries are answered.

    Attributes:
        order: λ > 1, at which all of it is proved.
        test_cost: x > 0 of a query, nats.
        answer_cost: y ≥ 0, which its answer adds, nats.
        budget: B, nats: t queries and a answers keep tx + ay ≤ B.
    """

    order: float
    test_cost: float
    answer_cost: float
    budget: float

    def __post_init__(self) -> None:
        check_order(self.order)
        numbers = (self.test_cost, self.answer_cost, self.budget)
        if not all(math.isfinite(number) and number >= 0.0 for number in numbers):
            raise ParameterError("the costs and the budget of a stopping rule must be at least 0")
        if self.test_cost == 0.0:
            raise ParameterError("a query of a stopping rule costs more than 0")

    def further(self, asked: int, answers: int) -> int:
        """How many more may be asked whatever comes out, ≥ 0."""
        left = self.budget - self.spent(asked, answers)
        return max(int(left / (self.test_cost + self.answer_cost)), 0)

    def spent(self, asked: int, answers: int) -> float:
        """tx + ay, nats."""
        return asked * self.test_cost + answers * self.answer_cost

    def allows(self, asked: int, answers: int) -> bool:
        """Whether a run may have come so far."""
        return self.spent(asked, answers) <= self.budget * (1.0 + _ROUND_OFF)

    @property
    def most(self) -> int:
        """How many may be asked if none is answered."""
        return min(int(self.budget / self.test_cost), MOST_ASKED)


def log_growth(moments: QueryMoments, *, asks: int, beyond: Beyond) -> float:
    """log V(0, 0) of the rule: of N queries in any case and what lies beyond, an upper bound.

    From N queries on the second half is alone, and e^{−c(tx + ay)} never grows: there
    V ≤ max(1, e^{c(B − Nx − ay)}). Up to N nothing stops a run.

    Raises:
        ParameterError: moments of another order, or a rule of more states than can be looked at.
    """
    if moments.order != beyond.order:
        raise ParameterError(f"moments at order {moments.order:g} for a rule at {beyond.order:g}")
    c = moments.order - 1.0
    ends = _states(asks, beyond)
    left = beyond.budget - beyond.spent(asks, 0) - np.arange(ends + 1) * beyond.answer_cost
    log_value = np.maximum(c * left, 0.0)
    nodes = np.linspace(0.0, 1.0, _NODES)
    values = np.log(moments.growth(nodes))
    growth = np.exp(values)
    for _ in range(asks):
        answered = np.append(log_value[1:], log_value[-1])
        ratio = np.exp(np.minimum(answered - log_value, 0.0))
        log_value = log_value + np.log(np.interp(ratio, nodes, growth))
    return float(log_value[0]) * (1.0 + _ROUND_OFF)


def beyond_of(moments: QueryMoments, *, asks: int, most: float) -> Beyond | None:
    """As much as may be asked beyond N queries, so that all of it costs `most`; None if nothing.

    Args:
        moments: of a query, at the order at which `most` is meant.
        asks: N ≥ 1.
        most: nats.
    """
    c, answer_cost = moments.order - 1.0, moments.answer_cost
    test_cost = moments.test_cost(answer_cost)
    if not test_cost > 0.0:
        return None
    for share in _SHARES:
        found = Beyond(moments.order, test_cost, answer_cost, share * most)
        if found.most <= asks or asks * _states(asks, found) > _MOST_STATES:
            continue
        if log_growth(moments, asks=asks, beyond=found) <= c * most:
            return found
    return None


def _states(asks: int, beyond: Beyond) -> int:
    """Answers among N queries after which nothing is left beyond them, N at most."""
    left = beyond.budget - beyond.spent(asks, 0)
    if left <= 0.0:
        return 0
    if left >= asks * beyond.answer_cost:
        return asks
    return min(math.ceil(left / beyond.answer_cost), asks)
