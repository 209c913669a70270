"""The only door from a ledger (secret) to a report (public).

Whatever a run was charged by, its report is written here, in one place; and so is its quote.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pate_cli.accounting.conversion import round_up
from pate_cli.accounting.sensitivity import smooth_sensitivity
from pate_cli.accounting.textbook import Step
from pate_cli.core.codec import encoded
from pate_cli.core.errors import ParameterError
from pate_cli.core.noise import Noise
from pate_cli.core.words import PublicFact, ReleaseKind
from pate_cli.disclosure.cautions import vacuous_warnings
from pate_cli.disclosure.crosscheck import crosscheck
from pate_cli.disclosure.external import External
from pate_cli.disclosure.guarantee import DRAWS, UNRECORDED, read_off_warning
from pate_cli.disclosure.ledger import Draw, Ledger, Round
from pate_cli.disclosure.plan import ReleasePlan
from pate_cli.disclosure.report import Outlook, Quote, Report
from pate_cli.disclosure.terms import Headline, ScoredTerms, Terms
from pate_cli.disclosure.wording import worded
from pate_cli.disclosure.worst_case import spendings
from pate_cli.mechanisms import mechanism_from_parameters
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
    warnings: Sequence[str] = (),
) -> Report:
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
        recorded: whether `prior` is known to be all of them; the report claims nothing if not.
        external: other mechanisms on the same records. Their cost is public: it is added after the
            draw, whose noise hides the votes' alone.
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
    terms = ScoredTerms(
        spendings(ledger.rounds),
        plan.delta,
        plan,
        prior=(*ledger.draws, *prior),
        recorded=recorded,
        external=external,
    )
    drawn = _drawn(ledger, plan, noise, terms) if plan.publishes_draw else None
    return report(
        ledger.rounds,
        terms,
        terms.drawn(drawn),
        private=ledger.private and (noise.private or not plan.publishes_draw),
        warnings=warnings,
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


def report(
    rounds: Sequence[Round],
    terms: Terms,
    headline: Headline,
    *,
    private: bool,
    warnings: Sequence[str] = (),
) -> Report:
    """The one place where a report is written; all in it follows from public facts.

    Args:
        rounds: what was asked and answered.
        terms: what is charged for it.
        headline: what of these terms has come true.
        private: whether the noise was unpredictable.
        warnings: what else a reader of the report should know.
    """
    read_off = tuple(fact for fact in PublicFact if any(fact in done.read_off for done in rounds))
    mechanism: dict[str, Any] = {"name": "composition", "rounds": len(rounds)}
    if len(rounds) == 1:
        mechanism = dict(rounds[0].mechanism)
    label_sets = {done.label_set for done in rounds}
    plan, public = terms.plan, terms.public
    steps = [step for done in rounds for step in _textbook(done)]
    facts = Report(
        epsilon=headline.epsilon,
        epsilon_kind=headline.kind,
        delta=terms.delta,
        private=private,
        sound=False,
        analysis=terms.analysis,
        mechanism=mechanism,
        queries=sum(done.queries for done in rounds),
        answers=sum(done.answers for done in rounds),
        max_answers=sum(done.max_answers for done in rounds),
        sanitized=headline.sanitized,
        data_independent=public,
        rounds=tuple(_public_facts(done) for done in rounds),
        warnings=(
            *(read_off_warning(fact) for fact in read_off),
            *(() if terms.recorded else (UNRECORDED,)),
            *(() if plan is None else plan.caveats),
            *warnings,
            *vacuous_warnings(headline.epsilon, composed=terms.analysis == "composition"),
        ),
        tested=headline.tested,
        label_set=next(iter(label_sets)) if len(label_sets) == 1 else None,
        groups=terms.by_group(rounds[0].groups, headline.epsilon),
        earlier_draws=terms.prior,
        external=terms.external.facts(None if plan is None else plan.order, public.order),
        met_target=headline.met_target,
        unsettled=(*(fact.value for fact in read_off), *(() if terms.recorded else (DRAWS,))),
        crosscheck=(
            crosscheck(steps, delta=terms.labels_delta, public=public) if terms.compared else None
        ),
    )
    return worded(facts)


def quote(
    mechanism: Mechanism,
    terms: Terms,
    *,
    queries: int,
    max_answers: int,
    groups: Sequence[Group] = (),
    target: Outlook | None = None,
) -> Quote:
    """What a run would cost for all votes, before anything is spent; all of it public.

    Args:
        mechanism: what would be run.
        terms: what would be charged for it.
        queries, max_answers: k1 and k2.
        groups: of the teachers, where they count differently.
        target: what one would mean for the run.
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
        target=target,
        groups=terms.by_group(groups, terms.headline.epsilon),
        crosscheck=crosscheck(
            mechanism.textbook(queries=queries, answers=max_answers),
            delta=terms.labels_delta,
            public=terms.public,
        ),
    )


def _textbook(done: Round) -> tuple[Step, ...]:
    """What a textbook is asked about: of a session all queries that it answers in any case."""
    queries, answers = done.queries, done.max_answers
    if done.rule is not None:
        queries = answers = done.rule.asks
    return mechanism_from_parameters(done.mechanism).textbook(queries=queries, answers=answers)


def _public_facts(done: Round) -> dict[str, Any]:
    """The public facts of a round; its id stays in the ledger, which it would identify."""
    return {
        "mechanism": dict(done.mechanism),
        "queries": done.queries,
        "max_answers": done.max_answers,
        "answers": done.answers,
        **({} if done.label_set is None else done.label_set.facts()),
        **({} if done.said_prior is None else {"prior": vars(done.said_prior)}),
        **({} if done.rule is None else {"rule": encoded(done.rule)}),
    }
