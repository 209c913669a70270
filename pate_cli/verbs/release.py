"""The verb `release`, which publishes one report for several runs."""

from __future__ import annotations

import functools
import operator
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, Final, TypeAlias

from pate_cli.core.errors import (
    LedgerError,
    MismatchError,
    ParameterError,
    SpentError,
    UnreachableError,
    UsageError,
)
from pate_cli.core.noise import RunKey
from pate_cli.core.words import DELTA, Analysis, ReleaseKind
from pate_cli.disclosure.entry import Entry, RecordPlace, keys_of_votes, record_beside, told_record
from pate_cli.disclosure.external import Stated, refuse_short
from pate_cli.disclosure.guarantee import report_of, run_of, stated
from pate_cli.disclosure.ledger import Ledger, sanitized_epsilon
from pate_cli.disclosure.record import KIND, SpendRecord
from pate_cli.disclosure.report import KIND as REPORT
from pate_cli.disclosure.report import Report, ReportFacts, read_report
from pate_cli.disclosure.runs import Outcome, Run, Spent
from pate_cli.disclosure.verification import checks_of, false_in, faults_of_runs, same_cost
from pate_cli.files.addresses import (
    LARGEST,
    has_no_name,
    is_address,
    public_name,
    reading,
    refuse_address,
)
from pate_cli.files.document import now
from pate_cli.mechanisms import scored_from_parameters
from pate_cli.verbs.promise import budget_of, kind_of, plan_of

Held: TypeAlias = Ledger | Report | SpendRecord
Given: TypeAlias = Held | str | PathLike[str]
"""An input of `release`: a ledger, a report or a record, or the name of such a file."""

_REPORT: Final = re.compile(rb'"kind"\s*:\s*"%b"' % REPORT.encode())


def _inputs(
    given: Sequence[Given], *, unverified: bool
) -> tuple[list[tuple[Held, Path | None]], SpendRecord, set[str]]:
    """Return every input of `release` with its path, all their runs, and the ids of doubted runs.

    The path is None if the input is not given as a file. A doubted run is in an input that fails
    verification, or has no guarantee for another reason.

    Args:
        given: ledgers, reports and records, or the names of such files.
        unverified: whether to accept inputs that fail verification. If an input fails verification,
            its runs have no guarantee in the record.

    Raises:
        MismatchError: an input fails verification, or two inputs contradict each other.
        UsageError: a report has no guarantee, or covers several runs without listing them.
    """
    found, known, doubted = list[tuple[Held, Path | None, str]](), SpendRecord(), set[str]()
    for number, one in enumerate(given, 1):
        path = Path(one) if isinstance(one, str | PathLike) else None
        held = _content(one) if isinstance(one, str | PathLike) else one
        found.append((held, path, f"input {number}" if path is None else public_name(path)))
    # Records know which round of a ledger is which run of a report.
    found.sort(key=lambda each: (SpendRecord, Report, Ledger).index(type(each[0])))
    for held, _, name in found:
        told = _told(held, name, unverified=unverified)
        told = _alike(told, known, name, unverified=unverified)
        known |= told
        doubted |= {run.id for run in told.runs if not run.promised}
    return [(held, path) for held, path, _ in found], known, doubted


def _alike(told: SpendRecord, known: SpendRecord, name: str, *, unverified: bool) -> SpendRecord:
    """Return `told`, in which runs that have another cost in `known` have no guarantee.

    Raises:
        MismatchError: there is such a run, and `unverified` is False.
    """
    there = {run.id: run for run in known.runs}
    apart = {run.id for run in told.runs if not same_cost(run, there.get(run.id, run))}
    for run in apart if not unverified else ():
        raise MismatchError(
            f"{name} and the other inputs have different costs for run {run}; find the input that "
            "was changed, and give the original of this input"
        )
    return SpendRecord(
        tuple(replace(run, promised=run.promised and run.id not in apart) for run in told.runs)
    )


def _content(given: str | PathLike[str]) -> Held:
    """Return the content of a file: a report or record if the file says so, or else a ledger."""
    name = os.fspath(given)
    if name == "-" or (is_address(name) and public_name(name).endswith(".json")):
        return read_report(given)
    refuse_address(given)
    if has_no_name(name):
        raise UsageError(
            f"{public_name(name)}: is a pipe, but release reads its inputs more than once; give a "
            "file"
        )
    with reading(given, "one of the files to be released") as file:
        content = file.read(LARGEST + 1)
    if f'"{KIND}"'.encode() in content[:100]:
        return SpendRecord.read(given)
    return read_report(given) if _REPORT.search(content) else Ledger.read(given)


def _told(held: Held, name: str, *, unverified: bool) -> SpendRecord:
    """Return the runs in one input of `release`; verify the input if it is a report or a record.

    A ledger is not verified. A ledger is secret: only the person who made it has it, and pate
    trusts this person.
    """
    if isinstance(held, Ledger):
        return SpendRecord.of(held)
    try:
        if isinstance(held, SpendRecord):
            faults, runs = list(faults_of_runs(held.runs)), held.runs
        else:
            faults = [check.detail for check in false_in(checks_of(held))]
            runs = () if faults and not unverified else _runs_of(held, name, claimed=not unverified)
    except (ParameterError, UnreachableError) as error:
        raise MismatchError(f"{name} does not verify: {error}") from None
    if faults and not unverified:
        raise MismatchError(
            f"{name} does not verify: {faults[0]}. With `unverified` it is accepted, but then the "
            "new report has no guarantee"
        )
    return SpendRecord(tuple(replace(run, promised=False) for run in runs) if faults else runs)


def _runs_of(report: Report, name: str, *, claimed: bool) -> tuple[Run, ...]:
    """Return the runs in a report: all runs that it lists, or its only run if it has no list.

    Raises:
        UsageError: `claimed` requires a guarantee, and the report has none; or the report covers
            several runs without the cost of each run.
    """
    spent, holds = report.spent, report.claims("all-votes")
    if not holds and claimed:
        raise UsageError(f"{name} cannot be released: {report.summary}")
    if spent is not None:
        return spent.runs if holds else tuple(replace(run, promised=False) for run in spent.runs)
    if len(report.rounds) != 1 or report.external or report.sanitizer or report.earlier_draws:
        raise UsageError(f"{name} covers several runs but does not list them; give their record")
    return (run_of(report),)


@dataclass(frozen=True)
class Released:
    """The result of `release`: a report, the sum of the ledgers, and the record.

    Attributes:
        report: the new report; public.
        ledger: the sum of all given ledgers; None if no ledger was given. SECRET.
        record: the record after this release; public.
        joined: a phrase about other records whose runs this record took over; None if no other
            record was taken over.
    """

    report: Report
    ledger: Ledger | None
    record: SpendRecord
    joined: str | None = None


def released(asked: Mapping[str, Any]) -> Released:
    """Return one report for several runs, and add the release to the record.

    `asked` maps each parameter of `signatures.release` to its value.
    """
    given, unverified, began = asked["given"], asked["unverified"], now()
    several = given if isinstance(given, list | tuple) else [given]
    inputs, known, doubted = _inputs(several, unverified=unverified)
    parts = [one if isinstance(one, Stated) else Stated.read(one) for one in asked["external"]]
    ledgers = [held for held, _ in inputs if isinstance(held, Ledger)]
    total = functools.reduce(operator.add, ledgers) if ledgers else None
    alone = total if len(ledgers) == len(inputs) else None
    key = RunKey.of(asked["seed"])
    facts = ReportFacts(rounds=(), run=key.run_id, time=began)
    if alone is not None:
        facts = _of_rounds(alone, parts, facts, key, asked)
    elif asked["release"] not in (None, ReleaseKind.NONE) or asked["again"]:
        raise UsageError(
            "a sanitized epsilon can be drawn only if all inputs are ledgers. First release the "
            "ledgers alone, which adds the draw to the record of the ledgers. Then release this "
            "record and the other inputs together"
        )
    place, run = _record_of(inputs, asked, seeded=facts.seeded), None
    known = _alike(known, place.record, "an input", unverified=unverified)
    doubted |= {run.id for run in known.runs if not run.promised}
    # Earlier draws from a ledger are in the record, not in the ledger.
    facts = replace(facts, recorded=total is None or place.file is not None)
    if alone is not None and facts.sanitizer is not None:
        # Draws with equal seeds have equal names in reports, but in a record each needs its own.
        run = run_of(replace(facts, run=key.run_id if key.private else key.name("run")))
        rounds = tuple(done.id for done in alone.rounds)
        run = replace(run, outcome=Outcome.PENDING, drawn_from=rounds)

    def earlier(record: SpendRecord) -> list[Run]:
        touching = () if alone is None else record.touching(alone)
        return [past for past in touching if run is None or past.id != run.id]

    def refuse(record: SpendRecord) -> None:
        found = len(earlier(record))
        if found and run is not None and not asked["again"]:
            raise SpentError(
                f"a sanitized epsilon was already drawn {found} time(s) from runs in the ledgers, "
                "and another draw costs more privacy: publish the first report, or give `again` to "
                "pay for all draws"
            )

    beside = known | _stated(parts, known)
    entry = Entry(place, run, budget=budget_of(asked), beside=beside, refuse=refuse)
    entry.enter()
    with entry.standing(until_read=False):
        if alone is None:
            runs = (
                replace(run, promised=run.promised and run.id not in doubted)
                for run in entry.record.runs
            )
            facts = _of_all(tuple(runs), facts, unverified=unverified)
        else:
            facts = _drawn(alone, facts, key, earlier(entry.record))
            facts = replace(facts, spent=entry.settle(Outcome.RELEASED))
    joined = place.joined if place.earlier else None
    return Released(report_of(facts), total, entry.record, joined)


def _record_of(
    inputs: Sequence[tuple[Held, Path | None]], asked: Mapping[str, Any], *, seeded: bool
) -> RecordPlace:
    """Find the record to which a release adds its draw.

    The result is the record that the user named, or else a record among the inputs, or else the
    record of the runs in the ledgers. With `record` False there is no record.

    Raises:
        LedgerError: a ledger was written with a record, and this record was not found.
    """
    record, keys = asked["record"], list[str]()
    if record is False:
        return RecordPlace()
    known = [path for held, path in inputs if path and isinstance(held, SpendRecord)]
    for held, path in inputs:
        # A draw enters the record of the ledger's runs, so that nobody repeats it without its cost.
        # A draw from a seed is a test, and enters no record.
        if not isinstance(held, Ledger) or seeded:
            continue
        there = [place for place in map(Path, held.records) if place.parent.is_dir()]
        if path is not None:
            keys += keys_of_votes(path)
            there = there or [record_beside(path)]
        known += there
    place = RecordPlace.found(
        told_record(record, asked["ensemble"]),
        known,
        keys=tuple(keys),
        together=True,
        accept_lost=asked["accept_lost_record"],
    )
    if place.file is None or seeded or asked["accept_lost_record"]:
        return place
    # The runs of a ledger may have another record, with draws of a sanitized ε from this ledger.
    written = {name for run in place.record.runs for name in run.names}
    for held in (held for held, _ in inputs if isinstance(held, Ledger)):
        if held.records and not written.issuperset(done.id for done in held.rounds):
            raise LedgerError(
                f"the runs of a ledger are in the record {public_name(held.records[0])}, which is "
                "not there; bring this record, and give it as `record`. To begin a new record, as "
                "if nothing had been drawn from the ledger, give `accept_lost_record`"
            )
    return place


def _of_rounds(
    total: Ledger,
    parts: Sequence[Stated],
    facts: ReportFacts,
    key: RunKey,
    asked: Mapping[str, Any],
) -> ReportFacts:
    """Return `facts` with all rounds of the ledgers and, if an ε will be drawn, how to draw it."""
    analysis, plan = Analysis(total.analysis), None
    if parts and analysis is not Analysis.TIGHT:
        raise UsageError(
            f"`external` cannot be used with ledgers of runs with `analysis` {analysis}; give "
            "ledgers of runs with `analysis` tight"
        )
    drawn = (asked["beta"], asked["sigma_release"]) != (None, None)
    plain = analysis is Analysis.TIGHT and not drawn
    kind = kind_of(asked["release"], plain=plain)
    order = float(total.orders[0] if asked["order"] is None else asked["order"])
    total.row(order)
    refuse_short(parts, order)
    if kind is not ReleaseKind.NONE:
        rounds = [(scored_from_parameters(done.mechanism), done.queries) for done in total.rounds]
        told = {"delta": total.delta, "order": order, "analysis": analysis}
        plan = plan_of(kind, rounds, {**asked, **told})
    facts = replace(
        facts,
        rounds=tuple(map(stated, total.rounds)),
        sanitizer=plan,
        seeded=plan is not None and not key.private,
        external=tuple(parts),
    )
    least = facts.cost.least_delta
    if total.delta < least:
        raise ParameterError(
            f"the total cost needs a `delta` of at least {least:.2g}, to cover rounding errors of "
            "the noise and the least delta of every external curve; the ledgers have a delta of "
            f"{total.delta:g}. Give fewer ledgers, or ledgers of runs with a larger `delta`"
        )
    return facts


def _drawn(total: Ledger, facts: ReportFacts, key: RunKey, earlier: Sequence[Run]) -> ReportFacts:
    """Add earlier draws of a sanitized ε to `facts`; if `facts` plans a draw, draw a new ε."""
    past = tuple(run.draw for run in earlier if run.draw is not None)
    facts = replace(facts, earlier_draws=past)
    if facts.sanitizer is None:
        return facts
    drawn = sanitized_epsilon(
        total,
        facts.sanitizer,
        key.aside("release"),
        earlier=(*total.draws, *past),
        external=facts.external,
    )
    return replace(facts, sanitized=drawn)


def _stated(parts: Sequence[Stated], known: SpendRecord) -> SpendRecord:
    """Return a record with one run for each external cost; refuse the same cost given twice."""
    delta = max((run.delta for run in known.runs if run.delta > 0.0), default=DELTA)
    costs = {part.digest: part for part in parts}
    if len(costs) < len(parts):
        raise UsageError(
            "two external costs have the same name and the same numbers. If they are the costs of "
            "two mechanisms, give each cost another name; if not, give the cost once"
        )
    runs = (
        Run.of(
            id=name,
            outcome=Outcome.STATED,
            time=None,
            delta=0.0 if part.curve is None else delta,
            external=part,
        )
        for name, part in costs.items()
    )
    return SpendRecord(tuple(runs))


def _of_all(runs: Sequence[Run], facts: ReportFacts, *, unverified: bool) -> ReportFacts:
    """Add the settings and costs of all runs of a record to the facts of a report."""
    for run in runs:
        if not run.claimed and not unverified:
            raise UsageError(
                f"run {run.id} has no guarantee, so a total with this run has no guarantee; to "
                "include the run anyway, give `unverified`"
            )
    rounds = tuple(stated(run.done) for run in runs if run.done is not None)
    if not rounds:
        raise LedgerError(
            "no input has a run in which teachers voted; give a report, a ledger or a record with "
            "such a run"
        )
    return replace(
        facts,
        rounds=rounds,
        total=True,
        earlier_draws=tuple(run.draw for run in runs if run.draw is not None),
        external=tuple(run.external for run in runs if run.external is not None),
        spent=Spent.of(runs),
    )
