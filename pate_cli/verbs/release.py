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
from pate_cli.disclosure.cost import Cost
from pate_cli.disclosure.entry import Entry
from pate_cli.disclosure.external import External, Other, Stated, refuse_short
from pate_cli.disclosure.facts import ReportFacts, report_of, run_of
from pate_cli.disclosure.guarantee import worded
from pate_cli.disclosure.ledger import Ledger
from pate_cli.disclosure.plan import ReleasePlan
from pate_cli.disclosure.reader import read_report
from pate_cli.disclosure.record import (
    KIND,
    Outcome,
    Run,
    RunKind,
    SpendRecord,
)
from pate_cli.disclosure.record_place import (
    RecordPlace,
    keys_of_votes,
    record_beside,
    told_record,
)
from pate_cli.disclosure.report import KIND as REPORT
from pate_cli.disclosure.report import Report
from pate_cli.disclosure.run_checks import faults_of_runs, told_apart
from pate_cli.disclosure.total import Spent
from pate_cli.disclosure.verification import FAILED, PROMISE
from pate_cli.files.addresses import is_address, public_name, refuse_address
from pate_cli.files.beside import has_no_name
from pate_cli.files.reading import LARGEST, reading
from pate_cli.mechanisms import scored_from_parameters
from pate_cli.planning.sanitized import choose_plan_for
from pate_cli.verbs.analyses import analysis_of
from pate_cli.verbs.keywords import (
    ReleaseWords,
    budget_of,
    takes_keywords,
)
from pate_cli.verbs.promise import kind_of
from pate_cli.verbs.verify import own_checks

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
    read = _Read.of(several, unverified=unverified)
    place = _record_of(read, asked)
    if not unverified:
        _check_alike(place.record, read.known, "the record")
    parts = [one if isinstance(one, Stated) else Stated.read(one) for one in external]
    if read.ledgers and not read.account:
        return _of_ledgers(read, place, parts, again=again, asked=asked, began=began)
    if asked["release"] not in (None, ReleaseKind.NONE) or again:
        raise UsageError(
            "a sanitized epsilon is of ledgers alone; release them first, and then the record "
            "that tells of it"
        )
    return _of_account(read, place, parts, asked=asked, began=began, unverified=unverified)


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
        """Objects, and files by what they hold; MismatchError for what does not verify."""
        ledgers: list[tuple[Ledger, Path | None]] = []
        records: list[Path] = []
        known, account = SpendRecord(), False
        for one in given:
            place = Path(one) if isinstance(one, str | PathLike) else None
            found = _content(one) if isinstance(one, str | PathLike) else one
            if isinstance(found, Ledger):
                ledgers.append((found, place))
                continue
            account = True
            name = "a report" if place is None else public_name(os.fspath(place))
            told = SpendRecord(_verified(found, name, unverified=unverified))
            if isinstance(found, SpendRecord):
                records += [] if place is None else [place]
            if not unverified:
                _check_alike(known, told, name)
            known = known | told
        return cls(ledgers, records, known, account)

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
            checks = [check for check in own_checks(found) if check.outcome == FAILED]
            faults = [check.detail for check in checks if check.name != PROMISE]
            runs = _runs_of(found, claimed=not unverified)
    except (ParameterError, UnreachableError) as error:
        raise MismatchError(f"{name} does not verify: {error}") from None
    if faults and not unverified:
        raise MismatchError(
            f"{name} does not verify: {faults[0]}. With `unverified` it is taken all the same, and "
            "the report promises nothing"
        )
    return tuple(replace(run, claimed=False) for run in runs) if faults else runs


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
    report = worded(report)  # a file may claim anything
    spent, holds = report.spent, report.claims("all-votes")
    if not holds and claimed:
        raise UsageError(f"a report cannot be released: {report.summary}")
    if spent is not None:
        return spent.runs if holds else tuple(replace(run, claimed=False) for run in spent.runs)
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
    read: _Read,
    place: RecordPlace,
    parts: Sequence[Stated],
    *,
    again: bool,
    asked: ReleaseWords,
    began: str,
) -> Released:
    """Release rounds of ledgers: their worst case, and a draw if one is asked for."""
    total = read.total
    if total is None or not total.rounds:
        raise LedgerError("there is no round whose cost could be told; give a ledger of a run")
    analysis = Analysis(total.analysis)
    if parts and analysis is not Analysis.TIGHT:
        raise UsageError(f"`external` goes with the tight analysis, the ledgers hold {analysis}")
    plan, others = _planned(total, parts, asked)
    costs = (Cost.of_rows(done, total.delta) for done in total.rounds)
    least = replace(functools.reduce(operator.add, costs), external=others).least_delta
    if total.delta < least:
        raise ParameterError(
            f"these rounds together need a `delta` of at least {least:.2g}, they were charged for "
            f"{total.delta:g}: floating-point noise is not negligible beside it"
        )
    key = RunKey.of(asked["seed"])
    run = _draw_run(plan, total, key, began) if plan.publishes_draw else None

    def earlier(record: SpendRecord) -> list[Run]:
        return [past for past in record.touching(total) if run is None or past.id != run.id]

    def refuse(record: SpendRecord) -> None:
        found = earlier(record)
        if found and not again and run is not None:
            raise SpentError(
                f"these rounds were released before, {len(found)} time(s); another draw costs "
                "privacy: publish the first report, or give `again` to be charged for all draws"
            )

    beside = SpendRecord.of(total) | _stated(parts, delta=total.delta, began=began)
    entry = Entry(place, run, budget=budget_of(asked), beside=beside, refuse=refuse)
    entry.enter()
    with entry.standing(until_read=False):
        facts = door.release(
            total,
            plan,
            key.aside("release"),
            prior=[past.draw for past in earlier(entry.account()) if past.draw is not None],
            recorded=asked["record"] is not False,
            external=others,
        )
        ended = entry.settle(Outcome.RELEASED)
    report = report_of(replace(facts, run=key.run_id, time=began, spent=ended))
    return Released(report, total, entry.account(), place.joined if place.earlier else None)


def _planned(
    total: Ledger, parts: Sequence[Stated], asked: ReleaseWords
) -> tuple[ReleasePlan, External]:
    """Return the release plan, and the external parts as they cost at its order; public."""
    order, beta, sigma = asked["order"], asked["beta"], asked["sigma_release"]
    analysis = Analysis(total.analysis)
    plain = analysis is Analysis.TIGHT and (beta, sigma) == (None, None)
    kind = kind_of(asked["release"], default=ReleaseKind.NONE if plain else ReleaseKind.UPPER)
    if order is None:
        if total.orders.size > 1:
            held = ", ".join(f"{value:g}" for value in total.orders)
            raise UsageError(f"the ledgers hold orders {held}; choose one with `order`")
        order = float(total.orders[0])
    total.row(order)
    plan = choose_plan_for(
        kind,
        [(scored_from_parameters(done.mechanism), done.queries) for done in total.rounds],
        delta=total.delta,
        order=float(order),
        beta=beta,
        sigma=sigma,
    )
    plan = analysis_of(analysis).plan(plan)
    refuse_short(parts, float(order))
    return plan, External(tuple(parts))


def _draw_run(plan: ReleasePlan, total: Ledger, key: RunKey, began: str) -> Run:
    """Return a draw from a ledger as a record has it."""
    return Run(
        id=key.run_id if key.private else key.name("run"),
        kind=RunKind.RELEASE,
        outcome=Outcome.PENDING,
        time=began,
        delta=plan.delta,
        drawn_from=tuple(done.id for done in total.rounds),
        claimed=key.private and total.private,
        draw=plan.draw,
    ).priced


def _stated(parts: Sequence[Stated], *, delta: float, began: str) -> SpendRecord:
    """Return external parts as a record has them; one that was entered before is the same."""
    runs = (
        Run(
            id=name,
            kind=RunKind.EXTERNAL,
            outcome=Outcome.STATED,
            time=began,
            delta=part.pair[1] if part.curve is None else delta,
            external=part,
        ).priced
        for name, part in {part.digest: part for part in parts}.items()
    )
    return SpendRecord(tuple(runs))


def _of_account(
    read: _Read,
    place: RecordPlace,
    parts: Sequence[Stated],
    *,
    asked: ReleaseWords,
    began: str,
    unverified: bool,
) -> Released:
    """Return the total of all runs."""
    total = read.total
    known = read.known if total is None else read.known | SpendRecord.of(total)
    curved = [run.delta for run in known.runs if run.delta is not None and run.delta > 0.0]
    beside = known | _stated(parts, delta=max(curved, default=DELTA), began=began)
    entry = Entry(place, None, budget=budget_of(asked), beside=beside)
    entry.enter()
    account = entry.account()
    for run in account.runs:
        if not run.claimed and not unverified:
            raise UsageError(
                f"run {run.id} promises nothing, and neither would a total with it; with "
                "`unverified` it is added all the same"
            )
    rounds = [done for done in (run.rows for run in account.runs) if done is not None]
    if not rounds:
        raise LedgerError("there is no run on votes; give a report, a ledger or a record of some")
    spent = Spent.of(account.runs)
    facts = ReportFacts(
        rounds=rounds,
        private=True,
        delta=spent.delta,
        # A record tells of draws from a ledger; a ledger does not.
        recorded=total is None or asked["record"] is not False,
        total=True,
        spent=spent,
        run=RunKey.fresh().run_id,
        time=began,
    )
    report = report_of(facts)
    return Released(report, total, account, place.joined if place.earlier else None)
