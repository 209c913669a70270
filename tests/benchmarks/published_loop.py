"""The analysis of the 2018 paper as its scripts do it: one query after the other.

Written from the formulas alone, so that it is an oracle for `pate cost --analysis paper` and a
measure of what a loop over queries takes. As in published scripts, a query's orders and gaps are
arrays, tails are those of scipy.stats, and everything else is a number.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

__all__ = ["confident_cost"]

_Floats = NDArray[np.float64]


def confident_cost(
    votes: Iterable[NDArray[np.number]],
    *,
    threshold: float,
    sigma1: float,
    sigma2: float,
    orders: _Floats,
) -> tuple[_Floats, float]:
    """(Σ expected Rényi cost at each order, expected answers) of Confident-GNMax.

    Each query pays for its threshold check, and for its argmax with the chance that the check is
    passed. σ's and the threshold are in votes, costs in nats.
    """
    total, answers = np.zeros(len(orders)), 0.0
    for counts in votes:
        log_pass = float(norm.logsf(threshold - float(max(counts)), scale=sigma1))
        chance = math.exp(log_pass)
        log_rarer = min(log_pass, _log_complement(log_pass))
        # A teacher moves one count by one, not two: as GNMax with √2 the noise.
        check = _gaussian_rdp(log_rarer, math.sqrt(2.0) * sigma1, orders)
        argmax = _gaussian_rdp(_log_q(counts, sigma2), sigma2, orders)
        total += check + chance * argmax
        answers += chance
    return total, answers


def _log_q(counts: NDArray[np.number], sigma: float) -> float:
    """Proposition 7: q = ½ Σ erfc((n* − n_i) / 2σ) over the others, at most 1 − 1/m."""
    favourite = int(np.argmax(counts))
    gaps = float(counts[favourite]) - np.delete(counts, favourite).astype(np.float64)
    tails = norm.logsf(gaps, scale=math.sqrt(2.0) * sigma)
    top = float(tails.max())
    union = top + math.log(float(np.exp(tails - top).sum()))
    return min(union, math.log1p(-1.0 / len(counts)))


def _log_complement(log_p: float) -> float:
    """log(1 − p)."""
    return math.log(-math.expm1(log_p)) if log_p < 0.0 else -math.inf


def _gaussian_rdp(log_q: float, sigma: float, orders: _Floats) -> _Floats:
    """Theorem 6 at the μ1, μ2 of Proposition 10 where it applies; else Proposition 8's λ/σ²."""
    independent = orders / sigma**2
    if log_q == -math.inf:
        return np.zeros(len(orders))
    mu2 = sigma * math.sqrt(-log_q)
    mu1 = mu2 + 1.0
    if mu2 <= 1.0:
        return independent
    eps1, eps2 = mu1 / sigma**2, mu2 / sigma**2
    ceiling = (mu2 - 1.0) * eps2 - mu2 * math.log(mu1 / (mu1 - 1.0) * mu2 / (mu2 - 1.0))
    if log_q > ceiling:
        return independent
    log_1q = _log_complement(log_q)
    log_a = log_1q - _log_complement((log_q + eps2) * (mu2 - 1.0) / mu2)
    log_b = eps1 - log_q / (mu1 - 1.0)
    sums = np.logaddexp(log_1q + (orders - 1.0) * log_a, log_q + (orders - 1.0) * log_b)
    bound = np.where(orders <= mu1, sums / (orders - 1.0), np.inf)
    return np.minimum(bound, independent)
