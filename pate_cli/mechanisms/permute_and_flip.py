"""Permute-and-flip: the class whose count is largest after exponential noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY
from typing import Any, ClassVar

import numpy as np

from pate_cli.accounting.laplace.noisy_max import laplace_quantile
from pate_cli.accounting.laplace.randomised_response import (
    laplace_max_rdp,
    randomised_response_rdp,
)
from pate_cli.accounting.permute_and_flip import (
    flip_log_q,
    flip_score_lipschitz,
    flip_score_range,
)
from pate_cli.accounting.score_grid import ScoreGrid
from pate_cli.accounting.textbook import Bounded
from pate_cli.core.arrays import DENSE_CLASSES, Floats, Histograms, LabelArray, dense
from pate_cli.core.checks import check_scale
from pate_cli.core.dataclass import dataclass
from pate_cli.core.noise import COARSE_CELL, NARROW, Noise
from pate_cli.core.special import ndtri_exp
from pate_cli.core.words import EXPONENTIAL_SHARE, MechanismName
from pate_cli.mechanisms.base import OneScoreMechanism, RunShape, noisy_argmax

# Scores whose cost is below e^{−36} are clamped: no sum over queries notices.
_NEGLIGIBLE = 36.0


@dataclass(frozen=True)
class PermuteAndFlip(OneScoreMechanism):
    """Answer every query with argmax_j n_j + Exp(b), noise of mean b on one side only.

    Choose it for a label for every one of a few queries, with a pure ε (no δ) an answer.

        >>> pate.PermuteAndFlip(teachers=100, classes=3, exponential_scale=20).pure_epsilon
        0.1

    One answer is ε0-DP, ε0 = 2/b, like LNMax's, with half the variance of its noise. Score
    log Pr[the plurality loses], exact; one vote moves it by at most 2/b. Cost F, the bound with
    randomised response as the dominating pair. Theory: accounting.permute_and_flip.

    Attributes:
        teachers, classes, teachers_per_record, votes_together: as in Mechanism.
        exponential_scale: b > 0, the mean of the noise on each count (votes).
    """

    name: ClassVar[MechanismName] = MechanismName.PERMUTE_AND_FLIP
    most_classes: ClassVar[int] = DENSE_CLASSES

    teachers: int
    classes: int
    _: KW_ONLY
    exponential_scale: float
    teachers_per_record: int = 1
    votes_together: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_scale("exponential_scale", self.exponential_scale)

    @classmethod
    def defaults(cls, run: RunShape, given: Mapping[str, Any]) -> dict[str, Any]:
        """b in proportion to the teachers."""
        del given
        return {"exponential_scale": run.of_teachers(EXPONENTIAL_SHARE)}

    @property
    def pure_epsilon(self) -> float:
        """2k/b: every answer is ε-DP at it."""
        return 2.0 * self.teachers_per_record / self.exponential_scale

    @property
    def noise_cell(self) -> float:
        """Round-off of a one-sided draw, where the others make its lower tail a narrow one."""
        round_off = COARSE_CELL * (1.0 + self.teachers / self.exponential_scale)
        return round_off * NARROW * self.classes

    def label(self, counts: Histograms, noise: Noise) -> LabelArray:
        """One noisy argmax per histogram; a Laplace draw without its sign is exponential."""
        return noisy_argmax(
            counts, self.exponential_scale, lambda shape: np.abs(noise.laplace(shape))
        )[0]

    @property
    def score_lipschitz(self) -> float:
        """2k/b, widened by the error of the quadrature."""
        return flip_score_lipschitz(self.exponential_scale / self.teachers_per_record)

    @property
    def draws(self) -> int:
        """One a class."""
        return self.classes

    def scores(self, counts: Histograms, *, grid: ScoreGrid | None = None) -> Floats:
        """log q per query, [queries]."""
        del grid
        return flip_log_q(dense(counts), scale=self.exponential_scale)

    def score_range(self, order: float) -> tuple[float, float]:
        """From scores of negligible cost, F being at most a multiple of q e^{λ ε0}."""
        lowest, highest = flip_score_range(
            teachers=self.teachers, classes=self.classes, scale=self.exponential_scale
        )
        return max(lowest, -order * self.pure_epsilon - _NEGLIGIBLE), highest

    def bounds(self, scores: Floats, orders: Floats) -> Floats:
        """F at scores; no histogram loses more often than an m-fold tie."""
        possible = np.minimum(scores, np.log1p(-1.0 / self.classes))
        scale = self.exponential_scale / self.teachers_per_record
        return laplace_max_rdp(laplace_quantile(possible), scale=scale, orders=orders)

    def loss_of(self, scores: Floats) -> Floats:
        """q."""
        return np.exp(scores)

    def worst_answers(self, orders: Floats) -> Floats:
        """Randomised response, the worst that is ε0-DP."""
        return randomised_response_rdp(epsilon=self.pure_epsilon, orders=orders)

    def textbook(self, *, queries: int, answers: int) -> tuple[Bounded, ...]:
        """k2 answers, each ε0-DP."""
        del queries
        return (Bounded(answers, self.pure_epsilon),)

    def gaussian_mu(self, *, queries: int, answers: int) -> float:
        """√k2·μ(ε0) with μ(ε) = −2 Φ⁻¹(1/(1 + e^ε)): ε-DP implies μ(ε)-GDP (see LNMax)."""
        del queries
        worst = -ndtri_exp(-np.logaddexp(0.0, self.pure_epsilon))
        return float(2.0 * np.sqrt(answers) * worst)
