"""Expected cost of a Confident-GNMax run, as Table 2 reports it.

"The expectations are taken over the student's queries and outcomes of the first step": the check
is paid on every query and the answer with the probability that it is given. An expectation is
not a guarantee: realised answers may cost more, and the probability itself depends on the votes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pate_cli.arrays import Floats
from pate_cli.errors import ParameterError
from pate_cli.published.gnmax import gnmax_rdp
from pate_cli.published.threshold import log_probability_answered, threshold_rdp
from pate_cli.published.votes_domain import check_histograms, check_scores

__all__ = ["confident_expected_cost", "expected_answers", "scores_or_highest"]


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
    compared = scores_or_highest(histograms, scores)
    check = threshold_rdp(compared, threshold=threshold, sigma=sigma1, orders=orders)
    chance = np.exp(log_probability_answered(compared, threshold=threshold, sigma=sigma1))
    return check + chance * gnmax_rdp(histograms, sigma2, orders)


def scores_or_highest(histograms: Floats, scores: ArrayLike | None) -> Floats:
    """The scores given, checked to be one a query, or the highest count of each histogram."""
    if scores is None:
        return np.asarray(histograms.max(axis=1), dtype=np.float64)
    compared = check_scores(scores)
    if compared.size != histograms.shape[0]:
        raise ParameterError(
            f"scores must be one a query: {compared.size} scores, {histograms.shape[0]} queries"
        )
    return compared
