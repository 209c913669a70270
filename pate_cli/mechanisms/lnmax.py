"""LNMax: answer every query with the class whose count is largest after Laplace noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri_exp

from pate_cli.accounting.composition import Bounded
from pate_cli.accounting.laplace.noisy_max import (
    LOWEST_SCORE,
    laplace_cdf,
    laplace_score_lipschitz,
    laplace_score_range,
    laplace_scores,
)
from pate_cli.accounting.laplace.score_cost import (
    laplace_max_rdp,
    laplace_two_class_rdp,
    randomised_response_rdp,
)
from pate_cli.accounting.laplace.worst_vote import worst_laplace_max_rdp
from pate_cli.accounting.score_grid import ScoreGrid
from pate_cli.core.arrays import DENSE_CLASSES, Floats, Histograms, LabelArray, dense
from pate_cli.core.checks import check_scale
from pate_cli.core.noise import Noise
from pate_cli.core.words import LAPLACE_SHARE, MechanismName
from pate_cli.mechanisms.base import OneScoreMechanism, RunShape, noisy_argmax

# Scores whose cost is below e^{−36} are raised to the score with this cost, which is negligible
# even in a sum over many queries.
_NEGLIGIBLE = 36.0


@dataclass(frozen=True, kw_only=True)
class LNMax(OneScoreMechanism):
    """Answer every query with argmax_j n_j + Lap(b), the class of the largest noisy count.

    LNMax is the mechanism of the 2017 paper. Choose LNMax if each of a few queries needs a label
    with a pure ε (no δ) per answer. For many queries GNMax costs less.

        >>> pate.LNMax(teachers=100, classes=3, laplace_scale=20).pure_epsilon
        0.1

    One answer is ε0-DP with ε0 = 2/b. The RDP cost of a query depends on the score ψ(Pr[the
    plurality loses]), where ψ is the quantile function of Lap(1). The score is computed exactly,
    and one vote moves the score by at most 2/b. For two classes the cost F is exact. For more
    classes F is the smaller of two upper bounds on the RDP cost: the largest cost of any ε0-DP
    answer with the same score, and the worst case over all votes. The theory is in
    accounting.laplace.

    Attributes:
        laplace_scale: b > 0, the scale of the noise on each count (votes).
    """

    name: ClassVar[MechanismName] = MechanismName.LNMAX
    most_classes: ClassVar[int] = DENSE_CLASSES

    laplace_scale: float

    def __post_init__(self) -> None:
        super().__post_init__()
        check_scale("`laplace_scale`", self.laplace_scale)

    @classmethod
    def defaults(cls, run: RunShape, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the default scale b, which is proportional to the number of teachers."""
        del given
        return {"laplace_scale": run.of_teachers(LAPLACE_SHARE)}

    @property
    def pure_epsilon(self) -> float:
        """The ε of each answer: every answer is ε-DP with ε = 2k/b."""
        return 2.0 * self.teachers_per_record / self.laplace_scale

    def label(self, counts: Histograms, noise: Noise) -> LabelArray:
        """Draw a label for every histogram: the class with the largest noisy count."""
        return noisy_argmax(counts, self.laplace_scale, noise.laplace)[0]

    @property
    def _scale(self) -> float:
        """The scale b/k, at which one vote costs as much as k votes at scale b."""
        return self.laplace_scale / self.teachers_per_record

    @property
    def score_lipschitz(self) -> float:
        """How far a neighbour can move a computed score: 2k/b plus numerical errors."""
        return laplace_score_lipschitz(self._scale)

    def scores(self, counts: Histograms, *, grid: ScoreGrid | None = None) -> Floats:
        """Return the score ψ(q) of each query, [queries]."""
        floor = LOWEST_SCORE if grid is None else max(grid.below, LOWEST_SCORE)
        return laplace_scores(dense(counts), scale=self.laplace_scale, floor=floor)

    def score_range(self, order: float) -> tuple[float, float]:
        """Return public bounds on scores, except scores whose cost is negligible.

        The cost F of the score ψ is at most a constant times e^{ψ + λ ε0}, with ε0 = 2k/b.
        """
        lowest, highest = laplace_score_range(
            teachers=self.teachers, classes=self.classes, scale=self.laplace_scale
        )
        negligible = -order * self.pure_epsilon - _NEGLIGIBLE
        return max(lowest, LOWEST_SCORE, negligible), highest

    def bounds(self, scores: Floats, orders: Floats, *, quick: bool = False) -> Floats:
        """Return the RDP cost F of a query with each score; F is at most the worst case."""
        del quick
        worst = self.worst_answer(orders)
        if self.classes == 2:
            return laplace_two_class_rdp(scores, scale=self._scale, orders=orders, peaks=worst)
        return np.minimum(laplace_max_rdp(scores, scale=self._scale, orders=orders), worst[:, None])

    def loss_chance(self, counts: Histograms) -> Floats:
        """Return Pr[an answer is not the plurality] per query, [queries].

        The probability of another answer than the plurality is ψ⁻¹ of the score, where ψ⁻¹ is the
        distribution function of Lap(1).
        """
        return laplace_cdf(self.scores(counts))

    def worst_answers(self, orders: Floats, *, lone: bool = False) -> Floats:
        """Return the worst-case RDP cost of an answer over all votes, [orders], nats.

        k votes that move together cost as much as one vote at scale b/k. A vote that is only added
        or removed changes one count, so it costs as much as randomised response with ε = k/b.
        """
        if lone:
            return randomised_response_rdp(epsilon=1.0 / self._scale, orders=orders)
        return worst_laplace_max_rdp(
            scale=self._scale, classes=self.classes, orders=orders, several=self.votes_apart
        )

    def textbook(self, *, queries: int, answers: int) -> tuple[Bounded, ...]:
        """Return the steps that a textbook would compose: k2 answers that are ε0-DP each."""
        del queries
        return (Bounded(answers, self.pure_epsilon),)

    def gaussian_mu(self, *, queries: int, answers: int) -> float:
        """Return μ = √(2 k2)·μ(k/b) of the Gaussian-DP bound, with μ(ε) = −2 Φ⁻¹(1/(1 + e^ε)).

        The trade-off function of ε-DP consists of two segments through (0, 1), (t, t) and (1, 0), t
        = 1/(1 + e^ε). The trade-off function of N(0, 1) and N(μ, 1) is convex and also goes through
        (0, 1), (t, t) and (1, 0) if Φ(−μ/2) = t. So the trade-off function of N(0, 1) and N(μ, 1)
        is nowhere above the trade-off function of ε-DP. Therefore ε-DP implies μ(ε)-Gaussian-DP.
        The votes of one record change count j by s_j votes, with s_j ≤ k and Σ s_j ≤ 2k, so the
        noisy count j is s_j/b-DP. In a composition the squares of μ add up. Because μ(ε)²/ε grows
        with ε, Σ_j μ(s_j/b)² ≤ 2 μ(k/b)² (Dong, Roth and Su 2022).
        """
        del queries
        one_count = self.teachers_per_record / self.laplace_scale
        return float(np.sqrt(8.0 * answers) * -ndtri_exp(-np.logaddexp(0.0, one_count)))
