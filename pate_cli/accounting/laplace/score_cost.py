"""The cost of one Laplace noisy argmax as a function of a single score, in both directions.

**Any number of classes** (`laplace_max_rdp`). M(n), the argmax of n + Lap(b) per class, is ε0-DP
with ε0 = 2/b. So for neighbours the pair (P, Q) = (M(n), M(n')) is a post-processing of randomised
response (p, q') on {0, 1} with p = (P0, P1), q' = (P1, P0), P0 = 1/(1 + e^{−ε0}), P1 = 1/(1 +
e^{ε0}) (Kairouz, Oh and Viswanath 2015, "The Composition Theorem for Differential Privacy"). That
is, there is a kernel with P_i = Σ_x κ_i(x) p(x), Q_i = Σ_x κ_i(x) q'(x). Let i* be the plurality of
n, κ = Σ_{i ≠ i*} κ_i, q = Σ κ p = Pr[M(n) ≠ i*] and Q = Σ κ q'.

**The bound** in the forward direction (D_λ(P ‖ Q)). a^λ b^{1−λ} is jointly convex and homogeneous,
so P_i^λ Q_i^{1−λ} ≤ Σ_x κ_i(x) p(x)^λ q'(x)^{1−λ}. Summed over the losers this gives

  Σ_i P_i^λ Q_i^{1−λ} ≤ J(κ) = (1−q)^λ (1−Q)^{1−λ} + Σ_x κ(x) p(x)^λ q'(x)^{1−λ}.

At fixed q the first term is convex in Q, so J is convex in κ, and κ lies on the segment {κ ∈ [0,
1]²: Σ κ p = q}. So the maximum is at one of the ends of the segment. Each end fills one point
first, with k_a = min(1, q/a) for a ∈ {P0, P1}, and the other with k_b = (q − k_a a)/b, b = 1 − a:

  forward  J = (1−q)^λ (1−Q)^{1−λ} + k_a a^λ b^{1−λ} + k_b b^λ a^{1−λ},   Q = k_a b + k_b a,
  reverse  J = (1−Q)^λ (1−q)^{1−λ} + k_a b^λ a^{1−λ} + k_b a^λ b^{1−λ},

The reverse direction follows in the same way, because its first term is also convex in Q. F(q) =
log(max J)/(λ−1). Each J is the moment of a three-outcome distribution. So *some* ε0-DP mechanism
attains the bound, and the code computes it as the Rényi divergence of this mechanism.

F is non-decreasing in q. Given κ with mass q and q < r ≤ 1, there is κ' ≥ κ with mass r. The winner
keeps w' = 1 − κ' of w = 1 − κ, and a^λ b^{1−λ} is subadditive, so (Σ w p)^λ (Σ w q')^{1−λ} ≤ (Σ w'
p)^λ (Σ w' q')^{1−λ} + (Σ Δ p)^λ (Σ Δ q')^{1−λ} with Δ = κ' − κ. The last term is at most Σ Δ p^λ
q'^{1−λ}, so J(κ) ≤ J(κ'). Hence F is sound with an upper bound on q, and F(q) ≤ F(1), the
divergence of randomised response, which is the worst ε0-DP mechanism.

This replaces Theorem 3 of "Semi-supervised Knowledge Transfer" (ICLR 2017), which bounds the
forward direction only. In the reverse direction LNMax exceeds that bound, without limit as b
shrinks (467-fold at b = 0.3).

**Within a cell of scores** (`cell_bounds`) the cost can rise only by a bounded amount. The setting
is that of `accounting.gaussian.cone_excess`: outcomes with g_i = log P_i at scores z and r_i =
g_i(z) − g_i(z + δ), and

  f(z) = J − 1 = Σ P_i χ(r_i),   χ(r) = expm1(c r) + c·expm1(−r),   c = λ − 1.

The noise is Laplace of scale 1 on every score (THEORY.md, 9.4). Then g_i is concave. Each first
partial derivative of g_i is between −1 and 1 and of one sign. Each second one along an axis is in
[−2, 0]. Third ones are at most 8, except where a score is 0, where second ones jump. Hence |g_kl| ≤
2, |r_i| ≤ |δ|₁, and each partial derivative of r_i is at most min(2|δ|₁, 1). Take any step d of at
most h along each of n axes, and let B = 2n²h². Let B' = min(8n²h²|δ|₁, B) if no score of the cell
passes 0 on the way from z to z + δ, else B' = B. Then

  P_i ≤ P_i(z0) e^{h|∇g_i(z0)|₁},   |g'| ≤ G = min(h|∇g_i(z0)|₁ + B, nh),   g'' ≤ 0,   |r''| ≤ B',
  |r'| ≤ R = min(h|∇r_i(z0)|₁ + B', nh·min(2|δ|₁, 1)),   and r_i moves by at most R,

and f is at most the smallest of

  Σ P_i χ,   f(z0) + h|∇f(z0)|₁ + ½ Σ P_i [χG² + 2|χ'|GR + χ''R² + B'|χ'|],
  max over d of Σ exp(h_i(z0) + ∇h_i(z0)·d + cB'/2) − 1,   h_i = g_i + c r_i,

with suprema over the cell. The last bound is convex in d, so it is largest at a corner.

**Two classes** (`laplace_two_class_rdp`): the output is one biased coin, and the cost is exact.
With m = 2 and gap g = (n_1 − n_2)/b ≥ 0 the smaller count wins with probability q(g) = (2 + g)/(4
e^g), the tail of the difference of two Laplace draws. A moved vote shifts g by ε0 = 2/b, an added
or removed vote by half of this. A Bernoulli divergence is convex in the neighbour's probability, in
either direction, so g ± ε0 is worst. The cost is not monotone near a tie, so the code uses

  F(g) = sup over u ≥ g of max(W(u), W(u − ε0)),

where W(u) is the larger divergence between the coins at u and u + ε0. If W has its peak at u*, the
cost peaks at u* and again at u* + ε0: F(g) = W(u*) up to there, and W(g − ε0) beyond.

Exchanging the classes exchanges u with −u − ε0, and the directions. So W(u*) is the supremum of one
direction over all real u. The code bounds it, cell by cell on one axis, for −ε0 − G ≤ u ≤ G.
Beyond, the loser wins with probability at most q = q(G), and the excess is at most q χ(ε0) + χ(d),
d = q(1 − e^{−ε0})/(1 − q), with the larger of χ(r) and χ(−r) for χ(r). That W decreases beyond u*
is observed and not proven.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from pate_cli.accounting.divergence import (
    LOG_2,
    bernoulli_excess,
    certified_supremum,
    excess_moment,
    highest,
    renyi_divergence,
    where_wanted,
)
from pate_cli.accounting.laplace.noisy_max import two_class_log_q
from pate_cli.core.arrays import Floats
from pate_cli.core.checks import check_orders, check_positive

# Covers the rounding error in logs of probabilities and in the brackets of accounting.divergence,
# which cancel to about (λ ε0)² if ε0 is small; the maximum itself is exact.
_RELATIVE_SLACK = 1e-9
# The log of a probability that underflows to 0, for an outcome that does not occur.
_NEVER = -1e4


def randomised_response_rdp(*, epsilon: float, orders: ArrayLike) -> Floats:
    """Return log[P0^λ P1^{1−λ} + P1^λ P0^{1−λ}]/(λ − 1), the cost of the worst ε0-DP mechanism.

    Args:
        epsilon: ε0 > 0.
        orders: Rényi orders λ > 1, [orders].

    Returns:
        [orders], nats, at most ε0.

    Raises:
        ParameterError: an order is ≤ 1, or ε0 is not positive and finite.
    """
    epsilon, orders = check_positive("epsilon", epsilon), check_orders(orders)
    log_p = -np.logaddexp(0.0, np.array([[-epsilon], [epsilon]]))
    cost = _divergence(log_p, log_p[::-1], orders)
    return np.minimum(cost * (1.0 + _RELATIVE_SLACK), epsilon)


def _outcomes(score: Floats, log_odds: float) -> tuple[Floats, Floats]:
    """Return logs of (1 − q, k_a a, k_b b) and (1 − Q, k_a b, k_b a), stacked on the first axis.

    `log_odds` is log a/b = ±ε0. With r = b/a: for q < a, k_b = 0 and Q = q r; otherwise k_a = 1 and
    1 − Q = (1 − q)/r.
    """
    log_q = np.where(score <= 0.0, score - LOG_2, np.log1p(-np.exp(-np.abs(score)) / 2.0))
    log_keep = np.where(score <= 0.0, np.log1p(-np.exp(-np.abs(score)) / 2.0), -score - LOG_2)
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
    """Return D_λ over the outcomes on the first axis, without outcomes that neither side has."""
    absent = np.isneginf(log_p)
    log_p, log_q = np.where(absent, _NEVER, log_p), np.where(absent, _NEVER, log_q)
    near = renyi_divergence(log_p, log_q, order=order, axis=0)
    if np.isfinite(near).all():
        return near
    # Moments that overflow are far above 1, and then the plain formula does not cancel.
    plain = logsumexp(order * log_p + (1.0 - order) * log_q, axis=0) / (order - 1.0)
    return np.where(np.isfinite(near), near, plain)


def laplace_max_rdp_directions(score: ArrayLike, *, scale: float, orders: ArrayLike) -> Floats:
    """Return the bound F in both directions.

    Args:
        score: ψ(q), any shape (accounting.laplace.noisy_max); −inf means a certain winner, which
            costs nothing.
        scale: b > 0, the scale of the noise on each count (votes); ε0 = 2/b.
        orders: Rényi orders λ > 1, shape [orders].

    Returns:
        [2, orders, *score.shape], forward and reverse, in nats, at most ε0: upper bounds on
        D_λ(M(n) ‖ M(n')) and D_λ(M(n') ‖ M(n)) over all neighbours n' of any histogram n
        whose plurality loses with probability q.

    Raises:
        ParameterError: an order is ≤ 1, or the scale is not positive and finite.
    """
    epsilon = 2.0 / check_positive("Laplace scale", scale)
    orders = check_orders(orders)
    scores = np.asarray(score, dtype=np.float64)
    flat = scores.ravel()
    cap = randomised_response_rdp(epsilon=epsilon, orders=orders)
    bounds = np.zeros((2, orders.size, flat.size))
    pairs = [_outcomes(flat, sign * epsilon) for sign in (1.0, -1.0)]
    for row, order in enumerate(orders):
        for here, there in pairs:
            bounds[0, row] = np.maximum(bounds[0, row], _divergence(here, there, order))
            bounds[1, row] = np.maximum(bounds[1, row], _divergence(there, here, order))
    bounds = np.minimum(bounds * (1.0 + _RELATIVE_SLACK), cap[:, None])
    return bounds.reshape(2, orders.size, *scores.shape)


def laplace_max_rdp(score: ArrayLike, *, scale: float, orders: ArrayLike) -> Floats:
    """Return F(ψ(q)), the larger of the two directions of :func:`laplace_max_rdp_directions`.

    The result is non-decreasing in the score up to rounding, [orders, *score.shape], nats.
    """
    return np.maximum(*laplace_max_rdp_directions(score, scale=scale, orders=orders))


LOG_ERROR = 1e-12
"""Largest error of a log probability and of its partial derivatives."""


def larger_chi(r: Floats | float, *, order: float | Floats) -> Floats:
    """Return the larger of χ(r) and χ(−r), r ≥ 0, rounded up."""
    c = order - 1.0
    up, down = np.expm1(c * r) + c * np.expm1(-r), np.expm1(-c * r) + c * np.expm1(r)
    # The second term covers cancellation at small r.
    return np.asarray(np.maximum(up, down) * (1.0 + 1e-12) + 1e-15 * order * c * r)


def cell_bounds(
    before: tuple[Floats, Floats],
    after: tuple[Floats, Floats],
    *,
    shift: float,
    half: float,
    order: float | Floats,
    smooth: NDArray[np.bool_],
) -> tuple[Floats, Floats]:
    """Return f at the centres of cells, and an upper bound on f in each cell.

    Args:
        before: g_i, [outcomes, cells], and ∇g_i, [outcomes, axes, cells], at the centres.
        after: g_i and ∇g_i at the centres moved by δ.
        shift: |δ|₁.
        half: half the side h of each cell.
        order: λ > 1, one number or one per cell.
        smooth: [cells], whether no score passes 0 in the cell or on the way to the moved cell.

    Returns:
        (value, bound), each [cells]; the bound includes the effect of `LOG_ERROR`.
    """
    (log_p, grad_p), (log_q, grad_q) = before, after
    c, axes = order - 1.0, grad_p.shape[1]
    r, grad_r = log_p - log_q, grad_p - grad_q
    bend = 2.0 * (axes * half) ** 2
    bend_r = np.where(smooth, bend * min(4.0 * shift, 1.0), bend)
    off = 2.0 * LOG_ERROR
    rise = half * (np.abs(grad_p).sum(axis=1) + axes * off)
    move = half * (np.abs(grad_r).sum(axis=1) + axes * off)
    steep = np.minimum(rise + bend, axes * half)
    slope = np.minimum(move + bend_r, axes * half * min(2.0 * shift, 1.0))
    most = np.minimum(log_p + rise + LOG_ERROR, 0.0)
    low, high = np.maximum(r - slope, -shift) - off, np.minimum(r + slope, shift) + off
    with np.errstate(over="ignore", invalid="ignore"):
        chi = np.maximum(
            excess_moment(most, most - low, order=order),
            excess_moment(most, most - high, order=order),
        )
        up, down = np.exp(most + c * high), np.exp(most - low)
        chi_1 = c * np.maximum(up - np.exp(most - high), down - np.exp(most + c * low))
        chi_2 = c * (c * up + down)

        terms = excess_moment(log_p, log_q, order=order)
        terms_1 = c * (np.exp(log_p + c * r) - np.exp(log_q))
        value = terms.sum(axis=0)
        gradient = np.sum(terms[:, None] * grad_p + terms_1[:, None] * grad_r, axis=0)
        rest = (chi * steep**2 + chi_2 * slope**2 + chi_1 * (2.0 * steep * slope + bend_r)) / 2.0
        # The effect of errors in P, r and derivatives on the value and on the slope along d.
        rest += off * (chi_1 * (1.0 + steep + slope) + chi_2 * slope + 2.0 * chi * (1.0 + steep))
        rest += off * axes * half * (chi + 2.0 * chi_1)
        second = value + half * np.abs(gradient).sum(axis=0) + rest.sum(axis=0)

        corners = np.array(list(product((-half, half), repeat=axes)))
        tops = np.tensordot(corners, grad_p + c * grad_r, axes=(1, 1)) + log_p + c * r
        error = c * bend_r / 2.0 + order * off * (1.0 + 2.0 * axes * half)
        third = np.expm1(np.logaddexp.reduce(tops, axis=1).max(axis=0) + error)
    return value, np.fmin(np.fmin(chi.sum(axis=0), second), third)


# Each step at least halves the error, because the slope of the map is 1/(2 + g).
_STEPS = 60
_ROUND_OFF = 1e-9
_SLACK = 1e-6
_FARTHEST = 700.0
_MOST_EXPONENT = 600.0
_MOST_CELLS = 20_000
_PARTS = 8


def gap_of_score(score: ArrayLike) -> Floats:
    """Return g ≥ 0 with ψ(q(g)) = score, any shape; 0 for scores above 0."""
    log_q = np.minimum(np.asarray(score, dtype=np.float64), 0.0) - LOG_2
    gap = -log_q
    for _ in range(_STEPS):
        gap = -log_q + np.log((2.0 + gap) / 4.0)
    return np.maximum(gap, 0.0)


def _sides(gap: Floats) -> tuple[Floats, Floats]:
    """Return log probabilities that the class behind by `gap` wins and loses, for any real gap."""
    rare = two_class_log_q(np.abs(gap))
    likely = np.log1p(-np.exp(rare))
    return np.where(gap >= 0.0, rare, likely), np.where(gap >= 0.0, likely, rare)


def laplace_edge_rdp(gap: ArrayLike, *, shift: float, orders: ArrayLike) -> Floats:
    """Return W(g), the larger direction of D_λ between the coins at gaps g and g + shift.

    Args:
        gap: real gaps in units of b, any shape.
        shift: the distance between the neighbours' gaps, ≥ 0.
        orders: Rényi orders λ > 1, [orders].

    Returns:
        [orders, *gap.shape], nats; at most `shift`, which also replaces a number that overflows.
    """
    gaps = np.asarray(gap, dtype=np.float64)
    column = check_orders(orders).reshape((-1,) + (1,) * gaps.ndim)
    here, there = _sides(gaps), _sides(gaps + shift)
    worst = np.maximum(
        bernoulli_excess(here, there, order=column), bernoulli_excess(there, here, order=column)
    )
    return np.minimum(np.log1p(worst) / (column - 1.0), shift)


def _peak(*, shift: float, order: Floats) -> tuple[float, float]:
    """Return the place g ≥ −shift/2 at which W is largest, and its value.

    Lower places are mirror images. Far out, W is about log(q)/(λ − 1) plus a loss that is below ε0
    by about ε0/(2 + g). So the peak is near the square root of λ ε0 if this is large.
    """
    low, high = -shift / 2.0, 2.0 * float(np.sqrt(order[0] * shift)) + 20.0
    return highest(lambda gap: laplace_edge_rdp(gap, shift=shift, orders=order)[0], low, high)


def _coin(gap: Floats) -> tuple[Floats, Floats]:
    """Return logs of both probabilities at gaps [cells], and their derivatives, [2, 1, cells]."""
    logs = np.stack(_sides(gap))
    density = np.log1p(np.abs(gap)) - np.abs(gap) - 2.0 * LOG_2
    return logs, np.exp(density - logs)[:, None] * np.array([[[-1.0]], [[1.0]]])


def _certified_peak(*, shift: float, orders: Floats, seen: Floats) -> Floats:
    """Return a certified upper bound on sup W, [orders].

    `seen` is a value of W. The bound is `shift` if float64 overflows.
    """
    result = np.full(orders.shape, shift)
    able = np.flatnonzero(orders * shift <= _MOST_EXPONENT)
    column = orders[able, None]
    slack = _SLACK + 40.0 * LOG_ERROR / shift
    far = np.arange(1.0, _FARTHEST)
    rare = np.exp(two_class_log_q(far))
    drift = -rare * np.expm1(-shift) / (1.0 - rare)
    some = rare * larger_chi(shift, order=column) + larger_chi(drift, order=column)
    holds = some <= np.expm1((column - 1.0) * seen[able, None] * (1.0 + slack))
    ends = far[np.argmax(holds, axis=1)]
    able, ends = able[holds.any(axis=1)], ends[holds.any(axis=1)]
    if not able.size:
        return result
    # Both sides of the mirror's centre have as many cells, so that no order moves another's cells.
    sizes = np.ceil(2.0 * ends + shift)
    offsets = np.arange(sizes.max()) - (sizes.max() - 1.0) / 2.0

    def bounds(centres: Floats, half: float, wanted: NDArray[np.bool_]) -> tuple[Floats, Floats]:
        (log_p, grad_p), (log_q, grad_q) = _coin(centres[0]), _coin(centres[0] + shift)

        def found(rows: NDArray[np.intp], cells: NDArray[np.intp]) -> tuple[Floats, Floats]:
            return cell_bounds(
                (log_p[..., cells], grad_p[..., cells]),
                (log_q[..., cells], grad_q[..., cells]),
                shift=shift,
                half=half,
                order=orders[able][rows],
                smooth=np.ones(rows.shape, dtype=np.bool_),
            )

        return where_wanted(wanted, found)

    result[able] = certified_supremum(
        bounds,
        centres=offsets[None] - shift / 2.0,
        half=0.5,
        wanted=2.0 * np.abs(offsets) < sizes[:, None],
        orders=orders[able],
        floor=seen[able],
        slack=slack,
        most_cells=_MOST_CELLS,
        parts=_PARTS,
    )
    return result


def laplace_two_class_rdp(
    score: ArrayLike, *, scale: float, orders: ArrayLike, peaks: Floats | None = None
) -> Floats:
    """Return F for m = 2, non-decreasing in the score.

    Args:
        score: ψ(q), any shape.
        scale: b > 0, the scale of the noise on each count (votes).
        orders: Rényi orders λ > 1, shape [orders].
        peaks: F(0) at these orders, if it is already known, [orders].

    Returns:
        [orders, *score.shape] in nats, at most ε0 = 2/b. Up to the peak it is a certified bound,
        1e-6 above the supremum, relative.

    Raises:
        ParameterError: an order is ≤ 1, or the scale is not positive and finite.
    """
    orders = check_orders(orders)
    shift = 2.0 / check_positive("Laplace scale", scale)
    gaps = gap_of_score(score)
    result = laplace_edge_rdp(gaps - shift, shift=shift, orders=orders) * (1.0 + _ROUND_OFF)
    at, seen = np.transpose([_peak(shift=shift, order=order[None]) for order in orders])
    if peaks is None:
        peaks = _certified_peak(shift=shift, orders=orders, seen=seen)
    for row, peak in enumerate(peaks.tolist()):
        result[row] = np.where(gaps <= at[row] + shift, peak, np.minimum(result[row], peak))
    return np.minimum(result, shift)
