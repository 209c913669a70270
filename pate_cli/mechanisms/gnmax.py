"""GNMax: answer every query with the class whose count is largest after Gaussian noise."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtr

from pate_cli.accounting.composition import Gaussian
from pate_cli.accounting.gaussian.conditional import ConditionalSize, conditional_rdp
from pate_cli.accounting.gaussian.noisy_max import (
    LOWEST_SCORE,
    score_lipschitz,
    score_range,
    scores,
)
from pate_cli.accounting.gaussian.two_classes import (
    check_two_class_size,
    two_class_rdp,
    two_class_states_rdp,
)
from pate_cli.accounting.gaussian.two_tails import two_tail_rdp
from pate_cli.accounting.gaussian.worst_vote import worst_argmax_rdp
from pate_cli.accounting.score_grid import ScoreGrid
from pate_cli.core.arrays import (
    DENSE_CLASSES,
    Floats,
    Histograms,
    Ints,
    LabelArray,
    SparseCounts,
    compact,
    dense,
)
from pate_cli.core.checks import check_scale
from pate_cli.core.errors import ParameterError, UsageError
from pate_cli.core.noise import (
    Noise,
    Words,
    best_normal_from_words,
    normal_from_words,
    place_from_words,
)
from pate_cli.core.words import SIGMA2_SHARE, MechanismName
from pate_cli.mechanisms.base import OneScoreMechanism, RunShape, Shares, no_progress, noisy_argmax


@dataclass(frozen=True, kw_only=True)
class GNMax(OneScoreMechanism):
    """Answer every query with argmax_j n_j + N(0, σ2²), the class of the largest noisy count.

    Choose GNMax if every query needs a label. If some queries need no label, `confident` has better
    labels at a smaller ε.

        >>> pate.GNMax(teachers=100, classes=3, sigma2=20).parameters()["sigma2"]
        20
        >>> pate.aggregate([[90, 8, 2]] * 10, "gnmax", layout="counts", sigma2=20, seed=1).labels
        <Labels: 10 of 10 queries labelled>

    The RDP cost of a query depends on the score z = Φ⁻¹(Pr[the plurality loses]). The score z is
    computed exactly, and one vote moves z by at most √2/σ2. For two classes the cost F(z) is exact.
    For more classes F(z) is the smaller of two upper bounds on the RDP cost: the two-tail bound,
    and the worst case over all votes. The theory is in accounting.gaussian.

    Attributes:
        sigma2: standard deviation of the noise on each count, > 0 (votes).
    """

    name: ClassVar[MechanismName] = MechanismName.GNMAX
    takes_prior: ClassVar[bool] = True

    sigma2: float

    def __post_init__(self) -> None:
        super().__post_init__()
        check_scale("`sigma2`", self.sigma2)

    @classmethod
    def defaults(cls, run: RunShape, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the default noise σ2, which is proportional to the number of teachers."""
        del given
        return {"sigma2": run.of_teachers(SIGMA2_SHARE)}

    def label(self, counts: Histograms, noise: Noise) -> LabelArray:
        """Draw a label for every histogram: the class with the largest noisy count."""
        counts = compact(counts)
        if isinstance(counts, SparseCounts):
            return self.pick(counts, noise.words((len(counts), self.sparse_draws)))
        return noisy_argmax(counts, self.sigma2, noise.normal)[0]

    def pick(self, counts: SparseCounts, words: Words) -> LabelArray:
        """Draw the class with the largest noisy count for sparse histograms.

        `words` has `sparse_draws` random words for each row.

        Among the s classes without votes, only the class with the largest noise can win, and each
        of them has the largest noise with equal probability. So two draws are enough for all
        classes without votes: one draw is the largest noise of these classes, and the other draw
        chooses which of them has it (THEORY.md, section 5.9). For each class with votes, one random
        word determines the noise on its count.

        Raises:
            ParameterError: a row has votes for more classes than `most_votes`.
        """
        entries = counts.labels.shape[1]
        if entries > self.sparse_draws - 2:
            raise ParameterError(
                f"`counts` has a row with votes for more than {self.most_votes} classes, but a row "
                f"has at most {self.most_votes} votes; check `counts` and `teachers`"
            )
        voted = counts.counts + self.sigma2 * normal_from_words(words[:, :entries])
        voted[counts.counts == 0] = -np.inf
        best = np.argmax(voted, axis=1)[:, None]
        label, height = (
            np.take_along_axis(of, best, axis=1)[:, 0] for of in (counts.labels, voted)
        )
        zeros = counts.zeros
        other = counts.without_votes(place_from_words(words[:, -1], np.maximum(zeros, 1)))
        ahead = self.sigma2 * best_normal_from_words(words[:, -2], zeros) > height
        return np.where(ahead, other, label).astype(np.int32)

    @property
    def _sigma(self) -> float:
        """The noise σ2/k, at which one vote costs as much as k votes at noise σ2.

        k votes move the noisy histogram k times as far as one vote.
        """
        return self.sigma2 / self.teachers_per_record

    @property
    def score_lipschitz(self) -> float:
        """How far a neighbour can move a computed score: k√2/σ2 plus numerical errors."""
        return score_lipschitz(self._sigma)

    def scores(self, counts: Histograms, *, grid: ScoreGrid | None = None) -> Floats:
        """Return the score z of each query, [queries]."""
        if grid is None:
            return scores(counts, sigma=self.sigma2)
        floor = max(grid.below, LOWEST_SCORE)
        return scores(counts, sigma=self.sigma2, floor=floor, step=grid.step)

    def score_range(self, order: float) -> tuple[float, float]:
        """Return public bounds on the scores of all histograms, except scores of negligible cost.

        The RDP cost F(z) of a query with score z is at most a constant times e^{E} Φ(z + λμ) with
        E = λ(λ−1)μ²/2 and μ = k√2/σ2. F(z) is below 1e-14 if z is negative and (z + λμ)² ≥ (λμ)² +
        64.
        """
        shift = order * math.sqrt(2.0) * self.teachers_per_record / self.sigma2
        shape = {"teachers": self.most_votes, "classes": self.classes}
        lowest, highest = score_range(**shape, sigma=self.sigma2)
        return max(lowest, LOWEST_SCORE, -shift - math.hypot(shift, 8.0)), highest

    def bounds(
        self, scores: Floats, orders: Floats, *, quick: bool = False, lone: bool = False
    ) -> Floats:
        """Return the RDP cost F of a query with each score, [orders, scores], nats.

        F is exact for two classes. For more classes F is the two-tail bound on the RDP cost, or the
        worst case over all votes if the worst case is smaller. With `quick` the worst case is not
        computed. With `lone` a neighbour only adds or removes a vote.
        """
        sigma = self._lone_sigma if lone else self._sigma
        worst = None if quick else self.worst_answer(orders, lone=lone)
        if self.classes == 2:
            return two_class_rdp(scores, sigma=sigma, orders=orders, peaks=worst)
        found = two_tail_rdp(scores, sigma=sigma, orders=orders, rough=quick)
        return found if worst is None else np.minimum(found, worst[:, None])

    def vote_states(self, counts: Histograms) -> Ints:
        """Return the counts of each query in descending order, [queries, classes]."""
        if self.teachers_per_record > 1:
            raise UsageError(
                "`bound` conditional needs `teachers_per_record` 1; use `bound` two-tail"
            )
        if self.classes > DENSE_CLASSES:
            raise UsageError(
                f"`bound` conditional allows at most {DENSE_CLASSES} classes; use `bound` two-tail"
            )
        return -np.sort(-np.asarray(dense(counts), dtype=np.int64), axis=1)

    def state_costs(
        self, states: Ints, *, order: float, distances: Ints, progress: Shares = no_progress
    ) -> Floats:
        """Return the largest RDP cost of each query if at most d votes on the query change.

        There is one result for each d in `distances`. With two classes the cost is exact. With more
        classes the result is an upper bound on the cost, computed by `conditional_rdp`. No cost is
        above the worst case of an answer.
        """
        progress(1.0)
        if self.classes == 2:
            return two_class_states_rdp(
                states,
                teachers=self.most_votes,
                sigma=self.sigma2,
                order=order,
                distances=distances,
            )
        return conditional_rdp(
            states,
            teachers=self.most_votes,
            sigma=self.sigma2,
            order=order,
            distances=distances,
            cap=float(self.worst_answer(np.array([order]))[0]),
        )

    def check_states(self, rows: int, *, order: float, furthest: int) -> None:
        """Raise ParameterError if `state_costs` might need too much memory."""
        if self.classes == 2:
            check_two_class_size(self.most_votes)
        else:
            self.states_size(rows, order, furthest).check()

    def state_seconds(self, rows: int, *, order: float, furthest: int) -> float:
        """Estimate the seconds that `state_costs` takes.

        The estimate is 0 if there are two classes, or more than `vote_states` allows.
        """
        if self.classes == 2 or self.classes > DENSE_CLASSES:
            return 0.0
        return self.states_size(rows, order, furthest).seconds()

    def states_size(self, rows: int, order: float, furthest: int) -> ConditionalSize:
        """Return the public numbers that determine the time and memory of `state_costs`."""
        return ConditionalSize(rows, self.classes, self.most_votes, self.sigma2, order, furthest)

    def loss_chance(self, counts: Histograms) -> Floats:
        """Return Pr[the answer is not the plurality] of each query, which is Φ(z), [queries]."""
        return np.asarray(ndtr(self.scores(counts)), dtype=np.float64)

    def worst_answers(self, orders: Floats, *, lone: bool = False) -> Floats:
        """Return w2(λ), the worst-case RDP cost of an answer over all votes, [orders], nats.

        k votes that move together cost as much as one vote at noise σ2/k. If a vote is only added
        or removed, only two outcomes matter: the class of this vote wins, or another class wins.
        """
        if lone:
            return worst_argmax_rdp(sigma=self._lone_sigma, classes=2, orders=orders)
        return worst_argmax_rdp(
            sigma=self._sigma, classes=self.classes, orders=orders, several=self.votes_apart
        )

    @property
    def _lone_sigma(self) -> float:
        """The σ at which moving a vote between two classes costs as much as adding a vote at σ2.

        Adding or removing a vote changes one count by 1. With two classes, a vote that is added
        changes the gap between the counts by half as much as a vote that is moved.
        """
        return self.sigma2 * (2.0 if self.classes == 2 else math.sqrt(2.0))

    def textbook(self, *, queries: int, answers: int) -> tuple[Gaussian, ...]:
        """Return the steps that a textbook would compose: k2 histograms, L2 sensitivity k√2."""
        del queries
        return (Gaussian(answers, self._sigma / 2.0**0.5),)

    def gaussian_mu(self, *, queries: int, answers: int) -> float:
        """Return μ = k√(2 k2)/σ2 of the Gaussian-DP bound for k2 answers."""
        del queries
        return float(self.teachers_per_record * np.sqrt(2.0 * answers) / self.sigma2)
