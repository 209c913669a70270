"""The probability that the plurality loses a Gaussian noisy argmax, exactly.

For a histogram n with plurality i* and noise N(0, σ²) on every count,

  q = Σ_{i ≠ i*} ∫ φ(t − n_i/σ) Π_{j ≠ i} Φ(t − n_j/σ) dt,

summed over the losers (1 − Pr[i* wins] would cancel). With t measured from the top count, the
integrand is exp(Σ_j log Φ(t + g_j)) · Σ_{i ≠ i*} (φ/Φ)(t + g_i), where g_j = (n_i* − n_j)/σ are
gaps: positive terms only, tabulated over the integer gaps n_i* − n_j. The trapezoid rule converges
faster than any power of its step on such entire integrands, but m factors Φ near a tie make the
integrand narrow and steep: the step shrinks like m^{−1/4}. A loser at gap g wins around
t = −g/2 with Gaussian decay e^{−(t + g/2)²} about it, so nodes from 9 below −g/2 (g the runner-up's
gap; farther losers add less than e^{−81} of the total beyond) to 9 above the top lose nothing.

The score is z = Φ⁻¹(q). Since q = min_i (1 − Pr[i wins]), and a Gaussian trade-off function moves
each Φ⁻¹(1 − Pr[i wins]) by at most μ = √2/σ when one vote moves, z is μ-Lipschitz in votes. The
union bound of Proposition 7, with its cap, is not a usable score: one vote can move it by 3.2 μ.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import log_ndtr, ndtri_exp

from pate_cli.arrays import Counts, Floats
from pate_cli.checks import check_positive
from pate_cli.errors import ParameterError

__all__ = [
    "LOWEST_SCORE",
    "SCORE_ERROR",
    "argmax_score_range",
    "plurality_gaps",
    "score_lipschitz",
    "score_range",
    "scores",
    "worst_scores",
]


# Largest error of a score of up to 10,000 classes (checks.MOST_CLASSES). Against multiple-precision
# integrals the tests see 2.5e-10, most of it rounding in sums over classes that tie.
SCORE_ERROR = 1e-9

# Φ(z) leaves the normal floating-point numbers below; scores are clamped here at the latest.
LOWEST_SCORE = -37.0

_WIDEST_STEP = 0.2
_CLASSES_AT_WIDEST = 50
_MARGIN = 9.0
_LOG_ROOT_2PI = 0.5 * np.log(2.0 * np.pi)
# Rows × nodes × classes looked at in one go; bounds memory, not results.
_CHUNK = 4_000_000


def score_lipschitz(sigma: float) -> float:
    """How far one vote can move a computed score: √2/σ, widened by what the computation adds."""
    return float(np.sqrt(2.0) / check_positive("sigma", sigma)) * (1.0 + 1e-9) + 2.0 * SCORE_ERROR


def score_range(*, teachers: int, classes: int, sigma: float) -> tuple[float, float]:
    """The lowest and highest score any histogram can have (public).

    The lowest is bounded by two classes alone, −τ/(σ√2); at worst all classes tie and
    q = 1 − 1/m.
    """
    lowest = -teachers / (np.sqrt(2.0) * check_positive("sigma", sigma))
    highest = float(ndtri_exp(np.log1p(-1.0 / classes)))
    return float(lowest) - SCORE_ERROR, max(highest, 0.0) + SCORE_ERROR


def argmax_score_range(
    *, teachers: int, classes: int, sigma: float, order: float, teachers_per_record: int = 1
) -> tuple[float, float]:
    """`score_range` without the scores whose cost is below 1e-14 (public).

    F at z is at most e^{E} Φ(z + λμ) and a constant, E = λ(λ−1)μ²/2, which is negligible once
    (z + λμ)² ≥ (λμ)² + 64. A record that trained k teachers moves scores k times as far.
    """
    shift = order * math.sqrt(2.0) * teachers_per_record / sigma
    lowest, highest = score_range(teachers=teachers, classes=classes, sigma=sigma)
    return max(lowest, LOWEST_SCORE, -shift - math.hypot(shift, 8.0)), highest


def worst_scores(*, teachers: int, classes: int, sigma: float) -> Floats:
    """The highest score of any histogram whose plurality has at least v votes, v = 0 … τ.

    The losers' counts n_j ≤ v sum to τ − v at most, and Proposition 7 bounds q by
    Σ Φ((n_j − v)/(σ√2)), which is convex and increasing in counts up to v. So it is largest where
    as many losers as possible tie with v, one has the rest, and the others have none. A plurality
    wins at least one time in m. Votes may be missing.

    Args:
        teachers: τ ≥ 1.
        classes: m ≥ 2.
        sigma: standard deviation of the noise on each count, > 0 (counts).

    Returns:
        [teachers + 1], non-increasing, with the error of computed scores added.
    """
    scale = np.sqrt(2.0) * check_positive("sigma", sigma)
    v = np.arange(1, teachers + 1, dtype=np.float64)
    tied = np.minimum(np.floor((teachers - v) / v), classes - 1.0)
    rest = teachers - v - tied * v
    # The loser with the rest, and those with none; neither where all losers tie.
    one = np.where(tied < classes - 1.0, log_ndtr((rest - v) / scale), -np.inf)
    others = np.maximum(classes - 2.0 - tied, 0.0)
    with np.errstate(divide="ignore"):
        terms = np.stack([np.log(tied / 2.0), one, np.log(others) + log_ndtr(-v / scale)])
    most = np.log1p(-1.0 / classes)
    log_q = np.minimum(np.logaddexp.reduce(terms, axis=0), most)
    log_q = np.maximum.accumulate(np.append(most, log_q)[::-1])[::-1]
    return np.maximum(ndtri_exp(log_q), LOWEST_SCORE) + SCORE_ERROR


def plurality_gaps(counts: Counts) -> Counts:
    """Gaps to the plurality in votes, ascending, its own zero first: [rows, classes].

    ParameterError for counts that are not two-dimensional with two classes.
    """
    counts = np.asarray(counts, dtype=np.int64)
    if counts.ndim != 2 or counts.shape[1] < 2:
        raise ParameterError(
            f"counts must be [queries, classes] with at least 2 classes, got shape {counts.shape}"
        )
    ordered = -np.sort(-counts, axis=1)
    return ordered[:, :1] - ordered


def _log_union(gaps: Counts, sigma: float) -> Floats:
    """log of Σ Φ(−g/√2) over the losers, an upper bound on log q (Proposition 7)."""
    runner_up = log_ndtr(-gaps[:, 1] / (sigma * np.sqrt(2.0)))
    return runner_up + np.log(gaps.shape[1] - 1)


def _step(classes: int) -> float:
    """Step of the trapezoid rule, in units of σ."""
    return _WIDEST_STEP * float(min(1.0, (_CLASSES_AT_WIDEST / classes) ** 0.25))


def _log_q(gaps: Counts, sigma: float) -> Floats:
    """log q by the trapezoid rule for gaps sorted in ascending order, [rows]."""
    half = gaps[:, 1].max() / (2.0 * sigma)
    step = _step(gaps.shape[1])
    nodes = np.arange(-half - _MARGIN, _MARGIN + step, step)
    levels, index = np.unique(gaps, return_inverse=True)
    shifted = nodes[None, :] + levels[:, None] / sigma
    log_cdf = log_ndtr(shifted)
    hazard = np.exp(-0.5 * shifted**2 - _LOG_ROOT_2PI - log_cdf)
    index = index.reshape(gaps.shape)
    log_stay = log_cdf[index[:, 0]]
    lose = np.zeros_like(log_stay)
    for column in range(1, gaps.shape[1]):
        log_stay = log_stay + log_cdf[index[:, column]]
        lose += hazard[index[:, column]]
    # The integrand peaks far below 1 for wide gaps, so scale by its own largest term.
    with np.errstate(divide="ignore"):  # the hazard may underflow far above the top
        log_terms = log_stay + np.log(lose)
    peak = log_terms.max(axis=1, keepdims=True)
    total = np.exp(log_terms - peak).sum(axis=1)
    return np.asarray(peak[:, 0] + np.log(total) + np.log(step), dtype=np.float64)


def scores(counts: Counts, *, sigma: float, floor: float = LOWEST_SCORE) -> Floats:
    """z = Φ⁻¹(Pr[the plurality loses]) per query.

    Args:
        counts: integer histograms [queries, classes], classes ≥ 2.
        sigma: standard deviation of the noise on each count, > 0 (counts).
        floor: scores below it are returned as it (clamping from below keeps the Lipschitz
            constant and can only raise a non-decreasing cost); spares far quadratures.

    Returns:
        [queries] float64 with error at most SCORE_ERROR.

    Raises:
        ParameterError: a bad sigma, or counts that are not two-dimensional with two classes.
    """
    sigma = check_positive("sigma", sigma)
    gaps = plurality_gaps(counts)
    if gaps.shape[1] == 2:
        exact = -gaps[:, 1] / (sigma * np.sqrt(2.0))
        return np.asarray(np.maximum(exact, floor), dtype=np.float64)
    result = np.full(gaps.shape[0], floor)
    near = np.flatnonzero(_log_union(gaps, sigma) >= log_ndtr(floor))
    # Similar gaps side by side, so that each chunk's node range is as short as it can be.
    near = near[np.argsort(gaps[near, 1], kind="stable")]
    widest = 2.0 * _MARGIN + (gaps[near, 1].max() / (2.0 * sigma) if near.size else 0.0)
    rows = max(1, int(_CHUNK * _step(gaps.shape[1]) / (widest * gaps.shape[1]))) if near.size else 1
    for start in range(0, near.size, rows):
        part = near[start : start + rows]
        result[part] = np.maximum(ndtri_exp(_log_q(gaps[part], sigma)), floor)
    return result
