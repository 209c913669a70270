"""How far one teacher can move q: B_U and B_L of Appendix B.1, in log space."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, ndtri_exp

from pate_cli.arrays import Floats
from pate_cli.checks import check_positive
from pate_cli.errors import ParameterError

__all__ = ["check_classes", "log_q_above", "log_q_at", "log_q_below", "margin_at", "margin_step"]


# Both functions are shifts of one coordinate, the margin z = Φ^{-1}(q/(m − 1)): with
# ½ erfc(x) = Φ(−√2 x), the published (m−1)/2 · erfc(erfc^{-1}(2q/(m−1)) ∓ 1/σ) is
# (m−1)·Φ(z ± √2/σ).


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


def check_classes(classes: int) -> int:
    """The number of classes m, a whole number of at least 2, else ParameterError."""
    if not (classes >= 2 and classes == int(classes)):
        raise ParameterError(f"classes must be a whole number of at least 2, got {classes}")
    return int(classes)
