"""Confident-GNMax: answer only where a noisy look says that the teachers agree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pate_cli.accounting.confident import confident_rdp
from pate_cli.accounting.domain import check_positive
from pate_cli.accounting.score_grid import FINE, Resolution, ScoreGrid
from pate_cli.accounting.threshold import worst_threshold_rdp
from pate_cli.accounting.worst_vote import worst_argmax_rdp
from pate_cli.errors import ParameterError
from pate_cli.mechanisms.base import NO_LABEL, Counts, Floats, Labels, Surface, plurality
from pate_cli.mechanisms.gnmax import ArgmaxSurface, GNMax, noisy_argmax
from pate_cli.noise import Noise

__all__ = ["ConfidentGNMax", "ConfidentSurface"]

# However small σ1 is, sensitivities are kept on at most this many blocks of plurality counts.
_MOST_BLOCKS = 1024


@dataclass(frozen=True)
class ConfidentSurface:
    """ρ(v, k) for whole plurality counts v = 0, …, τ and the argmax's score cells k."""

    argmax: ArgmaxSurface
    votes: int
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
    def vote_block(self) -> int:
        """Rows per sensitivity block."""
        by_sigma = int(self.sigma1) // self.resolution.per_sigma
        return max(1, by_sigma, -(-self.votes // _MOST_BLOCKS))

    def rows(self, start: int, stop: int) -> Floats:
        """ρ for plurality counts start ≤ v < stop."""
        votes = np.arange(start, stop, dtype=np.float64)[:, None]
        return self._rdp(votes, self.argmax.table[None, :])

    def cost(self, cells: NDArray[np.int64]) -> Floats:
        """ρ at cells (v, k)."""
        return self._rdp(cells[:, 0].astype(np.float64), self.argmax.table[cells[:, 1]])

    def _rdp(self, votes: Floats, argmax_rdp: Floats) -> Floats:
        return confident_rdp(
            votes, argmax_rdp, threshold=self.threshold, sigma=self.sigma1, order=self.order
        )


@dataclass(frozen=True)
class ConfidentGNMax:
    """Algorithm 1 of the ICLR 2018 paper: if max_j n_j + N(0, σ1²) ≥ T, answer by GNMax with σ2.

    Score (v, z): v = max_j n_j moves by at most 1 with one vote, z as in GNMax by √2/σ2. Cost ρ,
    the chain rule of accounting.confident.

    Attributes:
        teachers: τ ≥ 1.
        classes: m ≥ 2.
        threshold: T, finite (votes).
        sigma1: standard deviation of the noise on the largest count, > 0 (votes).
        sigma2: standard deviation of the noise on each count of the argmax, > 0 (votes).
    """

    teachers: int
    classes: int
    threshold: float
    sigma1: float
    sigma2: float

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
    def argmax(self) -> GNMax:
        """The second step on its own."""
        return GNMax(teachers=self.teachers, classes=self.classes, sigma2=self.sigma2)

    def label(self, counts: Counts, noise: Noise) -> Labels:
        """Threshold and argmax for every histogram, one row of noise each.

        The argmax's noise is drawn whether or not it is used, so that a row's draws depend on
        its place alone.
        """
        draws = noise.normal((counts.shape[0], counts.shape[1] + 1))
        passed = plurality(counts) + self.sigma1 * draws[:, 0] >= self.threshold
        labels = noisy_argmax(counts, self.sigma2 * draws[:, 1:])
        return np.where(passed, labels, np.int32(NO_LABEL))

    def score(self, counts: Counts) -> Floats:
        """(v, z) per query, [queries, 2]."""
        return np.column_stack([plurality(counts), self.argmax.score(counts)])

    @property
    def lipschitz(self) -> tuple[float, ...]:
        """(1, √2/σ2), the second widened by the error of the quadrature."""
        return (1.0, *self.argmax.lipschitz)

    def surface(self, order: float, resolution: Resolution = FINE) -> ConfidentSurface:
        """ρ on its lattice at one order."""
        return ConfidentSurface(
            argmax=self.argmax.surface(order, resolution),
            votes=self.teachers + 1,
            threshold=self.threshold,
            sigma1=self.sigma1,
            resolution=resolution,
        )

    def cells(self, score: Floats, surface: Surface) -> NDArray[np.int64]:
        """(v, k) for scores [queries, 2]."""
        return np.stack(
            [np.rint(score[:, 0]).astype(np.int64), surface.grid.cells(score[:, 1])], axis=1
        )

    def rdp(self, score: Floats, orders: Floats) -> Floats:
        """ρ at scores [queries, 2]: [orders, queries], nats."""
        inner = self.argmax.rdp(score[:, 1:], orders)
        return np.stack(
            [
                confident_rdp(
                    score[:, 0],
                    at_order,
                    threshold=self.threshold,
                    sigma=self.sigma1,
                    order=float(order),
                )
                for order, at_order in zip(orders, inner, strict=True)
            ]
        )

    def worst_rdp(self, *, queries: int, answers: int, orders: Floats) -> Floats:
        """k1·w1(λ) + k2·w2(λ)."""
        selecting = worst_threshold_rdp(
            teachers=self.teachers, threshold=self.threshold, sigma=self.sigma1, orders=orders
        )
        answering = worst_argmax_rdp(sigma=self.sigma2, classes=self.classes, orders=orders)
        return queries * selecting + answers * answering

    def gaussian_mu(self, *, queries: int, answers: int) -> float:
        """μ² = k1/σ1² + 2 k2/σ2²."""
        return float(np.hypot(np.sqrt(queries) / self.sigma1, np.sqrt(2.0 * answers) / self.sigma2))

    def parameters(self) -> dict[str, Any]:
        """Public parameters."""
        return {
            "name": self.name,
            "teachers": self.teachers,
            "classes": self.classes,
            "threshold": self.threshold,
            "sigma1": self.sigma1,
            "sigma2": self.sigma2,
        }
