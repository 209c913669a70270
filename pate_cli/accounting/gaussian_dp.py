"""Gaussian differential privacy: the bound that treats all noisy values as seen."""

from __future__ import annotations

import math

from scipy.special import log_ndtr

from pate_cli.checks import check_delta, check_positive

__all__ = ["gaussian_delta", "gaussian_epsilon"]


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
