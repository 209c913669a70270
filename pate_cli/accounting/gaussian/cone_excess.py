"""How far the cost of a noisy argmax can rise within a cell of scores.

Every outcome i of a noisy argmax of scores z plus standard normal noise is the event that the
noise falls into a convex cone shifted by −z. Let P_i(z) be its probability, g_i = log P_i and
Q_i(z) = P_i(z + δ) that of a neighbour, r_i = log P_i − log Q_i and

  f(z) = J − 1 = Σ P_i χ(r_i),   χ(r) = expm1(c r) + c·expm1(−r),   c = λ − 1.

χ, |χ'| and χ'' are largest at an end of any interval of r; |χ'''| ≤ c max(c² e^{cr}, e^{−r}). The
derivatives of g_i are cumulants (THEORY.md, 9.2): −I ≤ Hess g_i ≤ 0, and derivatives of third and
fourth order are at most 2 in any unit directions. On a ball of radius ρ around z0, therefore,

  P_i ≤ P_i(z0) e^{ρ|∇g_i(z0)|},   |∇g_i| ≤ G_i = |∇g_i(z0)| + ρ,   |D²r_i|, |D³r_i| ≤ 2|δ|,
  |∇r_i| ≤ R_i = min(|∇r_i(z0)| + 2|δ|ρ, |δ|),
  |r_i − r_i(z0)| ≤ min(|∇r_i(z0)|ρ + |δ|ρ², |δ|ρ).

With all suprema over the ball and η the largest eigenvalue, if positive, of a matrix at z0,

  f ≤ Σ P_i χ                                                                (first order),
  f ≤ f(z0) + max |∇f(z0)·d| + ½ρ² η(Hess f) + ρ³/6 Σ P_i T_i                (third order),
  T = χ(G³ + 3G + 2) + |χ'|(3R max(G², 1) + 6G|δ| + 2|δ|) + 3χ''R(GR + 2|δ|) + |χ'''|R³.

All terms are of order |δ|², as f is, so these bounds stay sharp however small the shift. Where J
is large its logarithm is the better function: J = Σ e^{h_i}, h_i = g_i + c r_i, and

  J ≤ max over d of Σ exp(h_i(z0) + ∇h_i(z0)·d + k_i)                        (logarithmic),
  k_i = min(c|δ|ρ², ½ρ² η(Hess h_i) + ρ³(1 + c|δ|)/3),

a convex function of d, largest at a corner of the cell. The smallest of the three is taken.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from pate_cli.accounting.divergence import excess_moment
from pate_cli.arrays import Floats

__all__ = ["LOG_ERROR", "Outcomes", "cell_bounds", "certified_slack"]


LOG_ERROR = 1e-11
"""Allowance for the error of every log probability, and relative to its length of a gradient."""
_SLACK = 1e-6


class Outcomes(NamedTuple):
    """The outcomes of a noisy argmax at the centres of cells.

    Attributes:
        logs: g_i, [outcomes, cells].
        gradients: ∇g_i, [outcomes, axes, cells].
        hessians: [outcomes, axes, axes, cells].
    """

    logs: Floats
    gradients: Floats
    hessians: Floats

    def take(self, cells: Floats) -> Outcomes:
        """Some of the cells."""
        return Outcomes(*(part[..., cells] for part in self))


def certified_slack(shift: float) -> float:
    """The relative slack of a certificate: above what `LOG_ERROR` does at small shifts."""
    return max(_SLACK, 40.0 * LOG_ERROR / shift)


def _length(vectors: Floats) -> Floats:
    return np.sqrt(np.sum(vectors**2, axis=1))


def _outer(first: Floats, second: Floats) -> Floats:
    return first[:, :, None] * second[:, None, :]


def _upward(matrices: Floats) -> Floats:
    """The largest eigenvalue of symmetric [..., axes, axes, cells], axes ≤ 2; at least 0."""
    if matrices.shape[-2] == 1:
        return np.maximum(matrices[..., 0, 0, :], 0.0)
    xx, yy, xy = matrices[..., 0, 0, :], matrices[..., 1, 1, :], matrices[..., 0, 1, :]
    return np.maximum((xx + yy) / 2.0 + np.hypot((xx - yy) / 2.0, xy), 0.0)


def cell_bounds(
    before: Outcomes, after: Outcomes, *, shift: float, half: float, order: float
) -> tuple[Floats, Floats]:
    """f at the centres of cells and an upper bound on f in each cell.

    Args:
        before: the outcomes at the centres.
        after: the same at the centres moved by δ.
        shift: |δ|.
        half: half the side of each cell.
        order: λ > 1.

    Returns:
        (value, bound), each [cells]; the bound is widened by what `LOG_ERROR` can do.
    """
    (log_p, grad_p, hess_p), (log_q, grad_q, hess_q) = before, after
    c = order - 1.0
    radius = half * np.sqrt(grad_p.shape[1])
    r, grad_r, hess_r = log_p - log_q, grad_p - grad_q, hess_p - hess_q
    # r, ∇r and Hess r are off by at most these.
    length_p, length_q = _length(grad_p), _length(grad_q)
    off = 2.0 * LOG_ERROR
    off_grad = 2.0 * LOG_ERROR * (length_p + length_q)
    off_hess = 8.0 * LOG_ERROR * (2.0 + length_p**2 + length_q**2)

    slope = np.minimum(_length(grad_r) + off_grad, shift)
    slope_most = np.minimum(slope + 2.0 * shift * radius, shift)
    reach = np.minimum(slope + shift * radius, shift) * radius + off
    steepest = length_p + off_grad + radius
    log_most = np.minimum(log_p + (length_p + off_grad) * radius + LOG_ERROR, 0.0)
    low, high = r - reach, r + reach
    with np.errstate(over="ignore", invalid="ignore"):
        # Suprema over the ball of P times χ and its derivatives.
        chi = np.maximum(
            excess_moment(log_most, log_most - low, order=order),
            excess_moment(log_most, log_most - high, order=order),
        )
        up, down = np.exp(log_most + c * high), np.exp(log_most - low)
        chi_1 = c * np.maximum(up - np.exp(log_most - high), down - np.exp(log_most + c * low))
        chi_2 = c * (c * up + down)
        chi_3 = c * np.maximum(c * c * up, down)
        first = np.sum(chi, axis=0)

        # The same at the centre, and with them f, ∇f and Hess f.
        here = excess_moment(log_p, log_q, order=order)
        up, down = np.exp(log_p + c * r), np.exp(log_q)
        here_1, here_2 = c * (up - down), c * (c * up + down)
        value = here.sum(axis=0)
        gradient = np.sum(here[:, None] * grad_p + here_1[:, None] * grad_r, axis=0)
        cross = _outer(grad_p, grad_r)
        hessian = np.sum(
            here[:, None, None] * (_outer(grad_p, grad_p) + hess_p)
            + here_1[:, None, None] * (cross + np.swapaxes(cross, 1, 2) + hess_r)
            + here_2[:, None, None] * _outer(grad_r, grad_r),
            axis=0,
        )
        wide = np.maximum(steepest**2, 1.0)
        third = chi * (steepest**3 + 3.0 * steepest + 2.0)
        third += chi_1 * (3.0 * slope_most * wide + shift * (6.0 * steepest + 2.0))
        third += 3.0 * chi_2 * slope_most * (steepest * slope_most + 2.0 * shift)
        third += chi_3 * slope_most**3
        # What wrong P, r and derivatives do to the value, the gradient and the Hessian.
        error = off * chi_1 + 4.0 * LOG_ERROR * chi
        error += radius * (
            chi_1 * (off * steepest + off_grad) + (off * chi_2 + 4.0 * LOG_ERROR * chi_1) * slope_most
            + 8.0 * LOG_ERROR * chi * steepest
        )  # fmt: skip
        error += radius**2 / 2.0 * (
            (chi + chi_1) * off_hess
            + (off * chi_1 + 8.0 * LOG_ERROR * chi) * 2.0 * wide
            + 2.0 * steepest * (chi_1 * off_grad + (off * chi_2 + 8.0 * LOG_ERROR * chi_1) * slope_most)
            + 2.0 * shift * (off * chi_2 + 4.0 * LOG_ERROR * chi_1)
            + (off * chi_3 + 4.0 * LOG_ERROR * chi_2) * slope_most**2
            + 2.0 * chi_2 * slope_most * off_grad
        )  # fmt: skip
        taylor = value + half * np.sum(np.abs(gradient), axis=0)
        taylor += radius**2 / 2.0 * _upward(hessian)
        taylor += np.sum(radius**3 / 6.0 * third + error, axis=0)

        corners = np.array(list(product((-half, half), repeat=grad_p.shape[1])))
        rise = np.tensordot(corners, grad_p + c * grad_r, axes=(1, 1))
        curved = radius**2 / 2.0 * _upward(hess_p + c * hess_r)
        curved += radius**3 / 3.0 * (1.0 + c * shift) + radius**2 / 2.0 * order * off_hess
        curved = np.minimum(curved, c * shift * radius**2) + order * (off + radius * off_grad)
        highest = logsumexp(log_p + c * r + rise + curved, axis=1).max(axis=0)
        logarithmic = np.expm1(highest + LOG_ERROR)
    return value, np.fmin(np.fmin(first, taylor), logarithmic)
