"""Checks of a report: what it states, what follows from that, and what came with it.

Every field is computed again, compared with something that was given, or named as not checkable;
its declaration says which (`report.Checked`).
`verify` returns all checks as a `Verification`, which is public.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from os import PathLike, fspath
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pate_cli.accounting.composition import Bounded, Gaussian
from pate_cli.core.arrays import LabelSet
from pate_cli.core.errors import PateError, ReportError, UsageError, VoteError, printable, shortened
from pate_cli.core.said import Line, Said
from pate_cli.core.words import LabelFormat, MechanismName
from pate_cli.disclosure.cost import Cost
from pate_cli.disclosure.facts import answer_faults, report_of, run_of, stated, textbook_steps
from pate_cli.disclosure.figures import pair
from pate_cli.disclosure.record import SpendRecord
from pate_cli.disclosure.report import CHECKED, Checked, LabelFile, Report, ReportFacts
from pate_cli.disclosure.runs import Outcome, Run, RunKind, Spent
from pate_cli.disclosure.settings import Settings
from pate_cli.disclosure.stopping import rule_fault
from pate_cli.files.addresses import digest_of, is_address, reading
from pate_cli.files.document import encoded
from pate_cli.files.results import Result
from pate_cli.labels.forms import FORMATS, formats_with
from pate_cli.mechanisms import scored_from_parameters
from pate_cli.votes.join import content_of

OK, FAILED, OPEN, SKIPPED = "ok", "FAILED", "not checkable", "not checked"
_STYLES: Final = {OK: "green", FAILED: "bold red"}
# What is checked beside the fields of a kind (`Checked`), as it stands in a sentence.
PROMISE: Final = "promise"
LABELS: Final = "labels"
COUNTS: Final = "rows and answers of the labels"
RUN_SETTINGS: Final = "settings of a run without labels"
GUESSES: Final = "what the guesses of the prior were made of"
GUESSES_FILE: Final = "the file of the prior"
LIBRARY: Final = "dp-accounting"
# Why nobody can check facts of a kind from outside, whatever is given.
_SECRET: Final = {
    Checked.RELEASE_TEST: "its chance follows from the secret votes",
    Checked.SANITIZING: "the votes behind the sanitized epsilon are secret",
    Checked.EXTERNAL: "external parts are as the files of others state them",
}
_STEP: Final = 1e-3  # of the losses of dp-accounting; each bounded step is rounded up by one
_FIGURE: Final = 2e-4  # round-off of figures with four decimals
# AttributeError of a line of JSON that is no object, RecursionError of lists in lists in lists.
_DAMAGE: Final = (
    *(OSError, ValueError, KeyError, TypeError, EOFError, AttributeError, RecursionError),
    pa.ArrowException,
)
_ROUND_OFF: Final = 1e-9  # of what is published with all digits, on another machine
_MOST_VOTES: Final = 1_000_000  # what they cost takes time and memory in proportion
_LONGEST: Final = 60
# Fields of a run from which its cost follows: every account of it has them.
_COST: Final = ("outcome", "epsilon", "delta", "settings", "answers", "draw", "external")
# Settings of a session that change while it goes on.
_GROWING: Final = ("queries", "max_answers", "prior")
# Outcomes of runs; of kinds that are not here, they are labelled.
_ENDS: Final = {
    RunKind.TARGET: (Outcome.PENDING, Outcome.LABELLED, Outcome.REFUSED),
    RunKind.RELEASE: (Outcome.PENDING, Outcome.RELEASED),
    RunKind.EXTERNAL: (Outcome.STATED,),
}


@dataclass(frozen=True)
class Check:
    """One thing that was looked at.

    Attributes:
        name: what.
        outcome: `ok`, `FAILED`, `not checkable` from outside, or `not checked` because it was not
            given or the format of the labels does not carry it.
        detail: what was found, or why nothing could be; printable, whatever the report holds.
    """

    name: str
    outcome: str
    detail: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "detail", printable(self.detail))

    @classmethod
    def of(cls, name: str, faults: Iterable[str], found: str) -> Check:
        """Return a check that failed by the first of its faults, or what was found without any."""
        fault = next(iter(faults), None)
        return cls(name, OK, found) if fault is None else cls(name, FAILED, fault)


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
        return "holds" if self.holds else "does not hold"

    @property
    def failed(self) -> list[str]:
        """Names of the checks that failed."""
        return self._named(FAILED)

    @property
    def unchecked(self) -> list[str]:
        """Names of what could not be checked, or was not given."""
        return self._named(OPEN, SKIPPED)

    def _named(self, *outcomes: str) -> list[str]:
        found = (check.name for check in self.checks if check.outcome in outcomes)
        return list(dict.fromkeys(found))

    @property
    def releasable(self) -> bool:
        """True: a report and its labels are public, and so is what was found of them."""
        return True

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome, and every check."""
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
        """Return a row a check."""
        names = ("name", "outcome", "detail")
        return {name: np.array([getattr(each, name) for each in self.checks]) for name in names}

    def said(self) -> Said:
        """Yield a line for each check, and the verdict."""
        for check in self.checks:
            outcome = (check.outcome, _STYLES.get(check.outcome, "dim"))
            yield Line(f": {check.name}: {check.detail}", whole=True, first=outcome)
        yield Line(f"verdict: {self.headline()}", "bold", whole=True)
        if self.unchecked:
            yield Line(self.remark(), whole=True)

    def headline(self) -> str:
        """Return the verdict, with the headline of the report or the checks that failed."""
        found = ", ".join(self.failed) or pair(self.epsilon, self.delta)
        return f"{self.verdict}: {found}"

    def remark(self) -> str:
        """Return one sentence on what was not checked; empty where all was."""
        if not self.unchecked:
            return ""
        before = "Every check that could be made passed. " if self.holds else ""
        return f"{before}Not checked: {'; '.join(self.unchecked)}."


def checks_of(
    report: Report,
    *,
    record: SpendRecord | None = None,
    labels: str | PathLike[str] | None = None,
    priors: Sequence[Any] = (),
    library: bool | None = False,
) -> Iterator[Check]:
    """Yield every check of a report that anybody may have written, in order.

    Args:
        report: the one that is checked.
        record: of the same teachers; None where none is given.
        labels: the file that came with it; None where none is given.
        priors: guesses of a prior, or their files.
        library: whether dp-accounting is asked for its figures; where it is installed if None.

    Raises:
        ReportError: it would take too long to compute the report again.
        VoteError: the file of labels cannot be read at all.
        UsageError: the library is asked for and not installed.
    """
    check_size([*report.rounds, *(run.settings for run in runs_of(report) if run.settings)])
    try:
        computed = list(_computed(report))
    except (PateError, ValueError, ArithmeticError) as error:
        yield Check(Checked.COMPUTED, FAILED, f"no run has these settings: {error}")
        return
    yield from computed
    yield from _of_record(report, record)
    yield from _secret(report)
    yield from _of_labels(report, labels, record)
    yield from _of_guesses(report, priors)
    yield from _of_textbooks(report, library)


def _computed(report: Report) -> Iterator[Check]:
    """Yield whether all that follows from the facts of a report is as it says."""
    faults = [*_setting_faults(report)]
    spent = report.spent
    if spent is not None:
        faults += spent_faults(report)
        spent = Spent.of(computed_anew(report))
    again = report_of(replace(report.facts, spent=spent))
    apart = differences(report.to_dict(), again.to_dict(), "what it states gives")
    worst = again.data_independent
    found = (
        f"computed again from what it states: whatever the votes epsilon {worst.epsilon:g} for "
        f"everything, {worst.labels_epsilon:g} for the labels"
    )
    yield Check.of(Checked.COMPUTED, [*faults, *apart], found)
    yield Check(PROMISE, OK if again.claimed else FAILED, again.summary)


def _setting_faults(report: Report) -> Iterator[str]:
    """Yield why no run has this target, or a session this rule: public numbers settle both."""
    for done in report.rounds:
        yield from rule_faults(done)
    target = report.target
    if target is not None:
        (done,) = report.rounds
        mechanism = scored_from_parameters(done.mechanism)
        worst = Cost.of_labels(done).own.epsilon
        if target != target.settled(mechanism, queries=done.queries, worst_case=worst):
            yield "the release test of this target is settled otherwise, or not needed"


def _of_record(report: Report, record: SpendRecord | None) -> Iterator[Check]:
    """Yield whether the record tells of the runs of a report, and of no other before it."""
    if record is not None:
        found = "the record tells of all of them, and of no other before this report"
        yield Check.of(Checked.RECORD, record_faults(report, record), found)
    elif report.spent is None:
        yield Check(Checked.RECORD, OPEN, "earlier runs are not tracked")
    else:
        told = "the record can tell, which the holder of the votes keeps"
        yield Check(Checked.RECORD, OPEN, told)


def _secret(report: Report) -> Iterator[Check]:
    """Yield what nobody can check from outside, by the declarations of the facts."""
    stated = {
        each.metadata[CHECKED]
        for each in fields(ReportFacts)
        if getattr(report, each.name) != each.default
    }
    if any(run.external for run in runs_of(report)):
        stated.add(Checked.EXTERNAL)
    yield from (Check(how, OPEN, why) for how, why in _SECRET.items() if how in stated)
    if any(done.prior for done in report.rounds):
        yield Check(GUESSES, OPEN, "whether the votes or private data shaped them")


def _of_labels(
    report: Report, labels: str | PathLike[str] | None, record: SpendRecord | None
) -> Iterator[Check]:
    """Yield whether a file of labels is that of the report, and was made with its settings."""
    known = report.labels
    if labels is None:
        yield _without_labels(report, record)
        return
    if known is None:
        yield Check(LABELS, OPEN, "the report names no hash of labels")
        try:
            known = report.with_labels(labels).labels
        except UsageError:
            return
    else:
        found = LabelFile.of(digest_of(labels), known.format)
        told = f"SHA-256 {found.sha256}"
        other = [] if found == known else [f"{told}, the report names {known.sha256}"]
        yield Check.of(LABELS, other, told)
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
        others = _other_settings(report, counts.metadata)
        yield Check.of(Checked.LABELS, others, "as the report has them")
    else:
        some = " and ".join(formats_with("metadata"))
        told = f"{known.format} stores no settings and no names of classes to compare; {some} do"
        yield Check(Checked.LABELS, SKIPPED, told)


def _without_labels(report: Report, record: SpendRecord | None) -> Check:
    """Return what tells of the settings of a run whose labels are not given, or not there."""
    if report.answers or report.labels is not None:
        return Check(LABELS, SKIPPED, "no file of labels was given")
    if record is not None and report.run and record.known(report.run) is not None:
        return Check(RUN_SETTINGS, OK, "compared with the record")
    return Check(RUN_SETTINGS, OPEN, "the record tells, and nothing else")


def _count_faults(report: Report, counts: LabelCounts) -> Iterator[str]:
    asked, answers, told = counts.asked, counts.answers, counts.sources
    if asked < report.queries or (told and asked > report.queries):
        yield f"{asked} rows that were asked, the report says {report.queries}"
    # A student's labels are no answers, and not every format tells them apart.
    interactive = report.mechanism.get("name") == MechanismName.INTERACTIVE
    if answers < report.answers or (answers > report.answers and (told or not interactive)):
        yield f"{answers} answers, the report says {report.answers}"


def _other_settings(report: Report, carried: dict[str, Any]) -> Iterator[str]:
    """Yield which settings labels carry otherwise than a report states them."""
    (done,) = report.rounds
    stated: dict[str, Any] = done.texts()
    if report.label_set is None and report.label_names is not None:
        stated["label_names"] = list(report.label_names)
    beside = {"sources"}
    if not done.aggregator.listed:
        beside.add("label_names")  # those that came out, and so the labels themselves
    for name in dict.fromkeys((*stated, *carried)):
        if name not in beside and stated.get(name) != carried.get(name):
            yield f"the labels carry another {name}"


def _of_guesses(report: Report, priors: Sequence[Any]) -> Iterator[Check]:
    """Yield whether guesses that are given are those that the report names, by their hash."""
    known = {done.prior.sha256 for done in report.rounds if done.prior is not None}
    found = {content_of(each) for each in priors}
    for each in sorted(known | found):
        if each not in found:
            yield Check(GUESSES_FILE, SKIPPED, f"the file with SHA-256 {each} was not given")
        elif each not in known:
            yield Check(GUESSES_FILE, FAILED, f"SHA-256 {each}, which the report does not name")
        else:
            yield Check(GUESSES_FILE, OK, f"SHA-256 {each}")


def _of_textbooks(report: Report, library: bool | None) -> Iterator[Check]:
    """Yield whether dp-accounting finds the figures of textbooks no larger than they are stated."""
    there, stated = importlib.util.find_spec("dp_accounting"), report.crosscheck
    if library and there is None:
        raise UsageError("dp-accounting is not installed; pip install 'pate-cli[accounting]'")
    figures = [] if stated is None else [v for v in vars(stated).values() if isinstance(v, float)]
    if library is False or there is None or not figures:
        return
    try:
        ours, (theirs, slack) = min(figures), _by_library(report)
        told = f"it gives {theirs:.6g}, a textbook {ours:g}"
        yield Check.of(LIBRARY, [] if theirs <= 1.01 * ours + slack else [told], told)
    except Exception as error:  # whatever another library raises is no fault of the report
        yield Check(LIBRARY, OPEN, f"it failed: {type(error).__name__}")


def _by_library(report: Report) -> tuple[float, float]:
    """Return ε of the labels by dp-accounting, and what it may be above for its grid of losses."""
    pld = importlib.import_module("dp_accounting.pld.privacy_loss_distribution")
    common = importlib.import_module("dp_accounting.pld.common")
    grid, total = {"value_discretization_interval": _STEP}, pld.identity(_STEP)
    steps = [step for step in textbook_steps(report.rounds) if step.count]
    for step in steps:
        if isinstance(step, Gaussian):
            one = pld.from_gaussian_mechanism(step.noise_multiplier, **grid)
        else:
            pair = common.DifferentialPrivacyParameters(step.epsilon, step.delta)
            one = pld.from_privacy_parameters(pair, **grid)
        total = total.compose(one.self_compose(step.count))
    slack = _STEP * sum(step.count for step in steps if isinstance(step, Bounded))
    epsilon = total.get_epsilon_for_delta(report.facts.cost.labels.own.delta)
    return float(epsilon), slack + _FIGURE


class LabelCounts(NamedTuple):
    """Counts in units of the report, and the metadata of the file.

    Attributes:
        rows: of votes: queries, or pairs of a query and a label.
        sources: whether the file tells who gave a label, and which rows were not asked.
        asked: rows that were asked; all of them where the file does not tell.
        answers: rows that the teachers answered; where the file does not tell, that have a label.
        metadata: texts, and `label_names` a list of them; empty where the file has none.
    """

    rows: int
    sources: bool
    asked: int
    answers: int
    metadata: dict[str, Any]


def count_labels(
    path: str | PathLike[str], label_format: LabelFormat, label_set: LabelSet | None
) -> LabelCounts:
    """Return the counts of a file of labels.

    Raises:
        VoteError: it cannot be read as labels of this format.
    """
    name = fspath(path)
    try:
        # Arrow gets no file of Python's: a thread of Arrow's that gives it back late, at the end
        # of the process, ends that with a signal.
        there = reading(name, "the labels that are checked", VoteError)
        with there if is_address(name) else pa.OSFile(name) as file:
            table = FORMATS[label_format].read(file)
            table.validate(full=True)
            return _counted(table, label_set)
    except _DAMAGE:
        raise VoteError(f"the labels cannot be read as {label_format}") from None


def _counted(table: pa.Table, label_set: LabelSet | None) -> LabelCounts:
    import pyarrow.compute as pc  # heavy, and rarely needed

    about, rows = (table.schema.metadata or {}).get(b"pate", "{}"), table.num_rows
    metadata = dict(json.loads(about))
    if label_set is not None and "unanswered" in table.column_names:
        rows *= label_set.count
        silent = pc.sum(pc.list_value_length(table["unanswered"])).as_py() or 0
    elif "source" not in table.column_names:
        silent = table["label"].null_count
    else:
        sources = np.asarray(table["source"].to_pylist())
        left, answers = (int(np.count_nonzero(sources == who)) for who in ("not asked", "teachers"))
        return LabelCounts(rows, True, rows - left, answers, metadata)
    return LabelCounts(rows, False, rows, rows - silent, metadata)


def check_size(rounds: Iterable[Settings]) -> None:
    """Raise ReportError for rounds that take too long to compute again, or too much memory."""
    for done in rounds:
        mechanism = done.aggregator
        sigmas = [one for name, one in mechanism.parameters().items() if name.startswith("sigma")]
        least = min([1.0, *sigmas])  # tables grow with votes in units of the noise
        if mechanism.most_votes > _MOST_VOTES * least:
            raise ReportError(
                f"{mechanism.most_votes} votes are not computed again: it takes too long beyond "
                f"{_MOST_VOTES * least:g} with this noise"
            )


def runs_of(report: Report) -> tuple[Run, ...]:
    """Return the runs of the record that a report tells of; none where no record is kept."""
    return () if report.spent is None else report.spent.runs


def record_faults(report: Report, record: SpendRecord) -> Iterator[str]:
    """Yield where a record tells otherwise of the runs of a report, or of more before it."""
    told, known = runs_of(report), {run.id: run for run in record.runs}
    if not told:
        yield "the record does not tell of this run"
        return
    for run in told:
        if run.id in known:
            yield from (f"run {run.id}: {fault}" for fault in told_apart(run, known[run.id]))
        elif run.outcome is not Outcome.PENDING:  # else its file held no votes, and it was struck
            yield f"the record does not tell of run {run.id}"
    names, own = {run.id for run in told}, known.get(report.run or "")
    if own is not None and own.drawn_from and len(own.drawn_from) != len(report.rounds):
        yield f"run {own.id} was drawn from {len(own.drawn_from)} rounds"
    # Without a run of its own it tells of all that began before it, and before what it tells of.
    began = max([report.time or "", *(run.time or "" for run in told)])
    last = max((place for place, run in enumerate(record.runs) if run.id in names), default=-1)
    for place, run in enumerate(record.runs):
        if run is own:
            return
        later = own is None and (run.time or "", place > last) >= (began, True)
        if run.id not in names and not later:
            yield f"run {run.id} of the record is left out"


def told_apart(told: Run, known: Run, *, alone: Collection[str] = ()) -> Iterator[str]:
    """Yield in what an earlier account of a run contradicts a later one, by its public fields.

    A run that was under way may have ended since, and a session gone on.

    Args:
        told: the earlier account.
        known: the later one.
        alone: fields that are compared; all of them if empty.
    """
    here, there = encoded(told.public), encoded(known.public)
    names, asked, by_now = set(alone or here | there), told.settings, known.settings
    if asked is None or asked.rule is None:
        if told.outcome is Outcome.PENDING:
            names -= {"outcome", "answers", "total_epsilon", "total_delta"}
    elif by_now is not None and asked.queries < by_now.queries:
        names -= {"outcome", "answers"}
        there["settings"] |= {name: here["settings"].get(name) for name in _GROWING}
        since = (known.answers or 0) - (told.answers or 0)
        if not 0 <= since <= by_now.queries - asked.queries:
            yield f"answers is {told.answers or 0}, the record has {known.answers or 0} by now"
    for name in sorted(names):
        yield from differences(here.get(name), there.get(name), "the record has", name)


def same_cost(run: Run, other: Run) -> bool:
    """Return whether two accounts of one run, in either order, agree on what it costs."""
    pairs = ((run, other), (other, run))
    return any(next(told_apart(*each, alone=_COST), None) is None for each in pairs)


# --- each by itself ------------------------------------------------------------------------------


def computed_anew(report: Report) -> tuple[Run, ...]:
    """Return the runs that a report tells of, each with what it costs and its own as it says.

    Raises:
        ReportError: its own run is among them, and the report is of no run by itself.
    """
    found = []
    for run in runs_of(report):
        beside = {name: getattr(run, name) for name in ("budget", "total_epsilon", "total_delta")}
        own = run.id == report.run
        found.append(replace(run_of(report), **beside).public if own else run.priced)
    return tuple(found)


def spent_faults(report: Report) -> Iterator[str]:
    """Yield what contradicts itself among the runs that a report tells of."""
    runs, rounds = runs_of(report), list(report.rounds)
    if len({run.id for run in runs}) < len(runs):
        yield "a run stands there twice"
    yield from (f"spent.{fault}" for fault in faults_of_runs(runs))
    told = [stated(done) for done in (run.done for run in runs) if done is not None]
    if report.total and told != rounds:
        yield "its runs are not those of rounds"
    if any(rounds.count(each) > told.count(each) for each in rounds):
        yield "a round is not among its runs"
    of_run = report.labels or report.passed is not None or report.sanitized is not None
    if of_run and all(run.id != report.run for run in runs):
        yield "this run is not among its runs"


def faults_of_runs(runs: Sequence[Run]) -> Iterator[str]:
    """Yield what contradicts itself in runs, each by itself, as a record or a report has them.

    Raises:
        ReportError: as for `check_size`.
    """
    check_size(run.settings for run in runs if run.settings is not None)
    for number, run in enumerate(runs):
        yield from (f"runs.{number}: {fault}" for fault in _faults_of(run))


def _faults_of(run: Run) -> Iterator[str]:
    """Yield what contradicts itself in one run."""
    done, labelled = run.done, run.outcome is Outcome.LABELLED
    if run.outcome not in _ENDS.get(run.kind, (Outcome.PENDING, Outcome.LABELLED)):
        yield f"a {run.kind} run does not end as {run.outcome}"
    if (run.answers is not None) != (done is not None and labelled):
        yield f"answers {run.answers} of a run that is {run.outcome}"
    if done is not None:
        yield from rule_faults(done)
        yield from answer_faults(done) if labelled else ()
    if run.external is not None and run.id != run.external.digest:
        yield "its id is not that of what is stated"
    yield from differences(encoded(run), encoded(run.priced), "its settings give")


def rule_faults(settings: Settings) -> Iterator[str]:
    """Yield why a session with this rule costs more than the rule says; nothing without a rule."""
    if settings.rule is not None:
        fault = rule_fault(settings.rule, settings.aggregator)
        if fault is not None:
            yield f"the rule of the session says {settings.rule.epsilon:g}, but {fault}"


def differences(here: Any, there: Any, source: str, path: str = "") -> Iterator[str]:
    """Yield in which leaves two JSON values differ, up to round-off.

    Args:
        here, there: the values.
        source: where the second is from, and a verb: "the record has".
        path: of the values in what they are part of.
    """
    if isinstance(here, dict) and isinstance(there, dict):
        for name in dict.fromkeys((*here, *there)):
            at = f"{path}.{name}" if path else name
            yield from differences(here.get(name), there.get(name), source, at)
    elif isinstance(here, list) and isinstance(there, list) and len(here) == len(there):
        for place, (one, other) in enumerate(zip(here, there, strict=True)):
            yield from differences(one, other, source, f"{path}.{place}")
    elif not _alike(here, there):
        mine, theirs = shortened(str(here), _LONGEST), shortened(str(there), _LONGEST)
        yield f"{path} is {mine}, {source} {theirs}"


def _alike(here: Any, there: Any) -> bool:
    if isinstance(here, bool) or isinstance(there, bool):
        return here is there
    if isinstance(here, float | int) and isinstance(there, float | int):
        return math.isclose(here, there, rel_tol=_ROUND_OFF, abs_tol=0.0)
    return bool(here == there)
