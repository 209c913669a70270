"""Divergences straight from their definitions."""

import mpmath as mp
import numpy as np
from scipy.special import log_ndtr, logsumexp


def renyi(log_p, log_q, order):
    """D_λ(P ‖ Q) along the last axis: Σ q [(p/q)^λ − 1 − λ(p/q − 1)], nothing cancels."""
    u = log_p - log_q
    with np.errstate(over="ignore", invalid="ignore"):
        excess = np.exp(log_q) * (np.expm1(order * u) - order * np.expm1(u))
        # q may underflow where its product does not; so far apart the three parts differ in size.
        parts = np.exp(order * log_p - (order - 1.0) * log_q) - order * np.exp(log_p)
        excess = np.where(order * u > 20.0, parts + (order - 1.0) * np.exp(log_q), excess)
        near = np.log1p(excess.sum(axis=-1))
    far = logsumexp(order * log_p - (order - 1.0) * log_q, axis=-1)
    return np.where(far > 5.0, far, near) / (order - 1.0)


def worst_pair(epsilon, delta):
    """Laws on four outcomes that are (ε, δ)-close and no closer."""
    likely = (1.0 - delta) / (1.0 + np.exp(-epsilon))
    law = np.array([delta, likely, 1.0 - delta - likely, 0.0])
    return law, law[::-1]


def hockey_stick(p, q, epsilon):
    """sup over events of P − e^ε Q along the last axis."""
    return np.maximum(p - np.exp(epsilon) * q, 0.0).sum(axis=-1)


def exact_gaussian_delta(mu, epsilon):
    """δ of two Gaussians that are μ apart, in 60 digits (Balle and Wang 2018, Theorem 8)."""
    with mp.workdps(60):
        m, e = mp.mpf(mu), mp.mpf(epsilon)
        return mp.ncdf(m / 2 - e / m) - mp.exp(e) * mp.ncdf(-m / 2 - e / m)


def coin(x, y, order):
    """D_λ(Bernoulli(Φ(x)) ‖ Bernoulli(Φ(y))), broadcast."""
    here, there = (np.stack([log_ndtr(z), log_ndtr(-z)], axis=-1) for z in map(np.asarray, (x, y)))
    return renyi(here, there, order)


def worst_coin(x, shift, order):
    """The largest of the four divergences between Φ(x) and Φ(x ± shift)."""
    moved = [(x, x - shift), (x - shift, x), (x, x + shift), (x + shift, x)]
    return np.max([coin(one, other, order) for one, other in moved], axis=0)


def exact_coin(x, y, order, *, digits=60, gain=0):
    """`coin` with many digits; x and y may be mpmath numbers, made under as many digits.

    `gain` is what the outcome "passed" costs on top, as in a chain of two steps.
    """
    with mp.workdps(digits):
        lam = mp.mpf(order)
        (p, refuse), (p2, refuse2) = (
            [mp.erfc(s * mp.mpf(z) / mp.sqrt(2)) / 2 for s in (-1, 1)] for z in (x, y)
        )
        power = p**lam * p2 ** (1 - lam) * mp.exp((lam - 1) * mp.mpf(gain))
        power += refuse**lam * refuse2 ** (1 - lam)
        return mp.log(power) / (lam - 1)


def exact_test(v, other, *, threshold, sigma, order, digits=60, gain=0):
    """`exact_coin` of the threshold tests of two scores."""
    with mp.workdps(digits):
        x, y = ((mp.mpf(s) - mp.mpf(threshold)) / mp.mpf(sigma) for s in (v, other))
        return exact_coin(x, y, order, digits=digits, gain=gain)
