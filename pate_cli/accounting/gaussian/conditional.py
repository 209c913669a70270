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
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtri_exp

from pate_cli.arrays import Counts, Floats, Ints
from pate_cli.checks import (
    check_counts,
    check_distances,
    check_ensemble,
    check_nonnegative,
    check_order,
    check_positive,
)
from pate_cli.errors import ParameterError

__all__ = ["check_conditional_size", "conditional_rdp", "conditional_seconds"]


_LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)
# Cells are at most σ/10 wide: t_0 then exceeds the supremum over its cell by one or two percent (a
# tenth of one at σ/40). Finer cells cost K³ and gain less than 1% of F'_d.
_CELLS_PER_SIGMA = 10.0
# What lies outside the lattice has at most this expectation, and is charged.
_NEGLECTED = 1e-13
# Past this exponent of the largest moment there is, float64 has no room left and the cap stands.
_MAX_EXPONENT = 500.0
# An integrand that falls like φ beyond the lattice has e^{−40} of its integral left nine units on.
_TAIL = 9.0
# Errors of log probabilities (quadrature and rounding) are below this.
_LOG_ERROR = 1e-11
# One vote more, this much of the moment more: rounding cannot break F'_d(n') ≤ F'_{d+1}(n).
_ROUNDING = 1e-11
# The trapezoid rule over C at distance 0: its step in units of σ for up to 50 classes, and what
# it may be off by.
_STEP, _CLASSES_AT_STEP = 0.1, 50
_QUADRATURE = 1e-9
_FAR = 50.0
# The classes past this rank, and past a third of all, are summed once a row: they are hardly ever
# the touched ones.
_HEAD = 12
# Gaps, and histograms, looked at in one go; bounds memory, not results.
_GAPS_AT_ONCE, _ROWS_AT_ONCE = 64, 2048
_MOST_BYTES = 4 * 2**30
# What is held of a pair of classes while it is listed, twice.
_NUMBERS_A_CASE = 12
# Seconds per place of the tables, per place and step of Hex, and per value of j, row and class, on
# one core; steps take twice as long on tables that no cache holds.
_PLACE_SECONDS, _STEP_SECONDS, _LAW_SECONDS = 7e-7, 1.4e-8, 6e-8
_CACHED = 2_000_000


@dataclass(frozen=True)
class _Lattice:
    """Where counts and the best of the others can be, in cells; all of it public.

    Attributes:
        cells: K, cells per vote.
        unit: one cell in units of σ, 1/(Kσ).
        teachers: τ.
        reach: j = ⌈KC⌉ is clipped to −reach, …, Kτ + reach.
        stride: every how many cells the trapezoid rule has a node; 0 if cells are too wide for it.
    """

    cells: int
    unit: float
    teachers: int
    reach: int
    stride: int

    @classmethod
    def of(cls, *, teachers: int, classes: int, sigma: float, order: float) -> _Lattice:
        """So wide that Pr[j is clipped]·(largest moment) ≤ 1e-13."""
        cells = max(1, math.ceil(_CELLS_PER_SIGMA / sigma))
        unit = 1.0 / (cells * sigma)
        # No moment, of a moved vote or of a lone one, is above e^{λ(λ−1)/σ²} (Proposition 8).
        log_tail = math.log(_NEGLECTED / classes) - order * (order - 1.0) / sigma**2
        step = _STEP * min(1.0, (_CLASSES_AT_STEP / classes) ** 0.25)
        return cls(
            cells=cells,
            unit=unit,
            teachers=teachers,
            reach=math.ceil(-float(ndtri_exp(log_tail)) / unit),
            stride=math.floor(step / unit + 1e-9),
        )

    @property
    def gap(self) -> int:
        """Kτ: gaps p − q between two classes are −Kτ, …, Kτ."""
        return self.cells * self.teachers

    @property
    def high(self) -> int:
        """The largest j; the smallest place p = K n_a − j is −high."""
        return self.gap + self.reach

    @property
    def laws(self) -> int:
        """How many values j has."""
        return self.gap + 2 * self.reach + 1

    @property
    def places(self) -> int:
        """How many values p has."""
        return 2 * self.high + 1

    def j(self) -> Ints:
        """All j, descending, so that they run along places."""
        return np.arange(self.high, -self.reach - 1, -1)


def _log_outcomes(lattice: _Lattice) -> Floats:
    """log probabilities of a, b and the others, [3, gaps, places], for all places and their moves.

    Gaps g = p − q from −Kτ − 2K to Kτ, places p from −high − K to high + 1. With t = x + u,

      Pr[a wins] = ∫_{−x}^∞ φ(u) Φ(u + x − y) du,   Pr[b wins] = ∫_{−x}^∞ Φ(u) φ(u + x − y) du:

    for a fixed gap both are running sums over cells of u, by Gauss–Legendre in each cell. Positive
    terms in logs, so every probability has its digits, however small.
    """
    cells, unit = lattice.cells, lattice.unit
    gaps = np.arange(-lattice.gap - 2 * cells, lattice.gap + 1)
    beyond = math.ceil(_TAIL / unit)
    places = np.arange(-lattice.high - cells - beyond, lattice.high + 2)
    inside = (_NODES[:, None] + 1.0) / 2.0
    log_weights = np.log(_WEIGHTS * unit / 2.0)
    # The cell that place p adds to the integrals of the place before it, from −p to 1 − p.
    u = (inside - places) * unit
    # u + x − y depends on g − p alone; reversed, so that windows of it run along p.
    v = (inside + np.arange(gaps[-1] - places[0], gaps[0] - places[-1] - 1, -1)) * unit
    result = np.empty((3, gaps.size, places.size - beyond))

    def running(first: Floats, second: Floats, out: Floats) -> None:
        windows = np.lib.stride_tricks.sliding_window_view(second, places.size, axis=1)[:, ::-1]
        for start in range(0, gaps.size, _GAPS_AT_ONCE):
            part = slice(start, start + _GAPS_AT_ONCE)
            log_terms = first[:, None] + windows[:, part]
            total = np.zeros(log_terms.shape[1:])
            for log_term, log_weight in zip(log_terms, log_weights, strict=True):
                total += np.exp(log_term - log_terms[0] + log_weight)
            mass = log_terms[0] + np.log(total)
            out[part] = np.logaddexp.accumulate(mass, axis=1)[:, beyond:]

    running(_log_density(u), log_ndtr(v), result[0])
    running(log_ndtr(u), _log_density(v), result[1])
    below = (gaps[:, None] - places[beyond:]) * unit
    result[2] = log_ndtr(-places[beyond:] * unit) + log_ndtr(below)
    return result


def _log_density(t: Floats) -> Floats:
    return np.asarray(-0.5 * t * t - _LOG_ROOT_2PI, dtype=np.float64)


def _excess(log_q: Floats, gain: Floats, order: float) -> tuple[Floats, Floats]:
    """q ψ(r) and q·max(1, e^{λr}) for r = gain, ψ(r) = e^{λr} − 1 − λ(e^r − 1)."""
    q = np.exp(log_q)
    with np.errstate(over="ignore", invalid="ignore"):
        grown = np.expm1(order * gain)
        excess = q * (grown - order * np.expm1(gain))
        heavy = q * (1.0 + np.maximum(grown, 0.0))
    far = order * np.abs(gain) > _FAR
    if far.any():
        # q may underflow where its product does not.
        log_far, r = log_q[far], gain[far]
        power = np.exp(log_far + order * r)
        excess[far] = power - order * np.exp(log_far + r) + (order - 1.0) * q[far]
        heavy[far] = np.maximum(q[far], power)
    return np.maximum(excess, 0.0), heavy


def _moments(
    log_p: Floats, log_q: Floats, *, order: float, unit: float, shift: float
) -> tuple[Floats, Floats]:
    """Σ q ψ(log p/q) at places, and a bound on it over the cell from each place to the next.

    Along a cell log q is concave with second derivative at least −2·unit², and r = log p/q bends
    by at most √24·shift·unit², so that straight lines between the ends, with r moved away from 0
    by `bend`, bound every term but for e^{unit²/4}. The sum of such terms bends down by at most
    λ(λ−1) Σ (slope of r)² q max(1, e^{λr}), an eighth of which is added to its larger end.
    Proof: THEORY.md, section 3.8.

    Args:
        log_p, log_q: [outcomes, …, places + 1], consecutive places one cell apart.
        order: λ.
        unit: one cell in units of σ.
        shift: one vote in units of σ.

    Returns:
        (at the places, over their cells), each [..., places].
    """
    bend = math.sqrt(24.0) * shift * unit**2 / 8.0 + _LOG_ERROR
    at_places = np.zeros(log_p.shape[1:])
    ends = np.zeros_like(at_places)
    turns = np.zeros_like(at_places[..., 1:])
    for p, q in zip(log_p, log_q, strict=True):
        gain = p - q
        at_places += _excess(q, gain, order)[0]
        excess, heavy = _excess(q, np.where(gain > -bend, np.abs(gain) + bend, gain - bend), order)
        ends += excess
        slope = np.abs(np.diff(gain, axis=-1)) + 2.0 * _LOG_ERROR
        turns += slope**2 * np.maximum(heavy[..., :-1], heavy[..., 1:])
    over = np.maximum(ends[..., :-1], ends[..., 1:]) + order * (order - 1.0) / 8.0 * turns
    return at_places[..., :-1], over * math.exp(unit**2 / 4.0 + _LOG_ERROR)


@dataclass(frozen=True, eq=False)
class _Table:
    """Excess moments h, one per case and direction, and t_0, with places on the last axis.

    Attributes:
        at_places: [cases, …, places].
        over_cells: [..., places].
    """

    at_places: Floats
    over_cells: Floats


def _moved_vote(lattice: _Lattice, *, order: float, shift: float) -> _Table:
    """A vote from a to b, [gaps, places]: h at (g, p), against (g − 2K, p − K)."""
    log_outcomes, cells = _log_outcomes(lattice), lattice.cells
    here = log_outcomes[:, 2 * cells :, cells:]
    moved = log_outcomes[:, : -2 * cells, :-cells]
    at_places = np.empty((2, 2 * lattice.gap + 1, lattice.places))
    over_cells = np.empty(at_places.shape[1:])
    for start in range(0, len(over_cells), _GAPS_AT_ONCE):
        part = slice(start, start + _GAPS_AT_ONCE)
        both = (here[:, part], moved[:, part])
        sides = [
            _moments(*pair, order=order, unit=lattice.unit, shift=shift)
            for pair in (both, both[::-1])
        ]
        at_places[:, part] = [side[0] for side in sides]
        over_cells[part] = np.maximum(sides[0][1], sides[1][1])
    return _Table(at_places, over_cells)


def _lone_vote(lattice: _Lattice, *, order: float, shift: float) -> _Table:
    """A vote added to a class or withdrawn, [places]: the coin Φ(x) against Φ(x ± 1/σ)."""
    cells = lattice.cells
    x = np.arange(-lattice.high - cells, lattice.high + 2 + cells) * lattice.unit
    log_coin = np.stack([log_ndtr(x), log_ndtr(-x)])
    here = log_coin[:, cells:-cells]
    sides = [
        _moments(*pair, order=order, unit=lattice.unit, shift=shift)
        for moved in (log_coin[:, : -2 * cells], log_coin[:, 2 * cells :])
        for pair in ((here, moved), (moved, here))
    ]
    return _Table(
        np.stack([side[0] for side in sides]), np.max([side[1] for side in sides], axis=0)
    )


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
    """The maximum over two steps either way along places: one vote moves n_b − C by two at most."""
    for _ in range(2):
        wider = bound.copy()
        np.maximum(wider[1:], bound[:-1], out=wider[1:])
        np.maximum(wider[:-1], bound[1:], out=wider[:-1])
        bound = wider
    return bound


def _at_distances(bound: Floats, distances: Ints, *, cells: int) -> Iterator[Floats]:
    """t_d for ascending distances."""
    reached = 0
    for distance in distances.tolist():
        for _ in range((distance - reached) * cells):
            bound = _spread(bound) if bound.ndim == 2 else _spread_line(bound)
        reached = distance
        yield bound


@dataclass(frozen=True, eq=False)
class _Balls:
    """The tables that weights over j are multiplied with.

    Attributes:
        gaps: the gaps (in votes) that are kept, ascending.
        moved: t_d, [gaps, distances, places].
        moved_exact: h per direction, [gaps, 2, places].
        lone: t_d of a lone vote, [distances, places].
        lone_exact: h of a lone vote, [4, places].
    """

    gaps: Ints
    moved: Floats
    moved_exact: Floats
    lone: Floats
    lone_exact: Floats

    @classmethod
    def of(
        cls, lattice: _Lattice, gaps: Ints, *, order: float, shift: float, distances: Ints
    ) -> _Balls:
        """For the given gaps between two classes, either sign."""
        moved = _moved_vote(lattice, order=order, shift=shift)
        lone = _lone_vote(lattice, order=order, shift=shift)
        both = np.union1d(gaps, -gaps)
        rows = lattice.gap + both * lattice.cells
        balls = np.empty((both.size, distances.size, lattice.places))
        for d, bound in enumerate(_at_distances(moved.over_cells, distances, cells=lattice.cells)):
            balls[:, d] = bound[rows]
        lines = np.stack(list(_at_distances(lone.over_cells, distances, cells=lattice.cells)))
        exact = moved.at_places[:, rows].swapaxes(0, 1)
        return cls(both, balls, exact, lines, lone.at_places)


@dataclass(frozen=True, eq=False)
class _Others:
    """The law of C, the largest noisy count of a row once the touched classes are left out.

    Sums of logs without the touched classes, never differences: far out, where a moment may be
    huge, a probability must keep its digits.

    Attributes:
        lattice: where j is.
        counts: histograms in descending order, [rows, classes].
        head: how many classes of each row are summed as they are needed.
        log_cdf: log Pr[n + σN ≤ j] by the count n, [τ + 1, laws + 1], j descending.
        hazard: density over distribution function of the same at every stride-th j, per σ.
        low_log_cdf, low_hazard: sums over the classes from rank `head` on, [rows, …].
    """

    lattice: _Lattice
    counts: Counts
    head: int
    log_cdf: Floats
    hazard: Floats
    low_log_cdf: Floats
    low_hazard: Floats

    @classmethod
    def of(cls, counts: Counts, lattice: _Lattice) -> _Others:
        """For histograms [rows, classes] in descending order."""
        j = np.append(lattice.j(), -lattice.reach - 1)
        counted = np.arange(lattice.teachers + 1)[:, None] * lattice.cells
        x = np.asarray((j - counted) * lattice.unit, dtype=np.float64)
        log_cdf = log_ndtr(x)
        thin = slice(0, lattice.laws if lattice.stride else 0, max(1, lattice.stride))
        hazard = np.exp(_log_density(x[:, thin]) - log_cdf[:, thin])
        low_log_cdf = np.zeros((len(counts), log_cdf.shape[1]))
        low_hazard = np.zeros((len(counts), hazard.shape[1]))
        head = max(_HEAD, counts.shape[1] // 3)
        for column in counts.T[head:]:
            low_log_cdf += log_cdf[column]
            low_hazard += hazard[column]
        return cls(lattice, counts, head, log_cdf, hazard, low_log_cdf, low_hazard)

    def without(self, rows: Ints, ranks: Ints) -> tuple[Floats, Floats]:
        """Pr[⌈KC⌉ = j], and trapezoid weights of C at every stride-th j.

        Args:
            rows: [cases].
            ranks: the places of the classes left out in the rows' order, [cases, 1 or 2].
        """
        high = ranks.max(axis=1) < self.head
        log_cdf = np.where(high[:, None], self.low_log_cdf[rows], 0.0)
        hazard = np.where(high[:, None], self.low_hazard[rows], 0.0)
        for rank in range(self.counts.shape[1]):
            untouched = (ranks != rank).all(axis=1)
            at = np.flatnonzero(untouched & ~high if rank >= self.head else untouched)
            count = self.counts[rows[at], rank]
            log_cdf[at] += self.log_cdf[count]
            hazard[at] += self.hazard[count]
        stride = max(1, self.lattice.stride)
        thin = np.exp(log_cdf[:, :-1:stride][:, : hazard.shape[1]]) * hazard
        # Everything above the largest j is put on it, and everything below the least on that.
        log_cdf[:, 0], log_cdf[:, -1] = 0.0, -np.inf
        mass = np.exp(log_cdf[:, :-1]) * -np.expm1(np.diff(log_cdf, axis=1))
        return mass, thin * (stride * self.lattice.unit)


@dataclass(frozen=True, eq=False)
class _Cases:
    """Classes that a vote may touch: pairs of a row's classes, or single ones.

    Of equal counts the first class stands for all, and the first two for a tie.

    Attributes:
        rows: [cases].
        ranks: where the classes stand in their row, the larger count first, [cases, 1 or 2].
        counts: their counts, [cases, 1 or 2].
        rivals: the largest count of the other classes, [cases].
    """

    rows: Ints
    ranks: Ints
    counts: Counts
    rivals: Counts

    @classmethod
    def _of(cls, counts: Counts, chosen: list[tuple[NDArray[np.bool_], list[int]]]) -> _Cases:
        """From (which rows, which ranks) for histograms in descending order."""
        rows = [np.flatnonzero(which) for which, _ in chosen]
        ranks = [
            np.tile(np.array(who), (at.size, 1)) for at, (_, who) in zip(rows, chosen, strict=True)
        ]
        rivals = [
            counts[at, min(rank for rank in range(len(who) + 1) if rank not in who)]
            for at, (_, who) in zip(rows, chosen, strict=True)
        ]
        row, rank = np.concatenate(rows), np.concatenate(ranks)
        return cls(row, rank, counts[row[:, None], rank], np.concatenate(rivals))

    @classmethod
    def pairs(cls, counts: Counts) -> _Cases:
        """Every pair; the first [rows] of them are the two largest counts of each row."""
        starts, classes = _run_starts(counts), counts.shape[1]
        return cls._of(
            counts,
            [
                (starts[:, one] & (starts[:, two] | (two == one + 1)), [one, two])
                for one in range(classes - 1)
                for two in range(one + 1, classes)
            ],
        )

    @classmethod
    def single(cls, counts: Counts) -> _Cases:
        """Every class."""
        starts = _run_starts(counts)
        return cls._of(counts, [(starts[:, one], [one]) for one in range(counts.shape[1])])

    def take(self, chosen: Ints) -> _Cases:
        """Some of them."""
        return _Cases(
            self.rows[chosen], self.ranks[chosen], self.counts[chosen], self.rivals[chosen]
        )

    @property
    def gaps(self) -> Ints:
        """The lead of the larger count (votes)."""
        return np.asarray(self.counts[:, 0] - self.counts[:, -1], dtype=np.int64)

    def __len__(self) -> int:
        return len(self.rows)


def _run_starts(counts: Counts) -> NDArray[np.bool_]:
    """Where a run of equal counts begins, in histograms sorted along their rows."""
    starts = np.ones(counts.shape, dtype=np.bool_)
    starts[:, 1:] = counts[:, 1:] != counts[:, :-1]
    return starts


@dataclass(frozen=True, eq=False)
class _Side:
    """The tables for cases of one gap, and whose place (K n − j) they are looked up at."""

    own: Counts
    bound: Floats
    exact: Floats


def _sides(cases: _Cases, balls: _Balls) -> Iterator[tuple[Ints, list[_Side]]]:
    """(which cases, either direction of the vote) for all cases, a bounded number at a time."""
    pairs = cases.counts.shape[1] == 2
    for gap in np.unique(cases.gaps).tolist():
        every = np.flatnonzero(cases.gaps == gap)
        for start in range(0, every.size, _ROWS_AT_ONCE):
            at = every[start : start + _ROWS_AT_ONCE]
            if not pairs:
                yield at, [_Side(cases.counts[at, 0], balls.lone, balls.lone_exact)]
                continue
            rows = np.searchsorted(balls.gaps, [gap, -gap])
            yield (
                at,
                [
                    _Side(cases.counts[at, side], balls.moved[row], balls.moved_exact[row])
                    for side, row in enumerate(rows.tolist())
                ],
            )


def _expected(cases: _Cases, others: _Others, balls: _Balls, *, refine: bool) -> Floats:
    """E_C of t_d, the worse direction, [cases, distances].

    With `refine` the first distance is 0, and E_C h by the trapezoid rule is taken where smaller.
    """
    lattice = others.lattice
    worst = np.zeros((len(cases), len(balls.lone)))
    for at, sides in _sides(cases, balls):
        mass, thin = others.without(cases.rows[at], cases.ranks[at])
        for side in sides:
            offsets = side.own[:, None] * lattice.cells
            along = np.zeros((at.size, lattice.places))
            np.put_along_axis(along, offsets + np.arange(lattice.laws), mass, axis=1)
            found = along @ side.bound.T
            if refine and lattice.stride:
                places = offsets + lattice.stride * np.arange(thin.shape[1])
                fine = np.einsum("dcj,cj->cd", side.exact[:, places], thin).max(axis=1)
                found[:, 0] = np.minimum(found[:, 0], fine * (1.0 + _QUADRATURE))
            worst[at] = np.maximum(worst[at], found)
    return worst


def _rival_bounds(cases: _Cases, lattice: _Lattice, balls: _Balls) -> Floats:
    """An upper bound on `_expected` that needs one normal law only, [cases, distances].

    C is at least the rival's noisy count, so p = K n_a − j is at most K(n_a − rival) − ⌈KσN⌉, and
    a running maximum of t_d along the places does not decrease.
    """
    ahead = np.arange(lattice.reach, -lattice.reach - 1, -1)
    log_cdf = log_ndtr(np.append(ahead, -lattice.reach - 1) * lattice.unit)
    log_cdf[0], log_cdf[-1] = 0.0, -np.inf
    law = np.exp(log_cdf[:-1]) * -np.expm1(np.diff(log_cdf))
    worst = np.zeros((len(cases), len(balls.lone)))
    for at, sides in _sides(cases, balls):
        for side in sides:
            rising = np.maximum.accumulate(side.bound, axis=1)
            windows = np.lib.stride_tricks.sliding_window_view(rising, law.size, axis=1)
            leads, inverse = np.unique(side.own - cases.rivals[at], return_inverse=True)
            found = windows[:, lattice.gap + leads * lattice.cells] @ law
            worst[at] = np.maximum(worst[at], found.T[inverse])
    return worst


def _worst_votes(
    others: _Others, pairs: _Cases, balls: _Balls, *, refine: bool, enough: float
) -> Floats:
    """The largest excess moment of any vote, [rows, distances]; beyond `enough` any such value."""
    rows = len(others.counts)
    # A vote between the two largest counts nearly always is the worst.
    worst = _expected(pairs.take(np.arange(rows)), others, balls, refine=refine)
    for cases in (pairs.take(np.arange(rows, len(pairs))), _Cases.single(others.counts)):
        reached = worst[cases.rows]
        bounds = _rival_bounds(cases, others.lattice, balls) + 2.0 * _NEGLECTED
        left = cases.take(np.flatnonzero(((bounds > reached) & (reached < enough)).any(axis=1)))
        np.maximum.at(worst, left.rows, _expected(left, others, balls, refine=refine))
    return worst


def check_conditional_size(
    *, rows: int, classes: int, teachers: int, sigma: float, order: float, furthest: int
) -> None:
    """Refuse what `conditional_rdp` might not have the memory for, whatever the histograms are.

    How many gaps there are between counts, and how many classes differ, follows from the votes. So
    the most are presumed: vote files of one shape are refused together or not at all.

    Args:
        rows: most histograms.
        classes, teachers, sigma, order: as there.
        furthest: the largest distance (votes).

    Raises:
        ParameterError: more than 4 GiB; the message says how much.
    """
    if order * (order - 1.0) / sigma**2 > _MAX_EXPONENT:
        return
    lattice = _Lattice.of(teachers=teachers, classes=classes, sigma=sigma, order=order)
    tables = (2 * lattice.gap + 1) * lattice.places * 10
    kept = (2 * teachers + 1) * lattice.places * (furthest + 3)
    laws = lattice.laws * (_ROWS_AT_ONCE + teachers) * 8
    cases = rows * (classes * (classes - 1) // 2) * _NUMBERS_A_CASE
    needed = 8.0 * (tables + kept + laws + cases)
    if needed > _MOST_BYTES:
        raise ParameterError(
            f"teachers={teachers}, classes={classes} and sigma={sigma:g}: the conditional bound "
            f"might need about {needed / 2**30:.0f} GiB for {rows} histograms on its lattice of "
            f"{lattice.cells} cell(s) a vote (at most {_MOST_BYTES // 2**30}); the "
            "two-tail bound needs little"
        )


def conditional_rdp(
    counts: Counts,
    *,
    teachers: int,
    sigma: float,
    order: float,
    distances: Ints,
    cap: float,
) -> Floats:
    """min(F'_d, cap) for each histogram: what one noisy argmax costs within d votes of it.

    For neighbours n and n' (a vote moved, added or withdrawn) the result at d = 0 bounds both
    directions of their divergence, and the result of n' at d is at most that of n at d + 1.

    Args:
        counts: integer histograms [rows, classes], classes ≥ 3 in any order, of at most τ votes.
        teachers: τ (public), which with σ, λ and the number of classes fixes the lattice.
        sigma: standard deviation of the noise on each count, > 0 (counts).
        order: Rényi order λ > 1.
        distances: ascending d ≥ 0, [distances] (votes); a coin takes every one of them.
        cap: a bound on the argmax of any votes, such as `worst_argmax_rdp`, ≥ 0 and finite (nats).

    Returns:
        [distances, rows] in nats, non-decreasing in d, at most `cap` and λ/σ² (Proposition 8),
        which stand alone where λ(λ−1)/σ² > 500.

    Raises:
        ParameterError: a bad parameter, two classes (`two_class_states_rdp` is exact), histograms
            that are no votes of τ teachers, or more memory than `check_conditional_size` allows.
    """
    counts, distances = check_counts(counts, teachers=teachers), check_distances(distances)
    rows, classes = counts.shape
    check_ensemble(teachers, classes, 1)
    if classes < 3:
        raise ParameterError("counts must have at least 3 classes: with 2 no class is untouched")
    sigma, order = check_positive("sigma", sigma), check_order(order)
    cap = min(check_nonnegative("cap", cap), order / sigma**2)
    if rows == 0 or order * (order - 1.0) / sigma**2 > _MAX_EXPONENT:
        return np.full((distances.size, rows), cap)
    check_conditional_size(
        rows=rows,
        classes=classes,
        teachers=teachers,
        sigma=sigma,
        order=order,
        furthest=int(distances[-1]),
    )
    lattice = _Lattice.of(teachers=teachers, classes=classes, sigma=sigma, order=order)
    counts = -np.sort(-counts, axis=1)
    parts = [counts[start : start + _ROWS_AT_ONCE] for start in range(0, rows, _ROWS_AT_ONCE)]
    pairs = [_Cases.pairs(part) for part in parts]
    gaps = np.unique(np.concatenate([part.gaps for part in pairs]))
    balls = _Balls.of(lattice, gaps, order=order, shift=1.0 / sigma, distances=distances)
    refine, enough = int(distances[0]) == 0, math.expm1((order - 1.0) * cap)
    worst = np.concatenate(
        [
            _worst_votes(_Others.of(part, lattice), some, balls, refine=refine, enough=enough)
            for part, some in zip(parts, pairs, strict=True)
        ]
    )
    votes = distances + 1.0
    bound = np.log1p(worst * (1.0 + _ROUNDING * votes) + 3.0 * _NEGLECTED * votes).T
    return np.asarray(
        np.minimum(np.maximum.accumulate(bound / (order - 1.0), axis=0), cap), dtype=np.float64
    )


def conditional_seconds(
    *,
    rows: int,
    classes: int,
    teachers: int,
    sigma: float,
    order: float,
    furthest: int,
) -> float:
    """About how long `conditional_rdp` takes on one core (seconds), for a time estimate only.

    Of many classes with hardly any consensus, where many pairs may be the worst, several times
    as long.

    Args:
        rows: distinct histograms.
        classes, teachers, sigma, order: as there.
        furthest: the largest distance (votes).
    """
    if order * (order - 1.0) / sigma**2 > _MAX_EXPONENT:
        return 0.0
    lattice = _Lattice.of(teachers=teachers, classes=classes, sigma=sigma, order=order)
    table = (2 * lattice.gap + 1) * lattice.places
    steps = lattice.cells * furthest
    each_step = _STEP_SECONDS if table < _CACHED else 2.0 * _STEP_SECONDS
    return table * (_PLACE_SECONDS + steps * each_step) + rows * classes * (
        lattice.laws * _LAW_SECONDS
    )
