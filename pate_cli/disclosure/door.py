"""The only door from a ledger (secret) to a report (public)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pate_cli.accounting.composition import Composition
from pate_cli.accounting.conversion import round_up
from pate_cli.accounting.sensitivity import smooth_sensitivity
from pate_cli.core.arrays import Floats
from pate_cli.core.errors import ParameterError
from pate_cli.core.noise import Noise
from pate_cli.core.words import Bound, PublicFact, ReleaseKind
from pate_cli.disclosure.cautions import hollow
from pate_cli.disclosure.crosscheck import crosscheck
from pate_cli.disclosure.external import External
from pate_cli.disclosure.guarantee import DRAWS, UNRECORDED, read_off_warning
from pate_cli.disclosure.ledger import Draw, Ledger, Round
from pate_cli.disclosure.plan import ReleasePlan
from pate_cli.disclosure.report import (
    Crosscheck,
    DataIndependent,
    GroupGuarantee,
    Quote,
    Report,
    Sanitized,
    Spent,
    Tested,
)
from pate_cli.disclosure.target import TargetPlan
from pate_cli.disclosure.wording import worded
from pate_cli.disclosure.worst_case import Spending, data_independent_cost, spendings
from pate_cli.mechanisms import mechanism_from_parameters
from pate_cli.mechanisms.base import ComposedMechanism, Mechanism, ScoredMechanism
from pate_cli.votes import Group

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
    prior = (*ledger.draws, *prior)
    drawn = _drawn(ledger, plan, noise, prior, external) if plan.publishes_draw else None
    return released(
        ledger.rounds,
        plan,
        drawn,
        private=ledger.private and (noise.private or not plan.publishes_draw),
        prior=prior,
        recorded=recorded,
        warnings=warnings,
        external=external,
    )


def released(
    rounds: Sequence[Round],
    plan: ReleasePlan,
    drawn: float | None,
    *,
    private: bool,
    prior: Sequence[Draw] = (),
    recorded: bool = True,
    warnings: Sequence[str] = (),
    external: External = _NONE,
) -> Report:
    """The report of a value that was drawn, or of none: all else in it follows from public facts.

    Args:
        rounds: what was asked and answered.
        plan: as in `release`.
        drawn: the sanitized ε; None where nothing is.
        private: whether the noise was unpredictable.
        prior: all draws from these rounds before.
        recorded, warnings, external: as in `release`.
    """
    sanitized = Sanitized(release=plan.kind.value)
    if drawn is not None:
        sanitized = Sanitized(
            release=plan.kind.value,
            epsilon=drawn,
            order=plan.order,
            beta=plan.beta,
            sigma_release=plan.sigma,
            delta_failure=plan.delta_shift,
            release_rdp=plan.release_rdp,
            release_rdp_published=plan.claimed_rdp,
        )
    spent = spendings(rounds)
    public = for_all_votes(spent, delta=plan.delta, plan=plan, prior=prior, external=external)
    epsilon = plan.headline(sanitized.epsilon, public.epsilon)
    return _report(
        rounds,
        analysis=plan.analysis.value,
        epsilon=epsilon,
        delta=external.total(plan.delta),
        labels_delta=plan.delta,
        kind=plan.kind,
        private=private,
        sanitized=sanitized,
        public=public,
        earlier=prior,
        external=external.facts(plan.order, public.order),
        recorded=recorded,
        warnings=(*([] if recorded else [UNRECORDED]), *plan.caveats, *warnings),
        groups=by_group(
            rounds[0].groups,
            spent,
            epsilon=epsilon,
            delta=plan.delta,
            plan=plan,
            prior=prior,
            external=external,
        ),
    )


def release_composed(
    done: Round,
    cost: Composition,
    *,
    private: bool,
    warnings: Sequence[str] = (),
) -> Report:
    """What may be published about a run whose (ε, δ) is a composition and needs no sanitizing.

    Args:
        done: what was asked and answered.
        cost: (ε, δ) of the whole for all votes.
        private: whether the noise was unpredictable.
        warnings: what else a reader of the report should know.
    """
    public = _composed(cost)
    return _whatever_the_votes(
        done,
        public,
        analysis="composition",
        delta=cost.delta,
        private=private,
        warnings=tuple(warnings),
    )


def release_tested(
    done: Round,
    plan: TargetPlan,
    public: DataIndependent,
    *,
    bound: Bound,
    orders: Floats,
    passed: bool,
    private: bool,
    spent: Spent | None = None,
    warnings: Sequence[str] = (),
) -> Report:
    """What may be published about a tested budget: nothing of it depends on the votes but `passed`.

    Args:
        done: what was asked and, if it passed, answered.
        plan: fixed before any vote was seen.
        public: what the labels cost for all votes, without a test.
        bound: how the cost of the votes was bounded.
        orders: at which Rényi orders.
        passed: what the coin said.
        private: whether the noise was unpredictable.
        spent: all attempts in the spend record.
        warnings: what else a reader of the report should know.
    """
    epsilon = plan.epsilon if passed else plan.refusal_epsilon
    facts = Report(
        epsilon=epsilon,
        epsilon_kind="target" if passed else "refusal",
        delta=plan.delta,
        private=private,
        sound=False,
        analysis="tight",
        mechanism=dict(done.mechanism),
        queries=done.queries,
        answers=done.answers,
        max_answers=done.max_answers,
        sanitized=Sanitized(release=ReleaseKind.NONE.value),
        data_independent=public,
        rounds=(_public_facts(done),),
        warnings=(
            *(read_off_warning(fact) for fact in done.read_off),
            *warnings,
            *hollow(epsilon),
        ),
        tested=Tested(
            passed=passed,
            target=plan.epsilon,
            delta=plan.delta,
            refusal_epsilon=plan.refusal_epsilon,
            orders=tuple(orders.tolist()),
            distances=plan.distances,
            bound=bound.value,
        ),
        spent=spent,
        label_set=done.label_set,
        unsettled=tuple(fact.value for fact in done.read_off),
        crosscheck=_crosscheck([done], delta=plan.delta, public=public),
        groups=by_group(
            done.groups,
            (),
            epsilon=epsilon,
            delta=plan.delta,
        ),
    )
    return worded(facts)


def release_public(
    done: Round,
    public: DataIndependent,
    *,
    delta: float,
    private: bool,
    target: float | None = None,
    spent: Spent | None = None,
    warnings: Sequence[str] = (),
) -> Report:
    """What may be published about labels whose cost is what it is for all votes.

    Args:
        done: what was asked and answered.
        public: what the labels cost for all votes.
        delta: δ.
        private: whether the noise was unpredictable.
        target: a target that they meet without a test.
        spent: all attempts in the spend record.
        warnings: what else a reader of the report should know.
    """
    report = _whatever_the_votes(
        done,
        public,
        analysis="tight",
        delta=delta,
        private=private,
        warnings=tuple(warnings),
        spent=spendings([done]) if done.groups else (),
    )
    return worded(replace(report, met_target=target, spent=spent))


def quote(
    mechanism: ScoredMechanism,
    plan: ReleasePlan,
    *,
    queries: int,
    max_answers: int,
    groups: Sequence[Group] = (),
) -> Quote:
    """What a run would cost for all votes, before anything is spent; all of it public."""
    planned: dict[str, Any] = {"release": plan.kind.value}
    if plan.publishes_draw:
        planned |= {"order": plan.order, "beta": plan.beta, "sigma_release": plan.sigma}
    spent = [Spending(mechanism, queries, max_answers)]
    public = for_all_votes(spent, delta=plan.delta, plan=plan)
    return Quote(
        mechanism=mechanism.parameters(),
        delta=plan.delta,
        queries=queries,
        max_answers=max_answers,
        planned_release=planned,
        data_independent=public,
        crosscheck=crosscheck(
            mechanism.textbook(queries=queries, answers=max_answers),
            delta=plan.delta,
            public=public,
        ),
        groups=by_group(groups, spent, epsilon=public.epsilon, delta=plan.delta, plan=plan),
    )


def composed_quote(
    mechanism: ComposedMechanism,
    cost: Composition,
    *,
    queries: int,
    max_answers: int,
    groups: Sequence[Group] = (),
) -> Quote:
    """The same for a run whose (ε, δ) is a composition."""
    price = public_quote(
        mechanism,
        _composed(cost),
        delta=cost.delta,
        queries=queries,
        max_answers=max_answers,
        groups=groups,
    )
    return replace(price, threshold=mechanism.threshold)


def public_quote(
    mechanism: Mechanism,
    public: DataIndependent,
    *,
    delta: float,
    queries: int,
    max_answers: int,
    groups: Sequence[Group] = (),
    target: float = np.inf,
) -> Quote:
    """The same for a run about which nothing is to be sanitized; a tested target costs no more."""
    spent = []
    if isinstance(mechanism, ScoredMechanism) and public.epsilon <= target:
        spent = [Spending(mechanism, queries, max_answers)]
    epsilon = min(public.epsilon, target)
    return Quote(
        mechanism=mechanism.parameters(),
        delta=delta,
        queries=queries,
        max_answers=max_answers,
        planned_release={"release": ReleaseKind.NONE.value},
        data_independent=public,
        crosscheck=crosscheck(
            mechanism.textbook(queries=queries, answers=max_answers), delta=delta, public=public
        ),
        groups=by_group(groups, spent, epsilon=epsilon, delta=delta),
    )


def _whatever_the_votes(
    done: Round,
    public: DataIndependent,
    *,
    analysis: str,
    delta: float,
    private: bool,
    warnings: tuple[str, ...] = (),
    spent: Sequence[Spending] = (),
) -> Report:
    """The report of a run about which nothing is sanitized."""
    return _report(
        [done],
        analysis=analysis,
        epsilon=public.epsilon,
        delta=delta,
        kind=ReleaseKind.NONE,
        private=private,
        sanitized=Sanitized(release=ReleaseKind.NONE.value),
        public=public,
        recorded=True,
        warnings=warnings,
        groups=by_group(done.groups, spent, epsilon=public.epsilon, delta=delta),
    )


def _drawn(
    ledger: Ledger, plan: ReleasePlan, noise: Noise, prior: Sequence[Draw], external: External
) -> float:
    """f + SS·(κ + σN) + ε_κ + conversion, rounded up: the draw is made exactly here."""
    row = ledger.row(plan.order)
    smooth = smooth_sensitivity(
        ledger.sensitivity[row], ceiling=float(ledger.ceiling[row]), beta=plan.beta
    )
    value = plan.value(float(ledger.rdp[row]), smooth, noise.fine_normal())
    value += sum(draw.rdp(plan.order) for draw in prior)
    value += float(external.rdp(np.array([plan.order]))[0])
    return round_up(max(value, 0.0))


def for_all_votes(
    spent: Sequence[Spending],
    *,
    delta: float,
    plan: ReleasePlan | None = None,
    prior: Sequence[Draw] = (),
    external: External = _NONE,
) -> DataIndependent:
    """The ε of everything released and of the labels alone, rounded up; public."""
    labels = data_independent_cost(spent, delta=delta, plan=None)
    everything = labels
    if prior or external.parts or (plan is not None and plan.publishes_draw):
        everything = data_independent_cost(
            spent, delta=delta, plan=plan, prior=prior, external=external
        )
    return DataIndependent(
        epsilon=round_up(everything.epsilon),
        order=everything.order,
        method=everything.method,
        labels_epsilon=round_up(labels.epsilon),
        labels_order=labels.order,
        labels_method=labels.method,
    )


def _composed(cost: Composition) -> DataIndependent:
    epsilon = round_up(cost.epsilon)
    return DataIndependent(
        epsilon=epsilon,
        order=None,
        method=cost.method,
        labels_epsilon=epsilon,
        labels_order=None,
        labels_method=cost.method,
    )


def _report(
    rounds: Sequence[Round],
    *,
    analysis: str,
    epsilon: float,
    delta: float,
    kind: ReleaseKind,
    private: bool,
    sanitized: Sanitized,
    public: DataIndependent,
    recorded: bool,
    warnings: tuple[str, ...],
    groups: tuple[GroupGuarantee, ...],
    earlier: Sequence[Draw] = (),
    external: tuple[dict[str, Any], ...] = (),
    labels_delta: float | None = None,
) -> Report:
    """The one place where a report is written, but for that of a test.

    `labels_delta` is δ without what `external` parts add to it.
    """
    read_off = tuple(fact for fact in PublicFact if any(fact in done.read_off for done in rounds))
    mechanism: dict[str, Any] = {"name": "composition", "rounds": len(rounds)}
    if len(rounds) == 1:
        mechanism = dict(rounds[0].mechanism)
    label_sets = {done.label_set for done in rounds}
    facts = Report(
        epsilon=epsilon,
        epsilon_kind="worst-case" if epsilon == public.epsilon else kind.value,
        delta=delta,
        private=private,
        sound=False,
        analysis=analysis,
        mechanism=mechanism,
        queries=sum(done.queries for done in rounds),
        answers=sum(done.answers for done in rounds),
        max_answers=sum(done.max_answers for done in rounds),
        sanitized=sanitized,
        data_independent=public,
        rounds=tuple(_public_facts(done) for done in rounds),
        warnings=(
            *(read_off_warning(fact) for fact in read_off),
            *warnings,
            *hollow(epsilon, composed=analysis == "composition"),
        ),
        label_set=next(iter(label_sets)) if len(label_sets) == 1 else None,
        crosscheck=_crosscheck(rounds, delta=labels_delta or delta, public=public),
        groups=groups,
        earlier_draws=tuple(earlier),
        external=external,
        unsettled=(*(fact.value for fact in read_off), *(() if recorded else (DRAWS,))),
    )
    return worded(facts)


def _crosscheck(rounds: Sequence[Round], *, delta: float, public: DataIndependent) -> Crosscheck:
    steps = [
        step
        for done in rounds
        for step in mechanism_from_parameters(done.mechanism).textbook(
            queries=done.queries, answers=done.max_answers
        )
    ]
    return crosscheck(steps, delta=delta, public=public)


def by_group(
    groups: Sequence[Group],
    spent: Sequence[Spending],
    *,
    epsilon: float,
    delta: float,
    plan: ReleasePlan | None = None,
    prior: Sequence[Draw] = (),
    external: External = _NONE,
) -> tuple[GroupGuarantee, ...]:
    """The ε of every group of teachers: the headline, or its own worst case if that is smaller.

    A record of group g moves at most K_g votes: what was spent is priced again for so many, the
    draws and external parts in full (accounting/THEORY.md, section 15). Without `spent`, what is
    released costs every group the headline.
    """
    worst = {
        votes: for_all_votes(
            [replace(each, mechanism=each.mechanism.moving(votes)) for each in spent],
            delta=delta,
            plan=plan,
            prior=prior,
            external=external,
        ).epsilon
        for votes in {group.votes_per_record for group in groups}
        if spent
    }
    return tuple(
        GroupGuarantee(
            **vars(group),
            epsilon=min(epsilon, worst.get(group.votes_per_record, epsilon)),
            delta=external.total(delta),
        )
        for group in groups
    )


def _public_facts(done: Round) -> dict[str, Any]:
    """The public facts of a round; its id stays in the ledger, which it would identify."""
    return {
        "mechanism": dict(done.mechanism),
        "queries": done.queries,
        "max_answers": done.max_answers,
        "answers": done.answers,
        **({} if done.label_set is None else done.label_set.facts()),
    }
