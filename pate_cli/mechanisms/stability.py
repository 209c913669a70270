"""Stability: the exact plurality, given only when no small change could have altered it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pate_cli.accounting.composition import Composition, best_composition
from pate_cli.accounting.stability import (
    DEFAULT_SHARE,
    check_query_delta,
    check_whole,
    distance_to_instability,
    epsilon_for_share,
    stability_leak,
    stability_threshold,
)
from pate_cli.arrays import Counts, LabelArray
from pate_cli.checks import check_delta, check_positive
from pate_cli.mechanisms.base import NO_LABEL, WithoutRowInputs, check_shape
from pate_cli.noise import Noise

__all__ = ["Stability"]


@dataclass(frozen=True)
class Stability(WithoutRowInputs):
    """Answer argmax_j n_j, without noise, if d(n) + Lap(1/ε) > T = log(1/δ)/ε; else no answer.

    d is `distance_to_instability`; ties go to the lowest class and have d = 0.

    **One query is (ε, δ/2)-DP**, in both directions, for neighbours n, n' with pluralities i, i'.
    Write p(d) = Pr[d + Lap(1/ε) > T], and d, d' for the two distances.
      i = i': the output is i with probability p(d) and no answer with 1 − p(d): a function, the
        same for n and n', of d + Lap(1/ε). As |d − d'| ≤ 1 this is the Laplace mechanism: (ε, 0).
      i ≠ i': then d = d' = 0. No answer has probability 1 − p(0) on both sides, i has p(0)
        against 0, so Pr[S] ≤ Pr'[S] + p(0) for every S: (0, p(0)), p(0) = ½ e^{−εT} = δ/2 exactly.
    Either is (ε, δ/2). The usual statement, (ε, δ), is twice too large in δ; `leak` is the exact
    figure, attained by a tie between two classes and the neighbour that turns it.

    **k1 queries**, even chosen after seeing the answers so far, are k1 adaptively composed
    (ε, δ/2)-DP mechanisms: `privacy`. There is no Rényi version: in the second case the label has a
    positive probability on one side and none on the other, so the divergence is infinite at
    every order, in both directions.

    Sources: Thakurta and Smith (2013); Dwork and Roth (2014), Section 7.3 (algorithm A_dist).

    Attributes:
        teachers: τ ≥ 1.
        classes: m ≥ 2.
        query_epsilon: ε of one query, > 0 (nats).
        query_delta: δ of the threshold, in (0, 1); one query is charged half of it.
        reach: votes of one query that one record can change, ≥ 1.
    """

    teachers: int
    classes: int
    query_epsilon: float
    query_delta: float
    reach: int = 1

    def __post_init__(self) -> None:
        check_shape(self.teachers, self.classes)
        check_positive("query epsilon", self.query_epsilon)
        check_query_delta(self.query_delta)
        check_whole("reach", self.reach)

    @staticmethod
    def default_query_epsilon(
        teachers: int, *, query_delta: float, reach: int = 1, share: float = DEFAULT_SHARE
    ) -> float:
        """ε that puts T at a share, a third by default, of the distance of a unanimous vote.

        Then a unanimous vote passes but with probability ½δ^{1/share − 1} = δ²/2, and gaps above a
        third of the votes are answered more often than not. Depends on public numbers alone.

        Args:
            teachers: τ > 2 · reach.
            query_delta: δ in (0, 1).
            reach: as in the class.
            share: of the farthest distance, in (0, 1).

        Raises:
            ParameterError: a number outside its range.
        """
        unit = stability_threshold(query_epsilon=1.0, query_delta=query_delta)
        return epsilon_for_share(unit, teachers=teachers, reach=reach, share=share)

    @property
    def name(self) -> str:
        """`stability`."""
        return "stability"

    @property
    def threshold(self) -> float:
        """T, in records."""
        return stability_threshold(query_epsilon=self.query_epsilon, query_delta=self.query_delta)

    @property
    def leak(self) -> float:
        """The δ of one query: the probability that a query at distance 0 is answered."""
        return stability_leak(query_epsilon=self.query_epsilon, threshold=self.threshold)

    def label(self, counts: Counts, noise: Noise) -> LabelArray:
        """The plurality of every stable histogram, NO_LABEL elsewhere; one draw a row."""
        distance = distance_to_instability(counts, reach=self.reach)
        passed = distance + noise.laplace(len(counts)) / self.query_epsilon > self.threshold
        return np.where(passed, np.argmax(counts, axis=1), NO_LABEL).astype(np.int32)

    def privacy(self, queries: int, delta: float) -> Composition:
        """The (ε, δ) of k1 queries, whatever the votes.

        Args:
            queries: k1 ≥ 1; unanswered ones count.
            delta: δ of the whole, in (0, 1).

        Raises:
            ParameterError: a number outside its range.
            UnreachableError: δ below what the k1 leaks alone amount to.
        """
        return best_composition(
            check_whole("queries", queries),
            epsilon=self.query_epsilon,
            delta=self.leak,
            total_delta=check_delta(delta),
        )

    def parameters(self) -> dict[str, Any]:
        """Public parameters."""
        return {
            "name": self.name,
            "teachers": self.teachers,
            "classes": self.classes,
            "query_epsilon": self.query_epsilon,
            "query_delta": self.query_delta,
            "reach": self.reach,
        }
