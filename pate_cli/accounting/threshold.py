"""The threshold step: is max_j n_j + N(0, σ1²) ≥ T?

The output is one coin with p(v) = Φ((v − T)/σ1), v = max_j n_j, and one vote moves v by at most 1.
A coin's Rényi divergence is convex in the other coin's p' and vanishes at p' = p, so the worst
neighbour is v' = v ± 1 whether or not v is whole; both are kept at v = 0 and v = τ. The cost is
exact: about 2/π of the λ/(2σ1²) that the paper charges, far from T much less.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from pate_cli.accounting.divergence import bernoulli_excess
from pate_cli.accounting.domain import check_order, check_orders, check_positive
from pate_cli.errors import ParameterError

__all__ = ["PassMoments", "pass_moments", "threshold_rdp", "worst_threshold_rdp"]

Floats = NDArray[np.float64]


def _log_answer(v: Floats, *, threshold: float, sigma: float) -> tuple[Floats, Floats]:
    """(log Pr[answer], log Pr[refuse])."""
    x = (v - threshold) / sigma
    return log_ndtr(x), log_ndtr(-x)


def _check(threshold: float, sigma: float) -> tuple[float, float]:
    if not np.isfinite(threshold):
        raise ParameterError(f"threshold must be finite, got {threshold}")
    return float(threshold), check_positive("sigma1", sigma)


@dataclass(frozen=True)
class PassMoments:
    """What the threshold contributes to the cost of a whole query, per neighbour and direction.

    Attributes:
        excess: J − 1 of the coin alone, [4, *v.shape] (v' = v − 1 and v + 1, forward and reverse).
        log_weight: log of the answering branch's p^λ p'^{1−λ} (or p'^λ p^{1−λ}), same shape.
        order: the Rényi order λ.
    """

    excess: Floats
    log_weight: Floats
    order: float


def pass_moments(v: Floats, *, threshold: float, sigma: float, order: float) -> PassMoments:
    """The four (neighbour, direction) cases of one threshold test at scores v, any shape."""
    threshold, sigma = _check(threshold, sigma)
    order = check_order(order)
    here = _log_answer(v, threshold=threshold, sigma=sigma)
    excess, weight = [], []
    for step in (-1.0, 1.0):
        there = _log_answer(v + step, threshold=threshold, sigma=sigma)
        for first, second in ((here, there), (there, here)):
            excess.append(bernoulli_excess(first, second, order=order))
            weight.append(order * first[0] + (1.0 - order) * second[0])
    return PassMoments(excess=np.stack(excess), log_weight=np.stack(weight), order=order)


def threshold_rdp(v: Floats, *, threshold: float, sigma: float, orders: Floats) -> Floats:
    """f1(v): the exact cost of the threshold step, the larger of both directions.

    Args:
        v: largest counts (votes), any shape, real values allowed.
        threshold: T (votes).
        sigma: standard deviation σ1 of the noise on the largest count, > 0 (votes).
        orders: Rényi orders λ > 1, [orders].

    Returns:
        [orders, *v.shape], nats, at most λ/(2σ²) (the noisy count seen in full).

    Raises:
        ParameterError: a bad threshold, sigma or order.
    """
    votes = np.asarray(v, dtype=np.float64)
    return np.stack(
        [
            np.minimum(
                np.log1p(
                    pass_moments(votes, threshold=threshold, sigma=sigma, order=order).excess.max(0)
                )
                / (order - 1.0),
                order / (2.0 * sigma**2),  # stands where the moment overflows
            )
            for order in check_orders(orders).tolist()
        ]
    )


def worst_threshold_rdp(*, teachers: int, threshold: float, sigma: float, orders: Floats) -> Floats:
    """w1(λ): the largest f1 over v = 0, …, τ, data-independent, [orders], nats."""
    reachable = np.arange(teachers + 1, dtype=np.float64)
    return threshold_rdp(reachable, threshold=threshold, sigma=sigma, orders=orders).max(axis=1)
