"""A lower bound on ε from draws of two neighbours: what an adversary can prove.

The first half of the draws picks an event, the second bounds its two probabilities by Clopper and
Pearson's intervals: (ε, δ)-DP asks Pr[S] ≤ e^ε Pr'[S] + δ, so ε ≥ log((low − δ)/high). The event is
a set of scores from a threshold on, where a score is a likelihood ratio learnt on the first half;
both directions are looked at. Whatever the first half suggests, the bound holds, except where one
of the intervals misses its probability.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import beta

LEVEL: Final = 1e-9
"""With this probability at most an interval misses, on either side."""
INTERVALS: Final = 4
"""So many of them make one lower bound: two probabilities, in both directions."""
FALSE_ALARM: Final = 1e-6
"""At most for all bounds of a table together; a test counts them."""

_THRESHOLDS = 2000
_BINS = 64

Scores = NDArray[np.float64]


def proven(
    often: ArrayLike, seldom: ArrayLike, totals: tuple[int, int], *, delta: float
) -> NDArray[np.float64]:
    """The ε that an event's counts in totals[0] and totals[1] draws prove at δ, −∞ if none."""
    often, seldom = np.asarray(often, dtype=float), np.asarray(seldom, dtype=float)
    low = beta.ppf(LEVEL, np.maximum(often, 1), totals[0] - often + 1)
    high = beta.isf(LEVEL, seldom + 1, np.maximum(totals[1] - seldom, 1))
    low, high = np.where(often > 0, low, 0.0), np.where(seldom < totals[1], high, 1.0)
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(low - delta, 0.0) / high)


def lower_bound(scores: tuple[Scores, Scores], *, delta: float) -> float:
    """A lower bound on ε at this δ, at least 0.

    Args:
        scores: of independent draws on two neighbours, in the order they were drawn; high ones
            tell for the first.
        delta: δ in [0, 1).
    """
    one, other = scores
    bounds = [
        _one_direction(one, other, delta=delta),
        _one_direction(-other, -one, delta=delta),
    ]
    return max(0.0, *bounds)


def _one_direction(one: Scores, other: Scores, *, delta: float) -> float:
    learnt, tested = zip(*(np.array_split(scores, 2) for scores in (one, other)), strict=True)
    places = np.unique(np.concatenate(learnt))
    if places.size > _THRESHOLDS:
        places = places[np.linspace(0, places.size - 1, _THRESHOLDS).astype(int)]
    guess = proven(*(_from(side, places) for side in learnt), _sizes(learnt), delta=delta)
    best = places[[int(np.argmax(guess))]]
    return proven(*(_from(side, best) for side in tested), _sizes(tested), delta=delta).item()


def _from(scores: Scores, places: Scores) -> NDArray[np.int64]:
    """How many scores are at a place or above, [places]."""
    return scores.size - np.searchsorted(np.sort(scores), places, side="left")


def _sizes(sides: tuple[Scores, Scores]) -> tuple[int, int]:
    return sides[0].size, sides[1].size


def by_outcome(one: NDArray[np.int64], other: NDArray[np.int64]) -> tuple[Scores, Scores]:
    """Scores of outcomes given as whole numbers ≥ 0: log of how much likelier they are under one.

    Half a draw is added to each count. Frequencies are those of the first halves.
    """
    size = int(max(one.max(), other.max())) + 1
    halves = [
        np.bincount(side[: -(-side.size // 2)], minlength=size) + 0.5 for side in (one, other)
    ]
    ratio = np.log(halves[0] / halves[0].sum()) - np.log(halves[1] / halves[1].sum())
    return ratio[one], ratio[other]


def by_row(one: NDArray[np.int64], other: NDArray[np.int64]) -> tuple[Scores, Scores]:
    """Scores of outcomes of several rows, [draws, rows], as if rows were independent: their sum."""
    rows = [by_outcome(one[:, row], other[:, row]) for row in range(one.shape[1])]
    return sum(here for here, _ in rows), sum(there for _, there in rows)  # type: ignore[return-value]


def by_bins(one: Scores, other: Scores) -> tuple[Scores, Scores]:
    """Scores of real outcomes: put into bins of about as many draws each, then as whole numbers."""
    learnt = np.concatenate([side[: -(-side.size // 2)] for side in (one, other)])
    edges = np.unique(np.quantile(learnt, np.arange(1, _BINS) / _BINS))
    return by_outcome(*(np.searchsorted(edges, side) for side in (one, other)))


def joint(rows: NDArray[np.int64], outcomes: int) -> NDArray[np.int64]:
    """One whole number per draw of several rows, [draws, rows], each below `outcomes`."""
    return rows @ outcomes ** np.arange(rows.shape[1])
