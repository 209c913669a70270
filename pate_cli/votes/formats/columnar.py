"""Parquet files, and Arrow IPC files and streams (Feather version 2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import pyarrow as pa
from pyarrow import parquet

from pate_cli.core.errors import VoteError
from pate_cli.votes.source import Copying, Source, readable
from pate_cli.votes.table import Batches, Table, concatenate, indexed, spooled

MOST_ROWS = 1 << 40
BUFFER, LEAST_BUFFER, BUFFERS = 1 << 20, 1 << 12, 1 << 26
"""How many bytes of a column are read ahead: the most, the least, and the most for all columns."""


def open_parts(sources: Sequence[Source], name: str, copying: Copying) -> Table:
    """Open files in place; copy IPC streams, which have no index, to temporary files."""
    return concatenate(indexed([_one(each, copying) for each in sources], copying.ids), name)


def _one(source: Source, copying: Copying) -> Table:
    with readable(source.name), source.open() as file:
        magic = file.read(6)
        file.seek(0)
        if magic.startswith(b"PAR1"):
            return _parquet(source, file)
        if magic != b"ARROW1":
            schema = pa.ipc.open_stream(file).schema
            return spooled([source], source.name, copying, _streamed, lambda: schema)
        schema = pa.ipc.open_file(file).schema
        reader = pa.ipc.open_file(file, options=_only([0]))  # One column tells the rows.
        chunks = tuple(reader.get_batch(at).num_rows for at in range(reader.num_record_batches))
    return Table(source.name, schema, chunks, partial(_read_arrow, source, schema.names))


def _parquet(source: Source, file: pa.NativeFile) -> Table:
    """Open a file; the metadata of columns are not read, because damaged ones crash pyarrow."""
    reader = _reader(file)
    about = reader.metadata
    chunks = tuple(about.row_group(group).num_rows for group in range(about.num_row_groups))
    if min(chunks, default=0) < 0 or sum(chunks) != about.num_rows or sum(chunks) > MOST_ROWS:
        raise VoteError(f"{source.name}: the footer of the file is damaged; write the file again")
    return Table(source.name, reader.schema_arrow, chunks, partial(_read_parquet, source))


def _reader(file: pa.NativeFile, columns: int = 1) -> parquet.ParquetFile:
    """Return a reader of a file; `columns` columns are read at once, each with its own buffer."""
    size = min(BUFFER, max(LEAST_BUFFER, BUFFERS // columns))
    return parquet.ParquetFile(
        file, page_checksum_verification=True, pre_buffer=False, buffer_size=size
    )


def _read_parquet(source: Source, chunk: int, columns: list[str], size: int) -> Batches:
    with source.open() as file:
        reader = _reader(file, len(columns))
        groups = list(range(chunk, reader.num_row_groups))
        # With threads of Arrow, a failed allocation would not be an error of this thread.
        for batch in reader.iter_batches(size, groups, columns, use_threads=False):
            for column in batch.columns:
                if "dictionary" in str(column.type):  # pyarrow does not check indices.
                    column.validate(full=True)
            yield batch


def _streamed(file: pa.NativeFile, _: str) -> Iterator[tuple[pa.RecordBatch, int]]:
    at = 0
    with pa.ipc.open_stream(file) as reader:
        for batch in reader:
            batch.validate(full=True)
            yield batch, file.tell() - at
            at = file.tell()


def _read_arrow(
    source: Source, names: list[str], chunk: int, columns: list[str], _: int
) -> Batches:
    with source.open() as file:
        reader = pa.ipc.open_file(file, options=_only([names.index(each) for each in columns]))
        for at in range(chunk, reader.num_record_batches):
            batch = reader.get_batch(at)
            batch.validate(full=True)  # Damaged offsets would crash the process later.
            yield batch.select(columns)


def _only(places: list[int]) -> pa.ipc.IpcReadOptions:
    return pa.ipc.IpcReadOptions(included_fields=places)
