"""Confident-GNMax: answer only where a noisy look says that the teachers agree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pate_cli.accounting.confident import chain_rdp
from pate_cli.accounting.cost_table import FINE, Resolution, ScoreGrid
from pate_cli.accounting.threshold import PassMoments, cell_moments, worst_threshold_rdp
from pate_cli.arrays import Counts, Floats, LabelArray
from pate_cli.checks import check_positive
from pate_cli.errors import ParameterError
from pate_cli.mechanisms.base import NO_LABEL, Surface, WithoutRowInputs, plurality
from pate_cli.mechanisms.gnmax import ArgmaxSurface, GNMax, noisy_argmax
from pate_cli.noise import Noise

__all__ = ["ConfidentGNMax", "ConfidentSurface", "VoteCells"]

# However small σ1 is, sensitivities are kept on at most this many blocks of plurality counts.
_MOST_BLOCKS = 1024


@dataclass(frozen=True)
class VoteCells:
    """How the test's score v is cut into rows: cell i holds low + i·width ≤ v ≤ low + (i+1)·width.

    Width 0 stands for whole scores low, low + 1, …, each a cell of its own. Otherwise the width is
    how far a neighbour moves v, so that it moves one row at most, and costs are suprema over cells.

    Attributes:
        low: the lowest score (votes).
        rows: number of cells.
        width: of a cell (votes).
    """

    low: float
    rows: int
    width: float

    @classmethod
    def of(cls, *, teachers: int, real: bool, reach: int) -> VoteCells:
        """Cells for whole scores 0, …, τ, or with `real` for any score in [−τ, τ]."""
        if not real and reach == 1:
            return cls(low=0.0, rows=teachers + 1, width=0.0)
        low = -float(teachers) if real else 0.0
        # A trifle wider than a neighbour's move, which round-off would else carry over two cells.
        width = reach * (1.0 + 1e-9)
        return cls(low=low, rows=int((teachers - low) // width) + 1, width=width)

    def index(self, scores: Floats) -> NDArray[np.int64]:
        """The row of each score."""
        step = self.width or 1.0
        place = np.floor((scores - self.low) / step + (0.0 if self.width else 0.5))
        return np.clip(place.astype(np.int64), 0, self.rows - 1)

    def lowest(self, start: int, stop: int) -> Floats:
        """The low end of rows start ≤ i < stop."""
        return self.low + np.arange(start, stop, dtype=np.float64) * (self.width or 1.0)


@dataclass(frozen=True)
class ConfidentSurface:
    """ρ on cells (row of v, k) at one order."""

    argmax: ArgmaxSurface
    cells: VoteCells
    threshold: float
    sigma1: float
    resolution: Resolution = FINE

    @property
    def order(self) -> float:
        """The Rényi order λ."""
        return self.argmax.order

    @property
    def grid(self) -> ScoreGrid:
        """The argmax's grid."""
        return self.argmax.grid

    @property
    def votes(self) -> int:
        """Rows of the lattice."""
        return self.cells.rows

    @property
    def vote_block(self) -> int:
        """Rows per sensitivity block."""
        by_sigma = int(self.sigma1 / self.argmax.teachers_per_record) // self.resolution.per_sigma
        return max(1, by_sigma, -(-self.votes // _MOST_BLOCKS))

    def rows(self, start: int, stop: int) -> Floats:
        """ρ for rows start ≤ i < stop."""
        moments = self._moments(self.cells.lowest(start, stop)[:, None])
        return self._chain(moments, self.argmax.table[None, :])

    def cost(self, cells: NDArray[np.int64]) -> Floats:
        """ρ at cells (row, k)."""
        return self.rdp_at(cells[:, 0], self.argmax.table[cells[:, 1]])

    def rdp_at(self, rows: NDArray[np.int64], argmax_rdp: Floats) -> Floats:
        """ρ in given rows for given costs of the argmax, [queries] each."""
        used, inverse = np.unique(rows, return_inverse=True)
        moments = self._moments(self.cells.lowest(0, self.cells.rows)[used])
        return self._chain(moments.take(inverse), argmax_rdp)

    def _moments(self, low: Floats) -> PassMoments:
        return cell_moments(
            low,
            width=self.cells.width,
            threshold=self.threshold,
            sigma=self.sigma1,
            order=self.order,
            reach=float(self.argmax.teachers_per_record),
        )

    def _chain(self, moments: PassMoments, argmax_rdp: Floats) -> Floats:
        reach = self.argmax.teachers_per_record
        return chain_rdp(moments, argmax_rdp, cap=reach**2 * self.order / (2.0 * self.sigma1**2))


@dataclass(frozen=True)
class ConfidentGNMax(WithoutRowInputs):
    """Algorithm 1 of the ICLR 2018 paper: if max_j n_j + N(0, σ1²) ≥ T, answer by GNMax with σ2.

    Score (v, z): v = max_j n_j moves by at most 1 with one vote, z as in GNMax by √2/σ2. Cost ρ,
    the chain rule of accounting.confident.

    Attributes:
        teachers: τ ≥ 1.
        classes: m ≥ 2.
        threshold: T, finite (votes).
        sigma1: standard deviation of the noise on the largest count, > 0 (votes).
        sigma2: standard deviation of the noise on each count of the argmax, > 0 (votes).
        teachers_per_record: k ≥ 1, as in GNMax.
    """

    teachers: int
    classes: int
    threshold: float
    sigma1: float
    sigma2: float
    teachers_per_record: int = 1

    def __post_init__(self) -> None:
        _ = self.argmax
        check_positive("sigma1", self.sigma1)
        if not np.isfinite(self.threshold):
            raise ParameterError(f"threshold must be finite, got {self.threshold}")

    @property
    def name(self) -> str:
        """`confident`."""
        return "confident"

    @property
    def _real(self) -> bool:
        """Whether the test's score may be any real number."""
        return False

    @property
    def argmax(self) -> GNMax:
        """The second step on its own."""
        return GNMax(
            teachers=self.teachers,
            classes=self.classes,
            sigma2=self.sigma2,
            teachers_per_record=self.teachers_per_record,
        )

    @property
    def _vote_cells(self) -> VoteCells:
        return VoteCells.of(teachers=self.teachers, real=self._real, reach=self.teachers_per_record)

    def test_score(self, counts: Counts) -> Floats:
        """What is compared to T: max_j n_j, [queries] (votes)."""
        return plurality(counts).astype(np.float64)

    def label(self, counts: Counts, noise: Noise) -> LabelArray:
        """Threshold and argmax for every histogram, one row of noise each.

        The argmax's noise is drawn whether or not it is used, so that a row's draws depend on
        its place alone.
        """
        draws = noise.normal((counts.shape[0], counts.shape[1] + 1))
        passed = self.test_score(counts) + self.sigma1 * draws[:, 0] >= self.threshold
        labels = noisy_argmax(counts, self.sigma2 * draws[:, 1:])
        return np.where(passed, labels, np.int32(NO_LABEL))

    def score(self, counts: Counts) -> Floats:
        """(v, z) per query, [queries, 2]."""
        return np.column_stack([self.test_score(counts), self.argmax.score(counts)])

    @property
    def lipschitz(self) -> tuple[float, ...]:
        """(k, k√2/σ2), the second widened by the error of the quadrature."""
        return (float(self.teachers_per_record), *self.argmax.lipschitz)

    def surface(self, order: float, resolution: Resolution = FINE) -> ConfidentSurface:
        """ρ on its lattice at one order."""
        return ConfidentSurface(
            argmax=self.argmax.surface(order, resolution),
            cells=self._vote_cells,
            threshold=self.threshold,
            sigma1=self.sigma1,
            resolution=resolution,
        )

    def cells(self, score: Floats, surface: Surface) -> NDArray[np.int64]:
        """(row of v, k) for scores [queries, 2]."""
        rows = self._vote_cells.index(score[:, 0])
        return np.stack([rows, surface.grid.cells(score[:, 1])], axis=1)

    def rdp(self, score: Floats, orders: Floats) -> Floats:
        """ρ at scores [queries, 2]: [orders, queries], nats."""
        costs = []
        for order in orders.tolist():
            surface = self.surface(order)
            rows = surface.cells.index(score[:, 0])
            costs.append(surface.rdp_at(rows, self.argmax.rdp(score[:, 1:], np.array([order]))[0]))
        return np.stack(costs)

    def worst_rdp(self, *, queries: int, answers: int, orders: Floats) -> Floats:
        """k1·w1(λ) + k2·w2(λ)."""
        selecting = worst_threshold_rdp(
            teachers=self.teachers,
            threshold=self.threshold,
            sigma=self.sigma1,
            orders=orders,
            real=self._real,
            reach=float(self.teachers_per_record),
        )
        answering = self.argmax.worst_rdp(queries=queries, answers=answers, orders=orders)
        return queries * selecting + answering

    def gaussian_mu(self, *, queries: int, answers: int) -> float:
        """μ² = k²(k1/σ1² + 2 k2/σ2²)."""
        selecting = self.teachers_per_record * np.sqrt(queries) / self.sigma1
        answering = self.argmax.gaussian_mu(queries=queries, answers=answers)
        return float(np.hypot(selecting, answering))

    def parameters(self) -> dict[str, Any]:
        """Public parameters."""
        return {
            "name": self.name,
            "teachers": self.teachers,
            "classes": self.classes,
            "threshold": self.threshold,
            "sigma1": self.sigma1,
            "sigma2": self.sigma2,
            "teachers_per_record": self.teachers_per_record,
        }
