"""Expected cost of a Confident-GNMax run and its smooth sensitivity, as Table 2 reports them.

"The expectations are taken over the student's queries and outcomes of the first step": the check
is paid on every query and the answer with the probability that it is given. An expectation is
not a guarantee: realised answers may cost more, and the probability itself depends on the votes.

Scores are what the check compares to T: the highest count of Algorithm 1, or max_j(n_j − τ p_j)
of Algorithm 2 (Interactive-GNMax).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from pate_cli.core.arrays import Counts, Floats
from pate_cli.paper.distances import gnmax_local_sensitivity
from pate_cli.paper.gnmax import gnmax_rdp
from pate_cli.paper.threshold import answer_chance, threshold_local_sensitivity, threshold_rdp


def confident_steps(
    counts: Counts, scores: Floats, noise: Mapping[str, float], orders: ArrayLike
) -> dict[str, Floats]:
    """Expected RDP cost of each query by step: the check, and Pr[answer] times GNMax (B.6).

    Args:
        counts: votes [queries, classes].
        scores: what the check compares to T, [queries], in votes.
        noise: `threshold` T and the standard deviations `sigma1` of the check's noise and `sigma2`
            of GNMax's, in votes.
        orders: Rényi orders λ > 1.

    Returns:
        "threshold" and "argmax", [orders, queries] each, nats. SECRET: they depend on the votes.
    """
    test = {"threshold": noise["threshold"], "sigma": noise["sigma1"]}
    answer = gnmax_rdp(counts, noise["sigma2"], orders)
    return {
        "threshold": threshold_rdp(scores, **test, orders=orders),
        "argmax": answer_chance(scores, **test) * answer,
    }


def expected_local_sensitivity(
    counts: Counts, scores: Floats, noise: Mapping[str, float], *, order: float, teachers: int
) -> Floats:
    """Local sensitivity of a Confident run by distance, as Table 2 computes it.

    Theorem 24: Σ_queries max{LS̃ : dist ≤ d}, of the check on every query and of GNMax times
    Pr[answer]. That probability is taken as fixed, which it is not: it too depends on the votes,
    so this sum is an expectation over the first step and bounds nothing strictly.

    Args:
        counts: whole votes [queries, classes], each row at most `teachers`.
        scores: what the check compares to T, [queries], in votes.
        noise: `threshold` T and the standard deviations `sigma1` of the check's noise and `sigma2`
            of GNMax's, in votes; σ2 from 0.1 to 1e9.
        order: Rényi order λ > 1.
        teachers: how many teachers vote; the curve has as many distances, 0 … teachers − 1.

    Returns:
        [teachers], nats. SECRET: it depends on the votes.

    Raises:
        ParameterError: σ2 is out of range, or scores are too far from T.
        ValidityError: C5 or C6 fails at (σ2, m, λ).
    """
    test = {"threshold": noise["threshold"], "sigma": noise["sigma1"]}
    chance = answer_chance(scores, **test)
    check = threshold_local_sensitivity(scores, **test, order=order, teachers=teachers)
    return check + gnmax_local_sensitivity(
        counts, sigma=noise["sigma2"], order=order, teachers=teachers, weights=chance
    )


def smooth_sensitivity(curve: Floats, *, beta: float) -> float:
    """SS_β = max_d e^{−βd}·curve[d], in the curve's units. Algorithm 5, Theorem 24.

    Args:
        curve: local sensitivity by distance d = 0, 1, …, [distances], at least 0.
        beta: smoothness β > 0.
    """
    return float((np.exp(-beta * np.arange(curve.size)) * curve).max())
