"""Conditions C5 and C6 of Appendix B.2, checked for each (σ, m, λ) in use.

The paper checks them numerically too (B.4.2): derivatives in closed form, minimised over
[0, q0] and [0, B_L(q0)], whose least values must not be negative. C1–C4, C7 and C8 hold for
GNMax by B.4.1, given q0 ≤ ½ and B_U(q0) < 1, which are checked here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import logsumexp

from pate_cli.core.arrays import Floats
from pate_cli.core.errors import ValidityError
from pate_cli.paper.gnmax import data_dependent_rdp
from pate_cli.paper.plateau import Plateau, find_plateau

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


def check_conditions(*, sigma: float, classes: int, order: float) -> Conditions:
    """Verdict on C5 and C6 at one (σ, m, λ).

    Args:
        sigma: standard deviation σ of GNMax's noise, in votes, from 0.1 to 1e9.
        classes: m ≥ 2.
        order: Rényi order λ > 1.

    Raises:
        ParameterError: σ is out of range.
    """
    shape = find_plateau(sigma=sigma, classes=classes, order=order)
    for name, check in _CHECKS.items():
        found = check(shape)
        if found is not None:
            reason = f"{name} fails at log q = {found:.6g} (log q0 = {shape.log_q0:.6g})"
            return Conditions(sigma, classes, order, False, reason, found)
    return Conditions(sigma, classes, order, True)


def require_conditions(*, sigma: float, classes: int, order: float) -> None:
    """Raise ValidityError, which says why, unless C5 and C6 hold at this (σ, m, λ)."""
    verdict = check_conditions(sigma=sigma, classes=classes, order=order)
    if not verdict.holds:
        raise ValidityError(
            f"smooth sensitivity is not valid at order {order:g} with sigma {sigma:g} and"
            f" {classes} classes: {verdict.reason}"
        )


def _q0_too_large(shape: Plateau) -> float | None:
    """Check q0 ≤ ½ (C5) and B_U(q0) < 1 (C4, B.4.2)."""
    large = shape.log_q0 > -np.log(2.0) or float(shape.above(shape.log_q0)) >= 0.0
    return shape.log_q0 if large else None


def _not_rising(shape: Plateau) -> float | None:
    """C5: β(q) is non-decreasing on [0, q0]."""
    start = np.sqrt(-shape.log_q0)
    root = _negative_at(lambda at: _slope_terms(-(at**2), shape)[1], start, start + _beyond(shape))
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
    root = np.sqrt(-shape.log_q1) + _beyond(shape)

    def growth(margin: Floats) -> Floats:
        return _log_margin_slope(margin + shape.step, shape) - _log_margin_slope(margin, shape)

    first, last = float(shape.margin(-(root**2))), float(shape.margin(shape.log_q1))
    margin = _negative_at(growth, first, last)
    return None if margin is None else float(shape.log_q(margin))


_CHECKS: Final = {
    "C5 (q0 <= 1/2, B_U(q0) < 1)": _q0_too_large,
    "C5 (the bound rises up to q0)": _not_rising,
    "C5 (the bound is constant beyond q0)": _not_constant,
    "C6 (its growth to B_U(q) rises up to B_L(q0))": _difference_falls,
}


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


def _log_margin_slope(margin: Floats, shape: Plateau) -> Floats:
    """log dβ/dz up to a constant; −inf where β does not rise."""
    value, sign = _slope_terms(shape.log_q(margin), shape)
    density = -0.5 * margin**2  # dq/dz = (m − 1)·φ(z)
    return np.where(sign > 0.0, value + density, -np.inf)


def _negative_at(function: Callable[[Floats], Floats], low: float, high: float) -> float | None:
    """A place in [low, high] at which `function` is negative beyond rounding, or None.

    A dense grid, then every one of the deepest local minima is refined on its own.
    """
    grid = np.linspace(low, high, _GRID)
    with np.errstate(invalid="ignore", divide="ignore"):
        values = np.nan_to_num(function(grid), nan=-np.inf)
        inner = (values[1:-1] <= values[:-2]) & (values[1:-1] <= values[2:])
        candidates = np.flatnonzero(np.concatenate([[True], inner, [True]]))
        deepest = candidates[np.argsort(values[candidates], kind="stable")[:_MINIMA]]
        centre, best = grid[deepest], values[deepest]
        width = (high - low) / (_GRID - 1)
        for _ in range(_ZOOMS):
            offsets = np.linspace(-width, width, _ZOOM)
            points = np.clip(centre[:, np.newaxis] + offsets, low, high)
            found = np.nan_to_num(function(points.ravel()), nan=-np.inf).reshape(points.shape)
            at = np.arange(len(centre)), found.argmin(axis=1)
            centre, best = points[at], found[at]
            width *= 2.0 / (_ZOOM - 1)
    worst = int(best.argmin())
    return float(centre[worst]) if best[worst] < -_SLACK else None
