"""The arrays that functions take and return, by what is in them."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Counts", "Floats", "Ints", "LabelArray"]

Floats: TypeAlias = NDArray[np.float64]
"""Real numbers: costs in nats, scores, orders."""

Ints: TypeAlias = NDArray[np.int64]
"""Whole numbers: rows, cells, distances."""

Counts: TypeAlias = NDArray[np.int64]
"""Vote histograms [queries, classes]. SECRET."""

LabelArray: TypeAlias = NDArray[np.int32]
"""One class a query, or NO_LABEL."""
