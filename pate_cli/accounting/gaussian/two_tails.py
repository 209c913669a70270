"""The cost of one noisy argmax as a function of a single score: the two-tail bound F.

Setting. M(n) is the argmax of n + N(0, σ²I). Moving one vote moves the noisy histogram by a
vector of length √2, so (M(n), M(n')) is a post-processing of (N(0, 1), N(μ, 1)), μ = √2/σ, and
there is a function κ(x) = Pr[the outcome is not i* | x] with E κ = q = Pr[M(n) ≠ i*].

Bound (THEORY.md, section 3). a^λ b^{1−λ} is jointly convex and homogeneous, so the losing outcomes
together contribute at most ∫ κ φ^λ φ_μ^{1−λ}; the winner contributes (1−q)^λ (1−Q)^{1−λ} with
Q = ∫ κ φ_μ. The sum is convex in κ. At a maximiser κ also maximises the linearised sum, whose
superlevel sets are the outside of an interval. So the worst κ is the indicator of two tails with
masses q1 + q2 = q, and with z_k = Φ⁻¹(q_k), c = λ − 1, E = λ c μ² / 2:

  forward  J = max_{q1} (1−q)^λ (1−Q)^{−c} + e^E [Φ(z1 + cμ) + Φ(z2 − cμ)],
  reverse  J = max_{q1} (1−Q)^λ (1−q)^{−c} + e^E [Φ(z1 − λμ) + Φ(z2 + λμ)],
  Q = Φ(z1 − μ) + Φ(z2 + μ),     F = min(log J / c, λ/σ²).

This replaces Theorem 6 (with Propositions 7, 8 and 10) of "Scalable Private Learning with PATE"
(ICLR 2018), needs none of its conditions, and is about 2.4 times smaller on real votes.
"""

from __future__ import annotations

import numpy as np
from scipy.special import log_expit, log_ndtr, ndtri_exp

from pate_cli.arrays import Floats
from pate_cli.checks import check_orders, check_positive
from pate_cli.errors import ParameterError

__all__ = ["two_tail_rdp", "two_tail_rdp_directions"]


# The maximum over q1 is located on a dense grid in logit(q1/q), both ends included, then by golden
# section in the best cell. Unimodality within a cell is observed and not proven. RELATIVE_SLACK
# covers what the search leaves: nothing that float64 shows where J is smooth in q1, and less than
# this even at a kink with slopes of 1/8 a unit of logit, where 26 steps leave 4e-6 of the cells.
_SHARES = np.concatenate(([-np.inf], np.linspace(-32.0, 32.0, 65), [np.inf]))
_GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0
_GOLDEN_STEPS = 26
RELATIVE_SLACK = 1e-6

# Relative error allowed to every term of J − 1, times 1 + |its logarithm|: 8 units in the last
# place for log_ndtr, ndtri_exp and exp together. With much noise the terms cancel: at σ = 5e5 the
# sum is off by 7e-5 of itself, far past the slack of the search.
_ROUNDING = 8.0 * 2.0**-52

# Past this exponent, or when 1 − Q is this small, J − 1 cannot be trusted in float64, and the
# data-independent λ/σ² (Proposition 8) is returned instead.
_MAX_EXPONENT = 600.0
_MIN_LOG_STAY = np.log(1e-12)
_CHUNK = 4096


def _tails(log_q: Floats, share: Floats) -> tuple[Floats, Floats]:
    """z1, z2 for tail masses q·expit(share) and q·expit(−share)."""
    return ndtri_exp(log_q + log_expit(share)), ndtri_exp(log_q + log_expit(-share))


def _sum_of_exp(first: Floats, second: Floats, *, offset: float = 0.0) -> tuple[Floats, Floats]:
    """e^offset (e^first + e^second), and how far the round-off of the logarithms can move it."""
    total, error = np.zeros_like(first + second), np.zeros_like(first + second)
    with np.errstate(invalid="ignore"):
        for log in (first, second):
            term = np.exp(offset + log)
            total += term
            error += np.where(term > 0.0, term * (1.0 + abs(offset) + np.abs(log)), 0.0)
    return total, _ROUNDING * error


def _excess(
    z: Floats, log_q: Floats, share: Floats, order: float, mu: float, *, reverse: bool
) -> Floats:
    """J − 1 at one split of the losing mass, or a little more; +inf where float64 cannot carry it.

    Computed as expm1 of the winner's log moment plus the (positive) losing moment, so that the
    relative precision survives q down to the smallest normal number, plus a bound on the round-off.
    """
    z1, z2 = _tails(log_q, share)
    c = order - 1.0
    exponent = order * c * mu * mu / 2.0
    moved, moved_error = _sum_of_exp(log_ndtr(z1 - mu), log_ndtr(z2 + mu))
    log_keep = log_ndtr(-z)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_keep_moved = np.log1p(-np.minimum(moved, 1.0))
        if reverse:
            winner = np.expm1(order * log_keep_moved - c * log_keep)
            log_losers = log_ndtr(z1 - order * mu), log_ndtr(z2 + order * mu)
        else:
            winner = np.expm1(order * log_keep - c * log_keep_moved)
            log_losers = log_ndtr(z1 + c * mu), log_ndtr(z2 - c * mu)
        losers, losers_error = _sum_of_exp(*log_losers, offset=exponent)
        argument_error = _ROUNDING * (order + c) * (np.abs(log_keep) + np.abs(log_keep_moved))
        argument_error += (order if reverse else c) * moved_error / np.exp(log_keep_moved)
        total = winner + losers + losers_error + (1.0 + winner) * argument_error
    return np.where(log_keep_moved > _MIN_LOG_STAY, total, np.inf)


def _maximise(z: Floats, order: float, mu: float, *, reverse: bool) -> Floats:
    """max over q1 of J − 1 for a vector of scores."""
    log_q = log_ndtr(z)
    column, log_column = z[:, None], log_q[:, None]
    on_grid = _excess(column, log_column, _SHARES[None, :], order, mu, reverse=reverse)
    best = np.argmax(on_grid, axis=1)
    peak = on_grid[np.arange(z.size), best]
    # The infinite ends are exact already; inside, search the two cells around the best node.
    inner = np.clip(best, 2, _SHARES.size - 3)
    low, high = _SHARES[inner - 1], _SHARES[inner + 1]

    def at(share: Floats) -> Floats:
        return _excess(z, log_q, share, order, mu, reverse=reverse)

    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = at(left), at(right)
    for _ in range(_GOLDEN_STEPS):
        go_left = at_left > at_right
        low, high = np.where(go_left, low, left), np.where(go_left, right, high)
        probe = np.where(go_left, high - _GOLDEN * (high - low), low + _GOLDEN * (high - low))
        value = at(probe)
        left, right = np.where(go_left, probe, right), np.where(go_left, left, probe)
        at_left, at_right = np.where(go_left, value, at_right), np.where(go_left, at_left, value)
    return np.maximum(peak, np.maximum(at_left, at_right))


def two_tail_rdp_directions(z: Floats, *, sigma: float, orders: Floats) -> tuple[Floats, Floats]:
    """The bound F in both directions.

    Args:
        z: scores Φ⁻¹(q), any shape; −inf means a certain winner and costs nothing.
        sigma: standard deviation of the noise on each count, > 0 (counts).
        orders: Rényi orders λ > 1, shape [orders].

    Returns:
        (forward, reverse), each [orders, *z.shape] in nats, at most λ/σ²: upper bounds on
        D_λ(M(n) ‖ M(n')) and D_λ(M(n') ‖ M(n)) over all neighbours n' of any histogram n
        whose plurality loses with probability Φ(z).

    Raises:
        ParameterError: an order ≤ 1, a sigma that is not positive and finite, or NaN anywhere.
    """
    orders = check_orders(orders)
    sigma = check_positive("sigma", sigma)
    scores = np.asarray(z, dtype=np.float64)
    if np.isnan(scores).any():
        raise ParameterError("scores must be numbers, got nan")
    flat = scores.ravel()
    mu = float(np.sqrt(2.0) / sigma)
    result = np.empty((2, orders.size, flat.size))
    for row, order in enumerate(orders):
        cap = order / sigma**2
        if order * (order - 1.0) * mu * mu / 2.0 > _MAX_EXPONENT:
            result[:, row] = cap
            continue
        for start in range(0, flat.size, _CHUNK):
            part = slice(start, start + _CHUNK)
            for side, reverse in enumerate((False, True)):
                with np.errstate(over="ignore"):
                    excess = _maximise(flat[part], float(order), mu, reverse=reverse)
                # J ≥ 1 always (it bounds e^{(λ−1)D}); a negative excess is round-off.
                bound = np.log1p(np.maximum(excess, 0.0)) / (order - 1.0)
                result[side, row, part] = np.minimum(bound * (1.0 + RELATIVE_SLACK), cap)
    shape = (orders.size, *scores.shape)
    return result[0].reshape(shape), result[1].reshape(shape)


def two_tail_rdp(z: Floats, *, sigma: float, orders: Floats) -> Floats:
    """F(z): the larger of the two directions of :func:`two_tail_rdp_directions`.

    Non-decreasing in z up to the search slack, [orders, *z.shape], nats.
    """
    return np.maximum(*two_tail_rdp_directions(z, sigma=sigma, orders=orders))
