"""Checks of a report: of its facts, of the fields computed from facts, and of the files beside it.

`verify` computes every field of a report again, or compares the field with a file or a record, or
names the field as not checkable. For every fact, `ReportFacts` in `report.py` says how a reader can
check it. `verify` returns all checks as a `Verification`, which may be published.
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
from pate_cli.disclosure.cost import Cost, pair
from pate_cli.disclosure.guarantee import (
    answer_faults,
    report_of,
    run_of,
    sentence,
    stated,
    textbook_steps,
    votings,
)
from pate_cli.disclosure.record import SpendRecord, continues
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
# Names of the checks that are not named after a kind of field (`Checked`).
PROMISE: Final = "promise"
LABELS: Final = "labels"
COUNTS: Final = "rows and answers of the labels"
RUN_SETTINGS: Final = "settings of a run without labels"
GUESSES: Final = "whether the guesses of the prior are public"
FEW: Final = "how many votes each teacher had"
TRAINING: Final = "how private the training of the teachers was"
DISJOINT: Final = "ensembles that are declared disjoint"
GUESSES_FILE: Final = "the file of the prior"
LIBRARY: Final = "dp-accounting"
# Facts of these kinds nobody can check without the votes; sentences.ini says why.
_SECRET: Final = {
    Checked.RELEASE_TEST: "test",
    Checked.SANITIZING: "draw",
    Checked.EXTERNAL: "stated",
}
# dp-accounting rounds privacy losses to multiples of this number.
_STEP: Final = 1e-3
_FIGURE: Final = 2e-4  # The rounding error of figures with four decimals.
# Reading a damaged file of labels raises one of these errors: for example AttributeError if a line
# of JSON is not an object, and RecursionError if lists are deeply nested.
_DAMAGE: Final = (
    *(OSError, ValueError, KeyError, TypeError, EOFError, AttributeError, RecursionError),
    pa.ArrowException,
)
_ROUND_OFF: Final = 1e-9  # Numbers that another machine computes may differ by this share.
_MOST_VOTES: Final = 1_000_000  # The time to compute a cost grows with the number of votes.
_LONGEST: Final = 60
# The cost of a run follows from these fields, which every record and report has.
_COST: Final = (
    *("outcome", "epsilon", "delta", "settings", "answers", "draw", "external"),
    *("ensemble", "disjoint_from"),
)
# Fields of a run that a report only has in `spent`, and in no fact.
BESIDE: Final = ("turns", "ensemble", "disjoint_from", "budget", "total_epsilon", "total_delta")
# These settings of a session change while the session goes on.
_GROWING: Final = ("queries", "max_answers", "prior")
# The possible outcomes of a run of each kind; runs of all other kinds are pending or labelled.
_ENDS: Final = {
    RunKind.TARGET: (Outcome.PENDING, Outcome.LABELLED, Outcome.REFUSED),
    RunKind.RELEASE: (Outcome.PENDING, Outcome.RELEASED),
    RunKind.EXTERNAL: (Outcome.STATED,),
}


@dataclass(frozen=True)
class Check:
    """One check of a report: its name, its outcome, and a detail.

    Attributes:
        name: the name of the check, which says what is checked.
        outcome: `ok`, `FAILED`, `not checkable` without secrets, or `not checked` because the
            caller did not give a file, or gave labels in a format that stores no settings.
        detail: what the check found, or why the check was not made; always printable.
    """

    name: str
    outcome: str
    detail: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "detail", printable(self.detail))

    @classmethod
    def of(cls, name: str, faults: Iterable[str], found: str) -> Check:
        """Return a failed check with the first fault, or a passed check if there is no fault."""
        fault = next(iter(faults), None)
        return cls(name, OK, found) if fault is None else cls(name, FAILED, fault)


@dataclass(frozen=True, repr=False)
class Verification(Result):
    """The result of `verify`: all checks of one report, in order. It may be published.

    Attributes:
        epsilon, delta: the ε and δ that the report states, even if a check failed.
        checks: all checks, including the checks that could not be made.
    """

    epsilon: float
    delta: float
    checks: tuple[Check, ...]

    @property
    def holds(self) -> bool:
        """Return whether no check failed."""
        return not self.failed

    @property
    def verdict(self) -> str:
        """Return `holds` or `does not hold`."""
        return "holds" if self.holds else "does not hold"

    @property
    def failed(self) -> list[str]:
        """Return the names of the checks that failed."""
        return self._named(FAILED)

    @property
    def unchecked(self) -> list[str]:
        """Return the names of the checks that could not be made."""
        return self._named(OPEN, SKIPPED)

    def _named(self, *outcomes: str) -> list[str]:
        found = (check.name for check in self.checks if check.outcome in outcomes)
        return list(dict.fromkeys(found))

    @property
    def releasable(self) -> bool:
        """Return True: this result may be published, because reports and labels are public."""
        return True

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict, the headline and every check, ready for JSON."""
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
        """Return a table with one row per check: name, outcome, detail."""
        names = ("name", "outcome", "detail")
        return {name: np.array([getattr(each, name) for each in self.checks]) for name in names}

    def said(self) -> Said:
        """Yield one line per check, and then the verdict."""
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
        """Return a sentence with the checks that could not be made; empty if all were made."""
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
    """Yield every check of a report, in order; the report is not trusted.

    Args:
        report: the report to check.
        record: the record of all runs on the teachers of this report; None if the caller has none.
        labels: the file of labels that came with the report; None if the caller has none.
        priors: the public priors of the runs; each prior is a file of guesses, or the guesses.
        library: whether to compare the report's textbook ε with the ε of dp-accounting; None to
            compare them only if dp-accounting is installed.

    Raises:
        ReportError: computing the report again would take too long.
        VoteError: the file of labels cannot be read at all.
        UsageError: dp-accounting is asked for but not installed.
    """
    check_size(report.all_settings)
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


def false_in(checks: Iterable[Check]) -> list[Check]:
    """Return the failed checks of a report that contradicts itself, its labels or its record.

    The check `promise` is left out, because it also fails if an honest report promises nothing.
    """
    return [check for check in checks if check.outcome == FAILED and check.name != PROMISE]


def _computed(report: Report) -> Iterator[Check]:
    """Yield the check of all fields computed from facts, and whether the report has a guarantee."""
    faults = [*_setting_faults(report)]
    spent = report.spent
    if spent is not None:
        faults += spent_faults(report)
        spent = Spent.of(computed_anew(report))
    again = report_of(replace(report.facts, spent=spent))
    faults += differences(report.to_dict(), again.to_dict(), "its facts give")
    worst = again.data_independent
    found = (
        f"computed again from its facts: worst-case epsilon {worst.epsilon:g} for everything, "
        f"{worst.labels_epsilon:g} for the labels"
    )
    yield Check.of(Checked.COMPUTED, faults, found)
    if faults:
        yield Check(PROMISE, FAILED, "a report with a false number or sentence promises nothing")
    else:
        yield Check(PROMISE, OK if again.claimed else FAILED, again.summary)


def _setting_faults(report: Report) -> Iterator[str]:
    """Yield faults of a report's target, and of the stopping rule of a session."""
    for done in report.rounds:
        yield from rule_faults(done)
    target = report.target
    if target is not None:
        (done,) = report.rounds
        mechanism = scored_from_parameters(done.mechanism)
        worst = Cost.of_labels(done).own.epsilon
        if target != target.settled(mechanism, queries=done.queries, worst_case=worst):
            yield "a run with this target would have another release test, or none"


def _of_record(report: Report, record: SpendRecord | None) -> Iterator[Check]:
    """Yield the check that the report and the record of its teachers list the same runs.

    Runs that began after the report may be missing in the report.
    """
    if record is not None:
        found = "the record has all of these runs, and no other that began earlier"
        yield Check.of(Checked.RECORD, record_faults(report, record), found)
    else:
        why = "untracked" if report.spent is None else "record"
        yield Check(Checked.RECORD, OPEN, sentence(f"open-{why}"))


def _secret(report: Report) -> Iterator[Check]:
    """Yield checks with outcome `not checkable`: nobody can check these facts without secrets."""
    stated = {
        each.metadata[CHECKED]
        for each in fields(ReportFacts)
        if getattr(report, each.name) != each.default
    }
    if any(run.external for run in report.runs):
        stated.add(Checked.EXTERNAL)
    voting, names = votings(report.all_settings), "; ".join(report.disjoint)
    claimed = any(each.claimed for each in voting)
    assigned = any(each.assigned for each in voting)
    for name, why, there in (
        *((how, why, how in stated) for how, why in _SECRET.items()),
        (GUESSES, "guesses", any(done.prior for done in report.all_settings)),
        (FEW, "claimed", claimed),
        (FEW, "assigned", assigned and not claimed),
        (TRAINING, "training", report.record_epsilon is not None),
        (DISJOINT, "disjoint", bool(report.disjoint)),
    ):
        if there:
            yield Check(name, OPEN, sentence(f"open-{why}", names=names))


def _of_labels(
    report: Report, labels: str | PathLike[str] | None, record: SpendRecord | None
) -> Iterator[Check]:
    """Yield the checks that a file of labels belongs to a report and has the report's settings."""
    known = report.labels
    if labels is None:
        yield _without_labels(report, record)
        return
    if known is None:
        yield Check(LABELS, OPEN, "the report has no hash of labels")
        try:
            known = report.with_labels(labels).labels
        except UsageError:
            return
    else:
        found = LabelFile.of(digest_of(labels), known.format)
        told = f"SHA-256 {found.sha256}"
        other = [] if found == known else [f"{told}, but the report has {known.sha256}"]
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
        told = "the settings in the labels are the same as in the report"
        yield Check.of(Checked.LABELS, others, told)
    else:
        some = " and ".join(formats_with("metadata"))
        told = f"{known.format} stores no settings and no names of classes to compare; {some} do"
        yield Check(Checked.LABELS, SKIPPED, told)


def _without_labels(report: Report, record: SpendRecord | None) -> Check:
    """Return the one check that a report gets if no file of labels was given."""
    if report.answers or report.labels is not None:
        return Check(LABELS, SKIPPED, "no file of labels was given")
    if record is not None and report.run and record.known(report.run) is not None:
        return Check(RUN_SETTINGS, OK, "the settings are the same as in the record")
    return Check(RUN_SETTINGS, OPEN, "only the record shows the settings of a run without labels")


def _count_faults(report: Report, counts: LabelCounts) -> Iterator[str]:
    """Yield the numbers of queries and answers in which labels and report differ."""
    asked, answers, told = counts.asked, counts.answers, counts.sources
    if asked < report.queries or (told and asked > report.queries):
        yield (
            f"the labels have {asked} rows of queries that were asked, but the report says "
            f"{report.queries}"
        )
    # Labels of a student are not answers, but some formats do not distinguish the two.
    interactive = report.mechanism.get("name") == MechanismName.INTERACTIVE
    if answers < report.answers or (answers > report.answers and (told or not interactive)):
        yield f"the labels have {answers} answers, but the report says {report.answers}"


def _other_settings(report: Report, carried: dict[str, Any]) -> Iterator[str]:
    """Yield the settings in which labels and report differ."""
    (done,) = report.rounds
    stated: dict[str, Any] = done.texts()
    if report.label_set is None and report.label_names is not None:
        stated["label_names"] = list(report.label_names)
    beside = {"sources"}
    if not done.aggregator.listed:
        beside.add("label_names")  # Without a list of classes these are the labels themselves.
    for name in dict.fromkeys((*stated, *carried)):
        if name not in beside and stated.get(name) != carried.get(name):
            yield f"the labels have another {name} than the report"


def _of_guesses(report: Report, priors: Sequence[Any]) -> Iterator[Check]:
    """Yield one check for each prior: the SHA-256 of its guesses must be in the report."""
    known = {done.prior.sha256 for done in report.rounds if done.prior is not None}
    found = {content_of(each) for each in priors}
    for each in sorted(known | found):
        if each not in found:
            yield Check(GUESSES_FILE, SKIPPED, f"the file with SHA-256 {each} was not given")
        elif each not in known:
            yield Check(GUESSES_FILE, FAILED, f"SHA-256 {each} is not in the report")
        else:
            yield Check(GUESSES_FILE, OK, f"SHA-256 {each}")


def _of_textbooks(report: Report, library: bool | None) -> Iterator[Check]:
    """Yield the check that the ε of dp-accounting is not above the report's textbook ε."""
    there, stated = importlib.util.find_spec("dp_accounting"), report.crosscheck
    if library and there is None:
        raise UsageError("dp-accounting is not installed; pip install 'pate-cli[accounting]'")
    figures = [] if stated is None else [v for v in vars(stated).values() if isinstance(v, float)]
    if library is False or there is None or not figures:
        return
    try:
        ours, (theirs, slack) = min(figures), _by_library(report)
        told = (
            f"dp-accounting gives epsilon {theirs:.6g}, and the report's textbook epsilon is "
            f"{ours:g}"
        )
        yield Check.of(LIBRARY, [] if theirs <= 1.01 * ours + slack else [told], told)
    except Exception as error:
        # An error of another library does not mean that the report is wrong.
        yield Check(LIBRARY, OPEN, f"dp-accounting failed: {type(error).__name__}")


def _by_library(report: Report) -> tuple[float, float]:
    """Return the ε of the labels that dp-accounting computes, and a bound on its rounding error."""
    pld = importlib.import_module("dp_accounting.pld.privacy_loss_distribution")
    common = importlib.import_module("dp_accounting.pld.common")
    grid, total = {"value_discretization_interval": _STEP}, pld.identity(_STEP)
    steps = [step for step in textbook_steps(report.rounds) if step.count]
    for step in steps:
        if isinstance(step, Gaussian):
            # Several steps are one step with less noise. The grid is too coarse for a single one.
            noise = step.noise_multiplier / math.sqrt(step.count)
            whole = pld.from_gaussian_mechanism(noise, **grid)
        else:
            pair = common.DifferentialPrivacyParameters(step.epsilon, step.delta)
            whole = pld.from_privacy_parameters(pair, **grid).self_compose(step.count)
        total = total.compose(whole)
    slack = _STEP * sum(step.count for step in steps if isinstance(step, Bounded))
    epsilon = total.get_epsilon_for_delta(report.facts.cost.labels.own.delta)
    return float(epsilon), slack + _FIGURE


class LabelCounts(NamedTuple):
    """Numbers of rows in a file of labels, and the metadata of the file.

    Attributes:
        rows: the number of all rows; a row is a query, or a pair of a query and a label.
        sources: True if the file says who gave each label, and which rows the run did not ask.
        asked: the number of rows that the run asked; equal to `rows` if `sources` is False.
        answers: the number of rows that the teachers answered; the number of all rows with a label
            if `sources` is False.
        metadata: texts by name, and a list `label_names`; empty if the file has no metadata.
    """

    rows: int
    sources: bool
    asked: int
    answers: int
    metadata: dict[str, Any]


def count_labels(
    path: str | PathLike[str], label_format: LabelFormat, label_set: LabelSet | None
) -> LabelCounts:
    """Return how many rows of a file of labels were asked and answered, and its metadata.

    Raises:
        VoteError: the file cannot be read as labels of this format.
    """
    name = fspath(path)
    try:
        # Arrow must open the file itself: a thread of Arrow may release a file of Python so late
        # that the process ends with a signal.
        there = reading(name, "the labels that are checked", VoteError)
        with there if is_address(name) else pa.OSFile(name) as file:
            table = FORMATS[label_format].read(file)
            table.validate(full=True)
            return _counted(table, label_set)
    except _DAMAGE:
        raise VoteError(
            f"the labels cannot be read as {label_format}; give the file that came with the report"
        ) from None


def _counted(table: pa.Table, label_set: LabelSet | None) -> LabelCounts:
    """Return how many rows of a table of labels were asked and answered, and its metadata."""
    import pyarrow.compute as pc  # Importing it is slow, and few verifications need it.

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
    """Raise ReportError if computing the costs of runs again takes too much time or memory."""
    for done in rounds:
        mechanism = done.aggregator
        sigmas = [one for name, one in mechanism.parameters().items() if name.startswith("sigma")]
        least = min([1.0, *sigmas])  # The size of tables is the number of votes over the noise.
        if mechanism.most_votes > _MOST_VOTES * least:
            raise ReportError(
                f"a query of a run may have {mechanism.most_votes} votes, and computing its cost "
                f"again would take too long; with its noise, {_MOST_VOTES * least:g} votes are the "
                "limit; ask whoever made the run whether the number of votes is right"
            )


def record_faults(report: Report, record: SpendRecord) -> Iterator[str]:
    """Yield the contradictions between a record and a report, and the runs that the report omits.

    If the record has the run of the report, the report must list all runs before this run. If the
    record does not have the run of the report, the report must list every run of the record that
    began before the run of the report, or before any other run that the report lists.
    """
    told, known = report.runs, {run.id: run for run in record.runs}
    if not told:
        yield "the record does not have this run"
        return
    for run in told:
        if run.id in known:
            yield from (f"run {run.id}: {fault}" for fault in told_apart(run, known[run.id]))
        elif run.outcome is not Outcome.PENDING:  # A pending run may be removed from the record.
            yield f"the record does not have run {run.id}"
    names, own = {run.id for run in told}, known.get(report.run or "")
    if own is not None and own.drawn_from and len(own.drawn_from) != len(report.rounds):
        yield f"run {own.id} was drawn from {len(own.drawn_from)} rounds"
    began = max([report.time or "", *(run.time or "" for run in told)])
    last = max((place for place, run in enumerate(record.runs) if run.id in names), default=-1)
    at = ""  # An external cost and a run from a ledger have no time of their own.
    for place, run in enumerate(record.runs):
        if run is own:
            return
        at = run.time or at
        # A record may have taken over runs of another record that began later.
        if own is None:
            later = (run.time or began, place > last) >= (began, True)
        else:
            later = at > (own.time or "~")
        if run.id not in names and not later:
            yield f"the report leaves out run {run.id} of the record"


def told_apart(told: Run, known: Run, *, alone: Collection[str] = ()) -> Iterator[str]:
    """Yield contradictions between two entries of one run, such as in a report and in a record.

    Only public fields are compared. It is no contradiction if a run is pending in `told` and has
    ended in `known`, or if a session has more queries in `known` than in `told`.

    Args:
        told: the run as it was written first, for example in a report.
        known: the same run as it was written later, for example in a record.
        alone: the names of the fields to compare; empty for all fields.
    """
    here, there = encoded(told.public), encoded(known.public)
    names, asked, by_now = set(alone or here | there), told.settings, known.settings
    if asked is None or asked.rule is None:
        if told.outcome is Outcome.PENDING:
            names -= {"outcome", "answers", "total_epsilon", "total_delta"}
    elif by_now is not None and asked.queries < by_now.queries:
        names -= {"outcome", "answers", "turns"}
        if not alone and not continues(known, told):
            yield "the record lacks queries that the report contains"
        there["settings"] |= {name: here["settings"].get(name) for name in _GROWING}
        since = (known.answers or 0) - (told.answers or 0)
        if not 0 <= since <= by_now.queries - asked.queries:
            yield f"answers is {told.answers or 0}, but the record now has {known.answers or 0}"
    if told.external is not None:  # Its delta is that of the release with which it entered.
        names -= {"epsilon", "delta"}
    if told.ensemble is None:  # At that time no ensembles were declared disjoint.
        names -= {"ensemble"}
    for name in sorted(names):
        yield from differences(here.get(name), there.get(name), "the record has", name)


def same_cost(run: Run, other: Run) -> bool:
    """Return whether two entries of one run agree on its cost; either may be the earlier entry."""
    pairs = ((run, other), (other, run))
    return any(next(told_apart(*each, alone=_COST), None) is None for each in pairs)


# --- single runs ---------------------------------------------------------------------------------


def computed_anew(report: Report) -> tuple[Run, ...]:
    """Return the runs that a report lists, with their costs computed again from other fields.

    If a listed run is the run that the report describes, its cost is computed from the facts of
    the report.

    Raises:
        ReportError: a listed run is the run of the report, but the report covers several rounds and
            no sanitized ε was drawn for these rounds.
    """
    found = []
    for run in report.runs:
        beside = {name: getattr(run, name) for name in BESIDE}
        own = run.id == report.run
        found.append(replace(run_of(report), **beside).public if own else run.priced)
    return tuple(found)


def spent_faults(report: Report) -> Iterator[str]:
    """Yield contradictions among the runs that a report lists."""
    runs, rounds = report.runs, list(report.rounds)
    if len({run.id for run in runs}) < len(runs):
        yield "a run is listed twice"
    yield from (f"spent.{fault}" for fault in faults_of_runs(runs))
    told = [stated(done) for done in (run.done for run in runs) if done is not None]
    if report.total and told != rounds:
        yield "the runs of the report do not match the rounds"
    if any(rounds.count(each) > told.count(each) for each in rounds):
        yield "a round is not among the runs of the report"
    of_run = report.labels or report.passed is not None or report.sanitized is not None
    # With a seed, the record has another name for the run than the report.
    if of_run and report.private and all(run.id != report.run for run in runs):
        yield "the run of the report is not among the runs that the report lists"


def faults_of_runs(runs: Sequence[Run]) -> Iterator[str]:
    """Yield contradictions between the fields of a run, for each run of a record or a report.

    Raises:
        ReportError: computing the cost of a run would take too much time or memory.
    """
    check_size(run.settings for run in runs if run.settings is not None)
    for number, run in enumerate(runs):
        yield from (f"runs.{number}: {fault}" for fault in _faults_of(run))


def _faults_of(run: Run) -> Iterator[str]:
    """Yield contradictions between the fields of one run."""
    done, labelled = run.done, run.outcome is Outcome.LABELLED
    if run.outcome not in _ENDS.get(run.kind, (Outcome.PENDING, Outcome.LABELLED)):
        yield f"a {run.kind} run cannot be {run.outcome}"
    if (run.answers is not None) != (done is not None and labelled):
        yield f"a run that is {run.outcome} cannot have answers {run.answers}"
    if done is not None:
        yield from rule_faults(done)
        yield from answer_faults(done) if labelled else ()
    if run.external is not None and run.id != run.external.digest:
        yield "the id of the run is not the hash of the external cost"
    yield from differences(encoded(run), encoded(run.priced), "its settings give")


def rule_faults(settings: Settings) -> Iterator[str]:
    """Yield a sentence if a session can cost more than its stopping rule states."""
    if settings.rule is not None:
        fault = rule_fault(settings.rule, settings.aggregator, settings.few)
        if fault is not None:
            yield f"the rule of the session says {settings.rule.epsilon:g}, but {fault}"


def differences(here: Any, there: Any, source: str, path: str = "") -> Iterator[str]:
    """Yield the numbers and texts in which two JSON values differ, except for rounding errors.

    Args:
        here, there: the two JSON values.
        source: words that introduce the second value in a message, such as "the record has".
        path: for values inside JSON documents, the names of the fields that lead to them, with dots
            between the names; empty for whole documents.
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
    """Return whether two JSON values are equal, except for rounding errors of numbers."""
    if isinstance(here, bool) or isinstance(there, bool):
        return here is there
    if isinstance(here, float | int) and isinstance(there, float | int):
        return math.isclose(here, there, rel_tol=_ROUND_OFF, abs_tol=0.0)
    return bool(here == there)
