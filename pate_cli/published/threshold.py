"""The noisy threshold check as published: answer when score + N(0, σ1²) ≥ T.

The score is the highest count (Algorithm 1) or the highest max_j(n_j − τ p_j) (Algorithm 2).
One teacher moves it by at most 1, so the check is (λ, λ/(2σ1²))-RDP: it costs what a two-class
GNMax with noise √2·σ1 would.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr

from pate_cli.arrays import Floats
from pate_cli.checks import check_positive
from pate_cli.errors import ParameterError
from pate_cli.published.gnmax import rdp_of_log_q
from pate_cli.published.votes_domain import check_scores

__all__ = ["log_probability_answered", "threshold_log_q", "threshold_rdp"]


def log_probability_answered(max_counts: ArrayLike, *, threshold: float, sigma: float) -> Floats:
    """log Pr[answer] = log Φ((v − T)/σ1), Algorithm 1 line 2.

    Args:
        max_counts: score v of each query, [queries], finite reals, in votes.
        threshold: T, any finite number, in votes.
        sigma: standard deviation σ1 > 0 of the noise on the score, in votes.

    Returns:
        [queries], at most 0.

    Raises:
        ParameterError: an argument outside its range.
    """
    return np.asarray(log_ndtr(_standardised(max_counts, threshold, sigma)), dtype=np.float64)


def threshold_log_q(max_counts: ArrayLike, *, threshold: float, sigma: float) -> Floats:
    """log min(Pr[answer], Pr[refuse]): the less likely of the two outcomes. As above otherwise."""
    margin = np.abs(_standardised(max_counts, threshold, sigma))
    return np.asarray(log_ndtr(-margin), dtype=np.float64)


def threshold_rdp(
    max_counts: ArrayLike, *, threshold: float, sigma: float, orders: ArrayLike
) -> Floats:
    """Data-dependent RDP of the check: Theorem 6 with √2·σ1 for σ, at most λ/(2σ1²).

    Args:
        max_counts: score v of each query, [queries], finite reals, in votes.
        threshold: T, any finite number, in votes.
        sigma: standard deviation σ1 > 0 of the noise on the score, in votes.
        orders: Rényi orders λ > 1.

    Returns:
        [orders, queries], nats. Secret: it depends on the votes.

    Raises:
        ParameterError: an argument outside its range.
    """
    log_q = threshold_log_q(max_counts, threshold=threshold, sigma=sigma)
    return rdp_of_log_q(log_q, sigma=np.sqrt(2.0) * sigma, orders=orders)


def _standardised(max_counts: ArrayLike, threshold: float, sigma: float) -> Floats:
    sigma = check_positive("sigma1", sigma)
    if not np.isfinite(threshold):
        raise ParameterError(f"threshold must be finite, got {threshold}")
    with np.errstate(over="ignore"):  # infinitely many σ1 from the threshold: probability 0 or 1
        return (check_scores(max_counts) - threshold) / sigma
