"""How far one teacher moves q (B_U, B_L), where the bound stops helping (q0, q1), Algorithm 3."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pate_cli.core.arrays import Floats
from pate_cli.core.checks import check_order, check_positive
from pate_cli.core.errors import ParameterError
from pate_cli.core.special import log_ndtr, ndtri_exp
from pate_cli.published.checks import check_classes
from pate_cli.published.gnmax import data_dependent_rdp, rdp_of_log_q

_FINEST, _COARSEST = 0.1, 1e9  # σ at which q0 and the conditions are told from rounding
_CELLS = 4096
_ZOOM = 64
_ZOOMS = 12  # 64^12 is far beyond 2^53: the bracket ends at neighbouring doubles


@dataclass(frozen=True)
class Plateau:
    """The shape of one (σ, m, λ): β rises up to q0 and is λ/σ² beyond; LS̃ is flat on [q1, q0].

    `height` is LS̃ there, the largest local sensitivity any histogram has under C2–C6.
    """

    sigma: float
    classes: int
    order: float
    log_q0: float
    log_q1: float
    height: float


# How far one teacher can move q: B_U and B_L of Appendix B.1. Both are shifts of one coordinate,
# the margin z = Φ^{-1}(q/(m − 1)): with ½ erfc(x) = Φ(−√2 x), the published
# (m−1)/2 · erfc(erfc^{-1}(2q/(m−1)) ∓ 1/σ) is (m−1)·Φ(z ± √2/σ).


def margin_step(sigma: float) -> float:
    """√2/σ, what one teacher can move the margin z by."""
    return float(np.sqrt(2.0) / sigma)


def margin_at(log_q: ArrayLike, *, classes: int) -> Floats:
    """z = Φ^{-1}(q/(m − 1)) from log q; −inf at q = 0."""
    return np.asarray(
        ndtri_exp(np.asarray(log_q, dtype=np.float64) - np.log(classes - 1.0)), dtype=np.float64
    )


def log_q_at(margin: ArrayLike, *, classes: int) -> Floats:
    """log[(m − 1)·Φ(z)], not capped at 0."""
    return np.asarray(
        np.log(classes - 1.0) + log_ndtr(np.asarray(margin, dtype=np.float64)), dtype=np.float64
    )


def log_q_above(log_q: ArrayLike, *, sigma: float, classes: int) -> Floats:
    """log B_U(q): no neighbour's q exceeds it. B_U(q) = min{(m−1)·Φ(z + √2/σ), 1}, B.1.

    Args:
        log_q: log q of a histogram, at most log(1 − 1/m).
        sigma: standard deviation σ > 0 of GNMax's noise, in votes.
        classes: m ≥ 2.

    Returns:
        Same shape, at most 0.
    """
    step = margin_step(check_positive("sigma", sigma))
    margin = margin_at(log_q, classes=check_classes(classes))
    return np.minimum(log_q_at(margin + step, classes=classes), 0.0)


def log_q_below(log_q: ArrayLike, *, sigma: float, classes: int) -> Floats:
    """log B_L(q): no neighbour's q is less. B_L(q) = (m−1)·Φ(z − √2/σ), B.1. As above."""
    step = margin_step(check_positive("sigma", sigma))
    margin = margin_at(log_q, classes=check_classes(classes))
    return log_q_at(margin - step, classes=classes)


def log_q0(*, sigma: float, order: float) -> float:
    """log of q0, the end of the data-dependent range: below it Theorem 6 beats λ/σ².

    Appendix A: "a critical value of q0 that separates the range of applicability of the
    data-dependent and data-independent bounds can be computed for given σ and λ". Here it is the
    first q, coming from 0, at which Theorem 6 either ceases to apply or reaches λ/σ².

    Args:
        sigma: standard deviation σ of GNMax's noise, in votes, from 0.1 to 1e9.
        order: Rényi order λ > 1.

    Returns:
        log q0 < 0.

    Raises:
        ParameterError: an argument outside its range, or so extreme that no q0 is found.
    """
    sigma = check_positive("sigma", sigma)
    order = check_order(order)
    if not _FINEST <= sigma <= _COARSEST:
        raise ParameterError(
            f"the published sensitivity needs sigma in [{_FINEST:g}, {_COARSEST:g}], got {sigma:g}"
        )
    # In r = √log(1/q) the theorem's second term is exp(λ(λ−1)/σ² − (r − (λ−1)/σ)²), and
    # 1 − A ~ exp(−(r − 1/σ)²); both conditions on μ are lower ends of r.
    lowest = max(order - 1.0, 1.0) / sigma
    highest = (order + 1.0) / sigma + np.sqrt(np.log1p(sigma**2) + 40.0)
    cap = order / sigma**2
    for _ in range(30):
        if _bound(highest, sigma, order) < cap:
            break
        highest *= 2.0
    else:
        raise ParameterError(f"no data-dependent range at sigma {sigma:g}, order {order:g}")
    below = np.linspace(highest, lowest, _CELLS)
    for _ in range(_ZOOMS):
        crossed = ~(data_dependent_rdp(-(below**2), sigma=sigma, orders=order)[0] <= cap)
        crossed[-1] = True  # at the lowest r the theorem is about to cease to apply
        first = int(np.argmax(crossed))
        below = np.linspace(below[first - 1], below[first], _ZOOM + 1)
    return float(-(below[0] ** 2))


def find_plateau(*, sigma: float, classes: int, order: float) -> Plateau:
    """q0, q1 = B_L(q0) and the height LS̃(q1), for one (σ, m, λ). Errors as in `log_q0`."""
    classes = check_classes(classes)
    end = log_q0(sigma=sigma, order=order)
    start = float(log_q_below(np.asarray(end), sigma=sigma, classes=classes))
    rise = _rise(np.array([start]), sigma=sigma, classes=classes, order=order)
    return Plateau(sigma, classes, order, end, start, float(rise[0]))


def local_sensitivity_at(log_q: ArrayLike, plateau: Plateau) -> Floats:
    """LS̃(q): an upper bound on what one teacher can change β(q) by. Algorithm 3.

    max{β(B_U(q)) − β(q), β(q) − β(B_L(q))}, with q replaced by q1 inside [q1, q0]. An upper bound
    under conditions C2–C6 (`require_conditions`).

    Args:
        log_q: log q of each histogram, [queries], at most log(1 − 1/m).
        plateau: the shape of this (σ, m, λ).

    Returns:
        [queries], nats.
    """
    queried = np.atleast_1d(np.asarray(log_q, dtype=np.float64))
    flat = (plateau.log_q1 <= queried) & (queried <= plateau.log_q0)
    rise = np.full(queried.shape, plateau.height)
    rise[~flat] = _rise(
        queried[~flat], sigma=plateau.sigma, classes=plateau.classes, order=plateau.order
    )
    return rise


def _rise(log_q: Floats, *, sigma: float, classes: int, order: float) -> Floats:
    above = log_q_above(log_q, sigma=sigma, classes=classes)
    below = log_q_below(log_q, sigma=sigma, classes=classes)
    middle = rdp_of_log_q(log_q, sigma=sigma, orders=order)[0]
    up = rdp_of_log_q(above, sigma=sigma, orders=order)[0] - middle
    down = middle - rdp_of_log_q(below, sigma=sigma, orders=order)[0]
    return np.maximum(up, down)


def _bound(root: float, sigma: float, order: float) -> float:
    return float(data_dependent_rdp([-(root**2)], sigma=sigma, orders=order)[0, 0])
