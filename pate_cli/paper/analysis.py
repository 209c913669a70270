"""The published analysis, used in place of the sound one for `analysis` paper. Never a bound.

Costs are expectations over the random draws of the aggregator, as in Table 2; by Jensen's
inequality they are below a Rényi divergence. All costs are sums over queries, so costs of batches
add up. No sound code imports this room; one verb looks it up by its name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Final, TypeAlias

import numpy as np

from pate_cli.accounting.cost_table import Price
from pate_cli.core.arrays import DENSE_CLASSES, Counts, Floats, Histograms, dense
from pate_cli.core.errors import UsageError, ValidityError
from pate_cli.core.words import Analysis, MechanismName, OrderChoice
from pate_cli.disclosure.settings import ReleasePlan
from pate_cli.mechanisms.base import Mechanism, ScoredMechanism
from pate_cli.paper.costs import (
    TABLE_ORDERS,
    gnmax_rdp,
    laplace_rdp,
    published_gnss_rdp,
    to_epsilon,
)
from pate_cli.paper.release import confident_steps, expected_local_sensitivity
from pate_cli.paper.sensitivity import check_conditions, gnmax_local_sensitivity
from pate_cli.planning.cost import MOMENT_ORDERS, CostAnalysis
from pate_cli.planning.sensitivity import Sensitivity
from pate_cli.run.fold import AskedRows, OnCounts
from pate_cli.run.labelling import LedgerAccount

Kept: TypeAlias = tuple[float, Floats]
"""Expected cost and local sensitivity by distance, summed over some queries. SECRET."""


@dataclass(frozen=True)
class PublishedPlan(ReleasePlan):
    """A release that is converted to ε as in the paper.

    The published sensitivity is not known to be as smooth as claimed, so a draw by this plan is not
    sound. The draw is charged its true cost, and not the cost of the published theorem, which is
    false for most β.
    """

    analysis: ClassVar[Analysis] = Analysis.PAPER

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.publishes_draw:
            _ = self.claimed_rdp  # this has a narrower range of β

    @property
    def claimed_rdp(self) -> float:
        """RDP cost of the draw by the paper's theorem, nats."""
        return published_gnss_rdp(beta=self.beta, sigma=self.sigma, order=self.order)

    def conversion(self, delta: float) -> float:
        """Return log(1/δ)/(λ − 1), nats: Theorem 5."""
        return float(to_epsilon([0.0], orders=[self.order], delta=delta)[0])


def _noise(mechanism: Any) -> dict[str, float]:
    return {name: getattr(mechanism, name) for name in ("threshold", "sigma1", "sigma2")}


def _steps(mechanism: Any, counts: Counts, orders: Floats) -> dict[str, Floats]:
    """Return the expected cost by step, [orders, queries] each; UsageError if papers have none."""
    if mechanism.name == MechanismName.LNMAX:
        return {"argmax": laplace_rdp(counts, mechanism.laplace_scale, orders)}
    if mechanism.name == MechanismName.GNMAX:
        return {"argmax": gnmax_rdp(counts, mechanism.sigma2, orders)}
    if mechanism.name in _SMOOTH:
        scores = mechanism.test_score(counts)
        return confident_steps(counts, scores, _noise(mechanism), orders)
    raise UsageError(
        f"the published analysis does not cover {mechanism.name}; use `analysis` tight"
    )


def _sensitivity(mechanism: Any, counts: Counts, order: float) -> Floats:
    """Return the expected local sensitivity by distance, [most votes], a prior's votes included."""
    teachers = mechanism.most_votes
    if mechanism.name == MechanismName.GNMAX:
        alike = np.ones(len(counts))
        return gnmax_local_sensitivity(
            counts, sigma=mechanism.sigma2, order=order, teachers=teachers, weights=alike
        )
    scores = mechanism.test_score(counts)
    return expected_local_sensitivity(
        counts, scores, _noise(mechanism), order=order, teachers=teachers
    )


_SMOOTH: Final = (MechanismName.GNMAX, MechanismName.CONFIDENT, MechanismName.INTERACTIVE)
"""Mechanisms whose smooth sensitivity the paper derives."""


def _require_covered(mechanism: Mechanism) -> None:
    """Refuse records that reached several teachers, priors and many classes.

    Raises:
        UsageError: the run has one of these, which the paper does not cover.
    """
    unknown = None
    if mechanism.teachers_per_record != 1:
        unknown = "covers disjoint teachers only; use `analysis` tight with `teachers_per_record`"
    elif mechanism.prior_weight:
        unknown = "covers no prior; use `analysis` tight with `prior`"
    elif mechanism.classes > DENSE_CLASSES:
        unknown = f"is for at most {DENSE_CLASSES} classes; use `analysis` tight"
    if unknown:
        raise UsageError(f"the published analysis {unknown}")


def _covered_steps(
    mechanism: ScoredMechanism, counts: Histograms, orders: Floats
) -> dict[str, Floats]:
    _require_covered(mechanism)
    return _steps(mechanism, dense(counts), orders)


def _epsilon(rdp: Floats, orders: Floats, delta: float) -> Floats:
    return to_epsilon(rdp, orders=orders, delta=delta)


PUBLISHED: Final = CostAnalysis(Analysis.PAPER, _covered_steps, _epsilon)
"""Expected costs of queries, and the published conversion, Theorem 5.

Its steps raise UsageError for a mechanism that the papers do not cover, and for shared records.
"""


@dataclass(frozen=True)
class _Charge:
    """Turns histograms into their expected cost and local sensitivity at one order."""

    order: float

    def __call__(self, mechanism: Mechanism, counts: Histograms) -> Kept:
        counts = dense(counts)
        steps = _steps(mechanism, counts, np.array([self.order]))
        rdp = sum(float(cost.sum()) for cost in steps.values())
        return rdp, _sensitivity(mechanism, counts, self.order)


class PublishedAccount(LedgerAccount):
    """Expected cost and expected local sensitivity at the order of a plan. SECRET."""

    def __init__(self, mechanism: ScoredMechanism, plan: PublishedPlan) -> None:
        """Start without queries.

        Raises:
            UsageError: the mechanism has no published smooth sensitivity, or records are shared.
            ValidityError: C5 or C6 fails for this mechanism and order.
        """
        super().__init__(mechanism, plan)
        if mechanism.name not in _SMOOTH:
            raise UsageError(
                f"the published analysis has no smooth sensitivity for {mechanism.name}; "
                "use `analysis` tight"
            )
        _require_covered(mechanism)
        self.verdict = check_conditions(
            sigma=mechanism.parameters()["sigma2"], classes=mechanism.classes, order=plan.order
        )
        if not self.verdict.holds:
            raise ValidityError(
                f"smooth sensitivity is not valid at order {plan.order:g}: {self.verdict.reason}; "
                "try another `order` or `analysis` tight"
            )
        # The paper's distances end with the number of teachers; a prior's votes count like
        # teachers.
        self._rdp, self._curve = 0.0, np.zeros(mechanism.most_votes)

    @property
    def keep(self) -> Callable[[Mechanism, Histograms], Kept]:
        """Return a function from a batch to its expected cost and local sensitivity by distance."""
        return _Charge(self._plan.order)

    def add(self, kept: Kept) -> None:
        """Add the cost and sensitivity of a batch."""
        self._rdp += kept[0]
        self._curve = self._curve + kept[1]

    @property
    def price(self) -> Price:
        """Return the expected cost and sensitivity so far; the last distance is the ceiling."""
        distances = np.arange(self._curve.size)
        return Price(self._rdp, distances, self._curve, float(self._curve[-1]))


class PublishedAnalysis:
    """The analysis of the 2018 paper, for comparison with it."""

    name, cost = Analysis.PAPER, PUBLISHED

    def orders(self, choice: OrderChoice) -> Floats:
        """Return the Rényi orders of Tables 1 and 2, or of the 2017 paper's moments."""
        return np.array(MOMENT_ORDERS if choice is OrderChoice.MOMENTS else TABLE_ORDERS)

    def plan(self, plan: ReleasePlan) -> PublishedPlan:
        """Return a sound plan with its conversion replaced by the published one."""
        return PublishedPlan(plan.kind, plan.delta, plan.order, plan.beta, plan.sigma)

    def account(self, mechanism: ScoredMechanism, plan: ReleasePlan) -> PublishedAccount:
        """Return an account for a run, which raises the errors of `PublishedAccount`."""
        return PublishedAccount(mechanism, self.plan(plan))

    def sensitivity(
        self, votes: AskedRows, mechanism: ScoredMechanism, plan: ReleasePlan, *, queries: int
    ) -> Sensitivity:
        """Return how far one record can move the cost of the votes, by Algorithms 3 to 5. SECRET.

        Args:
            votes: the rows of the queries.
            mechanism: the aggregator.
            plan: a sound plan.
            queries: the number of queries.

        Raises:
            UsageError: the mechanism has no published smooth sensitivity, or records are shared.
            ValidityError: C5 or C6 fails.
        """
        own = self.plan(plan)
        account = PublishedAccount(mechanism, own)
        for kept in votes.over(mechanism, OnCounts(account.keep)):
            account.add(kept)
        parameters, verdicts = mechanism.parameters(), (asdict(account.verdict),)
        return Sensitivity(account.price, own, parameters, queries, np.zeros(0), verdicts)
