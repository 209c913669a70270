"""Several labels a query, each yes or no: as pairs of a query and a label, or as sets of labels.

A pair is a row of two classes, no and yes, in which one teacher has one vote, as in any row. So
pairs are rows to whatever comes after; only where a file is cut do they stay together by query.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pate_cli.core.arrays import Counts, Ints
from pate_cli.core.errors import VoteError
from pate_cli.votes.checks import (
    ABSENT,
    LARGEST,
    Ids,
    Where,
    first_bad,
    histograms_of,
    wide_enough,
)
from pate_cli.votes.ranges import Stretch
from pate_cli.votes.reading import Extent, Matrix, ReadFrom, VoteBatch, row_numbers
from pate_cli.votes.sources.npy import NpyCube


class Answers(Extent, Protocol):
    """What teachers said of every label, query by query; rows of its files are queries."""

    @property
    def labels(self) -> int:
        """L."""

    @property
    def width(self) -> int:
        """Entries that one label of one query takes while it is read."""

    def blocks(self, size: int, start: int, stop: int) -> Iterator[tuple[int, Ids, Counts]]:
        """Yield queries start..stop-1 as (first query, ids, counts [queries, labels, 2])."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PairsReader(ReadFrom[Answers]):
    """Histograms (no, yes) of pairs, all labels of a query one after the other, at most `size`."""

    size: int

    @property
    def width(self) -> int:
        """See Reader."""
        return self.source.width

    @property
    def stretches(self) -> tuple[Stretch, ...]:
        """See Reader; their rows are pairs."""
        labels = self.source.labels
        return tuple(
            Stretch(
                stretch.name,
                stretch.rows * labels,
                stretch.groups and tuple(rows * labels for rows in stretch.groups),
            )
            for stretch in self.source.stretches
        )

    def batches(self, start: int, stop: int) -> Iterator[VoteBatch]:
        """See Reader; a query that a bound falls into is read whole and cut."""
        labels = self.source.labels
        queries = max(self.size // labels, 1)
        for query, ids, counts in self.source.blocks(queries, start // labels, -(-stop // labels)):
            first = query * labels
            pairs = counts.reshape(-1, 2)
            wanted = slice(max(start - first, 0), stop - first)
            kept = np.ascontiguousarray(pairs[wanted])
            yield VoteBatch(first + wanted.start, _each(ids, labels, wanted), kept)


def _each(ids: Ids, labels: int, wanted: slice) -> Ids:
    """The id of the query of every pair."""
    if isinstance(ids, np.ndarray):
        return np.repeat(ids, labels)[wanted]
    return tuple(query for query in ids for _ in range(labels))[wanted]


@dataclass(frozen=True, eq=False, kw_only=True)
class CountedYes(ReadFrom[Matrix]):
    """Counts of yes, [queries, labels]; the other teachers said no."""

    teachers: int

    width = 2

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
class CountedBoth(ReadFrom[NpyCube]):
    """Counts of no and yes, [queries, labels, 2]; missing_allowed as in `check_counts`."""

    teachers: int
    missing_allowed: bool

    width = 2

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
                    "another total than the first pair; if teachers may be missing, give "
                    "`teachers` N",
                    query,
                    where,
                )
            yield query, row_numbers(query, query + len(counts)), counts


@dataclass(frozen=True, eq=False, kw_only=True)
class Ballots(ReadFrom[NpyCube]):
    """Votes of every teacher, [queries, teachers, labels]: 1 for yes, 0 for no.

    missing_allowed: -1 and NaN are no votes. weights [teachers]: how many votes each teacher's
    counts for; None for one each.
    """

    missing_allowed: bool
    weights: Ints | None = None

    @property
    def labels(self) -> int:
        """See Answers."""
        return self.source.sides[1]

    @property
    def width(self) -> int:
        """See Answers."""
        return max(self.source.sides[0], 2)

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


@dataclass(frozen=True, eq=False, kw_only=True)
class SetsReader(ReadFrom[Ballots]):
    """Histograms of the sets of labels that teachers said yes to, over all 2^L of them."""

    size: int

    @property
    def width(self) -> int:
        """See Reader."""
        return max(self.source.width * self.source.labels, 1 << self.source.labels)

    def batches(self, start: int, stop: int) -> Iterator[VoteBatch]:
        """See Reader."""
        labels = self.source.labels
        for first, said in self.source.said(self.size, start, stop):
            gone = said == ABSENT
            torn = gone.any(axis=2) & ~gone.all(axis=2)
            if torn.any():
                row = first_bad(torn, first)
                raise VoteError(
                    f"{self.source.source.where.at(row)} has a teacher who votes on some labels "
                    "only, which is no set of labels; give `voting` binary"
                )
            sets = np.maximum(said, 0).astype(np.int64) @ (1 << np.arange(labels))
            sets[gone.all(axis=2)] = ABSENT
            ids = row_numbers(first, first + len(sets))
            yield VoteBatch(first, ids, histograms_of(sets, 1 << labels, self.source.weights))


def first_total(first: NDArray[Any], where: Where) -> int:
    """How many teachers voted on the first label of the first query, [1, labels, 2].

    Raises:
        VoteError: nobody, or no counts.
    """
    _refuse(~_whole(first).all(axis=2), "an entry that is no count of votes", 0, where)
    total = int(first[0, 0].sum(dtype=np.int64))
    if total == 0:
        raise VoteError(
            f"{where.at(0)}, label 0 has no votes at all; if teachers may be missing, give "
            "`teachers` N"
        )
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
