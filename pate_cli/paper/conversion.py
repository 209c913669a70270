"""From Rényi to (ε, δ), and the GNSS release f(D) + SS_β(D)·N(0, σ²), both as published."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from pate_cli.core.arrays import Floats
from pate_cli.core.checks import check_orders
from pate_cli.core.errors import ParameterError

# Tables 1 and 2 print orders 7.5, 14, 15.5, 20.5 and 50: steps of one half.
TABLE_ORDERS: Final = tuple(half / 2.0 for half in range(3, 201))


def to_epsilon(rdp: ArrayLike, *, orders: ArrayLike, delta: float) -> Floats:
    """ε at each order. Theorem 5: (λ, ρ)-RDP implies (ρ + log(1/δ)/(λ − 1), δ)-DP.

    The paper reports the order at which this is smallest.

    Args:
        rdp: ρ, total RDP cost at each order, [orders], nats.
        orders: Rényi orders λ > 1, [orders].
        delta: δ in (0, 1).

    Returns:
        [orders], nats.
    """
    return np.asarray(rdp, dtype=np.float64) - math.log(delta) / (check_orders(orders) - 1.0)


def published_gnss_rdp(*, beta: float, sigma: float, order: float) -> float:
    """RDP cost that the paper claims for releasing the noisy cost, nats. **It is not a bound.**

    Theorem 23 (Theorem 6 of Appendix B.5 in the conference numbering):
        ε = λ e^{2β}/σ² + (βλ − ½ ln(1 − 2λβ))/(λ − 1)  for 1 < λ < 1/(2β).

    The theorem is false as stated once λβ exceeds about ¼. Its proof divides by 2 s², where s²
    may be as small as (1 − 2λβ)·SS², and then drops that factor as if it were at least ½. The
    exact worst case (`accounting.sensitivity`) is λ/(2σ²w) − β − ln(w)/(2(λ − 1)) with
    w = 1 − (λ − 1)(e^{2β} − 1): infinite from w = 0 on and above this figure well before. Every
    row of the paper's Table 2 has λβ ≥ 0.39: MNIST (β = .0329, σ = 6.23, λ = 14) prints 0.518
    where the divergence reaches 1.607.

    Args:
        beta: smoothness β > 0 of the sensitivity bound.
        sigma: noise multiplier σ > 0 (standard deviation over SS_β).
        order: Rényi order λ, 1 < λ < 1/(2β).

    Raises:
        ParameterError: λβ ≥ ½; the message names the range.
    """
    if not 2.0 * order * beta < 1.0:
        raise ParameterError(
            f"the published GNSS theorem needs 1 < order < 1/(2 beta) = {0.5 / beta:.6g}"
            f" (beta < {0.5 / order:.6g} at this order), got order {order:g} with beta {beta:g}"
        )
    noise = order * math.exp(2.0 * beta) / sigma**2
    return noise + (beta * order - 0.5 * math.log1p(-2.0 * order * beta)) / (order - 1.0)
