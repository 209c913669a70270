"""The only door from a ledger (secret) to what may be published; and the quote of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pate_cli.accounting.conversion import round_up
from pate_cli.accounting.sensitivity import smooth_sensitivity
from pate_cli.core.errors import ParameterError
from pate_cli.core.noise import Noise
from pate_cli.core.words import ReleaseKind
from pate_cli.disclosure.crosscheck import crosscheck
from pate_cli.disclosure.external import External
from pate_cli.disclosure.facts import ReportFacts
from pate_cli.disclosure.ledger import Draw, Ledger
from pate_cli.disclosure.plan import ReleasePlan
from pate_cli.disclosure.report import Quote
from pate_cli.disclosure.terms import ScoredTerms, Terms
from pate_cli.disclosure.worst_case import spendings
from pate_cli.mechanisms.base import ComposedMechanism, Mechanism
from pate_cli.votes.facts import Group

_NONE = External()


def release(
    ledger: Ledger,
    plan: ReleasePlan,
    noise: Noise,
    *,
    prior: Sequence[Draw] = (),
    recorded: bool = True,
    external: External = _NONE,
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
        recorded: whether `prior` is known to be all of them; the report claims nothing if not.
        external: other mechanisms on the same records. Their cost is public: it is added after the
            draw, whose noise hides the votes' alone.

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
    terms = ScoredTerms(
        spendings(ledger.rounds),
        plan.delta,
        plan,
        prior=(*ledger.draws, *prior),
        recorded=recorded,
        external=external,
    )
    drawn = _drawn(ledger, plan, noise, terms) if plan.publishes_draw else None
    return ReportFacts(
        rounds=ledger.rounds,
        terms=terms,
        headline=terms.drawn(drawn),
        private=ledger.private and (noise.private or not plan.publishes_draw),
    )


def _drawn(ledger: Ledger, plan: ReleasePlan, noise: Noise, terms: ScoredTerms) -> float:
    """f + SS·(κ + σN) + ε_κ + conversion, rounded up: the draw is made exactly here."""
    row = ledger.row(plan.order)
    smooth = smooth_sensitivity(
        ledger.sensitivity[row], ceiling=float(ledger.ceiling[row]), beta=plan.beta
    )
    value = plan.value(float(ledger.rdp[row]), smooth, noise.fine_normal())
    value += sum(draw.rdp(plan.order) for draw in terms.prior)
    value += float(terms.external.rdp(np.array([plan.order]))[0])
    return round_up(max(value, 0.0))


def quote(
    mechanism: Mechanism,
    terms: Terms,
    *,
    queries: int,
    max_answers: int,
    groups: Sequence[Group] = (),
) -> Quote:
    """Return the worst case of a run before anything is spent; public.

    Args:
        mechanism: what would be run.
        terms: what would be charged for it.
        queries, max_answers: k1 and k2.
        groups: of the teachers, where they count differently.
    """
    planned: dict[str, Any] = {"release": ReleaseKind.NONE.value}
    plan = terms.plan
    if plan is not None and plan.publishes_draw:
        planned = {
            "release": plan.kind.value,
            "order": plan.order,
            "beta": plan.beta,
            "sigma_release": plan.sigma,
        }
    return Quote(
        mechanism=mechanism.parameters(),
        delta=terms.labels_delta,
        queries=queries,
        max_answers=max_answers,
        planned_release=planned,
        data_independent=terms.public,
        threshold=mechanism.threshold if isinstance(mechanism, ComposedMechanism) else None,
        groups=terms.by_group(groups, terms.headline.epsilon),
        crosscheck=crosscheck(
            mechanism.textbook(queries=queries, answers=max_answers),
            delta=terms.labels_delta,
            public=terms.public,
        ),
    )
