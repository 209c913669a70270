"""What the published analysis accepts as votes: finite, non-negative, at least two classes.

Errors name the row, never what is in it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pate_cli.core.arrays import Counts, Floats
from pate_cli.core.errors import ParameterError


def check_histograms(counts: ArrayLike) -> Floats:
    """Vote counts as float64 [queries, classes]; one histogram [classes] becomes one query.

    Raises:
        ParameterError: not numbers, not two-dimensional, fewer than two classes, or a row that
            holds NaN, an infinity or a negative count.
    """
    histograms = np.atleast_2d(_numbers("counts", counts))
    if histograms.ndim != 2 or histograms.shape[1] < 2:
        raise ParameterError(
            f"counts must be [queries, classes] with at least 2 classes, got {histograms.shape}"
        )
    good = (histograms >= 0.0) & (histograms < np.inf)
    if not good.all():
        row = int(np.argmin(good.all(axis=1)))
        raise ParameterError(f"counts must be finite and at least 0, row {row} is not")
    return histograms


def check_scores(scores: ArrayLike) -> Floats:
    """Scores of the threshold step as float64 [queries]; any finite reals.

    Raises:
        ParameterError: not numbers, not a vector, or NaN or infinite at some row.
    """
    vector = np.atleast_1d(_numbers("scores", scores))
    if vector.ndim != 1:
        raise ParameterError(f"scores must be [queries], got shape {vector.shape}")
    good = np.isfinite(vector)
    if not good.all():
        raise ParameterError(f"scores must be finite, row {int(np.argmin(good))} is not")
    return vector


def check_whole_votes(histograms: Floats, *, teachers: int) -> Counts:
    """Histograms as int64, refusing fractions and rows with more votes than teachers.

    Algorithm 4 moves whole votes (Theorem 5 asks for integer-valued histograms).

    Raises:
        ParameterError: a row holds a fraction, or its total exceeds `teachers`.
    """
    whole = (histograms == np.floor(histograms)).all(axis=1)
    if not whole.all():
        raise ParameterError(f"counts must be whole votes, row {int(np.argmin(whole))} is not")
    fits = histograms.sum(axis=1) <= teachers
    if not fits.all():
        row = int(np.argmin(fits))
        raise ParameterError(f"row {row} holds more votes than there are teachers ({teachers})")
    return histograms.astype(np.int64)


def check_teachers(teachers: int) -> int:
    """The number of teachers, a whole number of at least 1, else ParameterError."""
    if not (teachers >= 1 and teachers == int(teachers)):
        raise ParameterError(f"teachers must be a whole number of at least 1, got {teachers}")
    return int(teachers)


def check_classes(classes: int) -> int:
    """The number of classes m, a whole number of at least 2, else ParameterError."""
    if not (classes >= 2 and classes == int(classes)):
        raise ParameterError(f"classes must be a whole number of at least 2, got {classes}")
    return int(classes)


def _numbers(name: str, values: ArrayLike) -> Floats:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"{name} must be an array of numbers") from error
