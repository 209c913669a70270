"""How far the cost of a noisy argmax can rise within a cell of scores.

Every outcome i of a noisy argmax of scores z plus standard normal noise is the event that the
noise falls into a convex cone shifted by −z. Let P_i(z) be its probability, g_i = log P_i and
Q_i(z) = P_i(z + δ) that of a neighbour, r_i = log P_i − log Q_i and

  f(z) = J − 1 = Σ P_i χ(r_i),   χ(r) = expm1(c r) + c·expm1(−r),   c = λ − 1.

χ, |χ'| and χ'' are largest at an end of any interval of r; |χ'''| ≤ c max(c² e^{cr}, e^{−r}). The
derivatives of g_i are cumulants (THEORY.md, 9.4): −I ≤ Hess g_i ≤ 0, and derivatives of third and
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
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pate_cli.accounting.branch_and_bound import where_wanted
from pate_cli.accounting.divergence import excess_moment
from pate_cli.core.arrays import Floats

LOG_ERROR = 1e-11
"""Allowance for the error of every log probability, and relative to its length of a gradient."""


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

    def take(self, cells: NDArray[np.intp]) -> Outcomes:
        """Some of the cells, perhaps several times."""
        return Outcomes(*(part[..., cells] for part in self))


def round_off(shift: float) -> float:
    """Relative slack above what `LOG_ERROR` does to a bound where the shift |δ| is this small."""
    return 40.0 * LOG_ERROR / shift


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


class _Ball(NamedTuple):
    """What holds on the balls around cells, each [outcomes, cells], and errors at their centres.

    `chi`, `chi_1`, `chi_2`, `chi_3` are suprema of P times χ and its derivatives' absolute values.
    """

    radius: float | Floats
    steepest: Floats
    slope: Floats
    chi: Floats
    chi_1: Floats
    chi_2: Floats
    chi_3: Floats
    off_gradient: Floats
    off_hessian: Floats


def _ball(
    before: Outcomes, after: Outcomes, *, shift: float, half: float | Floats, order: float | Floats
) -> _Ball:
    c = order - 1.0
    radius = half * np.sqrt(before.gradients.shape[1])
    length, length_q = _length(before.gradients), _length(after.gradients)
    off_gradient = 2.0 * LOG_ERROR * (length + length_q)
    off_hessian = 8.0 * LOG_ERROR * (2.0 + length**2 + length_q**2)
    here = np.minimum(_length(before.gradients - after.gradients) + off_gradient, shift)
    reach = np.minimum(here + shift * radius, shift) * radius + 2.0 * LOG_ERROR
    log_p = np.minimum(before.logs + (length + off_gradient) * radius + LOG_ERROR, 0.0)
    r = before.logs - after.logs
    low, high = r - reach, r + reach
    up, down = np.exp(log_p + c * high), np.exp(log_p - low)
    return _Ball(
        radius=radius,
        steepest=length + off_gradient + radius,
        slope=np.minimum(here + 2.0 * shift * radius, shift),
        chi=np.maximum(
            excess_moment(log_p, log_p - low, order=order),
            excess_moment(log_p, log_p - high, order=order),
        ),
        chi_1=c * np.maximum(up - np.exp(log_p - high), down - np.exp(log_p + c * low)),
        chi_2=c * (c * up + down),
        chi_3=c * np.maximum(c * c * up, down),
        off_gradient=off_gradient,
        off_hessian=off_hessian,
    )


def _twist(ball: _Ball, shift: float) -> Floats:
    """A bound on the third derivatives of P χ in unit directions, [outcomes, cells]."""
    _, steepest, slope, chi, chi_1, chi_2, chi_3, _, _ = ball
    twist = chi * (steepest**3 + 3.0 * steepest + 2.0) + chi_3 * slope**3
    twist += chi_1 * (3.0 * slope * np.maximum(steepest**2, 1.0) + shift * (6.0 * steepest + 2.0))
    return twist + 3.0 * chi_2 * slope * (steepest * slope + 2.0 * shift)


def _gradient_error(ball: _Ball) -> Floats:
    """What wrong P, r, ∇g and ∇r do to ∇(P χ), [outcomes, cells]."""
    _, steepest, slope, chi, chi_1, chi_2, _, off_gradient, _ = ball
    off = chi_1 * (2.0 * steepest + 4.0 * slope) + 2.0 * chi_2 * slope + 8.0 * chi * steepest
    return LOG_ERROR * off + chi_1 * off_gradient


def _hessian_error(ball: _Ball, shift: float) -> Floats:
    """The same for Hess(P χ)."""
    _, steepest, slope, chi, chi_1, chi_2, chi_3, off_gradient, off_hessian = ball
    off = 4.0 * np.maximum(steepest**2, 1.0) * (chi_1 + 4.0 * chi)
    off += 2.0 * steepest * slope * (2.0 * chi_2 + 8.0 * chi_1) + slope**2 * (
        2.0 * chi_3 + 4.0 * chi_2
    )
    off += 4.0 * shift * (chi_2 + 2.0 * chi_1)
    off_both = 2.0 * off_gradient * (chi_1 * steepest + chi_2 * slope)
    return LOG_ERROR * off + off_both + off_hessian * (chi + chi_1)


_Parts: TypeAlias = tuple[Floats, Floats, Floats]


def _parts(before: Outcomes, after: Outcomes, order: float | Floats) -> _Parts:
    """P χ, P χ' and P χ'' at the centres."""
    c = order - 1.0
    up, down = np.exp(c * (before.logs - after.logs) + before.logs), np.exp(after.logs)
    terms = excess_moment(before.logs, after.logs, order=order)
    return terms, c * (up - down), c * (c * up + down)


def _gradient(before: Outcomes, after: Outcomes, parts: _Parts) -> Floats:
    terms, terms_1, _ = parts
    grad, grad_r = before.gradients, before.gradients - after.gradients
    return np.asarray(np.sum(terms[:, None] * grad + terms_1[:, None] * grad_r, axis=0))


def _hessian(before: Outcomes, after: Outcomes, parts: _Parts) -> Floats:
    terms, terms_1, terms_2 = (part[:, None, None] for part in parts)
    grad, grad_r = before.gradients, before.gradients - after.gradients
    cross = _outer(grad, grad_r)
    result = terms * (_outer(grad, grad) + before.hessians) + terms_2 * _outer(grad_r, grad_r)
    result += terms_1 * (cross + np.swapaxes(cross, 1, 2) + before.hessians - after.hessians)
    return np.asarray(np.sum(result, axis=0))


def _logarithmic(
    before: Outcomes,
    after: Outcomes,
    ball: _Ball,
    *,
    shift: float,
    half: float | Floats,
    order: float | Floats,
) -> Floats:
    """The bound on J − 1 through log J."""
    c, radius = order - 1.0, ball.radius
    grad = before.gradients + c * (before.gradients - after.gradients)
    hess = before.hessians + c * (before.hessians - after.hessians)
    curved = radius**2 / 2.0 * (_upward(hess) + order * ball.off_hessian)
    curved = np.minimum(curved + radius**3 / 3.0 * (1.0 + c * shift), c * shift * radius**2)
    curved += order * (2.0 * LOG_ERROR + radius * ball.off_gradient)
    logs = before.logs + c * (before.logs - after.logs) + curved
    corners = np.array(list(product((-1.0, 1.0), repeat=grad.shape[1])))
    exponents = logs + half * np.tensordot(corners, grad, axes=(1, 1))
    peak = exponents.max(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):  # of an infinite peak it makes NaN, which is no bound
        highest = peak[:, 0] + np.log(np.exp(exponents - peak).sum(axis=1))
    return np.expm1(highest.max(axis=0) + LOG_ERROR)


def cell_bounds(
    before: Outcomes, after: Outcomes, *, shift: float, half: float, order: float | Floats
) -> tuple[Floats, Floats]:
    """f at the centres of cells and an upper bound on f in each cell.

    Args:
        before: the outcomes at the centres.
        after: the same at the centres moved by δ.
        shift: |δ|.
        half: half the side of each cell.
        order: λ > 1, one or one a cell.

    Returns:
        (value, bound), each [cells]; the bound is widened by what `LOG_ERROR` can do.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        ball = _ball(before, after, shift=shift, half=half, order=order)
        parts = _parts(before, after, order)
        value = parts[0].sum(axis=0)
        first = ball.chi.sum(axis=0)
        third = value + half * np.abs(_gradient(before, after, parts)).sum(axis=0)
        third += ball.radius**2 / 2.0 * _upward(_hessian(before, after, parts))
        rest = LOG_ERROR * (2.0 * ball.chi_1 + 4.0 * ball.chi)
        rest += ball.radius * _gradient_error(ball)
        rest += ball.radius**2 / 2.0 * _hessian_error(ball, shift)
        rest += ball.radius**3 / 6.0 * _twist(ball, shift)
        third += rest.sum(axis=0)
        logarithmic = _logarithmic(before, after, ball, shift=shift, half=half, order=order)
    return value, np.fmin(np.fmin(first, third), logarithmic)


def bounds_where(
    wanted: NDArray[np.bool_],
    before: Outcomes,
    after: Outcomes,
    *,
    shift: float,
    half: float,
    orders: Floats,
) -> tuple[Floats, Floats]:
    """`cell_bounds` of [orders, cells] where they are wanted, and 0 elsewhere."""

    def found(rows: NDArray[np.intp], cells: NDArray[np.intp]) -> tuple[Floats, Floats]:
        return cell_bounds(
            before.take(cells), after.take(cells), shift=shift, half=half, order=orders[rows]
        )

    return where_wanted(wanted, found)
