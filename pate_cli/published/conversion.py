"""From Rényi to (ε, δ), and the GNSS release f(D) + SS_β(D)·N(0, σ²), both as published."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pate_cli.core.arrays import Floats
from pate_cli.core.checks import check_delta, check_order, check_orders, check_positive
from pate_cli.core.errors import ParameterError

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


def gnss_rdp(*, beta: float, sigma: float, order: float) -> float:
    """What releasing the noisy cost is published to cost. **Not a bound to stand by.**

    Theorem 23 (Theorem 6 of Appendix B.5 in the conference numbering):
        ε = λ e^{2β}/σ² + (βλ − ½ ln(1 − 2λβ))/(λ − 1)  for 1 < λ < 1/(2β).

    The theorem is false as stated once λβ exceeds about ¼. Its proof divides by 2 s², where s²
    may be as small as (1 − 2λβ)·SS², and then drops that factor as if it were at least ½. The
    exact worst case is λ/(2σ²w) − β − ln(w)/(2(λ − 1)) with w = 1 − (λ − 1)(e^{2β} − 1): infinite
    from w = 0 on and above this figure well before. Every row of the paper's Table 2 has
    λβ ≥ 0.39: MNIST (β = .0329, σ = 6.23, λ = 14) prints 0.518 where the divergence reaches
    1.607. Use the exact formula for anything published; this one repeats Table 2.

    Args:
        beta: smoothness β > 0 of the sensitivity bound.
        sigma: noise multiplier σ > 0 (standard deviation over SS_β).
        order: Rényi order λ, 1 < λ < 1/(2β).

    Returns:
        The published RDP at that order, nats.

    Raises:
        ParameterError: an argument outside its range; for λβ ≥ ½ the message names the range.
    """
    beta = check_positive("beta", beta)
    sigma = check_positive("GNSS sigma", sigma)
    order = check_order(order)
    if not 2.0 * order * beta < 1.0:
        raise ParameterError(
            f"the published GNSS theorem needs 1 < order < 1/(2 beta) = {0.5 / beta:.6g}"
            f" (beta < {0.5 / order:.6g} at this order), got order {order:g} with beta {beta:g}"
        )
    noise = order * math.exp(2.0 * beta) / sigma**2
    return noise + (beta * order - 0.5 * math.log1p(-2.0 * order * beta)) / (order - 1.0)
