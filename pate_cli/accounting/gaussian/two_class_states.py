"""Two classes: the exact cost of a whole query, over all the states its votes can be in.

With two classes a query's votes are a state (n_1, n_2), n_1 + n_2 ≤ τ, and its output is one of
three: no answer, class 1, class 2. The test and the argmax draw independent noise, so

  Pr[no answer] = 1 − p,   Pr[1] = p Φ(g),   Pr[2] = p Φ(−g),
  p = Φ((max(n_1, n_2) − T)/σ1),   g = (n_1 − n_2)/(σ2 √2),

and without a test p = 1. One vote leads from a state to (±1, ∓1), or, where votes may be missing,
to (±1, 0) or (0, ±1), and nowhere else. The cost ρ of a state is the largest exact divergence over
these neighbours, both directions; there is no chain rule to lose by and no score to round, and the
plurality and its lead stay tied. Within d votes of a state it is at most

  ρ_d = max of ρ over the states at most d votes away,

so ρ_0 bounds every neighbour and ρ_d(n') ≤ ρ_{d+1}(n) for neighbours, both by definition.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from pate_cli.accounting.divergence import excess_raised
from pate_cli.core.arrays import Counts, Floats, Ints
from pate_cli.core.checks import check_counts, check_distances, check_order, check_positive
from pate_cli.core.errors import ParameterError

# What float64 may have lost of a divergence between states one vote apart.
_ROUNDING = 1e-9
_MOST_TEACHERS = 6_000
# States whose divergences are looked at in one go; bounds memory, not results.
_CHUNK = 1_000_000


@dataclass(frozen=True)
class _Query:
    """log probabilities of a query's outcomes, and all it takes to know them."""

    teachers: int
    sigma: float
    threshold: float | None
    sigma_threshold: float | None

    def log_outcomes(self, first: Ints) -> Floats:
        """[2 or 3, first, τ + 1] for every n_2 beside the given n_1."""
        second = np.arange(self.teachers + 1)
        gap = (first[:, None] - second) / (self.sigma * math.sqrt(2.0))
        wins = np.stack([log_ndtr(gap), log_ndtr(-gap)])
        if self.threshold is None or self.sigma_threshold is None:
            return wins
        margin = (np.arange(self.teachers + 1) - self.threshold) / self.sigma_threshold
        top = np.maximum(first[:, None], second)
        return np.concatenate([wins + log_ndtr(margin)[top], log_ndtr(-margin)[top][None]])

    def most(self, order: float) -> float:
        """The cost of the noisy counts seen in full."""
        tested = 0.0 if self.sigma_threshold is None else order / (2.0 * self.sigma_threshold**2)
        return tested + order / self.sigma**2


def _state_costs(query: _Query, *, order: float) -> Floats:
    """ρ of every state with n_1 + n_2 ≤ τ, −inf for the others, [τ + 1, τ + 1]."""
    size = query.teachers + 1
    worst = np.zeros((size, size))
    votes = np.arange(size)
    rows = max(1, _CHUNK // size)
    for start in range(0, size, rows):
        stop = min(start + rows, size)
        first = votes[start : min(stop + 1, size)]
        log_outcomes = query.log_outcomes(first)
        reachable = first[:, None] + votes < size
        part = worst[start : start + first.size]
        low, high, every = slice(None, -1), slice(1, None), slice(None)
        # Every kind of move once, as (a state, its neighbour): it counts for both.
        for state, neighbour in (
            ((high, low), (low, high)),
            ((high, every), (low, every)),
            ((every, high), (every, low)),
        ):
            here, there = log_outcomes[:, *state], log_outcomes[:, *neighbour]
            excess = np.maximum(
                excess_raised(here, there, order=order).sum(axis=0),
                excess_raised(there, here, order=order).sum(axis=0),
            )
            excess = np.where(reachable[state] & reachable[neighbour], excess, 0.0)
            np.maximum(part[state], excess, out=part[state])
            np.maximum(part[neighbour], excess, out=part[neighbour])
    cost = np.minimum(np.log1p(worst) / (order - 1.0) * (1.0 + _ROUNDING), query.most(order))
    return np.where(votes[:, None] + votes < size, cost, -np.inf)


def _spread(cost: Floats) -> Floats:
    """The maximum over all states one vote away: one more vote for a class, then one fewer."""
    more = cost.copy()
    np.maximum(more[:-1], cost[1:], out=more[:-1])
    np.maximum(more[:, :-1], cost[:, 1:], out=more[:, :-1])
    fewer = more.copy()
    np.maximum(fewer[1:], more[:-1], out=fewer[1:])
    np.maximum(fewer[:, 1:], more[:, :-1], out=fewer[:, 1:])
    return fewer


def check_two_class_size(teachers: int) -> None:
    """ParameterError for more teachers than a table of all their states can hold."""
    if teachers > _MOST_TEACHERS:
        raise ParameterError(
            f"teachers={teachers}: exact states of two classes are tabulated for at most "
            f"{_MOST_TEACHERS}"
        )


def two_class_states_rdp(
    counts: Counts,
    *,
    teachers: int,
    sigma: float,
    order: float,
    distances: Ints,
    threshold: float | None = None,
    sigma_threshold: float | None = None,
) -> Floats:
    """ρ_d: what a whole query with two classes costs, at most so much within d votes.

    Args:
        counts: integer histograms [rows, 2], each of at most τ votes.
        teachers: τ (public); states of fewer votes count as reachable.
        sigma: standard deviation σ2 of the noise on each count, > 0 (counts).
        order: Rényi order λ > 1.
        distances: ascending d ≥ 0, [distances] (votes).
        threshold: T of the test before the argmax (votes); None for an argmax alone.
        sigma_threshold: standard deviation σ1 of the noise on the largest count, > 0 (votes);
            given if and only if `threshold` is.

    Returns:
        [distances, rows], nats, non-decreasing in d, at most λ/(2σ1²) + λ/σ2² (the noisy counts
        seen in full).

    Raises:
        ParameterError: a bad sigma, order, threshold, distance or histogram, or more teachers than
            `check_two_class_size` allows.
    """
    counts, distances = check_counts(counts, teachers=teachers), check_distances(distances)
    if counts.shape[1] != 2:
        raise ParameterError(f"counts must have 2 classes, got {counts.shape[1]}")
    check_two_class_size(teachers)
    if (threshold is None) != (sigma_threshold is None):
        raise ParameterError("threshold and sigma_threshold must be given together")
    if threshold is not None and not math.isfinite(threshold):
        raise ParameterError(f"threshold must be finite, got {threshold}")
    if sigma_threshold is not None:
        check_positive("sigma_threshold", sigma_threshold)
    query = _Query(
        teachers=teachers,
        sigma=check_positive("sigma", sigma),
        threshold=threshold,
        sigma_threshold=sigma_threshold,
    )
    cost = _state_costs(query, order=check_order(order))
    result = np.empty((distances.size, len(counts)))
    reached = 0
    for row, distance in enumerate(distances.tolist()):
        for _ in range(min(distance, teachers) - reached):
            cost = _spread(cost)
        reached = min(distance, teachers)
        result[row] = cost[counts[:, 0], counts[:, 1]]
    return result
