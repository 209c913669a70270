"""How a target would fare on a file of votes: chances, the least target, the most rows. SECRET."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pate_cli.accounting.conversion import round_up
from pate_cli.core.arrays import Floats
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import ParameterError
from pate_cli.core.words import Bound
from pate_cli.disclosure.profile import VoteProfile, settled_bound, states_for
from pate_cli.disclosure.target import LIKELY, TargetPlan, most_rows
from pate_cli.disclosure.worst_case import Spending, data_independent_cost
from pate_cli.mechanisms.base import ScoredMechanism
from pate_cli.run.fold import AskedRows, OnCounts

CHANCES: Final = (0.9, LIKELY, 0.999)
"""Chances of passing that a target is sought for."""

# Targets are sought within this factor of the one that was stated.
_WIDEST = 64.0
_PRECISION = 1e-4
_STEP = 1.001


@dataclass(frozen=True)
class Prospect:
    """How a target would fare. SECRET.

    Attributes:
        plan: the target and what is fixed with it.
        bound: how the cost of the votes is bounded.
        queries: rows that a run would ask.
        pass_probability: of these rows.
        smallest_epsilon: by chance of passing, the smallest target, η in proportion; nats.
        passing_queries: how many of the first rows pass with a chance of `LIKELY`; at most
            `looked_at`.
        looked_at: rows that were looked at.
        orders: Rényi orders of the test.
    """

    plan: TargetPlan
    bound: Bound
    queries: int
    pass_probability: float
    smallest_epsilon: dict[float, float]
    passing_queries: int
    looked_at: int
    orders: tuple[float, ...]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "epsilon": self.plan.epsilon,
            "delta": self.plan.delta,
            "refusal_epsilon": self.plan.refusal_epsilon,
            "bound": self.bound.value,
            "queries": self.queries,
            "pass_probability": self.pass_probability,
            "smallest_epsilon": {
                f"{chance:g}": epsilon for chance, epsilon in self.smallest_epsilon.items()
            },
            "passing_queries": self.passing_queries,
            "looked_at": self.looked_at,
            "orders": list(self.orders),
        }


class Chances:
    """Chances of passing for any target and number of first rows; costs are kept by order."""

    def __init__(
        self, mechanism: ScoredMechanism, profile: VoteProfile, *, queries: int, max_answers: int
    ) -> None:
        self._mechanism, self._profile = mechanism, profile
        self._queries, self._max_answers = queries, max_answers
        self._costs: dict[float, Floats] = {}

    def of(self, plan: TargetPlan, *, orders_of: TargetPlan | None = None) -> float:
        """That of a run; with the orders of another target, about the same."""
        orders = self._profile.states.worth((orders_of or plan).orders)

        def at(order: float) -> Floats:
            if order not in self._costs:
                self._costs[order] = self._profile.at(order, first=self._queries)
            return self._costs[order]

        ceiling = self._ceiling(orders, self._queries, self._max_answers)
        return plan.coin(at, ceiling, orders=orders).chance

    def of_first(self, plan: TargetPlan, rows: int) -> float:
        """That of a run over so many rows, with the same cap on answers if there is one."""
        orders = self._profile.states.worth(plan.orders)
        capped = self._max_answers < self._queries
        ceiling = self._ceiling(orders, rows, min(rows, self._max_answers) if capped else rows)
        return plan.coin(
            lambda order: self._profile.at(order, first=rows), ceiling, orders=orders
        ).chance

    def _ceiling(self, orders: Floats, queries: int, answers: int) -> Floats:
        return self._mechanism.worst_rdp(queries=queries, answers=answers, orders=orders)


def measure_prospect(
    votes: AskedRows,
    mechanism: ScoredMechanism,
    plan: TargetPlan,
    *,
    bound: Bound,
    queries: int,
    max_answers: int,
) -> Prospect:
    """How a target would fare on votes of which the first so many are asked.

    Args:
        votes: over at least the queries that are asked.
        mechanism: the aggregator.
        plan: the target.
        bound: how the cost of the votes is bounded.
        queries, max_answers: k1 and k2 of the run.

    Raises:
        ParameterError: a target so far off that no other within reason would do.
    """
    bound = settled_bound(bound, mechanism, rows=queries, orders=plan.orders)
    # Higher orders go with smaller targets.
    profile = VoteProfile(
        states_for(bound, mechanism, highest_order=float(plan.at(plan.epsilon / 8.0).orders[-1])),
        in_order=True,
    )
    for states in votes.over(mechanism, OnCounts(profile.states.of)):
        profile.add_rows(states)
    chances = Chances(mechanism, profile, queries=queries, max_answers=max_answers)
    worst = data_independent_cost(
        [Spending(mechanism, queries, max_answers)], delta=plan.delta, plan=None
    )
    always = round_up(worst.epsilon)
    return Prospect(
        plan=plan,
        bound=bound,
        queries=queries,
        pass_probability=1.0 if always <= plan.epsilon else chances.of(plan),
        smallest_epsilon={
            chance: smallest_target(chances, plan, chance, always=always) for chance in CHANCES
        },
        passing_queries=most_rows(
            lambda rows: chances.of_first(plan, rows) >= LIKELY, available=profile.queries
        ),
        looked_at=profile.queries,
        orders=tuple(profile.states.worth(plan.orders).tolist()),
    )


def smallest_target(chances: Chances, plan: TargetPlan, wanted: float, *, always: float) -> float:
    """The smallest target that passes with such a chance, or the one that is met by all votes."""
    found = min(plan.epsilon, always)
    # The orders follow from the target: bisect with those of the last guess until it stays.
    for _ in range(3):
        fixed = plan.at(found)
        found = min(
            _bisect(lambda e: chances.of(plan.at(e), orders_of=fixed) >= wanted, near=found),  # noqa: B023
            always,
        )
    found = round_up(found)
    while found < always and chances.of(plan.at(found)) < wanted:
        found = min(round_up(found * _STEP), always)
    return found


def _bisect(passes: Callable[[float], bool], *, near: float) -> float:
    """Where passing begins, to a relative precision, from above."""
    low = high = near
    while not passes(high):
        high *= 1.25
        if high > near * _WIDEST:
            raise ParameterError(f"no target up to {high:g} would pass")
    while passes(low):
        low /= 1.25
        if low < near / _WIDEST:
            return low
    while high - low > _PRECISION * low:
        middle = (low + high) / 2.0
        low, high = (low, middle) if passes(middle) else (middle, high)
    return high
