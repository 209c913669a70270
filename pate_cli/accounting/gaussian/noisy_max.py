"""The probability that the plurality loses a Gaussian noisy argmax, exactly.

For a histogram n with plurality i* and noise N(0, σ²) on every count,

  q = Σ_{i ≠ i*} ∫ φ(t − n_i/σ) Π_{j ≠ i} Φ(t − n_j/σ) dt,

summed over the losers (1 − Pr[i* wins] would cancel). With t measured from the top count, the
integrand is exp(Σ_j log Φ(t + g_j)) · Σ_{i ≠ i*} (φ/Φ)(t + g_i), where g_j = (n_i* − n_j)/σ are
gaps: positive terms only, tabulated over the integer gaps n_i* − n_j. The trapezoid rule converges
faster than any power of its step on such entire integrands, but m factors Φ near a tie make the
integrand narrow and steep: the step shrinks like m^{−1/4}. A loser at gap g wins around t = −g/2
with Gaussian decay e^{−(t + g/2)²} about it, and as φ(t + g) far above, from g²/4 at the peak: with
the runner-up's g, nodes from 5.75 below −g/2 (e^{−33}) to √(58 + 4 log(m − 1) + g²/2) − g lose
nothing.
A class is passed over where it adds nothing: without it q is the chance that the plurality loses to
the others, which is less by the chance that it wins, Φ(−g_j/√2) at most, where q ≥ Φ(−g/√2).
Classes that nobody voted for share one gap and enter by their number, so that a histogram costs as
much as it has classes with votes. Of many near-tied classes q is so close to 1 that its last digit
moves z: beyond DENSE_CLASSES classes and q = ½, z is taken from the chance that the plurality wins,
the integral of φ(t) Π_{j ≠ i*} Φ(t + g_j), with nodes to √(58 + 4 log(m − 1)), past which φ is
below e^{−29}/m².

Where only the cell of a lattice is asked for that z is in, a score within ROUGH_ERROR settles all
but those close to an edge, which are found as above. By parts

  q = ∫ φ(t) (1 − Π_{j ≠ i*} Φ(t + g_j)) dt,

one sum of logarithms L a node in place of two, and well conditioned: 1 − e^L = 2u/(1 + u) with
u = tanh(−L/2) has no larger relative error than L, so single precision does. It is the mirror image
of the sum over losers: Gaussian decay above −g/2, and φ(t) far below.

The score is z = Φ⁻¹(q). Since q = min_i (1 − Pr[i wins]), and a Gaussian trade-off function moves
each Φ⁻¹(1 − Pr[i wins]) by at most μ = √2/σ when one vote moves, z is μ-Lipschitz in votes. The
union bound of Proposition 7, with its cap, is not a usable score: one vote can move it by 3.2 μ.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pate_cli.core.arrays import (
    DENSE_CLASSES,
    Counts,
    Floats,
    Histograms,
    Ints,
    SparseCounts,
    each_once,
    row_width,
)
from pate_cli.core.checks import check_positive
from pate_cli.core.errors import ParameterError
from pate_cli.core.special import log_ndtr, ndtri, ndtri_exp

# Largest error of a score of up to checks.MOST_CLASSES classes, at most DENSE_CLASSES of them with
# votes. Against multiple-precision integrals the tests see 2.5e-10, most of it rounding in sums
# over classes that tie.
SCORE_ERROR = 1e-9

# Φ(z) leaves the normal floating-point numbers below; scores are clamped here at the latest.
LOWEST_SCORE = -37.0

# The step of the trapezoid rule for so many classes, in units of σ.
_STEP = 0.2
_CLASSES_AT_STEP = 50
# Nodes go from so far below −g/2 to where the exponent has fallen by half of this, and twice the
# logarithm of the losers, from its peak: they share what is beyond, and z is steep where q nears 1.
_LEFT = 5.75
_RIGHT = 58.0
# All classes that are passed over win together less often than this beside the runner-up.
_DROPPED = 1e-13

# Largest error of a rough score, of up to so many losers and from a floor on (THEORY.md, 12.3); the
# tests see 1.5e-6.
ROUGH_ERROR = 1e-5
_ROUGH_LOSERS = 100
_ROUGH_FLOOR = -12.0
# Its step for so many classes; what is left of the peak beyond its nodes, as a logarithm; and what
# is passed over.
_ROUGH_STEP = 0.5
_CLASSES_AT_ROUGH_STEP = 10
_ROUGH_TAIL = 15.0
_ROUGH_DROPPED = 1e-7
# Where cells are so much larger than the error, few scores are close to an edge.
_WORTH_ROUGH = 100.0

_LOG_ROOT_2PI = 0.5 * np.log(2.0 * np.pi)
_LOG_2 = math.log(2.0)
# Histogram entries, and numbers of their integrands, looked at in one go; they bound memory, and
# what is worked on stays in cache.
_BLOCK = 1_000_000
_CHUNK = 250_000
# So many rows and classes are added up a loser at a time: sparse matrices take longer to import.
_FEW_ROWS = 2_000
_FEW_CLASSES = 50
# Up to here there is a row of tables for every gap, beyond for those that occur.
_MOST_LEVELS = 4096


def score_lipschitz(sigma: float) -> float:
    """How far one vote can move a computed score: √2/σ, widened by what the computation adds."""
    return float(np.sqrt(2.0) / check_positive("sigma", sigma)) * (1.0 + 1e-9) + 2.0 * SCORE_ERROR


def rival_lipschitz(sigma: float) -> float:
    """How far one vote can move y = z + v·(this), for computed scores z: 1/(σ√2), widened.

    See `rival_columns` and THEORY.md, section 4.6.
    """
    half = float(np.sqrt(0.5) / check_positive("sigma", sigma))
    return half * (1.0 + 1e-9) + 2.0 * SCORE_ERROR


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


def scores(
    counts: Histograms, *, sigma: float, floor: float = LOWEST_SCORE, step: float = 0.0
) -> Floats:
    """z = Φ⁻¹(Pr[the plurality loses]) per query.

    Args:
        counts: integer histograms [queries, classes], classes ≥ 2, in either form.
        sigma: standard deviation of the noise on each count, > 0 (counts).
        floor: scores below it are returned as it (clamping from below keeps the Lipschitz
            constant and can only raise a non-decreasing cost); spares far quadratures.
        step: of a lattice whose cells alone are wanted: a score z may then be any other with the
            same ⌈(z + SCORE_ERROR)/step⌉, found sooner; 0 for the scores themselves.

    Returns:
        [queries] float64 with error at most SCORE_ERROR, or ROUGH_ERROR where a step is given.

    Raises:
        ParameterError: a bad sigma, or counts that are not two-dimensional with two classes.
    """
    sigma = check_positive("sigma", sigma)
    if not isinstance(counts, SparseCounts):
        counts = np.asarray(counts)
    rows = max(1, _BLOCK // max(1, row_width(counts)))
    parts = (_Losers.of(counts[start : start + rows]) for start in range(0, len(counts) or 1, rows))
    return np.concatenate([_scores(losers, sigma, floor, step) for losers in parts])


def loser_gaps(counts: Counts) -> Ints:
    """What the losers lack to the plurality, in votes, ascending: [rows, classes − 1].

    ParameterError for counts that are not two-dimensional with two classes.
    """
    counts = np.asarray(counts)
    # Numbers of four bytes sort and move sooner than larger ones, and than smaller ones.
    small = counts.size > 0 and counts.max() <= np.iinfo(np.int32).max
    counts = counts.astype(np.int32 if small else np.int64, copy=False)
    if counts.ndim != 2 or counts.shape[1] < 2:
        raise ParameterError(
            f"counts must be [queries, classes] with at least 2 classes, got shape {counts.shape}"
        )
    ordered = np.sort(-counts, axis=1)
    return ordered[:, 1:] - ordered[:, :1]


@dataclass(frozen=True, eq=False)
class _Losers:
    """What the losers lack to the plurality.

    Attributes:
        gaps: ascending, [rows, entries] (votes).
        last: how many losers the last entry of a row stands for; every other is one.
    """

    gaps: Ints
    last: int = 1

    @classmethod
    def of(cls, counts: Histograms) -> _Losers:
        """Those of histograms; classes that are no entry of a sparse one have no vote."""
        if not isinstance(counts, SparseCounts):
            return cls(loser_gaps(counts))
        # One more entry stands for all those.
        entries = np.pad(counts.counts, ((0, 0), (0, 1)))
        return cls(loser_gaps(entries), counts.classes - counts.counts.shape[1])

    @property
    def number(self) -> int:
        """Of losers."""
        return self.gaps.shape[1] - 1 + self.last

    def take(self, rows: Ints) -> _Losers:
        """Some rows."""
        return _Losers(self.gaps.take(rows, axis=0), self.last)


def _scores(losers: _Losers, sigma: float, floor: float, step: float) -> Floats:
    nearest = losers.gaps[:, 0]
    if losers.number == 1:
        return np.maximum(-nearest / (sigma * np.sqrt(2.0)), floor)
    found = np.full(len(nearest), floor)
    # What follows from the runner-up's gap alone is found once for each there is, and similar gaps
    # stand side by side, so that the nodes that matter are as few as they can be.
    distinct, place = _distinct(nearest)
    log_runner_up = log_ndtr(-distinct / (sigma * np.sqrt(2.0)))
    # By the union bound, Proposition 7, all others are below the floor.
    near = np.count_nonzero(log_runner_up + math.log(losers.number) >= log_ndtr(floor))
    ordered = np.argsort(place, kind="stable")
    ordered = ordered[: np.count_nonzero(place < near)]

    def reach(dropped: float, rows: Ints) -> Floats:
        share = log_runner_up[:near] + math.log(dropped / losers.number)
        return np.ceil(-np.sqrt(2.0) * sigma * ndtri_exp(share))[place[rows]]

    if (
        ordered.size > _FEW_ROWS
        and step >= _WORTH_ROUGH * ROUGH_ERROR
        and losers.number <= _ROUGH_LOSERS
        and floor >= _ROUGH_FLOOR
    ):
        rough = _rough(losers.take(ordered), reach(_ROUGH_DROPPED, ordered), sigma)
        found[ordered] = np.maximum(rough, floor)
        cell = (rough + SCORE_ERROR) / step
        ordered = ordered[np.abs(cell - np.rint(cell)) <= (ROUGH_ERROR + SCORE_ERROR) / step]
    if ordered.size:
        log_q, log_p = (
            np.concatenate(part)
            for part in zip(
                *_log_chances(losers.take(ordered), reach(_DROPPED, ordered), sigma), strict=True
            )
        )
        with np.errstate(divide="ignore"):
            score = np.where(log_p < -_LOG_2, -ndtri_exp(np.minimum(log_p, 0.0)), ndtri_exp(log_q))
        found[ordered] = np.maximum(score, floor)
    return found


def _distinct(gaps: Ints) -> tuple[Ints, Ints]:
    """Ascending gaps, all that occur among them, and the place of each, [rows]."""
    top = int(gaps.max(initial=0))
    if top <= _MOST_LEVELS:
        return np.arange(top + 1), gaps.astype(np.uint16)  # which sort soonest
    distinct, places = np.unique(gaps, return_inverse=True)
    return distinct, places


def _levels(gaps: Ints, reach: Floats) -> tuple[Ints, Ints]:
    """Ascending gaps that need a row in a table, and the row of each loser's.

    One row more is for those that are passed over in any case.
    """
    top = int(min(gaps.max() + 1, reach[-1]))
    if top <= _MOST_LEVELS:
        return np.arange(top), np.minimum(gaps, top)
    levels = each_once(gaps)
    return levels, np.searchsorted(levels, gaps)


def _rough(losers: _Losers, reach: Floats, sigma: float) -> Floats:
    """z within ROUGH_ERROR, [rows]; the arguments are those of `_log_chances`."""
    gaps = losers.gaps
    step = _ROUGH_STEP * (_CLASSES_AT_ROUGH_STEP / (losers.number + 1)) ** (1.0 / 3.0)
    nearest = gaps[:, 0] / sigma
    first = -np.sqrt(2.0 * _ROUGH_TAIL + 0.5 * nearest**2)
    last = math.sqrt(_ROUGH_TAIL + 2.0 * math.log(losers.number)) - 0.5 * nearest
    nodes = step * np.arange(math.floor(first[-1] / step), math.ceil(last[0] / step) + 1)
    levels, place = _levels(gaps, reach)
    table = np.zeros((len(levels) + 1, nodes.size), dtype=np.float32)
    table[:-1] = -0.5 * log_ndtr(nodes + levels[:, None] / sigma)
    weights = 2.0 * step * np.exp(-0.5 * nodes**2 - _LOG_ROOT_2PI)
    q = np.empty(len(gaps))
    rows = max(1, _CHUNK // (nodes.size + gaps.shape[1]))
    for start in range(0, len(gaps), rows):
        part = slice(start, start + rows)
        used = _within(nodes, first[part], last[part])
        end = int(np.searchsorted(levels, reach[part][-1]))
        tally = _tallied(place[part], end, len(levels), losers.last, np.float32)
        u = np.tanh(tally @ np.ascontiguousarray(table[:, used]))
        q[part] = (u / (1.0 + u)).astype(np.float64) @ weights[used]
    return np.asarray(ndtri(q))


def _log_chances(losers: _Losers, reach: Floats, sigma: float) -> Iterator[tuple[Floats, Floats]]:
    """log q and log (1 − q) by the trapezoid rule, a few rows at a time.

    The second of up to DENSE_CLASSES classes is given as 0: what is lost by 1 − q is then little.

    Args:
        losers: rows in ascending order of the first gap.
        reach: losers with this gap or more are passed over, [rows].
        sigma: standard deviation of the noise (counts).
    """
    gaps, many = losers.gaps, losers.number >= DENSE_CLASSES
    step = _STEP * (_CLASSES_AT_STEP / (losers.number + 1)) ** 0.25
    nearest, right = gaps[:, 0] / sigma, _RIGHT + 4.0 * math.log(losers.number)
    first, last = -0.5 * nearest - _LEFT, np.sqrt(right + 0.5 * nearest**2) - nearest
    if many:
        # By the union bound no others lose more often than they win.
        often = log_ndtr(-nearest / math.sqrt(2.0)) + math.log(2.0 * losers.number) >= 0.0
        last = np.where(often, math.sqrt(right), last)
    nodes = step * np.arange(math.floor(first[-1] / step), math.ceil(last[0] / step) + 1)
    levels, place = _levels(gaps, reach)
    # One row a level: log Φ at the nodes, then φ/Φ; no mark of those that are passed over.
    shifted = nodes + levels[:, None] / sigma
    log_cdf = log_ndtr(shifted)
    hazard = np.exp(-0.5 * shifted**2 - _LOG_ROOT_2PI - log_cdf)
    table = np.pad(np.stack([log_cdf, hazard], axis=1), ((0, 1), (0, 0), (0, 0)))
    own = log_ndtr(nodes)
    win = np.exp(-0.5 * nodes**2 - _LOG_ROOT_2PI - own)
    few = len(gaps) <= _FEW_ROWS and gaps.shape[1] < _FEW_CLASSES
    rows = max(1, _CHUNK // (2 * nodes.size + gaps.shape[1]))
    for start in range(0, len(gaps), rows):
        part = slice(start, start + rows)
        used = _within(nodes, first[part], last[part])
        narrow = np.ascontiguousarray(table[:, :, used]).reshape(len(table), -1)
        if few:
            sums = losers.last * narrow[place[part, -1]]
            for loser in place[part, :-1].T:
                sums += narrow[loser]
        else:
            end = int(np.searchsorted(levels, reach[part][-1]))
            sums = _tallied(place[part], end, len(levels), losers.last, np.float64) @ narrow
        log_stay, lose = np.split(sums, 2, axis=1)
        peak = 0.125 * nearest[start] ** 2  # half of −log q, lest it be out of range
        stay = log_stay + (own[used] + peak)  # side by side, which is quicker to take exp of
        np.exp(stay, out=stay)
        log_q = np.log(step * np.einsum("ij,ij->i", stay, lose)) - peak
        log_p = np.zeros(len(log_q))
        if many and often[start]:
            log_p = np.log(step * (stay @ win[used])) - peak
        yield log_q, log_p


def _within(nodes: Floats, first: Floats, last: Floats) -> slice:
    """The nodes from the lowest of `first`, descending, to the highest of `last`, descending."""
    return slice(int(np.searchsorted(nodes, first[-1])), int(np.searchsorted(nodes, last[0])))


def _tallied(place: Ints, end: int, levels: int, last: int, kind: type[np.floating[Any]]) -> Any:
    """How many losers of each row have each gap, sparse, [rows, levels + 1].

    Places are ascending in each row, and those from `end` on may be left out; `last` is as in
    `_Losers`.
    """
    from scipy.sparse import csr_array

    rows, losers = place.shape
    if losers > levels + 1:
        keys = place + np.arange(rows)[:, None] * (levels + 1)
        tally = np.bincount(keys.ravel(), minlength=rows * (levels + 1)).astype(kind)
        tally[keys[:, -1]] += last - 1
        return csr_array(tally.reshape(rows, levels + 1))
    kept = bisect.bisect(range(losers), False, key=lambda i: bool((place[:, i] >= end).all()))
    ends = np.arange(rows + 1, dtype=np.int32) * kept
    weights = np.ones((rows, kept), dtype=kind)
    if kept == losers:
        weights[:, -1] = last
    return csr_array((weights.ravel(), place[:, :kept].ravel(), ends), shape=(rows, levels + 1))
