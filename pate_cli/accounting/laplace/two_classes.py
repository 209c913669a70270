"""The exact cost of a Laplace noisy argmax with two classes, where the output is one biased coin.

With m = 2 and gap g = (n_1 − n_2)/b ≥ 0 the smaller count wins with q(g) = (2 + g)/(4 e^g), the
tail of the difference of two Laplace draws. A moved vote shifts g by ε0 = 2/b, an added or removed
one by half of that; a Bernoulli divergence is convex in the neighbour's probability, in either
direction, so g ± ε0 is worst. The cost is not monotone near a tie, and so

  F(g) = sup over u ≥ g of max(W(u), W(u − ε0)),

where W(u) is the larger divergence between the coins at u and u + ε0. With the peak of W at u*, the
cost peaks at u* and again at u* + ε0: F(g) = W(u*) up to there, W(g − ε0) beyond.

Exchanging the classes exchanges u and −u − ε0 and the directions, so W(u*) is the supremum of one
direction over all real u. It is certified: bounded cell by cell (`cell_excess`, with one axis)
for −ε0 − G ≤ u ≤ G, and beyond, where the loser wins with probability at most q = q(G), the
excess is at most q χ(ε0) + χ(d), d = q(1 − e^{−ε0})/(1 − q), with the larger of χ(r) and χ(−r)
for χ(r). That W decreases beyond u* is observed, not proven.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pate_cli.accounting.branch_and_bound import certified_supremum, where_wanted
from pate_cli.accounting.divergence import bernoulli_excess
from pate_cli.accounting.laplace.cell_excess import LOG_ERROR, cell_bounds, larger_chi
from pate_cli.accounting.laplace.noisy_max import two_class_log_q
from pate_cli.core.arrays import Floats
from pate_cli.core.checks import check_orders, check_positive

_LOG_2 = float(np.log(2.0))
# Each step at least halves the error (the map's slope is 1/(2 + g)).
_STEPS = 60
# The first search for the peak and its zooms.
_NODES_PER_UNIT = 8
_ZOOMS = 6
_ZOOM_NODES = 33
_ROUND_OFF = 1e-9
_SLACK = 1e-6
_FARTHEST = 700.0
_MOST_EXPONENT = 600.0
_MOST_CELLS = 20_000


def gap_of_score(score: ArrayLike) -> Floats:
    """g ≥ 0 with ψ(q(g)) = score, any shape; scores above 0 give a gap of 0."""
    log_q = np.minimum(np.asarray(score, dtype=np.float64), 0.0) - _LOG_2
    gap = -log_q
    for _ in range(_STEPS):
        gap = -log_q + np.log((2.0 + gap) / 4.0)
    return np.maximum(gap, 0.0)


def _sides(gap: Floats) -> tuple[Floats, Floats]:
    """log of the chances that the class behind by `gap` wins and loses, any real gap."""
    rare = two_class_log_q(np.abs(gap))
    likely = np.log1p(-np.exp(rare))
    return np.where(gap >= 0.0, rare, likely), np.where(gap >= 0.0, likely, rare)


def laplace_edge_rdp(gap: ArrayLike, *, shift: float, orders: ArrayLike) -> Floats:
    """W(g): D_λ between the coins at gaps g and g + shift, the larger direction.

    Args:
        gap: real gaps in units of b, any shape.
        shift: how far apart the neighbours are, ≥ 0.
        orders: Rényi orders λ > 1, [orders].

    Returns:
        [orders, *gap.shape], nats; at most `shift`, which replaces what overflows.
    """
    gaps = np.asarray(gap, dtype=np.float64)
    column = check_orders(orders).reshape((-1,) + (1,) * gaps.ndim)
    here, there = _sides(gaps), _sides(gaps + shift)
    worst = np.maximum(
        bernoulli_excess(here, there, order=column), bernoulli_excess(there, here, order=column)
    )
    return np.minimum(np.log1p(worst) / (column - 1.0), shift)


def _peak(*, shift: float, order: Floats) -> tuple[float, float]:
    """Where W is largest on g ≥ −shift/2 and its value, by zooming in on the best cell.

    Edges below are mirror images. Far out W behaves like log(q)/(λ − 1) plus a loss that falls
    short of ε0 by about ε0/(2 + g), so the peak is near the square root of λ ε0 when that is large.
    """
    low, high = -shift / 2.0, 2.0 * float(np.sqrt(order[0] * shift)) + 20.0
    nodes = int((high - low) * _NODES_PER_UNIT) + 1
    at = value = 0.0
    for _ in range(_ZOOMS):
        grid = np.linspace(low, high, nodes)
        cost = laplace_edge_rdp(grid, shift=shift, orders=order)[0]
        best = int(np.argmax(cost))
        at, value = float(grid[best]), float(cost[best])
        low, high = float(grid[max(best - 1, 0)]), float(grid[min(best + 1, nodes - 1)])
        nodes = _ZOOM_NODES
    return at, value


def _outcomes(gap: Floats) -> tuple[Floats, Floats]:
    """Logs of both chances at gaps [cells] and their derivatives, [2, 1, cells]."""
    logs = np.stack(_sides(gap))
    density = np.log1p(np.abs(gap)) - np.abs(gap) - 2.0 * _LOG_2
    return logs, np.exp(density - logs)[:, None] * np.array([[[-1.0]], [[1.0]]])


def _certified(*, shift: float, orders: Floats, seen: Floats) -> Floats:
    """sup of W from above, given a value of it, [orders]; `shift` where float64 overflows."""
    result = np.full(orders.shape, shift)
    able = np.flatnonzero(orders * shift <= _MOST_EXPONENT)
    column = orders[able, None]
    slack = _SLACK + 40.0 * LOG_ERROR / shift
    far = np.arange(1.0, _FARTHEST)
    rare = np.exp(two_class_log_q(far))
    drift = -rare * np.expm1(-shift) / (1.0 - rare)
    some = rare * larger_chi(shift, order=column) + larger_chi(drift, order=column)
    holds = some <= np.expm1((column - 1.0) * seen[able, None] * (1.0 + slack))
    ends = far[np.argmax(holds, axis=1)]
    able, ends = able[holds.any(axis=1)], ends[holds.any(axis=1)]
    if not able.size:
        return result
    # As many on either side of the mirror's centre, so that no order moves another's.
    sizes = np.ceil(2.0 * ends + shift)
    offsets = np.arange(sizes.max()) - (sizes.max() - 1.0) / 2.0

    def bounds(centres: Floats, half: float, wanted: NDArray[np.bool_]) -> tuple[Floats, Floats]:
        (log_p, grad_p), (log_q, grad_q) = _outcomes(centres[0]), _outcomes(centres[0] + shift)

        def found(rows: NDArray[np.intp], cells: NDArray[np.intp]) -> tuple[Floats, Floats]:
            return cell_bounds(
                (log_p[..., cells], grad_p[..., cells]),
                (log_q[..., cells], grad_q[..., cells]),
                shift=shift,
                half=half,
                order=orders[able][rows],
                smooth=np.ones(rows.shape, dtype=np.bool_),
            )

        return where_wanted(wanted, found)

    result[able] = certified_supremum(
        bounds,
        centres=offsets[None] - shift / 2.0,
        half=0.5,
        wanted=2.0 * np.abs(offsets) < sizes[:, None],
        orders=orders[able],
        floor=seen[able],
        slack=slack,
        most_cells=_MOST_CELLS,
    )
    return result


def laplace_two_class_rdp(
    score: ArrayLike, *, scale: float, orders: ArrayLike, peaks: Floats | None = None
) -> Floats:
    """F for m = 2, non-decreasing in the score.

    Args:
        score: ψ(q), any shape.
        scale: b > 0, the scale of the noise on each count (votes).
        orders: Rényi orders λ > 1, shape [orders].
        peaks: F(0) at these orders, where it is known already, [orders].

    Returns:
        [orders, *score.shape] in nats, at most ε0 = 2/b. Up to the peak a certified bound, 1e-6 of
        itself above it.

    Raises:
        ParameterError: an order ≤ 1, or a scale that is not positive and finite.
    """
    orders = check_orders(orders)
    shift = 2.0 / check_positive("Laplace scale", scale)
    gaps = gap_of_score(score)
    result = laplace_edge_rdp(gaps - shift, shift=shift, orders=orders) * (1.0 + _ROUND_OFF)
    at, seen = np.transpose([_peak(shift=shift, order=order[None]) for order in orders])
    if peaks is None:
        peaks = _certified(shift=shift, orders=orders, seen=seen)
    for row, peak in enumerate(peaks.tolist()):
        result[row] = np.where(gaps <= at[row] + shift, peak, np.minimum(result[row], peak))
    return np.minimum(result, shift)
