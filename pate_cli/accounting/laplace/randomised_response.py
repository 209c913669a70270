"""The two-sided cost of one Laplace noisy argmax as a function of a single score.

Setting. M(n), the argmax of n + Lap(b) per class, is ε0-DP with ε0 = 2/b. So for neighbours the
pair (P, Q) = (M(n), M(n')) is a post-processing of randomised response (p, q') on {0, 1} with
p = (P0, P1), q' = (P1, P0), P0 = 1/(1 + e^{−ε0}), P1 = 1/(1 + e^{ε0}) (Kairouz, Oh and
Viswanath 2015, "The Composition Theorem for Differential Privacy"): there is a kernel with
P_i = Σ_x κ_i(x) p(x), Q_i = Σ_x κ_i(x) q'(x). Let i* be the plurality of n, κ = Σ_{i ≠ i*} κ_i,
q = Σ κ p = Pr[M(n) ≠ i*] and Q = Σ κ q'.

Bound, forward (D_λ(P ‖ Q)). a^λ b^{1−λ} is jointly convex and homogeneous, so
P_i^λ Q_i^{1−λ} ≤ Σ_x κ_i(x) p(x)^λ q'(x)^{1−λ}, and summed over the losers

  Σ_i P_i^λ Q_i^{1−λ} ≤ J(κ) = (1−q)^λ (1−Q)^{1−λ} + Σ_x κ(x) p(x)^λ q'(x)^{1−λ}.

At fixed q the first term is convex in Q, hence J in κ, and κ lies on the segment
{κ ∈ [0, 1]²: Σ κ p = q}; the maximum is at one of its ends. These have k_a = min(1, q/a) of one
point filled first, a ∈ {P0, P1}, and k_b = (q − k_a a)/b of the other, b = 1 − a:

  forward  J = (1−q)^λ (1−Q)^{1−λ} + k_a a^λ b^{1−λ} + k_b b^λ a^{1−λ},   Q = k_a b + k_b a,
  reverse  J = (1−Q)^λ (1−q)^{1−λ} + k_a b^λ a^{1−λ} + k_b a^λ b^{1−λ},

the reverse by the same words, its first term being convex in Q as well. F(q) = log(max J)/(λ−1).
Each J is the moment of a three-outcome distribution, so the bound is attained by *some* ε0-DP
mechanism, and it is computed as that Rényi divergence.

F is non-decreasing in q. Given κ with mass q and q < r ≤ 1, there is κ' ≥ κ with mass r. The
winner keeps w' = 1 − κ' of w = 1 − κ, and a^λ b^{1−λ} is subadditive, so
(Σ w p)^λ (Σ w q')^{1−λ} ≤ (Σ w' p)^λ (Σ w' q')^{1−λ} + (Σ Δ p)^λ (Σ Δ q')^{1−λ} with Δ = κ' − κ,
whose last term is at most Σ Δ p^λ q'^{1−λ}: J(κ) ≤ J(κ'). So an upper bound on q is sound in F,
and F(q) ≤ F(1), the divergence of randomised response itself: the worst of any ε0-DP mechanism.

It replaces Theorem 3 of "Semi-supervised Knowledge Transfer" (ICLR 2017), which bounds the forward
direction only: in reverse LNMax exceeds that bound, without limit as b shrinks (467-fold at
b = 0.3).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pate_cli.accounting.divergence import renyi_divergence
from pate_cli.core.arrays import Floats
from pate_cli.core.checks import check_orders, check_positive
from pate_cli.core.errors import ParameterError
from pate_cli.core.special import logsumexp

# Covers round-off in logs of probabilities and in the brackets of accounting.divergence, which
# cancel to about (λ ε0)² when ε0 is small; the maximum itself is exact.
_RELATIVE_SLACK = 1e-9
_LOG_2 = float(np.log(2.0))
# log of a probability that underflows to 0: stands for an outcome that does not occur.
_NEVER = -1e4


def randomised_response_rdp(*, epsilon: float, orders: ArrayLike) -> Floats:
    """log[P0^λ P1^{1−λ} + P1^λ P0^{1−λ}]/(λ − 1), the Rényi cost of the worst ε0-DP mechanism.

    Args:
        epsilon: ε0 > 0.
        orders: Rényi orders λ > 1, [orders].

    Returns:
        [orders], nats, at most ε0.

    Raises:
        ParameterError: an order ≤ 1, or an ε0 that is not positive and finite.
    """
    epsilon, orders = check_positive("epsilon", epsilon), check_orders(orders)
    log_p = -np.logaddexp(0.0, np.array([[-epsilon], [epsilon]]))
    cost = _divergence(log_p, log_p[::-1], orders)
    return np.minimum(cost * (1.0 + _RELATIVE_SLACK), epsilon)


def _outcomes(score: Floats, log_odds: float) -> tuple[Floats, Floats]:
    """Logs of (1 − q, k_a a, k_b b) and (1 − Q, k_a b, k_b a), stacked on the first axis.

    `log_odds` is log a/b = ±ε0. With r = b/a: while q < a, k_b = 0 and Q = q r; from there on
    k_a = 1 and 1 − Q = (1 − q)/r.
    """
    log_q = np.where(score <= 0.0, score - _LOG_2, np.log1p(-np.exp(-np.abs(score)) / 2.0))
    log_keep = np.where(score <= 0.0, np.log1p(-np.exp(-np.abs(score)) / 2.0), -score - _LOG_2)
    log_ratio = -log_odds
    log_a, log_b = -np.logaddexp(0.0, log_ratio), -np.logaddexp(0.0, -log_ratio)
    full = log_q >= log_a
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        beyond = log_q + np.log(-np.expm1(np.minimum(log_a - log_q, 0.0)))
        keep_moved = np.where(full, log_keep - log_ratio, np.log1p(-np.exp(log_q + log_ratio)))
    beyond = np.where(full & np.isfinite(beyond), beyond, -np.inf)
    first = np.stack([log_keep, np.where(full, log_a, log_q), beyond])
    second = np.stack([keep_moved, np.where(full, log_b, log_q + log_ratio), beyond - log_ratio])
    return first, second


def _divergence(log_p: Floats, log_q: Floats, order: Floats) -> Floats:
    """D_λ over the outcomes on the first axis, skipping those that neither side has."""
    absent = np.isneginf(log_p)
    log_p, log_q = np.where(absent, _NEVER, log_p), np.where(absent, _NEVER, log_q)
    near = renyi_divergence(log_p, log_q, order=order, axis=0)
    if np.isfinite(near).all():
        return near
    # Where moments overflow they are far above 1, and the plain formula cancels nothing.
    plain = logsumexp(order * log_p + (1.0 - order) * log_q, axis=0) / (order - 1.0)
    return np.where(np.isfinite(near), near, plain)


def laplace_max_rdp_directions(
    score: ArrayLike, *, scale: float, orders: ArrayLike
) -> tuple[Floats, Floats]:
    """The bound F in both directions.

    Args:
        score: ψ(q), any shape (accounting.laplace.noisy_max); −inf means a certain winner, which
            costs nothing.
        scale: b > 0, the scale of the noise on each count (votes); ε0 = 2/b.
        orders: Rényi orders λ > 1, shape [orders].

    Returns:
        (forward, reverse), each [orders, *score.shape] in nats, at most ε0: upper bounds on
        D_λ(M(n) ‖ M(n')) and D_λ(M(n') ‖ M(n)) over all neighbours n' of any histogram n
        whose plurality loses with probability q.

    Raises:
        ParameterError: an order ≤ 1, a scale that is not positive and finite, or a NaN score.
    """
    epsilon = 2.0 / check_positive("Laplace scale", scale)
    orders = check_orders(orders)
    scores = np.asarray(score, dtype=np.float64)
    if np.isnan(scores).any():
        raise ParameterError("a score is not a number")
    flat = scores.ravel()
    cap = randomised_response_rdp(epsilon=epsilon, orders=orders)
    bounds = np.zeros((2, orders.size, flat.size))
    pairs = [_outcomes(flat, sign * epsilon) for sign in (1.0, -1.0)]
    for row, order in enumerate(orders):
        for here, there in pairs:
            bounds[0, row] = np.maximum(bounds[0, row], _divergence(here, there, order))
            bounds[1, row] = np.maximum(bounds[1, row], _divergence(there, here, order))
    bounds = np.minimum(bounds * (1.0 + _RELATIVE_SLACK), cap[:, None])
    shape = (orders.size, *scores.shape)
    return bounds[0].reshape(shape), bounds[1].reshape(shape)


def laplace_max_rdp(score: ArrayLike, *, scale: float, orders: ArrayLike) -> Floats:
    """F(ψ(q)): the larger of the two directions of :func:`laplace_max_rdp_directions`.

    Non-decreasing in the score up to round-off, [orders, *score.shape], nats.
    """
    return np.maximum(*laplace_max_rdp_directions(score, scale=scale, orders=orders))
