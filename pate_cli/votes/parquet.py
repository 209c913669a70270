"""Parquet parts read by record batch, with only the columns that are votes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from pate_cli.errors import VoteError
from pate_cli.votes.checks import first_bad, whole_numbers
from pate_cli.votes.columns import Plan, plan_columns
from pate_cli.votes.grid import ABSENT, Block, Ids, Where
from pate_cli.votes.ids import all_ids, decoded
from pate_cli.votes.source import Part
from pate_cli.words import Layout

_BUFFER = 1 << 20


@dataclass(frozen=True)
class Parts:
    """Parquet files of one schema, read as if they were one."""

    where: Where
    files: tuple[Part, ...]
    plan: Plan
    rows: int

    def batches(self, size: int, columns: Sequence[str]) -> Iterator[tuple[int, Any]]:
        """Yield (number of the first row, record batch of at most `size` rows)."""
        row = 0
        for part in self.files:
            with _opened(part) as file:
                source = file.iter_batches(batch_size=size, columns=list(columns))
                while (batch := _next(source, part.name)) is not None:
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


def _next(batches: Iterator[Any], name: str) -> Any:
    with _readable(name):
        return next(batches, None)


@contextlib.contextmanager
def _opened(part: Part) -> Iterator[Any]:
    """Open one part; what the caller does with it is not under this function's error net."""
    with contextlib.ExitStack() as stack:
        with _readable(part.name):
            if part.filesystem is None:
                source = stack.enter_context(pa.memory_map(part.path))
                file = pq.ParquetFile(source)
            else:
                remote: Any = part.filesystem
                source = stack.enter_context(remote.open_input_file(part.path))
                file = pq.ParquetFile(source, buffer_size=_BUFFER)
            stack.enter_context(file)
        yield file


def open_parts(files: Sequence[Part], name: str, layout: Layout | None) -> Parts:
    """Read the schemas of all parts and check that they agree.

    Raises:
        VoteError: damaged parts, no rows, columns that are no votes, or parts that differ.
    """
    plan: Plan | None = None
    kinds: list[Any] = []
    rows = 0
    for part in files:
        with _opened(part) as file, _readable(part.name):
            schema = file.schema_arrow
            rows += file.metadata.num_rows
        its_plan = plan_columns(schema, part.name, layout)
        its_kinds = [_family(schema.field(column).type) for column in its_plan.needed]
        if plan is None:
            plan, kinds = its_plan, its_kinds
        elif len(its_plan.votes) != len(plan.votes):
            raise VoteError(
                f"{part.name}: has {len(its_plan.votes)} vote columns, "
                f"the first part has {len(plan.votes)}; parts must agree"
            )
        elif its_plan != plan or its_kinds != kinds:
            raise VoteError(
                f"{part.name}: its columns differ in name, order or type from the first part's"
            )
    if plan is None or rows == 0:
        raise VoteError(f"{name}: has no rows")
    return Parts(Where(name), tuple(files), plan, rows)


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
class ParquetGrid:
    """Class columns, teacher columns or one list column, as a grid with a row per query."""

    parts: Parts
    columns: int
    known_ids: Any = field(repr=False)

    @property
    def where(self) -> Where:
        """Where a row number points."""
        return self.parts.where

    @property
    def rows(self) -> int:
        """Number of queries."""
        return self.parts.rows

    def blocks(self, size: int, stop: int, *, absent_limit: int | None) -> Iterator[Block]:
        """Yield checked blocks; see Grid."""
        if stop <= 0:
            return
        for row, batch in self.parts.batches(min(size, stop), self.parts.plan.votes):
            part = batch.slice(0, stop - row)
            yield Block(
                row,
                self._ids(row, part.num_rows),
                _matrix(part, self.parts.plan, row, self.columns, absent_limit, self.where),
            )
            if row + part.num_rows >= stop:
                return

    def _ids(self, row: int, rows: int) -> Ids:
        if self.known_ids is None:
            return np.arange(row, row + rows, dtype=np.int64)
        part = self.known_ids.slice(row, rows)
        if pa.types.is_integer(part.type):
            numbers: NDArray[np.int64] = part.to_numpy(zero_copy_only=False)
            return numbers
        return tuple(part.to_pylist())


def open_grid(parts: Parts, *, gaps_allowed: bool) -> ParquetGrid:
    """Read the query ids and the width of the first row, 0 only if `gaps_allowed`.

    Raises:
        VoteError: null or repeated query ids, or an empty first row.
    """
    known_ids = all_ids(parts) if parts.plan.has_ids else None
    columns = len(parts.plan.votes)
    if parts.plan.is_list:
        _, batch = next(parts.batches(1, parts.plan.votes))
        length = pc.list_value_length(batch.column(0))[0].as_py()
        if length is None:
            raise VoteError(f"{parts.where.at(0)} has a null instead of a list")
        columns = int(length)
    if columns == 0 and not gaps_allowed:
        raise VoteError(f"{parts.where.at(0)} has no entries")
    return ParquetGrid(parts, columns, known_ids)


def numbers(column: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return an Arrow array of numbers with its nulls as 0, and which entries were nulls."""
    column = decoded(column)
    if not column.null_count:
        return column.to_numpy(zero_copy_only=False), np.zeros(len(column), dtype=np.bool_)
    absent: NDArray[np.bool_] = column.is_null().to_numpy(zero_copy_only=False)
    return column.fill_null(0).to_numpy(zero_copy_only=False), absent


def _matrix(
    batch: Any, plan: Plan, row: int, columns: int, absent_limit: int | None, where: Where
) -> NDArray[np.int64]:
    if plan.is_list:
        raw, absent = _from_lists(batch.column(0), row, columns, absent_limit, where)
    else:
        pairs = [numbers(batch.column(name)) for name in plan.votes]
        raw = np.column_stack([values for values, _ in pairs])
        absent = np.column_stack([gaps for _, gaps in pairs])
    missing = bool(absent.any())
    if missing and absent_limit is None:
        raise VoteError(
            f"{where.at(first_bad(absent, row))} has a null; fill it in, or give --teachers N "
            "if the file holds labels and teachers may be missing"
        )
    values = whole_numbers(raw, row, where)
    if missing:
        values[absent] = ABSENT
    return values


def _from_lists(
    column: Any, row: int, columns: int, absent_limit: int | None, where: Where
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return a list column as a rectangle and which of its entries are not there."""
    if column.null_count:
        gone = column.is_null().to_numpy(zero_copy_only=False)
        raise VoteError(f"{where.at(first_bad(gone, row))} has a null instead of a list")
    lengths = pc.list_value_length(column).to_numpy(zero_copy_only=False)
    flat, gaps = numbers(column.flatten())
    unusual = lengths != columns
    if columns and not unusual.any():
        return flat.reshape(-1, columns), gaps.reshape(-1, columns)
    if absent_limit is None:
        raise VoteError(
            f"{where.at(first_bad(unusual, row))} is the first whose list is not as long as "
            "row 0's; give --teachers N if the file holds labels and teachers may be missing"
        )
    long = unusual & (lengths > absent_limit)
    if long.any():
        raise VoteError(
            f"{where.at(first_bad(long, row))} has more entries than --teachers {absent_limit}"
        )
    filled = np.arange(max(int(lengths.max()), 1)) < lengths[:, np.newaxis]
    raw = np.zeros(filled.shape, dtype=flat.dtype)
    raw[filled] = flat
    absent = ~filled
    absent[filled] = gaps
    return raw, absent
