"""Algorithm 4 for all rows and distances: max LS̃ over the histograms within d moves of a row.

Nothing is walked vote by vote: where a row enters and leaves the interesting range of q is found
by bisection over the distance, q there in closed form, and only those (row, distance) pairs are
priced. Everywhere else the curve is 0 or the plateau.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pate_cli.arrays import Floats, Ints
from pate_cli.errors import ParameterError
from pate_cli.published.conditions import require_conditions
from pate_cli.published.moved_votes import Runs, runs_of
from pate_cli.published.neighbours import log_q_above
from pate_cli.published.plateau import Plateau, find_plateau, local_sensitivity_at
from pate_cli.published.votes_domain import (
    check_histograms,
    check_teachers,
    check_whole_votes,
)

__all__ = ["gnmax_local_sensitivity", "gnmax_local_sensitivity_per_query"]


_CELLS = 1 << 20  # numbers held at once, which bounds memory whatever the file


@dataclass(frozen=True)
class _Schedule:
    """Distances [start, stop) of each row have to be priced; 0 before, `after` from stop on."""

    closer: NDArray[np.bool_]
    start: Ints
    stop: Ints
    after: Floats


def gnmax_local_sensitivity(
    counts: ArrayLike,
    *,
    sigma: float,
    order: float,
    teachers: int,
    weights: ArrayLike | None = None,
    as_printed: bool = False,
    checked: bool = True,
) -> Floats:
    """Σ_queries weight · max{LS̃(n') : dist(n, n') ≤ d} for GNMax, at every distance d.

    Algorithm 4 with Theorem 20 (in the sum's use of it, Theorem 24). By default a row whose
    losing votes are all gone is put on the plateau from the next distance on, as the figures of
    the paper were computed; Algorithm 4, lines 19–22, keeps LS̃(q([n, 0, …, 0])) instead
    (`as_printed`), which is smaller. Both are β-smooth upper bounds.

    Args:
        counts: whole votes [queries, classes], each row at most `teachers`.
        sigma: standard deviation σ of GNMax's noise, in votes, from 0.1 to 1e9.
        order: Rényi order λ > 1.
        teachers: how many teachers vote; the curve has as many distances, 0 … teachers − 1.
        weights: factor at least 0 of each query, [queries]; 1 when None.
        as_printed: follow Algorithm 4 to the letter when the losing votes run out.
        checked: refuse when C5 or C6 fails. Off, the result is what the algorithm computes and
            need not bound anything.

    Returns:
        [teachers], nats, non-decreasing under C5 and C6. Secret: it depends on the votes.

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
    rows, where, shape = _distinct(histograms, sigma, order, teachers, checked=checked)
    total = np.bincount(where, weights=factor, minlength=len(rows))
    curve = np.zeros(teachers)
    for runs, first in _chunks(rows, sigma, teachers):
        share = total[first : first + len(runs)]
        plan = _plan(runs, shape, teachers, as_printed=as_printed)
        for row, moves, height in _priced(runs, plan, shape):
            curve += np.bincount(moves, weights=share[row] * height, minlength=teachers)
        late = plan.stop < teachers
        settled = share[late] * plan.after[late]
        curve += np.bincount(plan.stop[late], weights=settled, minlength=teachers).cumsum()
    return curve


def gnmax_local_sensitivity_per_query(
    counts: ArrayLike,
    *,
    sigma: float,
    order: float,
    teachers: int,
    as_printed: bool = False,
    checked: bool = True,
) -> Floats:
    """The same curve for every query, [queries, teachers]; arguments and errors as above."""
    teachers = check_teachers(teachers)
    histograms = check_histograms(counts)
    rows, where, shape = _distinct(histograms, sigma, order, teachers, checked=checked)
    curves = np.zeros((len(rows), teachers))
    distance = np.arange(teachers)
    for runs, first in _chunks(rows, sigma, teachers):
        plan = _plan(runs, shape, teachers, as_printed=as_printed)
        block = curves[first : first + len(runs)]
        for row, moves, height in _priced(runs, plan, shape):
            block[row, moves] = height
        block += np.where(distance >= plan.stop[:, np.newaxis], plan.after[:, np.newaxis], 0.0)
    return curves[where]


def _distinct(
    histograms: Floats, sigma: float, order: float, teachers: int, *, checked: bool
) -> tuple[Ints, Ints, Plateau]:
    """Distinct sorted rows, which of them each query is, and the shape of this (σ, m, λ)."""
    classes = histograms.shape[1]
    if checked:
        require_conditions(sigma=sigma, classes=classes, orders=order)
    shape = find_plateau(sigma=sigma, classes=classes, order=order)
    ordered = np.sort(check_whole_votes(histograms, teachers=teachers), axis=1)
    rows, where = np.unique(ordered, axis=0, return_inverse=True)
    return rows, where.reshape(-1), shape


def _chunks(rows: Ints, sigma: float, teachers: int) -> Iterator[tuple[Runs, int]]:
    """Runs of bounded blocks of rows, with the number of the first."""
    height = max(1, _CELLS // rows.shape[1])
    for first in range(0, len(rows), height):
        yield runs_of(rows[first : first + height], sigma=sigma, moves=teachers), first


def _plan(runs: Runs, shape: Plateau, teachers: int, *, as_printed: bool) -> _Schedule:
    """Which side of the plateau each row is on and when it gets there."""
    everyone = np.arange(len(runs))
    still = np.zeros(len(runs), dtype=np.int64)
    log_q = runs.apart(everyone, still)
    closer = log_q < shape.log_q1
    apart = log_q > shape.log_q0
    start, stop = still.copy(), still.copy()
    after = np.full(len(runs), shape.height)

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
    if as_printed:
        spent = falling[stop[falling] > losing[falling]]
        unanimous = runs.apart(spent, losing[spent])
        after[spent] = local_sensitivity_at(unanimous, shape)
    return _Schedule(closer, np.minimum(start, teachers), np.minimum(stop, teachers), after)


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
        block = max(1, _CELLS // (runs.others.shape[1] + 2))
        for first in range(0, pairs, block):
            pair = np.arange(first, min(first + block, pairs))
            at = np.searchsorted(ends, pair, side="right")
            row = rows[at]
            moves = plan.stop[row] - (ends[at] - pair)
            yield row, moves, local_sensitivity_at(log_q_of(row, moves), shape)
