"""Parquet files that say of themselves what is not so."""

from __future__ import annotations

import pyarrow.parquet as pq

_NUMBER, _DATA_KIND, _SHARED_KIND = 0x15, 0x2C, 0x4C  # fields of a header, behind the one before


def lie(path, *, column=0, page=0, size=None, packed=None, values=None):
    """Have the first page of a column (or with `page` 1 the first of data) say something else.

    The header grows over what follows it, so that nothing else moves.
    """
    data = bytearray(path.read_bytes())
    chunk = pq.read_metadata(path).row_group(0).column(column)
    first = chunk.dictionary_page_offset if chunk.has_dictionary_page else chunk.data_page_offset
    end = first + chunk.total_compressed_size
    start = chunk.data_page_offset if page else first
    at, said = start, []
    for _ in range(3):
        assert data[at] == _NUMBER
        number, at = _read(data, at + 1)
        said.append(number)
    for place, number in ((1, size), (2, packed)):
        said[place] = said[place] if number is None else number
    header = b"".join(bytes([_NUMBER]) + _written(number) for number in said)
    if values is not None:
        assert data[at] in (_DATA_KIND, _SHARED_KIND)
        assert data[at + 1] == _NUMBER
        header += data[at : at + 2] + _written(values)
        _, at = _read(data, at + 2)
    data[start:end] = (header + data[at:end])[: end - start]
    path.write_bytes(data)


def belittle(path, *, least=1 << 16):
    """Have the footer say 1 byte wherever it says how many a column has once it is unpacked."""
    data = path.read_bytes()
    length = int.from_bytes(data[-8:-4], "little")
    body, footer = data[: -8 - length], data[-8 - length :]
    group = pq.read_metadata(path).row_group(0)
    for true in {group.column(at).total_uncompressed_size for at in range(group.num_columns)}:
        assert true >= least
        number = _written(true)
        assert number in footer
        footer = footer.replace(number, _written(1, len(number)))
    path.write_bytes(body + footer)


def _written(number, length=1):
    """A whole number from 0 as thrift writes it, in at least so many bytes."""
    number <<= 1
    found = []
    while number or len(found) < length:
        found.append(number & 127 | 128)
        number >>= 7
    found[-1] &= 127
    return bytes(found)


def _read(data, at):
    number = shift = 0
    while True:
        byte, at = data[at], at + 1
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return number >> 1, at
