"""The verb that checks a report: what it states, what follows, and what it came with."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath
from typing import Any

from pate_cli.core.errors import UsageError
from pate_cli.disclosure.label_checks import label_checks, prior_checks, without_labels
from pate_cli.disclosure.library_checks import library_checks
from pate_cli.disclosure.reader import parse_report, read_report
from pate_cli.disclosure.record import SpendRecord
from pate_cli.disclosure.report import Report
from pate_cli.disclosure.verification import Verification, checks_of
from pate_cli.files.addresses import public_name
from pate_cli.files.beside import has_no_name


def verify(
    report: Report | str | PathLike[str] | bytes,
    labels: str | PathLike[str] | None = None,
    *,
    prior: Any | Sequence[Any] | None = None,
    record: SpendRecord | str | PathLike[str] | None = None,
    with_dp_accounting: bool | None = None,
) -> Verification:
    """Check a report from outside: its schema, its numbers from its own settings, its labels.

    Use it on what you are given, or before you publish. It needs neither votes nor ledger, and
    computes every number again that does not hang on them.

        >>> done = pate.aggregate("sample_votes/demo.parquet", max_queries=300, into="bought.csv")
        >>> pate.verify(done.report, "bought.csv", with_dp_accounting=False)
        <Verification: holds: epsilon 1.3788 at delta 1e-05>

    Args:
        report: what to check, its file by path or address ("-" is standard input), or the content
            of one.
        labels: the file of labels that it came with, by path or address.
        prior: the guesses that voted, too, or their file; of rounds with several a list of them.
        record: the record of the same teachers, or its file, where you keep it: only the record
            tells whether the report leaves runs out.
        with_dp_accounting: also ask Google's library for the textbook numbers; where it is
            installed, if left out.

    Raises:
        ReportError: no report, or one against the schema, or of more teachers than can be charged
            again in reasonable time.
        UsageError: the library is asked for and not installed; labels or a prior that come by a
            pipe, for they are read more than once.
        VoteError: the labels or the prior cannot be read.
        LedgerError: the record cannot be read.
    """
    given = [] if prior is None else prior
    priors = given if isinstance(given, list | tuple) else [given]
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
    checks = [
        *checks_of(report, known),
        *(without_labels(report, known) if labels is None else label_checks(report, labels)),
        *prior_checks(report, priors),
        *library_checks(report, with_dp_accounting),
    ]
    return Verification(report.epsilon, report.delta, tuple(checks))
