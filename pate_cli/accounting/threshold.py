"""The threshold step: is max_j n_j + N(0, σ1²) ≥ T?

The output is one biased coin with p(v) = Φ((v − T)/σ1), where v = max_j n_j, and one vote moves v
by at most 1. A coin's Rényi divergence is convex in the other coin's p' and vanishes at p' = p. So
the worst neighbour is v' = v ± 1, whether or not v is whole. The code keeps both v' at v = 0 and v
= τ. The cost is exact: near T it is about 2/π of the paper's λ/(2σ1²), and far from T it is much
less.

**A whole Confident query** is the test, then an argmax if the test passes. The output of the query
is "no answer" or a label. By the chain rule, which is exact in the first step,

  ρ = max over v' = v ± 1 and both directions of
      1/(λ−1) · log[(1−p)^λ (1−p')^{1−λ} + p^λ p'^{1−λ} e^{(λ−1) F(z)}],

where F is the cost of the argmax. ρ depends on the votes alone, not on the result of the test. So
ordinary composition makes the sum over *all rows fixed in advance* an RDP bound. Rows that a cap on
answers left unread are charged like the others, because a sum up to the cap is not an RDP bound.

DEPARTURE. The paper charges the threshold on every query and the argmax on answered queries, and
reports the expectation. By Jensen's inequality this expectation is below the Rényi divergence.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from pate_cli.accounting.divergence import bernoulli_excess
from pate_cli.core.arrays import Floats

# Above this exponent, e^{(λ−1)F} is computed through logarithms.
_LARGE = 500.0


@dataclass(frozen=True)
class PassMoments:
    """The threshold's part in the cost of a whole query, per neighbour and direction.

    Attributes:
        excess: J − 1 of the coin alone, [4, *v.shape] (v' = v − 1 and v + 1, forward and reverse).
        log_weight: log of p^λ p'^{1−λ} (or p'^λ p^{1−λ}) of an answer, of the same shape.
        order: the Rényi order λ.
    """

    excess: Floats
    log_weight: Floats
    order: float

    def take(self, index: NDArray[np.int64]) -> PassMoments:
        """Return the moments of the scores with these indices."""
        return PassMoments(self.excess[:, index], self.log_weight[:, index], self.order)


def pass_moments(
    v: Floats, *, threshold: float, sigma: float, order: float, moved: int = 1
) -> PassMoments:
    """Return the four (neighbour, direction) cases of one threshold test at scores v, any shape.

    A neighbour moves v by at most `moved` ≥ 1 votes.
    """
    margins = ((v + step - threshold) / sigma for step in (0, -moved, moved))
    here, below, above = ((log_ndtr(x), log_ndtr(-x)) for x in margins)
    first, second = (
        (np.stack([answer for answer, _ in cases]), np.stack([refusal for _, refusal in cases]))
        for cases in ((here, below, here, above), (below, here, above, here))
    )
    return PassMoments(
        excess=bernoulli_excess(first, second, order=order),
        log_weight=order * first[0] + (1.0 - order) * second[0],
        order=order,
    )


def cell_moments(
    low: Floats, *, width: float, threshold: float, sigma: float, order: float, moved: int = 1
) -> PassMoments:
    """Return upper bounds on `pass_moments` over whole cells low ≤ v ≤ low + width of real scores.

    The maximum over whole scores is too small for real scores (for T = 8, σ1 = 1, λ = 3 the largest
    cost is 1.0783, but at whole v it is 1.0605). So each cell is cut into pieces of length h. If
    the derivative of a function stays in [D⁻, D⁺] on a piece, the function is at most the larger of
    its two end values plus h(D⁺ − D⁻)/4. The parts of a moment are e^A with A = λ log Φ(±x) − (λ−1)
    log Φ(±x'). Because the hazard φ/Φ decreases, the ends of a piece bound the derivatives of A,
    and so the derivatives of e^A and of the sum of the parts.
    """
    if width == 0.0:
        return pass_moments(low, threshold=threshold, sigma=sigma, order=order, moved=moved)
    pieces = 16 * int(np.ceil(max(1.0, 0.5 * width * max(order, 4.0) / sigma)))
    edges = low[..., None] + np.linspace(0.0, width, pieces + 1)
    at_edges = pass_moments(edges, threshold=threshold, sigma=sigma, order=order, moved=moved)
    step = width / pieces
    excess, weight = [], []
    case = 0
    for move in (-moved, moved):
        here, there = (edges - threshold) / sigma, (edges + move - threshold) / sigma
        for first, second in ((here, there), (there, here)):
            (answer, least, most), (_, lower, upper) = (
                _branch(first, second, sign=sign, order=order, sigma=sigma, step=step)
                for sign in (1.0, -1.0)
            )
            with np.errstate(over="ignore", invalid="ignore"):
                swing = most + upper
                swing = swing - least - lower
                bound = _larger_end(at_edges.excess[case]) + step * swing / 4.0
            excess.append(np.nan_to_num(bound, nan=np.inf, posinf=np.inf).max(axis=-1))
            weight.append(answer.max(axis=-1))
            case += 1
    return PassMoments(excess=np.stack(excess), log_weight=np.stack(weight), order=order)


def _branch(
    first: Floats, second: Floats, *, sign: float, order: float, sigma: float, step: float
) -> tuple[Floats, Floats, Floats]:
    """Return bounds on log e^A and on the derivative of e^A in v by piece, [..., pieces].

    The three results are an upper bound on log e^A, and a lower and an upper bound on the
    derivative. sign·x is the margin by which the query is answered (sign 1) or not answered (sign
    −1).
    """
    c = order - 1.0
    value = order * log_ndtr(sign * first) - c * log_ndtr(sign * second)
    # For either sign, sign·φ/Φ(sign·x) decreases along x.
    mine, other = sign * _hazard(sign * first), sign * _hazard(sign * second)
    low = (order * mine[..., 1:] - c * other[..., :-1]) / sigma
    high = (order * mine[..., :-1] - c * other[..., 1:]) / sigma
    swing = step * (high - low) / 4.0
    log_high = _larger_end(value) + swing
    with np.errstate(over="ignore", invalid="ignore"):
        most = np.exp(log_high)
        least = np.exp(np.minimum(value[..., :-1], value[..., 1:]) - swing)
        slope_low = np.where(low < 0.0, most * low, least * low)
        slope_high = np.where(high > 0.0, most * high, least * high)
    return log_high, slope_low, slope_high


def _larger_end(values: Floats) -> Floats:
    return np.maximum(values[..., :-1], values[..., 1:])


def _hazard(x: Floats) -> Floats:
    """Return φ/Φ, computed through logarithms."""
    return np.exp(-0.5 * x * x - 0.5 * np.log(2.0 * np.pi) - log_ndtr(x))


def worst_threshold_rdp(
    *,
    teachers: int,
    threshold: float,
    sigma: float,
    orders: Floats,
    real: bool = False,
    moved: int = 1,
) -> Floats:
    """Return w1(λ), the largest cost f1 of the test at any votes, [orders], nats.

    The maximum is over whole v = 0, …, τ. With `real` it is over all real −τ ≤ v ≤ τ, for scores
    that are no counts. A neighbour moves v by at most `moved` ≥ 1 votes.
    """
    low = np.arange(-teachers if real else 0, teachers + 1, dtype=np.float64)
    worst, width = np.empty(orders.size), 1.0 if real else 0.0
    for row, order in enumerate(orders.tolist()):
        moments = cell_moments(
            low, width=width, threshold=threshold, sigma=sigma, order=order, moved=moved
        )
        worst[row] = np.log1p(moments.excess.max()) / (order - 1.0)
    return np.minimum(worst, moved**2 * orders / (2.0 * sigma**2))


def chain_rdp(moments: PassMoments, argmax_rdp: Floats, *, cap: float) -> Floats:
    """Return ρ, the RDP cost of the threshold test and the argmax together, nats.

    ρ follows from the four cases of the test and the argmax's cost, which are broadcast. The result
    is non-decreasing in argmax_rdp.

    Args:
        moments: moments of the test, at exact scores or as suprema over cells of scores.
        argmax_rdp: F(z) ≥ 0, nats.
        cap: the cost of publishing the noisy score; ρ is at most this plus F.
    """
    order = moments.order
    exponent = (order - 1.0) * argmax_rdp
    gain = np.expm1(np.minimum(exponent, _LARGE))
    shape = np.broadcast_shapes(moments.excess.shape[1:], np.shape(argmax_rdp))
    worst, term = np.zeros(shape), np.empty(shape)
    with np.errstate(over="ignore", invalid="ignore"):
        weight = np.exp(moments.log_weight)
        endless = not np.all(np.isfinite(weight))
        for excess, times in zip(moments.excess, weight, strict=True):
            np.multiply(times, gain, out=term)
            if endless:  # ∞·0 stands for 0
                np.copyto(term, 0.0, where=gain <= 0.0)
            term += excess
            np.maximum(worst, term, out=worst)
    np.log1p(worst, out=worst)
    if np.any(exponent > _LARGE):
        far = np.full(shape, -np.inf)
        for excess, log_weight in zip(moments.excess, moments.log_weight, strict=True):
            far = np.maximum(far, np.logaddexp(np.log1p(excess), log_weight + exponent))
        worst = np.where(np.broadcast_to(exponent > _LARGE, shape), far, worst)
    worst /= order - 1.0
    return np.minimum(worst, cap + argmax_rdp, out=worst)
