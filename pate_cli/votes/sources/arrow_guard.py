"""How large the record batches of an Arrow file grow, by what they say before they are unpacked.

Whoever reads a compressed batch takes as much memory as each of its buffers asks for
[apache/arrow, format/Message.fbs; tables as FlatBuffers lays them out].
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

# The numbers of fields: of a message, a batch of a dictionary, and a record batch.
_KIND, _HEADER, _DATA, _BUFFERS, _COMPRESSION = 1, 2, 1, 2, 3
_OF_DICTIONARY, _OF_RECORDS = 2, 3
# The same of a footer; and bytes of a block that it lists, and of what is behind it.
_DICTIONARIES, _RECORDS = 2, 3
_BLOCK, _FOOT = 24, 10

MAGIC = b"ARROW1"
"""How a file begins, and a stream does not."""


def unpacked_sizes(source: Any) -> Iterator[int]:
    """Bytes that the buffers of each batch take once they are unpacked, dictionaries among them.

    source: an open pyarrow.NativeFile at its start: a stream of messages, or a file, whose footer
    says where they are.

    Raises:
        pa.ArrowInvalid: a message or the footer is damaged.
    """
    start = source.read(len(MAGIC))
    source.seek(0)
    try:
        for message in _listed(source) if start == MAGIC else _in_order(source):
            yield _unpacked(memoryview(message.metadata), message.body)
    except (struct.error, IndexError) as error:
        raise pa.ArrowInvalid("a message is damaged") from error


def _in_order(source: Any) -> Iterator[Any]:
    """The messages of a stream."""
    messages = pa.MessageReader.open_stream(source)
    with contextlib.suppress(StopIteration):
        while True:
            yield messages.read_next_message()


def _listed(source: Any) -> Iterator[Any]:
    """The messages with batches of a file, wherever its footer says that they are."""
    size = source.size()
    source.seek(max(size - _FOOT, 0))
    (length,) = struct.unpack_from("<I", source.read(4))
    if length > size - _FOOT:
        raise pa.ArrowInvalid("the footer is damaged")
    source.seek(size - _FOOT - length)
    footer = memoryview(source.read(length))
    root = _at(footer, 0)
    for field in (_DICTIONARIES, _RECORDS):
        listed = _field(footer, root, field)
        if listed is None:
            continue
        first = _at(footer, listed)
        (count,) = struct.unpack_from("<I", footer, first)
        for number in range(count):
            (place,) = struct.unpack_from("<q", footer, first + 4 + _BLOCK * number)
            if not 0 <= place < size:
                raise pa.ArrowInvalid("the footer is damaged")
            source.seek(place)
            yield pa.ipc.read_message(source)


def _unpacked(metadata: memoryview, body: Any) -> int:
    root = _at(metadata, 0)
    kind, header = _field(metadata, root, _KIND), _field(metadata, root, _HEADER)
    if kind is None or header is None or metadata[kind] not in (_OF_DICTIONARY, _OF_RECORDS):
        return 0
    batch: int | None = _at(metadata, header)
    if metadata[kind] == _OF_DICTIONARY:
        data = _field(metadata, batch or 0, _DATA)
        batch = None if data is None else _at(metadata, data)
    if batch is None or _field(metadata, batch, _COMPRESSION) is None:
        return 0
    listed = _field(metadata, batch, _BUFFERS)
    if listed is None or body is None:
        return 0
    first = _at(metadata, listed)
    (count,) = struct.unpack_from("<I", metadata, first)
    packed = memoryview(body)
    total = 0
    for number in range(count):
        start, length = struct.unpack_from("<qq", metadata, first + 4 + 16 * number)
        if length >= 8:
            (size,) = struct.unpack_from("<q", packed, start)
            total += max(size, 0)
    return total


def _at(data: memoryview, place: int) -> int:
    """Where the offset at a place leads."""
    (offset,) = struct.unpack_from("<I", data, place)
    return place + int(offset)


def _field(data: memoryview, table: int, number: int) -> int | None:
    """Where a field of a table is; None where it is left out."""
    (back,) = struct.unpack_from("<i", data, table)
    fields = table - back
    (size,) = struct.unpack_from("<H", data, fields)
    if 4 + 2 * number >= size:
        return None
    (offset,) = struct.unpack_from("<H", data, fields + 4 + 2 * number)
    return table + int(offset) if offset else None
