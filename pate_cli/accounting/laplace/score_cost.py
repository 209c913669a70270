"""The RDP cost of one Laplace noisy argmax as a function of a single score, in both directions.

D_λ(M(n) ‖ M(n')) is the forward direction, and D_λ(M(n') ‖ M(n)) is the reverse direction, where
n' is a neighbour of the histogram n.

**Any number of classes** (`laplace_max_rdp`). M(n), the argmax of n + Lap(b) per class, is ε0-DP
with ε0 = 2/b. So for neighbours the pair (P, Q) = (M(n), M(n')) is a post-processing of randomised
response (p, q') on {0, 1} with p = (P0, P1), q' = (P1, P0), P0 = 1/(1 + e^{−ε0}), P1 = 1/(1 +
e^{ε0}) (Kairouz, Oh and Viswanath 2015, "The Composition Theorem for Differential Privacy"). Let
κ_i(x) be the probability that the post-processing turns the outcome x of randomised response into
class i. Then P_i = Σ_x κ_i(x) p(x) and Q_i = Σ_x κ_i(x) q'(x) for every class i. Let i* be the
plurality of n, κ = Σ_{i ≠ i*} κ_i, q = Σ κ p = Pr[M(n) ≠ i*] and Q = Σ κ q' = Pr[M(n') ≠ i*].

**The bound on the divergence, in the forward direction.** The function a^λ b^{1−λ} of two positive
numbers is jointly convex and homogeneous in (a, b), so P_i^λ Q_i^{1−λ} ≤ Σ_x κ_i(x) p(x)^λ
q'(x)^{1−λ} for every class i. So the sum of P_i^λ Q_i^{1−λ} over all classes, in which the term of
i* is (1−q)^λ (1−Q)^{1−λ}, is bounded by

  Σ_i P_i^λ Q_i^{1−λ} ≤ J(κ) = (1−q)^λ (1−Q)^{1−λ} + Σ_x κ(x) p(x)^λ q'(x)^{1−λ}.

Now fix q, and maximise J(κ) over all κ(0) and κ(1) in [0, 1] with Σ κ p = q. The pairs (κ(0), κ(1))
with Σ κ p = q form a line segment. The term (1−q)^λ (1−Q)^{1−λ} is convex in Q, and Q is linear in
κ, so J is convex in κ. So the maximum of J over the segment is at one of its two ends. At each end
of the segment, κ is as large as possible at one outcome x of randomised response, x = 0 or x = 1.
Let a = p(x), which is P0 or P1, be the probability of the outcome x at which κ is as large as
possible, and let b = 1 − a be the probability of the other outcome. (Here b is not the scale of the
noise.) Then κ is k_a = min(1, q/a) at the outcome with probability a, and k_b = (q − k_a a)/b at
the other outcome. In the two directions J is

  forward  J = (1−q)^λ (1−Q)^{1−λ} + k_a a^λ b^{1−λ} + k_b b^λ a^{1−λ},   Q = k_a b + k_b a,
  reverse  J = (1−Q)^λ (1−q)^{1−λ} + k_a b^λ a^{1−λ} + k_b a^λ b^{1−λ},

The proof for the reverse direction is the same, because (1−Q)^λ (1−q)^{1−λ} is also convex in Q.
The bound on the cost is F(q) = log(max J)/(λ−1). In each direction and at each end of the segment,
J is the sum Σ P^λ Q^{1−λ} of two distributions on three outcomes. So *some* ε0-DP mechanism with
three outcomes has exactly the cost F(q), and the code computes the Rényi divergence of this
mechanism.

F is non-decreasing in q, by the following proof. Let κ be a pair with Σ κ p = q, and let q < r ≤ 1.
Then there is a pair κ' ≥ κ with Σ κ' p = r. Let w = 1 − κ and w' = 1 − κ'. a^λ b^{1−λ} is
subadditive, so (Σ w p)^λ (Σ w q')^{1−λ} ≤ (Σ w' p)^λ (Σ w' q')^{1−λ} + (Σ Δ p)^λ (Σ Δ q')^{1−λ}
with Δ = κ' − κ. The last term is at most Σ Δ p^λ q'^{1−λ}, so J(κ) ≤ J(κ'). Hence, if only an upper
bound r ≥ q is known, F(r) is still an upper bound on the cost. And F(q) ≤ F(1), the divergence of
randomised response, which is the worst ε0-DP mechanism.

F replaces Theorem 3 of "Semi-supervised Knowledge Transfer" (ICLR 2017), which only bounds the
forward direction. In the reverse direction the cost of LNMax exceeds the bound of that paper's
Theorem 3. At b = 0.3 the cost of LNMax is 467 times the bound of Theorem 3, and the ratio grows
without limit as b falls.

**The largest cost within a cell** (`cell_bounds`). The supremum of the cost over all votes is
searched on cells. A cell is an interval of gaps (two classes) or a square of pairs (x, y)
(accounting.laplace.worst_vote). Here z is a point of a cell, and z + δ is the same point after one
vote moved. For each outcome i of the argmax let g_i(z) be the log of its probability P_i at z, and
let r_i = g_i(z) − g_i(z + δ). Let J be the sum Σ P^λ Q^{1−λ} of the outcomes at z and z + δ. Then
the excess moment J − 1 at z is

  f(z) = J − 1 = Σ P_i χ(r_i),   χ(r) = expm1(c r) + c·expm1(−r),   c = λ − 1.

In a square the noise on both coordinates of z is Laplace noise of scale 1. With two classes the
noise on the gap is the difference of two draws of Laplace noise of scale 1. Every g_i is concave,
both in a square and with two classes (THEORY.md, 9.4). Each first partial derivative of g_i is
between −1 and 1 and has the same sign everywhere. Each second derivative of g_i along one axis is
in [−2, 0], and mixed second derivatives of g_i are in [−2, 2]. Third derivatives of g_i are at most
8 in size, except that in a square second derivatives of g_i jump where a coordinate of z is 0.
Hence |r_i| ≤ |δ|₁, and each partial derivative of r_i is at most min(2|δ|₁, 1) in size.

Let z0 be the centre of a cell, n the number of its axes, and h half of its side. Let d be the step
from z0 to a point of the cell, and let B = 2n²h². Let B' = min(8n²h²|δ|₁, B) with two classes, and
also in a square in which no coordinate changes its sign, neither within the square nor on the way
from z to z + δ. In all other squares let B' = B. Let g' and r' be the derivatives of g_i and r_i by
θ at the point z0 + θd, and let χ' be the derivative of χ by r. Then in the whole cell

  P_i ≤ P_i(z0) e^{h|∇g_i(z0)|₁},   |g'| ≤ G = min(h|∇g_i(z0)|₁ + B, nh),   g'' ≤ 0,   |r''| ≤ B',
  |r'| ≤ R = min(h|∇r_i(z0)|₁ + B', nh·min(2|δ|₁, 1)),   and r_i moves by at most R,

and f is at most the smallest of the following three bounds. In the first two of the three bounds on
f, each of P_i, χ, |χ'| and χ'' stands for an upper bound on its values in the whole cell:

  Σ P_i χ,   f(z0) + h|∇f(z0)|₁ + ½ Σ P_i [χG² + 2|χ'|GR + χ''R² + B'|χ'|],
  max over d of Σ exp(h_i(z0) + ∇h_i(z0)·d + cB'/2) − 1,   h_i = g_i + c r_i.

The sum of exponentials in the third bound on f is convex in d, so it is largest at a corner of the
cell.

**Two classes** (`laplace_two_class_rdp`): the output is one biased coin, and the cost is exact. Let
g = (n_1 − n_2)/b ≥ 0 be the gap. The smaller count wins with probability q(g) = (2 + g)/(4 e^g),
which is the tail of the difference of two Laplace draws. A moved vote shifts the gap g by ε0 = 2/b,
and an added or removed vote shifts the gap by ε0/2. The moment e^{(λ−1)D_λ} between the
coins of two neighbours is, in either direction, convex in the probability of either coin. So the
worst neighbour has the gap g + ε0 or g − ε0. The divergence from the worst neighbour may rise as
the gap grows from 0. So that the cost of a larger gap is never larger, the code uses

  F(g) = sup over u ≥ g of max(W(u), W(u − ε0)),

where W(u) is the larger of the two Rényi divergences, forward and reverse, between the output at
gap u and the output at gap u + ε0. Let u* ≥ −ε0/2 be the gap at which W(u) is largest. Then F(g) =
W(u*) for g up to u* + ε0, and F(g) = W(g − ε0) for larger g.

If the two classes are exchanged, the pair of gaps (u, u + ε0) becomes (−u, −u − ε0). The pair (−u,
−u − ε0) is the pair (v, v + ε0) with v = −u − ε0, in the opposite order, which exchanges forward
and reverse. So W(u*) is also the supremum, over all real gaps u, of the divergence in the forward
direction alone. To prove an upper bound on W(u*), the code divides the interval −ε0 − G ≤ u ≤ G of
gaps into cells, and bounds the divergence in each cell. If u is outside the interval −ε0 − G ≤ u ≤
G, the smaller count wins with probability at most q = q(G), and the excess moment is at most q
χ(ε0) + χ(d) with d = q(1 − e^{−ε0})/(1 − q), where χ stands for the larger of χ(r) and χ(−r). That
W decreases for u > u* was observed, but is not proven.
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

# This share covers rounding errors in logs of probabilities and in the brackets of
# accounting.divergence, which are about (λ ε0)² if ε0 is small.
_RELATIVE_SLACK = 1e-9
# A log probability that underflows to 0; it replaces that of an outcome which does not occur.
_NEVER = -1e4


def randomised_response_rdp(*, epsilon: float, orders: ArrayLike) -> Floats:
    """Return the RDP cost of randomised response, which is the worst ε0-DP mechanism.

    The cost is log[P0^λ P1^{1−λ} + P1^λ P0^{1−λ}]/(λ − 1) with P0 = 1/(1 + e^{−ε0}) and P1 = 1 −
    P0.

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
    """Return log probabilities of the outcomes of the mechanism whose cost is exactly F(q).

    This mechanism has three outcomes (see the module's docstring). The first result has the logs of
    the probabilities 1 − q, k_a a and k_b b of the outcomes at the given votes. The second result
    has the logs of the probabilities 1 − Q, k_a b and k_b a of the outcomes at a neighbour. Each
    result is [3, *score.shape]. `log_odds` is log a/b, which is ε0 or −ε0. Let r = b/a. If q < a,
    then k_b = 0 and Q = q r. Otherwise k_a = 1 and 1 − Q = (1 − q)/r.
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
    """Return D_λ of two distributions, whose outcomes are on the first axis.

    Outcomes that have probability 0 in `log_p` are ignored.
    """
    absent = np.isneginf(log_p)
    log_p, log_q = np.where(absent, _NEVER, log_p), np.where(absent, _NEVER, log_q)
    near = renyi_divergence(log_p, log_q, order=order, axis=0)
    if np.isfinite(near).all():
        return near
    # A moment that overflows is far above 1, so the plain formula loses no digits.
    plain = logsumexp(order * log_p + (1.0 - order) * log_q, axis=0) / (order - 1.0)
    return np.where(np.isfinite(near), near, plain)


def laplace_max_rdp_directions(score: ArrayLike, *, scale: float, orders: ArrayLike) -> Floats:
    """Return two upper bounds on the RDP cost of a Laplace noisy argmax, forward and reverse.

    Args:
        score: the score ψ(q), any shape (accounting.laplace.noisy_max); a score of −inf means that
            the plurality always wins, and costs nothing.
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
    """Return the upper bound F on the RDP cost of a Laplace noisy argmax with this score.

    F is the larger of the two bounds that `laplace_max_rdp_directions` returns. The result is
    [orders, *score.shape], in nats. F is non-decreasing in the score, up to rounding errors.
    Arguments are those of `laplace_max_rdp_directions`.
    """
    return np.maximum(*laplace_max_rdp_directions(score, scale=scale, orders=orders))


LOG_ERROR = 1e-12
"""The largest error of a computed log probability and of its partial derivatives."""


def larger_chi(r: Floats | float, *, order: float | Floats) -> Floats:
    """Return the larger of χ(r) and χ(−r), r ≥ 0, rounded up.

    χ(r) = expm1(c r) + c·expm1(−r) with c = λ − 1.
    """
    c = order - 1.0
    up, down = np.expm1(c * r) + c * np.expm1(-r), np.expm1(-c * r) + c * np.expm1(r)
    # The second term covers digits that cancel at small r.
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
    """Return the excess moment f at the centres of cells, and an upper bound on f in each cell.

    The excess moment of two neighbours with probabilities P_i and Q_i is Σ P_i^λ Q_i^{1−λ} − 1. A
    cell is an interval of gaps or a square of pairs (x, y); see the module's docstring.

    Args:
        before: log probabilities g_i of the outcomes of the argmax at the centres of the cells,
            [outcomes, cells], and their gradients ∇g_i, [outcomes, axes, cells].
        after: the same log probabilities and gradients at the centres moved by δ, the effect of one
            vote.
        shift: |δ|₁.
        half: h, half of the side of each cell.
        order: λ > 1, one number or one per cell.
        smooth: [cells], true for every cell with two classes. For a square, true if x has the same
            sign at all points of the square and at all points that the square passes while it moves
            by δ, and the same holds for y.

    Returns:
        (value, bound), each [cells]. The bound also holds if the log probabilities and their
        gradients have errors up to `LOG_ERROR`.
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
        # The effect of errors in P, r and derivatives on the value, and on the slope along the step
        # d.
        rest += off * (chi_1 * (1.0 + steep + slope) + chi_2 * slope + 2.0 * chi * (1.0 + steep))
        rest += off * axes * half * (chi + 2.0 * chi_1)
        second = value + half * np.abs(gradient).sum(axis=0) + rest.sum(axis=0)

        corners = np.array(list(product((-half, half), repeat=axes)))
        tops = np.tensordot(corners, grad_p + c * grad_r, axes=(1, 1)) + log_p + c * r
        error = c * bend_r / 2.0 + order * off * (1.0 + 2.0 * axes * half)
        third = np.expm1(np.logaddexp.reduce(tops, axis=1).max(axis=0) + error)
    return value, np.fmin(np.fmin(chi.sum(axis=0), second), third)


# How many steps `gap_of_score` makes. Each step at least halves the error, because the slope of the
# iterated map is 1/(2 + g).
_STEPS = 60
_ROUND_OFF = 1e-9
_SLACK = 1e-6
_FARTHEST = 700.0
_MOST_EXPONENT = 600.0
_MOST_CELLS = 20_000
_PARTS = 8


def gap_of_score(score: ArrayLike) -> Floats:
    """Return the gap g ≥ 0 between two classes at which the score is `score`.

    At gap g the smaller count wins with probability q(g), and the score is ψ(q(g)) = log 2q(g). For
    scores above 0 the result is 0.
    """
    log_q = np.minimum(np.asarray(score, dtype=np.float64), 0.0) - LOG_2
    gap = -log_q
    for _ in range(_STEPS):
        gap = -log_q + np.log((2.0 + gap) / 4.0)
    return np.maximum(gap, 0.0)


def _sides(gap: Floats) -> tuple[Floats, Floats]:
    """Return log probabilities that the class which is behind by `gap` wins and loses.

    If `gap` is negative, the class which is "behind" is ahead by −`gap`.
    """
    rare = two_class_log_q(np.abs(gap))
    likely = np.log1p(-np.exp(rare))
    return np.where(gap >= 0.0, rare, likely), np.where(gap >= 0.0, likely, rare)


def laplace_edge_rdp(gap: ArrayLike, *, shift: float, orders: ArrayLike) -> Floats:
    """Return W(g), the RDP cost with two classes if one vote turns the gap g into g + shift.

    W(g) is the larger of the two Rényi divergences, forward and reverse, between the output at gap
    g and the output at gap g + shift.

    Args:
        gap: real gaps g in units of b, any shape.
        shift: by how much the gap of a neighbour is larger, ≥ 0, in units of b.
        orders: Rényi orders λ > 1, [orders].

    Returns:
        [orders, *gap.shape], nats, at most `shift`; the result is `shift` if float64 overflows.
    """
    gaps = np.asarray(gap, dtype=np.float64)
    column = check_orders(orders).reshape((-1,) + (1,) * gaps.ndim)
    here, there = _sides(gaps), _sides(gaps + shift)
    worst = np.maximum(
        bernoulli_excess(here, there, order=column), bernoulli_excess(there, here, order=column)
    )
    return np.minimum(np.log1p(worst) / (column - 1.0), shift)


def _peak(*, shift: float, order: Floats) -> tuple[float, float]:
    """Return the gap g ≥ −shift/2 at which `laplace_edge_rdp`, W(g), is largest, and W there.

    W is symmetric about −shift/2. For large g, W is about ε0 − ε0/(2 + g) + log(q)/(λ − 1). So the
    gap at which W is largest is near the square root of λ ε0 if λ ε0 is large.
    """
    low, high = -shift / 2.0, 2.0 * float(np.sqrt(order[0] * shift)) + 20.0
    return highest(lambda gap: laplace_edge_rdp(gap, shift=shift, orders=order)[0], low, high)


def _coin(gap: Floats) -> tuple[Floats, Floats]:
    """Return log probabilities of the two classes at each gap, and their derivatives by the gap.

    The first result is [2, cells]: the log probabilities that the class which is behind by `gap`
    wins and loses. The second result is [2, 1, cells]: the derivatives of both log probabilities by
    the gap.
    """
    logs = np.stack(_sides(gap))
    density = np.log1p(np.abs(gap)) - np.abs(gap) - 2.0 * LOG_2
    return logs, np.exp(density - logs)[:, None] * np.array([[[-1.0]], [[1.0]]])


def _certified_peak(*, shift: float, orders: Floats, seen: Floats) -> Floats:
    """Return a proven upper bound on the largest `laplace_edge_rdp` over all gaps, [orders].

    `seen` is the value of `laplace_edge_rdp` at some gap, [orders]. The bound is `shift` if float64
    overflows.
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
    # The cells are symmetric about −shift/2. Their positions are the same for all sets of orders.
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
    """Return the RDP cost F of a Laplace noisy argmax with two classes.

    Args:
        score: ψ(q), any shape.
        scale: b > 0, the scale of the noise on each count (votes).
        orders: Rényi orders λ > 1, shape [orders].
        peaks: the largest cost F(0) at these orders, if the caller already knows it, [orders].

    Returns:
        [orders, *score.shape] in nats, at most ε0 = 2/b, and non-decreasing in the score. Let u* be
        the gap at which `laplace_edge_rdp` is largest. For gaps up to u* + ε0 the result is a
        proven upper bound on the cost, and about 1 + 1e-6 times the largest cost at any gap.

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
