"""Conditions C5 and C6 of Appendix B.2, checked for each (σ, m, λ) in use.

The paper checks them numerically too (B.4.2): derivatives in closed form, minimised over
[0, q0] and [0, B_L(q0)], whose least values must not be negative. C1–C4, C7 and C8 hold for
GNMax by B.4.1, given q0 ≤ ½ and B_U(q0) < 1, which are checked here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pate_cli.core.arrays import Floats
from pate_cli.core.checks import check_orders
from pate_cli.core.errors import ValidityError
from pate_cli.core.special import logsumexp
from pate_cli.published.gnmax import data_dependent_rdp
from pate_cli.published.plateau import (
    Plateau,
    find_plateau,
    log_q_above,
    log_q_at,
    margin_at,
    margin_step,
)

_GRID = 2001
_MINIMA = 8
_ZOOM = 33
_ZOOMS = 4
# What rounding may do to a relative slope that is zero in truth.
_SLACK = 1e-9


@dataclass(frozen=True)
class Conditions:
    """Whether Algorithms 3–5 may be used at one (σ, m, λ), and if not, why and where.

    `reason` is one line, empty when all holds; `log_q` is log of the q at which it fails.
    """

    sigma: float
    classes: int
    order: float
    holds: bool
    reason: str = ""
    log_q: float | None = None


def check_conditions(*, sigma: float, classes: int, orders: ArrayLike) -> tuple[Conditions, ...]:
    """The verdict on C5 and C6 at each order.

    Args:
        sigma: standard deviation σ of GNMax's noise, in votes, from 0.1 to 1e9.
        classes: m ≥ 2.
        orders: Rényi orders λ > 1.

    Returns:
        One `Conditions` an order, in the order given.

    Raises:
        ParameterError: an argument outside its range.
    """
    return tuple(_verdict(sigma, classes, float(order)) for order in check_orders(orders))


def require_conditions(*, sigma: float, classes: int, orders: ArrayLike) -> None:
    """Raise ValidityError, naming the first order that fails and why, unless all hold."""
    for verdict in check_conditions(sigma=sigma, classes=classes, orders=orders):
        if not verdict.holds:
            raise ValidityError(
                f"smooth sensitivity is not valid at order {verdict.order:g} with sigma"
                f" {verdict.sigma:g} and {verdict.classes} classes: {verdict.reason}"
            )


def _verdict(sigma: float, classes: int, order: float) -> Conditions:
    shape = find_plateau(sigma=sigma, classes=classes, order=order)
    for name, check in _CHECKS:
        found = check(shape)
        if found is not None:
            reason = f"{name} fails at log q = {found:.6g} (log q0 = {shape.log_q0:.6g})"
            return Conditions(sigma, classes, order, False, reason, found)
    return Conditions(sigma, classes, order, True)


def _q0_too_large(shape: Plateau) -> float | None:
    """C5: q0 ≤ ½. C4, B.4.2: B_U(q0) < 1."""
    above = log_q_above(np.array(shape.log_q0), sigma=shape.sigma, classes=shape.classes)
    return shape.log_q0 if shape.log_q0 > -np.log(2.0) or float(above) >= 0.0 else None


def _not_rising(shape: Plateau) -> float | None:
    """C5: β(q) is non-decreasing on [0, q0]."""
    start = np.sqrt(-shape.log_q0)

    def slope(root: Floats) -> Floats:
        return _signed_slope(-(root**2), shape)

    root = _negative_at(slope, start, start + _beyond(shape))
    return None if root is None else -(root**2)


def _not_constant(shape: Plateau) -> float | None:
    """C5: β(q) = λ/σ² for every q > q0, so Theorem 6 must not drop below it again."""
    root = np.linspace(0.0, np.sqrt(-shape.log_q0), _GRID)[:-1]
    bound = data_dependent_rdp(-(root**2), sigma=shape.sigma, orders=shape.order)[0]
    # One grid cell next to q0 may hold rounding alone.
    again = bound < shape.order / shape.sigma**2 * (1.0 - _SLACK)
    return -float(root[np.argmax(again)] ** 2) if again.any() else None


def _difference_falls(shape: Plateau) -> float | None:
    """C6: Δβ(q) = β(B_U(q)) − β(q) is non-decreasing on [0, B_L(q0)].

    In the margin z = Φ^{-1}(q/(m−1)), B_U is a shift by s = √2/σ, so with G(z) = dβ/dz the
    condition is G(z + s) ≥ G(z), compared as logarithms.
    """
    step = margin_step(shape.sigma)
    last = float(margin_at(shape.log_q1, classes=shape.classes))
    root = np.sqrt(-shape.log_q1) + _beyond(shape)
    first = float(margin_at(-(root**2), classes=shape.classes))

    def growth(margin: Floats) -> Floats:
        return _log_margin_slope(margin + step, shape) - _log_margin_slope(margin, shape)

    margin = _negative_at(growth, first, last)
    return None if margin is None else float(log_q_at(margin, classes=shape.classes))


_CHECKS: tuple[tuple[str, Callable[[Plateau], float | None]], ...] = (
    ("C5 (q0 <= 1/2, B_U(q0) < 1)", _q0_too_large),
    ("C5 (the bound rises up to q0)", _not_rising),
    ("C5 (the bound is constant beyond q0)", _not_constant),
    ("C6 (its growth to B_U(q) rises up to B_L(q0))", _difference_falls),
)


def _beyond(shape: Plateau) -> float:
    """How far past q0 to look, in √log(1/q): there β is below e^{−1600} of its height."""
    return (shape.order + 1.0) / shape.sigma + 40.0


def _slope_terms(log_q: Floats, shape: Plateau) -> tuple[Floats, Floats]:
    """log|·| and sign of (λ − 1)·dβ/dq at each q, from Theorem 6 in closed form.

    μ1 and μ2 minimise their terms (Proposition 10), so they may be held fixed. With r = √log(1/q),
    J = (1−q)^λ/(1−x)^{λ−1} + q B^{λ−1}, log x = −(r − 1/σ)²:
        dJ/dlog q = first·(−λ q/(1−q) + (λ−1)(1 − 1/μ2) x/(1−x)) + second·(1 − (λ−1)/μ2).
    """
    order, sigma = shape.order, shape.sigma
    root = np.sqrt(-log_q)
    mu2 = sigma * root
    log_x = -((root - 1.0 / sigma) ** 2)
    log_1mq = np.log1p(-np.exp(log_q))
    log_1mx = np.log1p(-np.exp(log_x))
    first = order * log_1mq - (order - 1.0) * log_1mx
    over_q = order * (order - 1.0) / sigma**2 - (root - (order - 1.0) / sigma) ** 2 - log_q
    total = np.logaddexp(first, over_q + log_q)
    exponents = np.stack([first - log_1mq, first + log_x - log_q - log_1mx, over_q]) - total
    weights = np.stack(
        [
            np.full(root.shape, -order),
            (order - 1.0) * (1.0 - 1.0 / mu2),
            1.0 - (order - 1.0) / mu2,
        ]
    )
    value, sign = logsumexp(exponents, axis=0, b=weights, return_sign=True)
    # Relative to the largest term, so that the sign of pure rounding can be told.
    largest = np.max(exponents + np.log(np.maximum(np.abs(weights), 1e-300)), axis=0)
    noise = np.asarray(value) - largest < np.log(1e-13)
    return np.asarray(value, dtype=np.float64), np.where(noise, 0.0, sign)


def _signed_slope(log_q: Floats, shape: Plateau) -> Floats:
    """−1 where β falls, else 0 or 1."""
    return np.asarray(_slope_terms(log_q, shape)[1], dtype=np.float64)


def _log_margin_slope(margin: Floats, shape: Plateau) -> Floats:
    """log dβ/dz up to a constant; −inf where β does not rise."""
    value, sign = _slope_terms(log_q_at(margin, classes=shape.classes), shape)
    density = -0.5 * margin**2  # dq/dz = (m − 1)·φ(z)
    return np.where(sign > 0.0, value + density, -np.inf)


def _negative_at(function: Callable[[Floats], Floats], low: float, high: float) -> float | None:
    """Where `function` is negative beyond rounding on [low, high], or None.

    A dense grid, then every one of the deepest local minima is refined on its own.
    """
    grid = np.linspace(low, high, _GRID)
    with np.errstate(invalid="ignore", divide="ignore"):
        values = np.nan_to_num(function(grid), nan=-np.inf)
        inner = (values[1:-1] <= values[:-2]) & (values[1:-1] <= values[2:])
        is_minimum = np.concatenate([[True], inner, [True]])
        candidates = np.flatnonzero(is_minimum)
        deepest = candidates[np.argsort(values[candidates], kind="stable")[:_MINIMA]]
        centre = grid[deepest]
        width = (high - low) / (_GRID - 1)
        best = values[deepest]
        for _ in range(_ZOOMS):
            offsets = np.linspace(-width, width, _ZOOM)
            points = np.clip(centre[:, np.newaxis] + offsets, low, high)
            found = np.nan_to_num(function(points.ravel()), nan=-np.inf).reshape(points.shape)
            column = found.argmin(axis=1)
            rows = np.arange(len(centre))
            centre, best = points[rows, column], found[rows, column]
            width *= 2.0 / (_ZOOM - 1)
    worst = int(best.argmin())
    return float(centre[worst]) if best[worst] < -_SLACK else None
