"""The exact cost of a noisy argmax with two classes, where the output is one biased coin.

With m = 2 the output is Bernoulli(Φ(z)), z = −(n_1 − n_2)/(σ√2), and one vote moves z by exactly
μ = √2/σ, so the worst neighbour is z ± μ and the cost is a Bernoulli divergence. It is not
monotone on z ≤ 0 (σ = 40, λ = 50: its peak at z = −1.158 is 1.34 times its value at 0), and an
upper bound on q may only be plugged into a non-decreasing function. Hence

  F(z) = sup over u ≤ min(z, 0) of max over z' = u ± μ and both directions of D_λ
       = sup over u ≤ min(z, 0) of G(u),   G(u) = max of D_λ between Φ(u) and Φ(u + μ),

since the pair (u, u − μ) is counted at u − μ already. Exchanging the classes exchanges u and
−u − μ, so the supremum of G over all u is attained at some u ≤ −μ/2. (The two-sided maximum has
that peak twice, at u and at u + μ, with a dip between: searching it for one peak understates F.)
"""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr

from pate_cli.accounting.divergence import bernoulli_excess
from pate_cli.arrays import Floats
from pate_cli.checks import check_orders, check_positive

__all__ = ["two_class_rdp"]


# Nodes of the first search for the peak, per unit of z, and of every later zoom.
_NODES_PER_UNIT = 64
_LOWEST = -40.0
# Beyond this λμ the search would take too long and λ/σ² is charged (such noise hides nothing).
_LARGEST_SHIFT = 500.0
_ZOOMS = 6
_ZOOM_NODES = 33
_RELATIVE_SLACK = 1e-9


def _pair_rdp(z: Floats, moved: Floats, orders: Floats) -> Floats:
    """D_λ between Bernoulli(Φ(z)) and Bernoulli(Φ(moved)), the larger of both directions."""
    column = orders.reshape((-1,) + (1,) * np.ndim(z))
    here, there = (log_ndtr(z), log_ndtr(-z)), (log_ndtr(moved), log_ndtr(-moved))
    worst = np.maximum(
        bernoulli_excess(here, there, order=column), bernoulli_excess(there, here, order=column)
    )
    return np.log1p(worst) / (column - 1.0)


def _peak(*, mu: float, order: Floats) -> tuple[float, float]:
    """Where G is largest on u ≤ −μ/2 and its value, by zooming in on the best cell."""
    # Large shifts push the peak out towards −λμ.
    high = -mu / 2.0
    low = high + _LOWEST - float(order[0]) * mu
    nodes = int((high - low) * _NODES_PER_UNIT) + 1
    at = value = 0.0
    for _ in range(_ZOOMS):
        grid = np.linspace(low, high, nodes)
        cost = _pair_rdp(grid, grid + mu, order)[0]
        best = int(np.argmax(cost))
        at, value = float(grid[best]), float(cost[best])
        low, high = float(grid[max(best - 1, 0)]), float(grid[min(best + 1, nodes - 1)])
        nodes = _ZOOM_NODES
    return at, value


def two_class_rdp(z: Floats, *, sigma: float, orders: Floats) -> Floats:
    """F(z) for m = 2, non-decreasing in z.

    Args:
        z: scores Φ⁻¹(q), any shape.
        sigma: standard deviation of the noise on each count, > 0 (counts).
        orders: Rényi orders λ > 1, shape [orders].

    Returns:
        [orders, *z.shape] in nats, at most λ/σ² (Proposition 8).

    Raises:
        ParameterError: an order ≤ 1, a sigma that is not positive and finite, or NaN.
    """
    orders = check_orders(orders)
    sigma = check_positive("sigma", sigma)
    scores = np.minimum(np.asarray(z, dtype=np.float64), 0.0)
    mu = float(np.sqrt(2.0) / sigma)
    result = _pair_rdp(scores, scores + mu, orders)
    for row, order in enumerate(orders):
        if order * mu > _LARGEST_SHIFT:
            result[row] = order / sigma**2
            continue
        at, value = _peak(mu=mu, order=orders[row : row + 1])
        # Below its peak G increases, so the supremum up to z is G(z) itself.
        result[row] = np.where(scores >= at, value, np.minimum(result[row], value))
        result[row] = np.minimum(result[row] * (1.0 + _RELATIVE_SLACK), order / sigma**2)
    return result
