"""GNMax: the class whose count is largest after Gaussian noise."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pate_cli.accounting.cost_table import FINE, Resolution, ScoreGrid
from pate_cli.accounting.gaussian.noisy_max import score_lipschitz, scores
from pate_cli.accounting.gaussian.two_classes import two_class_rdp
from pate_cli.accounting.gaussian.two_tails import two_tail_rdp
from pate_cli.accounting.gaussian.worst_vote import worst_argmax_rdp
from pate_cli.arrays import Counts, Floats, LabelArray
from pate_cli.checks import check_positive
from pate_cli.mechanisms.base import SingleRow, Surface, WithoutRowInputs, check_reach, check_shape
from pate_cli.noise import Noise

__all__ = ["ArgmaxSurface", "GNMax", "noisy_argmax"]


def noisy_argmax(counts: Counts, noise: Floats) -> LabelArray:
    """argmax of counts + noise per row. Ties have probability zero."""
    return np.asarray(np.argmax(counts + noise, axis=1), dtype=np.int32)


@dataclass(frozen=True)
class ArgmaxSurface(SingleRow):
    """F̃ on a score grid: non-decreasing, evaluated at the nodes and rounded up between them."""

    order: float
    classes: int
    sigma: float
    grid: ScoreGrid
    teachers_per_record: int = 1
    votes: int = 1
    vote_block: int = 1

    def at(self, scores_: Floats) -> Floats:
        """The bound at given scores: two-tail, or the exact two-class one when m = 2."""
        bound = two_class_rdp if self.classes == 2 else two_tail_rdp
        # k votes move the noisy histogram k times as far: the same pair with noise σ/k.
        sigma = self.sigma / self.teachers_per_record
        return bound(scores_, sigma=sigma, orders=np.array([self.order]))[0]

    @cached_property
    def table(self) -> Floats:
        """F̃ at every node, [grid.size]; the running maximum absorbs the search's slack."""
        return np.maximum.accumulate(self.at(self.grid.nodes()))


@dataclass(frozen=True)
class GNMax(WithoutRowInputs):
    """Answer every query with argmax_j n_j + N(0, σ2²).

    Score z = Φ⁻¹(Pr[the plurality loses]), exact; one vote moves it by at most √2/σ2. Cost F(z),
    the two-tail bound (exact for two classes), at most λ/σ2². Theory: accounting.gaussian.

    Attributes:
        teachers: τ ≥ 1.
        classes: m ≥ 2.
        sigma2: standard deviation of the noise on each count, > 0 (votes).
        teachers_per_record: k ≥ 1, how many teachers one record may have trained, and so how many
            votes of a query it may change; every sensitivity grows k-fold.
    """

    teachers: int
    classes: int
    sigma2: float
    teachers_per_record: int = 1

    def __post_init__(self) -> None:
        check_shape(self.teachers, self.classes)
        check_reach(self.teachers_per_record, self.teachers)
        check_positive("sigma2", self.sigma2)

    @property
    def name(self) -> str:
        """`gnmax`."""
        return "gnmax"

    def label(self, counts: Counts, noise: Noise) -> LabelArray:
        """One noisy argmax per histogram."""
        return noisy_argmax(counts, self.sigma2 * noise.normal(counts.shape))

    def score(self, counts: Counts) -> Floats:
        """z per query, [queries, 1]."""
        return scores(counts, sigma=self.sigma2)[:, None]

    @property
    def lipschitz(self) -> tuple[float, ...]:
        """(k√2/σ2,), widened by the error of the quadrature."""
        return (score_lipschitz(self.sigma2 / self.teachers_per_record),)

    def surface(self, order: float, resolution: Resolution = FINE) -> ArgmaxSurface:
        """F̃ on its grid at one order."""
        grid = ScoreGrid.for_argmax(
            teachers=self.teachers,
            classes=self.classes,
            sigma=self.sigma2,
            order=order,
            resolution=resolution,
            reach=self.teachers_per_record,
        )
        return ArgmaxSurface(
            order=order,
            classes=self.classes,
            sigma=self.sigma2,
            grid=grid,
            teachers_per_record=self.teachers_per_record,
        )

    def cells(self, score: Floats, surface: Surface) -> NDArray[np.int64]:
        """(0, k) for scores [queries, 1]."""
        columns = surface.grid.cells(score[:, 0])
        return np.stack([np.zeros_like(columns), columns], axis=1)

    def rdp(self, score: Floats, orders: Floats) -> Floats:
        """F̃ at scores [queries, 1]: [orders, queries], nats."""
        return np.stack([_argmax_cost(self.surface(float(o)), score[:, 0]) for o in orders])

    def worst_rdp(self, *, queries: int, answers: int, orders: Floats) -> Floats:
        """k2·w2(λ); every query is answered until the cap stops the run."""
        del queries
        worst = worst_argmax_rdp(
            sigma=self.sigma2, classes=self.classes, orders=orders, reach=self.teachers_per_record
        )
        return answers * worst

    def gaussian_mu(self, *, queries: int, answers: int) -> float:
        """k√(2 k2)/σ2."""
        del queries
        return float(self.teachers_per_record * np.sqrt(2.0 * answers) / self.sigma2)

    def parameters(self) -> dict[str, Any]:
        """Public parameters."""
        return {
            "name": self.name,
            "teachers": self.teachers,
            "classes": self.classes,
            "sigma2": self.sigma2,
            "teachers_per_record": self.teachers_per_record,
        }


def _argmax_cost(surface: ArgmaxSurface, z: Floats) -> Floats:
    """F̃ at scores, evaluated only at the nodes they are rounded up to."""
    used, inverse = np.unique(surface.grid.cells(z), return_inverse=True)
    at_used = np.maximum.accumulate(surface.at(surface.grid.nodes()[used]))
    return at_used[inverse]
