"""How a target fares on given votes: pass probability, the least target, the most rows. SECRET.

The votes are there, so nothing is forecast: the probability is the one with which the release test
of a run over these rows draws.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from pate_cli.accounting.conversion import round_up
from pate_cli.core.arrays import Floats
from pate_cli.core.words import Bound
from pate_cli.disclosure.profile import VoteProfile, settled_bound, states_for
from pate_cli.disclosure.target import LIKELY, TargetPlan, most_rows
from pate_cli.mechanisms.base import ScoredMechanism
from pate_cli.planning.bisection import least
from pate_cli.planning.forecast import worst_case_epsilon
from pate_cli.run.fold import AskedRows, OnCounts

CHANCES: Final = (0.9, LIKELY, 0.999)
"""Probabilities of passing for which the least target is told."""

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
        """All fields, JSON-ready."""
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


@dataclass(frozen=True)
class PassProbability:
    """Pass probabilities of one mechanism on a profile of votes; costs are kept by order. SECRET.

    Attributes:
        mechanism: the aggregator.
        profile: of the votes.
        queries, max_answers: k1 and k2 of the run.
    """

    mechanism: ScoredMechanism
    profile: VoteProfile
    queries: int
    max_answers: int
    _costs: dict[tuple[float, int], Floats] = field(default_factory=dict, repr=False)

    def of(
        self, plan: TargetPlan, *, orders_of: TargetPlan | None = None, rows: int | None = None
    ) -> float:
        """The pass probability of a run.

        Args:
            plan: the target.
            orders_of: a target near it, at whose Rényi orders it is about the same.
            rows: of the first so many rows only, with a cap on answers if the run has one.
        """
        rows = self.queries if rows is None else rows
        answers = min(rows, self.max_answers) if self.max_answers < self.queries else rows
        orders = self.profile.states.worth((orders_of or plan).orders)
        ceiling = self.mechanism.worst_rdp(queries=rows, answers=answers, orders=orders)

        def at(order: float) -> Floats:
            if (order, rows) not in self._costs:
                self._costs[order, rows] = self.profile.at(order, first=rows)
            return self._costs[order, rows]

        return plan.coin(at, ceiling, orders=orders).chance

    def least_target(self, plan: TargetPlan, wanted: float, *, always: float) -> float:
        """The least target that passes with a probability, or the one that all votes meet, nats.

        Args:
            plan: where to begin.
            wanted: the probability.
            always: ε of the rows whatever the votes.

        Raises:
            UnreachableError: a target so far off that no other within reason would do.
        """
        found = min(plan.epsilon, always)
        # The orders follow from the target: bisect with those of the last guess until it stays.
        for _ in range(_ROUNDS):
            fixed = plan.at(found)
            found = least(
                lambda epsilon: self.of(plan.at(epsilon), orders_of=fixed) >= wanted,  # noqa: B023
                start=found,
                low=found / _WIDEST,
                high=_WIDEST * found,
                precision=_PRECISION,
            )
            found = min(found, always)
        found = round_up(found)
        while found < always and self.of(plan.at(found)) < wanted:
            found = min(round_up(found * _STEP), always)
        return found


def measure_target(
    votes: AskedRows,
    mechanism: ScoredMechanism,
    plan: TargetPlan,
    *,
    bound: Bound,
    queries: int,
    max_answers: int,
) -> TargetOnVotes:
    """How a target fares on votes of which the first so many are asked. SECRET.

    Args:
        votes: over at least the queries that are asked.
        mechanism: the aggregator.
        plan: the target.
        bound: how the cost of the votes is bounded.
        queries, max_answers: k1 and k2 of the run.

    Raises:
        UnreachableError: a target so far off that no other within reason would do.
    """
    bound = settled_bound(bound, mechanism, rows=queries, orders=plan.orders)
    # Higher orders go with smaller targets.
    highest = float(plan.at(plan.epsilon / 8.0).orders[-1])
    profile = VoteProfile(states_for(bound, mechanism, highest_order=highest), in_order=True)
    for states in votes.over(mechanism, OnCounts(profile.states.of)):
        profile.add_rows(states)
    chances = PassProbability(mechanism, profile, queries, max_answers)
    always = worst_case_epsilon(mechanism, rows=queries, max_answers=max_answers, delta=plan.delta)
    return TargetOnVotes(
        plan=plan,
        bound=bound,
        queries=queries,
        pass_probability=1.0 if always <= plan.epsilon else chances.of(plan),
        smallest_epsilon={
            chance: chances.least_target(plan, chance, always=always) for chance in CHANCES
        },
        passing_queries=most_rows(
            lambda rows: chances.of(plan, rows=rows) >= LIKELY, available=profile.queries
        ),
        looked_at=profile.queries,
        orders=tuple(profile.states.worth(plan.orders).tolist()),
    )
