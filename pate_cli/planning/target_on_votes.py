"""How a target fares on given votes: pass probability, the least target, the most rows. SECRET.

The votes are there, so nothing is forecast: the probability is the one with which the release test
of a run over these rows draws.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from pate_cli.accounting.conversion import round_up
from pate_cli.accounting.cost_table import Tally
from pate_cli.core.arrays import Floats
from pate_cli.core.words import Bound
from pate_cli.disclosure.profile import coin_orders, settled_bound, states_for
from pate_cli.disclosure.target import TargetPlan
from pate_cli.mechanisms.base import ScoredMechanism
from pate_cli.planning.bisection import least, most_rows
from pate_cli.planning.forecast import worst_case_epsilon
from pate_cli.run.fold import AskedRows, OnCounts

LIKELY: Final = 0.977
"""A chance of passing that counts as likely: two standard deviations, one-sided."""
CHANCES: Final = (0.9, LIKELY, 0.999)
"""Probabilities of passing for which the least target is told."""

# States whose costs are found at once.
_AT_ONCE = 50_000
# Targets are sought within this factor of the one that was stated, to a relative precision.
_WIDEST, _PRECISION, _STEP, _ROUNDS = 64.0, 1e-4, 1.001, 3


@dataclass(frozen=True)
class TargetOnVotes:
    """How a target fares. SECRET.

    Attributes:
        plan: the target and what is fixed with it.
        bound: how the cost of the votes is bounded.
        queries: rows that a run asks.
        pass_probability: of these rows.
        smallest_epsilon: by pass probability the least target, η in proportion; nats.
        passing_queries: how many of the first rows pass with probability `LIKELY`; at most
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
        """Return all fields, JSON-ready."""
        plan, found = self.plan, dict(vars(self))
        del found["plan"]
        return {
            "epsilon": plan.epsilon,
            "delta": plan.delta,
            "refusal_epsilon": plan.refusal_epsilon,
            **found,
            "bound": self.bound.value,
            "smallest_epsilon": {f"{each:g}": at for each, at in self.smallest_epsilon.items()},
            "orders": list(self.orders),
        }


def measure_target(
    votes: AskedRows,
    mechanism: ScoredMechanism,
    plan: TargetPlan,
    *,
    queries: int,
    max_answers: int,
) -> TargetOnVotes:
    """Return how a target fares on votes of which the first so many are asked. SECRET.

    Args:
        votes: over at least the queries that are asked.
        mechanism: the aggregator.
        plan: the target.
        queries, max_answers: k1 and k2 of the run.

    Raises:
        UnreachableError: a target so far off that no other within reason would do.
    """
    bound = settled_bound(plan.bound, mechanism, rows=queries, orders=plan.orders)
    # Higher orders go with smaller targets.
    highest = float(plan.at(plan.epsilon / 8.0).orders[-1])
    states = states_for(bound, mechanism, highest_order=highest)
    looked, places = Tally.with_places(
        np.concatenate([*votes.over(mechanism, OnCounts(states.of))])
    )
    always = worst_case_epsilon(mechanism, rows=queries, max_answers=max_answers, delta=plan.delta)
    cap = max_answers if max_answers < queries else looked.queries

    @functools.cache
    def by_state(order: float) -> Floats:
        starts = range(0, len(looked.cells), _AT_ONCE)
        return np.hstack([states.costs(order, looked.cells[at : at + _AT_ONCE]) for at in starts])

    def costs(at: TargetPlan, rows: int) -> tuple[Floats, Floats]:
        """Costs of the first rows by order and distance, and the orders of a target."""
        orders = coin_orders(bound, mechanism, at.orders)
        ceiling = mechanism.worst_rdp(queries=rows, answers=min(rows, cap), orders=orders)
        times = np.bincount(places[:rows], minlength=looked.weights.size)
        found = np.stack([by_state(order) @ times for order in orders.tolist()])
        return np.minimum(found, ceiling[:, None]), orders

    def chance(at: TargetPlan, rows: int) -> float:
        return float(at.chances(*costs(at, rows)))

    return TargetOnVotes(
        plan=plan,
        bound=bound,
        queries=queries,
        pass_probability=1.0 if always <= plan.epsilon else chance(plan, queries),
        smallest_epsilon={
            wanted: _least_target(plan, wanted, lambda at: costs(at, queries), always=always)
            for wanted in CHANCES
        },
        passing_queries=most_rows(
            lambda rows: chance(plan, rows) >= LIKELY, available=looked.queries
        ),
        looked_at=looked.queries,
        orders=tuple(coin_orders(bound, mechanism, plan.orders).tolist()),
    )


def _least_target(
    plan: TargetPlan,
    wanted: float,
    costs: Callable[[TargetPlan], tuple[Floats, Floats]],
    *,
    always: float,
) -> float:
    """The least target that passes with a probability, or the one that all votes meet, nats.

    Args:
        plan: where to begin.
        wanted: the probability.
        costs: of the labels, at the orders of a target.
        always: ε of the labels whatever the votes.

    Raises:
        UnreachableError: a target so far off that no other within reason would do.
    """
    found = min(plan.epsilon, always)
    # The orders follow from the target: bisect with those of the last guess until it stays.
    for _ in range(_ROUNDS):
        near = costs(plan.at(found))
        found = least(
            lambda epsilon: bool(plan.at(epsilon).chances(*near) >= wanted),  # noqa: B023
            start=found,
            low=found / _WIDEST,
            high=_WIDEST * found,
            precision=_PRECISION,
        )
        found = min(found, always)
    found = round_up(found)
    while found < always and plan.at(found).chances(*costs(plan.at(found))) < wanted:
        found = min(round_up(found * _STEP), always)
    return found
