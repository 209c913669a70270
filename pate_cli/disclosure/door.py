"""The only door from a ledger (secret) to what may be published; and the quote of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pate_cli.accounting.conversion import round_up
from pate_cli.accounting.sensitivity import smooth_sensitivity
from pate_cli.core.errors import ParameterError
from pate_cli.core.noise import Noise
from pate_cli.core.words import ReleaseKind
from pate_cli.disclosure.cost import Cost
from pate_cli.disclosure.crosscheck import crosscheck
from pate_cli.disclosure.external import Stated, stated_rdp
from pate_cli.disclosure.facts import ReportFacts, group_guarantees, worst_case
from pate_cli.disclosure.ledger import Ledger
from pate_cli.disclosure.plan import Draw, ReleasePlan
from pate_cli.disclosure.report import Quote
from pate_cli.disclosure.settings import Settings
from pate_cli.mechanisms import mechanism_from_parameters, scored_from_parameters
from pate_cli.mechanisms.base import ComposedMechanism


def release(
    ledger: Ledger,
    plan: ReleasePlan,
    noise: Noise,
    *,
    prior: Sequence[Draw] = (),
    recorded: bool = True,
    external: tuple[Stated, ...] = (),
) -> ReportFacts:
    """Spend the sanitizing noise once; return the facts that a report of it states.

    Draws f + SS_β·(κ + σN) at the plan's order (accounting.gnss) and converts it to ε; beside it
    stands the data-independent ε of everything released, the draw included. The headline is the
    smaller of the two.

    Args:
        ledger: what was spent, over all rounds.
        plan: fixed before any vote was seen, and never from the ledger's own numbers.
        noise: the source of the one draw.
        prior: draws that were made from these rounds before; their cost is added, as is that
            of draws the ledger itself knows of.
        recorded: whether `prior` is known to be all of them; the report promises nothing if not.
        external: other mechanisms on the same records. Their cost is public: it is added after the
            draw, whose noise hides the votes' alone.

    Raises:
        ParameterError: the plan's δ is not the ledger's.
        LedgerError: the plan's order was not charged, or a round has no Rényi cost.
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
    for done in ledger.rounds:
        scored_from_parameters(done.mechanism)  # refuses one without a Rényi cost
    facts = ReportFacts(
        rounds=ledger.rounds,
        private=ledger.private and (noise.private or not plan.publishes_draw),
        plan=plan,
        prior=(*ledger.draws, *prior),
        external=external,
        recorded=recorded,
    )
    return replace(facts, drawn=drawn(ledger, facts, noise)) if plan.publishes_draw else facts


def drawn(ledger: Ledger, facts: ReportFacts, noise: Noise) -> float:
    """Draw the sanitized ε of the plan in `facts`, exactly once, rounded up; nats."""
    plan = facts.plan
    if plan is None:
        raise ParameterError("there is no plan to draw by")
    row = ledger.row(plan.order)
    smooth = smooth_sensitivity(
        ledger.sensitivity[row], ceiling=float(ledger.ceiling[row]), beta=plan.beta
    )
    value = plan.value(float(ledger.rdp[row]), smooth, noise.fine_normal())
    value += sum(draw.rdp(plan.order) for draw in facts.prior)
    value += float(stated_rdp(facts.external, np.array([plan.order]))[0])
    return round_up(max(value, 0.0))


def quote(settings: Settings) -> Quote:
    """Return the worst case of a run that is told these settings; public, and nothing is spent."""
    plan, tested = settings.sanitizer, settings.tested
    mechanism = mechanism_from_parameters(settings.mechanism)
    planned: dict[str, Any] = {"release": ReleaseKind.NONE.value}
    if plan is not None and plan.publishes_draw:
        planned = {
            "release": plan.kind.value,
            "order": plan.order,
            "beta": plan.beta,
            "sigma_release": plan.sigma,
        }
    cost = Cost.of(replace(settings, target=None))
    public, delta = worst_case(cost), cost.own.delta
    return Quote(
        mechanism=mechanism.parameters(),
        delta=delta,
        queries=settings.queries,
        max_answers=settings.max_answers,
        planned_release=planned,
        data_independent=public,
        threshold=mechanism.threshold if isinstance(mechanism, ComposedMechanism) else None,
        groups=group_guarantees(
            settings.groups,
            cost if tested is None else None,
            epsilon=public.epsilon if tested is None else tested.epsilon,
            delta=delta,
        ),
        crosscheck=crosscheck(
            mechanism.textbook(queries=settings.queries, answers=settings.max_answers),
            delta=delta,
            public=public,
        ),
    )
