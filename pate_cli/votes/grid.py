"""The one shape every file is read as before its layout gives it a meaning: a grid of integers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64] | tuple[str, ...]

ABSENT = -1
"""Stands for a vote that is not there; set only after negative numbers have been refused."""

ENTRIES_PER_BATCH = 1 << 22
"""At most this many int64 in one batch: 32 MB."""


@dataclass(frozen=True)
class Where:
    """Names a place in a file: `noun` is "column" where a query is a column of the file."""

    name: str
    noun: str = "row"

    def at(self, row: int) -> str:
        """Return the start of a message about this row (0-based, counted over all parts)."""
        return f"{self.name}: {self.noun} {row}"


@dataclass(frozen=True, eq=False)
class Block:
    """Some consecutive queries: `values` is int64 [rows, columns], non-negative or ABSENT."""

    first_row: int
    ids: Ids
    values: NDArray[np.int64]


class Grid(Protocol):
    """A file with one row per query, whatever its entries turn out to be."""

    @property
    def where(self) -> Where:
        """Where a row number points."""

    @property
    def rows(self) -> int:
        """Number of queries."""

    @property
    def columns(self) -> int:
        """Number of entries in the first row."""

    def blocks(self, size: int, stop: int, *, absent_limit: int | None) -> Iterator[Block]:
        """Yield rows 0..stop-1 in blocks of at most `size`, every entry a sane whole number.

        `absent_limit` None: rows must be complete. A number: entries may be missing, and a row of
        unusual length may hold at most that many.
        """


def batch_size(width: int) -> int:
    """Return how many rows of `width` integers fit in one batch, at least 1."""
    return max(1, ENTRIES_PER_BATCH // max(1, width))
