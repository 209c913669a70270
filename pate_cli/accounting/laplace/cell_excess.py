"""How far the cost of a Laplace noisy argmax can rise within a cell of scores.

The setting is that of `accounting.gaussian.cone_excess`: outcomes with g_i = log P_i at scores z
and r_i = g_i(z) − g_i(z + δ), and

  f(z) = J − 1 = Σ P_i χ(r_i),   χ(r) = expm1(c r) + c·expm1(−r),   c = λ − 1.

With Laplace noise of scale 1 on every score (THEORY.md, 9.4) g_i is concave, each partial
derivative of g_i is between −1 and 1 and of one sign, each second one along an axis is in [−2, 0],
and third ones are at most 8 but where a score is 0, where second ones jump. Hence |g_kl| ≤ 2,
|r_i| ≤ |δ|₁, and each partial derivative of r_i is at most min(2|δ|₁, 1). Along any step d of at
most h along each of n axes, with B = 2n²h², and B' = min(8n²h²|δ|₁, B) if no score of the cell
passes 0 on the way from z to z + δ, else B' = B,

  P_i ≤ P_i(z0) e^{h|∇g_i(z0)|₁},   |g'| ≤ G = min(h|∇g_i(z0)|₁ + B, nh),   g'' ≤ 0,   |r''| ≤ B',
  |r'| ≤ R = min(h|∇r_i(z0)|₁ + B', nh·min(2|δ|₁, 1)),   and r_i moves by at most R,

and f is at most the least of

  Σ P_i χ,   f(z0) + h|∇f(z0)|₁ + ½ Σ P_i [χG² + 2|χ'|GR + χ''R² + B'|χ'|],
  max over d of Σ exp(h_i(z0) + ∇h_i(z0)·d + cB'/2) − 1,   h_i = g_i + c r_i,

with suprema over the cell. The last is convex in d, hence largest at a corner.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

from pate_cli.accounting.divergence import excess_moment
from pate_cli.core.arrays import Floats
from pate_cli.core.special import logsumexp

LOG_ERROR = 1e-12
"""Allowance for the error of every log probability and of its partial derivatives."""


def larger_chi(r: Floats | float, *, order: float | Floats) -> Floats:
    """The larger of χ(r) and χ(−r), r ≥ 0, rounded up."""
    c = order - 1.0
    up, down = np.expm1(c * r) + c * np.expm1(-r), np.expm1(-c * r) + c * np.expm1(r)
    # What cancels where r is small.
    return np.asarray(np.maximum(up, down) * (1.0 + 1e-12) + 1e-15 * order * c * r)


def cell_bounds(
    before: tuple[Floats, Floats],
    after: tuple[Floats, Floats],
    *,
    shift: float,
    half: float,
    order: float | Floats,
    smooth: NDArray[np.bool_],
) -> tuple[Floats, Floats]:
    """f at the centres of cells and an upper bound on f in each cell.

    Args:
        before: g_i, [outcomes, cells], and ∇g_i, [outcomes, axes, cells], at the centres.
        after: the same at the centres moved by δ.
        shift: |δ|₁.
        half: half the side h of each cell.
        order: λ > 1, one or one a cell.
        smooth: [cells], whether no score passes 0 in the cell or on the way to the moved cell.

    Returns:
        (value, bound), each [cells]; the bound is widened by what `LOG_ERROR` can do.
    """
    (log_p, grad_p), (log_q, grad_q) = before, after
    c, axes = order - 1.0, grad_p.shape[1]
    r, grad_r = log_p - log_q, grad_p - grad_q
    bend = 2.0 * (axes * half) ** 2
    bend_r = np.where(smooth, bend * min(4.0 * shift, 1.0), bend)
    off = 2.0 * LOG_ERROR
    rise = half * (np.abs(grad_p).sum(axis=1) + axes * off)
    move = half * (np.abs(grad_r).sum(axis=1) + axes * off)
    steep = np.minimum(rise + bend, axes * half)
    slope = np.minimum(move + bend_r, axes * half * min(2.0 * shift, 1.0))
    most = np.minimum(log_p + rise + LOG_ERROR, 0.0)
    low, high = np.maximum(r - slope, -shift) - off, np.minimum(r + slope, shift) + off
    with np.errstate(over="ignore", invalid="ignore"):
        chi = np.maximum(
            excess_moment(most, most - low, order=order),
            excess_moment(most, most - high, order=order),
        )
        up, down = np.exp(most + c * high), np.exp(most - low)
        chi_1 = c * np.maximum(up - np.exp(most - high), down - np.exp(most + c * low))
        chi_2 = c * (c * up + down)

        terms = excess_moment(log_p, log_q, order=order)
        terms_1 = c * (np.exp(log_p + c * r) - np.exp(log_q))
        value = terms.sum(axis=0)
        gradient = np.sum(terms[:, None] * grad_p + terms_1[:, None] * grad_r, axis=0)
        rest = (chi * steep**2 + chi_2 * slope**2 + chi_1 * (2.0 * steep * slope + bend_r)) / 2.0
        # What wrong P, r and derivatives do to the value and to the slope along d.
        rest += off * (chi_1 * (1.0 + steep + slope) + chi_2 * slope + 2.0 * chi * (1.0 + steep))
        rest += off * axes * half * (chi + 2.0 * chi_1)
        second = value + half * np.abs(gradient).sum(axis=0) + rest.sum(axis=0)

        corners = np.array(list(product((-half, half), repeat=axes)))
        tops = np.tensordot(corners, grad_p + c * grad_r, axes=(1, 1)) + log_p + c * r
        error = c * bend_r / 2.0 + order * off * (1.0 + 2.0 * axes * half)
        third = np.expm1(logsumexp(tops, axis=1).max(axis=0) + error)
    return value, np.fmin(np.fmin(chi.sum(axis=0), second), third)
