"""GNMax as published in 2018: argmax of the histogram plus N(0, σ²) on every count."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, logsumexp

from pate_cli.core.arrays import Floats
from pate_cli.core.checks import check_orders


def gnmax_log_q(counts: ArrayLike, *, sigma: float) -> Floats:
    """Upper bound on log of how likely GNMax is to miss the plurality.

    Proposition 7: Pr[M(n) ≠ i*] ≤ q = ½ Σ_{i≠i*} erfc((n_i* − n_i) / 2σ), and never more than
    1 − 1/m, since the plurality is the likeliest of m classes. Here ½ erfc(g/2σ) = Φ(−g/(√2 σ)).

    Args:
        counts: votes [queries, classes].
        sigma: standard deviation σ > 0 of the noise on each count, in votes.

    Returns:
        log q [queries], between −inf and log(1 − 1/m).
    """
    ordered = np.sort(np.asarray(counts, dtype=np.float64), axis=1)
    with np.errstate(over="ignore"):  # a gap of infinitely many σ has probability 0
        gaps = (ordered[:, -1:] - ordered[:, :-1]) / (np.sqrt(2.0) * sigma)
    union = np.asarray(logsumexp(log_ndtr(-gaps), axis=1), dtype=np.float64)
    return np.minimum(union, np.log1p(-1.0 / ordered.shape[1]))


def data_dependent_rdp(log_q: ArrayLike, *, sigma: float, orders: ArrayLike) -> Floats:
    """Theorem 6 with the μ1, μ2 of Proposition 10; infinite wherever the theorem does not apply.

    With μ2 = σ √log(1/q), μ1 = μ2 + 1, ε_k = μ_k/σ² (Proposition 8):
        D_λ ≤ 1/(λ − 1) · log[(1 − q) A^{λ−1} + q B^{λ−1}],
        A = (1 − q) / (1 − (q e^{ε2})^{(μ2−1)/μ2}),  B = e^{ε1} / q^{1/(μ1−1)},
    valid only when q < 1, μ1 ≥ λ, μ2 > 1 and
        q ≤ e^{(μ2−1) ε2} / (μ1/(μ1−1) · μ2/(μ2−1))^{μ2}.

    Args:
        log_q: log of an upper bound q on missing the likeliest outcome, [queries], at most 0.
        sigma: σ > 0 of a mechanism that is (λ, λ/σ²)-RDP at every order.
        orders: Rényi orders λ > 1.

    Returns:
        [orders, queries], nats; inf where a condition fails.
    """
    sigma = np.float64(sigma)  # overflows to inf instead of raising
    order = check_orders(orders)[:, np.newaxis]
    failure = np.asarray(log_q, dtype=np.float64)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        mu2 = sigma * np.sqrt(-failure)
        mu1 = mu2 + 1.0
        eps2 = mu2 / sigma**2
        eps1 = mu1 / sigma**2
        ceiling = (mu2 - 1.0) * eps2 - mu2 * (np.log(mu1 / (mu1 - 1.0)) + np.log(mu2 / (mu2 - 1.0)))
        valid = (failure < 0.0) & (mu1 >= order) & (mu2 > 1.0) & (failure <= ceiling)
        log_x = (failure + eps2) * (1.0 - 1.0 / mu2)
        likely = order * np.log1p(-np.exp(failure)) - (order - 1.0) * np.log1p(-np.exp(log_x))
        unlikely = failure + (order - 1.0) * (eps1 - failure / (mu1 - 1.0))
        bound = np.logaddexp(likely, unlikely) / (order - 1.0)
    # A divergence is never negative; the sum of two rounded logarithms may be.
    bound = np.where(valid & ~np.isnan(bound), np.maximum(bound, 0.0), np.inf)
    # As q falls to 0 the bound does too, though its parts are inf − inf there.
    return np.where(np.isneginf(failure), 0.0, bound)


def rdp_of_log_q(log_q: ArrayLike, *, sigma: float, orders: ArrayLike) -> Floats:
    """β_σ(q): the smaller of Theorem 6 and the data-independent λ/σ² of Proposition 8.

    Args:
        log_q: log of an upper bound q on missing the likeliest outcome, [queries], at most 0.
        sigma: σ > 0 of a mechanism that is (λ, λ/σ²)-RDP at every order.
        orders: Rényi orders λ > 1.

    Returns:
        [orders, queries], nats; finite unless λ/σ² is not.
    """
    with np.errstate(over="ignore", divide="ignore"):
        cap = check_orders(orders)[:, np.newaxis] / np.float64(sigma) ** 2
    return np.minimum(data_dependent_rdp(log_q, sigma=sigma, orders=orders), cap)


def gnmax_rdp(counts: ArrayLike, sigma: float, orders: ArrayLike) -> Floats:
    """RDP cost of one GNMax answer per query: β_σ(q) at the q of Proposition 7.

    Args:
        counts: votes [queries, classes].
        sigma: standard deviation σ > 0 of the noise on each count, in votes.
        orders: Rényi orders λ > 1.

    Returns:
        [orders, queries], nats, at most λ/σ². SECRET: it depends on the votes.
    """
    return rdp_of_log_q(gnmax_log_q(counts, sigma=sigma), sigma=sigma, orders=orders)
