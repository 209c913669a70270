"""Sparse histograms: two list columns, the classes with votes and how many each has.

What a row costs in memory follows from the number of teachers, which bounds how many classes can
have votes, not from the number of classes: there may be millions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from pate_cli.core.arrays import DENSE_CLASSES, Ints, SparseCounts
from pate_cli.core.arrow import compute
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import UsageError, VoteError
from pate_cli.core.words import Layout
from pate_cli.votes.batches import ReadFrom, VoteBatch, row_numbers
from pate_cli.votes.checks import (
    ABSENT,
    LARGEST,
    Ids,
    check_counts,
    check_labels,
    first_bad,
    whole_numbers,
)
from pate_cli.votes.columns import COUNT, LABEL
from pate_cli.votes.entries import ids_of, numbers, plain_ids
from pate_cli.votes.reading import Reading
from pate_cli.votes.sources import table_matrix
from pate_cli.votes.sources.table import VoteTable
from pate_cli.votes.vote_file import VoteFile


@dataclass(frozen=True, eq=False, kw_only=True)
class SparseLayout(ReadFrom[VoteTable]):
    """Rows are histograms by their votes; `teachers` and `missing_allowed` as in `check_counts`."""

    size: int
    width: int
    classes: int
    teachers: int
    missing_allowed: bool

    @classmethod
    def file(cls, table: VoteTable, reading: Reading) -> VoteFile:
        """Votes of a table of sparse histograms, the first of them checked."""
        name, classes = table.where.name, reading.classes
        reading.refuse_groups(name)
        if classes is None:
            raise UsageError(
                f"{name}: `layout` {Layout.SPARSE} needs `classes`, how many there are"
            )
        if table.columns.has_ids:
            table_matrix.refuse_repeats(table)
        most = min(classes, reading.teachers or classes, table_matrix.MOST_ENTRIES)
        table_matrix.refuse_long_lists(table, most)
        first_row = cls(
            source=table,
            size=1,
            width=1,
            classes=classes,
            teachers=reading.teachers or LARGEST,
            missing_allowed=True,
        )
        teachers = reading.teachers or first_row._total(0)
        width = classes if classes <= DENSE_CLASSES else max(teachers, 1)
        reader = replace(
            first_row,
            size=reading.size(width),
            width=width,
            teachers=teachers,
            missing_allowed=reading.teachers is not None,
        )
        next(reader.batches(0, 1))
        return reading.file(
            name,
            Layout.SPARSE,
            queries=table.rows,
            classes=classes,
            teachers=teachers,
            reader=reader,
        )

    def _total(self, row: int) -> int:
        """How many votes a row has."""
        _, batch = next(self.source.batches(1, self.source.columns.needed, row, row + 1))
        return int(self._histograms(batch, row).counts.sum())

    def batches(self, start: int, stop: int) -> Iterator[VoteBatch]:
        """See Reader."""
        where, columns = self.source.where, self.source.columns
        for row, batch in self.source.batches(self.size, columns.needed, start, stop):
            ids: Ids = row_numbers(row, row + batch.num_rows)
            if columns.has_ids:
                query = columns.query
                ids = plain_ids(ids_of(batch.column(query), query, row, where))
            histograms = self._histograms(batch, row)
            check_counts(
                histograms.counts,
                row,
                where,
                teachers=self.teachers,
                missing_allowed=self.missing_allowed,
            )
            few = self.classes <= DENSE_CLASSES
            yield VoteBatch(row, ids, histograms.dense() if few else histograms)

    def _histograms(self, batch: Any, row: int) -> SparseCounts:
        where = self.source.where
        labels, counts = (self._rectangle(batch.column(name), name, row) for name in (LABEL, COUNT))
        uneven = (labels != ABSENT).sum(axis=1) != (counts != ABSENT).sum(axis=1)
        if uneven.any():
            raise VoteError(
                f"{where.at(first_bad(uneven, row))} has lists {LABEL} and {COUNT} of different "
                "lengths"
            )
        if not counts.all():
            raise VoteError(
                f"{where.at(first_bad(counts == 0, row))} has a count of 0; list only the classes "
                "that have votes"
            )
        check_labels(labels, row, where, classes=self.classes)
        labels = np.where(labels == ABSENT, self.classes, labels)
        order = np.argsort(labels, axis=1, kind="stable")
        labels = np.take_along_axis(labels, order, axis=1)
        counts = np.take_along_axis(np.maximum(counts, 0), order, axis=1)
        twice = (labels[:, 1:] == labels[:, :-1]) & (labels[:, 1:] < self.classes)
        if twice.any():
            raise VoteError(f"{where.at(first_bad(twice, row))} lists a label twice; add its votes")
        entries = min(labels.shape[1], self.classes)  # what is beyond is padding
        return SparseCounts(labels[:, :entries], counts[:, :entries], self.classes)

    def _rectangle(self, column: Any, name: str, row: int) -> Ints:
        """A list column as a rectangle, ABSENT beyond a row's own entries, and nowhere else."""
        where = self.source.where
        if column.null_count:
            gone = column.is_null().to_numpy(zero_copy_only=False)
            raise VoteError(f"{where.at(first_bad(gone, row))} has a null instead of a list")
        lengths = compute().list_value_length(column).to_numpy(zero_copy_only=False)
        flat, gaps = numbers(column.flatten())
        if gaps is not None:
            at = np.searchsorted(np.cumsum(lengths), np.flatnonzero(gaps)[0], side="right")
            raise VoteError(f"{where.at(row + int(at))} has a null in its list of {name}")
        long = lengths > self.teachers
        if long.any():
            raise VoteError(
                f"{where.at(first_bad(long, row))} lists more classes than there are votes, "
                f"{self.teachers}"
            )
        filled = np.arange(max(int(lengths.max()), 1)) < lengths[:, np.newaxis]
        raw = np.zeros(filled.shape, dtype=flat.dtype)
        raw[filled] = flat
        if not (raw >= 0).all():
            raise VoteError(
                f"{where.at(first_bad(~(raw >= 0), row))} has a negative number or NaN in its list "
                f"of {name}"
            )
        values = whole_numbers(raw, row, where)
        values[~filled] = ABSENT
        return values
