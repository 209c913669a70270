"""Arrays and tables as the bytes of a file of each format."""

import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

MARKS = {"csv": ",", "tsv": "\t", "semicolons": ";"}


def npy(array, save=np.save):
    """An array in NPY, or in NPZ where `save` is that of NPZ."""
    file = io.BytesIO()
    save(file, array)
    return file.getvalue()


def parquet(table, **how):
    """A table, or columns by name, in Parquet."""
    file = io.BytesIO()
    pq.write_table(table if isinstance(table, pa.Table) else pa.table(table), file, **how)
    return file.getvalue()


def arrow(table, new=pa.ipc.new_file, rows=None, compression=None):
    """A table as an Arrow file or stream, so many rows a batch."""
    file = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with new(file, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=rows)
    return file.getvalue()


def lines(rows):
    """Objects as JSON, one a line."""
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def table_in(table, kind, rows=None):
    """A table in a format by its name, so many rows a piece where the format has pieces."""
    if kind == "parquet":
        return parquet(table, row_group_size=rows)
    if kind in ("arrow", "stream"):
        return arrow(table, pa.ipc.new_file if kind == "arrow" else pa.ipc.new_stream, rows)
    if kind == "jsonl":
        return lines(table.to_pylist())
    if kind == "json":
        return json.dumps(table.to_pylist(), indent=2).encode()
    file = io.BytesIO()
    pcsv.write_csv(table, file, pcsv.WriteOptions(delimiter=MARKS[kind]))
    return file.getvalue()
