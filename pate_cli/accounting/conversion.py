"""From Rényi or Gaussian differential privacy to (ε, δ), rounded towards more privacy loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal

import numpy as np
from scipy.special import log_ndtr

from pate_cli.core.arrays import Floats
from pate_cli.core.checks import check_delta, check_orders, check_positive
from pate_cli.core.errors import ParameterError

__all__ = [
    "BestOrder",
    "best_order",
    "conversion_cost",
    "gaussian_delta",
    "gaussian_epsilon",
    "round_up",
    "significant_up",
]


def conversion_cost(orders: Floats, *, delta: float) -> Floats:
    """What turning RDP at each order into ε costs: log(1 − 1/λ) − (log δ + log λ)/(λ − 1).

    Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy" (2020),
    Proposition 12 (also Balle et al. 2020): ε = rdp + this. Sharper than the paper's Theorem 2,
    log(1/δ)/(λ − 1), at every order. May be negative; ε itself never is.

    Args:
        orders: Rényi orders λ > 1, [orders].
        delta: δ in (0, 1).

    Returns:
        [orders], nats.

    Raises:
        ParameterError: an order ≤ 1 or a δ outside (0, 1).
    """
    orders = check_orders(orders)
    delta = check_delta(delta)
    return np.log1p(-1.0 / orders) - (np.log(delta) + np.log(orders)) / (orders - 1.0)


@dataclass(frozen=True)
class BestOrder:
    """An ε and where on the grid of orders it was found.

    Attributes:
        epsilon: in nats, ≥ 0.
        order: the minimising Rényi order.
        at_edge: the order is the first or last of a grid of several: a wider grid may do better.
    """

    epsilon: float
    order: float
    at_edge: bool


def best_order(rdp: Floats, *, orders: Floats, delta: float) -> BestOrder:
    """The smallest max(0, rdp + conversion) over the orders.

    Only for a curve that holds at every order at once (RDP); the ex-post guarantee of adaptive
    rounds and a sanitized release hold at one order fixed beforehand.

    Raises:
        ParameterError: an order ≤ 1, a δ outside (0, 1), or an rdp that is negative, NaN or of
            another shape than the orders (it may be infinite).
    """
    orders = check_orders(orders)
    curve = np.asarray(rdp, dtype=np.float64)
    if curve.shape != orders.shape or not np.all(curve >= 0.0):
        raise ParameterError(f"rdp must hold one number ≥ 0 for each of {orders.size} orders")
    epsilon = np.maximum(curve + conversion_cost(orders, delta=delta), 0.0)
    index = int(np.argmin(epsilon))
    return BestOrder(
        epsilon=float(epsilon[index]),
        order=float(orders[index]),
        at_edge=orders.size > 1 and index in (0, orders.size - 1),
    )


def gaussian_delta(*, mu: float, epsilon: float) -> float:
    """δ(ε) of μ-GDP: Φ(−ε/μ + μ/2) − e^ε Φ(−ε/μ − μ/2).

    Dong, Roth and Su, "Gaussian Differential Privacy" (2022), Corollary 2.13; Balle and Wang
    (2018), Theorem 8. Evaluated as Φ(a)·(1 − e^{ε + log Φ(b) − log Φ(a)}).
    """
    mu = check_positive("mu", mu)
    log_first = float(log_ndtr(-epsilon / mu + mu / 2.0))
    log_second = epsilon + float(log_ndtr(-epsilon / mu - mu / 2.0))
    return math.exp(log_first) * -math.expm1(min(log_second - log_first, 0.0))


def gaussian_epsilon(*, mu: float, delta: float) -> float:
    """An ε ≥ 0 at which μ-GDP has at most the given δ, within 1e-12 relative of the smallest.

    δ(ε) is decreasing, so plain bisection keeps a bracket whose upper end is always a valid ε,
    and that end is returned.

    Args:
        mu: total μ, > 0; compositions add squares.
        delta: δ in (0, 1).

    Returns:
        ε in nats.

    Raises:
        ParameterError: μ not positive and finite, or δ outside (0, 1).
    """
    delta = check_delta(delta)
    if gaussian_delta(mu=mu, epsilon=0.0) <= delta:
        return 0.0
    low, high = 0.0, 1.0
    while gaussian_delta(mu=mu, epsilon=high) > delta:
        low, high = high, 2.0 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2.0
        if gaussian_delta(mu=mu, epsilon=middle) > delta:
            low = middle
        else:
            high = middle
    return high


def round_up(value: float, *, digits: int = 4) -> float:
    """The smallest number with `digits` decimals that is not below `value`.

    Printed privacy losses are rounded up, and a released one must be rounded: the low bits of a
    raw double carry information about the votes (Mironov 2012).

    Raises:
        ParameterError: an infinity or NaN.
    """
    if not math.isfinite(value):
        raise ParameterError(f"only a finite number can be rounded up, got {value}")
    nearest = round(float(value), digits) + 0.0  # no negative zero
    return nearest if nearest >= value else round(nearest + 10.0**-digits, digits)


def significant_up(value: float | Decimal, *, digits: int = 6) -> float:
    """The smallest number of so many significant digits that is not below a finite `value`.

    Six digits are what messages show of a number; they then show all of it.
    """
    # The nearest double of a decimal number that is not below a double is not below it, either.
    rounding = Context(prec=digits, rounding=ROUND_CEILING)
    return float(rounding.create_decimal(Decimal(value)))
