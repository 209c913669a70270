"""A report is facts and what follows from them: `report_of` computes the second from the first.

Nothing else writes a report. So whoever holds one can read its facts (`facts_of`), have the report
written again, and compare every other field; `verify` does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

from pate_cli.accounting.gnss import shift_quantile
from pate_cli.accounting.textbook import Step
from pate_cli.core.codec import Refusal, decoded
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import ReportError
from pate_cli.core.version import __version__
from pate_cli.core.words import Bound, PublicFact, ReleaseKind
from pate_cli.disclosure.cautions import cautions, vacuous_warnings
from pate_cli.disclosure.crosscheck import crosscheck
from pate_cli.disclosure.external import External
from pate_cli.disclosure.guarantee import (
    DRAWS,
    INPUTS,
    TOTAL,
    UNRECORDED,
    UNVERIFIED,
    read_off_warning,
    rounds_of,
    worded,
)
from pate_cli.disclosure.ledger import Draw, Round
from pate_cli.disclosure.plan import ReleasePlan
from pate_cli.disclosure.profile import coin_orders
from pate_cli.disclosure.record import Outcome, Run, RunKind
from pate_cli.disclosure.report import Crosscheck, ExternalFacts, LabelFile, Report
from pate_cli.disclosure.session_terms import SessionTerms, rule_fault
from pate_cli.disclosure.settings import RowsAnswered, RowsAsked, Sanitizer, Settings, StatedTarget
from pate_cli.disclosure.target import TargetPlan
from pate_cli.disclosure.terms import (
    AccountTerms,
    ComposedTerms,
    Headline,
    ScoredTerms,
    TargetTerms,
    Terms,
)
from pate_cli.disclosure.total import Spent
from pate_cli.disclosure.worst_case import spendings
from pate_cli.mechanisms import mechanism_from_parameters
from pate_cli.mechanisms.base import ComposedMechanism, Mechanism, ScoredMechanism

Planned: TypeAlias = Callable[[ReleasePlan], ReleasePlan]
"""Gives a sound plan as an analysis charges it."""
_EXTERNAL: Final = Refusal(ReportError, "an external part is damaged: ")
_CONVERSIONS: Final = {
    "tight": "Canonne-Kamath-Steinke 2020, Proposition 12",
    "paper": "Mironov 2017, Proposition 3 (log(1/delta)/(order - 1))",
    "composition": "Kairouz-Oh-Viswanath 2015 and others, by data_independent.method",
}


@dataclass(frozen=True, kw_only=True)
class ReportFacts:
    """Facts that a report states; `report_of` computes the rest.

    Attributes:
        rounds: what was asked and answered.
        terms: what is charged for it.
        headline: what of these terms came true.
        private: whether the noise was unpredictable.
        spent: all runs of the record, with what they cost; None where no record is kept.
        label_names: what the classes are called.
        run, time: the name of the run, and when it began (UTC).
        labels: the file of its labels.
        tool: the version of pate that wrote the report.
    """

    rounds: Sequence[Round]
    terms: Terms
    headline: Headline
    private: bool
    spent: Spent | None = None
    label_names: tuple[str, ...] | None = None
    run: str | None = None
    time: str | None = None
    labels: LabelFile | None = None
    tool: str = __version__


def report_of(facts: ReportFacts) -> Report:
    """Return the report that follows from facts, every number and sentence of it."""
    rounds, terms, headline = facts.rounds, facts.terms, facts.headline
    read_off = tuple(fact for fact in PublicFact if any(fact in done.read_off for done in rounds))
    mechanisms = [mechanism_from_parameters(done.mechanism) for done in rounds]
    named: dict[str, Any] = {"name": "composition", "rounds": len(rounds)}
    label_sets = {done.label_set for done in rounds}
    plan, public = terms.plan, terms.public
    found = Report(
        epsilon=headline.epsilon,
        epsilon_kind=headline.kind,
        delta=terms.delta,
        private=facts.private,
        sound=False,
        analysis=terms.analysis,
        conversion=_CONVERSIONS[terms.analysis],
        mechanism=dict(rounds[0].mechanism) if len(rounds) == 1 else named,
        queries=sum(done.queries for done in rounds),
        answers=sum(done.answers for done in rounds),
        max_answers=sum(done.max_answers for done in rounds),
        sanitized=headline.sanitized,
        data_independent=public,
        rounds=tuple(RowsAnswered.of(done, answers=done.answers) for done in rounds),
        warnings=(
            *(read_off_warning(fact) for fact in read_off),
            *(() if terms.recorded else (UNRECORDED,)),
            *(() if terms.verified else (UNVERIFIED,)),
            *(() if plan is None else plan.caveats),
            *cautions(*mechanisms, delta=terms.labels_delta),
            *vacuous_warnings(headline.epsilon, composed=terms.analysis == "composition"),
        ),
        tested=headline.tested,
        spent=facts.spent,
        label_set=next(iter(label_sets)) if len(label_sets) == 1 else None,
        label_names=facts.label_names,
        groups=terms.by_group(rounds[0].groups, headline.epsilon),
        earlier_draws=terms.prior,
        external=tuple(
            decoded(ExternalFacts, part, _EXTERNAL)
            for part in terms.external.facts(None if plan is None else plan.order, public.order)
        ),
        met_target=headline.met_target,
        unsettled=(
            *(fact.value for fact in read_off),
            *(() if terms.recorded else (DRAWS,)),
            *(() if terms.verified else (INPUTS,)),
        ),
        crosscheck=_textbook(rounds, mechanisms, terms) if terms.compared else None,
        labels=facts.labels,
        run=facts.run,
        time=facts.time,
        tool=facts.tool,
    )
    return worded(found)


def facts_of(report: Report, planned: Planned) -> ReportFacts:
    """Return the facts that a report states; nothing else of the report is looked at.

    Args:
        report: written by anybody.
        planned: gives the release plan as the analysis of the report has it.

    Raises:
        PateError: facts that no run has, or that contradict each other.
    """
    rounds, spent = rounds_of(report), report.spent
    refused = report.tested is not None and not report.tested.passed
    for done in rounds:
        if refused and done.answers:
            raise ReportError(f"{done.answers} answers, though the labels did not pass")
        # A total tells of runs that were refused or are pending, too.
        _check_round(done, labelled=not refused and report.epsilon_kind != TOTAL)
    if report.epsilon_kind == TOTAL:
        if spent is None:
            raise ReportError("a total of no runs")
        terms: Terms = AccountTerms(spent.runs, recorded=DRAWS not in report.unsettled)
        headline = terms.headline
    else:
        terms, headline = _charged(report, rounds, planned)
    return ReportFacts(
        rounds=rounds,
        terms=terms,
        headline=headline,
        private=report.private,
        spent=None if spent is None else Spent.of(spent.runs),
        label_names=report.label_names,
        run=report.run,
        time=report.time,
        labels=report.labels,
        tool=report.tool,
    )


def run_of(report: Report) -> Run:
    """Return the run that a report of one round is of, as a record has it.

    Raises:
        ReportError: a report of several rounds.
        LedgerError: numbers that no run has.
    """
    if len(report.rounds) != 1:
        raise ReportError("a report of several rounds is of no run by itself")
    (done,), tested = rounds_of(report), report.tested
    kind = RunKind.COMPOSITION if report.analysis == "composition" else RunKind.WORST_CASE
    if tested is not None:
        kind = RunKind.TARGET
    elif done.rule is not None:
        kind = RunKind.SESSION
    refused = tested is not None and not tested.passed
    return Run(
        id=report.run or f"report {report.time}",
        kind=kind,
        outcome=Outcome.REFUSED if refused else Outcome.LABELLED,
        time=report.time,
        delta=labels_delta(report),
        epsilon=report.data_independent.epsilon if tested is None else tested.target,
        refusal_epsilon=None if tested is None else tested.refusal_epsilon,
        answers=None if refused else report.answers,
        asked=RowsAsked.of(done),
        groups=done.groups,
        claimed=report.claims("all-votes"),
        draw=drawn_of(report),
    )


def drawn_of(report: Report) -> Draw | None:
    """Return the public parameters of the sanitized value in a report, if it has one."""
    drawn = report.sanitized
    if drawn.beta is None or drawn.sigma_release is None:
        return None
    shift = drawn.sigma_release * shift_quantile(drawn.delta_failure or 0.0)
    return Draw(drawn.beta, drawn.sigma_release, shift)


def settings_of(report: Report) -> Settings:
    """Return what the run of a report of one round was told."""
    (done,) = rounds_of(report)
    tested, drawn, target, sanitizer = report.tested, report.sanitized, None, None
    if tested is not None:
        target = StatedTarget(tested.target, tested.refusal_epsilon, tested.bound)
    elif report.met_target is not None:
        target = StatedTarget(report.met_target)
    if drawn.order is not None and drawn.beta is not None and drawn.sigma_release is not None:
        sanitizer = Sanitizer(drawn.release, drawn.order, drawn.beta, drawn.sigma_release)
    return Settings.of(
        done,
        private=report.private,
        delta=labels_delta(report),
        analysis=report.analysis,
        target=target,
        sanitizer=sanitizer,
        read_off=done.read_off,
        groups=done.groups,
    )


def _check_round(done: Round, *, labelled: bool) -> None:
    """Raise ReportError for a round that says what no run could say of itself."""
    mechanism = mechanism_from_parameters(done.mechanism)
    if mechanism.parameters() != dict(done.mechanism):
        raise ReportError("the parameters of the mechanism are not as a run writes them")
    if labelled and mechanism.answers_all and done.answers != done.max_answers:
        raise ReportError(
            f"{mechanism.name} answers all of {done.max_answers} queries, not {done.answers}"
        )
    if len({group.group for group in done.groups}) < len(done.groups):
        raise ReportError("two groups have the same name")
    votes = sum(group.total_weight for group in done.groups)
    if done.groups and mechanism.teachers != votes:
        raise ReportError(f"the groups have {votes} votes, {mechanism.teachers} were charged")


def labels_delta(report: Report) -> float:
    """Return δ without what external parts add to it."""
    if not report.external or report.crosscheck is None:
        return report.delta
    return report.crosscheck.delta


def _charged(report: Report, rounds: Sequence[Round], planned: Planned) -> tuple[Terms, Headline]:
    """Return what is charged for what a report states, and what of it came true."""
    delta, tested, done = labels_delta(report), report.tested, rounds[0]
    mechanism = mechanism_from_parameters(done.mechanism)
    alone = tested is not None or done.rule is not None or report.analysis == "composition"
    if alone and len(rounds) != 1:
        raise ReportError("a report of several rounds is of their ledgers")
    if tested is not None:
        return _tested(report, done, TargetPlan(tested.target, delta, tested.refusal_epsilon))
    if done.rule is not None:
        terms: Terms = _session(done, mechanism, delta)
        headline = terms.headline
    elif report.analysis == "composition":
        if not isinstance(mechanism, ComposedMechanism):
            raise ReportError(f"{mechanism.name} is not charged by composition")
        terms = ComposedTerms(mechanism.privacy(done.queries, delta))
        headline = terms.headline
    else:
        plan = _plan(report, planned, delta)
        parts = [each.stated.part for each in report.external]
        scored = ScoredTerms(
            spendings(rounds),
            plan.delta,
            plan,
            prior=report.earlier_draws,
            recorded=DRAWS not in report.unsettled,
            external=External(tuple(parts)),
            stated=(report.data_independent.labels_order, report.data_independent.order),
        )
        terms, headline = scored, scored.drawn(report.sanitized.epsilon)
    met = report.met_target
    if met is not None and headline.epsilon > met:
        raise ReportError(f"epsilon {headline.epsilon:g} does not meet the target {met:g} untested")
    return terms, replace(headline, met_target=met)


def _tested(report: Report, done: Round, target: TargetPlan) -> tuple[Terms, Headline]:
    """Return the terms of a target that was tested; ReportError where no run would test it."""
    passed = report.tested is not None and report.tested.passed
    bound = Bound(report.tested.bound) if report.tested is not None else Bound.TWO_TAIL
    (spending,) = spendings([done])
    labels = ScoredTerms([spending], target.delta)
    if not target.reachable:
        raise ReportError(f"no run tests the target {target.epsilon:g}: nothing passes it")
    if labels.public.epsilon <= target.epsilon:
        raise ReportError(
            f"the labels cost at most {target.epsilon:g} for all votes, so no test was needed"
        )
    orders = tuple(coin_orders(bound, spending.mechanism, target.orders).tolist())
    terms = TargetTerms(labels, target, bound, orders)
    return terms, terms.decided(passed=passed)


def _session(done: Round, mechanism: Mechanism, delta: float) -> SessionTerms:
    """Return the terms of a session; ReportError where its rule costs more than it says."""
    rule = done.rule
    if rule is None or not isinstance(mechanism, ScoredMechanism | ComposedMechanism):
        raise ReportError(f"{mechanism.name} is not asked one by one")
    if rule.delta != delta:
        raise ReportError(f"a rule at delta {rule.delta:g} for {delta:g}")
    fault = rule_fault(rule, mechanism)
    if fault is not None:
        raise ReportError(f"the rule of the session says {rule.epsilon:g}, but {fault}")
    return SessionTerms(mechanism, rule)


def _plan(report: Report, planned: Planned, delta: float) -> ReleasePlan:
    """Return the plan of the release; where nothing is drawn only its order is of any account.

    External parts say what they cost at the order of the ledgers.
    """
    drawn, kind = report.sanitized, ReleaseKind(report.sanitized.release)
    beside = next((part.order for part in report.external if part.order), 2.0)
    order, beta, sigma = drawn.order or beside, drawn.beta or 1e-3, drawn.sigma_release or 1.0
    return planned(ReleasePlan(kind, delta, order, beta, sigma))


def _textbook(rounds: Sequence[Round], mechanisms: Sequence[Mechanism], terms: Terms) -> Crosscheck:
    """Return what a textbook makes of all steps: of a session those it answers in any case."""
    steps: list[Step] = []
    for done, mechanism in zip(rounds, mechanisms, strict=True):
        queries, answers = done.queries, done.max_answers
        if done.rule is not None:
            queries = answers = done.rule.asks
        steps += mechanism.textbook(queries=queries, answers=answers)
    return crosscheck(steps, delta=terms.labels_delta, public=terms.public)
