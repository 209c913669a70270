"""Admissible ranges of the numbers the accountant is given, checked in one place.

NaN compares false with everything, so every test below is written to fail on it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pate_cli.errors import ParameterError

__all__ = ["check_delta", "check_nonnegative", "check_order", "check_orders", "check_positive"]


def check_positive(name: str, value: float) -> float:
    """`value` if it is positive and finite, else ParameterError naming it."""
    if not 0.0 < value < np.inf:
        raise ParameterError(f"{name} must be positive and finite, got {value}")
    return float(value)


def check_nonnegative(name: str, value: float) -> float:
    """`value` if it is finite and at least 0, else ParameterError naming it."""
    if not 0.0 <= value < np.inf:
        raise ParameterError(f"{name} must be at least 0 and finite, got {value}")
    return float(value)


def check_delta(value: float) -> float:
    """`value` if 0 < value < 1, else ParameterError."""
    if not 0.0 < value < 1.0:
        raise ParameterError(f"delta must be between 0 and 1, both excluded, got {value}")
    return float(value)


def check_order(value: float) -> float:
    """`value` if it is a finite Rényi order above 1, else ParameterError."""
    if not 1.0 < value < np.inf:
        raise ParameterError(f"a Renyi order must be finite and above 1, got {value}")
    return float(value)


def check_orders(values: ArrayLike) -> NDArray[np.float64]:
    """A non-empty vector of finite orders above 1 as float64, else ParameterError."""
    orders = np.atleast_1d(np.asarray(values, dtype=np.float64))
    if orders.ndim != 1 or orders.size == 0:
        raise ParameterError(f"orders must be a non-empty vector, got shape {orders.shape}")
    for value in orders[~((orders > 1.0) & (orders < np.inf))]:
        check_order(float(value))
    return orders
