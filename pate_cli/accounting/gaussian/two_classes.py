"""The exact cost of a noisy argmax with two classes, where the output is one biased coin.

With m = 2 the output is Bernoulli(Φ(z)), z = −(n_1 − n_2)/(σ√2), and one vote moves z by exactly
μ = √2/σ, so the worst neighbour is z ± μ and the cost is a Bernoulli divergence. It is not
monotone on z ≤ 0 (σ = 40, λ = 50: its peak at z = −1.158 is 1.34 times its value at 0), and an
upper bound on q may only be plugged into a non-decreasing function. Hence

  F(z) = sup over u ≤ min(z, 0) of max over z' = u ± μ and both directions of D_λ
       = sup over u ≤ min(z, 0) of G(u),   G(u) = max of D_λ between Φ(u) and Φ(u + μ),

since the pair (u, u − μ) is counted at u − μ already. Exchanging the classes exchanges u and
−u − μ and the two directions. So the supremum of either direction over all real u is that of G,
and u ≤ −μ/2 is enough for F.

The peak is certified: bounded cell by cell (`cone_excess`, with one axis) wherever it can be. With
E = λcμ²/2 the moment of either direction is at most

  Φ(−u0 − μ)^{−c} + e^E Φ(u0 + λμ)    for all u ≤ u0

(section 9.4 of THEORY.md), e^{−680} above 1 where the cells end. Below the peak F is taken to be G:
that G increases there is observed, not proven.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pate_cli.accounting.branch_and_bound import certified_supremum
from pate_cli.accounting.divergence import bernoulli_excess
from pate_cli.accounting.gaussian.cone_excess import (
    Outcomes,
    bounds_where,
    round_off,
)
from pate_cli.core.arrays import Floats
from pate_cli.core.checks import check_orders, check_positive
from pate_cli.core.special import log_ndtr

_LOG_ROOT_2PI = float(0.5 * np.log(2.0 * np.pi))
_SLACK = 1e-8
_MOST_CELLS = 20_000
_PARTS = 8
# Beyond this λμ the search would take too long and λ/σ² is charged (such noise hides nothing).
_LARGEST_SHIFT = 500.0
_MOST_EXPONENT = 700.0
# Cells begin where the bound on all that is further out is e^{−680}.
_NEGLIGIBLE = 680.0
# Nodes of the search for the peak's place, per unit of z, and of every later zoom.
_NODES_PER_UNIT = 8
_LOWEST = -40.0
_ZOOMS = 6
_ZOOM_NODES = 33
_ROUND_OFF = 1e-9


def _coin(z: Floats) -> Outcomes:
    """The coin Φ(z) on one axis, cells [cells]."""
    logs = np.stack([log_ndtr(z), log_ndtr(-z)])
    hazard = np.exp(-0.5 * z**2 - _LOG_ROOT_2PI - logs)
    signed = hazard * np.array([[1.0], [-1.0]])
    return Outcomes(logs, signed[:, None], (-signed * (z + signed))[:, None, None])


def _pair_rdp(z: Floats, moved: Floats, orders: Floats) -> Floats:
    """D_λ between Bernoulli(Φ(z)) and Bernoulli(Φ(moved)), the larger of both directions."""
    column = orders.reshape((-1,) + (1,) * np.ndim(z))
    here, there = (log_ndtr(z), log_ndtr(-z)), (log_ndtr(moved), log_ndtr(-moved))
    worst = np.maximum(
        bernoulli_excess(here, there, order=column), bernoulli_excess(there, here, order=column)
    )
    return np.log1p(worst) / (column - 1.0)


def _lowest(mu: float, order: float) -> float:
    """Where cells begin."""
    return -order * mu - float(np.sqrt(order * (order - 1.0) * mu**2 + 2.0 * _NEGLIGIBLE))


def _peaks(*, mu: float, orders: Floats) -> Floats:
    """sup over all real u of G, from above; inf where float64 overflows."""
    result = np.full(orders.shape, np.inf)
    able = orders * (orders - 1.0) * mu**2 / 2.0 <= _MOST_EXPONENT
    if not able.any():
        return result
    able_orders = orders[able]
    lowest = min(_lowest(mu, float(order)) for order in able_orders)
    # Both ends lie as far from the mirror's centre −μ/2; beyond, e^{−680} at most. As many cells on
    # either side, so that no order moves those of another.
    cells = 2 * int(np.ceil(-mu / 2.0 - lowest))
    centres = np.arange(cells, dtype=np.float64)[None] - (mu + cells - 1) / 2.0

    def bounds(centres: Floats, half: float, wanted: NDArray[np.bool_]) -> tuple[Floats, Floats]:
        before, after = _coin(centres[0] + mu), _coin(centres[0])
        return bounds_where(wanted, before, after, shift=mu, half=half, orders=able_orders)

    result[able] = certified_supremum(
        bounds,
        centres=centres,
        half=0.5,
        wanted=np.ones((able_orders.size, cells), dtype=np.bool_),
        orders=able_orders,
        floor=np.zeros(able_orders.shape),
        slack=_SLACK + round_off(mu),
        most_cells=_MOST_CELLS,
        parts=_PARTS,
    )
    return result


def _peak_at(*, mu: float, order: Floats) -> float:
    """Where G is largest on u ≤ −μ/2, by zooming in on the best cell."""
    # Large shifts push the peak out towards −λμ.
    high = -mu / 2.0
    low = high + _LOWEST - float(order[0]) * mu
    nodes = int((high - low) * _NODES_PER_UNIT) + 1
    at = high
    for _ in range(_ZOOMS):
        grid = np.linspace(low, high, nodes)
        best = int(np.argmax(_pair_rdp(grid, grid + mu, order)[0]))
        at = float(grid[best])
        low, high = float(grid[max(best - 1, 0)]), float(grid[min(best + 1, nodes - 1)])
        nodes = _ZOOM_NODES
    return at


def two_class_rdp(
    z: Floats, *, sigma: float, orders: Floats, peaks: Floats | None = None
) -> Floats:
    """F(z) for m = 2, non-decreasing in z.

    Args:
        z: scores Φ⁻¹(q), any shape.
        sigma: standard deviation of the noise on each count, > 0 (counts).
        orders: Rényi orders λ > 1, shape [orders].
        peaks: F(0) at these orders, where it is known already, [orders].

    Returns:
        [orders, *z.shape] in nats, at most λ/σ² (Proposition 8). From the peak on a certified
        bound, 1e-8 of itself above it (more beyond σ = 40, by the round-off to be covered).

    Raises:
        ParameterError: an order ≤ 1, a sigma that is not positive and finite, or NaN.
    """
    orders = check_orders(orders)
    sigma = check_positive("sigma", sigma)
    scores = np.minimum(np.asarray(z, dtype=np.float64), 0.0)
    mu = float(np.sqrt(2.0) / sigma)
    cap = orders / sigma**2
    result = np.broadcast_to(cap.reshape((-1,) + (1,) * scores.ndim), (orders.size, *scores.shape))
    result = result.copy()
    searched = np.flatnonzero(orders * mu <= _LARGEST_SHIFT)
    if not searched.size:
        return result
    if peaks is None:
        highest = np.minimum(_peaks(mu=mu, orders=orders[searched]), cap[searched])
    else:
        highest = peaks[searched]
    low = scores < -mu / 2.0
    for row, peak in zip(searched.tolist(), highest.tolist(), strict=True):
        result[row] = peak
        if low.any():
            order = orders[row : row + 1]
            cost = _pair_rdp(scores, scores + mu, order)[0] * (1.0 + _ROUND_OFF)
            below = scores < _peak_at(mu=mu, order=order)
            result[row] = np.where(below, np.minimum(cost, peak), peak)
    return result
