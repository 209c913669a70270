"""A target stated in advance: (ε, δ) for every vote file, by a coin (accounting.tested_budget).

The number of rows must be public, too. Where it is not given it follows from ε by a rule: a share
of the rows at which the reference ensemble of `rule` would pass nearly always, or as many as cost ε
at worst, whatever the votes.

The share, 0.7, was picked on 40 synthetic ensembles (50 to 3,000 teachers, 2 to 50 classes, mean
agreement 0.6 to 0.97, confident and gnmax) at ε = 0.8, 1.5, 2 and 3. With it 5% of the runs would
be refused, and the expected answers are 58% of those at the number of rows that is best in
hindsight. Reference ensembles of another agreement (0.65 to 0.85) or spread, each with its best
share, come to 59% at twice as many refusals: what is missing is how well the teachers at hand
agree, which no public rule may know.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from pate_cli.accounting.conversion import conversion_cost
from pate_cli.accounting.score_grid import COARSE
from pate_cli.accounting.tested_budget import DISTANCES, Coin, passing_coin, public_orders
from pate_cli.core.arrays import Floats
from pate_cli.core.checks import check_delta, check_scale
from pate_cli.core.errors import ParameterError, UnreachableError
from pate_cli.disclosure.profile import VoteProfile, lattice_states
from pate_cli.disclosure.rule import reference_histograms
from pate_cli.mechanisms.base import ScoredMechanism

LIKELY: Final = 0.977
"""A chance of passing that counts as likely: two standard deviations, one-sided."""

_REFUSAL_SHARE = 0.5
# Round-off in the recursion and in sums over queries is a hundredth of these, or less.
_EPSILON_GUARD, _DELTA_GUARD = 1e-9, 1e-6
_ROWS_SHARE = 0.7
_LEAST_CHANCE = 0.5


@dataclass(frozen=True)
class TargetPlan:
    """Everything about a tested budget that is fixed before any vote is seen.

    Attributes:
        epsilon: the target, > 0, nats: what passing costs.
        delta: δ of the attempt, in (0, 1); it is spent whatever comes out.
        refusal_epsilon: η in (0, ε], nats: what a refusal costs.
    """

    epsilon: float
    delta: float
    refusal_epsilon: float

    def __post_init__(self) -> None:
        check_scale("`target_epsilon`", self.epsilon)
        check_delta(self.delta)
        if not 0.0 < self.refusal_epsilon <= self.epsilon:
            raise ParameterError(
                f"`refusal_epsilon` must be above 0 and at most the target {self.epsilon:g}, got "
                f"{self.refusal_epsilon:g}"
            )

    @classmethod
    def of(
        cls, epsilon: float, *, delta: float, refusal_epsilon: float | None = None
    ) -> TargetPlan:
        """With η = ε/2 unless it is given: a refusal leaves room for another attempt."""
        check_scale("`target_epsilon`", epsilon)
        eta = _REFUSAL_SHARE * epsilon if refusal_epsilon is None else refusal_epsilon
        return cls(epsilon, delta, eta)

    def at(self, epsilon: float) -> TargetPlan:
        """The same for another target, η in proportion."""
        return TargetPlan(epsilon, self.delta, self.refusal_epsilon / self.epsilon * epsilon)

    @cached_property
    def orders(self) -> Floats:
        """Λ, ascending."""
        return public_orders(epsilon=self.epsilon, delta=self.delta)

    @property
    def distances(self) -> int:
        """m."""
        return DISTANCES

    def coin(
        self,
        at: Callable[[float], Floats],
        ceiling: Floats | None = None,
        *,
        orders: Floats | None = None,
    ) -> Coin:
        """The coin that keeps the promise, a little of ε, δ and η kept back for round-off. SECRET.

        Args:
            at: the profile at an order, [distances], nats.
            ceiling: cost of the labels for all votes at each of the orders, [orders], nats.
            orders: some of Λ, or others for a quick look.
        """
        orders = self.orders if orders is None else orders
        profile = np.stack([at(order) for order in orders.tolist()])
        if ceiling is not None:
            profile = np.minimum(profile, ceiling[:, None])
        return passing_coin(
            profile,
            orders=orders,
            epsilon=self.epsilon - _EPSILON_GUARD,
            delta=self.delta * (1.0 - _DELTA_GUARD),
            refusal_epsilon=self.refusal_epsilon - _EPSILON_GUARD,
        )

    @property
    def best_chance(self) -> float:
        """The chance that labels pass which cost nothing; public."""
        return self.coin(lambda _order: np.zeros(DISTANCES)).chance

    @property
    def reachable(self) -> bool:
        """Whether labels that cost nothing would pass at least as soon as not; public."""
        return self.best_chance >= _LEAST_CHANCE

    def check_reachable(self) -> None:
        """UnreachableError where even labels that cost nothing would as soon be refused."""
        if self.reachable:
            return
        least = self.epsilon
        while not self.at(least).reachable:
            least *= 1.05
        raise UnreachableError(
            f"a target of {self.epsilon:g} is out of reach at delta {self.delta:g}: even labels "
            f"that cost nothing would be refused more often than not; the least is about "
            f"{least:.2g}"
        )


class Reference:
    """The reference ensemble under a mechanism: what a target is likely to allow. Public."""

    def __init__(self, mechanism: ScoredMechanism) -> None:
        """Draw it."""
        self._mechanism = mechanism
        counts, bound = reference_histograms(mechanism)
        self._counts, self._bound = counts, bound

    def chance(self, plan: TargetPlan, queries: int) -> float:
        """The chance of passing with so many rows like the reference's."""
        return self._chances(plan)(queries)

    def rows(self, plan: TargetPlan, available: int) -> int:
        """How many rows to ask, by the public rule: at least one, at most those available."""
        chances = self._chances(plan)
        likely = most_rows(lambda rows: chances(rows) >= LIKELY, available=10**9)
        # Within the target whatever the votes.
        worst = self._mechanism.worst_rdp(queries=1, answers=1, orders=plan.orders)
        room = plan.epsilon - conversion_cost(plan.orders, delta=plan.delta)
        always = int(np.max(np.maximum(room, 0.0) / worst))
        return max(1, min(max(int(_ROWS_SHARE * likely), always), available))

    def _chances(self, plan: TargetPlan) -> Callable[[int], float]:
        profile = VoteProfile(
            lattice_states(self._mechanism, highest_order=float(plan.orders[-1]), resolution=COARSE)
        )
        profile.add(self._bound, self._counts)
        unit = {order: profile.at(order) / profile.queries for order in plan.orders.tolist()}
        worst = self._mechanism.worst_rdp(queries=1, answers=1, orders=plan.orders)

        def chance(queries: int) -> float:
            return plan.coin(lambda order: queries * unit[order], queries * worst).chance

        return chance


def most_rows(passes: Callable[[int], bool], *, available: int) -> int:
    """The most rows that pass, at most those available, if passing never comes back; 0 if none."""
    if not passes(1):
        return 0
    low, high = 1, 2
    while high <= available and passes(high):
        low, high = high, 2 * high
    high = min(high, available + 1)
    while high - low > max(1, low // 500):
        middle = (low + high) // 2
        low, high = (middle, high) if passes(middle) else (low, middle)
    return low
