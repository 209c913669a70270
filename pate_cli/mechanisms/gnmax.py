"""GNMax: the class whose count is largest after Gaussian noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtr

from pate_cli.accounting.gaussian.conditional import conditional_rdp, conditional_seconds
from pate_cli.accounting.gaussian.noisy_max import (
    LOWEST_SCORE,
    argmax_score_range,
    score_lipschitz,
    scores,
)
from pate_cli.accounting.gaussian.two_class_states import two_class_states_rdp
from pate_cli.accounting.gaussian.two_classes import two_class_rdp
from pate_cli.accounting.gaussian.two_tails import two_tail_rdp
from pate_cli.accounting.gaussian.worst_vote import worst_argmax_rdp
from pate_cli.arrays import Counts, Floats, Ints, LabelArray
from pate_cli.checks import check_positive
from pate_cli.errors import UsageError
from pate_cli.mechanisms.base import OneScoreMechanism, RunShape, noisy_argmax
from pate_cli.noise import Noise
from pate_cli.words import SIGMA2_SHARE, MechanismName

__all__ = ["GNMax"]


@dataclass(frozen=True)
class GNMax(OneScoreMechanism):
    """Answer every query with argmax_j n_j + N(0, σ2²).

    Score z = Φ⁻¹(Pr[the plurality loses]), exact; one vote moves it by at most √2/σ2. Cost F(z),
    the two-tail bound (exact for two classes) or the supremum over all votes where that is
    smaller. Theory: accounting.gaussian.

    Attributes:
        teachers, classes, teachers_per_record, votes_together: as in Mechanism.
        sigma2: standard deviation of the noise on each count, > 0 (votes).
    """

    name: ClassVar[MechanismName] = MechanismName.GNMAX

    teachers: int
    classes: int
    _: KW_ONLY
    sigma2: float
    teachers_per_record: int = 1
    votes_together: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("sigma2", self.sigma2)

    @classmethod
    def defaults(cls, run: RunShape, given: Mapping[str, Any]) -> dict[str, Any]:
        """σ2 in proportion to the teachers."""
        del given
        return {"sigma2": SIGMA2_SHARE * run.teachers}

    def label(self, counts: Counts, noise: Noise) -> LabelArray:
        """One noisy argmax per histogram."""
        return noisy_argmax(counts, self.sigma2 * noise.normal(counts.shape))

    @property
    def _sigma(self) -> float:
        """k votes move the noisy histogram k times as far: the same pair with noise σ/k."""
        return self.sigma2 / self.teachers_per_record

    @property
    def score_lipschitz(self) -> float:
        """k√2/σ2, widened by the error of the quadrature."""
        return score_lipschitz(self._sigma)

    @property
    def draws(self) -> int:
        """One a class."""
        return self.classes

    def scores(self, counts: Counts, *, floor: float = -np.inf) -> Floats:
        """z per query, [queries]."""
        return scores(counts, sigma=self.sigma2, floor=max(floor, LOWEST_SCORE))

    def score_range(self, order: float) -> tuple[float, float]:
        """From scores whose cost is below 1e-14 to that of an m-fold tie."""
        return argmax_score_range(
            teachers=self.teachers,
            classes=self.classes,
            sigma=self.sigma2,
            order=order,
            teachers_per_record=self.teachers_per_record,
        )

    def bound(self, scores: Floats, order: float) -> Floats:
        """F at scores, or what any votes cost if that is less."""
        worst = self.worst_answer(np.array([order]))[0]
        return np.minimum(self.quick_bound(scores, order), worst)

    def bounds(self, scores: Floats, orders: Floats) -> Floats:
        """F at several orders, which share most of the work."""
        worst = self.worst_answer(orders)
        rdp = two_class_rdp if self.classes == 2 else two_tail_rdp
        return np.minimum(rdp(scores, sigma=self._sigma, orders=orders), worst[:, None])

    def quick_bound(self, scores: Floats, order: float) -> Floats:
        """F at scores: two-tail, exact for two classes."""
        rdp = two_class_rdp if self.classes == 2 else two_tail_rdp
        return rdp(scores, sigma=self._sigma, orders=np.array([order]))[0]

    def vote_states(self, counts: Counts) -> Ints:
        """The histograms, classes in descending order of votes, [queries, classes]."""
        if self.teachers_per_record > 1:
            raise UsageError("`bound` conditional needs `teachers_per_record` 1")
        return -np.sort(-np.asarray(counts, dtype=np.int64), axis=1)

    def state_costs(self, states: Ints, *, order: float, distances: Ints) -> Floats:
        """F'_d of histograms, or the exact costs of two classes; nowhere above w2."""
        if self.classes == 2:
            return two_class_states_rdp(
                states,
                teachers=self.teachers,
                sigma=self.sigma2,
                order=order,
                distances=distances,
            )
        return conditional_rdp(
            states,
            teachers=self.teachers,
            sigma=self.sigma2,
            order=order,
            distances=distances,
            cap=float(self.worst_answer(np.array([order]))[0]),
        )

    def state_seconds(self, rows: int, *, order: float, furthest: int) -> float:
        """About how long F'_d takes; two classes take no time worth telling."""
        if self.classes == 2:
            return 0.0
        return conditional_seconds(
            rows=rows,
            classes=self.classes,
            teachers=self.teachers,
            sigma=self.sigma2,
            order=order,
            furthest=furthest,
        )

    def loss_of(self, scores: Floats) -> Floats:
        """Φ(z)."""
        return np.asarray(ndtr(scores), dtype=np.float64)

    def worst_answers(self, orders: Floats) -> Floats:
        """w2(λ); k votes that move together are one vote beside noise σ2/k."""
        together = self.votes_together
        return worst_argmax_rdp(
            sigma=self._sigma if together else self.sigma2,
            classes=self.classes,
            orders=orders,
            teachers_per_record=1 if together else self.teachers_per_record,
        )

    def gaussian_mu(self, *, queries: int, answers: int) -> float:
        """k√(2 k2)/σ2."""
        del queries
        return float(self.teachers_per_record * np.sqrt(2.0 * answers) / self.sigma2)
