"""A report is facts and what follows from them: `report_of` computes the second from the first.

Nothing else writes a report. So whoever holds one can read its facts (`facts_of`), have the report
written again, and compare every other field; `verify` does.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, TypeAlias

from pate_cli.accounting.conversion import round_up
from pate_cli.accounting.textbook import Step
from pate_cli.core.errors import LedgerError, ParameterError, ReportError
from pate_cli.core.version import __version__
from pate_cli.core.words import PublicFact, ReleaseKind
from pate_cli.disclosure.cautions import cautions, vacuous_warnings
from pate_cli.disclosure.cost import Cost, Figure, delta_sum
from pate_cli.disclosure.crosscheck import crosscheck
from pate_cli.disclosure.external import Stated
from pate_cli.disclosure.guarantee import (
    DRAWS,
    GAPS,
    INPUTS,
    TOTAL,
    worded,
)
from pate_cli.disclosure.ledger import Round, check_alike
from pate_cli.disclosure.plan import Draw, ReleasePlan
from pate_cli.disclosure.report import (
    Crosscheck,
    DataIndependent,
    GroupGuarantee,
    LabelFile,
    Report,
    Sanitized,
    Tested,
)
from pate_cli.disclosure.runs import Outcome, Run
from pate_cli.disclosure.settings import Settings
from pate_cli.disclosure.stopping import rule_fault
from pate_cli.disclosure.target import TargetPlan
from pate_cli.disclosure.total import Spent, in_full
from pate_cli.mechanisms import mechanism_from_parameters
from pate_cli.mechanisms.base import ComposedMechanism, Mechanism, ScoredMechanism
from pate_cli.votes.facts import Group

Planned: TypeAlias = Callable[[ReleasePlan], ReleasePlan]
"""Gives a sound plan as an analysis charges it."""
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
        private: whether all noise was unpredictable.
        passed: whether labels passed the test of a target; None where nothing was tested.
        plan: how an ε is sanitized if it is, and at which order a ledger has costs.
        drawn: the sanitized ε; None where none is published.
        prior: draws that were made from the same votes before.
        external: other mechanisms on the same records.
        recorded: whether `prior` is known to be all; nothing is promised if not.
        total: whether it is of all runs in `spent`, and no run by itself.
        spent: all runs of the record, with what they cost; None where no record is kept.
        label_names: what the classes are called.
        run, time: the name of the run, and when it began (UTC).
        labels: the file of its labels.
        tool: the version of pate that wrote the report.
    """

    rounds: Sequence[Round]
    private: bool
    passed: bool | None = None
    plan: ReleasePlan | None = None
    drawn: float | None = None
    prior: tuple[Draw, ...] = ()
    external: tuple[Stated, ...] = ()
    recorded: bool = True
    total: bool = False
    spent: Spent | None = None
    label_names: tuple[str, ...] | None = None
    run: str | None = None
    time: str | None = None
    labels: LabelFile | None = None
    tool: str = __version__

    def __post_init__(self) -> None:
        if not self.rounds:
            raise LedgerError("there is no round whose cost could be told; give a ledger of a run")

    @cached_property
    def cost(self) -> Cost:
        """Worst-case cost of everything that is released, if there were no test."""
        cost = functools.reduce(operator.add, map(Cost.of_labels, self.rounds))
        own = () if self.plan is None else self.plan.draws
        return replace(cost, draws=(*self.prior, *own), stated=self.external)

    @property
    def tested(self) -> TargetPlan | None:
        """The target, where labels leave only if they pass its test."""
        return None if self.passed is None else self.rounds[0].target


def run_facts(done: Round, **came: Any) -> ReportFacts:
    """Return the facts of one run by itself.

    Args:
        done: what it was told, and what was answered.
        **came: other fields of `ReportFacts`: `passed` of a test, `drawn` of a draw.
    """
    return ReportFacts(rounds=[done], private=done.private, plan=done.sanitizer, **came)


def worst_case(cost: Cost) -> DataIndependent:
    """Return the ε for all votes of everything and of the labels alone, as reports have them."""
    return _stated(cost.own, cost.labels.own)


def _stated(everything: Figure, labels: Figure) -> DataIndependent:
    return DataIndependent(
        epsilon=round_up(everything.epsilon),
        order=everything.order,
        method=everything.method,
        labels_epsilon=round_up(labels.epsilon),
        labels_order=labels.order,
        labels_method=labels.method,
    )


def group_guarantees(
    groups: Sequence[Group], cost: Cost | None, *, epsilon: float, delta: float
) -> tuple[GroupGuarantee, ...]:
    """Return the ε of every group of teachers: the headline, or its own worst case if smaller.

    A record of group g moves at most K_g votes: what was spent is priced again for so many, the
    draws and external parts in full (accounting/THEORY.md, section 15).

    Args:
        groups: of the teachers.
        cost: of everything; None where the headline is not a worst case.
        epsilon, delta: the headline.
    """
    own = dict.fromkeys((group.votes_per_record for group in groups), epsilon)
    if cost is not None and not cost.pairs:
        own = {votes: min(epsilon, cost.moving(votes).own.epsilon) for votes in own}
    return tuple(
        GroupGuarantee(**vars(group), epsilon=own[group.votes_per_record], delta=delta)
        for group in groups
    )


def report_of(facts: ReportFacts) -> Report:
    """Return the report that follows from facts, every number and sentence of it."""
    rounds, plan, spent = facts.rounds, facts.plan, facts.spent
    read_off = tuple(fact for fact in PublicFact if any(fact in done.read_off for done in rounds))
    mechanisms = [mechanism_from_parameters(done.mechanism) for done in rounds]
    named: dict[str, Any] = {"name": "composition", "rounds": len(rounds)}
    label_sets = {done.label_set for done in rounds}
    analysis = "tight" if facts.total else rounds[0].analysis
    prior, external, verified = facts.prior, facts.external, True
    if facts.total:
        if spent is None:
            raise ReportError("a total of no runs")
        public, delta, labels_delta = _stated(*in_full(spent.runs)), spent.delta, spent.delta
        epsilon, kind = round_up(spent.epsilon), TOTAL
        prior = tuple(draw for run in spent.runs for draw in run.draws)
        external = tuple(run.external for run in spent.runs if run.external is not None)
        verified = all(run.claimed for run in spent.runs)
    else:
        public, labels_delta = worst_case(facts.cost), facts.cost.own.delta
        delta, (epsilon, kind) = _with_others(labels_delta, external), _headline(facts, public)
    target = rounds[0].target
    met = None if target is None or target.tested or facts.total else target.epsilon
    unsettled = (
        *(fact.value for fact in read_off),
        *(() if facts.recorded else (DRAWS,)),
        *(() if verified else (INPUTS,)),
    )
    found = Report(
        epsilon=epsilon,
        epsilon_kind=kind,
        delta=delta,
        private=facts.private,
        sound=False,
        analysis=analysis,
        conversion=_CONVERSIONS[analysis],
        mechanism=dict(rounds[0].mechanism) if len(rounds) == 1 else named,
        queries=sum(done.queries for done in rounds),
        answers=sum(done.answers for done in rounds),
        max_answers=sum(done.max_answers for done in rounds),
        sanitized=_sanitized(facts),
        data_independent=public,
        rounds=tuple(stated(done) for done in rounds),
        warnings=(
            *(GAPS[word] for word in unsettled),
            *(() if plan is None else plan.caveats),
            *cautions(*mechanisms, delta=labels_delta),
            *vacuous_warnings(epsilon, composed=analysis == "composition"),
        ),
        tested=_tested(facts, mechanisms[0]),
        spent=spent,
        label_set=next(iter(label_sets)) if len(label_sets) == 1 else None,
        label_names=facts.label_names,
        groups=group_guarantees(
            rounds[0].groups,
            None if facts.total or facts.tested is not None else facts.cost,
            epsilon=epsilon,
            delta=delta,
        ),
        earlier_draws=prior,
        external=external,
        met_target=met,
        unsettled=unsettled,
        crosscheck=None if facts.total else _textbook(rounds, mechanisms, labels_delta, public),
        labels=facts.labels,
        run=facts.run,
        time=facts.time,
        tool=facts.tool,
    )
    return worded(found)


def _with_others(delta: float, external: Sequence[Stated]) -> float:
    """Return δ with those of all external parts; ParameterError where it says nothing."""
    added = [part.pair[1] for part in external if part.pair[1] > 0.0]
    total = delta_sum([delta, *added]) if added else delta
    if total >= 1.0:
        raise ParameterError(f"with the external parts delta is {total:g}, which says nothing")
    return total


def stated(done: Round) -> Round:
    """Return a round as reports have it: without its name, and with draws apart."""
    return Round.of(done, answers=done.answers, sanitizer=None)


def _headline(facts: ReportFacts, public: DataIndependent) -> tuple[float, str]:
    """Return the ε that a report opens with, and its kind.

    It is the target of labels that were tested, what their refusal costs, or the smaller of the
    worst case and the sanitized ε.
    """
    tested = facts.tested
    if tested is not None:
        if facts.passed:
            return tested.epsilon, "target"
        return tested.refusal_epsilon, "refusal"
    if facts.plan is None or facts.drawn is None or public.epsilon <= facts.drawn:
        return public.epsilon, "worst-case"
    return facts.drawn, facts.plan.kind.value


def _sanitized(facts: ReportFacts) -> Sanitized:
    plan = facts.plan
    if plan is None or facts.drawn is None:
        return Sanitized(ReleaseKind.NONE)
    return Sanitized(
        release=plan.kind,
        epsilon=facts.drawn,
        order=plan.order,
        beta=plan.beta,
        sigma_release=plan.sigma,
        delta_failure=plan.delta_shift,
        release_rdp=plan.release_rdp,
        release_rdp_published=plan.claimed_rdp,
    )


def _tested(facts: ReportFacts, mechanism: Mechanism) -> Tested | None:
    target = facts.tested
    if target is None or facts.passed is None or not isinstance(mechanism, ScoredMechanism):
        return None
    return Tested(
        passed=facts.passed,
        target=target.epsilon,
        delta=target.delta,
        refusal_epsilon=target.refusal_epsilon,
        orders=target.test_orders(mechanism),
        distances=target.distances,
        bound=target.bound,
    )


def facts_of(report: Report, planned: Planned) -> ReportFacts:
    """Return the facts that a report states; nothing else of the report is looked at.

    Args:
        report: written by anybody.
        planned: gives the release plan as the analysis of the report has it.

    Raises:
        PateError: facts that no run has, or that contradict each other.
    """
    rounds, spent, total = report.rounds, report.spent, report.epsilon_kind == TOTAL
    refused = report.tested is not None and not report.tested.passed
    for done in rounds:
        if refused and done.answers:
            raise ReportError(f"{done.answers} answers, though the labels did not pass")
        # A total tells of runs that were refused or are pending, too.
        if not refused and not total:
            check_answers(done)
    facts = ReportFacts(
        rounds=rounds,
        private=report.private and all(done.private for done in rounds),
        total=total,
        recorded=DRAWS not in report.unsettled,
        spent=None if spent is None else Spent.of(spent.runs),
        label_names=report.label_names,
        run=report.run,
        time=report.time,
        labels=report.labels,
        tool=report.tool,
    )
    return facts if total else _with_charges(facts, report, planned)


def run_of(report: Report) -> Run:
    """Return the run that a report of one round is of, as a record has it.

    Raises:
        ReportError: a report of several rounds.
        LedgerError: numbers that no run has.
    """
    if len(report.rounds) != 1:
        raise ReportError("a report of several rounds is of no run by itself")
    refused = report.tested is not None and not report.tested.passed
    return Run.of(
        id=report.run or f"report {report.time}",
        outcome=Outcome.REFUSED if refused else Outcome.LABELLED,
        time=report.time,
        settings=settings_of(report),
        answers=None if refused else report.answers,
        promised=report.claims("all-votes"),
    )


def settings_of(report: Report) -> Settings:
    """Return what the run of a report of one round was told, its draw among it."""
    (done,) = report.rounds
    return Settings.of(done, sanitizer=plan_of(report)).published


def check_answers(done: Round) -> None:
    """ReportError where labels of a mechanism that answers all queries leave some out."""
    mechanism = mechanism_from_parameters(done.mechanism)
    if mechanism.answers_all and done.answers != done.max_answers:
        raise ReportError(
            f"{mechanism.name} answers all of {done.max_answers} queries, not {done.answers}"
        )


def _with_charges(facts: ReportFacts, report: Report, planned: Planned) -> ReportFacts:
    """Return the facts with how they are charged; ReportError for what no run is charged so."""
    tested, done, cost = report.tested, facts.rounds[0], facts.cost
    if len(facts.rounds) != 1:
        if cost.pairs or any(each.rule or each.target for each in facts.rounds):
            raise ReportError("a report of several rounds is of their ledgers")
        check_alike(facts.rounds)
    check_rule(done)
    target = done.target
    if (tested is None) is not (done.tested is None):
        raise ReportError("labels are tested where there is a target that needs it, and only there")
    if tested is not None and target is not None:
        if not target.reachable:
            raise ReportError(f"no run tests the target {target.epsilon:g}: nothing passes it")
        if cost.pairs or cost.own.epsilon <= target.epsilon:
            raise ReportError(
                f"the labels cost at most {target.epsilon:g} for all votes, so no test was needed"
            )
        return replace(facts, passed=tested.passed)
    if not cost.pairs and done.rule is None:
        facts = replace(
            facts,
            plan=planned(plan_of(report)),
            drawn=report.sanitized.epsilon,
            prior=report.earlier_draws,
            external=report.external,
        )
    if target is not None:
        epsilon, _ = _headline(facts, worst_case(facts.cost))
        if epsilon > target.epsilon:
            raise ReportError(
                f"epsilon {epsilon:g} does not meet the target {target.epsilon:g} untested"
            )
    return facts


def check_rule(settings: Settings) -> None:
    """ReportError where there is a rule of a session that costs more than it says."""
    rule, mechanism = settings.rule, mechanism_from_parameters(settings.mechanism)
    if rule is None:
        return
    if not isinstance(mechanism, ScoredMechanism | ComposedMechanism):
        raise ReportError(f"{mechanism.name} is not asked one by one")
    fault = rule_fault(rule, mechanism)
    if fault is not None:
        raise ReportError(f"the rule of the session says {rule.epsilon:g}, but {fault}")


def plan_of(report: Report) -> ReleasePlan:
    """Return the plan of the release; where nothing is drawn only its order is of any account."""
    drawn, kind = report.sanitized, report.sanitized.release
    order, beta, sigma = drawn.order or 2.0, drawn.beta or 1e-3, drawn.sigma_release or 1.0
    return ReleasePlan(kind, report.rounds[0].delta, order, beta, sigma)


def _textbook(
    rounds: Sequence[Round],
    mechanisms: Sequence[Mechanism],
    delta: float,
    public: DataIndependent,
) -> Crosscheck:
    """Return what a textbook makes of all steps: of a session those it answers in any case."""
    steps: list[Step] = []
    for done, mechanism in zip(rounds, mechanisms, strict=True):
        queries, answers = done.queries, done.max_answers
        if done.rule is not None:
            queries = answers = done.rule.asks
        steps += mechanism.textbook(queries=queries, answers=answers)
    return crosscheck(steps, delta=delta, public=public)
