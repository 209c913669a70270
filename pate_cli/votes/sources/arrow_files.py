"""Arrow IPC files and streams (Feather version 2 is the file), record batch by record batch."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from pate_cli.core.arrow import compute
from pate_cli.core.errors import VoteError
from pate_cli.votes.columns import is_list, is_text
from pate_cli.votes.entries import plain, plain_type
from pate_cli.votes.sources.arrow_guard import MAGIC, unpacked_sizes
from pate_cli.votes.sources.formats import Format, SourceFile, damaged

MOST_UNPACKED = 1 << 30
"""Bytes of a record batch once it is unpacked."""

LONG_TEXTS = (
    f"has more than {MOST_UNPACKED >> 20} MB in a few rows; keep the votes alone, and the names "
    "of classes short"
)

_MOST_EMPTY = 1 << 24


def tables(
    parts: Sequence[SourceFile], ids: Collection[str], passed: Callable[[int], None]
) -> Iterator[tuple[Any, Iterator[Any]]]:
    """Yield the schema and the record batches of each part; ids are as they are typed.

    `passed` is told how many bytes of the files were read, as in Copies.

    Raises:
        VoteError: a part is truncated or damaged.
    """
    del ids
    for part in parts:
        with _readable(part.name), pa.OSFile(part.path) as source, _opened(source) as reader:
            schema = _plain(reader.schema)
        _refuse_giant(part)
        yield schema, _batches(part, schema, passed)


def _batches(part: SourceFile, schema: Any, passed: Callable[[int], None]) -> Iterator[Any]:
    with contextlib.ExitStack() as stack:
        with _readable(part.name):
            source = stack.enter_context(pa.OSFile(part.path))
            reader = stack.enter_context(_opened(source))
            in_file = hasattr(reader, "num_record_batches")
            numbers = iter(range(reader.num_record_batches)) if in_file else iter(int, 1)
            place = 0
        while True:
            with _readable(part.name):
                number = next(numbers, None)
                if number is None:
                    return
                try:
                    batch = reader.get_batch(number) if in_file else reader.read_next_batch()
                except StopIteration:
                    return
                # Offsets and indices that point outside would be followed, not noticed.
                batch.validate(full=True)
            # Of what lies in views, `nbytes` is not known to every pyarrow.
            if batch.num_rows > max(_MOST_EMPTY, 8 * batch.get_total_buffer_size()):
                raise VoteError(
                    f"{part.name}: has more than {_MOST_EMPTY} rows without anything in them"
                )
            if sum(map(_spread, batch.columns)) > MOST_UNPACKED:
                raise VoteError(f"{part.name}: {LONG_TEXTS}")
            with _readable(part.name):
                columns = [plain(column) for column in batch.columns]
                batch = pa.RecordBatch.from_arrays(columns, schema=schema)
                place, before = source.tell(), place
            passed(max(place - before, 0))
            yield batch


def _refuse_giant(part: SourceFile) -> None:
    with _readable(part.name), pa.OSFile(part.path) as source:
        giant = any(size > MOST_UNPACKED for size in unpacked_sizes(source))
    if giant:
        raise VoteError(
            f"{part.name}: has a record batch of more than {MOST_UNPACKED >> 20} MB once it is "
            "unpacked; write it anew in smaller ones"
        )


def _spread(column: Any) -> int:
    """Bytes of what a column refers to, once each text and each list stands where it belongs."""
    kind = column.type
    if is_list(kind):
        views = pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind)
        entries = _sum_of(compute().list_value_length(column)) if views else 0
        # Lists that overlap are as many entries as they say.
        own = 8 * entries
        return own if own > MOST_UNPACKED else own + _spread(column.flatten())
    if pa.types.is_string_view(kind):
        return _sum_of(_lengths_of_views(column))
    if not (pa.types.is_dictionary(kind) and is_text(kind)):
        return 0
    texts = _spread(column.dictionary)
    if texts > MOST_UNPACKED:
        return texts
    lengths = compute().binary_length(plain(column.dictionary)).cast(pa.int64())
    return _sum_of(lengths.take(column.indices))


def _lengths_of_views(column: Any) -> Any:
    """Each view begins with the length of its text, in 16 bytes in all."""
    valid, views, *_ = column.buffers()
    places = np.frombuffer(views, dtype="<i4")[::4][column.offset : column.offset + len(column)]
    gone = None if valid is None else column.is_null().to_numpy(zero_copy_only=False)
    return pa.array(places.astype(np.int64), mask=gone)


def _sum_of(lengths: Any) -> int:
    return compute().sum(lengths.cast(pa.int64())).as_py() or 0


def _opened(source: Any) -> Any:
    start = source.read(len(MAGIC))
    source.seek(0)
    return pa.ipc.open_file(source) if start == MAGIC else pa.ipc.open_stream(source)


def _plain(schema: Any) -> Any:
    """The schema without dictionaries, which may differ from batch to batch, nor metadata."""
    return pa.schema([pa.field(field.name, plain_type(field.type)) for field in schema])


@contextlib.contextmanager
def _readable(name: str) -> Iterator[None]:
    """Turn pyarrow's errors into one line; their text is not passed on, it may quote data."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeError, MemoryError, ValueError) as error:
        raise damaged(name, Format.ARROW, error) from error
