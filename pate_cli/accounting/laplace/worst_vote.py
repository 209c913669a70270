"""What one Laplace noisy argmax costs at most, for all votes.

ε0-DP alone, ε0 = 2/b, allows the divergence of randomised response. An argmax is kinder. Let one
vote move from class a to class b and condition on the largest noisy count among the *other*
classes: given it, three outcomes are left, so by data processing the divergence is at most the
supremum over real x, y of the one between the argmaxes of (x + N, y + N', 0) and
(x + s + N, y − s + N', 0) in units of the scale, s = 1/b. The map (x, y) → (y − s, x + s)
exchanges the two directions. For small λ ε0 this is a third of randomised response.

An added or removed vote shifts a single count, which is ε0/2-DP; the divergence of randomised
response at ε0/2 covers it, and the larger of the two is charged.

The supremum comes with a certificate (THEORY.md, 9.4). Within x0 ≤ x ≤ X + G, y0 ≤ y ≤ X + G + 2s
it is bounded cell by cell (`cell_excess`, `branch_and_bound`), except where x, y ≥ X. Elsewhere
one outcome or two are rare. With c = λ − 1, χ as in `cell_excess` and always the larger of
χ(r) and χ(−r), the excess J − 1 is at most

  x ≤ x0 or y ≤ y0:  f1 + d|χ'|(s + d) + t χ(2s),    t = ½e^{x0 + s} or ½e^{y0},  d of 3s,
  x ≥ X and y ≥ X:   f2 + d|χ'|(2s + d) + t² χ(2s),  t = ½e^{s − X},              d of 4s,
  one of x, y below X, the other at its end:
                     χ(d) + t χ(2s),                 t = ½e^{−X − G} + q(G),      d of 2s,

where d = t(1 − e^{−w})/(1 − t) for "d of w", f1 is the excess of randomised response at s, f2 the
largest of two classes (`two_classes`) and q(g) = (2 + g)/(4e^g).

In closed form, with l = max(0, min(x, y)), h = max(0, max(x, y)) and ½e^{−|t|} the density,

  Pr[x + N wins] = ½e^{x−h} − ⅛e^{x+y−2h}                                        (t above h)
                   + ¼e^{−|x−y|}(h − l),                                if x < y  (t in [l, h])
                   + ½(e^{h−x} − e^{l−x}) − ¼e^{−|x−y|}(h − l),         if x ≥ y
                   + ⅛(e^{2l−x−y} − e^{−x−y}).                                    (t below l)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pate_cli.accounting.branch_and_bound import certified_supremum
from pate_cli.accounting.divergence import renyi_divergence
from pate_cli.accounting.laplace.cell_excess import LOG_ERROR, cell_bounds, larger_chi
from pate_cli.accounting.laplace.randomised_response import randomised_response_rdp
from pate_cli.accounting.laplace.two_classes import laplace_two_class_rdp
from pate_cli.core.arrays import Floats
from pate_cli.core.checks import check_orders, check_positive

__all__ = ["three_way_log_outcomes", "worst_laplace_max_rdp"]


_SLACK = 1e-4
_LOG_2 = float(np.log(2.0))
# Beyond these, moments or probabilities leave float64; randomised response stands.
_MOST_EXPONENT = 600.0
_MOST_SHIFT = 50.0
_STEPS = np.arange(0.25, 600.0, 0.25)
_CELLS_PER_AXIS = 48
_MOST_CELLS = 80_000


def _win(x: Floats, y: Floats) -> Floats:
    """Pr[x + N is above both y + N' and 0]; every exponent is at most 0."""
    low, high = np.maximum(np.minimum(x, y), 0.0), np.maximum(np.maximum(x, y), 0.0)
    above = np.exp(x - high) / 2.0 - np.exp(x + y - 2.0 * high) / 8.0
    apart = np.exp(-np.abs(x - y)) * (high - low) / 4.0
    rising = (np.exp(np.minimum(high - x, 0.0)) - np.exp(np.minimum(low - x, 0.0))) / 2.0
    between = np.where(x < y, apart, rising - apart)
    below = np.where(low > 0.0, np.exp(-np.abs(x - y)) - np.exp(-np.abs(x + y)), 0.0) / 8.0
    return np.asarray(above + between + below, dtype=np.float64)


def _log_below(x: Floats) -> Floats:
    """log Pr[N < −x]."""
    rare = -np.abs(x) - _LOG_2
    return np.where(x >= 0.0, rare, np.log1p(-np.exp(rare)))


def three_way_log_outcomes(x: Floats, y: Floats) -> Floats:
    """log Pr of x + N, of y + N' and of 0 being the largest, stacked on the first axis."""
    return np.stack([np.log(_win(x, y)), np.log(_win(y, x)), _log_below(x) + _log_below(y)])


def _tie(x: Floats, y: Floats) -> Floats:
    """∫ over t > 0 of ¼e^{−|t − x| − |t − y|}: the density of a tie of both above 0."""
    low, high = np.maximum(np.minimum(x, y), 0.0), np.maximum(np.maximum(x, y), 0.0)
    apart = np.exp(-np.abs(x - y))
    below = np.where(low > 0.0, apart - np.exp(-np.abs(x + y)), 0.0)
    return (np.exp(x + y - 2.0 * high) + below) / 8.0 + apart * (high - low) / 4.0


def _outcomes(scores: Floats) -> tuple[Floats, Floats]:
    """Logs of the three chances at [2, cells] scores and their gradients, [3, 2, cells]."""
    x, y = scores
    logs = three_way_log_outcomes(x, y)
    tie = _tie(x, y)
    tie_a, tie_b = tie * np.exp(-logs[0]), tie * np.exp(-logs[1])
    only_x, only_y = -np.abs(x) - _LOG_2 + _log_below(y), -np.abs(y) - _LOG_2 + _log_below(x)
    gradients = np.array(
        [
            [np.exp(only_x - logs[0]) + tie_a, -tie_a],
            [-tie_b, np.exp(only_y - logs[1]) + tie_b],
            [-np.exp(only_x - logs[2]), -np.exp(only_y - logs[2])],
        ]
    )
    return logs, gradients


def _first(holds: NDArray[np.bool_], candidates: Floats) -> float:
    """The first candidate for which it holds, inf if there is none."""
    return float(candidates[np.argmax(holds)]) if holds.any() else np.inf


def _ends(
    *, shift: float, order: float, one_count: float, coin: float, target: float
) -> tuple[float, float, float, float]:
    """−x0, −y0, X and G such that the excess outside is at most `target`; or inf."""
    c = order - 1.0

    def chi_1(r: Floats) -> Floats:
        return c * np.maximum(np.exp(c * r) - np.exp(-r), np.exp(r) - np.exp(-c * r))

    def drift(rare: Floats, width: float) -> Floats:
        return -rare * np.expm1(-width * shift) / (1.0 - rare)

    def two_left(rare: Floats, width: float, apart: float, rdp: float) -> Floats:
        off = drift(rare, width)
        return np.expm1(c * rdp) + off * chi_1(apart * shift + off)

    rare = np.exp(-_STEPS) / 2.0
    most = larger_chi(2.0 * shift, order=order)
    with np.errstate(over="ignore"):
        hopeless = two_left(rare, 3.0, 1.0, one_count) + rare * most
        both = _first(two_left(rare, 4.0, 2.0, coin) + rare**2 * most <= target, _STEPS) + shift
        lose = np.exp(-both - _STEPS) / 2.0 + (2.0 + _STEPS) * np.exp(-_STEPS) / 4.0
        certain = larger_chi(drift(lose, 2.0), order=order) + lose * most
    end = _first(hopeless <= target, _STEPS)
    return end + shift, end, both, _first(certain <= target, _STEPS)


def _seen(*, shift: float, order: float) -> float:
    """The largest divergence at a few thousand scores near where it is largest."""
    near, far = np.linspace(-2.0, 3.0, 41), 0.3 * np.arange(-20.0, 41.0)
    axis = np.concatenate([shift * near, far])
    x, y = (part.ravel() for part in np.meshgrid(axis, axis))
    before, after = three_way_log_outcomes(x, y), three_way_log_outcomes(x + shift, y - shift)
    return float(renyi_divergence(before, after, order=order, axis=0).max())


def _certified(*, shift: float, order: float, one_count: float, coin: float) -> float:
    """The supremum of D_λ over all (x, y), from above; inf where it cannot be certified."""
    c, floor = order - 1.0, max(one_count, coin, _seen(shift=shift, order=order))
    slack = _SLACK + 40.0 * LOG_ERROR / shift
    target = float(np.expm1(c * floor * (1.0 + slack)))
    left, below, both, gap = _ends(
        shift=shift, order=order, one_count=one_count, coin=coin, target=target
    )
    if not np.isfinite(left + below + both + gap):
        return np.inf
    right, above = both + gap, both + gap + 2.0 * shift
    side = max(left + right, below + above) / _CELLS_PER_AXIS
    x, y = np.meshgrid(np.arange(-left, right, side), np.arange(-below, above, side))
    corners = np.stack([x.ravel(), y.ravel()])
    centres = corners[:, ~(corners >= both).all(axis=0)] + side / 2.0
    move = np.array([[shift], [-shift]])

    def bounds(centres: Floats, half: float, wanted: NDArray[np.bool_]) -> tuple[Floats, Floats]:
        del wanted
        x, y = centres
        smooth = ((x > half) | (x < -half - shift)) & ((y < -half) | (y > half + shift))
        value, upper = cell_bounds(
            _outcomes(centres),
            _outcomes(centres + move),
            shift=2.0 * shift,
            half=half,
            order=order,
            smooth=smooth,
        )
        return value[None], upper[None]

    found = certified_supremum(
        bounds,
        centres=centres,
        half=side / 2.0,
        wanted=np.ones((1, centres.shape[1]), dtype=np.bool_),
        orders=np.array([order]),
        floor=np.array([floor]),
        slack=slack,
        most_cells=_MOST_CELLS,
    )
    return float(found[0])


def worst_laplace_max_rdp(
    *, scale: float, classes: int, orders: ArrayLike, teachers_per_record: int = 1
) -> Floats:
    """An upper bound on the cost of any Laplace noisy argmax of votes, data-independent.

    Args:
        scale: b > 0, the scale of the noise on each count (votes).
        classes: number of classes, ≥ 2; with exactly 2 the exact two-class peak is used.
        orders: Rényi orders λ > 1, shape [orders].
        teachers_per_record: k ≥ 1, how many votes of a query a neighbour may change. With k > 1
            and more than two classes they may touch more than two counts, and randomised response
            at k ε0 stands.

    Returns:
        [orders], nats, at most the divergence of randomised response at k ε0 = 2k/b. A certified
        bound on the supremum, 1e-4 of itself above it or a little more where cells run out;
        randomised response is returned where float64 overflows.

    Raises:
        ParameterError: an order ≤ 1, or a scale that is not positive and finite.
    """
    orders = check_orders(orders)
    scale = check_positive("Laplace scale", scale) / teachers_per_record
    shift = 1.0 / scale
    cap = randomised_response_rdp(epsilon=2.0 * shift, orders=orders)
    if classes == 2:
        return np.minimum(laplace_two_class_rdp(0.0, scale=scale, orders=orders), cap)
    if teachers_per_record > 1:
        return cap
    if shift > _MOST_SHIFT:
        return cap
    one_count = randomised_response_rdp(epsilon=shift, orders=orders)
    coins = laplace_two_class_rdp(0.0, scale=scale, orders=orders)
    result = cap.copy()
    for row in np.flatnonzero(2.0 * orders * shift <= _MOST_EXPONENT):
        found = _certified(
            shift=shift,
            order=float(orders[row]),
            one_count=float(one_count[row]),
            coin=float(coins[row]),
        )
        result[row] = min(found, cap[row])
    return result
