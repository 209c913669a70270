"""Tables in files: how each format holds columns that have names.

To add a format, write how its columns are named and how a table is encoded, and add one line to
`TABLES`. NPY has no line, for it holds numbers without names.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable
from typing import IO, Any, Final, NamedTuple

from pate_cli.core.errors import UsageError
from pate_cli.core.words import LabelFormat

_LONGEST_LINE: Final = 1 << 16


class TableFormat(NamedTuple):
    """How files of one format hold a table.

    Attributes:
        names: returns the names of the columns of an open file, or raises anything at all.
        encode: writes a pyarrow.Table to a binary file.
    """

    names: Callable[[IO[bytes]], Iterable[str]]
    encode: Callable[[Any, IO[bytes]], None]


def _first_line(file: IO[bytes]) -> str:
    return file.readline(_LONGEST_LINE).decode()


def _csv_names(file: IO[bytes]) -> Iterable[str]:
    return next(csv.reader(io.StringIO(_first_line(file), newline="")))


def _csv(table: Any, file: IO[bytes]) -> None:
    from pyarrow import csv as arrow_csv

    arrow_csv.write_csv(table, file)


def _json_lines(table: Any, file: IO[bytes]) -> None:
    rows = table.to_pylist()
    file.write("".join(json.dumps(row, allow_nan=False) + "\n" for row in rows).encode())


def _parquet_names(file: IO[bytes]) -> Iterable[str]:
    from pyarrow import parquet

    names: list[str] = parquet.read_schema(file).names
    return names


def _parquet(table: Any, file: IO[bytes]) -> None:
    from pyarrow import parquet

    parquet.write_table(table, file, write_page_checksum=True)


def _arrow_names(file: IO[bytes]) -> Iterable[str]:
    from pyarrow import ipc

    names: list[str] = ipc.open_file(file).schema.names
    return names


def _arrow(table: Any, file: IO[bytes]) -> None:
    from pyarrow import ipc

    with ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


TABLES: Final[dict[LabelFormat, TableFormat]] = {
    LabelFormat.PARQUET: TableFormat(_parquet_names, _parquet),
    LabelFormat.ARROW: TableFormat(_arrow_names, _arrow),
    LabelFormat.CSV: TableFormat(_csv_names, _csv),
    LabelFormat.JSONL: TableFormat(lambda file: json.loads(_first_line(file)), _json_lines),
}
"""The formats that hold named columns."""


def column_names(file: IO[bytes], kind: LabelFormat) -> tuple[str, ...]:
    """Return the names of the columns of an open table; none of a file of another format."""
    try:
        return tuple(TABLES[kind].names(file))
    except Exception:  # whatever a library raises of a file of another kind
        return ()


def encoded_table(table: Any, kind: LabelFormat) -> bytes:
    """Return the content of a file of a pyarrow.Table.

    UsageError for a format that cannot hold named columns, as NPY.
    """
    if kind not in TABLES:
        *some, last = (f".{each}" for each in TABLES)
        formats = f"{', '.join(some)} or {last}"
        raise UsageError(f"a table with named columns cannot be {kind}; use {formats}")
    sink = io.BytesIO()
    TABLES[kind].encode(table, sink)
    return sink.getvalue()
