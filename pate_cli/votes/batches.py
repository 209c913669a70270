"""Batches of histograms, and what they are read from; whatever reads them can be pickled.

A copy in another process reads the same votes: what was settled on opening travels, open files and
memory maps do not and are opened again by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

import numpy as np

from pate_cli.core.arrays import Histograms, Ints
from pate_cli.core.dataclass import dataclass
from pate_cli.votes.checks import Ids, Where
from pate_cli.votes.columns import Columns
from pate_cli.votes.matching import Matching
from pate_cli.votes.ranges import Stretch
from pate_cli.votes.unnamed import NameTally, Said


@dataclass(frozen=True, eq=False)
class VoteBatch:
    """Consecutive queries of a file.

    first_row: 0-based number of the first query. ids: the query_id column of these rows (int64
    array, or tuple of str), the row numbers when the file has none. counts: int64, C-contiguous,
    [rows, classes], each row's total at most the number of teachers; it may be 0 where teachers may
    be missing. Of more than DENSE_CLASSES classes, in whatever layout, they are SparseCounts.
    alone, guesses: where a prior votes, too, the teachers' histograms, and the class that it votes
    for most, −1 where it does not vote, [rows].
    """

    first_row: int
    ids: Ids
    counts: Histograms
    alone: Histograms | None = None
    guesses: Ints | None = None


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

    @property
    def columns(self) -> Columns | None:
        """What the columns of a table say; None for an array, which has none."""

    @property
    def texts(self) -> bool:
        """Whether its votes are names of classes."""

    def blocks(
        self, size: int, start: int, stop: int, *, absent_limit: int | None
    ) -> Iterator[tuple[int, Ids, Ints]]:
        """Yield rows start..stop-1 as (first row, ids, values [rows, columns]), at most `size`.

        Values are sane whole numbers or ABSENT. `absent_limit` None: rows must be complete. A
        number: entries may be missing, and a row of unusual length may hold at most that many.
        """

    def texts_said(self, size: int, stop: int) -> Iterator[Said]:
        """Yield which texts the first `stop` rows have, `size` rows at once. SECRET."""


class Reader(Extent, Protocol):
    """Histograms of an opened file, any rows of it."""

    @property
    def width(self) -> int:
        """Entries that one row takes while it is read."""

    def batches(self, start: int, stop: int) -> Iterator[VoteBatch]:
        """Yield rows start..stop-1, all of them there; VoteError at the first that is no vote."""

    def tally(self, matching: Matching, stop: int, *, until_named: bool = False) -> NameTally:
        """Which votes in the first `stop` rows are texts and no names. SECRET.

        `until_named`: rows after a vote that has a name may be left out.
        """


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

    def tally(self, matching: Matching, stop: int, *, until_named: bool = False) -> NameTally:
        """Of no votes, unless these may be words; see Reader."""
        del stop, until_named
        return NameTally(matching)
