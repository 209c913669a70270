"""Arrow IPC files and streams (Feather version 2 is the file), record batch by record batch."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import pyarrow as pa

from pate_cli.core.arrow import compute
from pate_cli.core.errors import VoteError
from pate_cli.votes.columns import is_text, is_view
from pate_cli.votes.entries import decoded, without_views
from pate_cli.votes.sources.arrow_guard import MAGIC, unpacked_sizes
from pate_cli.votes.sources.formats import SourceFile

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

    `passed` is told how many bytes were read, as in Copies.

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
            if batch.num_rows > max(_MOST_EMPTY, 8 * batch.nbytes):
                raise VoteError(
                    f"{part.name}: has more than {_MOST_EMPTY} rows without anything in them"
                )
            if sum(map(_texts_of, batch.columns)) > MOST_UNPACKED:
                raise VoteError(f"{part.name}: {LONG_TEXTS}")
            with _readable(part.name):
                columns = [decoded(column) for column in batch.columns]
                batch = pa.RecordBatch.from_arrays(columns, schema=schema)
            passed(batch.nbytes)
            yield batch


def _refuse_giant(part: SourceFile) -> None:
    with _readable(part.name), pa.OSFile(part.path) as source:
        giant = any(size > MOST_UNPACKED for size in unpacked_sizes(source))
    if giant:
        raise VoteError(
            f"{part.name}: has a record batch of more than {MOST_UNPACKED >> 20} MB once it is "
            "unpacked; write it anew in smaller ones"
        )


def _texts_of(column: Any) -> int:
    """Bytes of the texts of a dictionary once each stands where it belongs; 0 of other columns."""
    if not (pa.types.is_dictionary(column.type) and is_text(column.type)):
        return 0
    lengths = compute().binary_length(without_views(column.dictionary)).cast(pa.int64())
    return compute().sum(lengths.take(column.indices)).as_py() or 0


def _opened(source: Any) -> Any:
    start = source.read(len(MAGIC))
    source.seek(0)
    return pa.ipc.open_file(source) if start == MAGIC else pa.ipc.open_stream(source)


def _plain(schema: Any) -> Any:
    """The schema without dictionaries, which may differ from batch to batch, nor metadata."""
    return pa.schema([pa.field(field.name, _value_type(field.type)) for field in schema])


def _value_type(kind: Any) -> Any:
    if not pa.types.is_dictionary(kind):
        return kind
    return pa.large_string() if is_view(kind.value_type) else kind.value_type


@contextlib.contextmanager
def _readable(name: str) -> Iterator[None]:
    """Turn pyarrow's errors into one line; their text is not passed on, it may quote data."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeError, MemoryError, ValueError) as error:
        raise VoteError(f"{name}: the Arrow file is truncated or damaged") from error
