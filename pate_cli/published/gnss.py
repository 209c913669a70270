"""The GNSS release as published: f(D) + SS_β(D)·N(0, σ²)."""

from __future__ import annotations

import math

from pate_cli.checks import check_order, check_positive
from pate_cli.errors import ParameterError

__all__ = ["gnss_rdp"]


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
