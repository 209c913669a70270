"""Parquet parts and Arrow tables, read by record batch with only the columns that are votes."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from pate_cli.arrays import Ints
from pate_cli.errors import VoteError
from pate_cli.votes.checks import ABSENT, Ids, Where, first_bad, whole_numbers
from pate_cli.votes.columns import QUERY, Columns, find_columns
from pate_cli.votes.files import Part
from pate_cli.words import Layout

KEPT_OPEN = 16
"""So many parts of a folder stay open while it is read; a folder may have more parts than a process
may have open files."""

_BUFFER = 1 << 20
_IDS_AT_ONCE = 1 << 20
_LARGEST_ID = np.uint64(2**63 - 1)


@dataclass(frozen=True, eq=False)
class Parts:
    """Parquet files of one schema, read as if they were one; or a table.

    pieces: a function for each, from a batch size and names of columns to its record batches.
    """

    where: Where
    columns: Columns
    rows: int
    pieces: tuple[Callable[[int, Sequence[str]], Iterator[Any]], ...] = field(repr=False)

    def batches(self, size: int, columns: Sequence[str]) -> Iterator[tuple[int, Any]]:
        """Yield (number of the first row, record batch of at most `size` rows)."""
        row = 0
        for piece in self.pieces:
            for batch in piece(size, columns):
                if batch.num_rows:
                    yield row, batch
                    row += batch.num_rows
        if row != self.rows:
            raise VoteError(f"{self.where.name}: has {row} of the {self.rows} rows it promises")


@contextlib.contextmanager
def _readable(name: str) -> Iterator[None]:
    """Turn pyarrow's errors into one line; their text is not passed on, it may quote data."""
    try:
        yield
    except FileNotFoundError as error:
        raise VoteError(f"{name}: no such file or folder") from error
    except (pa.ArrowException, OSError, UnicodeError) as error:
        raise VoteError(f"{name}: the Parquet file is truncated or damaged") from error


def _opened(part: Part, stack: contextlib.ExitStack) -> Any:
    """Return the file behind a part, open until `stack` is closed."""
    with _readable(part.name):
        if part.filesystem is None:
            return stack.enter_context(pa.memory_map(part.path))
        return stack.enter_context(part.filesystem.open_input_file(part.path))


def _reader(part: Part, source: Any, footer: Any = None) -> Any:
    with _readable(part.name):
        buffer = 0 if part.filesystem is None else _BUFFER
        return pq.ParquetFile(source, metadata=footer, buffer_size=buffer)


def _file_batches(
    part: Part, source: Any, footer: Any, size: int, columns: Sequence[str]
) -> Iterator[Any]:
    """Read a part that was left open as `source`, or, where that is None, open it again."""
    with contextlib.ExitStack() as stack:
        if source is None:
            source = _opened(part, stack)
        elif source.closed:
            raise VoteError(f"{part.name}: is closed; read votes while they are open")
        # A reader of its own for every pass: two passes over one would share the batch size.
        reader = _reader(part, source, footer)
        with _readable(part.name):
            batches = reader.iter_batches(batch_size=size, columns=list(columns))
        while True:
            with _readable(part.name):
                batch = next(batches, None)
            if batch is None:
                return
            # What the caller does with it is not under this function's error net.
            yield batch


def _table_batches(table: Any, size: int, columns: Sequence[str]) -> Iterator[Any]:
    """Cut a table as a file is cut, whatever its chunks; only a slice across chunks is copied."""
    chosen = table.select(list(columns))
    for start in range(0, table.num_rows, size):
        yield from chosen.slice(start, size).combine_chunks().to_batches()


def open_parts(
    files: Sequence[Part], name: str, layout: Layout | None, stack: contextlib.ExitStack
) -> Parts:
    """Read the schemas of all parts and check that they agree; `stack` holds the files kept open.

    Raises:
        VoteError: damaged parts, no rows, columns that are no votes, or parts that differ.
    """
    columns: Columns | None = None
    kinds: list[str] = []
    rows = 0
    pieces = []
    for number, part in enumerate(files):
        with contextlib.ExitStack() as only_now:
            keep = number < KEPT_OPEN
            source = _opened(part, stack if keep else only_now)
            reader = _reader(part, source)
            with _readable(part.name):
                footer, schema = reader.metadata, reader.schema_arrow
        left = (source, footer) if keep else (None, None)
        pieces.append(functools.partial(_file_batches, part, *left))
        rows += footer.num_rows
        its_columns = find_columns(schema, part.name, layout)
        its_kinds = [_family(schema.field(column).type) for column in its_columns.needed]
        if columns is None:
            columns, kinds = its_columns, its_kinds
        elif len(its_columns.votes) != len(columns.votes):
            raise VoteError(
                f"{part.name}: has {len(its_columns.votes)} vote columns, "
                f"the first part has {len(columns.votes)}; parts must agree"
            )
        elif its_columns != columns or its_kinds != kinds:
            raise VoteError(
                f"{part.name}: its columns differ in name, order or type from the first part's"
            )
    if columns is None or rows == 0:
        raise VoteError(f"{name}: has no rows")
    return Parts(Where(name), columns, rows, tuple(pieces))


def table_parts(table: Any, name: str, layout: Layout | None) -> Parts:
    """Take a pyarrow.Table for a file of one part.

    Raises:
        VoteError: no rows, or columns that are no votes.
    """
    columns = find_columns(table.schema, name, layout)
    if table.num_rows == 0:
        raise VoteError(f"{name}: has no rows")
    return Parts(Where(name), columns, table.num_rows, (functools.partial(_table_batches, table),))


def _family(kind: Any) -> str:
    """Return what must agree between parts: widths of numbers and offsets need not.

    Nor need all be integers: some writers turn a column of integers into floats where a part lacks
    one vote, and one missing vote must not decide whether a folder can be read.
    """
    if pa.types.is_dictionary(kind):
        return _family(kind.value_type)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return "number"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "text"
    return f"list of {_family(kind.value_type)}"


@dataclass(frozen=True, eq=False)
class ParquetMatrix:
    """Class columns, teacher columns or one list column, as a matrix with a row per query."""

    parts: Parts
    width: int
    known_ids: Any = field(repr=False)

    @property
    def where(self) -> Where:
        """Where a row number points."""
        return self.parts.where

    @property
    def rows(self) -> int:
        """Number of queries."""
        return self.parts.rows

    def blocks(
        self, size: int, stop: int, *, absent_limit: int | None
    ) -> Iterator[tuple[int, Ids, Ints]]:
        """Yield checked blocks; see Matrix."""
        if stop <= 0:
            return
        for row, batch in self.parts.batches(min(size, stop), self.parts.columns.votes):
            part = batch.slice(0, stop - row)
            yield row, self._ids(row, part.num_rows), self._values(part, row, absent_limit)
            if row + part.num_rows >= stop:
                return

    def _ids(self, row: int, rows: int) -> Ids:
        if self.known_ids is None:
            return np.arange(row, row + rows, dtype=np.int64)
        return plain_ids(self.known_ids.slice(row, rows))

    def _values(self, batch: Any, row: int, absent_limit: int | None) -> Ints:
        where = self.where
        if self.parts.columns.is_list:
            raw, absent = _from_lists(batch.column(0), row, self.width, absent_limit, where)
        else:
            pairs = [numbers(batch.column(name)) for name in self.parts.columns.votes]
            raw = np.column_stack([values for values, _ in pairs])
            absent = np.column_stack([gaps for _, gaps in pairs])
        missing = bool(absent.any())
        if missing and absent_limit is None:
            raise VoteError(
                f"{where.at(first_bad(absent, row))} has a null; fill it in, or give `teachers` N "
                "if the file holds labels and teachers may be missing"
            )
        values = whole_numbers(raw, row, where)
        if missing:
            values[absent] = ABSENT
        return values


def open_matrix(parts: Parts, *, gaps_allowed: bool) -> ParquetMatrix:
    """Read the query ids and the width of the first row, 0 only if `gaps_allowed`.

    Raises:
        VoteError: null or repeated query ids, or an empty first row.
    """
    known_ids = _all_ids(parts) if parts.columns.has_ids else None
    width = len(parts.columns.votes)
    if parts.columns.is_list:
        _, batch = next(parts.batches(1, parts.columns.votes))
        length = pc.list_value_length(batch.column(0))[0].as_py()
        if length is None:
            raise VoteError(f"{parts.where.at(0)} has a null instead of a list")
        width = int(length)
    if width == 0 and not gaps_allowed:
        raise VoteError(f"{parts.where.at(0)} has no entries")
    return ParquetMatrix(parts, width, known_ids)


# Columns of numbers.


def _decoded(column: Any) -> Any:
    """Return an Arrow array without dictionary encoding."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def refuse_nulls(column: Any, name: str, first_row: int, where: Where) -> None:
    """Raise a VoteError at the first null of an Arrow column."""
    column = _decoded(column)
    if column.null_count:
        row = first_bad(column.is_null().to_numpy(zero_copy_only=False), first_row)
        raise VoteError(f"{where.at(row)} has no {name}")


def numbers(column: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return an Arrow array of numbers with its nulls as 0, and which entries were nulls."""
    column = _decoded(column)
    if not column.null_count:
        return column.to_numpy(zero_copy_only=False), np.zeros(len(column), dtype=np.bool_)
    absent: NDArray[np.bool_] = column.is_null().to_numpy(zero_copy_only=False)
    return column.fill_null(0).to_numpy(zero_copy_only=False), absent


def _from_lists(
    column: Any, row: int, width: int, absent_limit: int | None, where: Where
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return a list column as a rectangle and which of its entries are not there."""
    if column.null_count:
        gone = column.is_null().to_numpy(zero_copy_only=False)
        raise VoteError(f"{where.at(first_bad(gone, row))} has a null instead of a list")
    lengths = pc.list_value_length(column).to_numpy(zero_copy_only=False)
    flat, gaps = numbers(column.flatten())
    unusual = lengths != width
    if width and not unusual.any():
        return flat.reshape(-1, width), gaps.reshape(-1, width)
    if absent_limit is None:
        raise VoteError(
            f"{where.at(first_bad(unusual, row))} is the first whose list is not as long as "
            "row 0's; give `teachers` N if the file holds labels and teachers may be missing"
        )
    long = unusual & (lengths > absent_limit)
    if long.any():
        raise VoteError(
            f"{where.at(first_bad(long, row))} has more entries than `teachers` {absent_limit}"
        )
    filled = np.arange(max(int(lengths.max()), 1)) < lengths[:, np.newaxis]
    raw = np.zeros(filled.shape, dtype=flat.dtype)
    raw[filled] = flat
    absent = ~filled
    absent[filled] = gaps
    return raw, absent


# Ids: present, of one type, and those of queries unique where a row is a query.


def ids_of(column: Any, name: str, row: int, where: Where) -> Any:
    """Return the ids of an Arrow column as int64 or large_string, the same type in every part.

    Raises:
        VoteError: a null, a number above 2^63 - 1, or bytes that are no text.
    """
    refuse_nulls(column, name, row, where)
    column = _decoded(column)
    if pa.types.is_integer(column.type):
        if column.type == pa.uint64():
            large = column.to_numpy(zero_copy_only=False) > _LARGEST_ID
            if large.any():
                raise VoteError(f"{where.at(first_bad(large, row))} has an id above 2^63 - 1")
        return column.cast(pa.int64())
    try:
        column.validate(full=True)
    except pa.ArrowInvalid as error:
        raw = column.cast(pa.large_binary()).to_pylist()
        at = next((i for i, text in enumerate(raw) if not _is_text(text)), 0)
        raise VoteError(f"{where.at(row + at)} has an id that is not UTF-8 text") from error
    return column.cast(pa.large_string())


def _is_text(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def plain_ids(ids: Any) -> Ids:
    """Return what `ids_of` gives as a batch of votes carries it."""
    if pa.types.is_integer(ids.type):
        whole: Ints = ids.to_numpy(zero_copy_only=False)
        return whole
    return tuple(ids.to_pylist())


def _all_ids(parts: Parts) -> Any:
    """Return every query id after checking that none repeats.

    They are kept in memory, 8 bytes or a short string per query: a repeat may be anywhere.
    """
    pieces = [
        ids_of(batch.column(0), QUERY, row, parts.where)
        for row, batch in parts.batches(_IDS_AT_ONCE, [QUERY])
    ]
    ids = pa.chunked_array(pieces).combine_chunks()
    if isinstance(ids, pa.ChunkedArray):  # older pyarrow returns one chunk, still chunked
        ids = ids.chunk(0)
    if pa.types.is_integer(ids.type):
        whole = ids.to_numpy()
        if (whole[1:] > whole[:-1]).all():  # the usual case needs no table of what was seen
            return ids
    if pc.count_distinct(ids).as_py() != len(ids):
        raise VoteError(
            f"{parts.where.at(_first_repeat(ids))} repeats the {QUERY} of an earlier row"
        )
    return ids


def _first_repeat(ids: Any) -> int:
    codes = ids.dictionary_encode().indices.to_numpy()
    _, first = np.unique(codes, return_index=True)
    seen_before = np.ones(len(codes), dtype=np.bool_)
    seen_before[first] = False
    return int(np.argmax(seen_before))
