"""Algorithm 4 for all rows and distances: max LS̃ over the histograms within d moves of a row.

Nothing is walked vote by vote: where a row enters and leaves the interesting range of q is found
by bisection over the distance, q there in closed form, and only those (row, distance) pairs are
priced. Everywhere else the curve is 0 or the plateau. q after the worst d moves of votes is that
of Proposition 19's n* and n**, for many rows at once (`Runs`).

Runs are the winner's count, then the distinct counts of the other classes in descending order
with how many classes have each. Rows with many empty classes become short, and the result of
removing d votes one by one from the current runner-up is found in one step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from pate_cli.core.arrays import Counts, Floats, Ints
from pate_cli.paper.conditions import require_conditions
from pate_cli.paper.plateau import Plateau, find_plateau

CELLS = 1 << 20  # numbers held at once, which bounds memory for files of any size

# log Φ never falls below this, so that differences of logarithms stay finite.
_FLOOR = -1e300


@dataclass(frozen=True)
class Runs:
    """Sorted histograms in runs. `sizes` is 0 in the padding at the end of a row.

    Attributes:
        winner: highest count, [rows].
        others: distinct counts of the other classes, descending, [rows, runs].
        sizes: how many classes have that count, [rows, runs].
        spent: votes it takes to shave all runs up to this one down to the next, [rows, runs].
        log_tail: log Φ(−g/(√2 σ)) at every whole gap g, [gaps].
        cap: log(1 − 1/m).
    """

    winner: Ints
    others: Ints
    sizes: Ints
    spent: Ints
    log_tail: Floats
    cap: float

    @classmethod
    def of(cls, histograms: Counts, *, sigma: float, moves: int) -> Runs:
        """Runs of whole-vote histograms [rows, classes], with tails for up to `moves` moves."""
        ordered = -np.sort(-histograms, axis=1)
        winner, rest = ordered[:, 0], ordered[:, 1:]
        run = np.cumsum(np.diff(rest, axis=1, prepend=rest[:, :1]) != 0, axis=1)
        shape = len(rest), int(run[:, -1].max(initial=0)) + 1
        row = np.broadcast_to(np.arange(len(rest))[:, np.newaxis], rest.shape)
        sizes, others = np.zeros((2, *shape), dtype=np.int64)
        np.add.at(sizes, (row, run), 1)
        others[row, run] = rest
        following = np.pad(others[:, 1:], ((0, 0), (0, 1)))
        spent = np.cumsum(np.cumsum(sizes, axis=1) * (others - following), axis=1)
        gaps = np.arange(int(winner.max(initial=0)) + moves + 2)
        log_tail = np.maximum(log_ndtr(-gaps / (np.sqrt(2.0) * sigma)), _FLOOR)
        return cls(winner, others, sizes, spent, log_tail, np.log1p(-1.0 / ordered.shape[1]))

    @property
    def gap(self) -> Ints:
        """n(1) − n(2) of each row."""
        return np.asarray(self.winner - self.others[:, 0])

    @property
    def losing(self) -> Ints:
        """Σ_{i≥2} n(i) of each row: the votes there are to take away from the others."""
        return np.asarray((self.others * self.sizes).sum(axis=1))

    def closer(self, rows: Ints, moves: Ints) -> Floats:
        """log q of n*: the winner loses `moves` votes and the runner-up gains them.

        The largest q within that distance (Proposition 19.1), while 2·moves ≤ n(1) − n(2).
        """
        gaps = np.abs(self.winner[rows, np.newaxis] - self.others[rows] - moves[:, np.newaxis])
        sizes = self.sizes[rows]
        sizes[:, 0] -= 1
        runner_up = self.gap[rows] - 2 * moves
        return self._log_q(
            np.column_stack([runner_up, gaps]), np.column_stack([np.ones_like(rows), sizes])
        )

    def apart(self, rows: Ints, moves: Ints) -> Floats:
        """log q of n**: the winner gains `moves` votes, each taken from the current runner-up.

        The smallest q within that distance (Proposition 19.2), while moves ≤ Σ_{i≥2} n(i). The
        shaved classes end level, some of them one vote lower than the rest.
        """
        others, sizes, spent = self.others[rows], self.sizes[rows], self.spent[rows]
        # The runs that are shaved: all before the first whose cost exceeds the moves, and it.
        last = np.minimum((spent <= moves[:, np.newaxis]).sum(axis=1), (sizes > 0).sum(axis=1) - 1)
        index = np.arange(rows.size)
        shaved = np.arange(others.shape[1]) <= last[:, np.newaxis]
        count = np.where(shaved, sizes, 0).sum(axis=1)
        before = np.where(last > 0, spent[index, np.maximum(last - 1, 0)], 0)
        drop, lower = np.divmod(moves - before, count)
        level = others[index, last] - drop
        top = self.winner[rows] + moves
        gaps = np.where(shaved, 0, top[:, np.newaxis] - others)
        weights = np.where(shaved, 0, sizes)
        return self._log_q(
            np.column_stack([top - level, top - level + 1, gaps]),
            np.column_stack([count - lower, lower, weights]),
        )

    def _log_q(self, gaps: Ints, weights: Ints) -> Floats:
        """Proposition 7 on runs: log Σ weight·Φ(−gap/(√2 σ)), capped at log(1 − 1/m)."""
        terms = self.log_tail[np.minimum(gaps, self.log_tail.size - 1)]
        terms[weights == 0] = -np.inf
        largest = terms.max(axis=1)
        terms -= largest[:, np.newaxis]
        union = largest + np.log((weights * np.exp(terms)).sum(axis=1))
        return np.minimum(union, self.cap)


def gnmax_local_sensitivity(
    counts: Counts, *, sigma: float, order: float, teachers: int, weights: Floats
) -> Floats:
    """Σ_queries weight · max{LS̃(n') : dist(n, n') ≤ d} for GNMax, at every distance d.

    Algorithm 4 with Theorem 20 (in the sum's use of it, Theorem 24). A row whose losing
    votes are all gone is put on the plateau from the next distance on, as the figures of the paper
    were computed; Algorithm 4, lines 19–22, keeps LS̃(q([n, 0, …, 0])) instead, which is smaller.
    Both are β-smooth upper bounds.

    Args:
        counts: whole votes [queries, classes], each row at most `teachers`.
        sigma: standard deviation σ of GNMax's noise, in votes, from 0.1 to 1e9.
        order: Rényi order λ > 1.
        teachers: how many teachers vote; the curve has as many distances, 0 … teachers − 1.
        weights: factor at least 0 of each query, [queries].

    Returns:
        [teachers], nats, non-decreasing. SECRET: it depends on the votes.

    Raises:
        ParameterError: σ is out of range.
        ValidityError: C5 or C6 fails at this (σ, m, λ).
    """
    classes = counts.shape[1]
    require_conditions(sigma=sigma, classes=classes, order=order)
    shape = find_plateau(sigma=sigma, classes=classes, order=order)
    rows, where = np.unique(np.sort(counts, axis=1), axis=0, return_inverse=True)
    total = np.bincount(where.reshape(-1), weights=weights, minlength=len(rows))
    curve = np.zeros(teachers)
    height = max(1, CELLS // classes)
    for first in range(0, len(rows), height):
        runs = Runs.of(rows[first : first + height], sigma=sigma, moves=teachers)
        share = total[first : first + height]
        closer, start, stop = _plan(runs, shape, teachers)
        for chosen, log_q_of in ((closer, runs.closer), (~closer, runs.apart)):
            for row, moves in _pairs(np.flatnonzero(chosen), start, stop, runs.others.shape[1]):
                heights = shape.local_sensitivity(log_q_of(row, moves))
                curve += np.bincount(moves, weights=share[row] * heights, minlength=teachers)
        late = stop < teachers
        settled = share[late] * shape.height
        curve += np.bincount(stop[late], weights=settled, minlength=teachers).cumsum()
    return curve


def _plan(runs: Runs, shape: Plateau, teachers: int) -> tuple[NDArray[np.bool_], Ints, Ints]:
    """Rows that q rises for, and distances [start, stop): 0 before them, the plateau after."""
    everyone = np.arange(runs.winner.size)
    start, stop = np.zeros((2, everyone.size), dtype=np.int64)
    log_q = runs.apart(everyone, start)

    # Lines 6–17: raise q until it passes q1 or the two leaders meet (n(1) − n(2) < 2d).
    closer = log_q < shape.log_q1
    rising = everyone[closer]
    stop[rising] = _first(
        lambda rows, moves: runs.closer(rows, moves) > shape.log_q1, rising, runs.gap // 2
    )

    # Lines 18–34: lower q until it falls below q0 or the losing votes run out. Until q is below
    # B_U(q0) both ends of LS̃ are on the flat λ/σ²; the slack leaves doubt to the pricing.
    falling = everyone[log_q > shape.log_q0]
    near = float(shape.above(shape.log_q0)) + 1e-9
    for found, end in ((start, near), (stop, shape.log_q0)):
        found[falling] = _first(partial(_below, runs, end), falling, runs.losing)
    return closer, np.minimum(start, teachers), np.minimum(stop, teachers)


def _below(runs: Runs, end: float, rows: Ints, moves: Ints) -> NDArray[np.bool_]:
    return np.asarray(runs.apart(rows, moves) <= end)


def _first(holds: Callable[[Ints, Ints], NDArray[np.bool_]], rows: Ints, last: Ints) -> Ints:
    """The first distance in 0 … last[row] at which `holds` does, last[row] + 1 if it never does.

    `holds` must stay true once it is (q is monotone in the distance, Proposition 19).
    """
    low = np.zeros(rows.size, dtype=np.int64)
    high = last[rows] + 1
    while (open_ := np.flatnonzero(low < high)).size:
        middle = (low[open_] + high[open_]) // 2
        found = holds(rows[open_], middle)
        high[open_] = np.where(found, middle, high[open_])
        low[open_] = np.where(found, low[open_], middle + 1)
    return low


def _pairs(rows: Ints, start: Ints, stop: Ints, width: int) -> Iterator[tuple[Ints, Ints]]:
    """(rows, distances) of every pair that is neither 0 nor settled, in bounded blocks."""
    ends = np.cumsum(stop[rows] - start[rows])
    pairs = int(ends[-1]) if rows.size else 0
    block = max(1, CELLS // (width + 2))
    for first in range(0, pairs, block):
        pair = np.arange(first, min(first + block, pairs))
        at = np.searchsorted(ends, pair, side="right")
        yield rows[at], np.asarray(stop[rows[at]] - (ends[at] - pair), dtype=np.int64)
