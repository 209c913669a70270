"""Columns of numbers out, as Parquet, CSV or JSONL."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pate_cli.errors import UsageError
from pate_cli.words import LabelFormat

__all__ = ["encode_columns"]


def encode_columns(columns: Mapping[str, NDArray[Any]], table_format: LabelFormat) -> bytes:
    """A file with one row per entry; every column has the same length.

    Raises:
        UsageError: a format that cannot hold named columns.
    """
    if table_format is LabelFormat.JSONL:
        names, values = list(columns), [np.asarray(column).tolist() for column in columns.values()]
        rows = (dict(zip(names, row, strict=True)) for row in zip(*values, strict=True))
        return "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows).encode()
    if table_format is LabelFormat.NPY:
        raise UsageError("a table with named columns cannot be NPY; use .parquet, .csv or .jsonl")
    import pyarrow as pa
    from pyarrow import csv, parquet

    table = pa.table({name: pa.array(np.asarray(column)) for name, column in columns.items()})
    sink = io.BytesIO()
    if table_format is LabelFormat.CSV:
        csv.write_csv(table, sink)
    else:
        parquet.write_table(table, sink)
    return sink.getvalue()
