"""How large the record batches of an Arrow file grow, by what they say before they are unpacked.

Whoever reads a compressed batch takes as much memory as each of its buffers asks for
[apache/arrow, format/Message.fbs; tables as FlatBuffers lays them out].
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

# The numbers of fields: of a message, a batch of a dictionary, and a record batch.
_KIND, _HEADER, _DATA, _BUFFERS, _COMPRESSION = 1, 2, 1, 2, 3
_OF_DICTIONARY, _OF_RECORDS = 2, 3


def unpacked_sizes(source: Any) -> Iterator[int]:
    """Bytes that the buffers of each batch take once they are unpacked, dictionaries among them.

    source: an open pyarrow.NativeFile that stands before the first message.

    Raises:
        pa.ArrowInvalid: a message that is damaged.
    """
    messages = pa.MessageReader.open_stream(source)
    while True:
        try:
            message = messages.read_next_message()
        except StopIteration:
            return
        try:
            yield _unpacked(memoryview(message.metadata), message.body)
        except (struct.error, IndexError) as error:
            raise pa.ArrowInvalid("a message is damaged") from error


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
