"""The ε that holds for all votes: publishable as it is, without noise.

k1 queries with at most k2 answers cost k1·w12(λ) or k1·w1(λ) + k2·w2(λ) at every order λ, whichever
is less: the charges along any path of answers and refusals stay below either constant, so
composition may be adaptive and the run may stop at its cap. Another route treats all noisy values
as seen: μ-GDP with μ² = Σ k1/σ1² + 2 k2/σ2², again along every path. A sanitized release adds
ε_κ(λ), which is data-independent as well; it has no Gaussian-DP counterpart, so with it only the
first route counts. Answers that are all ε0-DP have a third route without a release, their exact
composition.

What other mechanisms cost adds up in the first route, order by order, as far as their curves go; to
the others it adds an ε that holds at all orders, where there is one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pate_cli.accounting.composition import optimal_composition
from pate_cli.accounting.conversion import best_order, conversion_cost, gaussian_epsilon
from pate_cli.accounting.gnss import largest_order
from pate_cli.accounting.together import Curves
from pate_cli.core.arrays import Floats
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import LedgerError
from pate_cli.core.noise import LARGEST_EPSILON
from pate_cli.disclosure.external import External
from pate_cli.disclosure.ledger import Draw
from pate_cli.disclosure.plan import ReleasePlan
from pate_cli.disclosure.settings import RowsAsked
from pate_cli.mechanisms import scored_from_parameters
from pate_cli.mechanisms.base import ScoredMechanism

_NONE = External()
# Orders 1.02 … 1025, 10% apart in λ − 1: finer steps change ε in the fourth
# decimal. To three decimals, as a report should show them.
_ORDERS = np.round(1.0 + np.geomspace(0.02, 1024.0, 115), 3)
# Beside the best one: what is stated beside a curve asks for larger and smaller δ of it.
_AROUND = (-6, -3, 0, 3, 6)


@dataclass(frozen=True)
class Spending:
    """k1 queries of a mechanism, of which at most k2 are answered."""

    mechanism: ScoredMechanism
    queries: int
    max_answers: int


def spendings(rounds: Sequence[RowsAsked]) -> list[Spending]:
    """Return the rows that rounds asked, by their public facts; LedgerError without a round."""
    if not rounds:
        raise LedgerError("there is no round whose cost could be told; give a ledger of a run")
    return [
        Spending(scored_from_parameters(done.mechanism), done.queries, done.max_answers)
        for done in rounds
    ]


@dataclass(frozen=True)
class DataIndependentCost:
    """An ε for all votes.

    Attributes:
        epsilon: nats.
        order: the Rényi order it was found at; None for the other routes.
        method: `renyi`, `gaussian-dp` or `pure-dp`.
    """

    epsilon: float
    order: float | None
    method: str

    def least(self, given: float) -> float:
        """Return the smaller of this ε and one for given votes, nats: both hold for them.

        Use it wherever the cost of given votes stands beside a worst case: few orders, or none that
        is large enough, can make the former the larger.
        """
        return min(given, self.epsilon)


def estimated_epsilon(
    spent: Sequence[Spending], *, delta: float, external: External = _NONE
) -> float:
    """About what all that may be released costs for all votes: the labels, and 1 for a draw."""
    return 1.0 + data_independent_cost(spent, delta=delta, plan=None, external=external).epsilon


def least_delta(spent: Sequence[Spending], *, delta: float, external: External = _NONE) -> float:
    """The least δ at which these rounds may be charged, for what floating-point noise adds.

    Their ε is asked for only where `delta` is below what would do for any. `external` parts of one
    total make that larger, and may ask for some themselves.
    """

    def at(epsilon: float) -> float:
        mine = sum(each.mechanism.smallest_delta(each.queries, epsilon=epsilon) for each in spent)
        return mine + external.least_delta

    least = at(LARGEST_EPSILON)
    if not 0.0 < delta < least:
        return least
    return at(estimated_epsilon(spent, delta=delta, external=external))


class WorstCurve:
    """RDP curve of labels, draws and external parts, whatever the votes.

    Costs of labels are wanted at few orders only: they grow about linearly, so each one found says
    where the best order lies. Any order is valid, so a poor guess loses sharpness and nothing else.
    """

    def __init__(
        self, spent: Sequence[Spending], draws: Sequence[Draw], external: External = _NONE
    ) -> None:
        """Nothing is computed of the labels."""
        self._spent, self._draws, self._external = spent, draws, external
        highest = min([external.highest, *(largest_order(draw.beta) for draw in draws)])
        orders = _ORDERS[highest * (1.0 - 1e-9) > _ORDERS]
        if orders.size == 0:  # a very large β leaves no more than a little above 1
            orders = np.array([(1.0 + highest) / 2.0])
        drawn = np.array([sum(draw.rdp(order) for draw in draws) for order in orders.tolist()])
        self._orders, self._beside = orders, drawn + external.rdp(orders)
        self._charged: dict[int, float] = {}

    @property
    def mu_squared(self) -> float:
        """μ² of the labels."""
        return sum(
            each.mechanism.gaussian_mu(queries=each.queries, answers=each.max_answers) ** 2
            for each in self._spent
        )

    @property
    def gaussian(self) -> bool:
        """Whether all of it is the labels, which have a μ."""
        return not self._draws and not self._external.parts

    def best(self, *, delta: float, order: float | None = None) -> DataIndependentCost:
        """The least ε that it gives; that at `order`, if it is one that might be the best."""
        if order is not None and order in self._orders:
            centre = int(np.searchsorted(self._orders, order))
            self._charge(centre)
        else:
            centre = self._centre(delta)
        found = best_order(
            np.array([self._charged[centre] + self._beside[centre]]),
            orders=self._orders[centre : centre + 1],
            delta=delta,
        )
        return DataIndependentCost(epsilon=found.epsilon, order=found.order, method="renyi")

    def around(self, *, delta: float) -> Curves:
        """The orders that are best for δ, and for others about as large."""
        centre = self._centre(delta)
        self._charge(*(centre + step for step in _AROUND))
        at = np.array(sorted(self._charged))
        rdp = np.array([self._charged[index] for index in at.tolist()]) + self._beside[at]
        return Curves(self._orders[at], rdp, mu=self._mu if self.gaussian else None)

    @property
    def _mu(self) -> float | None:
        squared = self.mu_squared
        return float(np.sqrt(squared)) if squared > 0.0 else None

    def _charge(self, *places: int) -> None:
        """Find what the labels cost at the orders with these indices, those on the grid."""
        orders, charged = self._orders, self._charged
        new = [at for at in places if 0 <= at < orders.size and at not in charged]
        if not new:
            return
        rdp = sum(
            each.mechanism.worst_rdp(
                queries=each.queries, answers=each.max_answers, orders=orders[new]
            )
            for each in self._spent
        )
        charged.update(zip(new, np.broadcast_to(rdp, len(new)).tolist(), strict=True))

    def likely(self, *, delta: float) -> Floats:
        """The orders around the guess that it begins with."""
        centre = self._centre_if(self._usual_slope, conversion_cost(self._orders, delta=delta))
        return self._orders[max(centre - 2, 0) : centre + 3]

    def _centre_if(self, slope: float, conversion: Floats) -> int:
        return int(np.argmin(self._orders * slope + self._beside + conversion))

    @property
    def _usual_slope(self) -> float:
        return sum(
            each.mechanism.usual_slope(queries=each.queries, answers=each.max_answers)
            for each in self._spent
        )

    def _centre(self, delta: float) -> int:
        """Return the place of the best order; its cost and its neighbours' are known then."""
        orders, beside, charged = self._orders, self._beside, self._charged
        conversion = conversion_cost(orders, delta=delta)

        def epsilon(at: int) -> float:
            return charged[at] + float(beside[at] + conversion[at])

        def best_if(slope: float) -> int:
            centre = self._centre_if(slope, conversion)
            self._charge(centre - 1, centre, centre + 1)  # at once, which is quicker
            return centre

        centre = best_if(self._usual_slope)
        beyond = [at for at in (centre - 1, centre + 1) if at in charged]
        if any(epsilon(at) < epsilon(centre) for at in beyond):
            centre = best_if(charged[centre] / float(orders[centre]))
        for step in (1, -1):
            while 0 <= centre + step < orders.size:
                if centre + step not in charged:
                    self._charge(centre + step, centre + 2 * step)
                if epsilon(centre + step) >= epsilon(centre):
                    break
                centre += step
        return centre


def prepare(
    spent: Sequence[Spending],
    *,
    plan: ReleasePlan,
    prior: Sequence[Draw] = (),
    external: External = _NONE,
    stated: Sequence[float | None] = (None,),
) -> None:
    """Find at once what labels, labels with all else, and the charge of a plan will ask for.

    Where all are `stated` that will be asked for, those alone.
    """
    if all(order in _ORDERS for order in stated):
        likely = charged = np.array(stated, dtype=np.float64)
    else:
        alone, together = WorstCurve(spent, ()), WorstCurve(spent, [*prior, plan.draw], external)
        likely = np.concatenate([curve.likely(delta=plan.delta) for curve in (alone, together)])
        charged = np.append(likely, plan.order)
    for each in spent:
        each.mechanism.prepare(charged)
        each.mechanism.worst_rdp(queries=each.queries, answers=each.max_answers, orders=likely)


def data_independent_cost(
    spent: Sequence[Spending],
    *,
    delta: float,
    plan: ReleasePlan | None,
    prior: Sequence[Draw] = (),
    external: External = _NONE,
    order: float | None = None,
) -> DataIndependentCost:
    """The smallest data-independent ε for labels and, if a plan is given, its release.

    Args:
        spent: what was asked, one entry a round.
        delta: δ in (0, 1).
        plan: the sanitized release that is published with the labels, or None.
        prior: draws that were made from these votes before.
        external: other mechanisms on the same records; what they add to δ is not in `delta`.
        order: where Rényi costs are said to be smallest: no other is looked at, and the ε holds
            whether they are or not.
    """
    draws = [*prior, *([plan.draw] if plan is not None and plan.publishes_draw else [])]
    curve = WorstCurve(spent, draws, external)
    renyi, mu_squared = curve.best(delta=delta, order=order), curve.mu_squared
    flat = external.epsilon
    if draws or np.isinf(flat):
        return renyi
    if mu_squared == 0.0:  # nothing was asked, or nothing may be answered
        free = DataIndependentCost(epsilon=flat, order=None, method="gaussian-dp")
        return min(free, renyi, key=lambda route: route.epsilon)
    gaussian = flat + gaussian_epsilon(mu=float(np.sqrt(mu_squared)), delta=delta)
    routes = [renyi, DataIndependentCost(epsilon=gaussian, order=None, method="gaussian-dp")]
    pure = _pure_epsilon(spent, delta=delta)
    if pure is not None:
        routes.append(DataIndependentCost(epsilon=flat + pure, order=None, method="pure-dp"))
    return min(routes, key=lambda route: route.epsilon)


def _pure_epsilon(spent: Sequence[Spending], *, delta: float) -> float | None:
    """ε of answers that are all pure-DP, None when some are not.

    Where rounds differ in ε0, the smaller of their sum and the curve of the largest ε0 for all.
    """
    each: list[tuple[int, float]] = []
    for spending in spent:
        epsilon = spending.mechanism.pure_epsilon
        if epsilon is None:
            return None
        each.append((spending.max_answers, epsilon))
    answers = sum(number for number, _ in each)
    largest = max(loss for _, loss in each)
    together = optimal_composition(answers, epsilon=largest, delta=0.0, total_delta=delta)
    return min(together.epsilon, sum(number * loss for number, loss in each))
