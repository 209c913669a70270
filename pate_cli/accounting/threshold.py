"""The threshold test: is max_j n_j + N(0, σ1²) ≥ T?

The test passes with probability p(v) = Φ((v − T)/σ1), where v = max_j n_j, and one vote moves v by
at most 1. The Rényi divergence of two Bernoulli distributions with p and p' is convex in p' and 0
at p' = p. So the worst neighbour has v' = v + 1 or v' = v − 1, whether or not v is a whole number.
The code uses both v' = v + 1 and v' = v − 1 even at v = 0 and v = τ, where one of these two scores
is impossible. The cost is exact. Near T the cost of the test is about 2/π of the paper's λ/(2σ1²),
and far from T the cost is much less.

**A whole Confident query** is the test, followed by an argmax if the test passes. The output of the
query is "no answer" or a label. The chain rule with the exact cost of the test shows that the RDP
cost of the query is at most

  ρ = max over v' = v ± 1 and both directions of
      1/(λ−1) · log[(1−p)^λ (1−p')^{1−λ} + p^λ p'^{1−λ} e^{(λ−1) F(z)}],

where F is the RDP cost of the argmax. ρ depends on the votes alone, not on the result of the test.
So by ordinary composition the sum of ρ over *all rows, whose number is fixed in advance*, bounds
the RDP cost of all queries. If a cap on answers ends a run early, ρ of the rows that were not read
is charged, too. Noise decides where a cap on answers ends a run, so the sum of ρ over the rows that
were read does not bound the RDP cost of the run.

DEPARTURE. The paper charges the threshold test for every query and the argmax for answered queries,
and reports the expected cost. The RDP cost of a query contains the average of an exponential over
the results of the test. So by Jensen's inequality the expected cost can be smaller than the RDP
cost, and is not a bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, log_ndtr

from pate_cli.accounting.divergence import bernoulli_excess
from pate_cli.core.arrays import Floats

# If the exponent (λ−1)F is above this number, e^{(λ−1)F} is only used as a logarithm.
_LARGE = 500.0


@dataclass(frozen=True)
class PassMoments:
    """Moments of the threshold test, from which `chain_rdp` computes the RDP cost of a query.

    Attributes:
        excess: E_Q[(P/Q)^λ] − 1, where P and Q are the distributions of the result of the test at
            two neighbours, [4, *v.shape]. The excess has two values for v' = v − moved, and two for
            v' = v + moved: one with P at v and Q at v' (forward), and one with P at v' and Q at v
            (reverse).
        log_weight: log p^λ p'^{1−λ} (forward) or log p'^λ p^{1−λ} (reverse) for the event that the
            test passes, [4, *v.shape].
        order: the Rényi order λ.
    """

    excess: Floats
    log_weight: Floats
    order: float

    def take(self, index: NDArray[np.int64]) -> PassMoments:
        """Return the moments at the scores with these indices."""
        return PassMoments(self.excess[:, index], self.log_weight[:, index], self.order)


def pass_moments(
    v: Floats, *, threshold: float, sigma: float, order: float, moved: int = 1
) -> PassMoments:
    """Return the moments of a threshold test at scores v, for neighbours v' = v ± `moved`.

    `PassMoments` explains the four moments of each score. The array v has any shape. A neighbour
    moves v by at most `moved` ≥ 1 votes.
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
    """Return upper bounds on the moments of a threshold test over cells low ≤ v ≤ low + width.

    If a score v may be any real number, the maximum over whole numbers v is too small: for T = 8,
    σ1 = 1, λ = 3 the largest cost is 1.0783, but at whole v it is 1.0605. So each cell is cut into
    pieces of length h. If the derivative of a function stays in [D⁻, D⁺] on a piece, the function
    is at most the larger of its two end values plus h(D⁺ − D⁻)/4. A moment is a sum of terms e^A
    with A = λ log Φ(±x) − (λ−1) log Φ(±x'). The derivative of log Φ(x) is φ(x)/Φ(x), which
    decreases in x. So the values of φ/Φ at the ends of a piece give bounds on the derivative of A
    in the piece, and these give bounds on the derivatives of e^A and of the moment.
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
    """Return bounds on one of the two terms e^A of the test's moment, for each piece of each cell.

    `cell_moments` explains A, pieces and cells. With sign 1 the bounds are on the term for an
    answer, and with sign −1 on the term for no answer. The three results are an upper bound on A,
    and a lower and an upper bound on the derivative of e^A in v, [..., pieces].
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
    """Return φ(x)/Φ(x) for the standard normal distribution; log Φ has this derivative."""
    return np.sqrt(2.0 / np.pi) / erfcx(-x / np.sqrt(2.0))


def worst_threshold_rdp(
    *,
    teachers: int,
    threshold: float,
    sigma: float,
    orders: Floats,
    real: bool = False,
    moved: int = 1,
) -> Floats:
    """Return w1(λ), the worst-case RDP cost of the threshold test over all votes, [orders], nats.

    The maximum is over the counts v = 0, …, τ. With `real` the maximum is over all real numbers −τ
    ≤ v ≤ τ, for scores that are no counts. A neighbour moves v by at most `moved` ≥ 1 votes.
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
    """Return ρ, the RDP cost of a threshold test and the argmax together, nats.

    ρ is the largest of the four cases of the test (two neighbours, two directions). The moments of
    the test and the cost of the argmax are broadcast. ρ is non-decreasing in `argmax_rdp`.

    Args:
        moments: the moments of the test, at single scores or as upper bounds over cells of scores.
        argmax_rdp: F ≥ 0, the RDP cost of the argmax, nats.
        cap: the RDP cost of publishing the noisy score, nats; ρ is at most `cap` + F.
    """
    order = moments.order
    exponent = (order - 1.0) * argmax_rdp
    gain = np.expm1(np.minimum(exponent, _LARGE))
    shape = np.broadcast_shapes(moments.excess.shape[1:], np.shape(argmax_rdp))
    worst, term = np.zeros(shape), np.empty(shape)
    with np.errstate(over="ignore", invalid="ignore"):
        for excess, times in zip(moments.excess, np.exp(moments.log_weight), strict=True):
            np.multiply(times, gain, out=term)
            term += excess
            np.maximum(worst, term, out=worst)
    np.log1p(worst, out=worst)
    heaviest = np.maximum(moments.log_weight.max(axis=0), 0.0)
    if np.max(exponent, initial=0.0) + np.max(heaviest, initial=0.0) > _LARGE:
        # Products that may overflow are computed as logarithms: the result must rise with F.
        with np.errstate(divide="ignore"):
            log_gain = exponent + np.log(-np.expm1(-exponent))
        far = np.full(shape, -np.inf)
        for excess, log_weight in zip(moments.excess, moments.log_weight, strict=True):
            far = np.maximum(far, np.logaddexp(np.log1p(excess), log_weight + log_gain))
        worst = np.where(exponent + heaviest > _LARGE, far, worst)
    worst /= order - 1.0
    return np.minimum(worst, cap + argmax_rdp, out=worst)
