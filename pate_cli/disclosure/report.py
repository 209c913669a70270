"""The public report: facts of a release, and the guarantee that is computed from these facts.

Every field of a report is a public parameter, the number of released labels, a data-independent ε,
or a value that `release` sanitized. A report contains no reference to a ledger. The file of a
report has the fields of `Report`, and `read_report` checks every field against its type annotation.
"""

from __future__ import annotations

import enum
import functools
import operator
import os
import sys
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from os import PathLike
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pate_cli.accounting.composition import Textbook
from pate_cli.accounting.conversion import round_up
from pate_cli.core import __version__
from pate_cli.core.arrays import LabelSet, rows_of
from pate_cli.core.errors import PateError, ReportError
from pate_cli.core.said import Pairs, Said
from pate_cli.core.words import LabelFormat
from pate_cli.disclosure.cost import Cost, Figure, nats, pair
from pate_cli.disclosure.external import Stated
from pate_cli.disclosure.ledger import Round
from pate_cli.disclosure.runs import Run, Spent, cost_of, trained_several_times
from pate_cli.disclosure.settings import ReleasePlan, Settings, Training, draws_of, training_of
from pate_cli.disclosure.target import TargetPlan
from pate_cli.files.addresses import Digest, digest_of, public_name, reading
from pate_cli.files.document import (
    SPARING,
    Refusal,
    decoded,
    encoded,
    parsed,
    refuse_version,
    schema_of,
)
from pate_cli.files.protected import note_stream
from pate_cli.files.results import Result
from pate_cli.votes.facts import Group

KIND: Final = "pate-report"
SCHEMA_VERSION: Final = 1
"""The version of reports; it grows if a published version of pate changes a field or a sentence."""
CHECKED: Final = "checked"
"""The metadata of a fact has this entry, which says how the fact is checked."""
_LARGEST: Final = 1 << 26  # bytes
_OURS: Final = "give the file that --report wrote"
_OTHERS: Final = {
    "pate-ledger": "a ledger, which is SECRET; give the public report",
    "pate-spend-record": "a record; pate spent shows it, but here give a report",
    "dry_run": "a quote of --dry-run, which released nothing; give a report",
}


class Checked(enum.StrEnum):
    """The ways in which a reader can check that a field of a report is true.

    Attributes:
        COMPUTED: the field follows from the facts (`disclosure.guarantee.report_of`).
        LABELS: the file of labels shows whether the field is true: a reader compares the hash, the
            rows and the settings of this file with the report.
        RECORD: only the record shows the field, and the holder of the votes keeps the record.
        RELEASE_TEST: the field is the result of a random draw whose probability depends on the
            votes.
        SANITIZING: the field was drawn around a number that depends on the votes.
        EXTERNAL: the owner of another mechanism states the field, and a reader of the report cannot
            check it.
        FREE: no other field depends on the field, so that no check is needed.
    """

    COMPUTED = "numbers and words"
    LABELS = "settings that the labels carry"
    RECORD = "whether runs are missing, when runs began, and what earlier runs did"
    RELEASE_TEST = "the random draw of the release test"
    SANITIZING = "the random draw of the sanitized epsilon"
    EXTERNAL = "what others state"
    FREE = "nothing"


def _by(how: Checked) -> dict[str, Any]:
    """Return the metadata of an optional field of a report; `how` says how to check it."""
    return {CHECKED: how} | SPARING


@dataclass(frozen=True)
class DataIndependent:
    """Worst-case ε of everything that is released; the fields `labels_*` cover the labels alone."""

    epsilon: float
    order: float | None
    method: str
    labels_epsilon: float
    labels_order: float | None
    labels_method: str

    @classmethod
    def of(cls, everything: Figure, labels: Figure) -> DataIndependent:
        """Return the worst-case ε of everything released, and of the labels alone, rounded up."""
        numbers = ((round_up(one.epsilon), one.order, one.method) for one in (everything, labels))
        return cls(*next(numbers), *next(numbers))


@dataclass(frozen=True)
class LabelFile:
    """The file of labels that a report belongs to, without its name, which may be private.

    Attributes:
        format: the format of the file.
        bytes: the size of the file.
        sha256: the SHA-256 of the file, in hexadecimal digits.
    """

    format: LabelFormat
    bytes: int
    sha256: str

    @classmethod
    def of(cls, digest: Digest, label_format: LabelFormat) -> LabelFile:
        """Return the description of a file of labels, from the file's digest and its format."""
        return cls(label_format, digest.size, digest.sha256)


@dataclass(frozen=True)
class GroupGuarantee(Group):
    """A group of teachers, and the (ε, δ) that protects each training record of this group."""

    epsilon: float
    delta: float


@dataclass(frozen=True)
class Statement:
    """One statement about the published numbers, and whether it is true of this report."""

    id: str
    holds: bool
    text: str


@dataclass(frozen=True, repr=False, kw_only=True)
class ReportFacts:
    """Facts that a report states; `disclosure.guarantee.report_of` computes all other fields.

    Attributes:
        rounds: settings of the runs whose costs are composed, and the numbers of their answers.
        passed: True if the labels passed their release test, False if they failed it; None if the
            run had no release test.
        total: whether the report is about all runs in `spent`, and not about a single run.
        sanitizer: the parameters with which `release` drew a sanitized ε from ledgers; None if
            `release` drew none. If a run on votes drew a sanitized ε of its own, the parameters of
            that draw are in `rounds`.
        sanitized: the published sanitized ε in nats, rounded up; None if none is published.
        seeded: whether `release` drew the sanitized ε with noise from a seed; if so, the report has
            no guarantee.
        earlier_draws: the parameters with which earlier releases drew a sanitized ε from the rounds
            of this report. The ε of this report includes the cost of the draws in `earlier_draws`,
            and the cost of every sanitized ε that a run on votes drew itself.
        external: costs of other mechanisms on the training records; ε and δ include these costs,
            `labels_epsilon` does not.
        recorded: False if earlier releases may have drawn a sanitized ε that is missing in
            `earlier_draws`; the report then has no guarantee.
        spent: all runs of the record, including the run of the report, and their total cost; None
            if earlier runs are not tracked.
        label_names: the names of the classes, class 0 first; None if classes have no names.
        labels: the file of labels of the report; None if there is no such file.
        run, time: the name of the run, and the time when the run began (UTC); None if the report is
            not from `aggregate`, `release` or a session.
        tool: the version of pate that wrote the report.
    """

    rounds: tuple[Round, ...] = field(metadata={CHECKED: Checked.LABELS})
    passed: bool | None = field(default=None, metadata=_by(Checked.RELEASE_TEST))
    total: bool = field(default=False, metadata=_by(Checked.RECORD))
    sanitizer: ReleasePlan | None = field(default=None, metadata=_by(Checked.SANITIZING))
    sanitized: float | None = field(default=None, metadata=_by(Checked.SANITIZING))
    seeded: bool = field(default=False, metadata=_by(Checked.RECORD))
    earlier_draws: tuple[ReleasePlan, ...] = field(default=(), metadata=_by(Checked.RECORD))
    external: tuple[Stated, ...] = field(default=(), metadata=_by(Checked.EXTERNAL))
    recorded: bool = field(default=True, metadata=_by(Checked.RECORD))
    spent: Spent | None = field(default=None, metadata=_by(Checked.RECORD))
    label_names: tuple[str, ...] | None = field(default=None, metadata=_by(Checked.LABELS))
    labels: LabelFile | None = field(default=None, metadata=_by(Checked.LABELS))
    run: str | None = field(default=None, metadata=_by(Checked.RECORD))
    time: str | None = field(default=None, metadata=_by(Checked.RECORD))
    tool: str = field(default=__version__, metadata={CHECKED: Checked.FREE})

    @property
    def plan(self) -> ReleasePlan | None:
        """Return how the published sanitized ε was drawn; None without a sanitized ε."""
        if self.sanitized is None or self.sanitizer is not None:
            return self.sanitizer
        return self.rounds[0].sanitizer if len(self.rounds) == 1 else None

    @property
    def training(self) -> Training | None:
        """Return how private every teacher's training was; None unless all rounds state it.

        The result is None if the report includes costs of external mechanisms, because external
        mechanisms saw the records directly, not through a teacher. The result is also None for
        several rounds if there is no record, or if the record names several ensembles that one
        person's data may have reached.
        """
        spent, several = self.spent, len(self.rounds) > 1
        again = several and (spent is None or trained_several_times(spent.runs))
        return None if self.external or again else training_of(self.rounds)

    @property
    def draws(self) -> tuple[ReleasePlan, ...]:
        """Return the parameters of all draws of a sanitized ε; every draw adds to `cost`."""
        own = () if self.sanitizer is None else self.sanitizer.draws
        return (*draws_of(self.rounds), *own, *self.earlier_draws)

    @property
    def drawn_as_published(self) -> bool:
        """Return whether a sanitized ε comes from the `paper` analysis, which gives no valid bound.

        The result is False for a report about all runs in `spent`: `Run.claimed` is False for every
        run whose sanitized ε comes from the `paper` analysis.
        """
        return not self.total and bool(self.draws) and self.rounds[0].analysis == "paper"

    @property
    def target(self) -> TargetPlan | None:
        """Return the target (ε, δ) that a single run stated in advance; None without a target."""
        return self.rounds[0].target if len(self.rounds) == 1 and not self.total else None

    @property
    def tested(self) -> TargetPlan | None:
        """Return the target of a single run that has a release test; None without a test."""
        return None if self.target is None else self.rounds[0].tested

    @property
    def runs(self) -> tuple[Run, ...]:
        """Return the runs of the record in `spent`; an empty tuple if runs are not tracked."""
        return () if self.spent is None else self.spent.runs

    @property
    def disjoint(self) -> tuple[str, ...]:
        """Return the declarations in `spent` that ensembles are disjoint, in words."""
        return () if self.spent is None else self.spent.disjoint

    @property
    def all_settings(self) -> tuple[Settings, ...]:
        """Return the settings of all rounds, and of all labelling runs in `spent`."""
        return (*self.rounds, *(run.settings for run in self.runs if run.settings is not None))

    @property
    def teachers_reached(self) -> int:
        """Return how many teachers one record may have trained.

        If the teachers have groups, the result is the largest number of any group.
        """
        first = self.rounds[0]
        if first.groups:
            return max(group.teachers_per_record for group in first.groups)
        # Votes that always change together belong to one teacher.
        return 1 if first.aggregator.votes_together else first.aggregator.teachers_per_record

    @property
    def by_record(self) -> bool:
        """Return whether the guarantee is for one training record, not for a teacher's data."""
        return bool(self.external) or self.teachers_reached > 1

    @property
    def refused(self) -> bool:
        """Return whether the labels failed their release test, so that none are released."""
        return self.passed is False

    @cached_property
    def cost(self) -> Cost:
        """Return the worst-case cost of everything released, as if there were no release test."""
        if self.total:
            return cost_of(self.runs)
        cost = functools.reduce(operator.add, map(Cost.of_labels, self.rounds))
        return replace(cost, draws=self.draws, stated=self.external)


@dataclass(frozen=True, repr=False, kw_only=True)
class Report(ReportFacts, Result):
    """Public report of labels: (ε, δ), the guarantee, and the facts from which (ε, δ) follows.

    `aggregate` and `release` make a report. Publish the report beside the labels, and publish
    nothing else about a run. Readers check a report with `verify`, and read it in plain words with
    `explain`.

        >>> done = pate.aggregate("sample_votes/demo.parquet", max_queries=300, seed=1)
        >>> done.report
        <Report: epsilon 1.3788 at delta 1e-05, 163 of 300 queries answered>
        >>> done.report.epsilon, done.report.epsilon_kind
        (1.3788, 'worst-case')
        >>> done.report.private  # Noise from a seed protects nobody.
        False
        >>> done.report.save("report.json")

    A report has the fields of `ReportFacts`, and fields that are computed from those of
    `ReportFacts`.

    Attributes:
        private: whether noise was unpredictable; noise from a seed gives no guarantee.
        sound: whether ε is a valid bound. An ε from the `paper` analysis is no valid bound, and
            `unsettled` has other reasons why ε is not valid.
        epsilon, delta: the stated ε, in nats and rounded up to 4 decimals, and its δ.
        epsilon_kind: the kind of ε: `target` (the labels passed the release test of a target ε),
            `refusal` (the labels failed this test), `worst-case`, `upper` (sanitized), or `total`
            of all runs in `spent`.
        mechanism: the name and the public parameters of the mechanism.
        queries, answers, max_answers: the number of rows asked, the number of labels released, and
            the public cap on labels; if a query has several labels, a row is a pair of a query and
            a label.
        summary: what the report promises, in a few sentences.
        adjacency: who is protected, in words.
        covers: everything that ε covers, in words.
        statements: statements about the published numbers; each says whether it is true.
        data_independent: the worst-case ε, which holds whatever the votes are.
        record_epsilon: the ε for one training record at δ, nats; None if nobody states how private
            the teachers' training was.
        crosscheck: the ε of textbook accountants for the labels alone; None if the report is about
            all runs in `spent`.
        groups: the groups of teachers, each with an ε for its records, which is at most the ε of
            the report.
        unsettled: reasons why ε is no valid bound: `classes` or `queries` (this number was read
            from the votes), `draws` (the cost of earlier draws may be missing), `inputs` (an input
            of `release` does not verify).
        warnings: warnings for the reader.
    """

    private: bool
    sound: bool
    epsilon: float
    epsilon_kind: str
    delta: float
    mechanism: dict[str, Any]
    queries: int
    answers: int
    max_answers: int
    summary: str = ""
    adjacency: str = ""
    covers: str = ""
    statements: tuple[Statement, ...] = ()
    data_independent: DataIndependent
    record_epsilon: float | None = field(default=None, metadata=SPARING)
    crosscheck: Textbook | None = None
    groups: tuple[GroupGuarantee, ...] = field(default=(), metadata=SPARING)
    unsettled: tuple[str, ...] = field(default=(), metadata=SPARING)
    warnings: tuple[str, ...] = ()

    @property
    def facts(self) -> ReportFacts:
        """Return the facts of the report, without the fields that are computed from facts."""
        return ReportFacts(**{each.name: getattr(self, each.name) for each in fields(ReportFacts)})

    @property
    def label_set(self) -> LabelSet | None:
        """Return the labels that a query may have.

        The result is None if a query has one label, or if the rounds have different labels.
        """
        found = {done.label_set for done in self.rounds}
        return found.pop() if len(found) == 1 else None

    @property
    def analysis(self) -> str:
        """Return the analysis that computed the costs: `tight`, `paper`, or `composition`."""
        return self.rounds[0].analysis

    @property
    def rows(self) -> str:
        """Return the word for what `queries` counts: queries, or pairs of a query and a label."""
        return rows_of(self.label_set)

    @property
    def claimed(self) -> bool:
        """Return whether the report has any guarantee."""
        return self.private and self.sound

    def claims(self, statement: str) -> bool:
        """Return whether the report has the statement with this id, and it is true."""
        return any(reading.holds for reading in self.statements if reading.id == statement)

    def with_labels(self, path: str | os.PathLike[str]) -> Report:
        """Return a copy of this report that also has the hash and format of a file of its labels.

        Args:
            path: a file on disk, or an address of a store; the suffix says the format of labels.

        Raises:
            VoteError: the file of labels cannot be read.
            UsageError: the suffix names no format.
        """
        kind, digest = LabelFormat.from_path(public_name(os.fspath(path))), digest_of(path)
        return replace(self, labels=LabelFile.of(digest, kind))

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON-ready values: first the computed fields, then the facts."""
        head = {"kind": KIND, "schema_version": SCHEMA_VERSION, "releasable": self.releasable}
        stated = {each.name for each in fields(ReportFacts)}
        return head | dict(sorted(encoded(self).items(), key=lambda item: item[0] in stated))

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return a table of the statements about the numbers: id, whether it is true, and text."""
        return {
            name: np.array([getattr(reading, name) for reading in self.statements])
            for name in ("id", "holds", "text")
        }

    def said(self) -> Said:
        """Return titled lines: the guarantee, who is protected, the worst case, the warnings."""
        worst = f"epsilon {nats(self.data_independent.epsilon)}"
        told = [
            ("guarantee", self.summary),
            ("protected", self.adjacency),
            ("worst case", worst if self.claims("all-votes") else "none that is claimed"),
            *(("warning", warning) for warning in self.warnings),
        ]
        return [Pairs(told)]

    def plot(self, axes: Any = None) -> Any:
        """Draw the stated ε beside the worst case and the textbook ε on matplotlib Axes. Public.

        Args:
            axes: where to draw; new Axes if left out. Needs the extra `plot`.

        Returns:
            The Axes, with one bar for each ε.
        """
        from pate_cli.disclosure.pictures import draw_report

        return draw_report(self, axes)

    @property
    def releasable(self) -> bool:
        """Return whether the report may be published; a report of a run with a seed may not."""
        return self.private

    @property
    def secret(self) -> bool:
        """Return False, because no report is secret, even one without a guarantee."""
        return False

    def headline(self) -> str:
        """Return ε, δ and the number of answers as a phrase; it says if the run is in no record."""
        charged = "" if self.spent is not None or not self.private else "; in no record"
        return (
            f"{pair(self.epsilon, self.delta)}, "
            f"{self.answers} of {self.queries} {self.rows} answered{charged}"
        )


def report_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of the file that `Report.save` writes."""
    found = schema_of(Report)
    head = {
        "kind": {"const": KIND},
        "schema_version": {"const": SCHEMA_VERSION},
        "releasable": {"type": "boolean"},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Public report of pate",
        **found,
        "properties": head | found["properties"],
        "required": [*head, *found["required"]],
    }


class RefusedError(PateError):
    """Raised if labels fail the release test of a `target_epsilon`; has the public report.

    Catch it around `aggregate(target_epsilon=...)`. A failed test also costs privacy, so publish
    the `report` of the error, and count the cost that the report states.

        >>> votes = [[40, 38, 22]] * 30
        >>> given = {"layout": "counts", "max_queries": 30, "sigma2": 16, "seed": 1}
        >>> try:
        ...     pate.aggregate(votes, "gnmax", target_epsilon=0.5, min_pass=0.0, **given)
        ... except pate.RefusedError as refusal:
        ...     refusal.report
        <Report: epsilon 0.2500 at delta 1e-05, 0 of 30 queries answered>
    """

    exit_code = 8

    def __init__(self, message: str, report: Report) -> None:
        """Make the error from its message and the public report of the failed test."""
        super().__init__(message)
        self.report = report


def read_report(path: str | PathLike[str]) -> Report:
    """Return the report in a file, which has a path or an address; "-" is standard input.

    Raises:
        ReportError: the file cannot be read, or is not a valid report; the message names the file.
        UsageError: the file is also an output of the command.
    """
    if path == "-":
        if sys.stdin is None or sys.stdin.closed:
            raise ReportError("cannot read standard input: it is closed; connect a pipe or a file")
        note_stream("the report", sys.stdin)
        return parse_report(sys.stdin.buffer.read(_LARGEST + 1), "standard input")
    with reading(path, "the report", ReportError) as file:
        content = file.read(_LARGEST + 1)
    return parse_report(content, public_name(path))


def report_in(given: Report | bytes | str | PathLike[str]) -> Report:
    """Return a report that is given as an object, as text, or as a file.

    Raises:
        ReportError: the text or file is not a report, or violates the schema.
    """
    if isinstance(given, Report):
        return given
    return parse_report(given) if isinstance(given, bytes) else read_report(given)


def parse_report(text: str | bytes, name: str = "the report") -> Report:
    """Return the report in a JSON text.

    Args:
        text: the content of the report's file.
        name: the name of the file in messages.

    Raises:
        ReportError: the text is not JSON, is not a report of a version that this pate can read, or
            has wrong fields.
    """
    head = text[:100] if isinstance(text, str) else text[:100].decode(errors="replace")
    for kind, told in _OTHERS.items():  # A record has one JSON object per line, which is not JSON.
        if f'"{kind}"' in head:
            raise ReportError(f"{name} is {told}")
    foreign = Refusal(ReportError, f"{name} is not a report, or is damaged: ", f"; {_OURS}")
    data = parsed(text, foreign, most=_LARGEST)
    if not isinstance(data, dict) or data.pop("kind", None) != KIND:
        raise ReportError(f"{name} is not a report: {_OURS}")
    version, releasable = data.pop("schema_version", None), data.pop("releasable", None)
    refuse_version(version, SCHEMA_VERSION, name, ReportError)
    damaged = Refusal(ReportError, f"{name} is damaged: ", "; restore it from a copy")
    found = decoded(Report, data, damaged)
    if releasable is not found.releasable:
        raise damaged.of("the fields `releasable` and `private` contradict each other")
    return found
