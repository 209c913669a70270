"""What the tight analysis publishes about the same rounds, released by the public rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pate_cli.accounting.sensitivity import smooth_sensitivity
from pate_cli.arrays import Floats
from pate_cli.charging import charge
from pate_cli.ledger import Ledger
from pate_cli.mechanisms import ConfidentGNMax, InteractiveGNMax, Tally
from pate_cli.release.plan import ReleasePlan
from pate_cli.release.rule import choose_plan_for, distances_for
from pate_cli.release.worst_case import DataIndependentCost, Spending, data_independent_cost
from pate_cli.reproduction.vote_folder import Asked
from pate_cli.words import ReleaseKind

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


def tight_figures(rounds: Sequence[Asked], *, delta: float) -> TightFigures:
    """Price rounds of Confident- or Interactive-GNMax released as one sum.

    Every row is asked and there is no cap on answers. The order is fixed before the first vote,
    as adaptive rounds need.
    """
    asked = [_Round.of(one) for one in rounds]
    plans = {
        kind: choose_plan_for(kind, [(one.mechanism, len(one.score)) for one in asked], delta=delta)
        for kind in (ReleaseKind.UPPER, ReleaseKind.UNBIASED)
    }
    spent = [Spending(one.mechanism, len(one.score), len(one.score)) for one in asked]
    return TightFigures(
        upper=_release(plans[ReleaseKind.UPPER], asked),
        unbiased=_release(plans[ReleaseKind.UNBIASED], asked),
        data_independent=data_independent_cost(spent, delta=delta, plan=None),
    )


@dataclass(frozen=True, eq=False)
class _Round:
    """A mechanism and the scores [queries, 2] of the rows it was asked."""

    mechanism: ConfidentGNMax
    score: Floats

    @classmethod
    def of(cls, asked: Asked) -> _Round:
        counts = asked.votes.counts
        kind = ConfidentGNMax if asked.scores is None else InteractiveGNMax
        mechanism = kind(
            teachers=asked.votes.teachers,
            classes=counts.shape[1],
            threshold=asked.threshold,
            sigma1=asked.sigma1,
            sigma2=asked.sigma2,
        )
        if asked.scores is None:
            return cls(mechanism, mechanism.score(counts))
        losing = mechanism.argmax.score(counts)[:, 0]
        return cls(mechanism, np.column_stack([asked.scores, losing]))

    def ledger(self, plan: ReleasePlan) -> Ledger:
        one, queries = self.mechanism, len(self.score)
        tally = Tally.of(one.cells(self.score, one.surface(plan.order)))
        return charge(
            one,
            {plan.order: tally},
            delta=plan.delta,
            distances=distances_for(plan.beta, teachers=one.teachers),
            max_answers=queries,
            answers=0,
            private=True,
        )


def _release(plan: ReleasePlan, rounds: Sequence[_Round]) -> TightRelease:
    first, *others = (one.ledger(plan) for one in rounds)
    total = sum(others, start=first)
    rdp = float(total.rdp[0])
    smooth = smooth_sensitivity(
        total.sensitivity[0], ceiling=float(total.ceiling[0]), beta=plan.beta
    )
    return TightRelease(
        plan=plan,
        before=max(rdp + plan.overhead - plan.release_rdp, 0.0),
        smooth=smooth,
        mean=rdp + smooth * plan.shift + plan.overhead,
        sd=smooth * plan.sigma,
    )
