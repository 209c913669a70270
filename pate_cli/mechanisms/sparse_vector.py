"""Sparse vector: stable queries are answered until a few unstable ones have been met."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pate_cli.accounting.composition import Composition, best_composition
from pate_cli.accounting.stability import (
    distance_to_instability,
    epsilon_for_half,
    sparse_vector_leak,
    sparse_vector_threshold,
)
from pate_cli.accounting.textbook import Bounded
from pate_cli.core.arrays import NO_LABEL, Floats, Histograms, LabelArray, winners
from pate_cli.core.checks import check_delta, check_query_delta, check_scale, check_whole
from pate_cli.core.dataclass import dataclass
from pate_cli.core.noise import COARSE_CELL, Noise
from pate_cli.core.words import REFUSALS, MechanismName
from pate_cli.mechanisms.base import ComposedMechanism, Labeller, RunShape

_FIRST_LOOK = 256


@dataclass(frozen=True)
class SparseVector(ComposedMechanism):
    """Answer argmax_j n_j if d(n) + Lap(2b) > T + ρ, ρ ~ Lap(b), b = 2/ε0; stop after Q refusals.

    Choose it for the exact plurality on a few queries with almost unanimous teachers, where next to
    none is refused: the `refusals` that are allowed cost, answers do not.

        >>> given = {"query_epsilon": 0.5, "query_delta": 1e-6, "refusals": 2}
        >>> mechanism = pate.SparseVector(teachers=1000, classes=3, **given)
        >>> votes = [[990, 6, 4]] * 20
        >>> pate.aggregate(votes, mechanism, layout="counts", seed=1).report
        <Report: epsilon 1.0000 at delta 1e-05, 20 of 20 queries answered>

    d is `distance_to_instability`. ρ is kept until a query is refused and then drawn anew: the rows
    from one refusal (excluded) to the next (included) are an *epoch*. Each query has its own
    Lap(2b). Rows after the Q-th refusal are not asked and get no label.

    **One epoch is (ε0, δ)-DP**, however its queries are chosen from the answers before. Fix two
    neighbours D, D' and whatever chooses the queries. Call a query *turned* if its pluralities
    under D and D' differ; both of its distances are then 0.
      Refusals. Consider the epoch that prints * instead of the label of a turned query. Its
      labels are the same functions of the answers under D and D', so its outcome is the number of
      rows answered. Condition on the noise of those answered rows, let h = min (d_i + ν_i) over
      them and h' the same with D': |h − h'| ≤ 1. "All answered, then row k refused" is
      d_k + ν_k ≤ T + ρ < h, and becomes its counterpart under D' by moving ρ by h' − h, at most 1,
      and ν_k by d_k − d'_k + h' − h, at most 2. The densities of Lap(b) and Lap(2b) change by
      factors of at most e^{1/b} and e^{2/(2b)}, together e^{2/b} = e^{ε0}; an epoch that has not
      ended yet moves ρ alone. So this epoch is ε0-DP. (Dwork and Roth (2014), Section 3.6,
      AboveThreshold, upside down.)
      Labels. The true epoch differs from it only if a turned query is answered (B). As long as
      nothing is refused the answers, hence the queries, are determined, so which turned query is
      met first is fixed before ρ and its ν are drawn. If it is refused the epoch ends without B.
      So Pr[B] ≤ Pr[Lap(2b) > T + Lap(b)] = δ, *once an epoch*, and
        Pr[S] ≤ Pr[S, no B] + δ ≤ e^{ε0} Pr'[S, no B] + δ ≤ e^{ε0} Pr'[S] + δ.

    **The whole** is at most min(Q, k1) adaptively composed (ε0, δ)-DP epochs, each with fresh
    noise, however many queries there are: `privacy`. The customary k1·δ (a union bound over
    queries, as in Bassily, Thakkar and Thakurta (2018), whose T grows with log k1) is thereby
    improved to 1 − (1 − δ)^min(Q, k1). A union bound over rows of the marginal Pr[answered] would
    in any case need care: under a threshold that has survived some rows, and so is likely a low
    one, a query at distance 0 is answered more often than δ. No Rényi version, for the reason
    given in Stability.

    Some lecture notes print the scale of ρ as √(32 Q log(1/δ))·ε for a total of ε. It must be
    *divided*: b = √(32 Q log(1/δ))/ε, as in Dwork and Roth's Sparse, that is
    ε0 = ε/√(8 Q log(1/δ)), which advanced composition brings to ε/2 and terms of second order.
    Here ε0 is given and the total follows.

    Attributes:
        teachers, classes, teachers_per_record, votes_together: as in Mechanism.
        query_epsilon: ε0 of one epoch, > 0 (nats).
        query_delta: δ of one epoch, in (0, 1/2]; fixes T.
        refusals: Q ≥ 1.
    """

    name: ClassVar[MechanismName] = MechanismName.SPARSE_VECTOR

    teachers: int
    classes: int
    _: KW_ONLY
    query_epsilon: float
    query_delta: float
    refusals: int
    teachers_per_record: int = 1
    votes_together: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_scale("query epsilon", self.query_epsilon)
        check_query_delta(self.query_delta, most=0.5)
        check_whole("refusals", self.refusals)

    @classmethod
    def defaults(cls, run: RunShape, given: Mapping[str, Any]) -> dict[str, Any]:
        """Ten refusals, half of δ for theirs, T at half the distance of a unanimous vote.

        Raises:
            ParameterError: too few teachers.
        """
        refusals = given.get("refusals", REFUSALS)
        query_delta = given.get("query_delta", run.delta / (2 * max(refusals, 1)))
        settled = {"refusals": refusals, "query_delta": query_delta}
        if "query_epsilon" in given:
            return settled
        unit = sparse_vector_threshold(query_epsilon=1.0, query_delta=query_delta)
        epsilon = epsilon_for_half(
            unit, teachers=run.teachers, teachers_per_record=run.teachers_per_record
        )
        return {**settled, "query_epsilon": epsilon}

    @property
    def noise_cell(self) -> float:
        """The threshold's noise is compared with every row of an epoch."""
        return COARSE_CELL

    @property
    def scale(self) -> float:
        """b = 2/ε0, in records: the scale of ρ, half of that of the noise on a query."""
        return 2.0 / self.query_epsilon

    @property
    def threshold(self) -> float:
        """T, in records."""
        return sparse_vector_threshold(
            query_epsilon=self.query_epsilon, query_delta=self.query_delta
        )

    @property
    def leak(self) -> float:
        """The δ of one epoch: the probability that a query at distance 0 is answered first."""
        return sparse_vector_leak(query_epsilon=self.query_epsilon, threshold=self.threshold)

    @property
    def draws(self) -> int:
        """Two: see SparseVectorLabeller."""
        return 2

    def start(self) -> SparseVectorLabeller:
        """A labeller that has refused nothing yet; give it the batches in order."""
        return SparseVectorLabeller(self)

    def label(self, counts: Histograms, noise: Noise) -> LabelArray:
        """All rows in one go: `start().label`. For several batches keep the labeller."""
        return self.start().label(counts, noise)

    def textbook(self, *, queries: int, answers: int) -> tuple[Bounded, ...]:
        """As many epochs as there may be refusals."""
        del answers
        return (Bounded(min(self.refusals, queries), self.query_epsilon, self.leak),)

    def privacy(self, queries: int, delta: float) -> Composition:
        """The (ε, δ) of k1 queries with at most Q refusals for all votes.

        Args:
            queries: k1 ≥ 1.
            delta: δ of the whole, in (0, 1).

        Raises:
            ParameterError: a number outside its range.
            UnreachableError: δ below what the leaks of the epochs alone amount to.
        """
        return best_composition(
            min(self.refusals, check_whole("queries", queries)),
            epsilon=self.query_epsilon,
            delta=self.leak,
            total_delta=check_delta(delta),
        )

    def answer_chance(self, counts: Histograms) -> Floats:
        """Pr[d + ν > T + ρ] per query under a fresh threshold, [queries].

        ν − ρ with ν ~ Lap(2b), ρ ~ Lap(b) exceeds x > 0 with chance ⅔ e^{−x/2b} − ⅙ e^{−x/b}.
        """
        excess = self.distance(counts) - self.threshold
        x = np.abs(excess) / self.scale
        tail = (2.0 / 3.0) * np.exp(-x / 2.0) - (1.0 / 6.0) * np.exp(-x)
        return np.where(excess < 0.0, tail, 1.0 - tail)

    def distance(self, counts: Histograms) -> Floats:
        """d per query, [queries], records. SECRET."""
        k = self.teachers_per_record
        return distance_to_instability(counts, teachers_per_record=k).astype(np.float64)


@dataclass
class SparseVectorLabeller(Labeller):
    """A sparse-vector run under way, batch by batch. SECRET: it holds the noisy threshold.

    Every row consumes two draws, (ν, ρ): its own noise, and the threshold noise of the epoch that
    begins at it, used only if one does. So a row's draws depend on its place alone, and the labels
    not on the batches.

    Attributes:
        mechanism: what is run.
        refused: refusals so far, ≤ Q. Public with the labels.
    """

    mechanism: SparseVector
    refused: int = 0
    _threshold: float | None = field(default=None, init=False, repr=False)

    @property
    def draws(self) -> int:
        """Two."""
        return self.mechanism.draws

    @property
    def stopped(self) -> bool:
        """Whether the Q-th refusal has happened: no row after it gets a label."""
        return self.refused >= self.mechanism.refusals

    def label(self, counts: Histograms, noise: Noise) -> LabelArray:
        """Labels of the next rows, NO_LABEL where refused or after the stop."""
        mechanism = self.mechanism
        draws = noise.laplace((len(counts), 2)) * np.array([2.0 * mechanism.scale, mechanism.scale])
        noisy = mechanism.distance(counts) + draws[:, 0]
        answered = self._answered(noisy, mechanism.threshold + draws[:, 1])
        return np.where(answered, winners(counts), NO_LABEL).astype(np.int32)

    def _answered(self, noisy: Floats, thresholds: Floats) -> NDArray[np.bool_]:
        """Which rows pass, epoch by epoch: one look ahead per refusal, not per row."""
        answered = np.zeros(len(noisy), dtype=np.bool_)
        row = 0
        while row < len(noisy) and not self.stopped:
            if self._threshold is None:
                self._threshold = float(thresholds[row])
            end = _first_at_most(noisy, row, self._threshold)
            answered[row:end] = True
            if end < len(noisy):
                self.refused += 1
                self._threshold = None
            row = end + 1
        return answered


def _first_at_most(noisy: Floats, start: int, threshold: float) -> int:
    """First row from `start` with noisy ≤ threshold, or the length if there is none.

    Looks at ever longer stretches, so that many refusals in a long batch cost one pass in all.
    """
    length = _FIRST_LOOK
    while start < len(noisy):
        hits = noisy[start : start + length] <= threshold
        first = int(hits.argmax())
        if hits[first]:
            return start + first
        start, length = start + length, 2 * length
    return len(noisy)
