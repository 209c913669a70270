"""From the rows of an opened file to checked histograms; what does it can be pickled.

A copy in another process reads the same votes: what was settled on opening travels, open files and
memory maps do not and are opened again by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np

from pate_cli.core.arrays import Histograms, Ints, row_width, settled
from pate_cli.votes.checks import Ids, Where, check_counts, check_labels, histograms_of
from pate_cli.votes.ranges import Stretch


@dataclass(frozen=True, eq=False)
class VoteBatch:
    """Consecutive queries of a file.

    first_row: 0-based number of the first query. ids: the query_id column of these rows (int64
    array, or tuple of str), the row numbers when the file has none. counts: int64, C-contiguous,
    [rows, classes], each row's total at most the number of teachers; it may be 0 where teachers may
    be missing. Of more than DENSE_CLASSES classes, in whatever layout, they are SparseCounts.
    """

    first_row: int
    ids: Ids
    counts: Histograms


def row_numbers(start: int, stop: int) -> Ints:
    """Return the ids of rows start..stop-1 of a file that has none."""
    return np.arange(start, stop, dtype=np.int64)


class Extent(Protocol):
    """Where rows of votes are."""

    @property
    def stretches(self) -> tuple[Stretch, ...]:
        """The files behind it, in order."""

    @property
    def portable(self) -> bool:
        """Whether it pickles as names of files, without votes."""


class Matrix(Extent, Protocol):
    """A file with one row per query, before its layout gives the entries a meaning."""

    @property
    def where(self) -> Where:
        """Where a row number points."""

    @property
    def rows(self) -> int:
        """Number of queries."""

    @property
    def width(self) -> int:
        """Number of entries in the first row."""

    def blocks(
        self, size: int, start: int, stop: int, *, absent_limit: int | None
    ) -> Iterator[tuple[int, Ids, Ints]]:
        """Yield rows start..stop-1 as (first row, ids, values [rows, columns]), at most `size`.

        Values are sane whole numbers or ABSENT. `absent_limit` None: rows must be complete. A
        number: entries may be missing, and a row of unusual length may hold at most that many.
        """


class Reader(Extent, Protocol):
    """Histograms of an opened file, any rows of it."""

    @property
    def width(self) -> int:
        """Entries that one row takes while it is read."""

    def batches(self, start: int, stop: int) -> Iterator[VoteBatch]:
        """Yield rows start..stop-1, all of them there; VoteError at the first that is no vote."""


_Source = TypeVar("_Source", bound=Extent)


@dataclass(frozen=True, eq=False, kw_only=True)
class ReadFrom(Generic[_Source]):
    """What is read from a source, and is where that is."""

    source: _Source

    @property
    def stretches(self) -> tuple[Stretch, ...]:
        """The files behind it, in order."""
        return self.source.stretches

    @property
    def portable(self) -> bool:
        """Whether it pickles as names of files, without votes."""
        return self.source.portable


@dataclass(frozen=True, eq=False, kw_only=True)
class _MatrixReader(ReadFrom[Matrix]):
    """Batches of at most `size` rows of a matrix, each of `width` entries."""

    size: int
    width: int


@dataclass(frozen=True, eq=False, kw_only=True)
class CountsReader(_MatrixReader):
    """Rows are histograms; `teachers` and `missing_allowed` as in `check_counts`."""

    teachers: int
    missing_allowed: bool

    def batches(self, start: int, stop: int) -> Iterator[VoteBatch]:
        """See Reader."""
        for row, ids, counts in self.source.blocks(self.size, start, stop, absent_limit=None):
            check_counts(
                counts,
                row,
                self.source.where,
                teachers=self.teachers,
                missing_allowed=self.missing_allowed,
            )
            yield VoteBatch(row, ids, settled(counts))


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelsReader(_MatrixReader):
    """Rows are the labels of the teachers; `absent_limit` as in Matrix.blocks.

    `weights` [teachers]: how many votes each teacher's counts for; None for one each.
    """

    classes: int
    absent_limit: int | None
    weights: Ints | None = None

    def batches(self, start: int, stop: int) -> Iterator[VoteBatch]:
        """See Reader."""
        blocks = self.source.blocks(self.size, start, stop, absent_limit=self.absent_limit)
        for row, ids, labels in blocks:
            check_labels(labels, row, self.source.where, classes=self.classes)
            yield VoteBatch(row, ids, histograms_of(labels, self.classes, self.weights))


@dataclass(frozen=True, eq=False, kw_only=True)
class CountedReader:
    """Histograms [queries, classes] that were counted on opening and are in memory."""

    name: str
    ids: Ids
    counts: Histograms
    size: int
    strays: int = 0

    def stray_rows(self, stop: int) -> int:
        """How many rows of the files had a text that is no name, whichever queries they are on."""
        del stop
        return self.strays

    @property
    def portable(self) -> bool:
        """Never: a copy carries the histograms."""
        return False

    @property
    def width(self) -> int:
        """Number of classes, or of entries of sparse histograms."""
        return row_width(self.counts)

    @property
    def stretches(self) -> tuple[Stretch, ...]:
        """All queries as one: they are not the rows of the files."""
        return (Stretch(self.name, len(self.counts)),)

    def batches(self, start: int, stop: int) -> Iterator[VoteBatch]:
        """See Reader."""
        for first in range(start, stop, self.size):
            end = min(first + self.size, stop)
            yield VoteBatch(first, self.ids[first:end], self.counts[first:end])
