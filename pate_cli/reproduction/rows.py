"""The rows of Tables 1 and 2: as the paper prints them, and the like for votes it does not know.

The printed figures, and the votes and parameters they are said to come from, are data
(printed_tables.json, whose keys are the fields here).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from pate_cli.core.words import LAPLACE_SHARE, SIGMA1_SHARE, SIGMA2_SHARE, THRESHOLD_SHARE

_SAMPLE_DELTA = 1e-5
# As many as the paper's longest run.
MOST_SAMPLE_ROWS = 12_000

SAMPLE_NOTE = (
    "Sample votes, not the authors': no published figures to compare. "
    f"T = {THRESHOLD_SHARE:g}, sigma1 = {SIGMA1_SHARE:g}, sigma2 = {SIGMA2_SHARE:g} and the "
    f"Laplace scale {LAPLACE_SHARE:g} times the number of teachers, delta {_SAMPLE_DELTA:g}, at "
    f"most {MOST_SAMPLE_ROWS} rows; for the published lines order, beta and sigma_SS are chosen "
    "on the votes, as in the paper."
)


@dataclass(frozen=True)
class RoundOfRow:
    """One run of Confident-GNMax, or of Interactive-GNMax when there is a student.

    Attributes:
        votes: name of the vote file.
        threshold, sigma1, sigma2: T, σ1 and σ2 in votes, or, with `per_teacher`, in units of the
            number of teachers.
        queries: how many of the first rows are asked; None for all.
        student: name of the file of the student's predictions, None where there is no student.
        per_teacher: whether the three parameters scale with the number of teachers.
    """

    votes: str
    threshold: float
    sigma1: float
    sigma2: float
    queries: int | None = None
    student: str | None = None
    per_teacher: bool = False


@dataclass(frozen=True)
class LaplaceRow:
    """A row of Table 1 on LNMax.

    Attributes:
        dataset: what the paper calls the data.
        votes: name of the vote file.
        queries: how many of the first rows are asked, all of which are answered; None for all.
        scale: b of the Laplace noise in votes (times teachers with `per_teacher`); None where the
            paper does not say.
        delta: δ.
        epsilon: ε as printed; None for votes the paper does not know.
        per_teacher: whether the scale is in units of the number of teachers.
    """

    dataset: str
    votes: str
    queries: int | None
    scale: float | None
    delta: float
    epsilon: float | None = None
    per_teacher: bool = False
    aggregator: str = "LNMax"

    @property
    def name(self) -> str:
        """Dataset and aggregator, and which of several runs."""
        return f"{self.dataset}, {self.aggregator}" + (f" {self.queries}" if self.queries else "")

    @property
    def answered(self) -> int | None:
        """Answers as printed: all that were asked."""
        return self.queries

    @property
    def files(self) -> tuple[str, ...]:
        """The one file the row needs."""
        return (self.votes,)


@dataclass(frozen=True)
class ConfidentRow:
    """A row of Table 1 on Confident- or Interactive-GNMax; `answered` and `epsilon` as printed."""

    dataset: str
    aggregator: str
    rounds: tuple[RoundOfRow, ...]
    delta: float
    answered: int | None = None
    epsilon: float | None = None

    @property
    def name(self) -> str:
        """Dataset and aggregator."""
        return f"{self.dataset}, {self.aggregator}"

    @property
    def files(self) -> tuple[str, ...]:
        """Every file the row needs."""
        return _files(self.rounds)


@dataclass(frozen=True)
class PrintedRelease:
    """What Table 2 prints of one release; a value of β, SS and σ_SS per round."""

    order: float
    expected_epsilon: float
    betas: tuple[float, ...]
    smooth: tuple[float, ...]
    sigmas: tuple[float, ...]
    epsilon: float
    sd: float


@dataclass(frozen=True)
class ReleaseRow:
    """A row of Table 2; `printed` is None for votes the paper does not know."""

    dataset: str
    rounds: tuple[RoundOfRow, ...]
    delta: float
    printed: PrintedRelease | None = None

    @property
    def files(self) -> tuple[str, ...]:
        """Every file the row needs."""
        return _files(self.rounds)


@dataclass(frozen=True)
class PrintedTables:
    """Both tables, and where the authors keep their votes.

    Attributes:
        archive: address of the archive of vote files.
        sha256: hex digests of the files whose digest is known.
        table1: rows in printed order.
        table2: rows in printed order.
    """

    archive: str
    sha256: Mapping[str, str]
    table1: tuple[LaplaceRow | ConfidentRow, ...]
    table2: tuple[ReleaseRow, ...]


def printed_tables() -> PrintedTables:
    """The tables shipped with the package."""
    text = resources.files(__package__).joinpath("printed_tables.json").read_text(encoding="utf-8")
    data = json.loads(text)
    return PrintedTables(
        archive=data["archive"],
        sha256=data["sha256"],
        table1=tuple(_table1_row(**row) for row in data["table1"]),
        table2=tuple(
            ReleaseRow(
                row["dataset"], _rounds(row["rounds"]), row["delta"], _printed(row["printed"])
            )
            for row in data["table2"]
        ),
    )


def sample_rows(
    names: Iterable[str],
) -> tuple[tuple[LaplaceRow | ConfidentRow, ...], tuple[ReleaseRow, ...]]:
    """Rows of Table 1 and of Table 2 for vote files, at the paper's MNIST proportions."""
    table1: list[LaplaceRow | ConfidentRow] = []
    table2 = []
    for name in names:
        shares = (THRESHOLD_SHARE, SIGMA1_SHARE, SIGMA2_SHARE)
        rounds = (RoundOfRow(name, *shares, per_teacher=True),)
        table1.append(LaplaceRow(name, name, None, LAPLACE_SHARE, _SAMPLE_DELTA, per_teacher=True))
        table1.append(ConfidentRow(name, "Confident-GNMax", rounds, _SAMPLE_DELTA))
        table2.append(ReleaseRow(name, rounds, _SAMPLE_DELTA))
    return tuple(table1), tuple(table2)


def _table1_row(*, accuracies: object, **row: Any) -> LaplaceRow | ConfidentRow:
    """A row of the data; accuracies need training and are not recomputed."""
    if "rounds" in row:
        return ConfidentRow(**row | {"rounds": _rounds(row["rounds"])})
    return LaplaceRow(**row)


def _printed(figures: Mapping[str, Any]) -> PrintedRelease:
    each = {name: tuple(figures[name]) for name in ("betas", "smooth", "sigmas")}
    return PrintedRelease(**{**figures, **each})


def _rounds(rounds: Iterable[Mapping[str, Any]]) -> tuple[RoundOfRow, ...]:
    return tuple(RoundOfRow(**round_) for round_ in rounds)


def _files(rounds: Iterable[RoundOfRow]) -> tuple[str, ...]:
    return tuple(name for round_ in rounds for name in (round_.votes, round_.student) if name)
