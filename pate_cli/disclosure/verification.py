"""Checks of a report by itself and by the record: what it states, and all that follows from it.

Every field is computed again, compared with something that was given, or named as not checkable;
its declaration says which (`disclosure.checked`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from pate_cli.core.codec import encoded
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import PateError, ReportError, printable
from pate_cli.core.version import __version__
from pate_cli.disclosure.facts import Planned, drawn_of, facts_of, labels_delta, report_of, run_of
from pate_cli.disclosure.guarantee import TOTAL
from pate_cli.disclosure.record import Outcome, Run, RunKind, SpendRecord
from pate_cli.disclosure.report import Report
from pate_cli.disclosure.settings import RowsAsked
from pate_cli.disclosure.stopping import rule_fault
from pate_cli.mechanisms import mechanism_from_parameters
from pate_cli.mechanisms.base import ComposedMechanism, ScoredMechanism

OK, FAILED, OPEN, SKIPPED = "ok", "FAILED", "not checkable", "not checked"

# What is checked or cannot be, as it stands in a sentence.
COMPUTED: Final = "numbers and words"
PROMISE: Final = "promise"
RUNS: Final = "runs"
RELEASE_TEST: Final = "the random draw of the release test"
SANITIZING: Final = "the random draw of the sanitized epsilon"
MISSING_RUNS: Final = "whether runs are missing, and what earlier ones did"
GUESSES: Final = "what the guesses of the prior were made of"
EXTERNAL: Final = "what others state"

_ROUND_OFF: Final = 1e-9  # of what is published with all digits, on another machine
_MOST_VOTES: Final = 1_000_000  # what they cost takes time and memory in proportion
_LONGEST: Final = 60
_OF_A_RUN: Final = (
    "kind", "outcome", "time", "delta", "epsilon", "refusal_epsilon", "answers", "draw",
)  # fmt: skip
_ENDS: Final = {
    RunKind.WORST_CASE: {Outcome.PENDING, Outcome.LABELLED},
    RunKind.COMPOSITION: {Outcome.PENDING, Outcome.LABELLED},
    RunKind.SESSION: {Outcome.PENDING, Outcome.LABELLED},
    RunKind.TARGET: {Outcome.PENDING, Outcome.LABELLED, Outcome.REFUSED},
    RunKind.RELEASE: {Outcome.PENDING, Outcome.RELEASED},
    RunKind.EXTERNAL: {Outcome.STATED},
}


@dataclass(frozen=True)
class Check:
    """One thing that was looked at.

    Attributes:
        name: what.
        outcome: `ok`, `FAILED`, `not checkable` from outside, or `not checked` because it was not
            given or the format of the labels does not carry it.
        detail: what was found, or why nothing could be; printable, whatever the report holds.
    """

    name: str
    outcome: str
    detail: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "detail", printable(self.detail))


def check_size(rounds: Iterable[RowsAsked]) -> None:
    """Raise ReportError for rounds that take too long to compute again, or too much memory."""
    for done in rounds:
        mechanism = mechanism_from_parameters(done.mechanism)
        votes = mechanism.most_votes
        if votes > _MOST_VOTES:
            raise ReportError(
                f"more than {_MOST_VOTES} teachers are not computed again; a vote of a prior "
                "counts as one"
            )
        for name, value in mechanism.parameters().items():
            if name.startswith("sigma") and votes > _MOST_VOTES * value:
                raise ReportError(
                    f"a {name} of {value:g} votes among {votes} teachers is not computed again: "
                    "it takes too long"
                )


def checks_of(
    report: Report,
    data: Mapping[str, Any],
    *,
    planned: Planned,
    record: SpendRecord | None = None,
) -> Iterator[Check]:
    """Yield the checks of a report that need neither votes nor labels.

    Args:
        report: written by anybody.
        data: the JSON object that it was read from.
        planned: gives a release plan as the analysis of the report has it.
        record: of the same teachers, to be compared with the runs that the report tells of.

    Raises:
        ReportError: as for `check_size`.
    """
    try:
        check_size(report.rounds)
        check_size(_asked(() if report.spent is None else report.spent.runs))
    except ReportError:
        raise
    except (PateError, ValueError, OverflowError) as error:
        yield Check(COMPUTED, FAILED, f"no run has these settings: {error}")
        return
    try:
        again = report_of(facts_of(report, planned))
        runs = list(_run_faults(report))
    except (PateError, ValueError, ArithmeticError) as error:
        yield Check(COMPUTED, FAILED, f"no run has these settings: {error}")
        return
    apart = [
        f"{path} is {_shown(here)}, what it states gives {_shown(there)}"
        for path, here, there in _differences(data, again.to_dict())
    ]
    worst = again.data_independent
    found = (
        f"computed again from what it states: for all votes epsilon {worst.epsilon:g} for "
        f"everything, {worst.labels_epsilon:g} for the labels"
    )
    if report.tool != __version__:
        found += f"; pate {_shown(report.tool)} wrote it"
    yield Check(COMPUTED, FAILED if apart else OK, apart[0] if apart else found)
    if report.spent is not None:
        found = f"what they cost together was computed again ({report.spent.count} in all)"
        yield Check(RUNS, FAILED if runs else OK, runs[0] if runs else found)
    claimed = again.private and again.sound
    yield Check(PROMISE, OK if claimed else FAILED, again.summary)
    yield _of_record(report, record)
    yield from _not_checkable(report)


def _not_checkable(report: Report) -> Iterator[Check]:
    """Yield what nobody can check from outside, whatever is given."""
    if report.tested is not None:
        yield Check(RELEASE_TEST, OPEN, "its chance follows from the votes, which are secret")
    if report.sanitized.epsilon is not None:
        yield Check(SANITIZING, OPEN, "the votes behind sanitized.epsilon are secret")
    if any(done.prior for done in report.rounds):
        yield Check(GUESSES, OPEN, "whether the votes or a private record shaped them")
    if report.external:
        yield Check(EXTERNAL, OPEN, "external parts are as files state them, which others keep")


# --- the runs of the record ----------------------------------------------------------------------


def _of_record(report: Report, record: SpendRecord | None) -> Check:
    if record is not None:
        faults = list(record_faults(report, record))
        found = "the record tells of all of them, and of no other before this report"
        return Check(MISSING_RUNS, FAILED if faults else OK, faults[0] if faults else found)
    if report.spent is None:
        return Check(MISSING_RUNS, OPEN, "earlier runs are not tracked")
    return Check(MISSING_RUNS, OPEN, "the record can tell, which the holder of the votes keeps")


def record_faults(report: Report, record: SpendRecord) -> Iterator[str]:
    """Yield where a record tells otherwise of the runs of a report, or of more before it."""
    own = None if report.run is None else record.known(report.run)
    if own is not None:
        yield from own_run_faults(report, own.public)
    told = () if report.spent is None else report.spent.runs
    known = {run.id: run.public for run in record.runs}
    if own is None and not told:
        yield "the record does not tell of this run"
    for run in told:
        there = known.get(run.id)
        if there is None:
            yield f"the record does not tell of run {run.id}"
        elif there != run and not _went_on(run, there):
            yield f"run {run.id} is another in the record"
    names = {run.id for run in told}
    before = record.runs[: record.runs.index(own)] if own is not None else record.runs
    for run in before if report.spent is not None else ():
        early = own is not None or (run.time or "") < (report.time or "")
        if early and run.id not in names:
            yield f"run {run.id} of the record is left out"


def _went_on(told: Run, known: Run) -> bool:
    """Return whether a run was pending, or a session asked less, when the report was written."""
    ended = replace(told, outcome=known.outcome, answers=known.answers)
    if told.outcome is Outcome.PENDING:
        ended = replace(ended, total_epsilon=known.total_epsilon, total_delta=known.total_delta)
    if told.kind is RunKind.SESSION and told.asked is not None and known.asked is not None:
        asked, there = told.asked, known.asked
        more = replace(
            asked, queries=there.queries, max_answers=there.max_answers, prior=there.prior
        )
        ended = replace(ended, asked=more)
        return asked.queries <= there.queries and ended == known
    return told.outcome is Outcome.PENDING and ended == known


def _run_faults(report: Report) -> Iterator[str]:
    """Yield what contradicts itself among the runs that a report tells of."""
    spent = report.spent
    if spent is None:
        return
    if len({run.id for run in spent.runs}) < len(spent.runs):
        yield "a run stands there twice"
    yield from (f"spent.{fault}" for fault in faults_of_runs(spent.runs))
    told = [run.answered for run in spent.runs if run.answered is not None]
    rounds = list(report.rounds)
    if report.epsilon_kind == TOTAL:
        if told != rounds:
            yield "its runs are not those of rounds"
        return
    if any(rounds.count(each) > told.count(each) for each in rounds):
        yield "a round is not among its runs"
    own = next((run for run in spent.runs if run.id == report.run), None)
    if own is not None:
        yield from own_run_faults(report, own)
    elif report.labels or report.tested or report.sanitized.epsilon is not None:
        yield "this run is not among its runs"


def _asked(runs: Sequence[Run]) -> list[RowsAsked]:
    return [run.asked for run in runs if run.asked is not None]


def faults_of_runs(runs: Sequence[Run]) -> Iterator[str]:
    """Yield what contradicts itself in runs, each by itself, as a record or a report has them.

    Raises:
        ReportError: as for `check_size`.
    """
    check_size(_asked(runs))
    costs: dict[str, float | None] = {}
    for number, run in enumerate(runs):
        yield from (f"runs.{number}: {fault}" for fault in _faults_of(run, costs))


def told_apart(run: Run, other: Run) -> bool:
    """Return whether two accounts of the same run contradict each other."""
    if Outcome.PENDING in (run.outcome, other.outcome) or run.kind is RunKind.SESSION:
        return (run.kind, run.delta) != (other.kind, other.delta)
    both = [
        (each.kind, each.outcome, each.epsilon, each.refusal_epsilon, each.delta, each.answers)
        for each in (run, other)
    ]
    return both[0] != both[1] or run.answered != other.answered


def _faults_of(run: Run, costs: dict[str, float | None]) -> Iterator[str]:
    """Yield what contradicts itself in one run; `costs` keeps what runs of the same settings cost.

    The constructors of its parts refuse numbers that no run has.
    """
    if run.outcome not in _ENDS[run.kind]:
        yield f"a {run.kind} run does not end as {run.outcome}"
    if (run.answers is not None) != (run.asked is not None and run.outcome is Outcome.LABELLED):
        yield f"answers {run.answers} of a run that is {run.outcome}"
    if (run.refusal_epsilon is not None) != (run.kind is RunKind.TARGET):
        yield f"refusal_epsilon of a {run.kind} run"
    done = run.rows
    if done is not None and run.outcome is Outcome.LABELLED:
        mechanism = mechanism_from_parameters(done.mechanism)
        if mechanism.answers_all and done.answers != done.max_answers:
            yield f"{mechanism.name} answers all of {done.max_answers} queries, not {done.answers}"
    if run.external is not None and run.id != run.external.digest:
        yield "its id is not that of what is stated"
    key = repr((run.kind, run.delta, run.asked, run.draw, run.external))
    if key not in costs:
        costs[key] = _own_cost(run)
    if costs[key] is not None and run.epsilon is not None and not _alike(run.epsilon, costs[key]):
        yield f"epsilon is {_shown(run.epsilon)}, its settings give {_shown(costs[key])}"


def _own_cost(run: Run) -> float | None:
    """Return the ε that a run costs by itself, from its settings; None where nothing tells.

    Raises:
        PateError: settings that no run has.
    """
    rule = None if run.asked is None else run.asked.rule
    if run.kind is RunKind.SESSION and run.asked is not None and rule is not None:
        mechanism = mechanism_from_parameters(run.asked.mechanism)
        if isinstance(mechanism, ScoredMechanism | ComposedMechanism):
            fault = rule_fault(rule, mechanism)
            if fault is not None:
                raise ReportError(f"the rule of the session says {rule.epsilon:g}, but {fault}")
    return run.price


def own_run_faults(report: Report, own: Run) -> Iterator[str]:
    """Yield where the run of a report stands otherwise among those of the record."""
    if own.kind is RunKind.RELEASE:
        expected: dict[str, Any] = {"time": report.time, "delta": labels_delta(report)}
        expected |= {"outcome": Outcome.RELEASED, "draw": drawn_of(report)}
    elif len(report.rounds) != 1:
        yield "this run is none of several rounds"
        return
    else:
        run = run_of(report)
        expected = {name: getattr(run, name) for name in _OF_A_RUN}
    for name, value in expected.items():
        for path, there, here in _differences(encoded(getattr(own, name)), encoded(value), name):
            yield f"{path} of this run is {_shown(there)} there, and {_shown(here)}"
    if own.asked is not None and own.kind is not RunKind.RELEASE and own.asked != run.asked:
        yield "what was asked in this run is another there"


# --- comparing -----------------------------------------------------------------------------------


def _differences(here: Any, there: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield the leaves in which two JSON values differ: path, and both."""
    if isinstance(here, dict) and isinstance(there, dict):
        for name in dict.fromkeys((*here, *there)):
            at = f"{path}.{name}" if path else name
            yield from _differences(here.get(name), there.get(name), at)
    elif isinstance(here, list) and isinstance(there, list):
        if len(here) != len(there):
            yield path, f"{len(here)} entries", f"{len(there)}"
            return
        for place, (one, other) in enumerate(zip(here, there, strict=True)):
            yield from _differences(one, other, f"{path}.{place}")
    elif not _alike(here, there):
        yield path, here, there


def _alike(here: Any, there: Any) -> bool:
    if isinstance(here, bool) or isinstance(there, bool):
        return here is there
    if isinstance(here, float | int) and isinstance(there, float | int):
        return math.isclose(here, there, rel_tol=_ROUND_OFF, abs_tol=0.0)
    return bool(here == there)


def _shown(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
