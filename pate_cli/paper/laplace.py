"""LNMax as published in 2017: argmax of the histogram plus Lap(b) on every count.

The 2017 paper's γ is 1/b, its moment l is λ − 1, and its α(l) is (λ − 1) times the Rényi
divergence of order λ. The data-dependent bound is one-directional: it bounds D_λ(M(n) ‖ M(n'))
only, and LNMax itself can exceed it in reverse. It is here to repeat published figures.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from pate_cli.core.arrays import Floats
from pate_cli.core.checks import check_orders


def laplace_log_q(counts: ArrayLike, *, scale: float) -> Floats:
    """Upper bound on log of how likely LNMax is to miss the plurality.

    2017 paper, Lemma 4: Pr[M(n) ≠ i*] ≤ Σ_{i≠i*} (2 + g_i)/(4 e^{g_i}), g_i = (n_i* − n_i)/b,
    and never more than 1 − 1/m.

    Args:
        counts: votes [queries, classes].
        scale: b > 0, the scale of the Laplace noise on each count, in votes.

    Returns:
        log q [queries], between −inf and log(1 − 1/m).
    """
    ordered = np.sort(np.asarray(counts, dtype=np.float64), axis=1)
    with np.errstate(over="ignore"):
        gaps = (ordered[:, -1:] - ordered[:, :-1]) / scale
    gaps = np.minimum(gaps, np.finfo(np.float64).max)  # keeps log(2 + g) − g free of inf − inf
    union = np.asarray(logsumexp(np.log(2.0 + gaps) - np.log(4.0) - gaps, axis=1))
    return np.minimum(union, np.log1p(-1.0 / ordered.shape[1]))


def laplace_rdp(counts: ArrayLike, scale: float, orders: ArrayLike) -> Floats:
    """RDP cost of one LNMax answer per query: the smallest of three bounds, with ε0 = 2/b.

    2017 paper, Theorem 2: α(l) ≤ ½ ε0² l (l + 1), so D_λ ≤ ½ ε0² λ.
    2017 paper, Theorem 3, for q < (e^{ε0} − 1)/(e^{2 ε0} − 1) = 1/(e^{ε0} + 1):
        α(l) ≤ log[(1 − q) ((1 − q)/(1 − e^{ε0} q))^l + q e^{ε0 l}].
    Pure differential privacy: D_λ ≤ ε0.

    Args:
        counts: votes [queries, classes].
        scale: b > 0, the scale of the Laplace noise on each count, in votes.
        orders: Rényi orders λ > 1; `planning.cost.MOMENT_ORDERS` for the 2017 paper's moments.

    Returns:
        [orders, queries], nats, at most 2/b. SECRET: it depends on the votes.
    """
    log_q = laplace_log_q(counts, scale=scale)
    order = check_orders(orders)[:, np.newaxis]
    pure = 2.0 / scale
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        valid = log_q < -np.logaddexp(0.0, pure)
        likely = order * np.log1p(-np.exp(log_q)) - (order - 1.0) * np.log1p(-np.exp(log_q + pure))
        unlikely = log_q + (order - 1.0) * pure
        dependent = np.maximum(np.logaddexp(likely, unlikely) / (order - 1.0), 0.0)
    dependent = np.where(valid & ~np.isnan(dependent), dependent, np.inf)
    independent = np.minimum(0.5 * pure * pure * order, pure)
    return np.minimum(dependent, independent)
