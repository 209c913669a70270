"""The noisy threshold check as published: answer when score + N(0, σ1²) ≥ T.

The score is the highest count (Algorithm 1) or the highest max_j(n_j − τ p_j) (Algorithm 2).
One teacher moves it by at most 1, so the check is (λ, λ/(2σ1²))-RDP: it costs what a two-class
GNMax with noise √2·σ1 would.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, ndtr

from pate_cli.core.arrays import Floats, Ints
from pate_cli.core.errors import ParameterError
from pate_cli.paper.gnmax import rdp_of_log_q

_CELLS_A_VOTE = 64


def answer_chance(scores: ArrayLike, *, threshold: float, sigma: float) -> Floats:
    """Pr[answer] = Φ((v − T)/σ1) of each query, [queries]. Algorithm 1, line 2.

    Args:
        scores: score v of each query, [queries], in votes.
        threshold: T, in votes.
        sigma: standard deviation σ1 > 0 of the noise on the score, in votes.
    """
    return np.asarray(ndtr(_standardised(scores, threshold, sigma)), dtype=np.float64)


def threshold_rdp(
    scores: ArrayLike, *, threshold: float, sigma: float, orders: ArrayLike
) -> Floats:
    """RDP cost of the check: Theorem 6 with √2·σ1 for σ, at most λ/(2σ1²).

    Args:
        scores: score v of each query, [queries], in votes.
        threshold: T, in votes.
        sigma: standard deviation σ1 > 0 of the noise on the score, in votes.
        orders: Rényi orders λ > 1.

    Returns:
        [orders, queries], nats. SECRET: it depends on the votes.
    """
    log_q = log_ndtr(-np.abs(_standardised(scores, threshold, sigma)))  # of the unlikely outcome
    return rdp_of_log_q(log_q, sigma=np.sqrt(2.0) * sigma, orders=orders)


def threshold_local_sensitivity(
    scores: ArrayLike, *, threshold: float, sigma: float, order: float, teachers: int
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
        scores: score v of each query, [queries], in votes.
        threshold: T, in votes.
        sigma: standard deviation σ1 > 0 of the noise on the score, in votes.
        order: Rényi order λ > 1.
        teachers: how many teachers vote; the curve has as many distances, 0 … teachers − 1.

    Returns:
        [teachers], nats, non-decreasing. SECRET: it depends on the votes.

    Raises:
        ParameterError: real scores more than a million votes from the threshold.
    """
    scores = np.asarray(scores, dtype=np.float64)
    if not ((scores == np.floor(scores)) & (scores >= 0) & (scores <= teachers)).all():
        return _over_reals(scores - threshold, sigma, order, teachers)
    votes = np.arange(teachers + 1.0)
    cost = threshold_rdp(votes, threshold=threshold, sigma=sigma, orders=order)[0]
    step = np.abs(np.diff(cost))
    steepest = np.maximum(np.append(step, 0.0), np.append(0.0, step))
    place = scores.astype(np.int64)
    return _spread(steepest, place, place, teachers)


def _over_reals(beyond: Floats, sigma: float, order: float, teachers: int) -> Floats:
    """Local sensitivity with u and u' real; `beyond` is v − T of each query.

    f depends on x = |u − T| and does not rise with it (C5). Cell k is x in [k, k + 1]/64: a step
    of one vote leads from it at most to cell k + 64 outwards, and to cell k − 64 inwards.
    """
    fine = _CELLS_A_VOTE
    low = np.floor(beyond * fine)
    high = np.maximum(np.ceil(beyond * fine) - 1, low)
    furthest = np.abs([low, high]).max(initial=0.0)
    if furthest > 1e8:
        raise ParameterError("scores must be within a million votes of the threshold")
    cells = int(furthest) + (teachers + 1) * fine
    edges = np.arange(cells + fine + 2) / fine
    cost = threshold_rdp(edges, threshold=0.0, sigma=sigma, orders=order)[0]
    cost = np.minimum.accumulate(cost)
    cell = np.arange(cells)
    outwards = cost[cell] - cost[cell + 1 + fine]
    inwards = cost[np.maximum(cell - fine, 0)] - cost[cell + 1]
    half = np.maximum(outwards, inwards)
    # Cells of u − T from −cells to cells − 1; cell −1 − k mirrors cell k.
    steepest = np.concatenate([half[::-1], half])
    left, right = low.astype(np.int64) + cells, high.astype(np.int64) + cells
    return _spread(steepest, left, right, teachers, stride=fine)


def _spread(steepest: Floats, left: Ints, right: Ints, teachers: int, stride: int = 1) -> Floats:
    """Σ over queries of max(steepest[left − d·stride … right + d·stride]), at every d."""
    # window[k]: the maximum over cells k … k + stride − 1.
    padded = np.concatenate([steepest, np.zeros(stride)])
    window = np.lib.stride_tricks.sliding_window_view(padded, stride).max(axis=1)
    (left, right), times = np.unique(np.stack([left, right]), axis=1, return_counts=True)
    highest = np.maximum(steepest[left], steepest[right])
    curve = np.empty(teachers)
    for distance in range(teachers):
        if distance:
            left, right = left - stride, right + stride
            ends = np.clip([left, right - stride + 1], 0, steepest.size)
            highest = np.maximum(highest, window[ends].max(axis=0))
        curve[distance] = times @ highest
    return curve


def _standardised(scores: ArrayLike, threshold: float, sigma: float) -> Floats:
    with np.errstate(over="ignore"):  # infinitely many σ1 from the threshold: probability 0 or 1
        return (np.asarray(scores, dtype=np.float64) - threshold) / sigma
