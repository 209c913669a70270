"""Local sensitivity of GNMax by the 2018 paper: Algorithms 3 and 4, and their conditions C5 and C6.

In this module q is an upper bound on the probability that GNMax misses the plurality, and β(q) is
the RDP cost of an answer. The local sensitivity LS̃ is how far one teacher can change β.

**How far one teacher changes q** (`Plateau`, Algorithm 3). If one teacher changes its vote, q stays
between B_L(q) and B_U(q) of Appendix B.1. Let z = Φ^{-1}(q/(m − 1)) be the margin. B_L(q) is
(m−1)·Φ(z − √2/σ). B_U(q) is (m−1)·Φ(z + √2/σ), or 1 if (m−1)·Φ(z + √2/σ) is larger than 1. The
paper writes B_U and B_L as (m−1)/2 · erfc(erfc^{-1}(2q/(m−1)) ∓ 1/σ). This is (m−1)·Φ(z ± √2/σ),
because ½ erfc(x) = Φ(−√2 x).

**Conditions C5 and C6** of Appendix B.2 are checked for each (σ, m, λ) in use. C5 and C6 are
checked numerically, as in the paper (B.4.2). The derivatives of β(q) on [0, q0] and of
β(B_U(q)) − β(q) on [0, B_L(q0)] are minimised over q, and their minima must not be negative. By
B.4.1, GNMax meets the conditions C1–C4, C7 and C8 if q0 ≤ ½ and B_U(q0) < 1. The code checks the
inequalities q0 ≤ ½ and B_U(q0) < 1.

**Algorithm 4** computes the largest LS̃ of all histograms that d moves of votes can make from a
row, for every row and every d. At the smallest distances d, LS̃ of a row is 0. At middle distances
d, LS̃ changes with d. At the largest distances d, LS̃ stays at its plateau. A row need not have
distances of all three kinds (LS̃ is 0, LS̃ changes, LS̃ is at its plateau). A bisection finds the
first d at which LS̃ is not 0, and the first d at which LS̃ is at its plateau. RDP costs are computed
only at the distances at which LS̃ changes with d. Of all histograms that d moves of votes can make,
n* of Proposition 19 has the largest q, and n** of Proposition 19 has the smallest q. `Runs.closer`
states for which d the histogram n* has the largest q, and `Runs.apart` states for which d the
histogram n** has the smallest q. For n* and for n**, q has a closed form.

For many rows at once, the class `Runs` computes the largest q (`closer`) and the smallest q
(`apart`) that d moves of votes can reach. `Runs` stores for each row the count of the winner, and
the distinct counts of the other classes with the number of classes that have each count. Equal
counts are stored once, so a row with many empty classes needs little memory. The smallest q is
reached if d votes go to the winner one after the other, each from the class that is the runner-up
at that moment. The code computes the counts after all d moves at once, not move by move.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr, logsumexp, ndtri_exp

from pate_cli.core.arrays import Counts, Floats, Ints
from pate_cli.core.errors import ParameterError, ValidityError
from pate_cli.paper.costs import (
    answer_chance,
    data_dependent_rdp,
    rdp_of_log_q,
    threshold_local_sensitivity,
)

_FINEST, _COARSEST = 0.1, 1e9  # for smaller and larger σ, rounding errors hide q0
_CELLS = 4096
_ROOT_ZOOM = 64
_ROOT_ZOOMS = 12  # 64^12 is far above 2^53, so the root is exact


@dataclass(frozen=True)
class Plateau:
    """The paper's local sensitivity LS̃ of the cost of GNMax, as a function of q, at one (σ, m, λ).

    The cost β(q) rises up to q0, and is λ/σ² for larger q. LS̃ is constant from q1 to q0.

    Attributes:
        sigma: the standard deviation σ of the noise of GNMax, in votes.
        classes: m ≥ 2.
        order: Rényi order λ > 1.
    """

    sigma: float
    classes: int
    order: float

    @cached_property
    def log_q0(self) -> float:
        """Return log of q0; raise ParameterError if σ is out of range, or if no q0 is found."""
        return log_q0(sigma=self.sigma, order=self.order)

    @cached_property
    def log_q1(self) -> float:
        """Return log of q1 = B_L(q0)."""
        return float(self.below(self.log_q0))

    @cached_property
    def height(self) -> float:
        """Return LS̃ on [q1, q0], nats.

        If conditions C2–C6 of the paper are met, `height` is the largest local sensitivity of any
        histogram.
        """
        return float(self.rise(np.array([self.log_q1]))[0])

    @property
    def step(self) -> float:
        """Return √2/σ: how far one teacher can change the margin z."""
        return math.sqrt(2.0) / self.sigma

    def margin(self, log_q: ArrayLike) -> Floats:
        """Return the margin z = Φ^{-1}(q/(m − 1)) for log q; it is −inf for q = 0."""
        share = np.asarray(log_q, dtype=np.float64) - np.log(self.classes - 1.0)
        return np.asarray(ndtri_exp(share), dtype=np.float64)

    def log_q(self, margin: ArrayLike) -> Floats:
        """Return log q for a margin z, log[(m − 1)·Φ(z)]; it may be above 0."""
        height = log_ndtr(np.asarray(margin, dtype=np.float64))
        return np.asarray(np.log(self.classes - 1.0) + height, dtype=np.float64)

    def above(self, log_q: ArrayLike) -> Floats:
        """Return log B_U(q), an upper bound on log q of every neighbour, at most 0.

        By B.1, B_U(q) = min{(m−1)·Φ(z + √2/σ), 1}.
        """
        return np.minimum(self.log_q(self.margin(log_q) + self.step), 0.0)

    def below(self, log_q: ArrayLike) -> Floats:
        """Return log B_L(q), a lower bound on log q of every neighbour.

        By B.1, B_L(q) = (m−1)·Φ(z − √2/σ).
        """
        return self.log_q(self.margin(log_q) - self.step)

    def rdp(self, log_q: ArrayLike) -> Floats:
        """Return the RDP cost β(q) at the order, [queries], nats."""
        return rdp_of_log_q(log_q, sigma=self.sigma, orders=self.order)[0]

    def rise(self, log_q: Floats) -> Floats:
        """Return the larger of β(B_U(q)) − β(q) and β(q) − β(B_L(q)), [queries], nats."""
        middle = self.rdp(log_q)
        up, down = self.rdp(self.above(log_q)) - middle, middle - self.rdp(self.below(log_q))
        return np.maximum(up, down)

    def local_sensitivity(self, log_q: ArrayLike) -> Floats:
        """Return LS̃(q), an upper bound on how far one teacher can change β(q). Algorithm 3.

        LS̃(q) is the result of `rise`, but if q is between q1 and q0, LS̃(q) is `height`. LS̃(q) is
        an upper bound if conditions C2–C6 are met (`require_conditions`).

        Args:
            log_q: log q of each histogram, [queries], at most log(1 − 1/m).

        Returns:
            [queries], nats.
        """
        queried = np.atleast_1d(np.asarray(log_q, dtype=np.float64))
        flat = (self.log_q1 <= queried) & (queried <= self.log_q0)
        found = np.full(queried.shape, self.height)
        found[~flat] = self.rise(queried[~flat])
        return found


def log_q0(*, sigma: float, order: float) -> float:
    """Return log q0 < 0: for q below q0, the bound of Theorem 6 is smaller than λ/σ².

    Appendix A: "a critical value of q0 that separates the range of applicability of the
    data-dependent and data-independent bounds can be computed for given σ and λ". In
    this code, q0 is the smallest q at which Theorem 6 does not apply or its bound reaches λ/σ².

    Args:
        sigma: the standard deviation σ of the noise of GNMax, in votes, from 0.1 to 1e9.
        order: Rényi order λ > 1.

    Raises:
        ParameterError: σ is out of range, or so extreme that no q0 is found.
    """
    if not _FINEST <= sigma <= _COARSEST:
        raise ParameterError(
            f"at sigma {sigma:g} pate cannot compute the local sensitivity of the 2018 paper; "
            f"give a sigma from {_FINEST:g} to {_COARSEST:g}"
        )

    def beats(root: Floats) -> NDArray[np.bool_]:
        bound = data_dependent_rdp(-(root**2), sigma=sigma, orders=order)[0]
        return np.asarray(bound <= order / sigma**2)

    # In r = √log(1/q) the theorem's second term is exp(λ(λ−1)/σ² − (r − (λ−1)/σ)²), and
    # 1 − A ~ exp(−(r − 1/σ)²); both conditions on μ are lower ends of r.
    lowest = max(order - 1.0, 1.0) / sigma
    highest = (order + 1.0) / sigma + np.sqrt(np.log1p(sigma**2) + 40.0)
    tried = highest * 2.0 ** np.arange(30)
    good = np.flatnonzero(beats(tried))
    if not good.size:
        raise ParameterError(
            f"at sigma {sigma:g} and order {order:g} all votes cost as much as the worst case; "
            "give a larger sigma or a smaller order"
        )
    below = np.linspace(tried[good[0]], lowest, _CELLS)
    for _ in range(_ROOT_ZOOMS):
        crossed = ~beats(below)
        crossed[-1] = True  # for smaller r the theorem does not apply
        first = int(np.argmax(crossed))
        below = np.linspace(below[first - 1], below[first], _ROOT_ZOOM + 1)
    return float(-(below[0] ** 2))


_GRID = 2001
_MINIMA = 8
_SLOPE_ZOOM = 33
_SLOPE_ZOOMS = 4
# A relative slope of this size may be the rounding error of zero.
_SLACK = 1e-9


@dataclass(frozen=True)
class Conditions:
    """Whether Algorithms 3–5 may be used at one (σ, m, λ), and if they may not, why.

    `reason` is one line; it is empty if all conditions are met. `log_q` is the log of a q at which
    a condition is not met.
    """

    sigma: float
    classes: int
    order: float
    holds: bool
    reason: str = ""
    log_q: float | None = None


def check_conditions(*, sigma: float, classes: int, order: float) -> Conditions:
    """Return whether conditions C5 and C6 are met at one (σ, m, λ).

    Args:
        sigma: the standard deviation σ of the noise of GNMax, in votes, from 0.1 to 1e9.
        classes: m ≥ 2.
        order: Rényi order λ > 1.

    Raises:
        ParameterError: σ is out of range.
    """
    shape = Plateau(sigma, classes, order)
    for name, check in _CHECKS.items():
        found = check(shape)
        if found is not None:
            reason = f"{name} fails at log q = {found:.6g} (log q0 = {shape.log_q0:.6g})"
            return Conditions(sigma, classes, order, False, reason, found)
    return Conditions(sigma, classes, order, True)


def require_conditions(*, sigma: float, classes: int, order: float) -> None:
    """Raise ValidityError unless conditions C5 and C6 are met at this (σ, m, λ)."""
    verdict = check_conditions(sigma=sigma, classes=classes, order=order)
    if not verdict.holds:
        raise ValidityError(
            f"smooth sensitivity is not valid at order {order:g} with sigma {sigma:g} and"
            f" {classes} classes: {verdict.reason}; try another order or sigma"
        )


def _q0_too_large(shape: Plateau) -> float | None:
    """Return log q0 if q0 > ½ (C5) or B_U(q0) = 1 (C4, B.4.2); None otherwise."""
    large = shape.log_q0 > -np.log(2.0) or float(shape.above(shape.log_q0)) >= 0.0
    return shape.log_q0 if large else None


def _not_rising(shape: Plateau) -> float | None:
    """Return log q at which β(q) falls on [0, q0]; None if it does not fall, as C5 requires."""
    start = np.sqrt(-shape.log_q0)
    root = _negative_at(lambda at: _slope_terms(-(at**2), shape)[1], start, start + _beyond(shape))
    return None if root is None else -(root**2)


def _not_constant(shape: Plateau) -> float | None:
    """Return log of a q > q0 at which the bound of Theorem 6 is below λ/σ², or None.

    Condition C5 is met only if the result is None.
    """
    root = np.linspace(0.0, np.sqrt(-shape.log_q0), _GRID)[:-1]
    bound = data_dependent_rdp(-(root**2), sigma=shape.sigma, orders=shape.order)[0]
    # Next to q0, rounding errors alone may make a bound smaller.
    again = bound < shape.order / shape.sigma**2 * (1.0 - _SLACK)
    return -float(root[np.argmax(again)] ** 2) if again.any() else None


def _difference_falls(shape: Plateau) -> float | None:
    """Return log q at which β(B_U(q)) − β(q) falls on [0, B_L(q0)]; None if it does not.

    Condition C6 requires that β(B_U(q)) − β(q) does not fall. B_U shifts the margin
    z = Φ^{-1}(q/(m−1)) by s = √2/σ. So with G(z) = dβ/dz the condition is G(z + s) ≥ G(z). The code
    compares logarithms.
    """
    root = np.sqrt(-shape.log_q1) + _beyond(shape)

    def growth(margin: Floats) -> Floats:
        return _log_margin_slope(margin + shape.step, shape) - _log_margin_slope(margin, shape)

    first, last = float(shape.margin(-(root**2))), float(shape.margin(shape.log_q1))
    margin = _negative_at(growth, first, last)
    return None if margin is None else float(shape.log_q(margin))


_CHECKS: Final = {
    "C5 (q0 <= 1/2, B_U(q0) < 1)": _q0_too_large,
    "C5 (the bound rises up to q0)": _not_rising,
    "C5 (the bound is constant beyond q0)": _not_constant,
    "C6 (its growth to B_U(q) rises up to B_L(q0))": _difference_falls,
}


def _beyond(shape: Plateau) -> float:
    """Return the length of the interval of √log(1/q) that the checks of C5 and C6 search.

    The interval begins at q0 (C5) or at q1 (C6). For q smaller than all q of the interval, β is
    almost 0.
    """
    return (shape.order + 1.0) / shape.sigma + 40.0


def _slope_terms(log_q: Floats, shape: Plateau) -> tuple[Floats, Floats]:
    """Return the log of the absolute value, and the sign, of (λ − 1)·dβ/dq at each q.

    Here β is the bound of Theorem 6. The numbers μ1 and μ2 of Theorem 6 minimise the terms in which
    they stand (Proposition 10), so they count as constants in the derivative.

    Theorem 6 has two terms: β = log(J1 + J2)/(λ − 1), with J1 = (1−q)·A^{λ−1} and J2 = q·B^{λ−1}.
    Let r = √log(1/q) and log x = −(r − 1/σ)². The number A of Theorem 6 is (1−q)/(1−x). The
    derivatives of J1 and J2 are:
        dJ1/dlog q = J1·(−λ q/(1−q) + (λ−1)(1 − 1/μ2) x/(1−x)),
        dJ2/dlog q = J2·(1 − (λ−1)/μ2).
    """
    order, sigma = shape.order, shape.sigma
    root = np.sqrt(-log_q)
    mu2 = sigma * root
    log_x = -((root - 1.0 / sigma) ** 2)
    log_1mq = np.log1p(-np.exp(log_q))
    log_1mx = np.log1p(-np.exp(log_x))
    first = order * log_1mq - (order - 1.0) * log_1mx
    over_q = order * (order - 1.0) / sigma**2 - (root - (order - 1.0) / sigma) ** 2 - log_q
    total = np.logaddexp(first, over_q + log_q)
    exponents = np.stack([first - log_1mq, first + log_x - log_q - log_1mx, over_q]) - total
    weights = np.stack(
        [
            np.full(root.shape, -order),
            (order - 1.0) * (1.0 - 1.0 / mu2),
            1.0 - (order - 1.0) / mu2,
        ]
    )
    value, sign = logsumexp(exponents, axis=0, b=weights, return_sign=True)
    # If the value is tiny compared with the largest term, its sign may be a rounding error.
    largest = np.max(exponents + np.log(np.maximum(np.abs(weights), 1e-300)), axis=0)
    noise = np.asarray(value) - largest < np.log(1e-13)
    return np.asarray(value, dtype=np.float64), np.where(noise, 0.0, sign)


def _log_margin_slope(margin: Floats, shape: Plateau) -> Floats:
    """Return the log of dβ/dz plus a constant; −inf where β does not rise."""
    value, sign = _slope_terms(shape.log_q(margin), shape)
    density = -0.5 * margin**2  # dq/dz = (m − 1)·φ(z)
    return np.where(sign > 0.0, value + density, -np.inf)


def _negative_at(function: Callable[[Floats], Floats], low: float, high: float) -> float | None:
    """Return a number in [low, high] at which `function` is negative, or None.

    Values that may be rounding errors of 0 do not count as negative. The search evaluates the
    function on a dense grid, and then refines the deepest local minima.
    """
    grid = np.linspace(low, high, _GRID)
    with np.errstate(invalid="ignore", divide="ignore"):
        values = np.nan_to_num(function(grid), nan=-np.inf)
        inner = (values[1:-1] <= values[:-2]) & (values[1:-1] <= values[2:])
        candidates = np.flatnonzero(np.concatenate([[True], inner, [True]]))
        deepest = candidates[np.argsort(values[candidates], kind="stable")[:_MINIMA]]
        centre, best = grid[deepest], values[deepest]
        width = (high - low) / (_GRID - 1)
        for _ in range(_SLOPE_ZOOMS):
            offsets = np.linspace(-width, width, _SLOPE_ZOOM)
            points = np.clip(centre[:, np.newaxis] + offsets, low, high)
            found = np.nan_to_num(function(points.ravel()), nan=-np.inf).reshape(points.shape)
            at = np.arange(len(centre)), found.argmin(axis=1)
            centre, best = points[at], found[at]
            width *= 2.0 / (_SLOPE_ZOOM - 1)
    worst = int(best.argmin())
    return float(centre[worst]) if best[worst] < -_SLACK else None


CELLS = 1 << 20  # how many numbers are in memory at once, for files of any size

# Smaller values of log Φ are replaced by this value, so that differences of logarithms are finite.
_FLOOR = -1e300


@dataclass(frozen=True)
class Runs:
    """Sorted histograms as runs: each distinct count, with the number of classes that have it.

    A run is a group of classes with equal counts. If a row has fewer runs than other rows, it is
    padded with runs in which `sizes` is 0.

    Attributes:
        winner: the largest count, [rows].
        others: the distinct counts of all classes but the winner, descending, [rows, runs].
        sizes: how many classes have each of the counts in `others`, [rows, runs].
        spent: for each run, how many votes the classes of this run and of all runs with larger
            counts must lose, until each of these classes has the count of the next run,
            [rows, runs]. For the last run of a row, the next count is 0.
        log_tail: log Φ(−g/(√2 σ)) for g = 0, 1, 2, …; here g is the gap between the count of the
            winner and the count of another class.
        cap: log(1 − 1/m), the largest possible log q.
    """

    winner: Ints
    others: Ints
    sizes: Ints
    spent: Ints
    log_tail: Floats
    cap: float

    @classmethod
    def of(cls, histograms: Counts, *, sigma: float, moves: int) -> Runs:
        """Return histograms of whole votes, [rows, classes], as runs of equal counts.

        In later calls of `closer` and `apart`, at most `moves` votes of a row may be moved.
        """
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
        """Return the gap n(1) − n(2) between the two largest counts of each row, [rows]."""
        return np.asarray(self.winner - self.others[:, 0])

    @property
    def losing(self) -> Ints:
        """Return how many votes the classes other than the winner have, Σ_{i≥2} n(i), [rows]."""
        return np.asarray((self.others * self.sizes).sum(axis=1))

    def closer(self, rows: Ints, moves: Ints) -> Floats:
        """Return log q of each row after `moves` votes went from its winner to its runner-up.

        This histogram is n* of Proposition 19.1. If 2·moves ≤ n(1) − n(2), q of n* is the largest q
        of all histograms that can be made from the row by moving at most `moves` votes.
        """
        gaps = np.abs(self.winner[rows, np.newaxis] - self.others[rows] - moves[:, np.newaxis])
        sizes = self.sizes[rows]
        sizes[:, 0] -= 1
        runner_up = self.gap[rows] - 2 * moves
        return self._log_q(
            np.column_stack([runner_up, gaps]), np.column_stack([np.ones_like(rows), sizes])
        )

    def apart(self, rows: Ints, moves: Ints) -> Floats:
        """Return log q of each row after `moves` votes went from its runner-up to its winner.

        The runner-up is the largest of the other classes at each move. The histogram after
        `moves` moves is n** of Proposition 19.2. If moves ≤ Σ_{i≥2} n(i), q of n** is the smallest
        q of all histograms that can be made from the row by moving at most `moves` votes. After the
        moves, the classes that have lost votes have equal counts, or counts that differ by one
        vote.
        """
        others, sizes, spent = self.others[rows], self.sizes[rows], self.spent[rows]
        # All runs up to the first one that needs more votes than there are moves are reduced.
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
        """Return log q by Proposition 7, log Σ weight·Φ(−gap/(√2 σ)), at most log(1 − 1/m)."""
        terms = self.log_tail[np.minimum(gaps, self.log_tail.size - 1)]
        terms[weights == 0] = -np.inf
        largest = terms.max(axis=1)
        terms -= largest[:, np.newaxis]
        union = largest + np.log((weights * np.exp(terms)).sum(axis=1))
        return np.minimum(union, self.cap)


def gnmax_local_sensitivity(
    counts: Counts, *, sigma: float, order: float, teachers: int, weights: Floats
) -> Floats:
    """Return the local sensitivity of GNMax by Algorithm 4 at every distance, summed over queries.

    The sum at distance d is Σ_queries weight · max{LS̃(n') : distance of n and n' ≤ d}, where n is
    the histogram of a query (Theorems 20 and 24). If all votes of the losing classes have been
    moved and q is still above q0, the code uses the plateau of LS̃ at all larger distances. The
    authors computed the figures of the paper with the plateau, too. Lines 19–22 of Algorithm 4 use
    the smaller number LS̃(q([n, 0, …, 0])) instead of the plateau. Both the plateau and
    LS̃(q([n, 0, …, 0])) give a β-smooth upper bound on the local sensitivity.

    Args:
        counts: whole numbers of votes, [queries, classes]; a query has at most `teachers` votes.
        sigma: the standard deviation σ of the noise of GNMax, in votes, from 0.1 to 1e9.
        order: Rényi order λ > 1.
        teachers: the number of teachers; the distances are 0 … teachers − 1.
        weights: the number by which LS̃ of each query is multiplied, at least 0, [queries].

    Returns:
        The local sensitivity by distance, [teachers], nats, non-decreasing. SECRET: it depends on
        the votes.

    Raises:
        ParameterError: σ is out of range.
        ValidityError: condition C5 or C6 is not met at this (σ, m, λ).
    """
    classes = counts.shape[1]
    require_conditions(sigma=sigma, classes=classes, order=order)
    shape = Plateau(sigma, classes, order)
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
    """Return the distances at which LS̃ of each row is neither 0 nor at its plateau.

    Returns:
        Three arrays with one element for each row: whether q of the row is below q1, so that LS̃
        reaches its plateau when q rises; the first distance at which LS̃ is not 0; and the first
        distance at which LS̃ is at its plateau.
    """
    everyone = np.arange(runs.winner.size)
    start, stop = np.zeros((2, everyone.size), dtype=np.int64)
    log_q = runs.apart(everyone, start)

    # Lines 6–17: q rises until it is above q1, or until the two largest counts are equal.
    closer = log_q < shape.log_q1
    rising = everyone[closer]
    stop[rising] = _first(
        lambda rows, moves: runs.closer(rows, moves) > shape.log_q1, rising, runs.gap // 2
    )

    # Lines 18–34: q falls until it is below q0, or until the losing classes have no votes. While q
    # is above B_U(q0), β is constant and LS̃ is 0. The slack covers rounding errors.
    falling = everyone[log_q > shape.log_q0]

    def below(end: float) -> Ints:
        return _first(lambda rows, moves: runs.apart(rows, moves) <= end, falling, runs.losing)

    start[falling] = below(float(shape.above(shape.log_q0)) + 1e-9)
    stop[falling] = below(shape.log_q0)
    return closer, np.minimum(start, teachers), np.minimum(stop, teachers)


def _first(holds: Callable[[Ints, Ints], NDArray[np.bool_]], rows: Ints, last: Ints) -> Ints:
    """Return for each row the first distance, from 0 to last[row], at which `holds` is true.

    If `holds` is true at none of these distances, the result is last[row] + 1. If a distance meets
    the condition, all larger distances must meet the condition, too, because the search is a
    bisection. By Proposition 19, q of n* never falls and q of n** never rises as the distance
    grows. So `holds` may test that q of n* is above a limit, or that q of n** is below a limit.
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
    """Yield all pairs of a row and a distance d with start[row] ≤ d < stop[row], block by block.

    A block is two arrays of equal length (rows, distances).
    """
    ends = np.cumsum(stop[rows] - start[rows])
    pairs = int(ends[-1]) if rows.size else 0
    block = max(1, CELLS // (width + 2))
    for first in range(0, pairs, block):
        pair = np.arange(first, min(first + block, pairs))
        at = np.searchsorted(ends, pair, side="right")
        yield rows[at], np.asarray(stop[rows[at]] - (ends[at] - pair), dtype=np.int64)


def expected_local_sensitivity(
    counts: Counts, scores: Floats, noise: Mapping[str, float], *, order: float, teachers: int
) -> Floats:
    """Return the local sensitivity of the expected RDP cost of a Confident-GNMax run, by distance.

    Table 2 of the paper uses this local sensitivity. By Theorem 24 the result at distance d is a
    sum over queries: each query counts with its largest local sensitivity at the distances up to d.
    The local sensitivity of a query has two terms: the sensitivity of the threshold check, and the
    sensitivity of GNMax multiplied by the probability of an answer. The paper treats the
    probability of an answer as fixed, although it also depends on the votes. So the result of this
    function is an expectation and not a bound.

    Args:
        counts: whole numbers of votes, [queries, classes]; a query has at most `teachers` votes.
        scores: the score of each query, which the threshold check compares with the threshold T,
            [queries], in votes.
        noise: `threshold` T and the standard deviations `sigma1` of the check's noise and `sigma2`
            of GNMax's, in votes; σ2 from 0.1 to 1e9.
        order: Rényi order λ > 1.
        teachers: the number of teachers; the result is for the distances 0 … teachers − 1.

    Returns:
        [teachers], nats. SECRET: it depends on the votes.

    Raises:
        ParameterError: σ2 is out of range, or scores are too far from T.
        ValidityError: condition C5 or C6 is not met at (σ2, m, λ).
    """
    test = {"threshold": noise["threshold"], "sigma": noise["sigma1"]}
    chance = answer_chance(scores, **test)
    check = threshold_local_sensitivity(scores, **test, order=order, teachers=teachers)
    return check + gnmax_local_sensitivity(
        counts, sigma=noise["sigma2"], order=order, teachers=teachers, weights=chance
    )
