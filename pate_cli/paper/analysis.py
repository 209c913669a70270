"""The analysis of the papers, which a caller may choose for comparison. Its ε is never a bound.

Costs are expectations over the random draws of the aggregator, as in Table 2. By Jensen's
inequality the expected cost of a query is smaller than its Rényi divergence, so the expected cost
is no upper bound on the RDP cost. All costs are sums over queries, so the costs of batches can be
added. Code that computes true bounds does not import this package. The functions of pate import
this module only if the caller asks for `analysis` paper.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, ClassVar, Final, TypeAlias

import numpy as np

from pate_cli.accounting.cost_table import Price
from pate_cli.core.arrays import DENSE_CLASSES, Counts, Floats, Histograms, dense
from pate_cli.core.errors import UsageError, ValidityError
from pate_cli.core.words import Analysis, MechanismName
from pate_cli.disclosure.settings import ReleasePlan
from pate_cli.mechanisms.base import Mechanism, ScoredMechanism
from pate_cli.paper.costs import (
    TABLE_ORDERS,
    confident_steps,
    gnmax_rdp,
    laplace_rdp,
    published_gnss_rdp,
    to_epsilon,
)
from pate_cli.paper.sensitivity import (
    check_conditions,
    expected_local_sensitivity,
    gnmax_local_sensitivity,
)
from pate_cli.planning.cost import CostAnalysis
from pate_cli.planning.sensitivity import Sensitivity
from pate_cli.run.fold import AskedRows, OnCounts
from pate_cli.run.labelling import LedgerAccount

Kept: TypeAlias = tuple[float, Floats]
"""The expected RDP cost of some queries, and their local sensitivity by distance. SECRET."""


@dataclass(frozen=True)
class PublishedPlan(ReleasePlan):
    """The public parameters of a sanitized ε, for which RDP costs are converted as in the paper.

    The paper claims that its smooth sensitivity changes by a factor of at most e^β between
    neighbouring vote files, but pate has no proof of this claim. So a sanitized ε with this plan is
    not a bound on the privacy loss. The RDP cost of drawing the sanitized ε is the true one, as in
    `ReleasePlan`. The RDP cost of drawing that Theorem 23 claims, `claimed_rdp`, is not part of ε,
    because Theorem 23 is false for many λ, β and σ.
    """

    analysis: ClassVar[Analysis] = Analysis.PAPER

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.publishes_draw:
            _ = self.claimed_rdp  # ParameterError if Theorem 23 does not apply to β

    @property
    def claimed_rdp(self) -> float:
        """The RDP cost of drawing the sanitized ε as Theorem 23 claims it, nats; no upper bound."""
        return published_gnss_rdp(beta=self.beta, sigma=self.sigma, order=self.order)

    def conversion(self, delta: float) -> float:
        """Return what the conversion to ε adds by Theorem 5, log(1/δ)/(λ − 1), nats."""
        return float(to_epsilon([0.0], orders=[self.order], delta=delta)[0])


def _noise(mechanism: Any) -> dict[str, float]:
    return {name: getattr(mechanism, name) for name in ("threshold", "sigma1", "sigma2")}


def _sensitivity(mechanism: Any, counts: Counts, order: float) -> Floats:
    """Return the expected local sensitivity at each distance from the votes, in nats.

    The distances are 0, 1, 2, … τ − 1, where τ is the largest number of votes on a query.
    """
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
"""The mechanisms for which the paper computes a smooth sensitivity."""


def _require_covered(mechanism: Mechanism) -> None:
    """Check that the papers cover the run of the mechanism.

    Raises:
        UsageError: a record trained several teachers, the run has a prior, or there are more than
            DENSE_CLASSES classes.
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


def _kept(order: float, mechanism: ScoredMechanism, counts: Histograms) -> Kept:
    """Return the expected cost of histograms at one order, and their local sensitivity."""
    steps = PublishedAnalysis().steps(mechanism, counts, np.array([order]))
    rdp = sum(float(cost.sum()) for cost in steps.values())
    return rdp, _sensitivity(mechanism, dense(counts), order)


class PublishedAccount(LedgerAccount):
    """Sums the expected cost and the expected local sensitivity of a run, at one order. SECRET."""

    def __init__(self, mechanism: ScoredMechanism, plan: PublishedPlan) -> None:
        """Start an account without queries.

        Raises:
            UsageError: the paper has no smooth sensitivity for this run.
            ValidityError: condition C5 or C6 of the 2018 paper, Appendix B.2, is not met at the
                order of the plan.
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
        # The paper has as many distances as there are teachers.
        self._rdp, self._curve = 0.0, np.zeros(mechanism.most_votes)

    @property
    def keep(self) -> Callable[[ScoredMechanism, Histograms], Kept]:
        """Return the function whose result for a batch is passed to `add`.

        For a batch, the function returns the expected RDP cost of the batch, and the local
        sensitivity of this cost at each distance from the votes.
        """
        return partial(_kept, self._plan.order)

    def add(self, kept: Kept) -> None:
        """Add the expected cost and the local sensitivity of a batch."""
        self._rdp += kept[0]
        self._curve = self._curve + kept[1]

    @property
    def price(self) -> Price:
        """Return the expected cost and the local sensitivity of all batches so far.

        The local sensitivity does not fall with the distance d from the votes. So the attribute
        `ceiling` of the result is the local sensitivity at the largest distance d.
        """
        distances = np.arange(self._curve.size)
        return Price(self._rdp, distances, self._curve, float(self._curve[-1]))


class PublishedAnalysis(CostAnalysis):
    """The analysis of the papers: expected costs of queries, and the conversion of Theorem 5.

    The usual orders are those of Tables 1 and 2. A caller chooses it with `analysis` paper.
    """

    name = Analysis.PAPER
    usual_orders = TABLE_ORDERS

    def steps(self, mechanism: Any, counts: Histograms, orders: Floats) -> dict[str, Floats]:
        """Return the expected RDP cost of each query, by step: "threshold" and "argmax", in nats.

        The step "threshold" is the threshold check. A mechanism without the check has only the step
        "argmax". The costs of a step have the shape [orders, queries].

        Raises:
            UsageError: the papers do not cover the run or the mechanism.
        """
        _require_covered(mechanism)
        counts = dense(counts)
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

    def epsilon(self, rdp: Floats, orders: Floats, delta: float) -> Floats:
        """Return ε at each order by Theorem 5, [orders], nats."""
        return to_epsilon(rdp, orders=orders, delta=delta)

    def plan(self, plan: ReleasePlan) -> PublishedPlan:
        """Return a plan with the parameters of `plan` that converts RDP costs as in the paper."""
        return PublishedPlan(plan.kind, plan.delta, plan.order, plan.beta, plan.sigma)

    def account(self, mechanism: ScoredMechanism, plan: ReleasePlan) -> PublishedAccount:
        """Return an account for a run; it raises the same exceptions as `PublishedAccount`."""
        return PublishedAccount(mechanism, self.plan(plan))

    def sensitivity(
        self, votes: AskedRows, mechanism: ScoredMechanism, plan: ReleasePlan, *, queries: int
    ) -> Sensitivity:
        """Return how far one record can change the cost of the votes, by Algorithms 3 to 5. SECRET.

        Args:
            votes: the rows that are asked.
            mechanism: the aggregator.
            plan: the order and β of the smooth sensitivity are those of this plan. RDP costs are
                converted to ε as in the paper, not as in this plan.
            queries: the number of queries.

        Raises:
            UsageError: the paper has no smooth sensitivity for this run.
            ValidityError: condition C5 or C6 of the 2018 paper, Appendix B.2, is not met.
        """
        own = self.plan(plan)
        account = PublishedAccount(mechanism, own)
        for kept in votes.over(mechanism, OnCounts(account.keep)):
            account.add(kept)
        parameters, verdicts = mechanism.parameters(), (asdict(account.verdict),)
        return Sensitivity(account.price, own, parameters, queries, np.zeros(0), verdicts)
