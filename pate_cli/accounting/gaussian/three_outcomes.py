"""One vote, given the best of the classes that it does not touch: excess moments by place.

When a vote moves from class a to class b, the largest noisy count C among the *other* classes has
the same law on both sides. Given C (and whose it is), the output is one of three: a, b, or the
place of C. With s = 1/σ, P(x, y) the law of the argmax of (x + N, y + N', 0) and

  h(x, y) = Σ P^λ Q^{1−λ} − 1,   Q = P(x − s, y + s),

data processing gives, for this direction of this pair of neighbours,

  e^{(λ−1) D_λ(M(n) ‖ M(n'))} − 1 ≤ E_C h((n_a − C)/σ, (n_b − C)/σ).

A vote that is only added or withdrawn touches one class; given the best of all others the output
is a coin. Proofs are in THEORY.md, section 3.8.

Counts live on a lattice of K cells a vote. With j = ⌈KC⌉ class i stands at the *place* K n_i − j,
and a table holds t_0, a bound on h over the cell: over all C with ⌈KC⌉ = j.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtri_exp

from pate_cli.core.arrays import Floats, Ints

Table: TypeAlias = NDArray[np.float32] | Floats
"""Bounds on moments in either width; of the narrow one there are twice as many a second."""

NEGLECTED = 1e-13
"""What lies outside the lattice has at most this expectation at either end; it is charged."""

_LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)
# Cells are at most σ/10 wide: t_0 then exceeds the supremum over its cell by one or two percent (a
# tenth of one at σ/40).
_CELLS_PER_SIGMA = 10.0
# Past this exponent of the largest moment there is, float64 has no room left.
_MAX_EXPONENT = 500.0
# An integrand that falls like φ beyond the lattice has e^{−40} of its integral left nine units on.
_TAIL = 9.0
# Errors of log probabilities (quadrature and rounding) are below this.
_LOG_ERROR = 1e-11
_FAR = 50.0
_MOST_SINGLE = 1e38
# Gaps looked at in one go; bounds memory, not results.
_GAPS_AT_ONCE = 64


def endless(*, sigma: float, order: float) -> bool:
    """Whether moments outgrow float64, so that no table can be made."""
    return order * (order - 1.0) / sigma**2 > _MAX_EXPONENT


@dataclass(frozen=True)
class Lattice:
    """Where counts and the best of the others can be, in cells; all of it public.

    Attributes:
        cells: K, cells per vote.
        unit: one cell in units of σ, 1/(Kσ).
        teachers: τ.
        below, above: j = ⌈KC⌉ is clipped to −below, …, Kτ + above.
    """

    cells: int
    unit: float
    teachers: int
    below: int
    above: int

    @classmethod
    def of(cls, *, teachers: int, classes: int, sigma: float, order: float) -> Lattice:
        """So wide that Pr[j is clipped]·(largest moment) ≤ `NEGLECTED` at either end."""
        cells = max(1, math.ceil(_CELLS_PER_SIGMA / sigma))
        unit = 1.0 / (cells * sigma)
        # No moment, of a moved vote or of a lone one, is above e^{λ(λ−1)/σ²} (Proposition 8).
        log_room = math.log(NEGLECTED) - order * (order - 1.0) / sigma**2
        # Any of the others may be above, all m − 2 of them must be below.
        above = -float(ndtri_exp(log_room - math.log(classes)))
        below = -float(ndtri_exp(log_room / max(1, classes - 2)))
        return cls(
            cells=cells,
            unit=unit,
            teachers=teachers,
            below=max(cells, math.ceil(below / unit)),
            above=math.ceil(above / unit),
        )

    @property
    def gap(self) -> int:
        """Kτ: gaps p − q between two places are −Kτ, …, Kτ."""
        return self.cells * self.teachers

    @property
    def lowest(self) -> int:
        """The least place."""
        return -self.gap - self.above

    @property
    def places(self) -> int:
        """How many places there are."""
        return 2 * self.gap + self.above + self.below + 1

    @property
    def laws(self) -> int:
        """How many values j has."""
        return self.gap + self.above + self.below + 1

    def j(self) -> Ints:
        """All j, descending, so that they run along places."""
        return np.arange(self.gap + self.above, -self.below - 1, -1)


def moved_vote(lattice: Lattice, *, order: float, shift: float) -> tuple[Floats, Floats]:
    """t_0 for one class of a pair that gives a vote to the other, and that takes one from it.

    Args:
        lattice: where the places are.
        order: λ.
        shift: one vote in units of σ.

    Returns:
        (gives, takes), each [gaps, places]: by the class's gap over the other and by its place.
    """
    log_outcomes, cells = _log_outcomes(lattice), lattice.cells
    size = 2 * lattice.gap + 1
    here = log_outcomes[:, 2 * cells : 2 * cells + size, cells:-cells]
    tables = []
    for moved in (log_outcomes[:, :size, : -2 * cells], log_outcomes[:, -size:, 2 * cells :]):
        table = np.empty((size, lattice.places))
        for start in range(0, size, _GAPS_AT_ONCE):
            part = slice(start, start + _GAPS_AT_ONCE)
            table[part] = _over_cells(
                here[:, part], moved[:, part], order=order, unit=lattice.unit, shift=shift
            )
        tables.append(table)
    return tables[0], tables[1]


def lone_vote(lattice: Lattice, *, order: float, shift: float) -> Floats:
    """t_0 for a vote that is added to a class or withdrawn from it, [places]."""
    cells = lattice.cells
    x = np.arange(-cells, lattice.places + 1 + cells) + lattice.lowest
    log_coin = np.stack([log_ndtr(x * lattice.unit), log_ndtr(-x * lattice.unit)])
    here = log_coin[:, cells:-cells]
    sides = [
        _over_cells(here, moved, order=order, unit=lattice.unit, shift=shift)
        for moved in (log_coin[:, : -2 * cells], log_coin[:, 2 * cells :])
    ]
    return np.maximum(*sides)


def rounded_up(table: Floats) -> Table:
    """The next larger numbers of 32 bits, where they have room for the table."""
    if not table.max(initial=0.0) < _MOST_SINGLE:
        return table
    return np.nextafter(table.astype(np.float32), np.float32(np.inf))


def _log_outcomes(lattice: Lattice) -> Floats:
    """log probabilities of a, b and the others, [3, gaps, places], for all places and their moves.

    Gaps g = p − q from −Kτ − 2K to Kτ + 2K, places p from the lowest less K to the highest and
    K + 1 more. With t = x + u,

      Pr[a wins] = ∫_{−x}^∞ φ(u) Φ(u + x − y) du,   Pr[b wins] = ∫_{−x}^∞ Φ(u) φ(u + x − y) du:

    for a fixed gap both are running sums over cells of u, by Gauss–Legendre in each cell. Positive
    terms in logs, so every probability has its digits, however small.
    """
    cells, unit = lattice.cells, lattice.unit
    gaps = np.arange(-lattice.gap - 2 * cells, lattice.gap + 2 * cells + 1)
    beyond = math.ceil(_TAIL / unit)
    places = np.arange(-cells - beyond, lattice.places + cells + 1) + lattice.lowest
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


def _over_cells(log_p: Floats, log_q: Floats, *, order: float, unit: float, shift: float) -> Floats:
    """A bound on Σ q ψ(log p/q) over the cell from each place to the next.

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
        [..., places].
    """
    bend = math.sqrt(24.0) * shift * unit**2 / 8.0 + _LOG_ERROR
    ends = np.zeros(log_p.shape[1:])
    turns = np.zeros_like(ends[..., 1:])
    for p, q in zip(log_p, log_q, strict=True):
        gain = p - q
        excess, heavy = _excess(q, np.where(gain > -bend, np.abs(gain) + bend, gain - bend), order)
        ends += excess
        slope = np.abs(np.diff(gain, axis=-1)) + 2.0 * _LOG_ERROR
        turns += slope**2 * np.maximum(heavy[..., :-1], heavy[..., 1:])
    over = np.maximum(ends[..., :-1], ends[..., 1:]) + order * (order - 1.0) / 8.0 * turns
    return np.asarray(over * math.exp(unit**2 / 4.0 + _LOG_ERROR), dtype=np.float64)
