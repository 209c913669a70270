"""The index of a data frame, which pandas notes in the schema of what it writes: the query ids."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa

from pate_cli.core.errors import VoteError, quoted
from pate_cli.votes.table import Batches, Table

_UNNAMED = re.compile(r"__index_level_\d+__")


def indexed(tables: Sequence[Table], ids: tuple[str, ...]) -> list[Table]:
    """Return tables with the index that pandas noted in their schemas as their query ids.

    An index without a name that only counts rows from 0 is none. One that has a name must be called
    as a column of ids is, the first of which is that of queries.
    """
    indices = [_index(table, ids) for table in tables]
    if any(index is not None for index in indices):
        indices = [range(t.rows) if i is None else i for t, i in zip(tables, indices, strict=True)]
    return [_with_ids(t, ids[0], i) for t, i in zip(tables, indices, strict=True)]


def _index(table: Table, ids: tuple[str, ...]) -> str | range | None:
    """Return the column that is the index, or the range that it counts; None without one."""
    about = json.loads((table.schema.metadata or {}).get(b"pandas", b"{}"))
    for level in about.get("index_columns", []):
        name = level["name"] if isinstance(level, dict) else level
        if name is not None and name not in ids and not _UNNAMED.fullmatch(str(name)):
            fix = f"give `id_column` {quoted(name)} if these are queries, or reset_index(drop=True)"
            raise VoteError(f"{table.name}: its index is named {quoted(name)}; {fix}")
        if isinstance(level, dict):
            index = range(level["start"], level["stop"], level["step"])
            counts = index == range(table.rows) and name is None
            return None if counts or len(index) != table.rows else index
        if name in table.schema.names and name not in ids:
            return str(name)
    return None


def _with_ids(table: Table, query: str, index: str | range | None) -> Table:
    """Return a table with an index as its first column, of query ids, and without pandas' notes."""
    columns = [(each.name, each.type) for each in table.schema if each.name != index]
    read = table.read
    if index is not None and query not in table.schema.names:
        kind = pa.int64() if isinstance(index, range) else table.schema.field(index).type
        columns.insert(0, (query, kind))
        read = partial(_read_indexed, table, query, index)
    return replace(table, schema=pa.schema(columns), read=read)


def _read_indexed(
    table: Table, query: str, index: str | range, chunk: int, columns: list[str], size: int
) -> Batches:
    """Return rows with the index as a column of the given name."""
    row = sum(table.chunks[:chunk])
    stored = [column for column in columns if column != query]
    stored += [index] if isinstance(index, str) else table.schema.names[: not stored]
    with contextlib.closing(table.read(chunk, stored, size)) as batches:
        for batch in batches:
            if isinstance(index, str):
                ids = batch.column(index)
            else:
                ids = pa.array(index[row : row + batch.num_rows], pa.int64())
            yield batch.append_column(query, ids).select(columns)
            row += batch.num_rows
