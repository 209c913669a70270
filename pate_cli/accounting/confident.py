"""The cost of a whole Confident query: threshold, then argmax if it passed.

The query's output is "no answer" or a label. By the chain rule, exact in the first step,

  ρ = max over v' = v ± 1 and both directions of
      1/(λ−1) · log[(1−p)^λ (1−p')^{1−λ} + p^λ p'^{1−λ} e^{(λ−1) F(z)}],

with F the two-tail bound of the argmax. ρ depends on the votes alone and not on the coin, so the
sum over *all rows fixed in advance* is an RDP bound by ordinary composition; rows that a cap on
answers left unread are charged like the others (charging up to the stop is not RDP).

DEPARTURE. The paper charges the threshold on every query and the argmax on those answered, and
reports the expectation: a Jensen gap away from a Rényi divergence, and below it.
"""

from __future__ import annotations

import numpy as np

from pate_cli.accounting.threshold import PassMoments, pass_moments
from pate_cli.arrays import Floats

__all__ = ["chain_rdp", "confident_rdp"]


# e^{(λ−1)F} is carried through logs beyond this exponent.
_LARGE = 500.0


def confident_rdp(
    votes: Floats, argmax_rdp: Floats, *, threshold: float, sigma: float, order: float
) -> Floats:
    """ρ at plurality counts `votes` when the argmax costs `argmax_rdp`.

    Args:
        votes: v = max_j n_j, any shape broadcastable with argmax_rdp (votes).
        argmax_rdp: F(z) ≥ 0, nats.
        threshold: T (votes).
        sigma: σ1, > 0 (votes).
        order: Rényi order λ > 1.

    Returns:
        Nats, the broadcast shape; non-decreasing in argmax_rdp, at most λ/(2σ1²) + F(z) (the
        noisy largest count seen in full), which also stands where a moment overflows.
    """
    moments = pass_moments(votes, threshold=threshold, sigma=sigma, order=order)
    return chain_rdp(moments, argmax_rdp, cap=order / (2.0 * sigma**2))


def chain_rdp(moments: PassMoments, argmax_rdp: Floats, *, cap: float) -> Floats:
    """ρ from the four cases of the threshold test and the argmax's cost, broadcast, nats.

    Args:
        moments: of the test, on exact scores or as suprema over cells of them.
        argmax_rdp: F(z) ≥ 0, nats.
        cap: what the noisy score costs seen in full; ρ is at most this plus F.
    """
    order = moments.order
    exponent = (order - 1.0) * argmax_rdp
    gain = np.expm1(np.minimum(exponent, _LARGE))
    shape = np.broadcast_shapes(moments.excess.shape[1:], np.shape(argmax_rdp))
    worst = np.zeros(shape)
    with np.errstate(over="ignore", invalid="ignore"):  # ∞·0 is replaced by the 0 it stands for
        for excess, log_weight in zip(moments.excess, moments.log_weight, strict=True):
            weighted = np.where(gain > 0.0, np.exp(log_weight) * gain, 0.0)
            worst = np.maximum(worst, excess + weighted)
    result = np.log1p(worst)
    if np.any(exponent > _LARGE):
        far = np.full(shape, -np.inf)
        for excess, log_weight in zip(moments.excess, moments.log_weight, strict=True):
            far = np.maximum(far, np.logaddexp(np.log1p(excess), log_weight + exponent))
        result = np.where(np.broadcast_to(exponent > _LARGE, shape), far, result)
    return np.asarray(np.minimum(result / (order - 1.0), cap + argmax_rdp), dtype=np.float64)
