"""The public report: facts of a release, and the promise that is computed from them.

Every field is a public parameter, the released labels' number, a data-independent ε, or a value
that `release` sanitized. A report holds no reference to a ledger. Its fields are those of its file,
which `read_report` reads back by their annotations.
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
from pate_cli.core.arrays import LabelSet, rows_of
from pate_cli.core.errors import PateError, ReportError
from pate_cli.core.said import Pairs, Said
from pate_cli.core.stamps import __version__
from pate_cli.core.words import LabelFormat
from pate_cli.disclosure.cost import Cost, Figure
from pate_cli.disclosure.external import Stated
from pate_cli.disclosure.figures import nats, pair
from pate_cli.disclosure.ledger import Round
from pate_cli.disclosure.runs import Spent
from pate_cli.disclosure.settings import ReleasePlan
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
"""Raised with every change of a field or of a sentence: it says whose words a report's are."""
CHECKED: Final = "checked"
"""Name of the metadata of a fact that says how it is checked; what has none is computed."""
_LARGEST: Final = 1 << 26  # bytes
_OURS: Final = "give the file that --report wrote"
_OTHERS: Final = {
    "pate-ledger": "a ledger, which is SECRET; give the public report",
    "pate-spend-record": "a record, which pate spent shows; give a report",
    "dry_run": "a quote of --dry-run, nothing was released; give a report",
}


class Checked(enum.StrEnum):
    """Kinds of check: how a reader can tell that a field of a report is true, as `verify` says it.

    Attributes:
        COMPUTED: it follows from the facts (`disclosure.facts.report_of`).
        LABELS: the file of labels tells, by its hash, its rows and the settings it carries.
        RECORD: only the record tells, which the holder of the votes keeps.
        RELEASE_TEST: it came out of a random draw whose chance follows from the votes.
        SANITIZING: it was drawn around a number that describes the votes.
        EXTERNAL: others state it.
        FREE: nothing follows from it.
    """

    COMPUTED = "numbers and words"
    LABELS = "settings that the labels carry"
    RECORD = "whether runs are missing, and what earlier ones did"
    RELEASE_TEST = "the random draw of the release test"
    SANITIZING = "the random draw of the sanitized epsilon"
    EXTERNAL = "what others state"
    FREE = "nothing"


def _by(how: Checked) -> dict[str, Any]:
    """Return the metadata of a fact that is checked so, and left out of files at its default."""
    return {CHECKED: how} | SPARING


@dataclass(frozen=True)
class DataIndependent:
    """Worst-case ε of everything released; `labels_*` covers the labels alone."""

    epsilon: float
    order: float | None
    method: str
    labels_epsilon: float
    labels_order: float | None
    labels_method: str

    @classmethod
    def of(cls, everything: Figure, labels: Figure) -> DataIndependent:
        """Return both figures, each ε rounded up."""
        numbers = ((round_up(one.epsilon), one.order, one.method) for one in (everything, labels))
        return cls(*next(numbers), *next(numbers))


@dataclass(frozen=True)
class LabelFile:
    """The file that a report belongs to; its name may be private.

    Attributes:
        format: of the file.
        bytes: its size.
        sha256: its hash.
    """

    format: LabelFormat
    bytes: int
    sha256: str

    @classmethod
    def of(cls, digest: Digest, label_format: LabelFormat) -> LabelFile:
        """Return the file with this digest in this format."""
        return cls(label_format, digest.size, digest.sha256)


@dataclass(frozen=True)
class GroupGuarantee(Group):
    """A group of teachers, and the (ε, δ) of its records."""

    epsilon: float
    delta: float


@dataclass(frozen=True)
class Statement:
    """One reading of the published numbers, and whether this report supports it."""

    id: str
    holds: bool
    text: str


@dataclass(frozen=True, repr=False, kw_only=True)
class ReportFacts:
    """Facts that a report states; `disclosure.facts.report_of` computes the rest.

    Attributes:
        rounds: settings of the runs whose costs are composed, and their answers.
        passed: whether labels passed the release test of their target; None without a test.
        total: true of a report on all runs in `spent` and no run by itself.
        sanitizer: how an ε was drawn from ledgers; None where it was not. A run that drew one says
            so in its round.
        sanitized: the ε that was drawn, nats, rounded up; None where none is published.
        seeded: whether the draw from ledgers came from a seed; nothing is promised then.
        earlier_draws: sanitized values that earlier releases drew of these rounds; ε includes them,
            as it does those that the rounds drew themselves.
        external: other mechanisms on the same records; ε and δ include them, `labels_epsilon` does
            not.
        recorded: whether `earlier_draws` is known to be all; nothing is promised if not.
        spent: all runs that the record tells of, this one among them, and what they cost together;
            None where earlier runs are not tracked.
        label_names: what the classes are called, class 0 first, where they have names.
        labels: the file of labels that the report was written with, None where there was none.
        run, time: name of the run, and when it began (UTC); None where no verb made the report.
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
        """How the sanitized ε was drawn; None where none is published."""
        if self.sanitized is None or self.sanitizer is not None:
            return self.sanitizer
        return self.rounds[0].sanitizer if len(self.rounds) == 1 else None

    @property
    def draws(self) -> tuple[ReleasePlan, ...]:
        """Every sanitized value of these rounds, from first to last; all of them are charged."""
        plans = [*(done.sanitizer for done in self.rounds), self.sanitizer]
        own = [draw for plan in plans if plan is not None for draw in plan.draws]
        return (*own, *self.earlier_draws)

    @property
    def target(self) -> TargetPlan | None:
        """The (ε, δ) of a run by itself that was stated in advance; None without one."""
        return self.rounds[0].target if len(self.rounds) == 1 and not self.total else None

    @property
    def refused(self) -> bool:
        """Whether the labels failed their release test, so that none are released."""
        return self.passed is False

    @cached_property
    def cost(self) -> Cost:
        """Worst-case cost of everything that is released, if there were no test."""
        if self.total and self.spent is not None:
            return functools.reduce(operator.add, (run.cost for run in self.spent.runs), Cost())
        cost = functools.reduce(operator.add, map(Cost.of_labels, self.rounds))
        return replace(cost, draws=self.draws, stated=self.external)


@dataclass(frozen=True, repr=False, kw_only=True)
class Report(ReportFacts, Result):
    """Public report of labels: (ε, δ), the promise, and all that it was computed from.

    `aggregate` and `release` return one; publish it beside the labels, and have others check it
    with `verify` and read it with `explain`. Nothing else about a run is to be published.

        >>> done = pate.aggregate("sample_votes/demo.parquet", max_queries=300, seed=1)
        >>> done.report
        <Report: epsilon 1.3788 at delta 1e-05, 163 of 300 queries answered>
        >>> done.report.epsilon, done.report.epsilon_kind
        (1.3788, 'worst-case')
        >>> done.report.private  # noise from a seed promises nothing
        False
        >>> done.report.save("report.json")

    Its facts are fields as well (`ReportFacts`). What follows here is computed from them.

    Attributes:
        private: whether noise was unpredictable; nothing is promised where it came from a seed.
        sound: whether ε is a bound that can be defended. What the `paper` analysis draws never is;
            nothing is where the number of classes or the list of queries was read off the votes.
        epsilon, delta: the headline, nats, rounded up to 4 decimals.
        epsilon_kind: where ε comes from: `target` (labels that passed its release test), `refusal`
            (labels that failed it), `worst-case`, `upper` (sanitized), or `total` of all runs in
            `spent`.
        mechanism: its name and public parameters.
        queries, answers, max_answers: rows asked, labels released, and the public cap on these;
            where a query has several labels, of pairs of a query and a label.
        summary: the headline in a sentence.
        adjacency: who is protected.
        covers: what ε accounts for.
        statements: readings of the numbers, each with whether it holds.
        data_independent: the worst case.
        crosscheck: figures of textbook accountants for the labels alone; None in a total.
        groups: of teachers that count differently, each with its ε; none is above the headline.
        unsettled: facts that were read off the votes (`classes`, `queries`), `draws` where earlier
            ones may not be charged, `inputs` that do not verify: with any, nothing is promised.
        warnings: what a reader should know.
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
    crosscheck: Textbook | None = None
    groups: tuple[GroupGuarantee, ...] = field(default=(), metadata=SPARING)
    unsettled: tuple[str, ...] = field(default=(), metadata=SPARING)
    warnings: tuple[str, ...] = ()

    @property
    def facts(self) -> ReportFacts:
        """The facts that the report states, without what is computed from them."""
        return ReportFacts(**{each.name: getattr(self, each.name) for each in fields(ReportFacts)})

    @property
    def label_set(self) -> LabelSet | None:
        """The labels of a query, where it has several in every round."""
        found = {done.label_set for done in self.rounds}
        return found.pop() if len(found) == 1 else None

    @property
    def analysis(self) -> str:
        """How costs were computed: `tight` or `paper` of Renyi mechanisms, `composition`."""
        return self.rounds[0].analysis

    @property
    def rows(self) -> str:
        """Word for the rows that `queries` counts."""
        return rows_of(self.label_set)

    @property
    def claimed(self) -> bool:
        """Whether anything is promised at all."""
        return self.private and self.sound

    def claims(self, statement: str) -> bool:
        """Return whether the statement of this id holds."""
        return any(reading.holds for reading in self.statements if reading.id == statement)

    def with_labels(self, path: str | os.PathLike[str]) -> Report:
        """Return the report of the labels in a file, by their hash.

        Args:
            path: on disk, or an address of a store; its suffix tells the format.

        Raises:
            VoteError: it cannot be read.
            UsageError: the suffix names no format.
        """
        kind, digest = LabelFormat.from_path(public_name(os.fspath(path))), digest_of(path)
        return replace(self, labels=LabelFile.of(digest, kind))

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON-ready values: what was computed first, then the facts."""
        head = {"kind": KIND, "schema_version": SCHEMA_VERSION, "releasable": self.releasable}
        stated = {each.name for each in fields(ReportFacts)}
        return head | dict(sorted(encoded(self).items(), key=lambda item: item[0] in stated))

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the readings of the numbers, one a row: id, holds, text."""
        return {
            name: np.array([getattr(reading, name) for reading in self.statements])
            for name in ("id", "holds", "text")
        }

    def said(self) -> Said:
        """Return the promise, who is protected, the worst case and the warnings, by title."""
        worst = f"epsilon {nats(self.data_independent.epsilon)}"
        told = [
            ("guarantee", self.summary),
            ("protected", self.adjacency),
            ("worst case", worst if self.claims("all-votes") else "none that is claimed"),
            *(("warning", warning) for warning in self.warnings),
        ]
        return [Pairs(told)]

    def plot(self, axes: Any = None) -> Any:
        """Draw the stated ε beside the worst case and the textbook's on matplotlib Axes. Public.

        Args:
            axes: where to draw; new ones if left out. Needs the extra `plot`.

        Returns:
            The Axes, with a bar a figure.
        """
        from pate_cli.disclosure.pictures import draw_report

        return draw_report(self, axes)

    @property
    def releasable(self) -> bool:
        """True where the report may be published: noise from a seed promises nothing."""
        return self.private

    @property
    def secret(self) -> bool:
        """False: no report is secret, whatever it is worth."""
        return False

    def headline(self) -> str:
        """ε, δ, how many answers they pay for, and whether that is charged anywhere."""
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
    """Raised where a `target_epsilon` was missed: no labels, and a report of what that cost.

    Catch it around `aggregate(target_epsilon=...)`. The refusal is an outcome of the run and spends
    privacy, too: publish its `report`, and count it.

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
        """`report` is the public report of the refusal."""
        super().__init__(message)
        self.report = report


def read_report(path: str | PathLike[str]) -> Report:
    """Return the report in a file, by path or address, or with "-" on standard input.

    Raises:
        ReportError: it cannot be read, or as for `parse_report`; the message names the file.
        UsageError: it is an output of the command, too.
    """
    if path == "-":
        return parse_report(_from_pipe(), "standard input")
    with reading(path, "the report", ReportError) as file:
        content = file.read(_LARGEST + 1)
    return parse_report(content, public_name(path))


def report_in(given: Report | bytes | str | PathLike[str]) -> Report:
    """Return a report that is given as it is, by its content, or by its file.

    Raises:
        ReportError: no report, or one against the schema.
    """
    if isinstance(given, Report):
        return given
    return parse_report(given) if isinstance(given, bytes) else read_report(given)


def _from_pipe() -> bytes:
    if sys.stdin is None or sys.stdin.closed:
        raise ReportError("cannot read standard input: it is closed")
    note_stream("the report", sys.stdin)
    return sys.stdin.buffer.read(_LARGEST + 1)


def parse_report(text: str | bytes, name: str = "the report") -> Report:
    """Return the report that a JSON text is.

    Args:
        text: its content.
        name: of the file, for messages.

    Raises:
        ReportError: no JSON, of another kind, of a version that is not read, or not as the fields
            of a report must be.
    """
    head = text[:100] if isinstance(text, str) else text[:100].decode(errors="replace")
    for kind, told in _OTHERS.items():  # lines of a record are no JSON together
        if f'"{kind}"' in head:
            raise ReportError(f"{name} is {told}")
    foreign = Refusal(ReportError, f"{name} is no report, or a damaged one: ", f"; {_OURS}")
    data = parsed(text, foreign, most=_LARGEST)
    if not isinstance(data, dict) or data.pop("kind", None) != KIND:
        raise ReportError(f"{name} is no report: {_OURS}")
    version, releasable = data.pop("schema_version", None), data.pop("releasable", None)
    refuse_version(version, SCHEMA_VERSION, name, ReportError)
    damaged = Refusal(ReportError, f"{name} is damaged: ", "; restore it from a copy")
    found = decoded(Report, data, damaged)
    if releasable is not found.releasable:
        raise damaged.of("`releasable` is not what `private` says")
    return found
