"""Checks of a report by what came with it: its file of labels, and the guesses of its prior."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, Final

from pate_cli.core.errors import UsageError, VoteError
from pate_cli.core.words import MechanismName
from pate_cli.disclosure.checked import Checked
from pate_cli.disclosure.label_counts import LabelCounts, count_labels
from pate_cli.disclosure.record import SpendRecord
from pate_cli.disclosure.report import LabelFile, Report
from pate_cli.disclosure.verification import FAILED, OK, OPEN, SKIPPED, Check
from pate_cli.files.reading import digest_of
from pate_cli.labels.forms import FORMATS, formats_with
from pate_cli.votes.join import content_of

LABELS: Final = "labels"
COUNTS: Final = "rows and answers of the labels"
RUN_SETTINGS: Final = "settings of a run without labels"
GUESSES_FILE: Final = "the file of the prior"


def without_labels(report: Report, record: SpendRecord | None) -> Iterator[Check]:
    """Yield what tells of the settings of a run whose labels are not given, or not there."""
    if report.answers or report.labels is not None:
        yield Check(LABELS, SKIPPED, "no file of labels was given")
        return
    entered = record is not None and report.run and record.known(report.run) is not None
    found = "compared with the record" if entered else "the record tells, and nothing else"
    yield Check(RUN_SETTINGS, OK if entered else OPEN, found)


def label_checks(report: Report, labels: str | PathLike[str]) -> Iterator[Check]:
    """Yield whether a file of labels is that of the report, and was made with its settings."""
    known = report.labels
    if known is None:
        yield Check(LABELS, OPEN, "the report names no hash of labels")
        try:
            known = report.with_labels(labels).labels
        except UsageError:
            return
    else:
        found = LabelFile.of(digest_of(labels), known.format)
        other = "" if found == known else f", the report names {known.sha256}"
        yield Check(LABELS, FAILED if other else OK, f"SHA-256 {found.sha256}{other}")
    if known is None or len(report.rounds) != 1:
        return
    try:
        counts = count_labels(labels, known.format, report.label_set)
    except VoteError as error:
        yield Check(COUNTS, FAILED, str(error))
        return
    told = f"{report.queries} of {counts.rows} rows asked, {report.answers} answers"
    yield Check.of(COUNTS, _count_faults(report, counts), told)
    if FORMATS[known.format].metadata:
        faults = (
            f"the labels carry another {name}" for name in _other_settings(report, counts.metadata)
        )
        yield Check.of(Checked.LABELS, faults, "as the report has them")
        return
    yield Check(
        Checked.LABELS,
        SKIPPED,
        f"{known.format} stores no settings and no names of classes to compare; "
        f"{' and '.join(formats_with('metadata'))} do",
    )


def _count_faults(report: Report, counts: LabelCounts) -> Iterator[str]:
    asked, answers, told = counts.asked, counts.answers, counts.sources
    if asked < report.queries or (told and asked > report.queries):
        yield f"{asked} rows that were asked, the report says {report.queries}"
    # A student's labels are no answers, and not every format tells them apart.
    interactive = report.mechanism.get("name") == MechanismName.INTERACTIVE
    if answers < report.answers or (answers > report.answers and (told or not interactive)):
        yield f"{answers} answers, the report says {report.answers}"


def _other_settings(report: Report, carried: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of settings that labels carry otherwise than a report states them."""
    stated: dict[str, Any] = report.rounds[0].texts()
    if report.label_set is None and report.label_names is not None:
        stated["label_names"] = list(report.label_names)
    beside = {"sources"}
    if not report.rounds[0].aggregator.listed:
        beside.add("label_names")  # those that came out, and so the labels themselves
    for name in dict.fromkeys((*stated, *carried)):
        if name not in beside and stated.get(name) != carried.get(name):
            yield name


def prior_checks(report: Report, given: Sequence[Any]) -> Iterator[Check]:
    """Yield whether guesses that are given are those that the report names, by their hash."""
    known = {done.prior.sha256 for done in report.rounds if done.prior is not None}
    found = {content_of(each) for each in given}
    for each in sorted(found & known):
        yield Check(GUESSES_FILE, OK, f"SHA-256 {each}")
    for each in sorted(found - known):
        yield Check(GUESSES_FILE, FAILED, f"SHA-256 {each}, which the report does not name")
    for each in sorted(known - found):
        yield Check(GUESSES_FILE, SKIPPED, f"the file with SHA-256 {each} was not given")
