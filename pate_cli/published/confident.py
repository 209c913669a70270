"""Expected cost of a Confident-GNMax run and its smooth sensitivity, as Table 2 reports them.

"The expectations are taken over the student's queries and outcomes of the first step": the check
is paid on every query and the answer with the probability that it is given. An expectation is
not a guarantee: realised answers may cost more, and the probability itself depends on the votes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pate_cli.core.arrays import Floats
from pate_cli.core.checks import check_positive
from pate_cli.core.errors import ParameterError
from pate_cli.published.checks import check_histograms, check_scores
from pate_cli.published.distances import gnmax_local_sensitivity
from pate_cli.published.gnmax import gnmax_rdp
from pate_cli.published.threshold import (
    log_probability_answered,
    threshold_local_sensitivity,
    threshold_rdp,
)


def expected_answers(max_counts: ArrayLike, *, threshold: float, sigma: float) -> float:
    """Σ Pr[answer] over the queries: Algorithm 1 line 2, in expectation.

    Args and errors as in `log_probability_answered`. Secret: it depends on the votes.
    """
    chance = np.exp(log_probability_answered(max_counts, threshold=threshold, sigma=sigma))
    return float(chance.sum())


def confident_expected_cost(
    counts: ArrayLike,
    *,
    threshold: float,
    sigma1: float,
    sigma2: float,
    orders: ArrayLike,
    scores: ArrayLike | None = None,
) -> Floats:
    """Expected RDP of each query: c1 + Pr[answer]·c2 (Section B.6 and Table 2).

    Args:
        counts: votes [queries, classes], finite and at least 0.
        threshold: T of the check, in votes.
        sigma1: standard deviation σ1 > 0 of the check's noise, in votes.
        sigma2: standard deviation σ2 > 0 of GNMax's noise, in votes.
        orders: Rényi orders λ > 1.
        scores: what the check compares to T, [queries]; the highest count when None. For
            Interactive-GNMax (Algorithm 2) pass max_j(n_j − τ p_j).

    Returns:
        [orders, queries], nats; sum over queries for a run. Secret: it depends on the votes.

    Raises:
        ParameterError: an argument outside its range.
    """
    histograms = check_histograms(counts)
    compared = _scores_or_highest(histograms, scores)
    check = threshold_rdp(compared, threshold=threshold, sigma=sigma1, orders=orders)
    chance = np.exp(log_probability_answered(compared, threshold=threshold, sigma=sigma1))
    return check + chance * gnmax_rdp(histograms, sigma2, orders)


def expected_local_sensitivity(
    counts: ArrayLike,
    *,
    threshold: float,
    sigma1: float,
    sigma2: float,
    order: float,
    teachers: int,
    scores: ArrayLike | None = None,
) -> Floats:
    """Local sensitivity of a Confident run by distance, as Table 2 computes it.

    Theorem 24: Σ_queries max{LS̃ : dist ≤ d}, of the check on every query and of GNMax times
    Pr[answer]. That probability is taken as fixed, which it is not: it too depends on the votes,
    so this sum is an expectation over the first step and bounds nothing strictly.

    Args:
        counts: whole votes [queries, classes], each row at most `teachers`.
        threshold: T of the check, in votes.
        sigma1: standard deviation σ1 > 0 of the check's noise, in votes.
        sigma2: standard deviation σ2 of GNMax's noise, in votes, from 0.1 to 1e9.
        order: Rényi order λ > 1.
        teachers: how many teachers vote; the curve has as many distances, 0 … teachers − 1.
        scores: what the check compares to T, [queries]; the highest count when None.

    Returns:
        [teachers], nats. Secret: it depends on the votes.

    Raises:
        ParameterError: an argument outside its range.
        ValidityError: C5 or C6 fails at (σ2, m, λ).
    """
    histograms = check_histograms(counts)
    compared = _scores_or_highest(histograms, scores)
    check = threshold_local_sensitivity(
        compared, threshold=threshold, sigma=sigma1, order=order, teachers=teachers
    )
    chance = np.exp(log_probability_answered(compared, threshold=threshold, sigma=sigma1))
    return check + gnmax_local_sensitivity(
        histograms,
        sigma=sigma2,
        order=order,
        teachers=teachers,
        weights=chance,
    )


def smooth_sensitivity(curve: ArrayLike, *, beta: float) -> float:
    """SS_β = max_d e^{−βd}·curve[d]. Algorithm 5, Theorem 24.

    Args:
        curve: local sensitivity by distance d = 0, 1, …, [distances], finite and at least 0.
        beta: smoothness β > 0.

    Returns:
        SS_β, in the curve's units.

    Raises:
        ParameterError: an argument outside its range.
    """
    beta = check_positive("beta", beta)
    heights = np.asarray(curve, dtype=np.float64)
    if heights.ndim != 1 or heights.size == 0 or not ((heights >= 0) & (heights < np.inf)).all():
        raise ParameterError("a sensitivity curve must be [distances], finite and at least 0")
    return float((np.exp(-beta * np.arange(heights.size)) * heights).max())


def _scores_or_highest(histograms: Floats, scores: ArrayLike | None) -> Floats:
    """The scores given, checked to be one a query, or the highest count of each histogram."""
    if scores is None:
        return np.asarray(histograms.max(axis=1), dtype=np.float64)
    compared = check_scores(scores)
    if compared.size != histograms.shape[0]:
        raise ParameterError(
            f"scores must be one a query: {compared.size} scores, {histograms.shape[0]} queries"
        )
    return compared
