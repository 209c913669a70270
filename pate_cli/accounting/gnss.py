"""Gaussian noise scaled by smooth sensitivity (GNSS), charged exactly.

The release f(D) + SS_β(D)·(κ + σ·N(0, 1)) compares, between neighbours D and D', two Gaussians with
different means *and* different standard deviations: r = SS(D')/SS(D) may be anything in
[e^{−β}, e^{β}] while |f(D) − f(D')| ≤ min(SS(D), SS(D')). The Rényi divergence of order λ is then
at most its value at r = e^{−β}, where f and the shift κ·SS move the same way:

  ε_κ(λ) = λ (1 + κ(e^β − 1))² / (2σ²w) − β − log(w) / (2(λ − 1)),   w = 1 − (λ − 1)(e^{2β} − 1),

for w > 0, and infinite otherwise. It is attained (on the path {−1, 0, 1} with
f = (−1, 0, e^{−β}) when κ = 0), so it cannot be improved. Proof in THEORY.md, section 6.

DEPARTURE. Theorem 6 of appendix B.5 of the ICLR 2018 paper (Theorem 23 in the arXiv numbering)
claims λe^{2β}/σ² + (βλ − ½ log(1 − 2λβ))/(λ − 1). That is false for λβ above about ¼: at the
MNIST row of its Table 2 (β = 0.0329, σ = 6.23, λ = 14) it gives 0.518; the divergence is 1.607.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import ndtri

from pate_cli.core.arrays import Floats
from pate_cli.core.checks import check_nonnegative, check_order, check_positive
from pate_cli.core.errors import ParameterError

__all__ = ["gnss_costs", "gnss_rdp", "largest_beta", "largest_order", "shift_quantile"]


# Past it e^{2β} overflows; no float64 above 1 is an order that admits even a tenth of it.
_LARGEST_BETA = 300.0


def largest_beta(order: float) -> float:
    """β must stay below this for the divergence of the given order to be finite."""
    return 0.5 * math.log1p(1.0 / (check_order(order) - 1.0))


def largest_order(beta: float) -> float:
    """λ must stay below this for the divergence at the given β to be finite."""
    twice = 2.0 * check_positive("beta", beta)
    return 1.0 - math.exp(-twice) / math.expm1(-twice)  # 1/(e^{2β} − 1) without overflow


def shift_quantile(delta_failure: float) -> float:
    """κ/σ = Φ⁻¹(1 − δ') of a release that is too low with probability δ' only; 0 for δ' = 0."""
    return float(-ndtri(delta_failure)) if delta_failure > 0.0 else 0.0


def _cost(beta: Any, sigma: Any, order: float, quantile: float, library: Any) -> Any:
    """ε_κ(λ) of numbers (library `math`) or arrays (`numpy`), κ = quantile·σ, x < 1.

    With x = (λ − 1)·expm1(2β), so that small β do not cancel: λ(1/σ + (κ/σ)·expm1(β))²/(2(1 − x))
    + [expm1(2β)/2 − β] + [−log1p(−x) − x]/(2(λ − 1)).
    """
    x = (order - 1.0) * library.expm1(2.0 * beta)
    moved = 1.0 / sigma + quantile * library.expm1(beta)
    mean = order * moved * moved / (2.0 * (1.0 - x))
    spread = library.expm1(2.0 * beta) / 2.0 - beta
    return mean + spread + (-library.log1p(-x) - x) / (2.0 * (order - 1.0))


def gnss_costs(betas: Floats, sigmas: Floats, *, order: float, quantile: float) -> Floats:
    """ε_κ(λ) for many β and σ at once, κ = quantile·σ: broadcast, nats, infinite for large β."""
    fits = betas < largest_beta(order)
    cost = _cost(np.where(fits, betas, 0.0), sigmas, order, quantile, np)
    return np.where(fits, cost, np.inf)


def gnss_rdp(*, beta: float, sigma: float, order: float, shift: float = 0.0) -> float:
    """ε_κ(λ): what one sanitized release costs at the given Rényi order.

    Args:
        beta: smoothness β > 0 (per vote).
        sigma: standard deviation of the noise in units of SS_β, > 0.
        order: Rényi order λ > 1.
        shift: κ ≥ 0, how many smooth sensitivities the release is shifted up by.

    Returns:
        Nats.

    Raises:
        ParameterError: a number out of range, or β too large for the order (the message names
            the admissible range), where the divergence is infinite.
    """
    beta = check_positive("beta", beta)
    sigma = check_positive("sigma_release", sigma)
    order = check_order(order)
    shift = check_nonnegative("shift", shift)
    if (order - 1.0) * math.expm1(2.0 * min(beta, _LARGEST_BETA)) >= 1.0:
        raise ParameterError(
            f"beta={beta:g} at order {order:g} has infinite privacy cost; "
            f"beta must be below {largest_beta(order):.6g} at this order, "
            f"or the order below {largest_order(beta):.6g} at this beta"
        )
    cost = float(_cost(beta, sigma, order, shift / sigma, math))
    if not math.isfinite(cost):
        raise ParameterError(f"sigma_release={sigma:g} is so small that its cost overflows")
    return cost
