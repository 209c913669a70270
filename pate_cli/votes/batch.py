"""What comes out of a vote file: its public description and its batches of histograms."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pate_cli.errors import ParameterError
from pate_cli.votes.grid import Ids
from pate_cli.words import Layout


@dataclass(frozen=True, eq=False)
class VoteBatch:
    """Consecutive queries of a file.

    first_row: 0-based number of the first query. ids: the query_id column of these rows (int64
    array, or tuple of str), the row numbers when the file has none. counts: int64, C-contiguous,
    [rows, classes], each row's total at most the number of teachers; it may be 0 where teachers may
    be missing.
    """

    first_row: int
    ids: Ids
    counts: NDArray[np.int64]


@dataclass(frozen=True)
class VoteFile:
    """An opened file: its shape, how it was read, and its batches.

    `teachers` is --teachers, else what the file says: the total of the first row, the number of
    labels in it, or the number of distinct teacher ids; `teachers_from_data` is true then.
    `classes_from_data` is true when the number of classes is one more than the largest label
    seen; it then depends on the votes, so --classes is the better source wherever the number of
    classes is known. `rows_from_data` is true where votes may be missing in long form: a query is
    there only if somebody voted on it, so one teacher can make a query appear, and `queries` and
    the place of later queries depend on the votes.

    Queries come in the file's order, in long form in order of their ids: numbers ascending,
    strings by code points ("10" before "9"). The order never depends on who voted.
    """

    name: str
    queries: int
    classes: int
    teachers: int
    layout: Layout
    inferred: bool
    classes_from_data: bool
    teachers_from_data: bool
    rows_from_data: bool
    read: Callable[[int], Iterator[VoteBatch]] = field(repr=False, compare=False)

    def describe(self) -> str:
        """Return one line about the file, without any vote."""
        how = "inferred" if self.inferred else "as told"
        line = (
            f"{self.name}: {self.queries} queries x {self.classes} classes, "
            f"{self.teachers} teachers, layout {self.layout} ({how})"
        )
        if self.layout is Layout.LONG:
            line += ", in order of query_id"
        if self.rows_from_data:
            line += "; queries without any vote are not known"
        if self.classes_from_data:
            line += "; the number of classes was taken from the data, --classes is safer"
        return line

    def batches(self, *, limit: int | None = None) -> Iterator[VoteBatch]:
        """Yield the first `limit` queries (default: all) in order, validating every row.

        May be called again, and several iterators may be open at once.

        Raises:
            VoteError: at the first row that is no vote.
            ParameterError: for a negative limit.
        """
        if limit is not None and limit < 0:
            raise ParameterError(f"limit must be at least 0, got {limit}")
        return self.read(self.queries if limit is None else min(limit, self.queries))
