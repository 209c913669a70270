"""Stability: the exact plurality, given only when no small change could have altered it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from pate_cli.accounting.composition import Composition, best_composition
from pate_cli.accounting.laplace.noisy_max import laplace_cdf
from pate_cli.accounting.stability import (
    distance_to_instability,
    epsilon_for_half,
    stability_leak,
    stability_threshold,
)
from pate_cli.accounting.textbook import Bounded
from pate_cli.core.arrays import NO_LABEL, Floats, Histograms, LabelArray, winners
from pate_cli.core.checks import check_delta, check_query_delta, check_scale, check_whole
from pate_cli.core.noise import Noise
from pate_cli.core.words import MechanismName
from pate_cli.mechanisms.base import ComposedMechanism, RunShape


@dataclass(frozen=True)
class Stability(ComposedMechanism):
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
        teachers, classes, teachers_per_record, votes_together: as in Mechanism.
        query_epsilon: ε of one query, > 0 (nats).
        query_delta: δ of the threshold, in (0, 1); one query is charged half of it.
    """

    name: ClassVar[MechanismName] = MechanismName.STABILITY
    refusals = None  # no field: they cost nothing

    teachers: int
    classes: int
    _: KW_ONLY
    query_epsilon: float
    query_delta: float
    teachers_per_record: int = 1
    votes_together: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_scale("query epsilon", self.query_epsilon)
        check_query_delta(self.query_delta)

    @classmethod
    def defaults(cls, run: RunShape, given: Mapping[str, Any]) -> dict[str, Any]:
        """Half of δ for the queries' own, and T at half the distance of a unanimous vote.

        That is less noise per query than a smaller share, and still within reach of confident
        queries.

        Raises:
            ParameterError: too few teachers.
        """
        query_delta = given.get("query_delta", run.delta / run.queries)
        if "query_epsilon" in given:
            return {"query_delta": query_delta}
        unit = stability_threshold(query_epsilon=1.0, query_delta=query_delta)
        epsilon = epsilon_for_half(
            unit, teachers=run.teachers, teachers_per_record=run.teachers_per_record
        )
        return {"query_delta": query_delta, "query_epsilon": epsilon}

    @property
    def threshold(self) -> float:
        """T, in records."""
        return stability_threshold(query_epsilon=self.query_epsilon, query_delta=self.query_delta)

    @property
    def leak(self) -> float:
        """The δ of one query: the probability that a query at distance 0 is answered."""
        return stability_leak(query_epsilon=self.query_epsilon, threshold=self.threshold)

    @property
    def draws(self) -> int:
        """One."""
        return 1

    def label(self, counts: Histograms, noise: Noise) -> LabelArray:
        """The plurality of every stable histogram, NO_LABEL elsewhere; one draw a row."""
        distance = self._distance(counts)
        passed = distance + noise.laplace(len(counts)) / self.query_epsilon > self.threshold
        return np.where(passed, winners(counts), NO_LABEL).astype(np.int32)

    def answer_chance(self, counts: Histograms) -> Floats:
        """Pr[d + Lap(1/ε) > T] per query, [queries]."""
        return laplace_cdf((self._distance(counts) - self.threshold) * self.query_epsilon)

    def _distance(self, counts: Histograms) -> Floats:
        k = self.teachers_per_record
        return distance_to_instability(counts, teachers_per_record=k).astype(np.float64)

    def textbook(self, *, queries: int, answers: int) -> tuple[Bounded, ...]:
        """k1 queries, answered or not."""
        del answers
        return (Bounded(queries, self.query_epsilon, self.leak),)

    def privacy(self, queries: int, delta: float) -> Composition:
        """The (ε, δ) of k1 queries for all votes.

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
