"""The verb that publishes one (ε, δ) for several runs: ledgers, reports, records, other parts."""

from __future__ import annotations

import functools
import operator
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, Final, TypeAlias, Unpack

from pate_cli.core.clock import now
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
from pate_cli.disclosure import door
from pate_cli.disclosure.entry import Entry
from pate_cli.disclosure.external import Other, Stated, refuse_short
from pate_cli.disclosure.facts import report_of, run_of, stated
from pate_cli.disclosure.ledger import Ledger
from pate_cli.disclosure.plan import ReleasePlan
from pate_cli.disclosure.reader import read_report
from pate_cli.disclosure.record import KIND, SpendRecord
from pate_cli.disclosure.record_place import RecordPlace, record_beside, told_record
from pate_cli.disclosure.report import KIND as REPORT
from pate_cli.disclosure.report import Report, ReportFacts
from pate_cli.disclosure.run_checks import faults_of_runs, told_apart
from pate_cli.disclosure.runs import Outcome, Run
from pate_cli.disclosure.seen import keys_of_votes
from pate_cli.disclosure.total import Spent
from pate_cli.disclosure.verification import FAILED, PROMISE, checks_of
from pate_cli.files.addresses import is_address, public_name, refuse_address
from pate_cli.files.beside import has_no_name
from pate_cli.files.reading import LARGEST, reading
from pate_cli.mechanisms import scored_from_parameters
from pate_cli.planning.sanitized import choose_plan_for
from pate_cli.verbs.analyses import analysis_of
from pate_cli.verbs.keywords import ReleaseWords, budget_of, takes_keywords
from pate_cli.verbs.promise import kind_of

Given: TypeAlias = Ledger | Report | SpendRecord | str | PathLike[str]
"""What was spent: a ledger, a public report or a record, or the file of one."""

_REPORT: Final = re.compile(rb'"kind"\s*:\s*"%b"' % REPORT.encode())


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


@takes_keywords
def release(
    given: Given | Sequence[Given],
    *,
    external: Sequence[Other] = (),
    again: bool = False,
    unverified: bool = False,
    **asked: Unpack[ReleaseWords],
) -> Released:
    """Publish one (ε, δ) for several runs on votes of the same teachers, and for other mechanisms.

    Of ledgers, each labelled with `keep_ledger`, it is what all rounds cost whatever the votes, and
    if it is asked for a sanitized value of these votes beside it. Where reports or records are
    among what is given, it is the total of all runs that they tell of.

        >>> votes = "sample_votes/demo.parquet"
        >>> first = pate.aggregate(votes, max_queries=100, seed=2, order=8, release="none")
        >>> second = pate.aggregate(votes, "gnmax", max_queries=20, seed=3, order=8, release="none")
        >>> pate.release([first.ledger, second.ledger]).report
        <Report: epsilon 0.9459 at delta 1e-05, 75 of 120 queries answered>

    Args:
        given: ledgers, reports and records, or their files.
        external: what else was trained on the same records, or files that state its cost (see
            `disclosure.external`); it is added to the total.
        again: draw again what was drawn from the same rounds before; all draws are charged.
        unverified: take reports and records that do not verify, too, or that promise nothing.
            The report says so then, and promises nothing.

    What is released is entered in the record that is given, in that of the ledgers' votes, or
    beside a ledger whose record is not known; and so is all that is given. Of several records the
    one that is named, or the first, takes over the runs of the others, which take none from then
    on. With `record` False earlier draws are not charged, and the report promises nothing.

    Raises:
        ParameterError: a δ too small beside what floating-point noise adds over all rounds.
        SpentError: the rounds were released before.
        UnreachableError: all of it together costs more than the `budget`.
        LedgerError: a ledger, a record or an external file is damaged, or does not fit the others.
        MismatchError: a report or a record does not verify, or two of them tell otherwise of a run.
    """
    began = now()
    several: Sequence[Any] = given if isinstance(given, list | tuple) else [given]
    read, parts = _Read.of(several, unverified=unverified), tuple(map(_part, external))
    key = RunKey.of(asked["seed"])
    place, total = _record_of(read, asked), read.total
    if not unverified:
        _check_alike(place.record, read.known, "the record")
    known, run, facts, plan = read.known, None, None, None
    if total is not None:
        known |= SpendRecord.of(total)
    if total is not None and not read.account:
        facts, plan = _of_ledgers(total, parts, key, asked)
        if facts.sanitizer is not None:
            name = key.run_id if key.private else key.name("run")
            rounds = tuple(done.id for done in total.rounds)
            ended = run_of(replace(facts, run=name, time=began))
            run = replace(ended, outcome=Outcome.PENDING, drawn_from=rounds)
    elif asked["release"] not in (None, ReleaseKind.NONE) or again:
        raise UsageError(
            "a sanitized epsilon is of ledgers alone; release them first, and then the record "
            "that tells of it"
        )

    def earlier(record: SpendRecord) -> list[Run]:
        """Return what was drawn from the same rounds before."""
        past = () if total is None else record.touching(total)
        return [one for one in past if run is None or one.id != run.id]

    def refuse(record: SpendRecord) -> None:
        found = earlier(record)
        if found and not again and run is not None:
            raise SpentError(
                f"these rounds were released before, {len(found)} time(s); another draw costs "
                "privacy: publish the first report, or give `again` to be charged for all draws"
            )

    curved = [one.delta for one in known.runs if one.delta > 0.0]
    known |= _stated(parts, delta=max(curved, default=DELTA), began=began)
    entry = Entry(place, run, budget=budget_of(asked), beside=known, refuse=refuse)
    entry.enter()
    with entry.standing(until_read=False):
        spent = None
        if facts is None or total is None:
            facts = _of_all(entry.account(), unverified=unverified)
            # A record tells of draws from a ledger; a ledger does not.
            facts = replace(facts, recorded=total is None or asked["record"] is not False)
        else:
            past = tuple(draw for one in earlier(entry.account()) for draw in one.draws)
            drawn = None
            if plan is not None and plan.publishes_draw:
                drawn = door.sanitized_epsilon(
                    total,
                    plan,
                    key.aside("release"),
                    earlier=(*total.draws, *past),
                    external=parts,
                )
            facts = replace(facts, drawn=drawn, earlier_draws=past)
            spent = entry.settle(Outcome.RELEASED)
    facts = replace(facts, run=key.run_id, time=began, spent=facts.spent or spent)
    joined = place.joined if place.earlier else None
    return Released(report_of(facts), total, entry.account(), joined)


def _part(external: Other) -> Stated:
    return external if isinstance(external, Stated) else Stated.read(external)


@dataclass(frozen=True)
class _Read:
    """Inputs of a release, by kind.

    Attributes:
        ledgers: with the files they were read from, if they were.
        records: files of records.
        known: runs that reports and records tell of.
        account: whether there was a report or a record.
    """

    ledgers: list[tuple[Ledger, Path | None]] = field(default_factory=list)
    records: list[Path] = field(default_factory=list)
    known: SpendRecord = field(default_factory=SpendRecord)
    account: bool = False

    @classmethod
    def of(cls, given: Sequence[Given], *, unverified: bool) -> _Read:
        """Return objects, and files by what they hold; MismatchError for what does not verify."""
        ledgers: list[tuple[Ledger, Path | None]] = []
        records: list[Path] = []
        known = SpendRecord()
        for one in given:
            place = Path(one) if isinstance(one, str | PathLike) else None
            found = _content(one) if isinstance(one, str | PathLike) else one
            if isinstance(found, Ledger):
                ledgers.append((found, place))
                continue
            name = "a report" if place is None else public_name(os.fspath(place))
            told = SpendRecord(_verified(found, name, unverified=unverified))
            if isinstance(found, SpendRecord) and place is not None:
                records.append(place)
            if not unverified:
                _check_alike(known, told, name)
            known |= told
        return cls(ledgers, records, known, len(ledgers) < len(given))

    @property
    def total(self) -> Ledger | None:
        """Return the rounds of all ledgers in one; None where none was given."""
        found = [ledger for ledger, _ in self.ledgers]
        return functools.reduce(operator.add, found) if found else None


def _verified(found: Report | SpendRecord, name: str, *, unverified: bool) -> tuple[Run, ...]:
    """Return the runs that a report or a record tells of, once they are seen to verify.

    What does not verify is refused, or by `unverified` its runs promise nothing. That
    stays with them in the record.
    """
    try:
        if isinstance(found, SpendRecord):
            faults, runs = list(faults_of_runs(found.runs)), found.runs
        else:
            checks = [check for check in checks_of(found) if check.outcome == FAILED]
            faults = [check.detail for check in checks if check.name != PROMISE]
            runs = () if faults and not unverified else _runs_of(found, claimed=not unverified)
    except (ParameterError, UnreachableError) as error:
        raise MismatchError(f"{name} does not verify: {error}") from None
    if faults and not unverified:
        raise MismatchError(
            f"{name} does not verify: {faults[0]}. With `unverified` it is taken all the same, and "
            "the report promises nothing"
        )
    return tuple(replace(run, promised=False) for run in runs) if faults else runs


def _check_alike(known: SpendRecord, told: SpendRecord, name: str) -> None:
    """MismatchError where two of what is given tell otherwise of the same run."""
    for run in told.runs:
        there = known.known(run.id)
        if there is not None and told_apart(run, there):
            raise MismatchError(f"{name} tells otherwise of run {run.id} than the others do")


def _content(path: str | PathLike[str]) -> Ledger | Report | SpendRecord:
    """Return what a file holds by the kind that it states; a ledger where it states none."""
    name = os.fspath(path)
    if name == "-" or (is_address(name) and public_name(name).endswith(".json")):
        return read_report(path)
    refuse_address(path)
    if has_no_name(name):
        raise UsageError(
            f"{public_name(path)}: is a pipe, and what is to be released is read more than once; "
            "give a file"
        )
    with reading(path, "one of the files to be released") as file:
        content = file.read(LARGEST + 1)
    if f'"{KIND}"'.encode() in content[:100]:
        return SpendRecord.read(path)
    if _REPORT.search(content):
        return read_report(path)
    return Ledger.read(path)


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


def _record_of(read: _Read, asked: ReleaseWords) -> RecordPlace:
    """Return the record: as named, as given, or the one that the rounds of the ledgers are in."""
    record, seeded = asked["record"], asked["seed"] is not None
    if isinstance(record, RecordPlace):
        return record
    if record is False:
        return RecordPlace()
    known, keys = list(read.records), list[str]()
    for ledger, at in [] if seeded else read.ledgers:  # a test is entered where a record is named
        # A draw that is noted elsewhere could be had again from this ledger by itself.
        there = [path for path in map(Path, ledger.records) if path.parent.is_dir()]
        known += there or ([] if at is None else [record_beside(at)])
        keys += [] if at is None else keys_of_votes(at)
    return RecordPlace.found(
        told_record(record, asked["ensemble"]),
        known,
        keys=tuple(keys),
        together=True,
        accept_lost=asked["accept_lost_record"],
    )


def _of_ledgers(
    total: Ledger, parts: tuple[Stated, ...], key: RunKey, asked: ReleaseWords
) -> tuple[ReportFacts, ReleasePlan]:
    """Return the facts of rounds before anything is drawn of them, and how it would be; public."""
    order, beta, sigma = asked["order"], asked["beta"], asked["sigma_release"]
    analysis = Analysis(total.analysis)
    if parts and analysis is not Analysis.TIGHT:
        raise UsageError(f"`external` goes with the tight analysis, the ledgers hold {analysis}")
    plain = analysis is Analysis.TIGHT and (beta, sigma) == (None, None)
    kind = kind_of(asked["release"], default=ReleaseKind.NONE if plain else ReleaseKind.UPPER)
    if order is None:
        if total.orders.size > 1:
            held = ", ".join(f"{value:g}" for value in total.orders)
            raise UsageError(f"the ledgers hold orders {held}; choose one with `order`")
        order = float(total.orders[0])
    total.row(order)
    rounds = [(scored_from_parameters(done.mechanism), done.queries) for done in total.rounds]
    plan = choose_plan_for(
        kind, rounds, delta=total.delta, order=float(order), beta=beta, sigma=sigma
    )
    plan = analysis_of(analysis).plan(plan)
    refuse_short(parts, float(order))
    facts = ReportFacts(
        rounds=tuple(map(stated, total.rounds)),
        sanitizer=plan if plan.publishes_draw else None,
        seeded=plan.publishes_draw and not key.private,
        external=parts,
        recorded=asked["record"] is not False,
    )
    least = facts.cost.least_delta
    if total.delta < least:
        raise ParameterError(
            f"these rounds together need a `delta` of at least {least:.2g}, they were charged for "
            f"{total.delta:g}: floating-point noise is not negligible beside it"
        )
    return facts, plan


def _stated(parts: Sequence[Stated], *, delta: float, began: str) -> SpendRecord:
    """Return external parts as a record has them; one that was entered before is the same."""
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


def _of_all(account: SpendRecord, *, unverified: bool) -> ReportFacts:
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
    return ReportFacts(
        rounds=rounds,
        total=True,
        earlier_draws=tuple(run.draw for run in runs if run.draw is not None),
        external=tuple(run.external for run in runs if run.external is not None),
        spent=Spent.of(runs),
    )
