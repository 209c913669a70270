"""Checks of runs that a report or a record tells of: each by itself, and one account by another."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from pate_cli.core.errors import ReportError
from pate_cli.disclosure.facts import answer_faults, run_of, stated
from pate_cli.disclosure.record import SpendRecord
from pate_cli.disclosure.report import Report
from pate_cli.disclosure.runs import Outcome, Run, RunKind
from pate_cli.disclosure.settings import Settings
from pate_cli.disclosure.stopping import rule_fault
from pate_cli.files.document import encoded

_ROUND_OFF: Final = 1e-9  # of what is published with all digits, on another machine
_MOST_VOTES: Final = 1_000_000  # what they cost takes time and memory in proportion
_LONGEST: Final = 60
_TOLD_ALIKE: Final = ("outcome", "epsilon", "delta", "settings", "answers", "draw", "external")
_END: Final = {
    RunKind.WORST_CASE: (Outcome.LABELLED,),
    RunKind.COMPOSITION: (Outcome.LABELLED,),
    RunKind.SESSION: (Outcome.LABELLED,),
    RunKind.TARGET: (Outcome.LABELLED, Outcome.REFUSED),
    RunKind.RELEASE: (Outcome.RELEASED,),
    RunKind.EXTERNAL: (Outcome.STATED,),
}


class TooLargeError(ReportError):
    """Raised for a report whose numbers would take too long to compute again."""


def check_size(rounds: Iterable[Settings]) -> None:
    """Raise TooLargeError for rounds that take too long to compute again, or too much memory."""
    for done in rounds:
        mechanism = done.aggregator
        votes = mechanism.most_votes
        if votes > _MOST_VOTES:
            raise TooLargeError(
                f"more than {_MOST_VOTES} teachers are not computed again; a vote of a prior "
                "counts as one"
            )
        for name, value in mechanism.parameters().items():
            if name.startswith("sigma") and votes > _MOST_VOTES * value:
                raise TooLargeError(
                    f"a {name} of {value:g} votes among {votes} teachers is not computed again: "
                    "it takes too long"
                )


def runs_of(report: Report) -> tuple[Run, ...]:
    """Return the runs of the record that a report tells of; none where no record is kept."""
    return () if report.spent is None else report.spent.runs


def record_faults(report: Report, record: SpendRecord) -> Iterator[str]:
    """Yield where a record tells otherwise of the runs of a report, or of more before it."""
    own = None if report.run is None else record.known(report.run)
    if own is not None:
        yield from _own_run_faults(report, own.public)
    told = runs_of(report)
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
    asked, there = told.settings, known.settings
    if asked is not None and asked.rule is not None and there is not None:
        more = {name: getattr(there, name) for name in ("queries", "max_answers", "prior")}
        ended = replace(ended, settings=replace(asked, **more))
        return asked.queries <= there.queries and ended == known
    return told.outcome is Outcome.PENDING and ended == known


def spent_faults(report: Report) -> Iterator[str]:
    """Yield what contradicts itself among the runs that a report tells of."""
    runs, rounds = runs_of(report), list(report.rounds)
    if len({run.id for run in runs}) < len(runs):
        yield "a run stands there twice"
    yield from (f"spent.{fault}" for fault in faults_of_runs(runs))
    told = [stated(done) for done in (run.done for run in runs) if done is not None]
    if report.total:
        if told != rounds:
            yield "its runs are not those of rounds"
        return
    if any(rounds.count(each) > told.count(each) for each in rounds):
        yield "a round is not among its runs"
    own = next((run for run in runs if run.id == report.run), None)
    if own is not None:
        yield from _own_run_faults(report, own)
    elif report.labels or report.passed is not None or report.drawn is not None:
        yield "this run is not among its runs"


def faults_of_runs(runs: Sequence[Run]) -> Iterator[str]:
    """Yield what contradicts itself in runs, each by itself, as a record or a report has them.

    Raises:
        TooLargeError: as for `check_size`.
    """
    check_size(run.settings for run in runs if run.settings is not None)
    for number, run in enumerate(runs):
        yield from (f"runs.{number}: {fault}" for fault in _faults_of(run))


def rule_faults(settings: Settings) -> Iterator[str]:
    """Yield why a session with this rule costs more than the rule says; nothing without a rule."""
    if settings.rule is not None:
        fault = rule_fault(settings.rule, settings.aggregator)
        if fault is not None:
            yield f"the rule of the session says {settings.rule.epsilon:g}, but {fault}"


def told_apart(run: Run, other: Run) -> bool:
    """Return whether two accounts of the same run contradict each other."""
    if Outcome.PENDING in (run.outcome, other.outcome) or run.kind is RunKind.SESSION:
        return (run.kind, run.delta) != (other.kind, other.delta)
    return any(encoded(getattr(run, name)) != encoded(getattr(other, name)) for name in _TOLD_ALIKE)


def _faults_of(run: Run) -> Iterator[str]:
    """Yield what contradicts itself in one run."""
    pending = run.outcome is Outcome.PENDING and run.kind is not RunKind.EXTERNAL
    if not pending and run.outcome not in _END[run.kind]:
        yield f"a {run.kind} run does not end as {run.outcome}"
    done, labelled = run.done, run.outcome is Outcome.LABELLED
    if (run.answers is not None) != (done is not None and labelled):
        yield f"answers {run.answers} of a run that is {run.outcome}"
    if done is not None:
        yield from rule_faults(done)
        yield from answer_faults(done) if labelled else ()
    if run.external is not None and run.id != run.external.digest:
        yield "its id is not that of what is stated"
    for name in ("epsilon", "delta"):
        said, found = getattr(run, name), getattr(run.priced, name)
        if not _alike(said, found):
            yield f"{name} is {brief(said)}, its settings give {brief(found)}"


def _own_run_faults(report: Report, own: Run) -> Iterator[str]:
    """Yield where the run of a report stands otherwise among those of the record."""
    beside = {name: getattr(own, name) for name in ("budget", "total_epsilon", "total_delta")}
    try:
        wanted = encoded(replace(run_of(report), **beside).public)
    except ReportError:
        yield "this run is none of several rounds"
        return
    for path, there, here in differences(encoded(own.public), wanted):
        yield f"{path} of this run is {brief(there)} there, and {brief(here)}"


def differences(here: Any, there: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield the leaves in which two JSON values differ: path, and both."""
    if isinstance(here, dict) and isinstance(there, dict):
        for name in dict.fromkeys((*here, *there)):
            at = f"{path}.{name}" if path else name
            yield from differences(here.get(name), there.get(name), at)
    elif isinstance(here, list) and isinstance(there, list):
        if len(here) != len(there):
            yield path, f"{len(here)} entries", f"{len(there)}"
            return
        for place, (one, other) in enumerate(zip(here, there, strict=True)):
            yield from differences(one, other, f"{path}.{place}")
    elif not _alike(here, there):
        yield path, here, there


def _alike(here: Any, there: Any) -> bool:
    if isinstance(here, bool) or isinstance(there, bool):
        return here is there
    if isinstance(here, float | int) and isinstance(there, float | int):
        return math.isclose(here, there, rel_tol=_ROUND_OFF, abs_tol=0.0)
    return bool(here == there)


def brief(value: Any) -> str:
    """Return the text of a value, cut short where a forger made it long."""
    text = str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
