"""What the tight analysis publishes about the same run, with release parameters by public rule."""

from __future__ import annotations

from dataclasses import dataclass

from pate_cli.accounting.sensitivity import smooth_sensitivity
from pate_cli.choices import ReleaseKind
from pate_cli.data_independent import DataIndependentCost, Spending, data_independent_cost
from pate_cli.ledger import charge
from pate_cli.mechanisms import ConfidentGNMax, Tally
from pate_cli.plan import ReleasePlan
from pate_cli.release_rule import choose_plan, distances_for
from pate_cli.reproduction.vote_folder import Asked

__all__ = ["TightFigures", "TightRelease", "tight_figures"]


@dataclass(frozen=True)
class TightRelease:
    """One release.

    Attributes:
        plan: λ, β, σ_SS, chosen without looking at the votes.
        before: ε of the labels at λ, without the draw.
        smooth: SS_β, nats.
        mean, sd: of the ε that is released, over the draw.
    """

    plan: ReleasePlan
    before: float
    smooth: float
    mean: float
    sd: float


@dataclass(frozen=True)
class TightFigures:
    """The releases that `pate` offers, and the ε of the labels that holds for all votes."""

    upper: TightRelease
    unbiased: TightRelease
    data_independent: DataIndependentCost


def tight_figures(asked: Asked, *, delta: float) -> TightFigures:
    """Price one round of Confident-GNMax, every row asked and no cap on answers."""
    counts = asked.votes.counts
    mechanism = ConfidentGNMax(
        teachers=asked.votes.teachers,
        classes=counts.shape[1],
        threshold=asked.threshold,
        sigma1=asked.sigma1,
        sigma2=asked.sigma2,
    )
    queries = len(counts)
    score = mechanism.score(counts)

    def release(kind: ReleaseKind) -> TightRelease:
        plan = choose_plan(kind, mechanism=mechanism, queries=queries, delta=delta)
        tally = Tally.of(mechanism.cells(score, mechanism.surface(plan.order)))
        ledger = charge(
            mechanism,
            {plan.order: tally},
            delta=delta,
            distances=distances_for(plan.beta, teachers=mechanism.teachers),
            max_answers=queries,
            answers=0,
            private=True,
        )
        rdp = float(ledger.rdp[0])
        smooth = smooth_sensitivity(
            ledger.sensitivity[0], ceiling=float(ledger.ceiling[0]), beta=plan.beta
        )
        return TightRelease(
            plan=plan,
            before=max(rdp + plan.overhead - plan.release_rdp, 0.0),
            smooth=smooth,
            mean=rdp + smooth * plan.shift + plan.overhead,
            sd=smooth * plan.sigma,
        )

    return TightFigures(
        upper=release(ReleaseKind.UPPER),
        unbiased=release(ReleaseKind.UNBIASED),
        data_independent=data_independent_cost(
            [Spending(mechanism, queries, queries)], delta=delta, plan=None
        ),
    )
