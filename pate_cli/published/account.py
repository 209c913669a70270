"""Charging a run by the published analysis, for comparison with the paper and never as a bound.

Costs are expectations over the aggregator's own coins, as in Table 2: a Jensen gap below a Rényi
divergence. Everything is a sum over queries, so batches add up. Nothing sound imports this package;
whoever wants it hands its account, plan and cost to the runs and prices that take any.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np

from pate_cli import published
from pate_cli.accounting.cost_table import Price
from pate_cli.core.arrays import DENSE_CLASSES, Counts, Floats, Histograms, dense
from pate_cli.core.checks import check_orders
from pate_cli.core.errors import UsageError
from pate_cli.core.words import Analysis, MechanismName
from pate_cli.disclosure.ledger import Ledger, Round
from pate_cli.disclosure.plan import ReleasePlan
from pate_cli.mechanisms.base import Mechanism, ScoredMechanism
from pate_cli.run.accounts import LedgerAccount
from pate_cli.run.fold import AskedRows, OnCounts


@dataclass(frozen=True)
class PublishedPlan(ReleasePlan):
    """A release that is converted to ε as the paper does.

    A draw scaled by the published sensitivity is not known to be as smooth as claimed, so nothing
    drawn by this plan is sound. The draw is charged what it costs, not by the published theorem,
    which is false for most β.
    """

    analysis: ClassVar[Analysis] = Analysis.PAPER

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.publishes_draw:
            _ = self.claimed_rdp  # whose range of β is narrower

    @classmethod
    def of(cls, plan: ReleasePlan) -> PublishedPlan:
        """A sound plan with its parameters taken over."""
        return cls(plan.kind, plan.delta, plan.order, plan.beta, plan.sigma)

    @property
    def sound(self) -> bool:
        """Only where nothing is drawn."""
        return not self.publishes_draw

    @property
    def claimed_rdp(self) -> float:
        """What the paper's theorem claims the draw costs, nats."""
        return published.gnss_rdp(beta=self.beta, sigma=self.sigma, order=self.order)

    @property
    def caveats(self) -> tuple[str, ...]:
        """What is wrong with a data-dependent ε of the published analysis."""
        if self.sound:
            return ()
        exact, claimed = self.release_rdp, self.claimed_rdp
        caveats = [
            "The published analysis charges the expected cost over the aggregator's coins, which "
            "is below a Renyi divergence; sanitized.epsilon is for comparison with the paper, not "
            "a bound."
        ]
        if claimed < exact:
            caveats.append(
                "The published theorem on the sanitized release fails for order x beta = "
                f"{self.order * self.beta:.3g}: it claims {claimed:.6g}, the draw costs "
                f"{exact:.6g}."
            )
        return tuple(caveats)

    def conversion(self, delta: float) -> float:
        """log(1/δ)/(λ − 1), nats."""
        return float(published.to_epsilon(np.zeros(1), orders=[self.order], delta=delta)[0])


@dataclass(frozen=True)
class _PublishedFormulas:
    """What the papers say of a mechanism: costs by step, and local sensitivity by distance."""

    steps: Callable[[Any, Counts, Floats], dict[str, Floats]]
    sensitivity: Callable[[Any, Counts, float], Floats] | None


def _gnmax_steps(mechanism: Any, counts: Counts, orders: Floats) -> dict[str, Floats]:
    return {"argmax": published.gnmax_rdp(counts, mechanism.sigma2, orders)}


def _gnmax_sensitivity(mechanism: Any, counts: Counts, order: float) -> Floats:
    return published.gnmax_local_sensitivity(
        counts, sigma=mechanism.sigma2, order=order, teachers=mechanism.most_votes
    )


def _confident_steps(mechanism: Any, counts: Counts, orders: Floats) -> dict[str, Floats]:
    answering = published.gnmax_rdp(counts, mechanism.sigma2, orders)
    selecting = published.threshold_rdp(
        mechanism.test_score(counts),
        threshold=mechanism.threshold,
        sigma=mechanism.sigma1,
        orders=orders,
    )
    return {"threshold": selecting, "argmax": answering * mechanism.answer_chance(counts)}


def _confident_sensitivity(mechanism: Any, counts: Counts, order: float) -> Floats:
    return published.expected_local_sensitivity(
        counts,
        threshold=mechanism.threshold,
        sigma1=mechanism.sigma1,
        sigma2=mechanism.sigma2,
        order=order,
        teachers=mechanism.most_votes,
        scores=mechanism.test_score(counts),
    )


def _laplace_steps(mechanism: Any, counts: Counts, orders: Floats) -> dict[str, Floats]:
    return {"argmax": published.laplace_rdp(counts, mechanism.laplace_scale, orders)}


_KNOWN: Final = {
    MechanismName.GNMAX: _PublishedFormulas(_gnmax_steps, _gnmax_sensitivity),
    MechanismName.CONFIDENT: _PublishedFormulas(_confident_steps, _confident_sensitivity),
    MechanismName.INTERACTIVE: _PublishedFormulas(_confident_steps, _confident_sensitivity),
    MechanismName.LNMAX: _PublishedFormulas(_laplace_steps, None),
}


def require_disjoint_teachers(mechanism: Mechanism) -> None:
    """Refuse records that trained several teachers, and priors: the paper knows of neither.

    Raises:
        UsageError: more than one teacher per record, a prior, or too many classes to go through.
    """
    if mechanism.teachers_per_record != 1:
        raise UsageError(
            "the published analysis knows disjoint teachers only; `teachers_per_record` goes with "
            "`analysis` tight"
        )
    if mechanism.prior_weight:
        raise UsageError(
            "the published analysis knows no prior; `prior` goes with `analysis` tight"
        )
    if mechanism.classes > DENSE_CLASSES:
        raise UsageError(
            f"the published analysis is for at most {DENSE_CLASSES} classes; use `analysis` tight"
        )


def require_published_sensitivity(mechanism: Mechanism, orders: Floats) -> None:
    """Refuse what the paper gives no smooth sensitivity for.

    Raises:
        UsageError: a mechanism without a published smooth sensitivity, or shared records.
        ValidityError: C5 or C6 fails for this (σ, m, λ).
    """
    known = _KNOWN.get(mechanism.name)
    if known is None or known.sensitivity is None:
        raise UsageError(
            f"the published analysis has no smooth sensitivity for {mechanism.name}; "
            "use `analysis` tight"
        )
    require_disjoint_teachers(mechanism)
    sigma = mechanism.parameters()["sigma2"]
    published.require_conditions(sigma=sigma, classes=mechanism.classes, orders=orders)


class PublishedCost:
    """Expected costs, and the published conversion."""

    name = Analysis.PAPER

    def steps(
        self, mechanism: ScoredMechanism, counts: Histograms, orders: Floats
    ) -> dict[str, Floats]:
        """Expected cost of each query by step, [orders, queries], nats.

        Raises:
            UsageError: a mechanism that the papers do not know, or shared records.
        """
        require_disjoint_teachers(mechanism)
        known = _KNOWN.get(mechanism.name)
        if known is None:
            raise UsageError(
                f"the published analysis does not cover {mechanism.name}; use `analysis` tight"
            )
        return known.steps(mechanism, dense(counts), orders)

    def epsilon(self, rdp: Floats, orders: Floats, delta: float) -> Floats:
        """Theorem 5."""
        return published.to_epsilon(rdp, orders=orders, delta=delta)


@dataclass(frozen=True)
class _Charges:
    """Sums over some queries; see PublishedAccount."""

    queries: int
    rdp: Floats
    sensitivity: Floats


@dataclass(frozen=True)
class _Charge:
    """From histograms to their charges at these orders."""

    orders: Floats

    def __call__(self, mechanism: Mechanism, counts: Histograms) -> _Charges:
        known = _KNOWN[mechanism.name]
        steps = known.steps(mechanism, dense(counts), self.orders)
        sensitivity = np.zeros((self.orders.size, mechanism.most_votes))
        if known.sensitivity is not None:
            for row, order in enumerate(self.orders.tolist()):
                sensitivity[row] = known.sensitivity(mechanism, dense(counts), order)
        return _Charges(len(counts), np.sum(list(steps.values()), axis=0).sum(axis=1), sensitivity)


class PublishedAccount(LedgerAccount):
    """Expected costs and expected local sensitivities at fixed orders, summed over queries. SECRET.

    Attributes:
        orders: Rényi orders, [orders].
        rdp: expected cost so far, [orders], nats.
        sensitivity: Σ of the published local sensitivity at distance d < τ + B, a prior's votes
            being as good as teachers', [orders, τ + B], nats.
        queries: rows seen.
    """

    def __init__(self, mechanism: ScoredMechanism, plan: PublishedPlan) -> None:
        """Start at nothing; ValidityError when C5 or C6 fails for this mechanism and order."""
        super().__init__(mechanism, plan)
        self.orders = check_orders([plan.order])
        require_published_sensitivity(mechanism, self.orders)
        self.rdp = np.zeros(self.orders.size)
        self.sensitivity = np.zeros((self.orders.size, mechanism.most_votes))
        self.queries = 0

    @property
    def keep(self) -> Callable[[Mechanism, Histograms], _Charges]:
        """Expected costs and sensitivities, summed over the queries of a batch."""
        return _Charge(self.orders)

    def add(self, kept: _Charges) -> None:
        """Add those of a batch."""
        self.queries += kept.queries
        self.rdp += kept.rdp
        self.sensitivity += kept.sensitivity

    @property
    def price(self) -> Price:
        """Expected cost and sensitivities at the plan's order; the last distance is the ceiling."""
        curve = self.sensitivity[0]
        return Price(float(self.rdp[0]), np.arange(curve.size), curve, float(curve[-1]))

    def ledger(self, done: Round, *, private: bool) -> Ledger:
        """That of expectations."""
        return Ledger(
            analysis="paper",
            delta=self._plan.delta,
            orders=self.orders,
            rdp=self.rdp,
            sensitivity=self.sensitivity,
            # The paper's maximum over distances ends with the number of teachers.
            ceiling=self.sensitivity[:, -1],
            rounds=(done,),
            private=private,
        )


def published_price(votes: AskedRows, mechanism: ScoredMechanism, plan: PublishedPlan) -> Price:
    """Expected cost and published sensitivity by distance (Algorithms 3–5) over all queries."""
    account = PublishedAccount(mechanism, plan)
    for kept in votes.over(mechanism, OnCounts(account.keep)):
        account.add(kept)
    return account.price
