"""The probability that the plurality loses a Laplace noisy argmax, exactly.

For a histogram n with plurality i* and noise Lap(b) on every count, density f and cdf F of Lap(1),

  q = Σ_{i ≠ i*} ∫ f(t − n_i/b) Π_{j ≠ i} F(t − n_j/b) dt,

summed over the losers. With t measured from the top count and gaps g_j = (n_i* − n_j)/b ≥ 0 the
integrand is Π_j F(t + g_j) · Σ_{i ≠ i*} (f/F)(t + g_i): positive terms only, analytic except for
kinks at the −g_j. From the top down:

  t ≥ 0         with u = e^{−t} a polynomial on [0, 1]: Gauss–Legendre panels;
  [−g_1, 0]     flat, (1/4) Σ e^{−g_i}, up to a layer above −g_1: closed form and panels;
  kink to kink  Gauss–Legendre panels, short where many classes share the decay;
  below all     every F is an exponential: (1 − 1/m) 2^{−m} e^{−Σ_j (g_max − g_j)}.

A class j with t below its kink contributes a factor e^{−(|t| − g_j)}, so the integrand is dropped
where these factors together are below e^{−30}/m². Since q ≥ e^{−g_1}(1 − 2^{−m})/m (the runner-up
alone, above the top), that removes less than 1e-13 of q. Everything is scaled by e^{g_1}, so that
relative accuracy does not depend on how small q is.

The score is ψ(q), ψ the quantile function of Lap(1): log 2q for q ≤ 1/2, −log 2(1 − q) beyond.
Let E be an event of the noisy histogram and shift one count by one vote: the most powerful test
between Lap(0, 1) and Lap(1/b, 1) is a one-sided one, so Pr'[E] ≤ F(F⁻¹(Pr[E]) + 1/b), that is
|ψ(Pr'[E]) − ψ(Pr[E])| ≤ 1/b. A moved vote shifts two counts, one after the other, by one vote
each; an added or a removed vote shifts one. Hence ψ(1 − Pr[i wins]) is 2/b-Lipschitz for every
fixed i. The plurality is the likeliest winner, q = min_i (1 − Pr[i wins]), ψ is increasing, and a
minimum of Lipschitz functions is Lipschitz: one vote moves ψ(q) by at most L = 2/b = ε0. The
output being ε0-DP would alone only make log q/(1 − q) 2ε0-Lipschitz (randomised response).

The union bound q̃ = Σ (2 + g_i)/(4 e^{g_i}) has log q̃ as a score with the same L, but q ≤ q̃
always, so at no histogram does it cost less.
"""

from __future__ import annotations

import itertools

import numpy as np

from pate_cli.accounting.gaussian.noisy_max import SCORE_ERROR, loser_gaps
from pate_cli.core.arrays import Counts, Floats, each_once
from pate_cli.core.checks import check_positive
from pate_cli.core.dataclass import dataclass

# Scores are clamped here at the latest: q = e^{−690}/2 is still a normal floating-point number.
LOWEST_SCORE = -690.0

_LOG_2 = float(np.log(2.0))
_DEPTH = 30.0
# Panels of width 1, or 6 units of log where several classes decay together; 12 nodes integrate
# e^{3x} on [−1, 1] to all digits.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)
_WIDEST = 1.0
_MOST_DECAY = 6.0
# The rule for pairs, and the largest Σ e^{−g_j}/2 per panel above the top.
_RULE = list(zip(_NODES.tolist(), _WEIGHTS.tolist(), strict=True))
_MOST_FALL = 4.0
# Panels × nodes × levels looked at in one go; bounds memory, not results.
_CHUNK = 1_000_000


def laplace_score_lipschitz(scale: float) -> float:
    """How far one vote can move a computed score: 2/b, widened by what the computation adds."""
    return 2.0 / check_positive("Laplace scale", scale) * (1.0 + 1e-9) + 2.0 * SCORE_ERROR


def laplace_score_range(*, teachers: int, classes: int, scale: float) -> tuple[float, float]:
    """The lowest and highest score any histogram can have (public).

    The lowest is bounded by two classes alone with a gap of τ; at worst all classes tie and
    q = 1 − 1/m.
    """
    widest = np.array([teachers / check_positive("Laplace scale", scale)])
    lowest = float(two_class_log_q(widest)[0]) + _LOG_2
    return min(lowest, 0.0) - SCORE_ERROR, float(np.log(classes / 2.0)) + SCORE_ERROR


def two_class_log_q(gap: Floats) -> Floats:
    """log Pr[the smaller of two counts wins], gap ≥ 0 in units of b: log((2 + g)/4) − g."""
    return np.log((2.0 + gap) / 4.0) - gap


def laplace_quantile(log_q: Floats) -> Floats:
    """ψ(q) = log 2q for q ≤ 1/2, −log 2(1 − q) beyond, from log q < 0."""
    with np.errstate(divide="ignore"):
        upper = -_LOG_2 - np.log(-np.expm1(log_q))
    return np.where(log_q <= -_LOG_2, log_q + _LOG_2, upper)


def laplace_cdf(x: Floats) -> Floats:
    """Pr[Lap(1) ≤ x], the inverse of ψ."""
    tail = 0.5 * np.exp(-np.abs(x))
    return np.where(x <= 0.0, tail, 1.0 - tail)


def laplace_log_q(counts: Counts, *, scale: float) -> Floats:
    """log Pr[the plurality loses] per query, whatever its size.

    Args:
        counts: integer histograms [queries, classes], classes ≥ 2; totals may differ.
        scale: b > 0, the scale of the noise on each count (votes).

    Returns:
        [queries] float64 with absolute error below SCORE_ERROR.

    Raises:
        ParameterError: a bad scale, or counts that are not two-dimensional with two classes.
    """
    scale = check_positive("Laplace scale", scale)
    gaps = loser_gaps(counts)
    if gaps.shape[1] == 1:
        return two_class_log_q(gaps[:, 0] / scale)
    distinct, inverse = np.unique(gaps, axis=0, return_inverse=True)
    return _log_q(np.pad(distinct, ((0, 0), (1, 0))), scale)[inverse.reshape(-1)]


def laplace_scores(counts: Counts, *, scale: float, floor: float = LOWEST_SCORE) -> Floats:
    """ψ(Pr[the plurality loses]) per query.

    Args:
        counts: integer histograms [queries, classes], classes ≥ 2; totals may differ.
        scale: b > 0, the scale of the noise on each count (votes).
        floor: scores below it are returned as it (clamping from below keeps the Lipschitz
            constant and can only raise a non-decreasing cost); spares far quadratures.

    Returns:
        [queries] float64 with error at most SCORE_ERROR.

    Raises:
        ParameterError: a bad scale, or counts that are not two-dimensional with two classes.
    """
    scale = check_positive("Laplace scale", scale)
    counts = np.asarray(counts, dtype=np.int64)
    gaps = loser_gaps(counts)
    union = two_class_log_q(gaps[:, 0] / scale) + np.log(gaps.shape[1])
    result = np.full(gaps.shape[0], float(floor))
    near = np.flatnonzero(union + _LOG_2 >= floor)
    if near.size:
        log_q = laplace_log_q(counts[near], scale=scale)
        result[near] = np.maximum(laplace_quantile(log_q), floor)
    return result


@dataclass(frozen=True)
class _Levels:
    """Distinct gaps of each row, ascending; rows with fewer are padded with their last one.

    Attributes:
        gap: [rows, levels], in units of b.
        classes: classes at each level, 0 in the padding, [rows, levels].
        losers: the same without the plurality itself.
    """

    gap: Floats
    classes: Floats
    losers: Floats

    @classmethod
    def of(cls, gaps: Counts, scale: float) -> _Levels:
        rows = gaps.shape[0]
        level = np.zeros_like(gaps)
        np.cumsum(np.diff(gaps, axis=1) > 0, axis=1, out=level[:, 1:])
        width = int(level.max()) + 1
        flat = (np.arange(rows)[:, None] * width + level).ravel()
        classes = np.bincount(flat, minlength=rows * width).reshape(rows, width).astype(np.float64)
        gap = np.repeat(gaps[:, -1:] / scale, width, axis=1)
        gap.ravel()[flat] = gaps.ravel() / scale
        losers = classes.copy()
        losers[:, 0] -= 1.0
        return cls(gap, classes, losers)

    @property
    def runner_up(self) -> Floats:
        """g_1: 0 when the top is tied."""
        return np.where(self.losers[:, 0] > 0.0, 0.0, self.gap[:, min(1, self.gap.shape[1] - 1)])


def _log_q(gaps: Counts, scale: float) -> Floats:
    """log q for distinct rows of gaps, the plurality's own 0 first, of at least three classes."""
    levels = _Levels.of(gaps, scale)
    scaled = _above_the_top(levels) + _plateau(levels, gaps.shape[1])
    scaled += _between_kinks(levels, gaps.shape[1]) + _below_all(levels, gaps.shape[1])
    return np.log(scaled) - levels.runner_up


def _depth(classes: int) -> float:
    return _DEPTH + 2.0 * float(np.log(classes))


def _above_the_top(levels: _Levels) -> Floats:
    """e^{g_1} times the part with t ≥ 0, in u = e^{−t}.

    The integrand falls by at most Σ e^{−g_j} in logs; rows that need as many panels go together.
    """
    half = np.exp(-levels.gap) / 2.0
    with np.errstate(over="ignore"):
        relative = levels.losers * np.exp(levels.runner_up[:, None] - levels.gap) / 2.0
    panels = np.ceil((levels.classes * half).sum(axis=1) / _MOST_FALL).astype(np.int64)
    total = np.zeros(half.shape[0])
    for number in each_once(panels).tolist():
        part = np.flatnonzero(panels == number)
        for panel, (node, weight) in itertools.product(range(number), _RULE):
            u = (panel + (node + 1.0) / 2.0) / number
            stay = np.exp((levels.classes[part] * np.log1p(-half[part] * u)).sum(axis=1))
            lose = (relative[part] / (1.0 - half[part] * u)).sum(axis=1)
            total[part] += weight / (2.0 * number) * stay * lose
    return total


def _plateau(levels: _Levels, classes: int) -> Floats:
    """e^{g_1} times the flat part of [−g_1, 0], (1/4) Σ e^{−g_i} per unit of t."""
    length = np.maximum(levels.runner_up - _depth(classes), 0.0)
    # With a tied top there is no plateau; its own level then has e^{g_1 − g} = 1 as well.
    relative = np.exp(np.minimum(levels.runner_up[:, None] - levels.gap, 0.0))
    return np.asarray(length * (levels.losers * relative).sum(axis=1) / 4.0, dtype=np.float64)


def _below_all(levels: _Levels, classes: int) -> Floats:
    """e^{g_1} times the part below the last kink."""
    depth = (levels.classes * (levels.gap[:, -1:] - levels.gap)).sum(axis=1)
    log_part = levels.runner_up - depth - classes * _LOG_2
    return np.asarray((1.0 - 1.0 / classes) * np.exp(log_part), dtype=np.float64)


def _intervals(levels: _Levels, classes: int) -> tuple[Floats, Floats, Floats]:
    """Upper ends, lengths and decay rates of what is integrated between kinks, [rows, levels−1]."""
    gap = levels.gap
    rate = np.cumsum(levels.losers, axis=1)
    # −log of the factors of the losers already below their kinks, at each kink.
    passed = rate * gap - np.cumsum(levels.losers * gap, axis=1)
    top, length = -gap[:, :-1], np.diff(gap, axis=1)
    depth = _depth(classes)
    alone = rate[:, 0] == 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        left = np.maximum(depth - passed[:, :-1], 0.0) / rate[:, :-1]
    limit = np.where(rate[:, :-1] > 0.0, left, depth)
    kept = np.minimum(length, limit)
    # Below a lone top the mass is at the lower end of the interval, above −g_1.
    top[:, 0] = np.where(alone, -length[:, 0] + kept[:, 0], top[:, 0])
    return top, kept, rate[:, :-1]


def _between_kinks(levels: _Levels, classes: int) -> Floats:
    """e^{g_1} times the panels between the first kink and the last."""
    rows, width = levels.gap.shape
    total = np.zeros(rows)
    if width == 1:
        return total
    top, length, rate = (part.ravel() for part in _intervals(levels, classes))
    row = np.repeat(np.arange(rows), width - 1)
    panels = np.ceil(length / np.minimum(_WIDEST, _MOST_DECAY / (rate + 1.0))).astype(np.int64)
    which = np.repeat(np.arange(panels.size), panels)
    place = np.arange(which.size) - np.repeat(np.cumsum(panels) - panels, panels)
    half = length[which] / panels[which] / 2.0
    centre = top[which] - half * (2.0 * place + 1.0)
    row = row[which]
    step = max(1, _CHUNK // (_NODES.size * width))
    for start in range(0, which.size, step):
        part = slice(start, start + step)
        nodes = centre[part, None] + half[part, None] * _NODES
        value = _integrand(nodes, levels, row[part]) @ _WEIGHTS
        total += np.bincount(row[part], weights=half[part] * value, minlength=rows)
    return total


def _integrand(nodes: Floats, levels: _Levels, row: Counts) -> Floats:
    """e^{g_1} Π_j F(t + g_j) Σ_losers (f/F)(t + g_i) at nodes [panels, nodes] of given rows."""
    x = nodes[:, :, None] + levels.gap[row][:, None, :]
    tail = np.exp(-np.abs(x)) / 2.0
    above = x >= 0.0
    log_cdf = np.where(above, np.log1p(-tail), x - _LOG_2)
    hazard = np.where(above, tail / (1.0 - tail), 1.0)
    log_stay = np.einsum("pnl,pl->pn", log_cdf, levels.classes[row])
    lose = np.einsum("pnl,pl->pn", hazard, levels.losers[row])
    return np.asarray(np.exp(log_stay + levels.runner_up[row, None]) * lose, dtype=np.float64)
