"""What teachers said of each of several labels a query: yes or no, counted or one by one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from pate_cli.core.arrays import Counts, Ints
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import VoteError
from pate_cli.core.words import Layout
from pate_cli.votes.batches import Extent, Matrix, ReadFrom, row_numbers
from pate_cli.votes.checks import (
    ABSENT,
    LARGEST,
    MISSING,
    Ids,
    Where,
    first_bad,
    wide_enough,
)
from pate_cli.votes.layouts.orientation import check_three_sides
from pate_cli.votes.reading import Reading
from pate_cli.votes.sources.npy import NpyCube

_Rows = TypeVar("_Rows", Matrix, NpyCube)


class Answers(Extent, Protocol):
    """What teachers said of every label, query by query; rows of its files are queries."""

    @property
    def name(self) -> str:
        """What messages call the file."""

    @property
    def queries(self) -> int:
        """Number of queries."""

    @property
    def labels(self) -> int:
        """L."""

    @property
    def label_names(self) -> tuple[str, ...] | None:
        """What the file calls the labels, if it does."""

    @property
    def teachers(self) -> int:
        """How many there are."""

    @property
    def width(self) -> int:
        """Entries that one label of one query takes while it is read."""

    def blocks(self, size: int, start: int, stop: int) -> Iterator[tuple[int, Ids, Counts]]:
        """Yield queries start..stop-1 as (first query, ids, counts [queries, labels, 2])."""


@dataclass(frozen=True, eq=False, kw_only=True)
class _AnswersFrom(ReadFrom[_Rows]):
    """Answers about as many queries as a source has rows."""

    @property
    def name(self) -> str:
        """See Answers."""
        return self.source.where.name

    @property
    def queries(self) -> int:
        """See Answers."""
        return self.source.rows

    @property
    def label_names(self) -> tuple[str, ...] | None:
        """None, unless columns have names; see Answers."""
        return None


@dataclass(frozen=True, eq=False, kw_only=True)
class CountedYes(_AnswersFrom[Matrix]):
    """Counts of yes, [queries, labels]; the other teachers said no."""

    teachers: int

    width = 2

    @classmethod
    def of(cls, matrix: Matrix, reading: Reading) -> Self:
        """Of a matrix; VoteError where the number of teachers was not said."""
        reading.refuse_groups(matrix.where.name)
        if reading.teachers is None:
            raise VoteError(
                f"{matrix.where.name}: counts of yes do not tell how many teachers said no; give "
                "`teachers` N"
            )
        return cls(source=matrix, teachers=reading.teachers)

    @property
    def label_names(self) -> tuple[str, ...] | None:
        """What the columns are called; see Answers."""
        columns = self.source.columns
        return None if columns is None else columns.entry_names

    @property
    def labels(self) -> int:
        """See Answers."""
        return self.source.width

    def blocks(self, size: int, start: int, stop: int) -> Iterator[tuple[int, Ids, Counts]]:
        """See Answers."""
        matrix, most = self.source, max(self.teachers, self.labels)
        for query, ids, yes in matrix.blocks(size, start, stop, absent_limit=most):
            where = matrix.where
            here = yes.shape[1]
            if here > self.labels:
                long = yes[:, self.labels :] != ABSENT
                raise VoteError(
                    f"{where.at(first_bad(long, query))} has more labels than the {self.labels} of "
                    "row 0"
                )
            short = np.full((len(yes), self.labels - here), ABSENT)
            yes = np.concatenate([yes, short], axis=1)
            _refuse(yes == ABSENT, "no count of yes", query, where)
            _refuse(
                yes > self.teachers,
                f"more votes for yes than `teachers` {self.teachers}",
                query,
                where,
            )
            yield query, ids, np.stack([self.teachers - yes, yes], axis=2)


@dataclass(frozen=True, eq=False, kw_only=True)
class CountedBoth(_AnswersFrom[NpyCube]):
    """Counts of no and yes, [queries, labels, 2]; missing_allowed as in `check_counts`."""

    teachers: int
    missing_allowed: bool

    width = 2

    @classmethod
    def of(cls, cube: NpyCube, reading: Reading) -> Self:
        """Of an array, whose first pair tells how many teachers there are unless that was said."""
        reading.refuse_groups(cube.where.name)
        if cube.sides[1] != 2:
            raise VoteError(
                f"{cube.where.name}: the array has shape {cube.source.shape}; its last side must "
                "be 2, the counts of no and of yes"
            )
        teachers = reading.teachers
        if teachers is None:
            _, first = next(cube.blocks(1, 0, 1))
            teachers = _first_total(first, cube.where)
        answers = cls(source=cube, teachers=teachers, missing_allowed=reading.teachers is not None)
        next(answers.blocks(1, 0, 1))
        return answers

    @property
    def labels(self) -> int:
        """See Answers."""
        return self.source.sides[0]

    def blocks(self, size: int, start: int, stop: int) -> Iterator[tuple[int, Ids, Counts]]:
        """See Answers."""
        where = self.source.where
        for query, raw in self.source.blocks(size, start, stop):
            _refuse(~_whole(raw).all(axis=2), "an entry that is no count of votes", query, where)
            counts = raw.astype(np.int64)
            total = counts.sum(axis=2)
            if self.missing_allowed:
                _refuse(
                    total > self.teachers,
                    f"more votes than `teachers` {self.teachers}",
                    query,
                    where,
                )
            else:
                _refuse(
                    total != self.teachers,
                    f"another total than the first pair. {MISSING}",
                    query,
                    where,
                )
            yield query, row_numbers(query, query + len(counts)), counts


@dataclass(frozen=True, eq=False, kw_only=True)
class Ballots(_AnswersFrom[NpyCube]):
    """Votes of every teacher, [queries, teachers, labels]: 1 for yes, 0 for no.

    missing_allowed: -1 and NaN are no votes. weights [teachers]: how many votes each teacher's
    counts for; None for one each.
    """

    missing_allowed: bool
    weights: Ints | None = None

    @classmethod
    def of(cls, cube: NpyCube, reading: Reading, layout: Layout) -> Self:
        """Of an array whose first two sides are those of the layout."""
        check_three_sides(cube, layout, reading)
        return cls(
            source=cube,
            missing_allowed=reading.teachers is not None,
            weights=reading.weights(cube.sides[0], cube.where.name),
        )

    @property
    def teachers(self) -> int:
        """See Answers."""
        return self.source.sides[0]

    @property
    def labels(self) -> int:
        """See Answers."""
        return self.source.sides[1]

    @property
    def width(self) -> int:
        """See Answers."""
        return max(self.teachers, 2)

    def blocks(self, size: int, start: int, stop: int) -> Iterator[tuple[int, Ids, Counts]]:
        """See Answers."""
        for query, said in self.said(size, start, stop):
            sides = [self._votes(said == answer) for answer in (0, 1)]
            counts = np.stack(sides, axis=2).astype(np.int64, copy=False)
            yield query, row_numbers(query, query + len(counts)), counts

    def _votes(self, for_it: NDArray[np.bool_]) -> Counts:
        """How many votes [queries, labels] of [queries, teachers, labels] are for something."""
        if self.weights is None:
            return np.count_nonzero(for_it, axis=1)
        return np.einsum("qtl,t->ql", for_it, self.weights)

    def said(self, size: int, start: int, stop: int) -> Iterator[tuple[int, NDArray[np.int8]]]:
        """Yield (first query, votes [queries, teachers, labels] 0, 1 or ABSENT)."""
        where = self.source.where
        for query, raw in self.source.blocks(size, start, stop):
            said = np.full(raw.shape, ABSENT, dtype=np.int8)
            said[raw == 0] = 0
            said[raw == 1] = 1
            gone = said == ABSENT
            if self.missing_allowed and gone.any():
                gone &= ~(
                    (raw == ABSENT) | np.isnan(raw) if raw.dtype.kind == "f" else raw == ABSENT
                )
            _refuse(gone.any(axis=1), self._refusal, query, where)
            yield query, said

    @property
    def _refusal(self) -> str:
        text = "a vote that is neither 0 nor 1; turn scores into yes or no first"
        return (
            text if self.missing_allowed else f"{text}, and give `teachers` N if -1 or NaN is none"
        )


def _first_total(first: NDArray[Any], where: Where) -> int:
    """How many teachers voted on the first label of the first query, [1, labels, 2].

    Raises:
        VoteError: nobody, or no counts.
    """
    _refuse(~_whole(first).all(axis=2), "an entry that is no count of votes", 0, where)
    total = int(first[0, 0].sum(dtype=np.int64))
    if total == 0:
        raise VoteError(f"{where.at(0)}, label 0 has no votes at all. {MISSING}")
    return total


def _whole(raw: NDArray[Any]) -> NDArray[np.bool_]:
    """Which entries are counts that a row of votes may hold."""
    if raw.dtype.kind == "f":
        raw = wide_enough(raw)
    with np.errstate(invalid="ignore"):
        good: NDArray[np.bool_] = (raw >= 0) & (raw <= LARGEST)
        return good & (raw == np.floor(raw)) if raw.dtype.kind == "f" else good


def _refuse(bad: Any, what: str, first_row: int, where: Where) -> None:
    """VoteError at the first query and label of `bad` [queries, labels] that is true."""
    if bad.any():
        row, label = np.argwhere(bad)[0].tolist()
        raise VoteError(f"{where.at(first_row + row)}, label {label} has {what}")
