"""Checks of runs that a report or a record tells of: each by itself, and one account by another."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
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
# Fields of a run from which its cost follows: every account of it has them.
_COST: Final = ("outcome", "epsilon", "delta", "settings", "answers", "draw", "external")
# Settings of a session that change while it goes on.
_GROWING: Final = ("queries", "max_answers", "prior")
# Outcomes of runs; of kinds that are not here, they are labelled.
_ENDS: Final = {
    RunKind.TARGET: (Outcome.PENDING, Outcome.LABELLED, Outcome.REFUSED),
    RunKind.RELEASE: (Outcome.PENDING, Outcome.RELEASED),
    RunKind.EXTERNAL: (Outcome.STATED,),
}


class TooLargeError(ReportError):
    """Raised for a report whose numbers would take too long to compute again."""


def check_size(rounds: Iterable[Settings]) -> None:
    """Raise TooLargeError for rounds that take too long to compute again, or too much memory."""
    for done in rounds:
        mechanism = done.aggregator
        sigmas = [one for name, one in mechanism.parameters().items() if name.startswith("sigma")]
        least = min([1.0, *sigmas])  # tables grow with votes in units of the noise
        if mechanism.most_votes > _MOST_VOTES * least:
            raise TooLargeError(
                f"{mechanism.most_votes} votes are not computed again: it takes too long beyond "
                f"{_MOST_VOTES * least:g} with this noise"
            )


def runs_of(report: Report) -> tuple[Run, ...]:
    """Return the runs of the record that a report tells of; none where no record is kept."""
    return () if report.spent is None else report.spent.runs


def record_faults(report: Report, record: SpendRecord) -> Iterator[str]:
    """Yield where a record tells otherwise of the runs of a report, or of more before it."""
    told, known = runs_of(report), {run.id: run for run in record.runs}
    if not told:
        yield "the record does not tell of this run"
        return
    for run in told:
        if run.id in known:
            yield from (f"run {run.id}: {fault}" for fault in told_apart(run, known[run.id]))
        elif run.outcome is not Outcome.PENDING:  # else its file held no votes, and it was struck
            yield f"the record does not tell of run {run.id}"
    names, own = {run.id for run in told}, known.get(report.run or "")
    if own is not None and own.drawn_from and len(own.drawn_from) != len(report.rounds):
        yield f"run {own.id} was drawn from {len(own.drawn_from)} rounds"
    for run in record.runs:
        if run is own or (own is None and (run.time or "") >= (report.time or "")):
            return
        if run.id not in names:
            yield f"run {run.id} of the record is left out"


def told_apart(told: Run, known: Run, *, alone: Collection[str] = ()) -> Iterator[str]:
    """Yield in what an earlier account of a run contradicts a later one, by its public fields.

    A run that was under way may have ended since, and a session gone on.

    Args:
        told: the earlier account.
        known: the later one.
        alone: fields that are compared; all of them if empty.
    """
    here, there = encoded(told.public), encoded(known.public)
    names, asked, by_now = set(alone or here | there), told.settings, known.settings
    if told.outcome is Outcome.PENDING:
        names -= {"outcome", "answers", "total_epsilon", "total_delta"}
    if asked is not None and asked.rule is not None:
        names -= {"outcome", "answers"}
        if by_now is not None and asked.queries <= by_now.queries:
            there["settings"] |= {name: here["settings"].get(name) for name in _GROWING}
    for name in sorted(names):
        yield from differences(here.get(name), there.get(name), "the record has", name)


def same_cost(run: Run, other: Run) -> bool:
    """Return whether two accounts of one run, in either order, agree on what it costs."""
    pairs = ((run, other), (other, run))
    return any(next(told_apart(*each, alone=_COST), None) is None for each in pairs)


# --- each by itself ------------------------------------------------------------------------------


def computed_anew(report: Report) -> tuple[Run, ...]:
    """Return the runs that a report tells of, each with what it costs and its own as it says.

    Raises:
        ReportError: its own run is among them, and the report is of no run by itself.
    """
    found = []
    for run in runs_of(report):
        beside = {name: getattr(run, name) for name in ("budget", "total_epsilon", "total_delta")}
        own = run.id == report.run
        found.append(replace(run_of(report), **beside).public if own else run.priced)
    return tuple(found)


def spent_faults(report: Report) -> Iterator[str]:
    """Yield what contradicts itself among the runs that a report tells of."""
    runs, rounds = runs_of(report), list(report.rounds)
    if len({run.id for run in runs}) < len(runs):
        yield "a run stands there twice"
    yield from (f"spent.{fault}" for fault in faults_of_runs(runs))
    told = [stated(done) for done in (run.done for run in runs) if done is not None]
    if report.total and told != rounds:
        yield "its runs are not those of rounds"
    if any(rounds.count(each) > told.count(each) for each in rounds):
        yield "a round is not among its runs"
    of_run = report.labels or report.passed is not None or report.sanitized is not None
    if of_run and all(run.id != report.run for run in runs):
        yield "this run is not among its runs"


def faults_of_runs(runs: Sequence[Run]) -> Iterator[str]:
    """Yield what contradicts itself in runs, each by itself, as a record or a report has them.

    Raises:
        TooLargeError: as for `check_size`.
    """
    check_size(run.settings for run in runs if run.settings is not None)
    for number, run in enumerate(runs):
        yield from (f"runs.{number}: {fault}" for fault in _faults_of(run))


def _faults_of(run: Run) -> Iterator[str]:
    """Yield what contradicts itself in one run."""
    done, labelled = run.done, run.outcome is Outcome.LABELLED
    if run.outcome not in _ENDS.get(run.kind, (Outcome.PENDING, Outcome.LABELLED)):
        yield f"a {run.kind} run does not end as {run.outcome}"
    if (run.answers is not None) != (done is not None and labelled):
        yield f"answers {run.answers} of a run that is {run.outcome}"
    if done is not None:
        yield from rule_faults(done)
        yield from answer_faults(done) if labelled else ()
    if run.external is not None and run.id != run.external.digest:
        yield "its id is not that of what is stated"
    yield from differences(encoded(run), encoded(run.priced), "its settings give")


def rule_faults(settings: Settings) -> Iterator[str]:
    """Yield why a session with this rule costs more than the rule says; nothing without a rule."""
    if settings.rule is not None:
        fault = rule_fault(settings.rule, settings.aggregator)
        if fault is not None:
            yield f"the rule of the session says {settings.rule.epsilon:g}, but {fault}"


def differences(here: Any, there: Any, source: str, path: str = "") -> Iterator[str]:
    """Yield in which leaves two JSON values differ, up to round-off.

    Args:
        here, there: the values.
        source: where the second is from, and a verb: "the record has".
        path: of the values in what they are part of.
    """
    if isinstance(here, dict) and isinstance(there, dict):
        for name in dict.fromkeys((*here, *there)):
            at = f"{path}.{name}" if path else name
            yield from differences(here.get(name), there.get(name), source, at)
    elif isinstance(here, list) and isinstance(there, list) and len(here) == len(there):
        for place, (one, other) in enumerate(zip(here, there, strict=True)):
            yield from differences(one, other, source, f"{path}.{place}")
    elif not _alike(here, there):
        yield f"{path} is {_brief(here)}, {source} {_brief(there)}"


def _alike(here: Any, there: Any) -> bool:
    if isinstance(here, bool) or isinstance(there, bool):
        return here is there
    if isinstance(here, float | int) and isinstance(there, float | int):
        return math.isclose(here, there, rel_tol=_ROUND_OFF, abs_tol=0.0)
    return bool(here == there)


def _brief(value: Any) -> str:
    """Return the text of a value, cut short where a forger made it long."""
    text = str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
