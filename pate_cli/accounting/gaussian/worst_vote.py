"""What one noisy argmax costs at most, for all votes: w2(λ) ≤ λ/σ².

λ/σ² (Proposition 8 of the ICLR 2018 paper) treats the whole noisy histogram as published. Only
its argmax is. Let one vote move from class a to class b and condition on the largest noisy count
among the *other* classes: given it, three outcomes are left (a wins, b wins, some other class
wins, and which one is decided by the untouched noise), so by data processing the divergence is at
most the supremum over real x, y of the one between the argmaxes of (x + N, y + N', 0) and
(x + s + N, y − s + N', 0), in units of σ, s = 1/σ. The map (x, y) → (y − s, x + s) exchanges the
two directions, so one supremum covers both. At σ = 40, λ = 14 it is 0.6425·λ/σ². It covers an
added or a missing vote as well, a coin of shift s and so no worse than the coin of shift √2 s that
is its limit for x, y → ∞.

The supremum comes with a certificate (THEORY.md, 9.4). On a triangle x ≥ x0, y ≥ y0, x + y ≤ S it
is bounded cell by cell (`cone_excess`, `branch_and_bound`). Outside, one outcome is hopeless and
the other two are a coin but for a factor, uniformly over a half-plane. With c = λ − 1, E = λ c s²
and J' the largest moment of a coin of shift √2 s (`two_classes`), the moment is at most

  x ≤ x0:     e^{E/2} Φ(−x0 − s)^{−c} + e^E Φ(x0 − cs),
  y ≤ y0:     e^{E/2} Φ(−y0 + s)^{−c} + e^E Φ(y0 + cs),
  x + y ≥ S:  J' Φ(S/√2)^{−c} + e^E Φ(−S/2)²,

and x0, y0, S are chosen so that none of these exceeds the answer.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pate_cli.accounting.branch_and_bound import certified_supremum
from pate_cli.accounting.gaussian.cone_excess import (
    Outcomes,
    bounds_where,
    round_off,
)
from pate_cli.accounting.gaussian.noisy_max import SCORE_ERROR
from pate_cli.accounting.gaussian.two_classes import two_class_rdp
from pate_cli.accounting.gaussian.two_tails import two_tail_rdp
from pate_cli.core.arrays import Floats
from pate_cli.core.checks import check_orders, check_positive
from pate_cli.core.special import log_ndtr, ndtri

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(48)
_LOG_2 = float(np.log(2.0))
_LOG_ROOT_2PI = float(0.5 * np.log(2.0 * np.pi))
_ROOT_2 = float(np.sqrt(2.0))
# The window of an integral ends where the integrand is below e^{−32} of its centre.
_DROP = 32.0
_SLACK = 1e-4
# Beyond these float64 overflows or logs lose their digits; the cap stands.
_MOST_EXPONENT = 600.0
_FARTHEST = 60.0
_STEP = 0.125
_MOST_CELLS = 60_000


def _log_win(x: Floats, y: Floats) -> Floats:
    """log Pr[x + N is above both y + N' and 0], by Gauss–Legendre where the mass is.

    With t the winning count, log φ(t − x)Φ(t − y) has a second derivative of at most −1, so it
    lies below a parabola through any centre with the slope there.
    """
    # A win over a larger y happens halfway between the two.
    centre = np.maximum(np.maximum(x, (x + y) / 2.0), 0.0)
    behind = centre - y
    log_behind = log_ndtr(behind)
    slope = x - centre + np.exp(-0.5 * behind**2 - _LOG_ROOT_2PI - log_behind)
    width = np.sqrt(slope**2 + 2.0 * _DROP)
    # slope ± width, free of cancellation.
    right = np.where(slope < 0.0, 2.0 * _DROP / (width - slope), slope + width)
    left = np.where(slope > 0.0, 2.0 * _DROP / (width + slope), width - slope)
    low = np.maximum(centre - left, 0.0)
    half = (centre + right - low) / 2.0
    t = half[..., None] * (_NODES + 1.0)
    # In units of the integrand at the centre, which is no more than e^{1/3} below its largest.
    top = log_behind - 0.5 * (centre - x) ** 2
    ahead, behind = t + (low - x)[..., None], t + (low - y)[..., None]
    there = np.exp(log_ndtr(behind) - 0.5 * ahead**2 - top[..., None])
    return np.log(there @ _WEIGHTS) + top + np.log(half) - _LOG_ROOT_2PI


def _log_wins(x: Floats, y: Floats) -> Floats:
    """Of a, of b and of neither, [3, cells]."""
    neither = log_ndtr(-x) + log_ndtr(-y)
    lower, upper = np.minimum(x, y), np.maximum(x, y)
    less = _log_win(lower, upper)
    # The chances are 1 together, and no digits are lost where what is left is a quarter at least.
    more, rare = np.log1p(-np.minimum(np.exp(less) + np.exp(neither), 0.75)), neither > -_LOG_2
    more[rare] = _log_win(upper[rare], lower[rare])
    return np.stack([np.where(x > y, more, less), np.where(x > y, less, more), neither])


def _outcomes(scores: Floats) -> Outcomes:
    """The three outcomes at scores [2, cells], each derivative as a multiple of the chance."""
    x, y = scores
    wins = _log_wins(x, y)
    # ∫ φ(t − x) φ(t − y) dt over t > 0: the density of a tie of a and b at the top; φ(x)Φ(−y): of
    # a tie of a and 0; φ(x)φ(y): of all three.
    tie = log_ndtr((x + y) / _ROOT_2) - (x - y) ** 2 / 4.0 - _LOG_ROOT_2PI - 0.5 * _LOG_2
    only_x, only_y = (-0.5 * v**2 - _LOG_ROOT_2PI + log_ndtr(-w) for v, w in ((x, y), (y, x)))
    tie_a, tie_b = np.exp(tie - wins[0]), np.exp(tie - wins[1])
    x_a, y_b = np.exp(only_x - wins[0]), np.exp(only_y - wins[1])
    x_0, y_0 = np.exp(only_x - wins[2]), np.exp(only_y - wins[2])
    all_a, all_b, all_0 = np.exp(-0.5 * (x**2 + y**2) - 2.0 * _LOG_ROOT_2PI - wins)
    gradients = np.array([[x_a + tie_a, -tie_a], [-tie_b, y_b + tie_b], [-x_0, -y_0]])
    bend_a, bend_b = tie_a * (x - y) / 2.0, tie_b * (y - x) / 2.0
    cross_a, cross_b = bend_a - all_a / 2.0, bend_b - all_b / 2.0
    hessians = np.array(
        [
            [[all_a / 2.0 - bend_a - x * x_a, cross_a], [cross_a, -bend_a - all_a / 2.0]],
            [[-bend_b - all_b / 2.0, cross_b], [cross_b, all_b / 2.0 - bend_b - y * y_b]],
            [[x * x_0, all_0], [all_0, y * y_0]],
        ]
    )
    return Outcomes(wins, gradients, hessians - gradients[:, :, None] * gradients[:, None])


def _first(holds: NDArray[np.bool_], candidates: Floats) -> float:
    """The first candidate for which it holds, inf if there is none."""
    return float(candidates[np.argmax(holds)]) if holds.any() else np.inf


def _triangle(*, shift: float, order: float, coin: float, slack: float) -> tuple[float, ...]:
    """−x0, −y0 and S such that nothing outside costs more than (1 + slack) coins; or inf."""
    c, exponent = order - 1.0, order * (order - 1.0) * shift**2
    target = np.expm1(c * coin * (1.0 + slack))
    far = np.arange(_STEP, _FARTHEST, _STEP)

    def half_plane(lost: Floats, rare: Floats, moment: float) -> float:
        with np.errstate(over="ignore"):
            return _first(np.expm1(moment - c * lost) + np.exp(exponent + rare) <= target, far)

    left = half_plane(log_ndtr(far - shift), log_ndtr(-far - c * shift), exponent / 2.0)
    below = half_plane(log_ndtr(far + shift), log_ndtr(-far + c * shift), exponent / 2.0)
    above = half_plane(log_ndtr(far / _ROOT_2), 2.0 * log_ndtr(-far / 2.0), c * coin)
    return left, below, above


def _certified(*, shift: float, orders: Floats, coins: Floats, slack: float) -> Floats:
    """The supremum of D_λ over all (x, y), from above; inf where the search would go too far."""
    sides = np.array(
        [
            _triangle(shift=shift, order=float(order), coin=float(coin), slack=slack)
            for order, coin in zip(orders, coins, strict=True)
        ]
    )
    result = np.full(orders.shape, np.inf)
    inside = np.isfinite(sides).all(axis=1)
    if not inside.any():
        return result
    orders, coins, sides = orders[inside], coins[inside], sides[inside]
    left, below, above = np.ceil(sides.max(axis=0))
    x, y = np.meshgrid(np.arange(-left, above + below), np.arange(-below, above + left))
    corners = np.stack([x.ravel(), y.ravel()])
    # A cell is of interest if its side of the triangle's edges is reached by one of its corners.
    wanted = (
        (corners[0] + 1.0 > -sides[:, :1])
        & (corners[1] + 1.0 > -sides[:, 1:2])
        & (corners.sum(axis=0) < sides[:, 2:])
    )
    some = wanted.any(axis=0)
    move = np.array([[shift], [-shift]])

    def bounds(centres: Floats, half: float, wanted: NDArray[np.bool_]) -> tuple[Floats, Floats]:
        before, after = _outcomes(centres), _outcomes(centres + move)
        return bounds_where(wanted, before, after, shift=_ROOT_2 * shift, half=half, orders=orders)

    result[inside] = certified_supremum(
        bounds,
        centres=corners[:, some] + 0.5,
        half=0.5,
        wanted=wanted[:, some],
        orders=orders,
        floor=coins,
        slack=slack,
        most_cells=_MOST_CELLS,
    )
    return result


def worst_argmax_rdp(
    *, sigma: float, classes: int, orders: Floats, teachers_per_record: int = 1
) -> Floats:
    """w2(λ): an upper bound on the cost of any noisy argmax of votes, data-independent.

    A neighbour that changes k > 1 votes of a query may touch more than two classes, and the
    reduction to three outcomes is lost; then the two-tail bound at its highest score stands. It
    holds for any shift of the histogram of length at most k√2.

    Args:
        sigma: standard deviation of the noise on each count, > 0 (counts).
        classes: number of classes, ≥ 2; with exactly 2 the two-class peak is used.
        orders: Rényi orders λ > 1, shape [orders].
        teachers_per_record: k ≥ 1, how many votes of a query a neighbour may change.

    Returns:
        [orders], nats, at most k²λ/σ². For k = 1 or two classes a certified bound: at least the
        supremum, and above what is attained by 1e-4 + 4e-10·σ of itself at most (less for two
        classes), unless cells run out. λ/σ² where λ(λ − 1)/σ² > 600, which float64 does not bear:
        the supremum was then within a hundredth of it wherever tried.

    Raises:
        ParameterError: an order ≤ 1, or a sigma that is not positive and finite.
    """
    orders = check_orders(orders)
    sigma = check_positive("sigma", sigma) / teachers_per_record
    cap = orders / sigma**2
    if teachers_per_record > 1 and classes > 2:
        highest = ndtri(np.array([1.0 - 1.0 / classes])) + SCORE_ERROR
        return two_tail_rdp(highest, sigma=sigma, orders=orders)[:, 0]
    coins = two_class_rdp(np.zeros(1), sigma=sigma, orders=orders)[:, 0]
    if classes == 2:
        return coins
    shift = 1.0 / sigma
    near = orders * (orders - 1.0) * shift**2 <= _MOST_EXPONENT
    result = cap.copy()
    if near.any():
        found = _certified(
            shift=shift, orders=orders[near], coins=coins[near], slack=_SLACK + round_off(shift)
        )
        result[near] = np.minimum(found, cap[near])
    return result
