"""How far the cost of a noisy argmax can rise within a cell of scores.

Every outcome i of a noisy argmax of scores z plus standard normal noise is the event that the
noise falls into a convex cone shifted by −z. Let P_i(z) be its probability, g_i = log P_i and
Q_i(z) = P_i(z + δ) that of a neighbour, r_i = log P_i − log Q_i and

  f(z) = J − 1 = Σ P_i χ(r_i),   χ(r) = expm1(c r) + c·expm1(−r),   c = λ − 1.

χ, |χ'| with χ' = c(e^{cr} − e^{−r}) and χ'' = c(c e^{cr} + e^{−r}) > 0 are largest at an end of any
interval of r. The derivatives of g_i are cumulants (THEORY.md, 9.2): −I ≤ Hess g_i ≤ 0, and third
derivatives are at most 2 in any directions. On a ball of radius ρ around z0, therefore,

  P_i ≤ P_i(z0) e^{ρ|∇g_i(z0)|},   |∇g_i| ≤ G_i = |∇g_i(z0)| + ρ,   |Hess r_i| ≤ 2|δ|,
  |∇r_i| ≤ R_i = min(|∇r_i(z0)| + 2|δ|ρ, |δ|),
  |r_i − r_i(z0)| ≤ min(|∇r_i(z0)|ρ + |δ|ρ², |δ|ρ),

and with all suprema over the ball, Hess g_i ≤ 0 being dropped,

  f ≤ Σ P_i χ                                                                   (first order),
  f ≤ f(z0) + |∇f(z0)·d| + ½ρ² Σ P_i [χ G_i² + 2|χ'| G_i R_i + χ'' R_i² + 2|δ||χ'|]    (second).

All terms are of order |δ|², as f is, so these bounds stay sharp however small the shift. Where J
is large its logarithm is the better function: J = Σ e^{h_i}, h_i = g_i + c r_i, Hess h_i ≤ 2c|δ|, so

  J ≤ e^{c|δ|ρ²} max over d of Σ exp(h_i(z0) + ∇h_i(z0)·d)                (logarithmic),

a convex function of d, largest at a corner of the cell. The smallest of the three is taken.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from scipy.special import logsumexp

from pate_cli.accounting.divergence import excess_moment
from pate_cli.arrays import Floats

__all__ = ["LOG_ERROR", "cell_bounds", "certified_slack"]


LOG_ERROR = 1e-12
"""Allowance for the error of every log probability; gradients have it relative to their length."""

_SLACK = 1e-5


def certified_slack(shift: float) -> float:
    """The relative slack of a certificate: above what `LOG_ERROR` does at small shifts."""
    return max(_SLACK, 40.0 * LOG_ERROR / shift)


def _length(vectors: Floats) -> Floats:
    return np.sqrt(np.sum(vectors**2, axis=1))


def cell_bounds(
    before: tuple[Floats, Floats],
    after: tuple[Floats, Floats],
    *,
    shift: float,
    half: float,
    order: float,
) -> tuple[Floats, Floats]:
    """f at the centres of cells and an upper bound on f in each cell.

    Args:
        before: log P_i, [outcomes, cells], and ∇g_i, [outcomes, axes, cells], at the centres.
        after: the same at the centres moved by δ.
        shift: |δ|.
        half: half the side of each cell.
        order: λ > 1.

    Returns:
        (value, bound), each [cells]; both are widened by what `LOG_ERROR` can do.
    """
    (log_p, grad_p), (log_q, grad_q) = before, after
    c = order - 1.0
    radius = half * np.sqrt(grad_p.shape[1])
    r, grad_r = log_p - log_q, grad_p - grad_q
    length = _length(grad_p) * (1.0 + LOG_ERROR)
    grad_error = LOG_ERROR * (length + _length(grad_q))
    slope = np.minimum(_length(grad_r) + grad_error, shift)
    slope_most = np.minimum(slope + 2.0 * shift * radius, shift)
    reach = np.minimum(slope + shift * radius, shift) * radius + 2.0 * LOG_ERROR
    steepest = length + radius
    log_most = np.minimum(log_p + length * radius + LOG_ERROR, 0.0)
    low, high = r - reach, r + reach
    with np.errstate(over="ignore", invalid="ignore"):
        chi = np.maximum(
            excess_moment(log_most, log_most - low, order=order),
            excess_moment(log_most, log_most - high, order=order),
        )
        up, down = np.exp(log_most + c * high), np.exp(log_most - low)
        chi_1 = c * np.maximum(up - np.exp(log_most - high), down - np.exp(log_most + c * low))
        chi_2 = c * (c * up + down)
        bend = chi * steepest**2 + 2.0 * chi_1 * steepest * slope_most
        bend += chi_2 * slope_most**2 + 2.0 * shift * chi_1
        terms = excess_moment(log_p, log_q, order=order)
        tilt = c * (np.exp(log_p + c * r) - np.exp(log_q))
        gradient = np.sum(terms[:, None] * grad_p + tilt[:, None] * grad_r, axis=0)
        value = terms.sum(axis=0)
        # What wrong r, ∇r and P do to the value and, times the radius, to the gradient.
        off = 2.0 * LOG_ERROR * (1.0 + radius * steepest) + radius * grad_error
        error = np.sum(chi_1 * off + 2.0 * LOG_ERROR * radius * chi_2 * slope_most, axis=0)
        error += 4.0 * LOG_ERROR * (value + radius * np.sum(chi * steepest, axis=0))
        second = value + half * np.sum(np.abs(gradient), axis=0)
        second += radius**2 / 2.0 * np.sum(bend, axis=0) + error
        first = np.sum(chi, axis=0)
        log_j, grad_h = log_p + c * r, grad_p + c * grad_r
        corners = np.array(list(product((-half, half), repeat=grad_p.shape[1])))
        highest = logsumexp(log_j + np.tensordot(corners, grad_h, axes=(1, 1)), axis=1)
        curved = c * shift * radius**2 + LOG_ERROR * 2.0 * order
        curved += radius * np.max(c * grad_error + LOG_ERROR * length, axis=0)
        third = np.expm1(highest.max(axis=0) + curved)
    return value, np.fmin(np.fmin(first, second), third)
