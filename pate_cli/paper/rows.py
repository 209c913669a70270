"""The rows of Tables 1 and 2 as the paper prints them, and similar rows for other votes.

The printed figures, and the votes and parameters that they were computed from, are in the file
printed_tables.json. The keys in printed_tables.json are the attributes of the classes of this
module.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from pate_cli.core.words import LAPLACE_SHARE, SIGMA1_SHARE, SIGMA2_SHARE, THRESHOLD_SHARE

_SAMPLE_DELTA = 1e-5
# The longest run of the paper asks this number of rows.
_MOST_SAMPLE_ROWS = 12_000

SAMPLE_NOTE = (
    "Sample votes, not the authors': no published figures to compare. "
    f"T = {THRESHOLD_SHARE:g}, sigma1 = {SIGMA1_SHARE:g}, sigma2 = {SIGMA2_SHARE:g} and the "
    f"Laplace scale {LAPLACE_SHARE:g} times the number of teachers, delta {_SAMPLE_DELTA:g}, at "
    f"most {_MOST_SAMPLE_ROWS} rows; for the published lines order, beta and sigma_SS are chosen "
    "on the votes, as in the paper."
)


@dataclass(frozen=True)
class RoundOfRow:
    """One run of an aggregator on the first rows of a vote file.

    Attributes:
        votes: the name of the vote file.
        noise: `threshold`, `sigma1` and `sigma2`, or `laplace_scale`, in votes; empty if the paper
            does not state them. If `sample` is true, the values of `noise` are in votes per
            teacher, and pate multiplies them by the number of teachers.
        queries: how many of the first rows are asked; None for all rows. If `sample` is true, the
            vote file may have fewer rows than `queries`.
        student: the name of the file of a student's predictions; None if there is no student.
        sample: whether the votes are sample votes, and not those of the paper.
    """

    votes: str
    noise: Mapping[str, float]
    queries: int | None = None
    student: str | None = None
    sample: bool = False


@dataclass(frozen=True)
class PrintedRelease:
    """The figures that Table 2 prints for one release; β, SS and σ_SS have a value for each run."""

    order: float
    expected_epsilon: float
    betas: tuple[float, ...]
    smooth: tuple[float, ...]
    sigmas: tuple[float, ...]
    epsilon: float
    sd: float


@dataclass(frozen=True, eq=False)
class TableRow:
    """A row of Table 1 or of Table 2.

    Attributes:
        dataset: the name of the data in the paper.
        aggregator: the name of the aggregator in the paper.
        rounds: the runs of the row, whose costs are composed.
        delta: δ.
        answered: the number of answers that Table 1 prints; None in rows of Table 2, and in rows
            for votes that are not the authors'.
        epsilon: the ε that Table 1 prints; None in rows of Table 2, and in rows for votes that are
            not the authors'.
        release: the figures that Table 2 prints; None in rows of Table 1, and in rows for votes
            that are not the authors'.
        note: a remark about the printed figures.
    """

    dataset: str
    aggregator: str
    rounds: tuple[RoundOfRow, ...]
    delta: float
    answered: int | None = None
    epsilon: float | None = None
    release: PrintedRelease | None = None
    note: str = ""

    @property
    def name(self) -> str:
        """Return the name of the row: data, aggregator, and for LNMax the number of answers."""
        runs = f" {self.answered}" if self.answered and self.aggregator == "LNMax" else ""
        return f"{self.dataset}, {self.aggregator}{runs}"

    @property
    def printed(self) -> tuple[str, ...]:
        """Return the figures that the paper prints in this row, and that pate computes again."""
        if self.release is not None:
            return (f"{self.release.epsilon:.2f} ± {self.release.sd:.3f}",)
        return () if self.epsilon is None else (str(self.answered), f"{self.epsilon:#.3g}")

    @property
    def files(self) -> tuple[str, ...]:
        """Return the names of all vote files and files of student predictions in this row."""
        names = [name for each in self.rounds for name in (each.votes, each.student) if name]
        return tuple(dict.fromkeys(names))


@dataclass(frozen=True)
class PrintedTables:
    """Tables 1 and 2 as the paper prints them, and the address of the authors' votes.

    Attributes:
        archive: the address of the archive of vote files.
        sha256: the hex digests of vote files, by name; some files have none.
        table1: the rows of Table 1, in printed order.
        table2: the rows of Table 2, in printed order.
    """

    archive: str
    sha256: Mapping[str, str]
    table1: tuple[TableRow, ...]
    table2: tuple[TableRow, ...]


def printed_tables() -> PrintedTables:
    """Return Tables 1 and 2 as the paper prints them, from a file of the package."""
    text = resources.files(__package__).joinpath("printed_tables.json").read_text(encoding="utf-8")
    data = json.loads(text)
    tables = (tuple(_row(**row) for row in data[name]) for name in ("table1", "table2"))
    return PrintedTables(data["archive"], data["sha256"], *tables)


def sample_rows(names: Iterable[str]) -> tuple[tuple[TableRow, ...], tuple[TableRow, ...]]:
    """Return rows like those of Tables 1 and 2 for vote files that are not the authors'.

    The threshold and the noise are proportional to the number of teachers. With 250 teachers, the
    threshold and the noise have the values that the paper uses for MNIST.
    """
    confident = {"threshold": THRESHOLD_SHARE, "sigma1": SIGMA1_SHARE, "sigma2": SIGMA2_SHARE}
    noises = {"LNMax": {"laplace_scale": LAPLACE_SHARE}, "Confident-GNMax": confident}
    table1 = []
    for name in names:
        for aggregator, noise in noises.items():
            asked = RoundOfRow(name, noise, _MOST_SAMPLE_ROWS, sample=True)
            table1.append(TableRow(name, aggregator, (asked,), _SAMPLE_DELTA))
    return tuple(table1), tuple(table1[1::2])


def _row(
    *,
    rounds: Iterable[Mapping[str, Any]],
    release: Mapping[str, Any] | None = None,
    accuracies: object = None,
    **row: Any,
) -> TableRow:
    """Return a row from its JSON data. Accuracies are left out, because they need training."""
    del accuracies
    if release is not None:
        each = {name: tuple(release[name]) for name in ("betas", "smooth", "sigmas")}
        row["release"] = PrintedRelease(**{**release, **each})
    return TableRow(rounds=tuple(RoundOfRow(**each) for each in rounds), **row)
