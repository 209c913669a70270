"""The verb that publishes one report for several runs: ledgers, reports, records, other parts."""

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
from pate_cli.core.stamps import now
from pate_cli.core.words import DELTA, Analysis, ReleaseKind
from pate_cli.disclosure.entry import Entry, RecordPlace, keys_of_votes, record_beside, told_record
from pate_cli.disclosure.external import Stated, refuse_short
from pate_cli.disclosure.facts import report_of, run_of, stated
from pate_cli.disclosure.ledger import Ledger, sanitized_epsilon
from pate_cli.disclosure.record import KIND, SpendRecord
from pate_cli.disclosure.report import KIND as REPORT
from pate_cli.disclosure.report import Report, ReportFacts, read_report
from pate_cli.disclosure.runs import Outcome, Run, Spent
from pate_cli.disclosure.verification import FAILED, PROMISE, checks_of, faults_of_runs, same_cost
from pate_cli.files.addresses import (
    LARGEST,
    has_no_name,
    is_address,
    public_name,
    reading,
    refuse_address,
)
from pate_cli.mechanisms import scored_from_parameters
from pate_cli.verbs.promise import budget_of, kind_of, plan_of

Given: TypeAlias = Ledger | Report | SpendRecord | str | PathLike[str]
"""What was spent: a ledger, a public report or a record, or the file of one."""

Held: TypeAlias = Ledger | Report | SpendRecord

_REPORT: Final = re.compile(rb'"kind"\s*:\s*"%b"' % REPORT.encode())


def _inputs(
    given: Sequence[Given], *, unverified: bool
) -> tuple[list[tuple[Held, Path | None]], SpendRecord]:
    """Return what is given, each with its file if it has one, and the runs that all tell of.

    Args:
        given: objects and files of them.
        unverified: take what does not verify all the same; its runs then promise nothing, and that
            stays with them in the record.

    Raises:
        MismatchError: something does not verify, or two inputs tell otherwise of a run.
        UsageError: a report that promises nothing, or that is of several runs and names none.
    """
    found, known = list[tuple[Held, Path | None]](), SpendRecord()
    for one in given:
        path = Path(one) if isinstance(one, str | PathLike) else None
        held = _content(one) if isinstance(one, str | PathLike) else one
        name = "a report" if path is None else public_name(os.fspath(path))
        told = _told(held, name, unverified=unverified)
        if not unverified:
            _check_alike(known, told, name)
        found.append((held, path))
        known |= told
    return found, known


def _check_alike(known: SpendRecord, told: SpendRecord, name: str) -> None:
    """MismatchError where two of what is given tell otherwise of the same run."""
    for run in told.runs:
        there = known.known(run.id)
        if there is not None and not same_cost(run, there):
            raise MismatchError(f"{name} tells otherwise of run {run.id} than the others do")


def _content(given: str | PathLike[str]) -> Held:
    """Return what a file holds by the kind that it states; a ledger where it states none."""
    name = os.fspath(given)
    if name == "-" or (is_address(name) and public_name(name).endswith(".json")):
        return read_report(given)
    refuse_address(given)
    if has_no_name(name):
        raise UsageError(
            f"{public_name(name)}: is a pipe, and what is to be released is read more than once; "
            "give a file"
        )
    with reading(given, "one of the files to be released") as file:
        content = file.read(LARGEST + 1)
    if f'"{KIND}"'.encode() in content[:100]:
        return SpendRecord.read(given)
    return read_report(given) if _REPORT.search(content) else Ledger.read(given)


def _told(held: Held, name: str, *, unverified: bool) -> SpendRecord:
    """Return the runs that an input tells of, once it is seen to verify.

    A ledger is secret, and its holder's word.
    """
    if isinstance(held, Ledger):
        return SpendRecord.of(held)
    try:
        if isinstance(held, SpendRecord):
            faults, runs = list(faults_of_runs(held.runs)), held.runs
        else:
            checks = [check for check in checks_of(held) if check.outcome == FAILED]
            faults = [check.detail for check in checks if check.name != PROMISE]
            runs = () if faults and not unverified else _runs_of(held, claimed=not unverified)
    except (ParameterError, UnreachableError) as error:
        raise MismatchError(f"{name} does not verify: {error}") from None
    if faults and not unverified:
        raise MismatchError(
            f"{name} does not verify: {faults[0]}. With `unverified` it is taken all the same, and "
            "the report promises nothing"
        )
    return SpendRecord(tuple(replace(run, promised=False) for run in runs) if faults else runs)


def _runs_of(report: Report, *, claimed: bool) -> tuple[Run, ...]:
    """Return the runs that a report tells of: those in `spent`, or the one it is of.

    Raises:
        UsageError: it promises nothing, where that is wanted, or not what it cost by itself.
    """
    spent, holds = report.spent, report.claims("all-votes")
    if not holds and claimed:
        raise UsageError(f"a report cannot be released: {report.summary}")
    if spent is not None:
        return spent.runs if holds else tuple(replace(run, promised=False) for run in spent.runs)
    if len(report.rounds) != 1 or report.external or report.earlier_draws:
        raise UsageError("a report of several runs tells of them one by one; give it with a record")
    return (run_of(report),)


@dataclass(frozen=True)
class Released:
    """Result of `release`.

    Attributes:
        report: public.
        ledger: all rounds together, None where none was given. SECRET.
        record: the account after it; public.
        joined: which records the record of it took over, in words; None where there was one.
    """

    report: Report
    ledger: Ledger | None
    record: SpendRecord
    joined: str | None = None


def released(asked: Mapping[str, Any]) -> Released:
    """Read and verify, enter, draw, settle and report; `asked` as `signatures.release` has it."""
    given, unverified, began = asked["given"], asked["unverified"], now()
    several = given if isinstance(given, list | tuple) else [given]
    inputs, known = _inputs(several, unverified=unverified)
    parts = [one if isinstance(one, Stated) else Stated.read(one) for one in asked["external"]]
    ledgers = [held for held, _ in inputs if isinstance(held, Ledger)]
    total = functools.reduce(operator.add, ledgers) if ledgers else None
    alone = total if len(ledgers) == len(inputs) else None
    place, key = _record_of(inputs, asked), RunKey.of(asked["seed"])
    if not unverified:
        _check_alike(place.record, known, "the record")
    # A record tells of draws from a ledger; a ledger does not.
    recorded = total is None or asked["record"] is not False
    facts = ReportFacts(rounds=(), run=key.run_id, time=began, recorded=recorded)
    if alone is not None:
        facts = _of_rounds(alone, parts, facts, key, asked)
    elif asked["release"] not in (None, ReleaseKind.NONE) or asked["again"]:
        raise UsageError(
            "a sanitized epsilon is of ledgers alone; release them first, and then the record "
            "that tells of it"
        )
    run = None
    if alone is not None and facts.sanitizer is not None:
        # The seed alone gives a report its name; in a record a draw by one is its own.
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
                f"these rounds were released before, {found} time(s); another draw costs "
                "privacy: publish the first report, or give `again` to be charged for all draws"
            )

    beside = known | _stated(parts, known, began=began)
    entry = Entry(place, run, budget=budget_of(asked), beside=beside, refuse=refuse)
    entry.enter()
    with entry.standing(until_read=False):
        if alone is None:
            facts = _of_all(entry.record, facts, unverified=unverified)
        else:
            facts = _drawn(alone, facts, key, earlier(entry.record))
            facts = replace(facts, spent=entry.settle(Outcome.RELEASED))
    joined = place.joined if place.earlier else None
    return Released(report_of(facts), total, entry.record, joined)


def _record_of(inputs: Sequence[tuple[Held, Path | None]], asked: Mapping[str, Any]) -> RecordPlace:
    """Return the record: as named, as given, or the one that the rounds of the ledgers are in."""
    record, keys = asked["record"], list[str]()
    if record is False:
        return RecordPlace()
    known = [path for held, path in inputs if path and isinstance(held, SpendRecord)]
    for held, path in inputs:
        # A draw noted elsewhere could be had again; that of a seed is a test, and noted nowhere.
        if not isinstance(held, Ledger) or asked["seed"] is not None:
            continue
        there = [place for place in map(Path, held.records) if place.parent.is_dir()]
        if path is not None:
            keys += keys_of_votes(path)
            there = there or [record_beside(path)]
        known += there
    return RecordPlace.found(
        told_record(record, asked["ensemble"]),
        known,
        keys=tuple(keys),
        together=True,
        accept_lost=asked["accept_lost_record"],
    )


def _of_rounds(
    total: Ledger,
    parts: Sequence[Stated],
    facts: ReportFacts,
    key: RunKey,
    asked: Mapping[str, Any],
) -> ReportFacts:
    """Return the facts of rounds, and how an ε is to be drawn of them if it is; public."""
    analysis, plan = Analysis(total.analysis), None
    if parts and analysis is not Analysis.TIGHT:
        raise UsageError(f"`external` goes with the tight analysis, the ledgers hold {analysis}")
    drawn = (asked["beta"], asked["sigma_release"]) != (None, None)
    plain = analysis is Analysis.TIGHT and not drawn
    kind = kind_of(asked["release"], default=ReleaseKind.NONE if plain else ReleaseKind.UPPER)
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
            f"these rounds together need a `delta` of at least {least:.2g}, they were charged for "
            f"{total.delta:g}: floating-point noise is not negligible beside it"
        )
    return facts


def _drawn(total: Ledger, facts: ReportFacts, key: RunKey, earlier: Sequence[Run]) -> ReportFacts:
    """Return the facts with what was drawn before, and with one draw more if it is asked for."""
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


def _stated(parts: Sequence[Stated], known: SpendRecord, *, began: str) -> SpendRecord:
    """Return external parts as a record has them; one that was entered before is the same."""
    delta = max((run.delta for run in known.runs if run.delta > 0.0), default=DELTA)
    runs = (
        Run.of(
            id=name,
            outcome=Outcome.STATED,
            time=began,
            delta=0.0 if part.curve is None else delta,
            external=part,
        )
        for name, part in {part.digest: part for part in parts}.items()
    )
    return SpendRecord(tuple(runs))


def _of_all(account: SpendRecord, facts: ReportFacts, *, unverified: bool) -> ReportFacts:
    """Return the facts of the total of all runs."""
    runs = account.runs
    for run in runs:
        if not run.claimed and not unverified:
            raise UsageError(
                f"run {run.id} promises nothing, and neither would a total with it; with "
                "`unverified` it is added all the same"
            )
    rounds = tuple(stated(run.done) for run in runs if run.done is not None)
    if not rounds:
        raise LedgerError("there is no run on votes; give a report, a ledger or a record of some")
    return replace(
        facts,
        rounds=rounds,
        total=True,
        earlier_draws=tuple(run.draw for run in runs if run.draw is not None),
        external=tuple(run.external for run in runs if run.external is not None),
        spent=Spent.of(runs),
    )
