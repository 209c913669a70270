"""Rényi divergence of finite distributions, to full relative precision.

With c = λ − 1, u = log(p/q) per outcome and Σ q = Σ p e^{−u} = 1,

  E_q[(p/q)^λ] − 1 = Σ p (e^{cu} − 1) = Σ p [expm1(c u) + c·expm1(−u)],

where the added terms sum to zero. Every bracket is convex in u with its minimum 0 at u = 0, so
nothing cancels between outcomes: neighbouring distributions whose divergence is 1e-12 still come
out with many correct digits, where log Σ p^λ q^{1−λ} would return noise.
"""

from __future__ import annotations

import numpy as np

from pate_cli.core.arrays import Floats

_FAR = 50.0
# Units in the last place that log_ndtr and what is made of it may be off by; and what differences
# of logs of moderate size lose.
_ULPS, _SMALL_LOSS = 16.0, 1e-9
# What underflows is no more than this.
_LEAST = 1e-300


def excess_moment(log_p: Floats, log_q: Floats, *, order: float | Floats) -> Floats:
    """p·[expm1(c u) + c·expm1(−u)] per outcome, c = λ − 1; sum it over outcomes for J − 1.

    Args:
        log_p, log_q: logs of the outcome's two probabilities, any broadcastable shapes.
        order: Rényi order λ > 1, broadcastable.

    Returns:
        Non-negative terms; +inf on overflow, 0 where p = 0 (then the outcome costs c·q, which
        the other outcomes' −c·p terms do not see, so it is returned as c·q).
    """
    c = np.asarray(order, dtype=np.float64) - 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        gain = log_p - log_q
        bracket = np.expm1(c * gain) + c * np.expm1(-gain)
        # exp(log_p) may underflow where a product with it does not. Far apart, one part of the
        # bracket is all there is, to the last digit: p·c·expm1(−u) = c(q − p) or p·expm1(cu).
        terms = np.where(gain < -_FAR, c * (np.exp(log_q) - np.exp(log_p)), np.exp(log_p) * bracket)
        terms = np.where(c * gain > _FAR, np.exp(log_p + c * gain), terms)
        # An outcome that neither side ever gives costs nothing.
        terms = np.where(np.isneginf(log_p) & np.isneginf(log_q), 0.0, terms)
    return np.maximum(np.nan_to_num(terms, nan=np.inf, posinf=np.inf), 0.0)


def excess_raised(log_p: Floats, log_q: Floats, *, order: float) -> Floats:
    """`excess_moment`, no less than it is for the probabilities that the logs are rounded from.

    The logarithm of a product p^λ q^{1−λ} is off by its own rounding, λ|log p| + (λ−1)|log q| times
    a few units in the last place: nothing for probabilities that matter, everything for 1e-1e15.

    Returns:
        Terms as there; +inf where nothing is known of them.
    """
    terms = np.maximum(excess_moment(log_p, log_q, order=order), _LEAST)
    return terms * _lost(log_p, log_q, order=order)


def weight_raised(log_p: Floats, log_q: Floats, *, order: float) -> Floats:
    """p^λ q^{1−λ} in the same way."""
    with np.errstate(over="ignore"):
        weight = np.exp(order * log_p - (order - 1.0) * log_q)
    return np.maximum(weight, _LEAST) * _lost(log_p, log_q, order=order)


def _lost(log_p: Floats, log_q: Floats, *, order: float) -> Floats:
    """The factor that rounding may have taken off; +inf where it may be any."""
    size = order * np.abs(log_p) + (order - 1.0) * np.abs(log_q)
    lost = _ULPS * np.finfo(np.float64).eps * size
    factor = (1.0 + _SMALL_LOSS) * np.exp(np.minimum(lost, 1.0))
    return np.where(lost < 1.0, factor, np.inf)


def bernoulli_excess(
    log_p: tuple[Floats, Floats], log_q: tuple[Floats, Floats], *, order: float | Floats
) -> Floats:
    """J − 1 for two outcomes given as (log Pr[yes], log Pr[no]) on either side."""
    return excess_moment(log_p[0], log_q[0], order=order) + excess_moment(
        log_p[1], log_q[1], order=order
    )


def renyi_divergence(
    log_p: Floats, log_q: Floats, *, order: float | Floats, axis: int = -1
) -> Floats:
    """D_λ(P ‖ Q) in nats for distributions given by log probabilities along `axis`."""
    excess = np.sum(excess_moment(log_p, log_q, order=order), axis=axis)
    return np.log1p(excess) / (np.asarray(order, dtype=np.float64) - 1.0)
