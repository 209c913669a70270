"""Inputs of a release: ledgers, reports and records, read and verified."""

from __future__ import annotations

import functools
import operator
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Final, TypeAlias

from pate_cli.core.errors import MismatchError, ParameterError, UnreachableError, UsageError
from pate_cli.disclosure.checks import PROMISE, Evidence, checks_of
from pate_cli.disclosure.facts import run_of
from pate_cli.disclosure.ledger import Ledger
from pate_cli.disclosure.reader import read_report
from pate_cli.disclosure.record import KIND, SpendRecord
from pate_cli.disclosure.record_place import record_beside
from pate_cli.disclosure.report import KIND as REPORT
from pate_cli.disclosure.report import Report
from pate_cli.disclosure.run_checks import faults_of_runs, same_cost
from pate_cli.disclosure.runs import Run
from pate_cli.disclosure.seen import keys_of_votes
from pate_cli.disclosure.verification import FAILED
from pate_cli.files.addresses import is_address, public_name, refuse_address
from pate_cli.files.beside import has_no_name
from pate_cli.files.reading import LARGEST, reading

Given: TypeAlias = Ledger | Report | SpendRecord | str | PathLike[str]
"""What was spent: a ledger, a public report or a record, or the file of one."""

_REPORT: Final = re.compile(rb'"kind"\s*:\s*"%b"' % REPORT.encode())


@dataclass(frozen=True)
class ReleaseInputs:
    """Inputs of a release.

    Attributes:
        ledgers: in order.
        known: runs that all of them tell of.
        records: files of records.
        beside: where the rounds of ledgers are on record, or else belong.
        keys: fingerprints of the files of ledgers, for this user alone. SECRET.
        ledgers_alone: whether there was no report and no record.
    """

    ledgers: list[Ledger] = field(default_factory=list)
    known: SpendRecord = field(default_factory=SpendRecord)
    records: list[Path] = field(default_factory=list)
    beside: list[Path] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    ledgers_alone: bool = False

    @classmethod
    def of(cls, given: Sequence[Given], *, unverified: bool) -> ReleaseInputs:
        """Return objects, and files by what they hold; MismatchError for what does not verify."""
        found, known = cls(), SpendRecord()
        for one in given:
            place = Path(one) if isinstance(one, str | PathLike) else None
            held = _content(one) if isinstance(one, str | PathLike) else one
            if isinstance(held, Ledger):
                found._add(held, place)
                known |= SpendRecord.of(held)
                continue
            name = "a report" if place is None else public_name(os.fspath(place))
            told = SpendRecord(_verified(held, name, unverified=unverified))
            if isinstance(held, SpendRecord) and place is not None:
                found.records.append(place)
            if not unverified:
                check_alike(known, told, name)
            known |= told
        return replace(found, known=known, ledgers_alone=len(found.ledgers) == len(given))

    def _add(self, ledger: Ledger, place: Path | None) -> None:
        """Add a ledger. A draw noted elsewhere could be had again from this ledger by itself."""
        self.ledgers.append(ledger)
        there = [path for path in map(Path, ledger.records) if path.parent.is_dir()]
        if place is not None:
            self.keys.extend(keys_of_votes(place))
            there = there or [record_beside(place)]
        self.beside.extend(there)

    @property
    def total(self) -> Ledger | None:
        """Return the rounds of all ledgers in one; None where none was given."""
        return functools.reduce(operator.add, self.ledgers) if self.ledgers else None


def _verified(found: Report | SpendRecord, name: str, *, unverified: bool) -> tuple[Run, ...]:
    """Return the runs that a report or a record tells of, once they are seen to verify.

    What does not verify is refused, or by `unverified` its runs promise nothing. That
    stays with them in the record.
    """
    try:
        if isinstance(found, SpendRecord):
            faults, runs = list(faults_of_runs(found.runs)), found.runs
        else:
            checks = [check for check in checks_of(Evidence(found)) if check.outcome == FAILED]
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


def check_alike(known: SpendRecord, told: SpendRecord, name: str) -> None:
    """MismatchError where two of what is given tell otherwise of the same run."""
    for run in told.runs:
        there = known.known(run.id)
        if there is not None and not same_cost(run, there):
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
