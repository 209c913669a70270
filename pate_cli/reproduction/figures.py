"""The figures the paper prints, and which votes and parameters they are said to come from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from pate_cli.errors import ParameterError

__all__ = [
    "ConfidentRow",
    "Figures",
    "LaplaceRow",
    "PrintedRelease",
    "ReleaseRow",
    "RoundFigures",
    "load_figures",
]


@dataclass(frozen=True)
class RoundFigures:
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

    @property
    def files(self) -> tuple[str, ...]:
        """Every file the round needs."""
        return (self.votes,) if self.student is None else (self.votes, self.student)


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

    @property
    def aggregator(self) -> str:
        """`LNMax`."""
        return "LNMax"

    @property
    def files(self) -> tuple[str, ...]:
        """The one file the row needs."""
        return (self.votes,)


@dataclass(frozen=True)
class ConfidentRow:
    """A row of Table 1 on Confident- or Interactive-GNMax; `answered` and `epsilon` as printed."""

    dataset: str
    aggregator: str
    rounds: tuple[RoundFigures, ...]
    delta: float
    answered: int | None = None
    epsilon: float | None = None

    @property
    def files(self) -> tuple[str, ...]:
        """Every file the row needs."""
        return tuple(name for one in self.rounds for name in one.files)


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

    def __post_init__(self) -> None:
        if not len(self.betas) == len(self.smooth) == len(self.sigmas) >= 1:
            raise ParameterError("beta, smooth sensitivity and sigma_SS must be one per round")


@dataclass(frozen=True)
class ReleaseRow:
    """A row of Table 2; `printed` is None for votes the paper does not know."""

    dataset: str
    rounds: tuple[RoundFigures, ...]
    delta: float
    printed: PrintedRelease | None = None

    def __post_init__(self) -> None:
        if self.printed is not None and len(self.printed.betas) != len(self.rounds):
            raise ParameterError(f"{self.dataset}: Table 2 prints one beta per round")

    @property
    def files(self) -> tuple[str, ...]:
        """Every file the row needs."""
        return tuple(name for one in self.rounds for name in one.files)


@dataclass(frozen=True)
class Figures:
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


def load_figures() -> Figures:
    """The figures shipped with the package."""
    text = resources.files("pate_cli.reproduction").joinpath("published_figures.json").read_text()
    data = json.loads(text)
    return Figures(
        archive=data["votes_archive"],
        sha256=data["sha256"],
        table1=tuple(_table1_row(row) for row in data["table1"]),
        table2=tuple(_table2_row(row) for row in data["table2"]),
    )


def _table1_row(row: Mapping[str, Any]) -> LaplaceRow | ConfidentRow:
    if row["aggregator"] == "LNMax":
        return LaplaceRow(
            dataset=row["dataset"],
            votes=row["votes"],
            queries=row["answered"],
            scale=row.get("laplace_scale"),
            delta=row["delta"],
            epsilon=row["epsilon"],
        )
    return ConfidentRow(
        dataset=row["dataset"],
        aggregator=row["aggregator"],
        rounds=_rounds(row),
        delta=row["delta"],
        answered=row["answered"],
        epsilon=row["epsilon"],
    )


def _table2_row(row: Mapping[str, Any]) -> ReleaseRow:
    printed = PrintedRelease(
        order=float(row["order"]),
        expected_epsilon=row["expected_epsilon"],
        betas=_each(row["beta"]),
        smooth=_each(row["expected_smooth_sensitivity"]),
        sigmas=_each(row["sigma_ss"]),
        epsilon=row["sanitized_epsilon"],
        sd=row["sd"],
    )
    return ReleaseRow(row["dataset"], _rounds(row), row["delta"], printed)


def _rounds(row: Mapping[str, Any]) -> tuple[RoundFigures, ...]:
    return tuple(
        RoundFigures(
            votes=one["votes"],
            threshold=float(one["threshold"]),
            sigma1=float(one["sigma1"]),
            sigma2=float(one["sigma2"]),
            queries=one.get("queries"),
            student=one.get("student_predictions"),
        )
        for one in row.get("rounds", [row])
    )


def _each(value: float | list[float]) -> tuple[float, ...]:
    return tuple(value) if isinstance(value, list) else (value,)
