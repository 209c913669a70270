"""Plain tables that results are shown and saved as: columns by name, in memory and as a file."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import IO, Any, Final

import numpy as np
from numpy.typing import NDArray

from pate_cli.core.errors import UsageError
from pate_cli.core.words import LabelFormat

_LONGEST_LINE: Final = 1 << 16


def row_columns(rows: Sequence[Any]) -> dict[str, NDArray[Any]]:
    """Return the columns of dataclass instances of one type; a missing number is NaN."""
    names = [field.name for field in fields(rows[0])] if rows else []
    values = {name: [getattr(row, name) for row in rows] for name in names}
    return {
        name: np.array([np.nan if value is None else value for value in column])
        for name, column in values.items()
    }


def arrow_table(columns: Mapping[str, NDArray[Any]]) -> Any:
    """Return columns of one length as a pyarrow.Table, with null for NaN."""
    import pyarrow as pa

    return pa.table(
        {name: pa.array(np.asarray(c), from_pandas=True) for name, c in columns.items()}
    )


def column_names(file: IO[bytes], kind: LabelFormat) -> tuple[str, ...]:
    """Return the names of the columns of an open table; none of a file of another format."""
    try:
        if kind is LabelFormat.CSV:
            line = file.readline(_LONGEST_LINE).decode()
            return tuple(next(csv.reader(io.StringIO(line, newline=""))))
        if kind is LabelFormat.JSONL:
            return tuple(json.loads(file.readline(_LONGEST_LINE)))
        from pyarrow import ipc, parquet

        if kind is LabelFormat.PARQUET:
            return tuple(parquet.read_schema(file).names)
        return tuple(ipc.open_file(file).schema.names)
    except Exception:  # whatever a library raises of a file of another kind
        return ()


def encode_columns(columns: Mapping[str, NDArray[Any]], table_format: LabelFormat) -> bytes:
    """Return the content of a file with one row per entry of the columns.

    Args:
        columns: by name, all of one length; a NaN is missing.
        table_format: any that holds named columns, so not NPY.

    Raises:
        UsageError: a format that cannot hold named columns.
    """
    table = arrow_table(columns)
    if table_format is LabelFormat.JSONL:
        rows = table.to_pylist()
        return "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows).encode()
    from pyarrow import csv as arrow_csv
    from pyarrow import ipc, parquet

    sink = io.BytesIO()
    if table_format is LabelFormat.CSV:
        arrow_csv.write_csv(table, sink)
    elif table_format is LabelFormat.ARROW:
        with ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
    elif table_format is LabelFormat.PARQUET:
        parquet.write_table(table, sink, write_page_checksum=True)
    else:
        raise UsageError(
            f"a table with named columns cannot be {table_format}; use .parquet, .arrow, .csv or"
            " .jsonl"
        )
    return sink.getvalue()
