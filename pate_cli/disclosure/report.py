"""The public report: a self-contained statement of the guarantee, fit for publishing.

Every field is a public parameter, the released labels' number, a data-independent ε, or a value
that `release` sanitized. It holds no reference to a ledger and cannot be made from one elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pate_cli.core.codec import SPARING, encoded
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import PateError
from pate_cli.core.label_set import LabelSet, rows_of
from pate_cli.core.version import __version__
from pate_cli.core.words import LabelFormat
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
from pate_cli.disclosure.figures import nats, pair
from pate_cli.disclosure.ledger import Draw
from pate_cli.disclosure.settings import RowsAnswered
from pate_cli.disclosure.total import Spent
from pate_cli.files.addresses import public_name
from pate_cli.files.digest import Digest, digest_of
from pate_cli.files.results import Result
from pate_cli.votes.facts import Group

SCHEMA_VERSION: Final = 1
"""Raised with every change of a field or of a sentence: it says whose words a report's are."""

_CONVERSIONS: Final = {
    "tight": "Canonne-Kamath-Steinke 2020, Proposition 12",
    "paper": "Mironov 2017, Proposition 3 (log(1/delta)/(order - 1))",
    "composition": "Kairouz-Oh-Viswanath 2015 and others, by data_independent.method",
}


@dataclass(frozen=True)
class Sanitized:
    """A released data-dependent ε and the public parameters it was released with.

    With release `none` all numbers are None. `release_rdp` is what the draw costs, exactly;
    `release_rdp_published` what the paper's theorem claims, in `paper` analysis only.
    """

    release: str = field(metadata=LABELS)
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
class Crosscheck:
    """Figures of textbook accountants for the labels alone (accounting.textbook).

    Attributes:
        delta: that of the report, but for what external parts add.
        steps: what is composed, each `gaussian` with a noise_multiplier, or `bounded` with an
            epsilon and a delta, and how often.
        rdp_epsilon, rdp_order, exact_epsilon: for Gaussian steps, rounded up; else None.
        basic_epsilon, advanced_epsilon: for the others.
        compared: how data_independent.labels_epsilon compares, and why.
    """

    delta: float
    steps: tuple[dict[str, Any], ...]
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
    bound: str = field(metadata=LABELS)


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


@dataclass(frozen=True, repr=False)
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

    Numbers in nats are rounded up to 4 decimals.

    `sound` says whether the headline ε is a bound that can be defended. What the `paper`
    analysis draws never is; nothing is where the number of classes or the list of queries was read
    off the votes.
    `label_set` tells of several labels a query; `queries`, `answers` and `max_answers` then count
    pairs of a query and a label.
    `epsilon_kind` says where the headline comes from: `target` (a tested budget that passed),
    `refusal` (one that did not), `worst-case` or `upper`. `label_names` say what the
    classes are called, class 0 first, where they have names. `prior` tells of a public prior that
    voted, too, and `rounds` of which had which. Where teachers count differently, `groups` has the
    ε of each group; none is above the headline.
    `spent` is the account: all runs that the record tells of, this one among them, and what they
    cost together; None where earlier runs are not tracked.
    `earlier_draws` were made from the same votes before, `external` is what other mechanisms on the
    same records cost: ε and δ include both, but for `labels_epsilon`.
    `met_target` is a target that ε meets without a test, None where there is none. `unsettled` are
    public facts that were read off the votes, and `draws` where earlier ones may not be charged:
    with any of them nothing is claimed.
    `run` names the run and `time` says when it began (UTC), None where no verb made the report;
    `labels` is the file of its labels, None where none was written with it; `tool` is the version
    of pate that wrote it.
    """

    epsilon: float = field(metadata=COMPUTED)
    epsilon_kind: str = field(metadata=COMPUTED)
    delta: float = field(metadata=LABELS)
    private: bool = field(metadata=LABELS)
    sound: bool = field(metadata=COMPUTED)
    analysis: str = field(metadata=LABELS)
    mechanism: dict[str, Any] = field(metadata=COMPUTED)
    queries: int = field(metadata=COMPUTED)
    answers: int = field(metadata=COMPUTED)
    max_answers: int = field(metadata=COMPUTED)
    sanitized: Sanitized = field(metadata=PARTS)
    data_independent: DataIndependent = field(metadata=COMPUTED)
    rounds: tuple[RowsAnswered, ...] = field(metadata=LABELS)
    summary: str = field(default="", metadata=COMPUTED)
    adjacency: str = field(default="", metadata=COMPUTED)
    covers: str = field(default="", metadata=COMPUTED)
    statements: tuple[Statement, ...] = field(default=(), metadata=COMPUTED)
    warnings: tuple[str, ...] = field(default=(), metadata=COMPUTED)
    tested: Tested | None = field(default=None, metadata=PARTS)
    spent: Spent | None = field(default=None, metadata=PARTS)
    label_set: LabelSet | None = field(default=None, metadata=SPARING | COMPUTED)
    label_names: tuple[str, ...] | None = field(default=None, metadata=SPARING | LABELS)
    prior: PublicPrior | None = field(default=None, metadata=SPARING | COMPUTED)
    groups: tuple[GroupGuarantee, ...] = field(default=(), metadata=SPARING | LABELS)
    earlier_draws: tuple[Draw, ...] = field(default=(), metadata=SPARING | RECORD)
    external: tuple[dict[str, Any], ...] = field(default=(), metadata=SPARING | EXTERNAL)
    met_target: float | None = field(default=None, metadata=SPARING | LABELS)
    unsettled: tuple[str, ...] = field(default=(), metadata=SPARING | LABELS)
    crosscheck: Crosscheck | None = field(default=None, metadata=COMPUTED)
    labels: LabelFile | None = field(default=None, metadata=LABELS)
    run: str | None = field(default=None, metadata=RECORD)
    time: str | None = field(default=None, metadata=RECORD)
    tool: str = field(default=__version__, metadata=FREE)

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
        """The report of the labels in a file, by their hash.

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
        """The report as JSON-ready values, in a stable order of keys."""
        said = encoded(self)
        return {
            "schema_version": SCHEMA_VERSION,
            "tool": {"name": "pate-cli", "version": self.tool},
            **_among(said, "run", "time", "labels"),
            "releasable": self.private,
            **_among(said, "private", "sound", "epsilon", "epsilon_kind", "delta", "analysis"),
            "conversion": _CONVERSIONS[self.analysis],
            **_among(said, "mechanism", "queries", "answers", "max_answers"),
            **_among(said, "label_names", "label_set", "prior"),
            "guarantee": _among(said, "summary", "adjacency", "covers", "statements"),
            **_among(said, "sanitized", "data_independent", "crosscheck", "tested", "met_target"),
            **_among(said, "spent", "groups"),
            **_among(said, "earlier_draws", "external", "unsettled", "rounds", "warnings"),
        }

    def columns(self) -> dict[str, NDArray[Any]]:
        """The readings of the numbers, one a row: id, holds, text."""
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
        """Made to be published; not with noise from a seed, for which nothing is promised."""
        return self.private

    @property
    def secret(self) -> bool:
        """No report is, whatever it is worth."""
        return False

    def headline(self) -> str:
        """ε, δ, how many answers they pay for, and whether that is charged anywhere."""
        charged = "" if self.spent is not None or not self.private else "; in no record"
        return (
            f"{pair(self.epsilon, self.delta)}, "
            f"{self.answers} of {self.queries} {self.rows} answered{charged}"
        )


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


def _among(said: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return those of the named facts that are there, in the order of the names."""
    return {name: said[name] for name in names if name in said}


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


@dataclass(frozen=True, repr=False)
class Quote(Result):
    """Worst case of a run, before anything is spent; public.

    `threshold` is T of a mechanism that derives it; `planned_release` what would be drawn; `target`
    what a target would mean; `groups`, `prior` and `crosscheck` as in `Report`; there are no
    labels. `adjacency` says who is protected, where a curve of it is exported. `sound` is false
    where a fact that ε takes as public was read off the votes; `warnings` say which.
    """

    mechanism: dict[str, Any]
    delta: float
    queries: int
    max_answers: int
    planned_release: dict[str, Any]
    data_independent: DataIndependent
    threshold: float | None = field(default=None, metadata=SPARING)
    target: Outlook | None = field(default=None, metadata=SPARING)
    groups: tuple[GroupGuarantee, ...] = field(default=(), metadata=SPARING)
    prior: PublicPrior | None = field(default=None, metadata=SPARING)
    adjacency: str = ""
    sound: bool = True
    warnings: tuple[str, ...] = ()
    crosscheck: Crosscheck | None = None

    @property
    def epsilon(self) -> float:
        """ε for all votes of everything that would be released, nats."""
        public = self.data_independent.epsilon
        return public if self.target is None else min(public, self.target.target)

    def to_dict(self) -> dict[str, Any]:
        """The quote as JSON-ready values."""
        said = encoded(self)
        return {
            "schema_version": SCHEMA_VERSION,
            "dry_run": True,
            "sound": self.sound,
            "epsilon": self.epsilon,
            **_among(said, "delta", "mechanism", "threshold", "queries", "max_answers", "prior"),
            **_among(said, "planned_release", "data_independent", "crosscheck"),
            "labels": None,
            **_among(said, "target", "groups", "warnings"),
        }

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
