"""From Rényi to (ε, δ) as published, and the orders the papers looked at."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pate_cli.arrays import Floats
from pate_cli.checks import check_delta, check_orders
from pate_cli.errors import ParameterError

__all__ = ["MOMENT_ORDERS", "TABLE_ORDERS", "to_epsilon"]


# The 2017 paper computes the moments l = 1..8; moment l is Rényi order l + 1.
MOMENT_ORDERS: tuple[float, ...] = tuple(float(order) for order in range(2, 10))

# Tables 1 and 2 print orders 7.5, 14, 15.5, 20.5 and 50: steps of one half.
TABLE_ORDERS: tuple[float, ...] = tuple(half / 2.0 for half in range(3, 201))


def to_epsilon(rdp: ArrayLike, *, orders: ArrayLike, delta: float) -> Floats:
    """ε at each order. Theorem 5: (λ, ρ)-RDP implies (ρ + log(1/δ)/(λ − 1), δ)-DP.

    The order to report is the one where this is smallest.

    Args:
        rdp: ρ, total Rényi cost at each order, [orders], nats, at least 0; inf is allowed.
        orders: Rényi orders λ > 1, [orders].
        delta: δ in (0, 1).

    Returns:
        [orders], nats.

    Raises:
        ParameterError: an argument outside its range, or lengths that differ.
    """
    order = check_orders(orders)
    cost = np.atleast_1d(np.asarray(rdp, dtype=np.float64))
    if cost.shape != order.shape:
        raise ParameterError(f"rdp {cost.shape} and orders {order.shape} must have one shape")
    if not (cost >= 0.0).all():
        raise ParameterError(f"rdp must be at least 0, got {cost[~(cost >= 0.0)][0]}")
    return cost - np.log(check_delta(delta)) / (order - 1.0)
