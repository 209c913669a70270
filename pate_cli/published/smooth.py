"""From local sensitivities to a smooth bound: Algorithm 5 and Theorem 24."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pate_cli.arrays import Floats
from pate_cli.checks import check_positive
from pate_cli.errors import ParameterError
from pate_cli.published.confident import scores_or_highest
from pate_cli.published.distances import gnmax_local_sensitivity
from pate_cli.published.threshold import log_probability_answered
from pate_cli.published.threshold_sensitivity import threshold_local_sensitivity
from pate_cli.published.votes_domain import check_histograms

__all__ = ["expected_local_sensitivity", "smooth_sensitivity"]


def expected_local_sensitivity(
    counts: ArrayLike,
    *,
    threshold: float,
    sigma1: float,
    sigma2: float,
    order: float,
    teachers: int,
    scores: ArrayLike | None = None,
    as_printed: bool = False,
    checked: bool = True,
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
        as_printed: see `gnmax_local_sensitivity`.
        checked: refuse when C5 or C6 fails at (σ2, m, λ).

    Returns:
        [teachers], nats. Secret: it depends on the votes.

    Raises:
        ParameterError: an argument outside its range.
        ValidityError: C5 or C6 fails.
    """
    histograms = check_histograms(counts)
    compared = scores_or_highest(histograms, scores)
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
        as_printed=as_printed,
        checked=checked,
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
