"""LNMax: the class whose count is largest after Laplace noise."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri_exp

from pate_cli.accounting.cost_table import FINE, Resolution, ScoreGrid
from pate_cli.accounting.laplace.noisy_max import (
    LOWEST_SCORE,
    laplace_score_lipschitz,
    laplace_score_range,
    laplace_scores,
)
from pate_cli.accounting.laplace.randomised_response import laplace_max_rdp
from pate_cli.accounting.laplace.two_classes import laplace_two_class_rdp
from pate_cli.accounting.laplace.worst_vote import worst_laplace_max_rdp
from pate_cli.arrays import Counts, Floats, LabelArray
from pate_cli.checks import check_positive
from pate_cli.mechanisms.base import SingleRow, Surface, WithoutRowInputs, check_reach, check_shape
from pate_cli.mechanisms.gnmax import noisy_argmax
from pate_cli.noise import Noise

__all__ = ["LNMax", "LaplaceSurface"]

# Scores whose cost is below e^{−36} are clamped: no sum over queries notices.
_NEGLIGIBLE = 36.0


@dataclass(frozen=True)
class LaplaceSurface(SingleRow):
    """F̃ on a score grid: non-decreasing, evaluated at the nodes and rounded up between them."""

    order: float
    classes: int
    scale: float
    grid: ScoreGrid
    teachers_per_record: int = 1
    votes: int = 1
    vote_block: int = 1

    @cached_property
    def table(self) -> Floats:
        """F̃ at every node, [grid.size]: the smaller of F and the data-independent supremum."""
        bound = laplace_two_class_rdp if self.classes == 2 else laplace_max_rdp
        orders = np.array([self.order])
        # k votes are k steps of ε0 each: the same pair with scale b/k.
        scale = self.scale / self.teachers_per_record
        cost = bound(self.grid.nodes(), scale=scale, orders=orders)[0]
        worst = worst_laplace_max_rdp(
            scale=self.scale,
            classes=self.classes,
            orders=orders,
            reach=self.teachers_per_record,
        )
        # The running maximum absorbs round-off.
        return np.maximum.accumulate(np.minimum(cost, worst[0]))


@dataclass(frozen=True)
class LNMax(WithoutRowInputs):
    """Answer every query with argmax_j n_j + Lap(b).

    One answer is ε0-DP, ε0 = 2/b. Score ψ(Pr[the plurality loses]), exact, ψ the quantile
    function of Lap(1); one vote moves it by at most 2/b. Cost F, the bound with randomised response
    as the dominating pair (exact for two classes), or the supremum over all votes where that is
    smaller. Theory: accounting.laplace.

    Attributes:
        teachers: τ ≥ 1.
        classes: m ≥ 2.
        laplace_scale: b > 0, the scale of the noise on each count (votes).
        teachers_per_record: k ≥ 1, how many teachers one record may have trained, and so how many
            votes of a query it may change; every sensitivity grows k-fold.
    """

    teachers: int
    classes: int
    laplace_scale: float
    teachers_per_record: int = 1

    def __post_init__(self) -> None:
        check_shape(self.teachers, self.classes)
        check_reach(self.teachers_per_record, self.teachers)
        check_positive("laplace_scale", self.laplace_scale)

    @property
    def name(self) -> str:
        """`lnmax`."""
        return "lnmax"

    @property
    def pure_epsilon(self) -> float:
        """2k/b: every answer is ε-DP at it."""
        return 2.0 * self.teachers_per_record / self.laplace_scale

    def label(self, counts: Counts, noise: Noise) -> LabelArray:
        """One noisy argmax per histogram."""
        return noisy_argmax(counts, self.laplace_scale * noise.laplace(counts.shape))

    def score(self, counts: Counts) -> Floats:
        """ψ(q) per query, [queries, 1]."""
        return laplace_scores(counts, scale=self.laplace_scale)[:, None]

    @property
    def lipschitz(self) -> tuple[float, ...]:
        """(2k/b,), widened by the error of the quadrature."""
        return (laplace_score_lipschitz(self.laplace_scale / self.teachers_per_record),)

    def surface(self, order: float, resolution: Resolution = FINE) -> LaplaceSurface:
        """F̃ on its grid at one order; F is at most a multiple of e^{ψ + λ ε0}."""
        lowest, highest = laplace_score_range(
            teachers=self.teachers, classes=self.classes, scale=self.laplace_scale
        )
        negligible = -order * self.pure_epsilon - _NEGLIGIBLE
        grid = ScoreGrid.spanning(
            max(lowest, LOWEST_SCORE, negligible),
            highest,
            lipschitz=self.lipschitz[0],
            resolution=resolution,
        )
        return LaplaceSurface(
            order=order,
            classes=self.classes,
            scale=self.laplace_scale,
            grid=grid,
            teachers_per_record=self.teachers_per_record,
        )

    def cells(self, score: Floats, surface: Surface) -> NDArray[np.int64]:
        """(0, k) for scores [queries, 1]."""
        columns = surface.grid.cells(score[:, 0])
        return np.stack([np.zeros_like(columns), columns], axis=1)

    def rdp(self, score: Floats, orders: Floats) -> Floats:
        """F̃ at scores [queries, 1]: [orders, queries], nats."""
        surfaces = [self.surface(float(order)) for order in orders]
        return np.stack([one.cost(self.cells(score, one)) for one in surfaces])

    def worst_rdp(self, *, queries: int, answers: int, orders: Floats) -> Floats:
        """k2·w(λ); every query is answered until the cap stops the run."""
        del queries
        return answers * worst_laplace_max_rdp(
            scale=self.laplace_scale,
            classes=self.classes,
            orders=orders,
            reach=self.teachers_per_record,
        )

    def gaussian_mu(self, *, queries: int, answers: int) -> float:
        """√(2 k2)·μ(k/b) with μ(ε) = −2 Φ⁻¹(1/(1 + e^ε)).

        The trade-off function of ε-DP is two segments through (0, 1), (t, t) and (1, 0),
        t = 1/(1 + e^ε); that of N(0, 1) and N(μ, 1) is convex through the same three points for
        Φ(−μ/2) = t, so it lies below: ε-DP implies μ(ε)-GDP. Moved votes shift count j by s_j/b,
        s_j ≤ k and Σ s_j ≤ 2k, each s_j/b-DP. Compositions add squares, and as μ(ε)²/ε grows
        with ε, Σ_j μ(s_j/b)² ≤ 2 μ(k/b)² (Dong, Roth and Su 2022).
        """
        del queries
        one_count = self.teachers_per_record / self.laplace_scale
        return float(np.sqrt(8.0 * answers) * -ndtri_exp(-np.logaddexp(0.0, one_count)))

    def parameters(self) -> dict[str, Any]:
        """Public parameters."""
        return {
            "name": self.name,
            "teachers": self.teachers,
            "classes": self.classes,
            "laplace_scale": self.laplace_scale,
            "teachers_per_record": self.teachers_per_record,
        }
