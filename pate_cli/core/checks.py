"""Admissible ranges of numbers, checked in one place.

NaN compares false with everything, so every test below is written to fail on it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pate_cli.core.arrays import DENSE_CLASSES
from pate_cli.core.errors import ParameterError

__all__ = [
    "LARGEST",
    "MOST_CLASSES",
    "at_least_one",
    "check_counts",
    "check_delta",
    "check_distances",
    "check_ensemble",
    "check_nonnegative",
    "check_order",
    "check_orders",
    "check_positive",
    "check_query_delta",
    "check_scale",
    "check_whole",
]

MOST_CLASSES = 1 << 24
"""Labels fit into 32 bits far beyond; up to here the error of scores is known."""
MOST_VOTED = 100_000
"""Of more than DENSE_CLASSES classes, so many may have votes; with more, rounding in the sums that
make a score may exceed its stated error."""


SMALLEST, LARGEST = 1e-15, 1e15
"""Beyond these a parameter means nothing here, and what follows from it may be no number."""


def check_positive(name: str, value: float) -> float:
    """`value` if it is positive and finite, else ParameterError naming it."""
    if not 0.0 < value < np.inf:
        raise ParameterError(f"{name} must be positive and finite, got {value}")
    return float(value)


def check_scale(name: str, value: float) -> float:
    """The same for what a user chooses: neither below SMALLEST nor above LARGEST."""
    if not SMALLEST <= check_positive(name, value) <= LARGEST:
        raise ParameterError(f"{name} must be between {SMALLEST} and {LARGEST}, got {value}")
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


def check_counts(counts: ArrayLike, *, teachers: int) -> NDArray[np.int64]:
    """Integer histograms [rows, classes] of at most `teachers` votes each, else ParameterError."""
    histograms = np.asarray(counts)
    if histograms.ndim != 2 or not np.issubdtype(histograms.dtype, np.integer):
        raise ParameterError(
            f"counts must be integers [rows, classes], got {histograms.dtype} of shape "
            f"{histograms.shape}"
        )
    total = histograms.sum(axis=1)
    bad = np.flatnonzero((histograms < 0).any(axis=1) | (total > teachers))
    if bad.size:
        raise ParameterError(f"counts of row {bad[0]} are no votes of {teachers} teachers")
    return histograms.astype(np.int64)


def check_distances(values: ArrayLike) -> NDArray[np.int64]:
    """A non-empty vector of ascending whole numbers ≥ 0, else ParameterError."""
    distances = np.asarray(values)
    if distances.ndim != 1 or distances.size == 0 or not np.issubdtype(distances.dtype, np.integer):
        raise ParameterError(
            f"distances must be a non-empty vector of whole numbers, got {distances.dtype} of "
            f"shape {distances.shape}"
        )
    if distances[0] < 0 or (np.diff(distances) <= 0).any():
        raise ParameterError("distances must be ascending and at least 0")
    return distances.astype(np.int64)


def check_order(value: float) -> float:
    """`value` if it is a Rényi order above 1 and at most LARGEST, else ParameterError."""
    if not 1.0 < value < np.inf:
        raise ParameterError(f"a Renyi order must be finite and above 1, got {value}")
    if value > LARGEST:
        raise ParameterError(f"a Renyi order must be at most {LARGEST}, got {value}")
    return float(value)


def check_orders(values: ArrayLike) -> NDArray[np.float64]:
    """A non-empty vector of orders above 1, at most LARGEST, as float64, else ParameterError."""
    orders = np.atleast_1d(np.asarray(values, dtype=np.float64))
    if orders.ndim != 1 or orders.size == 0:
        raise ParameterError(f"orders must be a non-empty vector, got shape {orders.shape}")
    for value in orders[~((orders > 1.0) & (orders <= LARGEST))]:
        check_order(float(value))
    return orders


def check_query_delta(value: float, *, most: float = 1.0) -> float:
    """`value` if 0 < value < 1 and value ≤ most, else ParameterError."""
    if not (0.0 < value < 1.0 and value <= most):
        upper = "and below 1" if most == 1.0 else f"and at most {most}"
        raise ParameterError(f"query delta must be above 0 {upper}, got {value}")
    return float(value)


def check_whole(name: str, value: int) -> int:
    """`value` if it is a whole number ≥ 1, else ParameterError naming it."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ParameterError(f"{name} must be a whole number of at least 1, got {value!r}")
    return int(value)


def check_ensemble(
    teachers: int, classes: int, teachers_per_record: int, *, most: int = DENSE_CLASSES
) -> None:
    """Whole τ ≥ 1, 2 ≤ m ≤ `most` and 1 ≤ k ≤ τ, or ParameterError."""
    for name, value in (("teachers", teachers), ("classes", classes)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise ParameterError(f"{name} must be a whole number, got {value!r}")
    if teachers < 1:
        raise ParameterError(f"teachers must be at least 1, got {teachers}")
    if classes < 2:
        raise ParameterError(f"classes must be at least 2, got {classes}")
    if classes > most:
        raise ParameterError(f"classes must be at most {most}, got {classes}")
    if classes > DENSE_CLASSES and teachers > MOST_VOTED:
        raise ParameterError(
            f"teachers must be at most {MOST_VOTED} with more than {DENSE_CLASSES} classes, got "
            f"{teachers}"
        )
    if check_whole("teachers_per_record", teachers_per_record) > teachers:
        raise ParameterError(
            f"teachers_per_record={teachers_per_record} is more than the {teachers} teachers"
        )


def at_least_one(**numbers: int) -> None:
    """ParameterError, naming it, for a whole number below 1."""
    for name, number in numbers.items():
        if number < 1:
            raise ParameterError(f"`{name}` must be at least 1, got {number}")
