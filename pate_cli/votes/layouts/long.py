"""Long form: one row per vote, in any order, turned into histograms in two passes.

The first pass learns who the queries and teachers are and how large labels get; the second counts.
Memory: the histograms, one bit per (query, teacher), the ids, and a batch; of many classes, which
make sparse histograms, a number per vote.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pate_cli.core.arrays import DENSE_CLASSES, Counts, Histograms, Ints, SparseCounts, row_width
from pate_cli.core.arrow import compute
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import VoteError
from pate_cli.core.words import Layout
from pate_cli.votes.batches import VoteBatch
from pate_cli.votes.beside.query_list import QueryList
from pate_cli.votes.checks import (
    ABSENT,
    Ids,
    Where,
    first_bad,
    whole_labels,
    whole_numbers,
)
from pate_cli.votes.columns import LABEL, TEACHER, is_text
from pate_cli.votes.entries import (
    ids_of,
    in_words,
    plain_ids,
    refuse_nulls,
    texts_said,
    votes_of,
)
from pate_cli.votes.layouts.labels import LARGEST_LABEL_SEEN, classes_of
from pate_cli.votes.matching import Matching
from pate_cli.votes.ranges import Stretch
from pate_cli.votes.reading import Reading
from pate_cli.votes.sources.table import VoteTable
from pate_cli.votes.unnamed import NameTally, Said
from pate_cli.votes.vote_file import VoteFile

VOTES_AT_ONCE = 1 << 19
"""Rows of a batch."""


MOST_BYTES = 1 << 32
"""Of the histograms, or of who has voted on what, a bit each."""


@dataclass(frozen=True, eq=False, kw_only=True)
class LongLayout:
    """Histograms [queries, classes] that were counted on opening, in batches of `size`.

    counted_texts: which of the votes are no names, where they may be texts.
    """

    name: str
    ids: Ids
    counts: Histograms
    size: int
    counted_texts: NameTally | None = None

    @classmethod
    def file(cls, table: VoteTable, reading: Reading) -> VoteFile:
        """Votes of a table with a row for each, counted now."""
        name, reading = table.where.name, reading.heard(_said(table))
        votes = _counted(table, reading) if table.rows else _nobody(table, reading)
        classes = reading.classes or classes_of(votes.top, name)
        teachers = reading.teachers or votes.teachers
        return reading.file(
            name,
            Layout.LONG,
            queries=len(votes.counts),
            classes=classes,
            teachers=teachers,
            reader=cls(
                name=name,
                ids=votes.ids,
                counts=votes.counts,
                size=reading.size(reading.drawn(classes, teachers)),
                counted_texts=votes.counted_texts,
            ),
        )

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

    def tally(self, matching: Matching, stop: int, *, until_named: bool = False) -> NameTally:
        """Of all votes of the files, whichever queries they are on; see Reader."""
        del stop, until_named
        return self.counted_texts or NameTally(matching)


@dataclass(frozen=True, eq=False)
class _LongVotes:
    """Histograms [queries, classes] in order of the query ids, whoever voted and wherever.

    With a list of queries, in its order; where nobody voted on one, its histogram is empty. Without
    one, integer ids ascend and strings are ordered by code points: in the order of the rows, one
    missing vote could move a query, and with it which queries a limited run asks. A query nobody
    voted on is then not here: where votes may be missing, the set of ids depends on the votes.

    top: the largest label. teachers: the number of distinct teacher ids, or of those in groups.
    counted_texts: as in LongLayout.
    """

    ids: Ids
    counts: Histograms
    teachers: int
    top: int
    counted_texts: NameTally | None = None
    said: NDArray[np.signedinteger[Any]] | None = None
    weights: Ints | None = None


@dataclass
class _Distinct:
    """The distinct ids of one column so far, in order of first appearance until sorted."""

    ids: Any = None

    def learn(self, column: Any) -> None:
        """Add the ids not seen before."""
        distinct = compute().unique(column)
        if self.ids is None:
            self.ids = distinct
            return
        new = distinct.filter(compute().invert(compute().is_in(distinct, value_set=self.ids)))
        if len(new):
            self.ids = pa.concat_arrays([self.ids, new])

    def sort(self) -> None:
        """Order the ids by value: numbers, or strings by code points."""
        self.ids = self.ids.take(compute().array_sort_indices(self.ids))

    def places(self, column: Any) -> Ints:
        """Return each id's place among the known ones."""
        found = compute().index_in(column, value_set=self.ids)
        return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.int64)


def _said(table: VoteTable) -> Iterator[Said]:
    """Which texts are votes, where they are texts."""
    if table.columns.texts:
        for _, batch in table.batches(VOTES_AT_ONCE, [LABEL]):
            yield texts_said(in_words(batch.column(LABEL)))


def _nobody(table: VoteTable, reading: Reading) -> _LongVotes:
    """The votes where there are none: the neighbour of a file in which one teacher voted alone.

    VoteError unless all that is public is given: a vote must not decide whether a file is read.
    """
    classes, asked = reading.classes, reading.queries
    if classes is None or reading.teachers is None or asked is None:
        raise VoteError(f"{table.where.name}: has no rows")
    ids = asked.named_by(numbers=table.ids_are_numbers)
    tally = _Dense(len(ids), classes) if classes <= DENSE_CLASSES else _Sparse(len(ids), classes)
    none = np.zeros(0, dtype=np.int64)
    tally.add(none, none)
    return _LongVotes(ids, _fixed(tally.histograms()), teachers=0, top=0)


def _fixed(counts: Histograms) -> Histograms:
    """The same, for readers only."""
    for array in counts.entries if isinstance(counts, SparseCounts) else (counts,):
        array.flags.writeable = False
    return counts


def _counted(table: VoteTable, reading: Reading) -> _LongVotes:
    """Count the votes of a table that has some.

    Without `classes` there is one more than the largest label, which may be at most
    LARGEST_LABEL_SEEN. Without a list of queries those are counted that have a row, and without
    groups the teachers who have one, at one vote each. With `teachers` or label names a label may
    be null, -1, NaN or a text that is no name: a row without a vote. Its query and its teacher are
    known all the same.

    Raises:
        VoteError: nulls, labels out of range, a teacher voting twice on a query, more teacher ids
            than `teachers`, without `teachers` a query that lacks a teacher, a vote on a query
            that is not among those asked, or of a teacher in no group.
    """
    teachers, classes, asked, groups = (
        reading.teachers,
        reading.classes,
        reading.queries,
        reading.groups,
    )
    where, query_id = table.where, table.columns.query
    queries, voters = _Distinct(), _Distinct()
    label_column = _LabelColumn(
        reading.matching,
        missing_allowed=teachers is not None or reading.matching is not None,
        texts=table.columns.texts,
    )
    tally = None if reading.matching is None else NameTally(reading.matching)
    listed = False
    top = 0
    limit = LARGEST_LABEL_SEEN if classes is None else classes - 1
    for row, batch in table.batches(VOTES_AT_ONCE, table.columns.needed):
        ids = ids_of(batch.column(query_id), query_id, row, where)
        if asked is not None and not listed:
            named = asked.named_by(numbers=pa.types.is_integer(ids.type))
            queries.ids, listed = pa.array(named, type=ids.type), True
        if listed:
            _refuse_others(ids, queries.ids, row, where, _unasked(asked))
        else:
            queries.learn(ids)
        its_teachers = ids_of(batch.column(TEACHER), TEACHER, row, where)
        if groups is not None:
            if voters.ids is None:
                members = groups.named_by(numbers=pa.types.is_integer(its_teachers.type))
                voters.ids = pa.array(members, type=its_teachers.type)
            _refuse_others(its_teachers, voters.ids, row, where, _UNGROUPED)
        else:
            voters.learn(its_teachers)
        labels = label_column.labels(batch, row, where)
        if tally is not None and is_text(batch.column(LABEL).type):
            tally.add(*texts_said(batch.column(LABEL)))
        top = max(top, int(labels.max()))
        if top > limit:
            raise VoteError(
                f"{where.at(first_bad(labels > limit, row))} has a label outside 0..{limit}; "
                "labels count from 0: check `classes` and the file"
            )
    found = len(voters.ids)
    if teachers is not None and found > teachers:
        raise VoteError(f"{where.name}: has {found} teacher ids, more than `teachers` {teachers}")
    if not listed:
        queries.sort()
    width = top + 1 if classes is None else classes
    weights = np.array([1] * found if groups is None else groups.weights, dtype=np.int64)
    counts, rows, first_votes = _count(table, queries, voters, width, weights, label_column)
    if teachers is None and (rows != found).any():
        row = int(first_votes[rows != found].min())
        if row == table.rows:
            query = int(np.argmax(rows != found))
            raise VoteError(
                f"{where.name}: nobody voted on the query of row {query} of {_list(asked)}; "
                "if teachers may be missing, give `teachers` N"
            )
        raise VoteError(
            f"{where.at(row)} is the first vote of a query that not all {found} teachers voted "
            "on; if teachers may be missing, give `teachers` N"
        )
    return _LongVotes(
        plain_ids(queries.ids),
        _fixed(counts),
        found,
        top,
        tally,
    )


_UNGROUPED = "of a teacher that is in none of `groups`"


def _unasked(asked: QueryList | None) -> str:
    return f"on a query that is not in {_list(asked)}"


def _list(asked: QueryList | None) -> str:
    return "the list of queries" if asked is None else asked.noun


def _refuse_others(ids: Any, listed: Any, row: int, where: Where, what: str) -> None:
    """VoteError at the first vote on a query, or of a teacher, that is not listed."""
    known = compute().is_in(ids, value_set=listed).to_numpy(zero_copy_only=False)
    if not known.all():
        raise VoteError(f"{where.at(first_bad(~known, row))} is a vote {what}")


def _count(
    table: VoteTable,
    queries: _Distinct,
    voters: _Distinct,
    classes: int,
    weights: Ints,
    label_column: _LabelColumn,
) -> tuple[Histograms, Ints, Ints]:
    """Return the histograms, and how many rows each query has and the first of them."""
    where, query_id = table.where, table.columns.query
    rows, found = len(queries.ids), len(voters.ids)
    if max(rows * found // 8, rows * classes * 8 * (classes <= DENSE_CLASSES)) > MOST_BYTES:
        raise VoteError(
            f"{where.name}: {rows} queries, {found} teachers and {classes} classes would take more "
            f"than {MOST_BYTES >> 30} GB to count; store one row per query"
        )
    tally = _Dense(rows, classes) if classes <= DENSE_CLASSES else _Sparse(rows, classes)
    present = np.zeros(rows, dtype=np.int64)
    voted = np.zeros((rows * found + 7) // 8, dtype=np.uint8)
    first_votes = np.full(rows, table.rows, dtype=np.int64)
    for row, batch in table.batches(VOTES_AT_ONCE, table.columns.needed):
        query = queries.places(ids_of(batch.column(query_id), query_id, row, where))
        teacher = voters.places(ids_of(batch.column(TEACHER), TEACHER, row, where))
        _mark_votes(voted, query * found + teacher, row, where)
        np.minimum.at(first_votes, query, np.arange(row, row + len(query)))
        present += np.bincount(query, minlength=rows)
        labels = label_column.labels(batch, row, where)
        voted_on = labels != ABSENT
        tally.add((query * classes + labels)[voted_on], weights[teacher][voted_on])
    return tally.histograms(), present, first_votes


class _Dense:
    """A number for every query and class."""

    def __init__(self, rows: int, classes: int) -> None:
        self._counts: Counts = np.zeros((rows, classes), dtype=np.int64)

    def add(self, votes: Ints, weights: Ints) -> None:
        """Count votes by their place query · classes + label, and what each counts for."""
        np.add.at(self._counts.reshape(-1), votes, weights)

    def histograms(self) -> Histograms:
        """All that were counted."""
        return self._counts


class _Sparse:
    """The same for many classes: votes are kept and counted once all are there."""

    def __init__(self, rows: int, classes: int) -> None:
        self._rows, self._classes = rows, classes
        self._votes: list[tuple[Ints, Ints]] = []

    def add(self, votes: Ints, weights: Ints) -> None:
        """See _Dense."""
        self._votes.append((votes, weights))

    def histograms(self) -> Histograms:
        """See _Dense."""
        votes, weights = map(np.concatenate, zip(*self._votes, strict=True))
        places, inverse = np.unique(votes, return_inverse=True)
        counts = np.zeros(places.size, dtype=np.int64)
        np.add.at(counts, inverse, weights)
        rows, labels = np.divmod(places, self._classes)
        return SparseCounts.of_entries(rows, labels, counts, (self._rows, self._classes))


def _mark_votes(voted: NDArray[np.uint8], votes: Ints, row: int, where: Where) -> None:
    """Set the bit of every vote of a batch; a bit that was set is a teacher voting twice."""
    byte, bit = votes >> 3, np.left_shift(1, votes & 7).astype(np.uint8)
    _, first = np.unique(votes, return_index=True)
    twice = (voted[byte] & bit) != 0
    if len(first) < len(votes):
        repeated = np.ones(len(votes), dtype=np.bool_)
        repeated[first] = False
        twice |= repeated
    if twice.any():
        raise VoteError(
            f"{where.at(first_bad(twice, row))} is a second vote of the same teacher on the same "
            "query; keep one"
        )
    np.bitwise_or.at(voted, byte, bit)


@dataclass(frozen=True)
class _LabelColumn:
    """How the column of labels is read."""

    matching: Matching | None
    missing_allowed: bool
    texts: bool

    def labels(self, batch: Any, row: int, where: Where) -> Ints:
        """Classes, ABSENT for none."""
        column = in_words(batch.column(LABEL)) if self.texts else batch.column(LABEL)
        if not self.missing_allowed:
            refuse_nulls(column, LABEL, row, where)
        values, gaps = votes_of(column, self.matching)
        whole = whole_labels if self.missing_allowed else whole_numbers
        labels = whole(values[:, np.newaxis], row, where)[:, 0]
        if gaps is not None:
            labels[gaps] = ABSENT
        return labels
