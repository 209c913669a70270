"""What one Laplace noisy argmax costs at most, for all votes.

ε0-DP alone, ε0 = 2/b, allows the divergence of randomised response. An argmax is kinder. Let one
vote move from class a to class b and condition on the largest noisy count among the *other*
classes: given it, three outcomes are left, so by data processing the divergence is at most the
supremum over real x, y of the one between the argmaxes of (x + N, y + N', 0) and
(x + s + N, y − s + N', 0) in units of the scale, s = 1/b. The map (x, y) → (y − s, x + s)
exchanges the two directions. For small λ ε0 this is a third of randomised response.

An added or removed vote shifts a single count, which is ε0/2-DP; the divergence of randomised
response at ε0/2 covers it.

In closed form, with l = max(0, min(x, y)), h = max(0, max(x, y)) and ½e^{−|t|} the density,

  Pr[x + N wins] = ½e^{x−h} − ⅛e^{x+y−2h}                                        (t above h)
                   + ¼e^{−|x−y|}(h − l),                                if x < y  (t in [l, h])
                   + ½(e^{h−x} − e^{l−x}) − ¼e^{−|x−y|}(h − l),         if x ≥ y
                   + ⅛(e^{2l−x−y} − e^{−x−y}).                                    (t below l)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pate_cli.accounting.divergence import renyi_divergence
from pate_cli.accounting.laplace.randomised_response import randomised_response_rdp
from pate_cli.accounting.laplace.two_classes import laplace_two_class_rdp
from pate_cli.arrays import Floats
from pate_cli.checks import check_orders, check_positive

__all__ = ["three_way_log_outcomes", "worst_laplace_max_rdp"]


_RELATIVE_SLACK = 1e-6
_LOG_2 = float(np.log(2.0))
# Nodes per axis: near the kinks at 0 and s, and geometric out to where e^{−|x|} is negligible.
_NEAR = np.linspace(-2.0, 3.0, 41)
_UNIT = np.linspace(-4.0, 4.0, 41)
_COARSE_SHIFT = 1.0
_FAR = 60
_ZOOMS = 40
_CLOSE = 1e-6
_ZOOM_NODES = 9
# Beyond these, moments or probabilities leave float64; randomised response stands.
_MOST_EXPONENT = 600.0
_MOST_SHIFT = 50.0


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


def _supremum(*, shift: float, order: float) -> float:
    """The largest three-way divergence, by a grid and zooms."""

    def divergence(x: Floats, y: Floats) -> Floats:
        before = three_way_log_outcomes(x, y)
        after = three_way_log_outcomes(x + shift, y - shift)
        return renyi_divergence(before, after, order=order, axis=0)

    extent = 40.0 + 2.0 * float(np.sqrt(order * shift)) + shift
    outside = np.geomspace(3.0 * min(shift, 1.0), extent, _FAR)
    parts = [-outside, shift * _NEAR, outside]
    if shift > _COARSE_SHIFT:  # then the kinks are far apart in units of the density
        parts += [_UNIT - shift, _UNIT, _UNIT + shift]
    axis = np.unique(np.concatenate(parts))
    x, y = (part.ravel() for part in np.meshgrid(axis, axis, indexing="ij"))
    values = divergence(x, y)
    best = int(np.argmax(values))
    value, centre = float(values[best]), np.array([x[best], y[best]])
    # Cells differ in size, and nodes of different parts may nearly coincide.
    index = np.searchsorted(axis, centre)
    ends = axis[np.minimum(index + 1, axis.size - 1)], axis[np.maximum(index - 1, 0)]
    radius = max(*(ends[0] - centre), *(centre - ends[1]), min(shift, 1.0) / 4.0)
    steps = np.linspace(-1.0, 1.0, _ZOOM_NODES)
    for _ in range(_ZOOMS):
        x, y = (
            part.ravel()
            for part in np.meshgrid(centre[0] + radius * steps, centre[1] + radius * steps)
        )
        values = divergence(x, y)
        best = int(np.argmax(values))
        value, moved = max(value, float(values[best])), np.array([x[best], y[best]]) - centre
        # At the border the peak may lie beyond: go on from there with the same radius.
        if np.abs(moved).max() < 0.99 * radius:
            radius /= 3.0
        if radius < _CLOSE * min(shift, 1.0):
            break
        centre = centre + moved
    return value


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
        [orders], nats, at most the divergence of randomised response at k ε0 = 2k/b. The supremum
        is found by a grid and zooms, not by a proof of unimodality; 1e-6 of itself is added,
        and randomised response is returned where float64 overflows.

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
    one_count = randomised_response_rdp(epsilon=shift, orders=orders)
    result = cap.copy()
    if shift > _MOST_SHIFT:
        return cap
    for row in np.flatnonzero(2.0 * orders * shift <= _MOST_EXPONENT):
        found = _supremum(shift=shift, order=float(orders[row])) * (1.0 + _RELATIVE_SLACK)
        if np.isfinite(found):
            result[row] = min(max(found, one_count[row]), cap[row])
    return result
