"""The verb that checks a report: what it states, what follows, and what it came with."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath
from typing import Any

from pate_cli.core.errors import UsageError
from pate_cli.disclosure.checks import Evidence, checks_of
from pate_cli.disclosure.reader import parse_report, read_report
from pate_cli.disclosure.record import SpendRecord
from pate_cli.disclosure.report import Report
from pate_cli.disclosure.verification import Verification
from pate_cli.files.addresses import public_name
from pate_cli.files.beside import has_no_name


def verification(
    report: Report | str | PathLike[str] | bytes,
    labels: str | PathLike[str] | None,
    *,
    prior: Any | Sequence[Any] | None,
    record: SpendRecord | str | PathLike[str] | None,
    with_dp_accounting: bool | None,
) -> Verification:
    """Return the checks of a report; see `signatures.verify`."""
    priors = [] if prior is None else prior if isinstance(prior, list | tuple) else [prior]
    for file in (labels, *priors):
        if isinstance(file, str | PathLike) and has_no_name(fspath(file)):
            raise UsageError(
                f"{public_name(file)}: is a pipe, and what goes with a report is read more than "
                "once; give a file"
            )
    if isinstance(report, bytes):
        report = parse_report(report)
    elif not isinstance(report, Report):
        report = read_report(report)
    known = SpendRecord.read(record) if isinstance(record, str | PathLike) else record
    given = Evidence(report, known, labels, priors, with_dp_accounting)
    return Verification(report.epsilon, report.delta, tuple(checks_of(given)))
