"""The noisy threshold check as published: answer when score + N(0, σ1²) ≥ T.

The score is the highest count (Algorithm 1) or the highest max_j(n_j − τ p_j) (Algorithm 2).
One teacher moves it by at most 1, so the check is (λ, λ/(2σ1²))-RDP: it costs what a two-class
GNMax with noise √2·σ1 would.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pate_cli.core.arrays import Floats, Ints
from pate_cli.core.checks import check_order, check_positive
from pate_cli.core.errors import ParameterError
from pate_cli.core.special import log_ndtr
from pate_cli.published.checks import check_scores, check_teachers
from pate_cli.published.gnmax import rdp_of_log_q

_CELLS_A_VOTE = 64


def log_probability_answered(max_counts: ArrayLike, *, threshold: float, sigma: float) -> Floats:
    """log Pr[answer] = log Φ((v − T)/σ1), Algorithm 1 line 2.

    Args:
        max_counts: score v of each query, [queries], finite reals, in votes.
        threshold: T, any finite number, in votes.
        sigma: standard deviation σ1 > 0 of the noise on the score, in votes.

    Returns:
        [queries], at most 0.

    Raises:
        ParameterError: an argument outside its range.
    """
    return np.asarray(log_ndtr(_standardised(max_counts, threshold, sigma)), dtype=np.float64)


def threshold_rdp(
    max_counts: ArrayLike, *, threshold: float, sigma: float, orders: ArrayLike
) -> Floats:
    """Data-dependent RDP of the check: Theorem 6 with √2·σ1 for σ, at most λ/(2σ1²).

    Args:
        max_counts: score v of each query, [queries], finite reals, in votes.
        threshold: T, any finite number, in votes.
        sigma: standard deviation σ1 > 0 of the noise on the score, in votes.
        orders: Rényi orders λ > 1.

    Returns:
        [orders, queries], nats. Secret: it depends on the votes.

    Raises:
        ParameterError: an argument outside its range.
    """
    margin = np.abs(_standardised(max_counts, threshold, sigma))
    log_q = log_ndtr(-margin)  # of the less likely outcome
    return rdp_of_log_q(log_q, sigma=np.sqrt(2.0) * sigma, orders=orders)


def threshold_local_sensitivity(
    max_counts: ArrayLike, *, threshold: float, sigma: float, order: float, teachers: int
) -> Floats:
    """Σ_queries max{LS(u) : |u − v| ≤ d} for the check, at every distance d.

    The cost is a function f of one score v that a teacher moves by at most 1, so LS at distance d
    is the largest |f(u') − f(u)| with |u − v| ≤ d and |u' − u| ≤ 1: a running maximum over
    distances, as Theorem 24 asks (the curve of single steps at distance exactly d is not
    monotone: f falls again past the threshold).

    Whole scores in 0 … teachers are highest counts: u and its neighbours u ± 1 are whole and stay
    in that range. Otherwise (a student's probabilities were subtracted) every real u counts, and
    each cell of 1/64 vote is bounded by its ends, at most 1/32 vote beyond the exact supremum.

    Args:
        max_counts: score v of each query, [queries], finite reals, in votes.
        threshold: T, any finite number, in votes.
        sigma: standard deviation σ1 > 0 of the noise on the score, in votes.
        order: Rényi order λ > 1.
        teachers: how many teachers vote; the curve has as many distances, 0 … teachers − 1.

    Returns:
        [teachers], nats, non-decreasing. Secret: it depends on the votes.

    Raises:
        ParameterError: an argument outside its range.
    """
    scores = check_scores(max_counts)
    teachers = check_teachers(teachers)
    order = check_order(order)
    whole = (scores == np.floor(scores)) & (scores >= 0) & (scores <= teachers)
    if whole.all():
        votes = np.arange(teachers + 1.0)
        cost = threshold_rdp(votes, threshold=threshold, sigma=sigma, orders=order)[0]
        step = np.abs(np.diff(cost))
        steepest = np.maximum(np.append(step, 0.0), np.append(0.0, step))
        place = scores.astype(np.int64)
        return _spread(steepest, place, place, teachers)
    return _over_reals(scores, threshold, sigma, order, teachers)


def _over_reals(
    scores: Floats, threshold: float, sigma: float, order: float, teachers: int
) -> Floats:
    """The same with u and u' real. f depends on x = |u − T| and does not rise with it (C5)."""
    fine = _CELLS_A_VOTE
    low = np.floor((scores - threshold) * fine)
    high = np.ceil((scores - threshold) * fine) - 1
    high = np.maximum(high, low)
    furthest = max(np.abs(low).max(initial=0.0), np.abs(high).max(initial=0.0))
    if furthest > 1e8:
        raise ParameterError("scores must be within a million votes of the threshold")
    cells = int(furthest) + (teachers + 1) * fine
    edges = np.arange(cells + fine + 2) / fine
    cost = threshold_rdp(edges + threshold, threshold=threshold, sigma=sigma, orders=order)[0]
    cost = np.minimum.accumulate(cost)
    # Cell k is x in [k, k + 1]/fine: one vote further out, and one vote further in.
    cell = np.arange(cells)
    out = cost[cell] - cost[cell + 1 + fine]
    inward = cost[np.maximum(cell - fine, 0)] - cost[cell + 1]
    half = np.maximum(out, inward)
    # Cells of u − T from −cells to cells − 1; cell −1 − k mirrors cell k.
    steepest = np.concatenate([half[::-1], half])
    left = low.astype(np.int64) + cells
    right = high.astype(np.int64) + cells
    return _spread(steepest, left, right, teachers, stride=fine)


def _spread(steepest: Floats, left: Ints, right: Ints, teachers: int, stride: int = 1) -> Floats:
    """Σ over queries of max(steepest[left − d·stride … right + d·stride]), at every d."""
    size = steepest.size
    # furthest[k]: the maximum over cells k … k + stride − 1.
    padded = np.concatenate([steepest, np.zeros(stride)])
    furthest = np.lib.stride_tricks.sliding_window_view(padded, stride).max(axis=1)
    places, times = np.unique(np.stack([left, right]), axis=1, return_counts=True)
    left, right = places
    highest = np.maximum(steepest[left], steepest[right])
    curve = np.empty(teachers)
    for distance in range(teachers):
        if distance:
            left, right = left - stride, right + stride
            beyond = furthest[np.clip(right - stride + 1, 0, size)]
            behind = furthest[np.clip(left, 0, size)]
            highest = np.maximum(highest, np.maximum(beyond, behind))
        curve[distance] = times @ highest
    return curve


def _standardised(max_counts: ArrayLike, threshold: float, sigma: float) -> Floats:
    sigma = check_positive("sigma1", sigma)
    if not np.isfinite(threshold):
        raise ParameterError(f"threshold must be finite, got {threshold}")
    with np.errstate(over="ignore"):  # infinitely many σ1 from the threshold: probability 0 or 1
        return (check_scores(max_counts) - threshold) / sigma
