"""The verb that checks a report: what it states, what follows, and what it came with.

`disclosure.verification` checks a report by itself and by the record; here its labels, the guesses
of its prior and another library are asked as well.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from os import PathLike, fspath
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import UsageError, VoteError
from pate_cli.core.words import LabelFormat, MechanismName
from pate_cli.disclosure.facts import settings_of
from pate_cli.disclosure.figures import pair
from pate_cli.disclosure.label_counts import count_labels
from pate_cli.disclosure.plan import ReleasePlan
from pate_cli.disclosure.reader import ReadReport, parse_report, read_report, reread
from pate_cli.disclosure.record import SpendRecord
from pate_cli.disclosure.report import Crosscheck, LabelFile, Report
from pate_cli.disclosure.verification import FAILED, OK, OPEN, SKIPPED, Check, checks_of
from pate_cli.files.addresses import public_name
from pate_cli.files.beside import has_no_name
from pate_cli.files.reading import digest_of
from pate_cli.files.results import Result
from pate_cli.labels.forms import FORMATS, formats_with
from pate_cli.mechanisms import mechanism_from_parameters
from pate_cli.verbs.analyses import analysis_of
from pate_cli.votes.join import content_of

HOLDS, FAILS = "holds", "does not hold"
LABELS: Final = "labels"
COUNTS: Final = "rows and answers of the labels"
SETTINGS: Final = "settings that the labels carry"
RUN_SETTINGS: Final = "settings of a run without labels"
GUESSES_FILE: Final = "the file of the prior"
OTHER_GUESSES: Final = "the files of other priors"
LIBRARY: Final = "dp-accounting"

_LIBRARY: Final = "dp_accounting"
_STEP: Final = 1e-4  # of what is rounded up


@dataclass(frozen=True, repr=False)
class Verification(Result):
    """Every check of a report, in order; public.

    Attributes:
        epsilon, delta: the headline of the report that was checked, whatever was found.
        checks: all that was looked at, and what could not be.
    """

    epsilon: float
    delta: float
    checks: tuple[Check, ...]

    @property
    def holds(self) -> bool:
        """Whether nothing failed."""
        return not self.failed

    @property
    def verdict(self) -> str:
        """`holds` or `does not hold`."""
        return HOLDS if self.holds else FAILS

    @property
    def failed(self) -> list[str]:
        """Names of the checks that failed."""
        return [check.name for check in self.checks if check.outcome == FAILED]

    @property
    def unchecked(self) -> list[str]:
        """Names of what could not be checked, or was not given."""
        return [check.name for check in self.checks if check.outcome in (OPEN, SKIPPED)]

    @property
    def releasable(self) -> bool:
        """True: a report and its labels are public, and so is what was found of them."""
        return True

    def to_dict(self) -> dict[str, Any]:
        """The outcome, and every check."""
        return {
            "verdict": self.verdict,
            "holds": self.holds,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "failed": self.failed,
            "not_checked": self.unchecked,
            "checks": [asdict(check) for check in self.checks],
        }

    def columns(self) -> dict[str, NDArray[Any]]:
        """A row a check."""
        return {
            name: np.array([getattr(check, name) for check in self.checks])
            for name in ("name", "outcome", "detail")
        }

    def headline(self) -> str:
        """The verdict, with the (epsilon, delta) of the report or the checks that failed."""
        if self.failed:
            return f"{self.verdict}: {', '.join(self.failed)}"
        return f"{self.verdict}: {pair(self.epsilon, self.delta)}"

    def remark(self) -> str:
        """One sentence on what was not checked; empty where all was."""
        if not self.unchecked:
            return ""
        before = "Every check that could be made passed. " if self.holds else ""
        return f"{before}Not checked: {'; '.join(self.unchecked)}."


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
    if isinstance(report, Report):
        read = reread(report)
    elif isinstance(report, bytes):
        read = parse_report(report)
    else:
        read = read_report(report)
    known = SpendRecord.read(record) if isinstance(record, str | PathLike) else record
    checks = list(own_checks(read, known))
    if labels is None:
        checks += _without_labels(read.report, known)
    else:
        checks += _labels(read.report, labels)
    checks += _prior(read.report, priors)
    checks += _library(read.report.crosscheck, with_dp_accounting)
    return Verification(read.report.epsilon, read.report.delta, tuple(checks))


def own_checks(read: ReadReport, record: SpendRecord | None = None) -> Iterator[Check]:
    """Yield the checks of a report by itself, and by the record if there is one."""

    def planned(plan: ReleasePlan) -> ReleasePlan:
        return analysis_of(read.report.analysis).plan(plan)

    yield from checks_of(read.report, read.data, planned=planned, record=record)


# --- the labels ----------------------------------------------------------------------------------


def _without_labels(report: Report, record: SpendRecord | None) -> Iterator[Check]:
    """Yield what tells of the settings of a run whose labels are not given, or not there."""
    if report.answers or report.labels is not None:
        yield Check(LABELS, SKIPPED, "no file of labels was given")
        return
    entered = record is not None and report.run and record.known(report.run) is not None
    found = "compared with the record" if entered else "the record tells, and nothing else"
    yield Check(RUN_SETTINGS, OK if entered else OPEN, found)


def _labels(report: Report, labels: str | PathLike[str]) -> Iterator[Check]:
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
    if known is not None and len(report.rounds) == 1:
        yield from _inside(report, labels, known.format)


def _inside(
    report: Report, labels: str | PathLike[str], label_format: LabelFormat
) -> Iterator[Check]:
    """Yield the checks of rows and answers, and of the settings if the format stores them."""
    try:
        counts = count_labels(labels, label_format, report.label_set)
    except VoteError as error:
        yield Check(COUNTS, FAILED, str(error))
        return
    faults = []
    if counts.queries is None and counts.rows < report.queries:
        faults.append(f"{counts.rows} rows, the report says that {report.queries} were asked")
    if counts.queries is not None and counts.queries != report.queries:
        faults.append(f"{counts.queries} rows that were asked, the report says {report.queries}")
    # A student's labels are no answers, and not every format tells them apart.
    interactive = report.mechanism.get("name") == MechanismName.INTERACTIVE
    mixed = counts.answers is None and interactive
    found = counts.labelled if counts.answers is None else counts.answers
    if found < report.answers or (found > report.answers and not mixed):
        faults.append(f"{found} answers, the report says {report.answers}")
    told = f"{report.queries} of {counts.rows} rows asked, {report.answers} answers"
    if faults:
        told = faults[0]
    yield Check(COUNTS, FAILED if faults else OK, told)
    if not FORMATS[label_format].metadata:
        yield Check(
            SETTINGS,
            SKIPPED,
            f"{label_format} stores no settings and no names of classes to compare; "
            f"{' and '.join(formats_with('metadata'))} do",
        )
        return
    apart = next(_other_settings(report, counts.metadata or {}), None)
    told = "as the report has them" if apart is None else f"the labels carry another {apart}"
    yield Check(SETTINGS, OK if apart is None else FAILED, told)


def _other_settings(report: Report, carried: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of settings that labels carry otherwise than a report states them."""
    stated: dict[str, Any] = settings_of(report).texts()
    if report.label_set is None and report.label_names is not None:
        stated["label_names"] = list(report.label_names)
    beside = {"release", "sources"}
    if not mechanism_from_parameters(report.mechanism).listed:
        beside.add("label_names")  # those that came out, and so the labels themselves
    for name in dict.fromkeys((*stated, *carried)):
        if name not in beside and stated.get(name) != carried.get(name):
            yield name
    if "release" in carried and not _draws(report, carried["release"]):
        yield "release"


def _draws(report: Report, carried: Any) -> bool:
    """Return whether the draw that labels carry is charged; a later one is another report's."""
    try:
        wanted = json.loads(carried)
        own = carried == settings_of(report).texts().get("release")
        earlier = [(draw.beta, draw.sigma) for draw in report.earlier_draws]
        return own or (wanted["beta"], wanted["sigma"]) in earlier
    except (TypeError, ValueError, KeyError):
        return False


# --- the prior -----------------------------------------------------------------------------------


def _prior(report: Report, given: Sequence[Any]) -> Iterator[Check]:
    """Yield whether guesses that are given are those that the report names, by their hash."""
    known = {done.prior.sha256 for done in report.rounds if done.prior is not None}
    if not given and known:
        yield Check(GUESSES_FILE, SKIPPED, "its file was not given")
    found = [content_of(each) for each in given]
    for each in found:
        other = ""
        if each not in known:
            other = f", the report names {' and '.join(sorted(known)) or 'none'}"
        yield Check(GUESSES_FILE, FAILED if other else OK, f"SHA-256 {each}{other}")
    left = sorted(known.difference(found))
    if left and known.intersection(found):
        told = f"not given: SHA-256 {' and '.join(left)}; give `prior` once for each"
        yield Check(OTHER_GUESSES, SKIPPED, told)


# --- another library -----------------------------------------------------------------------------


def _library(crosscheck: Crosscheck | None, wanted: bool | None) -> Iterator[Check]:
    there = importlib.util.find_spec(_LIBRARY) is not None
    if wanted and not there:
        raise UsageError("dp-accounting is not installed; pip install 'pate-cli[accounting]'")
    if wanted is False or not there or crosscheck is None:
        return
    steps = [step for step in crosscheck.steps if step["count"]]
    kinds = {step["kind"] for step in steps}
    try:
        if kinds == {"gaussian"}:
            yield from _gaussian(crosscheck, steps)
        elif kinds == {"bounded"}:
            yield from _bounded(crosscheck, steps)
    except Exception as error:  # whatever another library raises is no fault of the report
        yield Check(LIBRARY, OPEN, f"it failed: {type(error).__name__}")


def _gaussian(crosscheck: Crosscheck, steps: Sequence[Mapping[str, Any]]) -> Iterator[Check]:
    library = importlib.import_module(_LIBRARY)
    exact = library.pld.PLDAccountant(value_discretization_interval=1e-3)
    for name, ours, accountant, room in (
        ("rdp", crosscheck.rdp_epsilon, library.rdp.RdpAccountant(), 1.0),
        ("pld", crosscheck.exact_epsilon, exact, 1.01),
    ):
        for step in steps:
            event = library.GaussianDpEvent(step["noise_multiplier"])
            accountant.compose(library.SelfComposedDpEvent(event, step["count"]))
        theirs = float(accountant.get_epsilon(crosscheck.delta))
        # Theirs by privacy loss distributions is rounded up on its own grid.
        near = (theirs - 2.0 * _STEP) / room <= (ours or 0.0) <= theirs + 2.0 * _STEP
        told = f"it gives {theirs:.6g}, ours {ours:g}"
        yield Check(f"{LIBRARY} ({name})", OK if near else FAILED, told)


def _bounded(crosscheck: Crosscheck, steps: Sequence[Mapping[str, Any]]) -> Iterator[Check]:
    stated = (crosscheck.basic_epsilon, crosscheck.advanced_epsilon)
    ours = min((value for value in stated if value is not None), default=None)
    if ours is None:
        return
    pld = importlib.import_module(f"{_LIBRARY}.pld.privacy_loss_distribution")
    common = importlib.import_module(f"{_LIBRARY}.pld.common")
    total = pld.identity(value_discretization_interval=1e-3)
    for step in steps:
        parameters = common.DifferentialPrivacyParameters(step["epsilon"], step["delta"])
        one = pld.from_privacy_parameters(parameters, value_discretization_interval=1e-3)
        total = total.compose(one.self_compose(step["count"]))
    theirs = float(total.get_epsilon_for_delta(crosscheck.delta))
    # Its steps are rounded up to the grid, each by one interval at most.
    slack = 1e-3 * sum(step["count"] for step in steps) + 2.0 * _STEP
    told = f"it gives {theirs:.6g}, a textbook {ours:g}"
    yield Check(LIBRARY, OK if theirs <= ours + slack else FAILED, told)
