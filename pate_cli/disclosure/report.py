"""The public report: a self-contained statement of the guarantee, fit for publishing.

Every field is a public parameter, the released labels' number, a data-independent ε, or a value
that `release` sanitized. A report holds no reference to a ledger. Its fields are those of its file,
in their order, and each says how it can be checked (`disclosure.checked`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pate_cli.core.codec import SPARING, encoded, schema_of
from pate_cli.core.errors import ParameterError, PateError
from pate_cli.core.label_set import LabelSet, rows_of
from pate_cli.core.version import __version__
from pate_cli.core.words import Bound, LabelFormat, ReleaseKind
from pate_cli.disclosure.checked import (
    COMPUTED,
    EXTERNAL,
    FREE,
    LABELS,
    PARTS,
    RECORD,
    RELEASE_TEST,
    SANITIZING,
)
from pate_cli.disclosure.external import Stated
from pate_cli.disclosure.figures import nats, pair
from pate_cli.disclosure.ledger import Round
from pate_cli.disclosure.plan import Draw
from pate_cli.disclosure.total import Spent
from pate_cli.files.addresses import public_name
from pate_cli.files.reading import Digest, digest_of
from pate_cli.files.results import Result
from pate_cli.votes.facts import Group

KIND: Final = "pate-report"
SCHEMA_VERSION: Final = 1
"""Raised with every change of a field or of a sentence: it says whose words a report's are."""


@dataclass(frozen=True)
class Sanitized:
    """A released data-dependent ε and the public parameters it was released with.

    With release `none` all numbers are None. `release_rdp` is what the draw costs, exactly;
    `release_rdp_published` what the paper's theorem claims, in `paper` analysis only.
    """

    release: ReleaseKind = field(metadata=LABELS)
    epsilon: float | None = field(default=None, metadata=SANITIZING)
    order: float | None = field(default=None, metadata=SANITIZING)
    beta: float | None = field(default=None, metadata=LABELS)
    sigma_release: float | None = field(default=None, metadata=LABELS)
    delta_failure: float | None = field(default=None, metadata=COMPUTED)
    release_rdp: float | None = field(default=None, metadata=COMPUTED)
    release_rdp_published: float | None = field(default=None, metadata=COMPUTED)


@dataclass(frozen=True)
class DataIndependent:
    """ε for all votes, covering everything released; `labels_*` covers the labels alone."""

    epsilon: float
    order: float | None
    method: str
    labels_epsilon: float
    labels_order: float | None
    labels_method: str


@dataclass(frozen=True)
class CrosscheckStep:
    """A step that a textbook composes, and how often it was done.

    Attributes:
        kind: `gaussian`, of a noise_multiplier, or `bounded`, of an epsilon and a delta.
    """

    kind: str
    count: int
    noise_multiplier: float | None = field(default=None, metadata=SPARING)
    epsilon: float | None = field(default=None, metadata=SPARING)
    delta: float | None = field(default=None, metadata=SPARING)


@dataclass(frozen=True)
class Crosscheck:
    """Figures of textbook accountants for the labels alone (accounting.textbook).

    Attributes:
        delta: that of the report, but for what external parts add.
        steps: what is composed.
        rdp_epsilon, rdp_order, exact_epsilon: for Gaussian steps, rounded up; else None.
        basic_epsilon, advanced_epsilon: for the others.
        compared: how data_independent.labels_epsilon compares, and why.
    """

    delta: float
    steps: tuple[CrosscheckStep, ...]
    rdp_epsilon: float | None
    rdp_order: float | None
    exact_epsilon: float | None
    basic_epsilon: float | None
    advanced_epsilon: float | None
    compared: str


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
class Tested:
    """A budget that was tested: whether the labels passed, and what was fixed beforehand.

    The chance of passing and everything it was computed from stay secret.
    """

    passed: bool = field(metadata=RELEASE_TEST)
    target: float = field(metadata=LABELS)
    delta: float = field(metadata=COMPUTED)
    refusal_epsilon: float = field(metadata=LABELS)
    orders: tuple[float, ...] = field(metadata=COMPUTED)
    distances: int = field(metadata=COMPUTED)
    bound: Bound = field(metadata=LABELS)


@dataclass(frozen=True)
class GroupGuarantee(Group):
    """A group of teachers, and the (ε, δ) of its records."""

    epsilon: float = field(metadata=COMPUTED)
    delta: float = field(metadata=COMPUTED)


@dataclass(frozen=True)
class PublicPrior:
    """A public prior that voted beside the teachers.

    Attributes:
        weight: B, how many votes it had on a query; None where rounds differ in it.
        guesses: how many of all queries it had a guess for.
        sha256: of its file; None where rounds differ in it.
        presupposed: what all that is said rests on.
    """

    weight: int | None
    guesses: int
    sha256: str | None
    presupposed: str


@dataclass(frozen=True)
class Statement:
    """One reading of the published numbers, and whether this report supports it."""

    id: str
    holds: bool
    text: str


@dataclass(frozen=True, repr=False, kw_only=True)
class Report(Result):
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

    Attributes:
        run, time: name of the run, and when it began (UTC); None where no verb made the report.
        labels: the file of labels that the report was written with, None where there was none.
        private: whether noise was unpredictable; nothing is promised where it came from a seed.
        sound: whether ε is a bound that can be defended. What the `paper` analysis draws never is;
            nothing is where the number of classes or the list of queries was read off the votes.
        epsilon, delta: the headline, nats, rounded up to 4 decimals.
        epsilon_kind: where ε comes from: `target` (a tested budget that passed), `refusal` (one
            that did not), `worst-case`, `upper` (sanitized), or `total` of all runs in `spent`.
        analysis: `tight` or `paper` of Rényi mechanisms, `composition` of others.
        conversion: the theorem that turns Rényi costs into ε.
        mechanism: its name and public parameters.
        queries, answers, max_answers: rows asked, labels released, and the public cap on these;
            with a `label_set` pairs of a query and a label.
        label_names: what the classes are called, class 0 first, where they have names.
        label_set: of several labels a query.
        prior: a public prior that voted, too; `rounds` say which round had which.
        summary: the headline in a sentence.
        adjacency: who is protected.
        covers: what ε accounts for.
        statements: readings of the numbers, each with whether it holds.
        sanitized: the data-dependent ε, if there is one.
        data_independent: what holds for all votes.
        crosscheck: figures of textbooks for the labels; None in a total of all runs.
        tested: the test of a target; None where there was none.
        met_target: a target that ε meets without a test; None where there is none.
        spent: all runs that the record tells of, this one among them, and what they cost together;
            None where earlier runs are not tracked.
        groups: of teachers that count differently, each with its ε; none is above the headline.
        earlier_draws: made from the same votes before, and included in ε.
        external: other mechanisms on the same records; ε and δ include them, `labels_epsilon` does
            not.
        unsettled: facts that were read off the votes (`classes`, `queries`), `draws` where earlier
            ones may not be charged, `inputs` that do not verify: with any, nothing is promised.
        rounds: the runs whose costs are composed.
        warnings: what a reader should know.
        tool: the version of pate that wrote the report.
    """

    run: str | None = field(default=None, metadata=RECORD)
    time: str | None = field(default=None, metadata=RECORD)
    labels: LabelFile | None = field(default=None, metadata=LABELS)
    private: bool = field(metadata=LABELS)
    sound: bool = field(metadata=COMPUTED)
    epsilon: float = field(metadata=COMPUTED)
    epsilon_kind: str = field(metadata=COMPUTED)
    delta: float = field(metadata=LABELS)
    analysis: str = field(metadata=LABELS)
    conversion: str = field(metadata=COMPUTED)
    mechanism: dict[str, Any] = field(metadata=COMPUTED)
    queries: int = field(metadata=COMPUTED)
    answers: int = field(metadata=COMPUTED)
    max_answers: int = field(metadata=COMPUTED)
    label_names: tuple[str, ...] | None = field(default=None, metadata=SPARING | LABELS)
    label_set: LabelSet | None = field(default=None, metadata=SPARING | COMPUTED)
    prior: PublicPrior | None = field(default=None, metadata=SPARING | COMPUTED)
    summary: str = field(default="", metadata=COMPUTED)
    adjacency: str = field(default="", metadata=COMPUTED)
    covers: str = field(default="", metadata=COMPUTED)
    statements: tuple[Statement, ...] = field(default=(), metadata=COMPUTED)
    sanitized: Sanitized = field(metadata=PARTS)
    data_independent: DataIndependent = field(metadata=COMPUTED)
    crosscheck: Crosscheck | None = field(default=None, metadata=COMPUTED)
    tested: Tested | None = field(default=None, metadata=PARTS)
    met_target: float | None = field(default=None, metadata=SPARING | LABELS)
    spent: Spent | None = field(default=None, metadata=PARTS)
    groups: tuple[GroupGuarantee, ...] = field(default=(), metadata=SPARING | LABELS)
    earlier_draws: tuple[Draw, ...] = field(default=(), metadata=SPARING | RECORD)
    external: tuple[Stated, ...] = field(default=(), metadata=SPARING | EXTERNAL)
    unsettled: tuple[str, ...] = field(default=(), metadata=SPARING | LABELS)
    rounds: tuple[Round, ...] = field(metadata=LABELS)
    warnings: tuple[str, ...] = field(default=(), metadata=COMPUTED)
    tool: str = field(default=__version__, metadata=FREE)

    def __post_init__(self) -> None:
        if not self.rounds or (self.spent is not None and not self.spent.runs):
            raise ParameterError("rounds, and the runs of spent, must have an entry")
        drawn, numbers = self.sanitized, list(vars(self.sanitized).values())[1:-1]
        if {number is None for number in numbers} != {drawn.release == "none"}:
            raise ParameterError("sanitized must have all its numbers, or none with release none")

    @property
    def rows(self) -> str:
        """Word for the rows that `queries` counts."""
        return rows_of(self.label_set)

    def claims(self, statement: str) -> bool:
        """Return whether the statement of this id holds."""
        return any(reading.holds for reading in self.statements if reading.id == statement)

    def with_labels(
        self, path: str | os.PathLike[str], label_format: LabelFormat | str | None = None
    ) -> Report:
        """Return the report of the labels in a file, by their hash.

        Args:
            path: on disk, or an address of a store.
            label_format: by the suffix if left out.

        Raises:
            VoteError: it cannot be read.
            UsageError: the suffix names no format.
        """
        digest = digest_of(path)
        if label_format is None:
            label_format = LabelFormat.from_path(public_name(os.fspath(path)))
        return replace(self, labels=LabelFile.of(digest, LabelFormat(label_format)))

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON-ready values, in the order of its fields."""
        head = {"kind": KIND, "schema_version": SCHEMA_VERSION, "releasable": self.releasable}
        return head | encoded(self)

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the readings of the numbers, one a row: id, holds, text."""
        return {
            name: np.array([getattr(reading, name) for reading in self.statements])
            for name in ("id", "holds", "text")
        }

    def preview(self) -> list[tuple[object, ...]]:
        """Return the promise, who is protected, the worst case and the warnings, by title."""
        worst = f"epsilon {nats(self.data_independent.epsilon)}"
        return [
            ("guarantee", self.summary),
            ("protected", self.adjacency),
            ("worst case", worst if self.claims("all-votes") else "none that is claimed"),
            *(() if self.prior is None else (("presupposed", self.prior.presupposed),)),
            *(("warning", warning) for warning in self.warnings),
        ]

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


@dataclass(frozen=True)
class Outlook:
    """Expected outcome of a run with a target, before anything is spent; public.

    Attributes:
        target, delta, refusal_epsilon, orders, distances: as in `Tested`.
        needed: whether the labels could cost more than the target, so that a coin is drawn.
        chances: how likely made-up ensembles of this shape would pass: their mean, and the worst
            and the best with what they are like; None where nothing is tested.
    """

    target: float
    delta: float
    refusal_epsilon: float
    orders: tuple[float, ...]
    distances: int
    needed: bool
    chances: Mapping[str, Any] | None


@dataclass(frozen=True, repr=False, kw_only=True)
class Quote(Result):
    """Worst case of a run, before anything is spent; public.

    `threshold` is T of a mechanism that derives it; `planned_release` what would be drawn; `target`
    what a target would mean; `groups`, `prior` and `crosscheck` as in `Report`; there are no
    labels. `sound` is false where a fact that ε takes as public was read off the votes; `warnings`
    say which.
    """

    sound: bool = True
    delta: float
    mechanism: dict[str, Any]
    threshold: float | None = field(default=None, metadata=SPARING)
    queries: int
    max_answers: int
    prior: PublicPrior | None = field(default=None, metadata=SPARING)
    planned_release: dict[str, Any]
    data_independent: DataIndependent
    crosscheck: Crosscheck | None = None
    target: Outlook | None = field(default=None, metadata=SPARING)
    groups: tuple[GroupGuarantee, ...] = field(default=(), metadata=SPARING)
    warnings: tuple[str, ...] = ()

    @property
    def epsilon(self) -> float:
        """ε for all votes of everything that would be released, nats."""
        public = self.data_independent.epsilon
        return public if self.target is None else min(public, self.target.target)

    def to_dict(self) -> dict[str, Any]:
        """Return the quote as JSON-ready values."""
        head = {"schema_version": SCHEMA_VERSION, "dry_run": True, "epsilon": self.epsilon}
        return head | encoded(self)

    def columns(self) -> dict[str, NDArray[Any]]:
        """One row: what is asked and what it costs."""
        row = {"queries": self.queries, "max_answers": self.max_answers, "epsilon": self.epsilon}
        return {name: np.array([value]) for name, value in row.items()}

    @property
    def releasable(self) -> bool:
        """Made to be published."""
        return True

    def headline(self) -> str:
        """The worst case."""
        return f"at most {pair(self.epsilon, self.delta)} for all votes"
