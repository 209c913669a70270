"""Inputs of a release: ledgers, reports and records, read and verified."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Final, TypeAlias

from pate_cli.core.errors import MismatchError, ParameterError, UnreachableError, UsageError
from pate_cli.disclosure.facts import run_of
from pate_cli.disclosure.ledger import Ledger
from pate_cli.disclosure.record import KIND, SpendRecord
from pate_cli.disclosure.report import KIND as REPORT
from pate_cli.disclosure.report import Report, read_report
from pate_cli.disclosure.run_checks import faults_of_runs, same_cost
from pate_cli.disclosure.runs import Run
from pate_cli.disclosure.verification import FAILED, PROMISE, Evidence, checks_of
from pate_cli.files.addresses import (
    LARGEST,
    has_no_name,
    is_address,
    public_name,
    reading,
    refuse_address,
)

Given: TypeAlias = Ledger | Report | SpendRecord | str | PathLike[str]
"""What was spent: a ledger, a public report or a record, or the file of one."""

Held: TypeAlias = Ledger | Report | SpendRecord

_REPORT: Final = re.compile(rb'"kind"\s*:\s*"%b"' % REPORT.encode())


def read_inputs(
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
            check_alike(known, told, name)
        found.append((held, path))
        known |= told
    return found, known


def check_alike(known: SpendRecord, told: SpendRecord, name: str) -> None:
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
            checks = [check for check in checks_of(Evidence(held)) if check.outcome == FAILED]
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
