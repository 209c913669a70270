"""The cost of one noisy argmax as a function of a single score: the two-tail bound F.

**Setting.** M(n) is the argmax of n + N(0, σ²I), and i* is the plurality of n. A moved vote shifts
the noisy histogram by a vector of length √2. So (M(n), M(n')) is a post-processing of (N(0, 1),
N(μ, 1)) with μ = √2/σ, and there is a function κ(x) = Pr[the outcome is not i* | x] with E κ = q =
Pr[M(n) ≠ i*].

**Bound** (THEORY.md, section 5). The moment e^{(λ−1)D_λ} between M(n) and M(n') is the sum of a^λ
b^{1−λ} over all outcomes, where an outcome has probability a for n and b for n'. The function a^λ
b^{1−λ} is jointly convex and homogeneous in (a, b). So in the moment, the terms of all outcomes
except i* are together at most ∫ κ φ^λ φ_μ^{1−λ}. The term of i* is (1−q)^λ (1−Q)^{1−λ} with Q = ∫ κ
φ_μ. So the moment is at most B(κ) = (1−q)^λ (1−Q)^{1−λ} + ∫ κ φ^λ φ_μ^{1−λ}, which is convex in κ.
If B is largest at κ0 among all κ with E κ = q, then the linear approximation of B at κ0 is largest
at κ0, too. The linear approximation of B is largest if κ is 1 outside of an interval and 0 inside.
So B is largest if κ is the indicator of two tails with probabilities q1 + q2 = q. With z_k =
Φ⁻¹(q_k), c = λ − 1, E = λ c μ² / 2:

  forward  J = max_{q1} (1−q)^λ (1−Q)^{−c} + e^E [Φ(z1 + cμ) + Φ(z2 − cμ)],
  reverse  J = max_{q1} (1−Q)^λ (1−q)^{−c} + e^E [Φ(z1 − λμ) + Φ(z2 + λμ)],
  Q = Φ(z1 − μ) + Φ(z2 + μ),     F = min(log J / c, λ/σ²).

The bound F replaces Theorem 6 (with Propositions 7, 8 and 10) of "Scalable Private Learning with
PATE" (ICLR 2018). The bound F needs none of the conditions of the paper's Theorem 6. On real votes
F is about 2.4 times smaller than the bound of the paper's Theorem 6.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit, log_ndtr, ndtri_exp

from pate_cli.core.arrays import Floats

# The code searches the maximum over q1 on a grid of logit(q1/q), and then by parabolas in the two
# cells around the best node. The search ends when a concave function can grow by no more than the
# share _LEFT. That the function is concave was observed, but is not proven. So RELATIVE_SLACK,
# which is a hundred times larger, is added to the result.
_LEFT = 1e-8
RELATIVE_SLACK = 1e-6
_GOLDEN = (3.0 - np.sqrt(5.0)) / 2.0
# The nodes of the grid of logit(q1/q), symmetric about 0, with both infinite ends.
_SHARES = np.concatenate(([-np.inf], np.arange(-32.0, 33.0, 2.0), [np.inf]))
# The largest numbers of probes of a search. Thirteen probes are nearly always enough; more are only
# used if rounding hides which of two values is higher. To compare settings 4 probes are enough: in
# all trials their result was at most 1e-4 of F below the maximum.
_PROBES, _FEW_PROBES = 60, 4
# No probe is closer to the best point than this share of the longer cell, so that both cells
# shrink.
_LEAST_STEP = 0.1

# The relative rounding error of a term of J − 1 is at most this number times 1 + |the logarithm of
# the term|: 8 units in the last place for log_ndtr, ndtri_exp and exp together. With much noise the
# terms nearly cancel: at σ = 5e5 the relative error of their sum is 7e-5, which is far above
# RELATIVE_SLACK.
_ROUNDING = 8.0 * 2.0**-52

# If an exponent is larger than _MAX_EXPONENT, or 1 − Q smaller than 1e-12, float64 cannot represent
# J − 1 well enough, and the result is the data-independent bound λ/σ² (Proposition 8).
_MAX_EXPONENT = 600.0
_MIN_LOG_STAY = np.log(1e-12)
# Logarithms of terms are raised to at least this number, because −∞ would make the bound on the
# rounding error NaN. Even after multiplication by e^_MAX_EXPONENT, such a term is 0.
_LEAST_LOG = -1e4
_CHUNK = 512
_REVERSE = (False, True)


def _sum_of_exp(first: Floats, second: Floats, *, offset: float | Floats = 0.0) -> Floats:
    """Return e^offset (e^first + e^second), which is written over `first`.

    A bound on the rounding error of the result is written over `second`.
    """
    one, other = (np.maximum(log, _LEAST_LOG, out=log) + offset for log in (first, second))
    for term, log in ((one, first), (other, second)):
        np.exp(term, out=term)
        np.abs(log, out=log)
        log += 1.0 + np.abs(offset)
        log *= term
    second += first
    second *= _ROUNDING
    return np.add(one, other, out=first)


@dataclass(frozen=True)
class _Split:
    """A split of the probability q into two tails, and numbers that are the same for all orders λ.

    Attributes:
        z1, z2: Φ⁻¹ of the probabilities q·expit(share) and q·expit(−share) of the two tails.
        log_keep: log(1 − q).
        log_keep_moved: log(1 − Q).
        size: |log(1 − q)| + |log(1 − Q)|.
        moved_error: the rounding error of Q, divided by 1 − Q. Q is the probability of the two
            tails for the neighbour (see the module).
        lost: whether 1 − Q is so small that rounding errors could make a result wrong.
    """

    z1: Floats
    z2: Floats
    log_keep: Floats
    log_keep_moved: Floats
    size: Floats
    moved_error: Floats
    lost: NDArray[np.bool_]

    @classmethod
    def at(cls, z: Floats, log_q: Floats, share: Floats, mu: float) -> _Split:
        """Split the probability q of every score into q·expit(share) and q·expit(−share)."""
        z1, z2 = ndtri_exp(log_q + log_expit(share)), ndtri_exp(log_q + log_expit(-share))
        return cls.of(z, z1, z2, mu)

    @classmethod
    def on_nodes(cls, z: Floats, log_q: Floats, mu: float) -> _Split:
        """Split the probability q of every score for each share in `_SHARES`, [scores, shares]."""
        z1 = ndtri_exp(log_q[:, None] + log_expit(_SHARES))
        return cls.of(z[:, None], z1, z1[:, ::-1], mu)

    @classmethod
    def of(cls, z: Floats, z1: Floats, z2: Floats, mu: float) -> _Split:
        """Return the split of q into the two tails that end at z1 and z2."""
        moved, moved_error = log_ndtr(z1 - mu), log_ndtr(z2 + mu)
        moved = _sum_of_exp(moved, moved_error)
        log_keep = log_ndtr(-z)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            log_keep_moved = np.log1p(-np.minimum(moved, 1.0))
            moved_error /= np.exp(log_keep_moved)
        size = np.abs(log_keep) + np.abs(log_keep_moved)
        lost = ~(log_keep_moved > _MIN_LOG_STAY)
        return cls(z1, z2, log_keep, log_keep_moved, size, moved_error, lost)

    def part(self, some: slice) -> _Split:
        """Return the split of q for the scores in the slice `some` only."""
        return _Split(*(values[some] for values in vars(self).values()))


def _excess(split: _Split, order: float | Floats, mu: float, *, reverse: bool) -> Floats:
    """Return J − 1 for given splits of q, rounded up; +inf if float64 overflows.

    For one split, J is the expression after max_{q1} in the module's docstring. The code computes
    the term of the plurality in J, minus 1, with expm1, and then adds the terms of the two tails,
    which are positive. With expm1, J − 1 has a small relative error even if q is as small as
    float64 allows. The result includes a bound on its rounding error. Most steps write over their
    input, because allocating new memory would double the time.
    """
    c = order - 1.0
    exponent = order * c * mu * mu / 2.0
    weight, shift = (order, -order * mu) if reverse else (c, c * mu)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        winner = weight * split.log_keep_moved
        if reverse:
            winner -= c * split.log_keep
        else:
            np.subtract(order * split.log_keep, winner, out=winner)
        np.expm1(winner, out=winner)
        near, far = split.z1 + shift, split.z2 - shift
        log_ndtr(near, out=near)
        log_ndtr(far, out=far)
        total = _sum_of_exp(near, far, offset=exponent)
        total += winner
        total += far  # `far` is now the rounding error of the tails
        argument_error = _ROUNDING * (order + c) * split.size
        argument_error += weight * split.moved_error
        winner += 1.0
        winner *= argument_error
        total += winner
    np.copyto(total, np.inf, where=split.lost)
    return total


def _maximise(
    z: Floats, on_nodes: _Split, orders: Floats, mu: float, *, probes: int, larger: bool
) -> Floats:
    """Return the largest J − 1 over all splits of q into two tails.

    J is the bound on the moment e^{(λ−1)D_λ} in the module's docstring. The result is [directions,
    orders, scores]. `on_nodes` has a split of q for each score and each share in `_SHARES`. With
    `larger`, only the larger of the forward and the reverse result is needed, and the smaller one
    may be too low.
    """
    best = np.empty((len(_REVERSE), orders.size, z.size), dtype=np.int64)
    around = np.empty((3, *best.shape))
    for side, row in np.ndindex(*best.shape[:2]):
        on_grid = _excess(on_nodes, orders[row], mu, reverse=_REVERSE[side])
        best[side, row] = top = np.argmax(on_grid, axis=1)
        for near, step in zip(around, (-1, 0, 1), strict=True):
            at = np.clip(top + step, 0, _SHARES.size - 1)
            near[side, row] = on_grid[np.arange(z.size), at]
    found = around[1].copy()
    # A maximum at an infinite end needs no search, and everything beyond the last finite nodes is
    # negligible.
    wanted = (best > 1) & (best < _SHARES.size - 2) & np.isfinite(found)
    if larger:
        # Between equally spaced nodes a concave function rises by at most as much as it fell on the
        # other side.
        with np.errstate(invalid="ignore"):
            wanted &= 2.0 * found - np.minimum(around[0], around[2]) > found[::-1]
    inside = np.nonzero(wanted)
    sides, rows, columns = inside
    if rows.size == 0:
        return found
    some, order_of, forward = z[columns], orders[rows], int(np.searchsorted(sides, 1))
    log_q = log_ndtr(some)

    def at_shares(share: Floats, which: NDArray[np.intp]) -> Floats:
        split = _Split.at(some[which], log_q[which], share, mu)
        cut = np.searchsorted(which, forward)
        parts = [
            _excess(split.part(part), order_of[which[part]], mu, reverse=reverse)
            for part, reverse in zip((slice(cut), slice(cut, None)), _REVERSE, strict=True)
        ]
        return np.concatenate(parts)

    nodes = _SHARES[best[inside] + np.array([[-1], [0], [1]])]
    found[inside] = _climbed(at_shares, nodes, around[:, sides, rows, columns], probes=probes)
    return found


def _climbed(
    at: Callable[[Floats, NDArray[np.intp]], Floats], x: Floats, f: Floats, *, probes: int
) -> Floats:
    """Search a local maximum of each of many functions, and return the largest values found.

    For each function, the search keeps three points that enclose the local maximum, and next
    evaluates the function at the vertex of the parabola through the three points. If the vertex of
    the parabola is too far from the vertex of the previous parabola, golden section cuts the longer
    of the two intervals between the three points instead (Chandrupatla, An efficient quadratic
    fit-sectioning algorithm for minimization without derivatives, 1998).

    Args:
        at: evaluates the functions with the given indices at the given points.
        x: three ascending points of each function, [3, functions]; the function is largest at the
            middle one.
        f: the values of the functions at x, [3, functions].
        probes: the largest number of probes for each function.
    """
    highest, active, vertex = f[1].copy(), np.arange(x.shape[1]), x[1]
    for _ in range(probes):
        cells = np.abs(x[::2] - x[1])
        with np.errstate(invalid="ignore"):  # no search is needed for an infinite value
            falls = (f[1] - f[::2]) / cells
            # Beyond two of its points, a concave function lies below the line through them.
            more = (falls * cells[::-1]).max(axis=0) > _LEFT * np.abs(f[1])
        if not more.any():
            break
        active, vertex, cells, falls = active[more], vertex[more], cells[:, more], falls[:, more]
        x, f = x[:, more], f[:, more]
        longer = np.where(cells[0] > cells[1], -cells[0], cells[1])
        step = (falls[0] * cells[1] - falls[1] * cells[0]) / (2.0 * falls.sum(axis=0))
        settles = np.abs(x[1] + step - vertex) < np.abs(longer) / 2.0
        vertex = x[1] + step
        least = _LEAST_STEP * longer
        step = np.where(np.abs(step) < np.abs(least), least, step)
        step = np.where(settles, step, _GOLDEN * longer)
        probe, above = x[1] + step, step > 0.0
        seen = at(probe, active)
        x = np.stack([x[0], np.minimum(x[1], probe), np.maximum(x[1], probe), x[2]])
        f = np.stack([f[0], np.where(above, f[1], seen), np.where(above, seen, f[1]), f[2]])
        # The higher of the two inner points becomes the new middle.
        upper = f[2] > f[1]
        x, f = (np.where(upper, each[1:], each[:-1]) for each in (x, f))
        highest[active] = f[1]
    return highest


def two_tail_rdp_directions(
    z: Floats, *, sigma: float, orders: Floats, probes: int = _PROBES, larger: bool = False
) -> Floats:
    """Return the two-tail bound on D_λ from votes n to a neighbour n', and on D_λ from n' to n.

    Args:
        z: scores Φ⁻¹(q), any shape; a score of −inf means that the plurality always wins, and costs
            nothing.
        sigma: standard deviation of the noise on each count, > 0 (counts).
        orders: Rényi orders λ > 1, shape [orders].
        probes: how often J may be evaluated, at most, in the search for each maximum over q1.
        larger: the caller only needs the larger of the forward and the reverse result, so the
            smaller of the two results may be too low.

    Returns:
        [2, orders, *z.shape], forward and reverse, in nats, at most λ/σ²: upper bounds on D_λ(M(n)
        ‖ M(n')) and D_λ(M(n') ‖ M(n)) over all neighbours n' of any histogram n whose plurality
        loses with probability Φ(z).
    """
    scores = np.asarray(z, dtype=np.float64)
    flat = scores.ravel()
    mu = float(np.sqrt(2.0) / sigma)
    result = np.empty((2, orders.size, flat.size))
    caps = orders / sigma**2
    result[:] = caps[:, None]
    tame = np.flatnonzero(orders * (orders - 1.0) * mu * mu / 2.0 <= _MAX_EXPONENT)
    for start in range(0, flat.size if tame.size else 0, _CHUNK):
        part = slice(start, start + _CHUNK)
        some = flat[part]
        on_nodes = _Split.on_nodes(some, log_ndtr(some), mu)
        excess = _maximise(some, on_nodes, orders[tame], mu, probes=probes, larger=larger)
        # J bounds e^{(λ−1)D}, so it is at least 1; a negative J − 1 is a rounding error.
        bound = np.log1p(np.maximum(excess, 0.0)) / (orders[tame, None] - 1.0)
        result[:, tame, part] = np.minimum(bound * (1.0 + RELATIVE_SLACK), caps[tame, None])
    return result.reshape(2, orders.size, *scores.shape)


def two_tail_rdp(z: Floats, *, sigma: float, orders: Floats, rough: bool = False) -> Floats:
    """Return the two-tail bound F(z) on the RDP cost of a noisy argmax, for both directions.

    The result is [orders, *z.shape], in nats. The result is non-decreasing in z, up to the relative
    error RELATIVE_SLACK of the search for the maximum over q1. With `rough` the result is not an
    upper bound, but a faster approximation to compare settings.
    """
    probes = _FEW_PROBES if rough else _PROBES
    sides = two_tail_rdp_directions(z, sigma=sigma, orders=orders, probes=probes, larger=True)
    return np.maximum(*sides)
