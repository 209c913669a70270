"""A sharper cost of one noisy argmax: condition on the classes that no vote touched.

When a vote moves from class a to class b, the largest noisy count C among the *other* classes has
the same law on both sides. Given C (and whose it is), the output is one of three: a, b, or the
place of C. With s = 1/σ, and h(x, y) + 1 the larger of the two directed Rényi moments between the
argmaxes of (x + N, y + N', 0) and (x − s + N, y + s + N', 0), data processing gives

  e^{(λ−1)D} − 1 ≤ E_C h((n_a − C)/σ, (n_b − C)/σ),
  F'(n) = log(1 + max over a ≠ b of that)/(λ−1),

within 5% of the exact worst neighbour where the two-tail bound is 45 to 60% above it. A vote that
is only added or withdrawn touches one class b; given the best C of all the others the output is a
coin, Φ((n_b − C)/σ) against Φ((n_b ± 1 − C)/σ), and its E_C competes in the maximum.

**Over a ball.** F' is no function of a score with a Lipschitz constant, so neighbours are compared
on a lattice of K cells a vote. With j = ⌈KC⌉, the outcome's place is z = (K n_a − j, K n_b − j).
One vote takes at most one vote from one of {a, b, the others} and gives at most one to one of them,
whatever the noise, so it moves z by K steps from

  Hex = {x − y: x, y ∈ {0, (1, 0), (0, 1), (−1, −1)}},  13 points.

t_0(z) bounds h over the cell (all C with ⌈KC⌉ = j), and t_d is its maximum over dK steps. Then

  F'_d(n) = log(1 + max over a ≠ b of Σ_j Pr[⌈KC⌉ = j] t_d(K n_a − j, K n_b − j))/(λ−1)

has F'_0 ≥ F', and F'_d(n') ≤ F'_{d+1}(n) for every pair of neighbours. Proofs, and how t_0 is
bounded within a cell: THEORY.md, section 3.8.

Only k = 1: a record that trained several teachers may touch more than two classes. For two classes
nothing is left to condition on; `two_class_states` is exact there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr, ndtri_exp

from pate_cli.arrays import Counts, Floats, Ints
from pate_cli.checks import check_ensemble, check_nonnegative, check_order, check_positive
from pate_cli.errors import ParameterError

__all__ = ["conditional_rdp", "conditional_seconds"]


_LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(6)
# Cells are at most 1/16 σ wide: t_0 exceeds h by half a cell on average, and by far less than 1%
# for what h does within a cell.
_CELLS_PER_SIGMA = 16.0
# Noise beyond this probability (times the largest moment there is) is charged as if it always came.
_NEGLECTED = 1e-13
# Past this exponent a moment does not fit into float64 with room to spare, and the cap stands.
_MAX_EXPONENT = 500.0
# Six units beyond the last node only e^{−18} and less of an integral are left, e^{−40} at nine.
_TAIL = 9.0
# Rounding, and the quadrature of the three outcomes (below 1e-12 in every log probability).
_LOG_ERROR = 1e-11
_ROUNDING = 1e-12
# The step of the trapezoid rule over C at distance 0, in units of σ.
_STEP = 0.1
_QUADRATURE = 1e-9
_FAR = 50.0
_MOST_BYTES = 3 * 2**30


@dataclass(frozen=True)
class _Lattice:
    """Where counts and the best of the others can be, in cells; all of it public.

    Attributes:
        cells: K, cells per vote.
        unit: one cell in units of σ, 1/(Kσ).
        teachers: τ.
        low, high: j = ⌈KC⌉ is clipped to this range, [−zKσ, Kτ + zKσ].
        neglected: bound on Pr[j was clipped]·(largest moment).
    """

    cells: int
    unit: float
    teachers: int
    low: int
    high: int
    neglected: float

    @classmethod
    def of(cls, *, teachers: int, classes: int, sigma: float, log_top: float) -> _Lattice:
        """The lattice on which whatever is cut off has probability·e^{log_top} ≤ 1e-13."""
        cells = max(1, math.ceil(_CELLS_PER_SIGMA / sigma))
        log_tail = math.log(_NEGLECTED) - math.log(classes) - max(log_top, 0.0)
        reach = -float(ndtri_exp(log_tail)) * cells * sigma
        return cls(
            cells=cells,
            unit=1.0 / (cells * sigma),
            teachers=teachers,
            low=math.floor(-reach),
            high=math.ceil(cells * teachers + reach),
            neglected=_NEGLECTED,
        )

    @property
    def gap(self) -> int:
        """Kτ: gaps p − q between two classes are −Kτ, …, Kτ."""
        return self.cells * self.teachers

    @property
    def laws(self) -> int:
        """How many values j has."""
        return self.high - self.low + 1

    @property
    def places(self) -> int:
        """How many values p = K n_a − j has; the first is −high."""
        return self.gap + self.laws

    def bytes(self, *, rows: int, distances: int) -> int:
        """Working memory, roughly."""
        table = (2 * self.gap + 1 + 2 * self.cells) * self.places * 8
        return table * (distances + 24) + rows * self.laws * 16


def _log_outcomes(lattice: _Lattice) -> Floats:
    """log probabilities of a, b and the others, [3, gaps, places], for all places and their moves.

    Gaps g = p − q from −Kτ − 2K to Kτ, places p from −high − K to Kτ − low + 1. With t = x + u,

      Pr[a wins] = ∫_{−x}^∞ φ(u) Φ(u + x − y) du,   Pr[b wins] = ∫_{−x}^∞ Φ(u) φ(u + x − y) du:

    for a fixed gap both are running sums over cells of u, by Gauss–Legendre in each cell. Positive
    terms in logs, so every probability has its digits, however small.
    """
    cells, unit = lattice.cells, lattice.unit
    gaps = np.arange(-lattice.gap - 2 * cells, lattice.gap + 1)
    beyond = math.ceil(_TAIL / unit)
    places = np.arange(-lattice.high - cells - beyond, lattice.gap - lattice.low + 2)
    inside = (_NODES + 1.0) / 2.0
    log_weights = np.log(_WEIGHTS * unit / 2.0)

    def log_density(t: Floats) -> Floats:
        return -0.5 * t * t - _LOG_ROOT_2PI

    u = (inside[:, None] - places) * unit
    # u + x − y at the same nodes depends on g − p alone.
    steps = np.arange(gaps[0] - places[-1], gaps[-1] - places[0] + 1)
    v = (inside[:, None] + steps) * unit
    # Row g reads steps g − p, which run downwards along p.
    windows = np.lib.stride_tricks.sliding_window_view(v[:, ::-1], places.size, axis=1)
    windows = windows[:, ::-1]

    def running(first: Floats, second: Floats) -> Floats:
        shifted = np.lib.stride_tricks.sliding_window_view(second[:, ::-1], places.size, axis=1)
        shifted = shifted[:, ::-1]
        reference = first[0] + shifted[0]
        total = np.zeros_like(reference)
        for node in range(inside.size):
            term = first[node] + shifted[node]
            total += np.exp(term - reference + log_weights[node])
        mass = reference + np.log(total)
        np.logaddexp.accumulate(mass, axis=1, out=mass)
        return mass[:, beyond:]

    wins_a = running(log_density(u), log_ndtr(v))
    wins_b = running(log_ndtr(u), log_density(v))
    places = places[beyond:]
    neither = log_ndtr(-places * unit) + log_ndtr((gaps[:, None] - places) * unit)
    return np.stack([wins_a, wins_b, neither])


def _excess(log_q: Floats, gain: Floats, order: float) -> tuple[Floats, Floats]:
    """q ψ(r) and q·max(1, e^{λr}) for r = gain, ψ(r) = e^{λr} − 1 − λ(e^r − 1)."""
    q = np.exp(log_q)
    with np.errstate(over="ignore", invalid="ignore"):
        grown = np.expm1(order * gain)
        excess = q * (grown - order * np.expm1(gain))
        heavy = q * (1.0 + np.maximum(grown, 0.0))
    far = order * np.abs(gain) > _FAR
    if far.any():
        log_far, r = log_q[far], gain[far]
        power = np.exp(log_far + order * r)
        excess[far] = power - order * np.exp(log_far + r) + (order - 1.0) * q[far]
        heavy[far] = np.maximum(q[far], power)
    return np.maximum(excess, 0.0), heavy


def _cell_bound(
    log_p: Floats, log_q: Floats, *, order: float, unit: float, shift: float
) -> tuple[Floats, Floats]:
    """Σ q ψ(log p/q) at places, and its bound over the cells from each place to the next.

    Args:
        log_p, log_q: [outcomes, …, places + 1], consecutive places one cell apart.
        order: λ.
        unit: one cell in units of σ.
        shift: 1/σ.

    Returns:
        (at places [..., places], over cells [..., places]); THEORY.md, section 3.8.
    """
    bend = math.sqrt(24.0) * shift * unit**2 / 8.0 + _LOG_ERROR
    at_places = np.zeros(log_p.shape[1:])
    ends = np.zeros_like(at_places)
    curvature = np.zeros_like(at_places[..., 1:])
    for p, q in zip(log_p, log_q, strict=True):
        gain = p - q
        at_places += _excess(q, gain, order)[0]
        wider = np.where(gain > -bend, np.abs(gain) + bend, gain - bend)
        excess, heavy = _excess(q, wider, order)
        ends += excess
        turn = (np.diff(gain, axis=-1) / 2.0) ** 2
        curvature += turn * np.maximum(heavy[..., :-1], heavy[..., 1:])
    curvature *= order * (order - 1.0) / 2.0
    over = np.maximum(ends[..., :-1], ends[..., 1:]) + curvature
    return at_places[..., :-1], over * math.exp(unit**2 / 4.0 + _LOG_ERROR)


@dataclass(frozen=True, eq=False)
class _Moments:
    """Excess moments at places (one per direction) and bounds over cells, last axis places."""

    places: list[Floats]
    cells: Floats


def _both_directions(
    here: Floats, moved: Floats, *, order: float, unit: float, shift: float
) -> tuple[list[Floats], Floats]:
    forward = _cell_bound(here, moved, order=order, unit=unit, shift=shift)
    reverse = _cell_bound(moved, here, order=order, unit=unit, shift=shift)
    return [forward[0], reverse[0]], np.maximum(forward[1], reverse[1])


def _moved_vote(lattice: _Lattice, *, order: float, shift: float) -> _Moments:
    """h at every (gap, place), and t_0."""
    log_outcomes, cells = _log_outcomes(lattice), lattice.cells
    here = log_outcomes[:, 2 * cells :, cells:]
    moved = log_outcomes[:, : -2 * cells, :-cells]
    return _Moments(*_both_directions(here, moved, order=order, unit=lattice.unit, shift=shift))


def _lone_vote(lattice: _Lattice, *, order: float, shift: float) -> _Moments:
    """The same for an added or withdrawn vote: coins Φ(x) against Φ(x ± 1/σ), [places]."""
    cells = lattice.cells
    places = np.arange(-lattice.high - cells, lattice.gap - lattice.low + 2 + cells)
    log_coin = np.stack([log_ndtr(places * lattice.unit), log_ndtr(-places * lattice.unit)])
    here = log_coin[:, cells:-cells]
    every, over = [], []
    for moved in (log_coin[:, : -2 * cells], log_coin[:, 2 * cells :]):
        at, cell = _both_directions(here, moved, order=order, unit=lattice.unit, shift=shift)
        every += at
        over.append(cell)
    return _Moments(every, np.maximum(*over))


def _spread(bound: Floats) -> Floats:
    """The maximum over one step of Hex from each (gap, place), within the table."""
    # j, a or b gives a cell away: (p, q) moves by (1, 1), (−1, 0) or (0, −1).
    given = bound.copy()
    np.maximum(given[:, :-1], bound[:, 1:], out=given[:, :-1])
    np.maximum(given[1:, 1:], bound[:-1, :-1], out=given[1:, 1:])
    np.maximum(given[:-1], bound[1:], out=given[:-1])
    # And j, a or b receives one.
    taken = given.copy()
    np.maximum(taken[:, 1:], given[:, :-1], out=taken[:, 1:])
    np.maximum(taken[:-1, :-1], given[1:, 1:], out=taken[:-1, :-1])
    np.maximum(taken[1:], given[:-1], out=taken[1:])
    return taken


def _spread_line(bound: Floats) -> Floats:
    """The maximum over two steps either way along the places: what one vote can do to n_b − C."""
    for _ in range(2):
        wider = bound.copy()
        np.maximum(wider[1:], bound[:-1], out=wider[1:])
        np.maximum(wider[:-1], bound[1:], out=wider[:-1])
        bound = wider
    return bound


def _at_distances(
    start: Floats, lattice: _Lattice, distances: Ints, *, line: bool
) -> Iterator[Floats]:
    """t_d for ascending distances."""
    reached = 0
    for distance in distances.tolist():
        for _ in range((distance - reached) * lattice.cells):
            start = _spread_line(start) if line else _spread(start)
        reached = distance
        yield start


@dataclass(frozen=True, eq=False)
class _Others:
    """log Pr[C ≤ j] and the hazard of C for all classes of a row, and of one class by its count.

    j descends from `high` along the last axis, so that it runs along places p = K n − j.
    """

    log_cdf: Floats
    hazard: Floats
    log_cdf_of: Floats
    hazard_of: Floats

    @classmethod
    def of(cls, counts: Counts, lattice: _Lattice) -> _Others:
        level = np.arange(lattice.teachers + 1) * lattice.cells
        j = np.arange(lattice.high, lattice.low - 2, -1)
        x = (j - level[:, None]) * lattice.unit
        one = log_ndtr(x)
        hazard = np.exp(-0.5 * x * x - _LOG_ROOT_2PI - one)
        total = np.zeros((len(counts), j.size))
        rate = np.zeros_like(total)
        for column in counts.T:
            total += one[column]
            rate += hazard[column]
        return cls(total, rate, one, hazard)

    def without(self, rows: Ints, touched: Ints) -> tuple[Floats, Floats]:
        """Pr[⌈KC⌉ = j] and C's density per σ at j, [cases, j]; touched [cases, classes left out]."""
        log_cdf, rate = self.log_cdf[rows], self.hazard[rows]
        for column in touched.T:
            log_cdf -= self.log_cdf_of[column]
            rate -= self.hazard_of[column]
        np.minimum(log_cdf, 0.0, out=log_cdf)
        at, below = log_cdf[:, :-1].copy(), log_cdf[:, 1:].copy()
        density = np.exp(at) * np.maximum(rate[:, :-1], 0.0)
        # Everything above `high` is put on it, and everything below `low` on that.
        at[:, 0] = 0.0
        below[:, -1] = -np.inf
        mass = np.exp(at) * -np.expm1(np.minimum(below - at, 0.0))
        return mass, density


def _pairs(counts: Counts) -> tuple[Ints, Ints]:
    """(rows [pairs], their two counts, the larger first [pairs, 2]), each pair of values once."""
    rows, larger, smaller = [], [], []
    # Sorted descending; equal counts give equal pairs, so a run is represented by its first two.
    classes = counts.shape[1]
    starts = np.ones(counts.shape, dtype=bool)
    starts[:, 1:] = counts[:, 1:] != counts[:, :-1]
    for first in range(classes - 1):
        one = starts[:, first]
        for second in range(first + 1, classes):
            if second == first + 1:
                chosen = np.flatnonzero(one)
            else:
                chosen = np.flatnonzero(one & starts[:, second])
            rows.append(chosen)
            larger.append(counts[chosen, first])
            smaller.append(counts[chosen, second])
    return np.concatenate(rows), np.stack([np.concatenate(larger), np.concatenate(smaller)], axis=1)


def _along(weights: Floats, offsets: Ints, lattice: _Lattice) -> Floats:
    """Weights over j put where p = K n − j is, [cases, places]."""
    padded = np.zeros((len(weights), lattice.places))
    columns = offsets[:, None] + np.arange(lattice.laws)
    np.put_along_axis(padded, columns, weights, axis=1)
    return padded


def conditional_rdp(
    counts: Counts,
    *,
    teachers: int,
    sigma: float,
    order: float,
    distances: Ints,
    cap: float,
) -> Floats:
    """F'_d: the cost of one noisy argmax, at most so much within d votes of each histogram."""
    counts = -np.sort(-np.asarray(counts, dtype=np.int64), axis=1)
    classes = counts.shape[1]
    sigma, order = check_positive("sigma", sigma), check_order(order)
    c = order - 1.0
    rows = len(counts)
    log_top = c * order / sigma**2
    if log_top > _MAX_EXPONENT:
        return np.full((distances.size, rows), cap)
    lattice = _Lattice.of(teachers=teachers, classes=classes, sigma=sigma, log_top=log_top)
    shift = 1.0 / sigma
    moved = _moved_vote(lattice, order=order, shift=shift)
    lone = _lone_vote(lattice, order=order, shift=shift)
    others = _Others.of(counts, lattice)
    stack = np.stack(list(_at_distances(moved.cells, lattice, distances, line=False)), axis=1)
    lines = np.stack(list(_at_distances(lone.cells, lattice, distances, line=True)))
    worst = np.zeros((rows, distances.size))
    exact = np.zeros(rows)
    stride = max(1, math.floor(_STEP / lattice.unit))
    cells = lattice.cells

    pair_rows, pair_counts = _pairs(counts)
    gaps = pair_counts[:, 0] - pair_counts[:, 1]
    for gap in np.unique(gaps).tolist():
        chosen = np.flatnonzero(gaps == gap)
        at, both = pair_rows[chosen], pair_counts[chosen]
        mass, density = others.without(at, both)
        thin = np.zeros_like(density)
        thin[:, ::stride] = density[:, ::stride] * (stride * lattice.unit)
        for side, sign in ((0, 1), (1, -1)):
            row = lattice.gap + sign * gap * cells
            weights = _along(mass, both[:, side] * cells, lattice)
            np.maximum.at(worst, at, weights @ stack[row].T)
            weights = _along(thin, both[:, side] * cells, lattice)
            for direction in moved.places:
                np.maximum.at(exact, at, weights @ direction[row])
    starts = np.ones(counts.shape, dtype=bool)
    starts[:, 1:] = counts[:, 1:] != counts[:, :-1]
    for column in range(classes):
        at = np.flatnonzero(starts[:, column])
        one = counts[at, column][:, None]
        mass, density = others.without(at, one)
        weights = _along(mass, one[:, 0] * cells, lattice)
        np.maximum.at(worst, at, weights @ lines.T)
        thin = np.zeros_like(density)
        thin[:, ::stride] = density[:, ::stride] * (stride * lattice.unit)
        weights = _along(thin, one[:, 0] * cells, lattice)
        for direction in lone.places:
            np.maximum.at(exact, at, weights @ direction)
    worst = worst.T
    if distances[0] == 0:
        worst[0] = np.minimum(worst[0], exact * (1.0 + _QUADRATURE))
    votes = (distances + 1.0)[:, None]
    bound = np.log1p(worst * (1.0 + _ROUNDING * votes) + lattice.neglected * votes) / c
    return np.minimum(np.maximum.accumulate(bound, axis=0), cap)


def conditional_seconds() -> float:
    return 0.0
