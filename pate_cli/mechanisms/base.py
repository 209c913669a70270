"""What every mechanism offers: labels, a score, its Lipschitz constant and its cost.

A mechanism's cost is a function of a score, and one teacher can move the score by at most a known
amount. Scores live on a lattice: a row v (whole votes for the plurality; always 0 for mechanisms
that do not look at it) and a column k on a `ScoreGrid`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from pate_cli.accounting.cost_table import FINE, Resolution, ScoreGrid
from pate_cli.accounting.sensitivity import local_sensitivity_blocks
from pate_cli.arrays import Counts, Floats, LabelArray
from pate_cli.errors import ParameterError
from pate_cli.labels import NO_LABEL
from pate_cli.noise import Noise

__all__ = [
    "NO_LABEL",
    "Labeller",
    "Mechanism",
    "SingleRow",
    "Surface",
    "Tally",
    "WithoutRowInputs",
    "check_reach",
    "check_shape",
    "plurality",
]


@dataclass(frozen=True)
class Tally:
    """How many queries fell into each lattice cell: all the accountant keeps of the votes. SECRET.

    A commutative monoid under `+` with exact integer sums, so batches, workers and their order
    make no difference.

    Attributes:
        cells: distinct (v, k), [occupied, 2], sorted.
        weights: queries in each, [occupied].
    """

    cells: NDArray[np.int64]
    weights: NDArray[np.int64]

    @classmethod
    def empty(cls) -> Tally:
        """No queries."""
        return cls(np.zeros((0, 2), dtype=np.int64), np.zeros(0, dtype=np.int64))

    @classmethod
    def of(cls, cells: NDArray[np.int64], weights: NDArray[np.int64] | None = None) -> Tally:
        """Count cells given one a query, or with weights."""
        distinct, inverse = np.unique(cells, axis=0, return_inverse=True)
        each = np.ones(len(cells), dtype=np.int64) if weights is None else weights
        total = np.bincount(inverse.reshape(-1), weights=each, minlength=len(distinct))
        return cls(distinct, np.rint(total).astype(np.int64))

    def __add__(self, other: Tally) -> Tally:
        return Tally.of(
            np.concatenate([self.cells, other.cells]),
            np.concatenate([self.weights, other.weights]),
        )

    @property
    def queries(self) -> int:
        """Number of queries counted."""
        return int(self.weights.sum())


class Surface(Protocol):
    """A mechanism's cost on its lattice at one order. Public: it has seen no votes."""

    @property
    def order(self) -> float:
        """The Rényi order λ."""
        ...

    @property
    def votes(self) -> int:
        """Rows of the lattice."""
        ...

    @property
    def vote_block(self) -> int:
        """Rows per sensitivity block."""
        ...

    @property
    def grid(self) -> ScoreGrid:
        """Columns of the lattice."""
        ...

    def rows(self, start: int, stop: int) -> Floats:
        """Cost of cells with start ≤ v < stop, [stop − start, grid.size], nats."""
        ...

    def cost(self, cells: NDArray[np.int64]) -> Floats:
        """Cost of given cells, [cells], nats."""
        ...


class SingleRow:
    """What surfaces share whose cost is a table over one score: a lattice of one row."""

    grid: ScoreGrid
    votes: int
    vote_block: int

    @property
    def table(self) -> Floats:
        """F̃ at every node, [grid.size], non-decreasing, nats."""
        raise NotImplementedError

    def rows(self, start: int, stop: int) -> Floats:
        """The table, once per row."""
        return np.broadcast_to(self.table, (stop - start, self.grid.size))

    def cost(self, cells: NDArray[np.int64]) -> Floats:
        """F̃ at cells (·, k)."""
        return self.table[cells[:, 1]]


def surface_blocks(surface: Surface) -> Floats:
    """The largest LS_0 in every block of a surface."""
    return local_sensitivity_blocks(
        surface.rows, votes=surface.votes, grid=surface.grid, vote_block=surface.vote_block
    )


class Labeller(Protocol):
    """What a run needs of an aggregator to label rows, whatever its accounting."""

    def for_rows(self, ids: Any, first_row: int) -> Labeller:
        """The labeller with the public inputs of these rows; itself if it has none."""
        ...

    def fallback(self) -> LabelArray | None:
        """Public labels for rows the teachers leave unanswered, if the labeller has any."""
        ...

    def label(self, counts: Counts, noise: Noise) -> LabelArray:
        """Draw a label for every histogram, NO_LABEL where the teachers do not answer."""
        ...


class Mechanism(Labeller, Protocol):
    """A noisy aggregator of vote histograms with public parameters."""

    @property
    def name(self) -> str:
        """The word used for it on the command line and in reports."""
        ...

    @property
    def teachers(self) -> int:
        """τ, the number of votes on every query."""
        ...

    @property
    def classes(self) -> int:
        """m, the number of classes."""
        ...

    def for_rows(self, ids: Any, first_row: int) -> Mechanism:
        """The mechanism with the public inputs of these rows; itself if it has none."""
        ...

    def for_reference(self, counts: Counts, seed: int) -> Mechanism:
        """The mechanism with made-up public inputs for made-up histograms; itself if none."""
        ...

    def score(self, counts: Counts) -> Floats:
        """Scores [queries, dimensions]; see `lipschitz` for how far one vote moves each."""
        ...

    @property
    def lipschitz(self) -> tuple[float, ...]:
        """How far one vote moves each dimension of the score at most."""
        ...

    def rdp(self, score: Floats, orders: Floats) -> Floats:
        """Cost of queries with these scores, [orders, queries], nats."""
        ...

    def surface(self, order: float, resolution: Resolution = FINE) -> Surface:
        """The cost on the lattice at one order."""
        ...

    def cells(self, score: Floats, surface: Surface) -> NDArray[np.int64]:
        """Lattice cells of scores, [queries, 2]."""
        ...

    def worst_rdp(self, *, queries: int, answers: int, orders: Floats) -> Floats:
        """Cost of k1 queries with at most k2 answers, whatever the votes, [orders], nats."""
        ...

    def gaussian_mu(self, *, queries: int, answers: int) -> float:
        """μ of the Gaussian-DP bound for k1 queries with at most k2 answers."""
        ...

    def parameters(self) -> dict[str, Any]:
        """Public parameters by their field names, enough to build the mechanism again."""
        ...


class WithoutRowInputs:
    """What mechanisms share whose only input per row is the histogram."""

    def for_rows(self, ids: Any, first_row: int) -> Self:
        """Itself."""
        del ids, first_row
        return self

    def for_reference(self, counts: Counts, seed: int) -> Self:
        """Itself."""
        del counts, seed
        return self

    def fallback(self) -> LabelArray | None:
        """None: rows that are not answered stay without a label."""
        return None


def check_shape(teachers: int, classes: int) -> None:
    """Whole τ ≥ 1 and m ≥ 2, or ParameterError."""
    for name, value in (("teachers", teachers), ("classes", classes)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise ParameterError(f"{name} must be a whole number, got {value!r}")
    if teachers < 1:
        raise ParameterError(f"teachers must be at least 1, got {teachers}")
    if classes < 2:
        raise ParameterError(f"classes must be at least 2, got {classes}")
    if classes > MOST_CLASSES:
        raise ParameterError(f"classes must be at most {MOST_CLASSES}, got {classes}")


MOST_CLASSES = 20_000
"""Beyond it the quadrature of scores leaves its stated error."""


def check_reach(teachers_per_record: int, teachers: int) -> None:
    """Whole 1 ≤ k ≤ τ, or ParameterError."""
    whole = isinstance(teachers_per_record, int | np.integer)
    if not whole or isinstance(teachers_per_record, bool) or teachers_per_record < 1:
        raise ParameterError(
            f"teachers_per_record must be a whole number from 1 on, got {teachers_per_record!r}"
        )
    if teachers_per_record > teachers:
        raise ParameterError(
            f"teachers_per_record={teachers_per_record} is more than the {teachers} teachers"
        )


def plurality(counts: Counts) -> NDArray[np.int64]:
    """max_j n_j per query."""
    return np.asarray(counts.max(axis=1), dtype=np.int64)
