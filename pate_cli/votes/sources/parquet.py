"""Parquet parts and Arrow tables, read by record batch with only the columns that are votes."""

from __future__ import annotations

import contextlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pate_cli.core.arrays import Ints
from pate_cli.core.errors import VoteError, shortened
from pate_cli.core.words import Layout
from pate_cli.votes.checks import Ids, Where
from pate_cli.votes.columns import Columns, find_columns, is_text
from pate_cli.votes.entries import from_columns, from_lists, ids_of, in_words, plain_ids, strays
from pate_cli.votes.ranges import Stretch, spans
from pate_cli.votes.reading import row_numbers
from pate_cli.votes.repeats import first_repeat
from pate_cli.votes.sources import pages
from pate_cli.votes.sources.footers import Chunk, entries_of
from pate_cli.votes.sources.formats import Part
from pate_cli.votes.sources.kept_open import KeptOpen, OpenFile, readable

_IDS_AT_ONCE = 1 << 18
MOST_ENTRIES = 1 << 24
"""A list has no more entries, where the footers tell: they say how many entries the lists of a row
group have together, before any is read. A page of a few bytes may stand for a list of 10^9.

What they cannot tell is one long list among many short ones, if all together have no more than as
many rows might; such a row is refused once it is read."""
_NOTHING = "nothing"
"""The family of a column without any vote, which goes with every other."""


class Piece(Protocol):
    """A Parquet file or a table."""

    @property
    def stretch(self) -> Stretch:
        """Its rows."""

    @property
    def schema(self) -> Any:
        """Its Arrow schema."""

    @property
    def portable(self) -> bool:
        """Whether it pickles as the name of a file."""

    def entries(self, column: str) -> int:
        """At least as many as all lists of a column have; an empty list may count as one."""

    def batches(
        self, size: int, columns: Sequence[str], start: int, stop: int
    ) -> Iterator[tuple[int, Any]]:
        """Yield (first row, record batch of at most `size` rows), rows counted within the piece.

        Rows start..stop-1 are among them; others may come before and after.
        """


@dataclass(frozen=True, eq=False)
class FilePiece:
    """A Parquet file by its name; `size` in bytes tells whether it is still the same."""

    part: Part
    stretch: Stretch
    size: int
    kept: KeptOpen = field(repr=False)

    @property
    def schema(self) -> Any:
        """See Piece."""
        return self.kept.file(self.part).schema

    @property
    def portable(self) -> bool:
        """Files are read by name."""
        return True

    def entries(self, column: str) -> int:
        """By the footer; see Piece."""
        with readable(self.part.name):
            return entries_of(self.kept.file(self.part).chunks, column)

    def batches(
        self, size: int, columns: Sequence[str], start: int, stop: int
    ) -> Iterator[tuple[int, Any]]:
        """Decode from the beginning of the row group that holds `start`; see Piece.

        Row groups with texts are read one by one, in as many rows at once as their texts allow.
        """
        groups = self.stretch.groups or ()
        opened = self.kept.file(self.part)
        if opened.shape != (self.size, groups):
            raise VoteError(f"{self.part.name}: has changed while it was read; start again")
        ends = list(accumulate(groups))
        first, last = bisect_right(ends, start), bisect_left(ends, stop) + 1
        row = ends[first] - groups[first]
        for together, rows in self._readings(opened, range(first, last), columns):
            reader = opened.reader()
            with readable(self.part.name):
                batches = reader.iter_batches(
                    batch_size=min(size, rows, stop - row),
                    row_groups=together,
                    columns=list(columns),
                )
            while True:
                with readable(self.part.name):
                    batch = next(batches, None)
                if batch is None:
                    break
                # What the caller does with it is not under this function's error net.
                yield row, batch
                row += batch.num_rows
        promised = ends[last - 1]
        if row != promised:
            raise VoteError(f"{self.part.name}: has {row} of the {promised} rows it promises")

    def _readings(
        self, opened: OpenFile, groups: range, columns: Sequence[str]
    ) -> Iterator[tuple[range, int]]:
        """Row groups that are read in one go, and in how many rows at once at most.

        VoteError before one whose pages are too large.
        """
        texts = any(_family(opened.schema.field(name).type).endswith("text") for name in columns)
        for group in groups:
            if texts or opened.footer.row_group(group).total_byte_size > pages.MOST_PAGES:
                chunks = [chunk for chunk in opened.chunks[group] if chunk.path[0] in columns]
                with readable(self.part.name):
                    small = pages.fit(opened.source, chunks)
                if not small:
                    raise VoteError(
                        f"{self.part.name}: row group {group} has pages of more than "
                        f"{pages.MOST_PAGES >> 20} MB; write it anew in smaller ones"
                    )
                if texts:
                    yield range(group, group + 1), self._rows_at_once(opened, group, chunks)
        if not texts:
            yield groups, self.stretch.rows

    def _rows_at_once(self, opened: OpenFile, group: int, chunks: Sequence[Chunk]) -> int:
        def longest(chunk: Chunk) -> int | None:
            """By its first row, with which the dictionary is decoded."""
            path = ".".join(chunk.path)
            batches = opened.reader([path]).iter_batches(1, row_groups=[group], columns=[path])
            column = next(batches).column(0)
            while not pa.types.is_dictionary(column.type):
                column = column.flatten()
            return pc.max(pc.binary_length(column.dictionary)).as_py()

        with readable(self.part.name):
            texts = [chunk for chunk in chunks if chunk.text]
            rows = (self.stretch.groups or ())[group]
            return pages.rows_at_once(opened.source, texts, rows, longest)


@dataclass(frozen=True, eq=False)
class TablePiece:
    """A table, cut as a file is cut, whatever its chunks; only a slice across chunks is copied."""

    table: Any = field(repr=False)
    stretch: Stretch

    @property
    def schema(self) -> Any:
        """See Piece."""
        return self.table.schema

    @property
    def portable(self) -> bool:
        """A copy carries the votes."""
        return False

    def entries(self, column: str) -> int:
        """None that are not in memory already; see Piece."""
        del column
        return 0

    def batches(
        self, size: int, columns: Sequence[str], start: int, stop: int
    ) -> Iterator[tuple[int, Any]]:
        """See Piece."""
        chosen = self.table.select(list(columns))
        for first in range(start, stop, size):
            row = first
            for batch in chosen.slice(row, min(size, stop - row)).combine_chunks().to_batches():
                yield row, batch
                row += batch.num_rows


@dataclass(frozen=True, eq=False)
class Parts:
    """Parquet files of one schema, read as if they were one; or a table."""

    where: Where
    columns: Columns
    pieces: tuple[Piece, ...] = field(repr=False)

    @property
    def rows(self) -> int:
        """Rows of all pieces."""
        return sum(piece.stretch.rows for piece in self.pieces)

    @property
    def ids_are_numbers(self) -> bool:
        """What the schema says of the query ids, which there are."""
        return _family(self.pieces[0].schema.field(self.columns.query).type) == "number"

    @property
    def portable(self) -> bool:
        """Whether all pieces pickle as names of files."""
        return all(piece.portable for piece in self.pieces)

    @property
    def stretches(self) -> tuple[Stretch, ...]:
        """The rows of each piece."""
        return tuple(piece.stretch for piece in self.pieces)

    def batches(
        self, size: int, columns: Sequence[str], start: int = 0, stop: int | None = None
    ) -> Iterator[tuple[int, Any]]:
        """Yield rows start..stop-1, all from `start` on without `stop`.

        As (number of the first row, record batch of 1 to `size` rows).
        """
        last = self.rows if stop is None else stop
        for piece, (_, begin, end) in zip(self.pieces, spans(self.stretches), strict=True):
            first, beyond = max(start, begin) - begin, min(last, end) - begin
            if first >= beyond:
                continue
            for row, batch in piece.batches(size, columns, first, beyond):
                skipped = max(first - row, 0)
                wanted = batch.slice(skipped, max(beyond - row - skipped, 0))
                if wanted.num_rows:
                    yield begin + row + skipped, wanted
                if row + batch.num_rows >= beyond:
                    break


def _refuse_empty(columns: Columns, name: str) -> None:
    """VoteError for a file without rows, but for long form, in which rows are votes."""
    if columns.layout is not Layout.LONG:
        raise VoteError(f"{name}: has no rows")


def open_parts(
    files: Sequence[Part],
    name: str,
    layout: Layout | None,
    stack: contextlib.ExitStack,
    label_names: Sequence[str] | None = None,
    *,
    id_column: str | None = None,
) -> Parts:
    """Read the schemas of all parts and check that they agree; `stack` closes the files kept open.

    Raises:
        VoteError: damaged parts, no rows, columns that are no votes, or parts that differ.
    """
    columns: Columns | None = None
    kinds: list[str] = []
    pieces = []
    kept = KeptOpen()
    stack.callback(kept.close)
    for part in files:
        opened = kept.file(part)
        size, groups = opened.shape
        pieces.append(FilePiece(part, Stretch(part.name, sum(groups), groups), size, kept))
        its_columns = find_columns(
            opened.schema, part.name, layout, label_names, id_column=id_column
        )
        its_kinds = [_family(opened.schema.field(column).type) for column in its_columns.needed]
        if columns is None:
            columns, kinds = its_columns, its_kinds
        elif len(its_columns.votes) != len(columns.votes):
            raise VoteError(
                f"{part.name}: has {len(its_columns.votes)} vote columns, "
                f"the first part has {len(columns.votes)}; parts must agree"
            )
        elif its_columns != columns or not _agree(kinds, its_kinds):
            raise VoteError(
                f"{part.name}: its columns differ in name, order or type from the first part's"
            )
    if columns is None:
        raise VoteError(f"{name}: has no rows")
    if not any(piece.stretch.rows for piece in pieces):
        _refuse_empty(columns, name)
    return Parts(Where(name), columns, tuple(pieces))


def table_parts(
    table: Any,
    name: str,
    layout: Layout | None,
    label_names: Sequence[str] | None = None,
    *,
    id_column: str | None = None,
) -> Parts:
    """Take a pyarrow.Table for a file of one part.

    Raises:
        VoteError: no rows, or columns that are no votes.
    """
    columns = find_columns(table.schema, name, layout, label_names, id_column=id_column)
    if table.num_rows == 0:
        _refuse_empty(columns, name)
    piece = TablePiece(table, Stretch(name, table.num_rows))
    return Parts(Where(name), columns, (piece,))


def _agree(kinds: Sequence[str], others: Sequence[str]) -> bool:
    pairs = zip(kinds, others, strict=True)
    return all(_NOTHING in pair or pair[0] == pair[1] for pair in pairs)


def _family(kind: Any) -> str:
    """Return what must agree between parts: widths of numbers and offsets need not.

    Nor need all be integers: some writers turn a column of integers into floats where a part lacks
    one vote, and one missing vote must not decide whether a folder can be read.
    """
    if pa.types.is_dictionary(kind):
        return _family(kind.value_type)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return "number"
    if is_text(kind):
        return "text"
    if pa.types.is_null(kind):
        return _NOTHING
    return f"list of {_family(kind.value_type)}"


@dataclass(frozen=True, eq=False)
class ParquetMatrix:
    """Class columns, teacher columns or one list column, as a matrix with a row per query.

    width: entries of the first row. ragged: lists may be of other lengths. names: of the labels, if
    these may be texts. placed: the place of an entry in a list says whose it is.
    """

    parts: Parts
    width: int
    ragged: bool
    names: tuple[str, ...] | None = None
    placed: bool = False

    @property
    def where(self) -> Where:
        """Where a row number points."""
        return self.parts.where

    @property
    def rows(self) -> int:
        """Number of queries."""
        return self.parts.rows

    @property
    def stretches(self) -> tuple[Stretch, ...]:
        """The rows of each part."""
        return self.parts.stretches

    @property
    def portable(self) -> bool:
        """Whether the parts are."""
        return self.parts.portable

    def blocks(
        self, size: int, start: int, stop: int, *, absent_limit: int | None
    ) -> Iterator[tuple[int, Ids, Ints]]:
        """Yield checked blocks; see Matrix."""
        where, columns = self.where, self.parts.columns
        for row, batch in self.parts.batches(size, columns.needed, start, stop):
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
                    self.names,
                    ragged=self.ragged,
                    placed=self.placed,
                )
            else:
                votes = [batch.column(column) for column in columns.votes]
                if columns.texts:
                    votes = [in_words(vote) for vote in votes]
                values = from_columns(votes, row, absent_limit, where, self.names)
            yield row, ids, values

    def stray_rows(self, size: int, stop: int) -> int:
        """How many of the first `stop` rows have a text that is no name, `size` at once. SECRET."""
        columns, names, found = self.parts.columns, self.names or (), 0
        for _, batch in self.parts.batches(size, columns.votes, 0, stop):
            stray = np.zeros(batch.num_rows, dtype=np.bool_)
            for column in batch.columns:
                if columns.is_list:
                    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy()
                    rows = np.repeat(np.arange(batch.num_rows), lengths)
                    stray[rows[strays(column.flatten(), names)]] = True
                else:
                    stray |= strays(in_words(column), names)
            found += int(np.count_nonzero(stray))
        return found


def open_matrix(
    parts: Parts,
    *,
    gaps_allowed: bool,
    names: tuple[str, ...] | None = None,
    placed: bool = False,
    teachers: int | None = None,
) -> ParquetMatrix:
    """Check the query ids and read the width of the first row, 0 only if `gaps_allowed`.

    `placed`: as in ParquetMatrix. `teachers`: entries that a list may have if that is more than
    the first has.

    Raises:
        VoteError: null or repeated query ids, an empty first row, or lists that are too long.
    """
    if parts.columns.has_ids:
        refuse_repeats(parts)
    width = len(parts.columns.votes)
    if parts.columns.is_list:
        refuse_long_lists(parts, MOST_ENTRIES)
        _, batch = next(parts.batches(1, parts.columns.votes, 0, 1))
        length = pc.list_value_length(batch.column(0))[0].as_py()
        if length is None:
            raise VoteError(f"{parts.where.at(0)} has a null instead of a list")
        width = int(length)
        refuse_long_lists(parts, max(width, teachers or 0))
    if width == 0 and not gaps_allowed:
        raise VoteError(f"{parts.where.at(0)} has no entries")
    return ParquetMatrix(parts, width, gaps_allowed and not placed, names, placed)


def refuse_long_lists(parts: Parts, most: int) -> None:
    """VoteError where the footers tell that a list has more than `most` entries, by far.

    A few too many are left to whoever reads the rows, and can name the one.
    """
    for piece in parts.pieces:
        spare = piece.stretch.rows * max(most, 1) + (0 if most >= MOST_ENTRIES else MOST_ENTRIES)
        if any(piece.entries(column) > spare for column in parts.columns.votes):
            raise VoteError(
                f"{piece.stretch.name}: has a list of more than {most} entries; a row has one for "
                "each class or teacher"
            )


def refuse_repeats(parts: Parts) -> None:
    """VoteError for a query id that an earlier row has."""
    query = parts.columns.query

    def ids() -> Iterator[Any]:
        for row, batch in parts.batches(_IDS_AT_ONCE, [query]):
            yield ids_of(batch.column(0), query, row, parts.where)

    row = first_repeat(ids, parts.where.name)
    if row is not None:
        raise VoteError(f"{parts.where.at(row)} repeats the {shortened(query)} of an earlier row")
