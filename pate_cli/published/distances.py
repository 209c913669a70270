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

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pate_cli.core.arrays import Floats, Ints
from pate_cli.core.errors import ParameterError
from pate_cli.core.special import log_ndtr
from pate_cli.published.checks import check_histograms, check_teachers, check_whole_votes
from pate_cli.published.conditions import require_conditions
from pate_cli.published.plateau import Plateau, find_plateau, local_sensitivity_at, log_q_above

CELLS = 1 << 20  # numbers held at once, which bounds memory for files of any size

# log Φ never falls below this, so that differences of logarithms stay finite.
_FLOOR = -1e300


@dataclass(frozen=True)
class Runs:
    """Sorted histograms in runs. `sizes` is 0 in the padding at the end of a row.

    winner [rows]: highest count. others [rows, runs]: distinct counts of the other classes,
    descending. sizes [rows, runs]: how many classes have that count. spent [rows, runs]: votes it
    takes to shave all runs up to this one down to the next. log_tail [gaps]: log Φ(−g/(√2 σ)) at
    every whole gap g.
    """

    winner: Ints
    others: Ints
    sizes: Ints
    spent: Ints
    log_tail: Floats
    cap: float

    def __len__(self) -> int:
        return self.winner.size

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
        sizes = self.sizes[rows].astype(np.float64)
        sizes[:, 0] -= 1.0
        runner_up = self.gap[rows] - 2 * moves
        return self._log_q(
            np.concatenate([runner_up[:, np.newaxis], gaps], axis=1),
            np.concatenate([np.ones((rows.size, 1)), sizes], axis=1),
        )

    def apart(self, rows: Ints, moves: Ints) -> Floats:
        """log q of n**: the winner gains `moves` votes, each taken from the current runner-up.

        The smallest q within that distance (Proposition 19.2), while moves ≤ Σ_{i≥2} n(i). The
        shaved classes end level, some of them one vote lower than the rest.
        """
        others, sizes, spent = self.others[rows], self.sizes[rows], self.spent[rows]
        moved = moves[:, np.newaxis]
        # The runs that are shaved: all before the first whose cost exceeds the moves, and it.
        last = np.minimum((spent <= moved).sum(axis=1), self._last_run(rows))
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
            np.concatenate([np.stack([top - level, top - level + 1], axis=1), gaps], axis=1),
            np.concatenate([np.stack([count - lower, lower], axis=1), weights], axis=1),
        )

    def _last_run(self, rows: Ints) -> Ints:
        return np.asarray((self.sizes[rows] > 0).sum(axis=1) - 1)

    def _log_q(self, gaps: Ints, weights: Ints | Floats) -> Floats:
        """Proposition 7 on runs: log Σ weight·Φ(−gap/(√2 σ)), capped at log(1 − 1/m)."""
        terms = self.log_tail[np.minimum(gaps, self.log_tail.size - 1)]
        terms[weights == 0] = -np.inf
        largest = terms.max(axis=1)
        terms -= largest[:, np.newaxis]
        union = largest + np.log((weights * np.exp(terms)).sum(axis=1))
        return np.minimum(union, self.cap)


def runs_of(histograms: Ints, *, sigma: float, moves: int) -> Runs:
    """Runs of whole-vote histograms [rows, classes], with tails for up to `moves` moves."""
    ordered = -np.sort(-histograms, axis=1)
    winner, rest = ordered[:, 0], ordered[:, 1:]
    rows, classes = rest.shape
    starts = np.ones((rows, classes), dtype=bool)
    starts[:, 1:] = rest[:, 1:] != rest[:, :-1]
    run = np.cumsum(starts, axis=1) - 1
    longest = int(run[:, -1].max(initial=0)) + 1
    row = np.broadcast_to(np.arange(rows)[:, np.newaxis], rest.shape)
    sizes = np.zeros((rows, longest), dtype=np.int64)
    np.add.at(sizes, (row, run), 1)
    others = np.zeros((rows, longest), dtype=np.int64)
    others[row, run] = rest
    following = np.concatenate([others[:, 1:], np.zeros((rows, 1), dtype=np.int64)], axis=1)
    spent = np.cumsum(np.cumsum(sizes, axis=1) * (others - following), axis=1)
    gaps = int(winner.max(initial=0)) + moves + 2
    log_tail = np.maximum(log_ndtr(-np.arange(gaps) / (np.sqrt(2.0) * sigma)), _FLOOR)
    cap = float(np.log1p(-1.0 / (classes + 1)))
    return Runs(winner, others, sizes, spent, np.asarray(log_tail, dtype=np.float64), cap)


@dataclass(frozen=True)
class _Schedule:
    """Distances [start, stop) of each row have to be priced: 0 before, the plateau after."""

    closer: NDArray[np.bool_]
    start: Ints
    stop: Ints


def gnmax_local_sensitivity(
    counts: ArrayLike,
    *,
    sigma: float,
    order: float,
    teachers: int,
    weights: ArrayLike | None = None,
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
        weights: factor at least 0 of each query, [queries]; 1 when None.

    Returns:
        [teachers], nats, non-decreasing. Secret: it depends on the votes.

    Raises:
        ParameterError: an argument outside its range.
        ValidityError: C5 or C6 fails at this (σ, m, λ).
    """
    teachers = check_teachers(teachers)
    histograms = check_histograms(counts)
    factor = np.ones(len(histograms)) if weights is None else np.asarray(weights, np.float64)
    finite = ((factor >= 0.0) & (factor < np.inf)).all()
    if factor.shape != (len(histograms),) or not finite:
        raise ParameterError("weights must be one a query, finite and at least 0")
    rows, where, shape = _distinct(histograms, sigma, order, teachers)
    total = np.bincount(where, weights=factor, minlength=len(rows))
    curve = np.zeros(teachers)
    for runs, first in _chunks(rows, sigma, teachers):
        share = total[first : first + len(runs)]
        plan = _plan(runs, shape, teachers)
        for row, moves, height in _priced(runs, plan, shape):
            curve += np.bincount(moves, weights=share[row] * height, minlength=teachers)
        late = plan.stop < teachers
        settled = share[late] * shape.height
        curve += np.bincount(plan.stop[late], weights=settled, minlength=teachers).cumsum()
    return curve


def _distinct(
    histograms: Floats, sigma: float, order: float, teachers: int
) -> tuple[Ints, Ints, Plateau]:
    """Distinct sorted rows, which of them each query is, and the shape of this (σ, m, λ)."""
    classes = histograms.shape[1]
    require_conditions(sigma=sigma, classes=classes, orders=order)
    shape = find_plateau(sigma=sigma, classes=classes, order=order)
    ordered = np.sort(check_whole_votes(histograms, teachers=teachers), axis=1)
    rows, where = np.unique(ordered, axis=0, return_inverse=True)
    return rows, where.reshape(-1), shape


def _chunks(rows: Ints, sigma: float, teachers: int) -> Iterator[tuple[Runs, int]]:
    """Runs of bounded blocks of rows, with the number of the first."""
    height = max(1, CELLS // rows.shape[1])
    for first in range(0, len(rows), height):
        yield runs_of(rows[first : first + height], sigma=sigma, moves=teachers), first


def _plan(runs: Runs, shape: Plateau, teachers: int) -> _Schedule:
    """Which side of the plateau each row is on and when it gets there."""
    everyone = np.arange(len(runs))
    still = np.zeros(len(runs), dtype=np.int64)
    log_q = runs.apart(everyone, still)
    closer = log_q < shape.log_q1
    apart = log_q > shape.log_q0
    start, stop = still.copy(), still.copy()

    # Lines 6–17: raise q until it passes q1 or the two leaders meet (n(1) − n(2) < 2d).
    rising = everyone[closer]
    stop[rising] = _first(
        lambda rows, moves: runs.closer(rows, moves) > shape.log_q1, rising, runs.gap // 2
    )

    # Lines 18–34: lower q until it falls below q0 or the losing votes run out. Until q is below
    # B_U(q0) both ends of LS̃ are on the flat λ/σ²; the slack leaves doubt to the pricing.
    falling = everyone[apart]
    near = float(log_q_above(np.array(shape.log_q0), sigma=shape.sigma, classes=shape.classes))
    losing = runs.losing
    start[falling] = _first(
        lambda rows, moves: runs.apart(rows, moves) <= near + 1e-9, falling, losing
    )
    stop[falling] = _first(
        lambda rows, moves: runs.apart(rows, moves) <= shape.log_q0, falling, losing
    )
    return _Schedule(closer, np.minimum(start, teachers), np.minimum(stop, teachers))


def _first(holds: Callable[[Ints, Ints], NDArray[np.bool_]], rows: Ints, last: Ints) -> Ints:
    """The first distance in 0 … last[row] at which `holds` does, last[row] + 1 if it never does.

    `holds` must stay true once it is (q is monotone in the distance, Proposition 19).
    """
    low = np.zeros(rows.size, dtype=np.int64)
    high = last[rows] + 1
    while True:
        open_ = np.flatnonzero(low < high)
        if open_.size == 0:
            return low
        middle = (low[open_] + high[open_]) // 2
        found = holds(rows[open_], middle)
        high[open_] = np.where(found, middle, high[open_])
        low[open_] = np.where(found, low[open_], middle + 1)


def _priced(runs: Runs, plan: _Schedule, shape: Plateau) -> Iterator[tuple[Ints, Ints, Floats]]:
    """(rows, distances, LS̃) of every pair that is neither 0 nor settled, in bounded blocks."""
    for chosen, log_q_of in ((plan.closer, runs.closer), (~plan.closer, runs.apart)):
        rows = np.flatnonzero(chosen & (plan.start < plan.stop))
        ends = np.cumsum(plan.stop[rows] - plan.start[rows])
        pairs = int(ends[-1]) if rows.size else 0
        block = max(1, CELLS // (runs.others.shape[1] + 2))
        for first in range(0, pairs, block):
            pair = np.arange(first, min(first + block, pairs))
            at = np.searchsorted(ends, pair, side="right")
            row = rows[at]
            moves = plan.stop[row] - (ends[at] - pair)
            yield row, moves, local_sensitivity_at(log_q_of(row, moves), shape)
