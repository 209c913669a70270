"""The only door from a ledger (secret) to a report (public)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from pate_cli.accounting.conversion import round_up
from pate_cli.accounting.sensitivity import smooth_sensitivity
from pate_cli.errors import ParameterError
from pate_cli.ledger import Ledger, Round
from pate_cli.mechanisms.base import Mechanism
from pate_cli.mechanisms.registry import mechanism_from_parameters
from pate_cli.noise import Noise
from pate_cli.release.guarantee import (
    adjacency,
    covers,
    published_caveats,
    statements,
    summary,
)
from pate_cli.release.plan import Draw, ReleasePlan
from pate_cli.release.report import SCHEMA_VERSION, DataIndependent, PublicReport, Sanitized
from pate_cli.release.worst_case import DataIndependentCost, Spending, data_independent_cost
from pate_cli.words import Analysis

__all__ = ["price", "release"]


def release(
    ledger: Ledger,
    plan: ReleasePlan,
    noise: Noise,
    *,
    prior: Sequence[Draw] = (),
    warnings: Sequence[str] = (),
) -> PublicReport:
    """Spend the sanitizing noise once and write what may be published.

    Draws f + SS_β·(κ + σN) at the plan's order (accounting.gnss) and converts it to ε; beside it
    stands the data-independent ε of everything released, the draw included. The headline is the
    smaller of the two.

    Args:
        ledger: what was spent, over all rounds.
        plan: fixed before any vote was seen, and never from the ledger's own numbers.
        noise: the source of the one draw.
        prior: draws that were made from these rounds before; their cost is added, as is that
            of draws the ledger itself knows of.
        warnings: what else a reader of the report should know.

    Raises:
        ParameterError: the plan's δ is not the ledger's.
        LedgerError: the plan's order was not charged.
    """
    if plan.analysis != ledger.analysis:
        raise ParameterError(
            f"the ledger holds the {ledger.analysis} analysis, the release asks for {plan.analysis}"
        )
    if plan.delta != ledger.delta:
        raise ParameterError(
            f"the ledger was charged for delta={ledger.delta:g}, the release asks for "
            f"{plan.delta:g}"
        )
    prior = (*ledger.draws, *prior)
    sanitized = (
        _draw(ledger, plan, noise, prior) if plan.draws else Sanitized(release=plan.kind.value)
    )
    spent = [
        Spending(mechanism_from_parameters(one.mechanism), one.queries, one.max_answers)
        for one in ledger.rounds
    ]
    everything = data_independent_cost(spent, delta=plan.delta, plan=plan, prior=prior)
    labels = data_independent_cost(spent, delta=plan.delta, plan=None)
    public = _data_independent(everything, labels)
    epsilon = public.epsilon
    if sanitized.epsilon is not None:
        epsilon = sanitized.epsilon if plan.as_published else min(epsilon, sanitized.epsilon)
    from_votes = epsilon != public.epsilon
    # A draw scaled by the published sensitivity is not known to be as smooth as claimed.
    sound = plan.analysis is Analysis.TIGHT or not plan.draws
    private = ledger.private and (noise.private or not plan.draws)
    return PublicReport(
        epsilon=epsilon,
        delta=plan.delta,
        private=private,
        sound=sound,
        analysis=ledger.analysis,
        mechanism=_mechanism(ledger),
        queries=ledger.queries,
        answers=ledger.answers,
        max_answers=sum(one.max_answers for one in ledger.rounds),
        sanitized=sanitized,
        data_independent=public,
        summary=summary(
            kind=plan.kind,
            private=private,
            epsilon=epsilon,
            delta=plan.delta,
            data_independent=not from_votes,
            sound=sound,
            rounds=len(ledger.rounds),
        ),
        adjacency=adjacency(
            max(one.mechanism.get("teachers_per_record", 1) for one in ledger.rounds)
        ),
        covers=covers(plan.kind, earlier=len(prior)),
        statements=statements(plan.kind, private=private, sound=sound, rounds=len(ledger.rounds)),
        rounds=tuple(_round(one) for one in ledger.rounds),
        warnings=(*warnings, *(() if sound else published_caveats(plan))),
    )


def price(
    mechanism: Mechanism, plan: ReleasePlan, *, queries: int, max_answers: int
) -> dict[str, Any]:
    """What a run would cost whatever the votes, before anything is spent; all of it public."""
    spent = [Spending(mechanism, queries, max_answers)]
    bounds = _data_independent(
        data_independent_cost(spent, delta=plan.delta, plan=plan),
        data_independent_cost(spent, delta=plan.delta, plan=None),
    )
    return {
        "schema_version": SCHEMA_VERSION,
        "dry_run": True,
        "epsilon": bounds.epsilon,
        "delta": plan.delta,
        "mechanism": mechanism.parameters(),
        "queries": queries,
        "max_answers": max_answers,
        "planned_release": {
            "release": plan.kind.value,
            "order": plan.order,
            "beta": plan.beta,
            "sigma_release": plan.sigma,
        }
        if plan.draws
        else {"release": plan.kind.value},
        "data_independent": asdict(bounds),
    }


def _draw(ledger: Ledger, plan: ReleasePlan, noise: Noise, prior: Sequence[Draw]) -> Sanitized:
    """f + SS·(κ + σN) + ε_κ + conversion, rounded up: the draw is made exactly here."""
    row = ledger.row(plan.order)
    smooth = smooth_sensitivity(
        ledger.sensitivity[row], ceiling=float(ledger.ceiling[row]), beta=plan.beta
    )
    shifted = plan.shift + plan.sigma * float(noise.normal(1)[0])
    earlier = sum(draw.rdp(plan.order) for draw in prior)
    value = float(ledger.rdp[row]) + smooth * shifted + plan.overhead + earlier
    return Sanitized(
        release=plan.kind.value,
        epsilon=round_up(max(value, 0.0)),
        order=plan.order,
        beta=plan.beta,
        sigma_release=plan.sigma,
        delta_failure=plan.delta_shift,
        release_rdp=plan.release_rdp,
        release_rdp_published=plan.published_release_rdp
        if plan.analysis is Analysis.PAPER
        else None,
    )


def _data_independent(
    everything: DataIndependentCost, labels: DataIndependentCost
) -> DataIndependent:
    return DataIndependent(
        epsilon=round_up(everything.epsilon),
        order=everything.order,
        method=everything.method,
        labels_epsilon=round_up(labels.epsilon),
        labels_order=labels.order,
        labels_method=labels.method,
    )


def _mechanism(ledger: Ledger) -> dict[str, Any]:
    if len(ledger.rounds) == 1:
        return dict(ledger.rounds[0].mechanism)
    return {"name": "composition", "rounds": len(ledger.rounds)}


def _round(one: Round) -> dict[str, Any]:
    """The public facts of a round; its id stays in the ledger, which it would identify."""
    return {
        "mechanism": dict(one.mechanism),
        "queries": one.queries,
        "max_answers": one.max_answers,
        "answers": one.answers,
    }
