"""A table with a row per query and an entry per class or teacher, as a matrix."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pate_cli.core.arrays import Ints
from pate_cli.core.arrow import compute
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import VoteError, shortened
from pate_cli.votes.batches import row_numbers
from pate_cli.votes.checks import Ids, Where
from pate_cli.votes.columns import Columns
from pate_cli.votes.entries import from_columns, from_lists, ids_of, in_words, plain_ids, texts_said
from pate_cli.votes.matching import Matching
from pate_cli.votes.ranges import Stretch
from pate_cli.votes.repeats import first_repeat
from pate_cli.votes.sources.table import VoteTable
from pate_cli.votes.unnamed import Said

_IDS_AT_ONCE = 1 << 18
MOST_ENTRIES = 1 << 24
"""A list has no more entries, where the footers tell: they say how many entries the lists of a row
group have together, before any is read. A page of a few bytes may stand for a list of 10^9.

What they cannot tell is one long list among many short ones, if all together have no more than as
many rows might; such a row is refused once it is read."""


@dataclass(frozen=True, eq=False)
class TableMatrix:
    """Class columns, teacher columns or one list column, as a matrix with a row per query.

    width: entries of the first row. ragged: lists may be of other lengths. matching: what texts
    are votes for, if they may be texts. placed: the place of an entry in a list says whose it is.
    """

    table: VoteTable
    width: int
    ragged: bool
    matching: Matching | None = None
    placed: bool = False

    @property
    def where(self) -> Where:
        """Where a row number points."""
        return self.table.where

    @property
    def rows(self) -> int:
        """Number of queries."""
        return self.table.rows

    @property
    def columns(self) -> Columns:
        """What its columns say."""
        return self.table.columns

    @property
    def texts(self) -> bool:
        """Whether its votes are names of classes."""
        return self.columns.texts

    @property
    def stretches(self) -> tuple[Stretch, ...]:
        """The rows of each part."""
        return self.table.stretches

    @property
    def portable(self) -> bool:
        """Whether the parts are."""
        return self.table.portable

    def blocks(
        self, size: int, start: int, stop: int, *, absent_limit: int | None
    ) -> Iterator[tuple[int, Ids, Ints]]:
        """Yield checked blocks; see Matrix."""
        where, columns = self.where, self.table.columns
        for row, batch in self.table.batches(size, columns.needed, start, stop):
            ids: Ids
            if columns.has_ids:
                ids = plain_ids(ids_of(batch.column(columns.query), columns.query, row, where))
            else:
                ids = row_numbers(row, row + batch.num_rows)
            if columns.is_list:
                (column,) = columns.votes
                values = from_lists(
                    batch.column(column),
                    row,
                    self.width,
                    absent_limit,
                    where,
                    self.matching,
                    ragged=self.ragged,
                    placed=self.placed,
                )
            else:
                votes = [batch.column(column) for column in columns.votes]
                if columns.texts:
                    votes = [in_words(vote) for vote in votes]
                values = from_columns(votes, row, absent_limit, where, self.matching)
            yield row, ids, values

    def texts_said(self, size: int, stop: int) -> Iterator[Said]:
        """See Matrix; where votes are texts."""
        columns = self.table.columns
        for _, batch in self.table.batches(size, columns.votes, 0, stop):
            for column in batch.columns:
                yield texts_said(column.flatten() if columns.is_list else in_words(column))


def open_matrix(
    table: VoteTable,
    *,
    gaps_allowed: bool,
    matching: Matching | None = None,
    placed: bool = False,
    teachers: int | None = None,
) -> TableMatrix:
    """Check the query ids and read the width of the first row, 0 only if `gaps_allowed`.

    `placed`: as in TableMatrix. `teachers`: entries that a list may have if that is more than
    the first has.

    Raises:
        VoteError: null or repeated query ids, an empty first row, or lists that are too long.
    """
    if table.columns.has_ids:
        refuse_repeats(table)
    width = len(table.columns.votes)
    if table.columns.is_list:
        refuse_long_lists(table, MOST_ENTRIES)
        _, batch = next(table.batches(1, table.columns.votes, 0, 1))
        length = compute().list_value_length(batch.column(0))[0].as_py()
        if length is None:
            raise VoteError(f"{table.where.at(0)} has a null instead of a list")
        width = int(length)
        refuse_long_lists(table, max(width, teachers or 0))
    if width == 0 and not gaps_allowed:
        raise VoteError(f"{table.where.at(0)} has no entries")
    return TableMatrix(table, width, gaps_allowed and not placed, matching, placed)


def refuse_long_lists(table: VoteTable, most: int) -> None:
    """VoteError where the footers tell that a list has more than `most` entries, by far.

    A few too many are left to whoever reads the rows, and can name the one.
    """
    for piece in table.pieces:
        spare = piece.stretch.rows * max(most, 1) + (0 if most >= MOST_ENTRIES else MOST_ENTRIES)
        if any(piece.entries(column) > spare for column in table.columns.votes):
            raise VoteError(
                f"{piece.stretch.name}: has a list of more than {most} entries; a row has one for "
                "each class or teacher"
            )


def refuse_repeats(table: VoteTable) -> None:
    """VoteError for a query id that an earlier row has."""
    query = table.columns.query

    def ids() -> Iterator[Any]:
        for row, batch in table.batches(_IDS_AT_ONCE, [query]):
            yield ids_of(batch.column(0), query, row, table.where)

    row = first_repeat(ids, table.where.name)
    if row is not None:
        raise VoteError(f"{table.where.at(row)} repeats the {shortened(query)} of an earlier row")
