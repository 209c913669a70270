"""`report_of` computes a report from its facts, and `quote_of` a quote from settings.

No other function makes a report. So anybody who has a report can compute it again from its facts
and compare every other field, as `verify` does. A quote is made before a run, and states the
largest ε that the report of the run can have.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pate_cli.accounting.composition import Step, Textbook, textbook
from pate_cli.accounting.conversion import round_up
from pate_cli.accounting.few_votes import touched
from pate_cli.core.errors import LedgerError, ReportError
from pate_cli.core.said import Pairs, Said
from pate_cli.core.words import PublicFact
from pate_cli.disclosure.cost import Cost
from pate_cli.disclosure.figures import nats, pair, shown, verdict
from pate_cli.disclosure.guarantee import TOTAL, guesses_of, sentence, votes_of, worded
from pate_cli.disclosure.ledger import Round, check_alike
from pate_cli.disclosure.report import (
    SCHEMA_VERSION,
    DataIndependent,
    GroupGuarantee,
    Report,
    ReportFacts,
)
from pate_cli.disclosure.runs import Outcome, Run, in_full
from pate_cli.disclosure.settings import Settings
from pate_cli.files.document import SPARING, encoded
from pate_cli.files.results import Result
from pate_cli.mechanisms.base import ComposedMechanism
from pate_cli.votes.facts import Group

_OF_REPORT: Final = (
    *("epsilon", "delta", "sound", "queries", "max_answers", "data_independent"),
    *("record_epsilon", "crosscheck", "groups", "warnings"),
)


def run_facts(done: Round, **came: Any) -> ReportFacts:
    """Return the facts of a report on one run.

    Args:
        done: the settings of the run, and the number of its answers. **came: other fields of
            `ReportFacts`, such as `passed` after a release test or `sanitized` after a draw.
    """
    return ReportFacts(rounds=(stated(done),), **came)


def stated(done: Round) -> Round:
    """Return a round as reports contain it, without its name.

    A plan `sanitizer` that draws no sanitized ε is left out, because only ledgers need the plan.
    """
    return Round.of(done.published, answers=done.answers)


def run_of(facts: ReportFacts) -> Run:
    """Return the run that a report describes, in the form in which a record contains runs.

    Raises:
        ReportError: the report covers several rounds, and no sanitized ε was drawn for them.
    """
    plan = facts.sanitizer
    came: dict[str, Any]
    if plan is not None:
        promised = not facts.seeded and not facts.drawn_as_published
        promised = promised and all(done.private for done in facts.rounds)
        came = {"outcome": Outcome.RELEASED, "draw": plan, "promised": promised}
    elif len(facts.rounds) != 1:
        raise ReportError(
            f"the report covers {len(facts.rounds)} rounds and no sanitized epsilon was drawn for "
            "them, so it does not describe a single run; give a report or record of each run"
        )
    elif facts.refused:
        came = {"outcome": Outcome.REFUSED, "settings": facts.rounds[0]}
    else:
        (done,) = facts.rounds
        came = {"outcome": Outcome.LABELLED, "settings": done, "answers": done.answers}
    return Run.of(id=facts.run or f"report {facts.time}", time=facts.time, **came)


def group_guarantees(
    groups: Sequence[Group], cost: Cost | None, *, epsilon: float, delta: float
) -> tuple[GroupGuarantee, ...]:
    """Return the ε of every group of teachers, which is at most the ε of the report.

    A record of group g changes at most K_g votes, so the worst-case cost of the labels is computed
    again for K_g votes. The costs of drawing a sanitized ε and of external mechanisms are the same
    for every group (THEORY.md, section 19).

    Args:
        groups: the groups of the teachers.
        cost: the cost of everything in the report; None if every group has the ε of the report:
            in a report on the total cost of several runs, and after a release test.
        epsilon, delta: the (ε, δ) that the report states.
    """
    own = dict.fromkeys((group.votes_per_record for group in groups), epsilon)
    if cost is not None and not cost.pairs:
        own = {votes: min(epsilon, cost.moving(votes).own.epsilon) for votes in own}
    return tuple(
        GroupGuarantee(**vars(group), epsilon=own[group.votes_per_record], delta=delta)
        for group in groups
    )


def report_of(facts: ReportFacts) -> Report:
    """Return the report that follows from facts, with every number and sentence.

    Raises:
        LedgerError: there is no round.
        ReportError: the facts contradict each other.
    """
    if not facts.rounds:
        raise LedgerError("there is no round, and so no cost to report; give the ledger of a run")
    for fault in _contradictions(facts):
        raise ReportError(fault)
    rounds, target, spent = facts.rounds, facts.target, facts.spent
    if facts.total and spent is not None:
        everything, labels = in_full(spent.runs)
        delta = labels_delta = spent.delta
    else:
        everything, labels = facts.cost.own, facts.cost.labels.own
        delta, labels_delta = everything.delta, labels.delta
    public = DataIndependent.of(everything, labels)
    epsilon, kind = _head(facts, public)
    if target is not None and facts.passed is None and epsilon > target.epsilon:
        raise ReportError(
            f"the report has epsilon {epsilon:g}, which is above its target {target.epsilon:g}, "
            "but the labels had no release test; do not use this report, and make it again"
        )
    unsettled, named = tuple(_unsettled(facts)), dict(rounds[0].mechanism)
    # A sanitized ε is only valid for the given votes, but training changes votes at random.
    whatever, training = public.epsilon if kind == "upper" else epsilon, facts.training
    return worded(
        Report(
            **{name: getattr(facts, name) for name in ReportFacts.__dataclass_fields__},
            epsilon=epsilon,
            epsilon_kind=kind,
            delta=delta,
            private=not facts.seeded and all(done.private for done in rounds),
            sound=not unsettled and not facts.drawn_as_published,
            mechanism=named if len(rounds) == 1 else {"name": "composition", "rounds": len(rounds)},
            queries=sum(done.queries for done in rounds),
            answers=sum(done.answers for done in rounds),
            max_answers=sum(done.max_answers for done in rounds),
            data_independent=public,
            record_epsilon=None if training is None else training.amplified(whatever, delta),
            groups=group_guarantees(
                rounds[0].groups,
                None if facts.total or facts.passed is not None else facts.cost,
                epsilon=epsilon,
                delta=delta,
            ),
            unsettled=unsettled,
            crosscheck=None if facts.total else _crosscheck(rounds, labels_delta),
        )
    )


def textbook_steps(rounds: Sequence[Settings]) -> list[Step]:
    """Return all steps that a textbook accountant composes.

    For a session, the accountant composes N queries and N answers. N is `StopRule.asks`, the number
    of queries that a session may ask even if it answers every query.
    """
    return [
        step
        for done in rounds
        for queries, answers in [touched(done.few, *done.charged)]
        for step in done.aggregator.textbook(queries=queries, answers=answers)
    ]


def _crosscheck(rounds: Sequence[Settings], delta: float) -> Textbook:
    """Return the ε's of textbook accountants for rounds, rounded up."""
    found = astuple(textbook(textbook_steps(rounds), delta=delta))
    return Textbook(*(None if each is None else round_up(each) for each in found))


def _unsettled(facts: ReportFacts) -> Iterator[str]:
    """Yield the reasons why ε is no valid bound; sentences.ini has a sentence gap-… for each."""
    yield from (fact for fact in PublicFact if any(fact in done.read_off for done in facts.rounds))
    if not facts.recorded:
        yield "draws"
    if facts.total and not all(run.claimed for run in facts.runs):
        yield "inputs"


def _head(facts: ReportFacts, public: DataIndependent) -> tuple[float, str]:
    """Return the ε that a report states, and its kind.

    A report on the total cost of all runs states the ε of the total cost. If there was a release
    test, the report states the target ε after a passed test, and the cost of failing after a failed
    test. A report without a total cost and without a release test states the smaller of the
    worst-case ε and the sanitized ε.
    """
    target, plan, drawn = facts.target, facts.plan, facts.sanitized
    if facts.total and facts.spent is not None:
        return round_up(facts.spent.epsilon), TOTAL
    if target is not None and facts.passed is not None:
        return (target.epsilon, "target") if facts.passed else (target.refusal_epsilon, "refusal")
    if plan is None or drawn is None or public.epsilon <= drawn:
        return public.epsilon, "worst-case"
    return drawn, plan.kind.value


def _contradictions(facts: ReportFacts) -> Iterator[str]:
    """Yield contradictions between facts: no run and no release can have all these facts."""
    rounds, runs = facts.rounds, facts.runs
    if facts.total:
        draws = tuple(run.draw for run in runs if run.draw is not None)
        parts = tuple(run.external for run in runs if run.external is not None)
        if not runs:
            yield "the report is a total, but has no runs"
        if (facts.earlier_draws, facts.external) != (draws, parts):
            yield "the draws and external parts of a total must be those of its runs"
        if (facts.passed, facts.sanitizer, facts.sanitized) != (None, None, None):
            yield "a total must not have a test or a draw of its own"
        return
    check_alike(rounds)
    if any(done.id or done.ensemble for done in rounds):
        yield "only a ledger may contain the name of a round or of its ensemble"
    plan = facts.plan
    if (facts.sanitized is None) != (plan is None or not plan.publishes_draw):
        yield "there is a sanitized epsilon without parameters, or parameters without an epsilon"
    if (facts.passed is None) == any(done.tested for done in rounds):
        yield "the release test has no outcome, or there is an outcome without a release test"
    if facts.refused and any(done.answers for done in rounds):
        yield f"the run has {rounds[0].answers} answers, although the release test failed"
    if not facts.refused:
        yield from (fault for done in rounds for fault in answer_faults(done))
    whole = facts.passed is not None or facts.cost.pairs or any(done.rule for done in rounds)
    if whole and (len(rounds) > 1 or facts.draws or facts.external):
        yield "a run without an RDP cost cannot share a report with other runs or with a draw"
    if len(rounds) > 1 and any(done.target for done in rounds):
        yield "a report on several rounds needs their ledgers, so no round may have a target"
    if facts.external and facts.cost.delta < facts.cost.least_delta:
        yield "an external curve or the noise needs a larger delta than the delta of the report"


def answer_faults(done: Round) -> Iterator[str]:
    """Yield a fault if a mechanism that must answer all queries left some unanswered."""
    if done.aggregator.answers_all and done.answers != done.max_answers:
        name = done.aggregator.name
        yield f"{name} answers all {done.max_answers} queries, but the report has {done.answers}"


@dataclass(frozen=True, repr=False, kw_only=True)
class Quote(Result):
    """The worst case of a run, before anything is spent; public.

    Attributes:
        settings: the settings of the run; in a saved quote, the fields of the settings are beside
            the other fields of the quote.
        epsilon: the worst-case ε of everything that would be released, nats; if the run has a
            release test, the ε of its target.
        delta, sound, queries, max_answers, groups, data_independent, record_epsilon, crosscheck:
            the fields that the report of the run would have, as in `Report`.
        threshold: the threshold T that the mechanism computes from other parameters; None if it
            computes none.
        chances: the mean, worst and best probability that made-up teachers pass the release test,
            with descriptions of these teachers; None without a test.
        expected: for made-up teachers, the expected answers, their agreement with the plurality and
            the pass probability. `pate` tries several shares of right votes; `expected` is for the
            middle share, which the key `agreement` states. None without a test.
        warnings: warnings for the person who asks for the run.
    """

    settings: Settings
    epsilon: float
    delta: float
    sound: bool
    queries: int
    max_answers: int
    threshold: float | None = field(default=None, metadata=SPARING)
    data_independent: DataIndependent
    record_epsilon: float | None = field(default=None, metadata=SPARING)
    crosscheck: Textbook | None = None
    chances: Mapping[str, Any] | None = field(default=None, metadata=SPARING)
    expected: Mapping[str, float] | None = field(default=None, metadata=SPARING)
    groups: tuple[GroupGuarantee, ...] = field(default=(), metadata=SPARING)
    warnings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the quote as JSON-ready values."""
        found = encoded(self)
        settings = found.pop("settings")
        if "target" in settings:
            forecast = {name: found.pop(name) for name in ("chances", "expected") if name in found}
            settings["target"] |= forecast
        return {"schema_version": SCHEMA_VERSION, "dry_run": True} | settings | found

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return a table with one row: the number of queries, the cap on answers, and ε."""
        names = ("queries", "max_answers", "epsilon")
        return {name: np.array([getattr(self, name)]) for name in names}

    @property
    def releasable(self) -> bool:
        """Return True, because a quote only depends on public numbers."""
        return True

    def said(self) -> Said:
        """Return the queries, the cost and the forecast of the run, by title."""
        return [Pairs([*self._rows()])]

    def _rows(self) -> Iterator[tuple[str, str]]:
        yield "dry run", "the votes are valid; nothing was drawn, spent or labelled"
        yield "would ask", f"{self.queries} rows, for at most {self.max_answers} answers"
        if self.expected is not None:
            answers, right = self.expected["answers"], self.expected["agreement"]
            told = f"about {answers:.0f} answers, if teachers are right {right:.0%} of the time"
            yield "expect", told
        told = f"at most {pair(self.epsilon, self.delta).removeprefix('epsilon ')}"
        yield "epsilon", f"{told}; {self._reading}"
        if self.record_epsilon is not None:
            yield "one record", sentence("one-record", epsilon=nats(self.record_epsilon))
        yield from guesses_of([self.settings])
        yield from votes_of([self.settings])
        tested = self.settings.tested
        if tested is not None:
            told = f"a failed test gives no labels and costs {shown(tested.refusal_epsilon)}"
            if self.chances is not None:
                passes = math.floor(100.0 * self.chances["worst"]["chance"])
                told = f"in the worst case that was tried, {passes} in 100 runs pass; {told}"
            yield "target", told
        if self.sound:
            yield "privacy", verdict(self.epsilon, self.delta)
        else:
            yield "privacy", "none (see warning)"

    def headline(self) -> str:
        """Return the worst case in one phrase."""
        return f"at most {pair(self.epsilon, self.delta)}, {self._reading}"

    @property
    def _reading(self) -> str:
        return "whatever the votes" if self.sound else "nothing is promised"


def quote_of(settings: Settings) -> Quote:
    """Return the quote of a run that passes its release test and gives `max_answers` answers."""
    done = Round.of(settings, answers=settings.max_answers)
    report = report_of(run_facts(done, passed=None if settings.tested is None else True))
    mechanism = settings.aggregator
    return Quote(
        settings=settings.published,
        threshold=mechanism.threshold if isinstance(mechanism, ComposedMechanism) else None,
        **{name: getattr(report, name) for name in _OF_REPORT},
    )
