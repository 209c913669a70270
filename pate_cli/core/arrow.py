"""Convert between arrays of Arrow and numpy without importing pandas.

The conversions that pyarrow itself offers import pandas if pandas is installed. The import of
pandas takes longer than the import of numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pate_cli.core.errors import ParameterError

_MOST_BYTES: Final = 2**31 - 1  # Arrow stores offsets of texts in 32 bits.


def values_of(column: Any) -> NDArray[Any]:
    """Return an Arrow array of numbers or bools without nulls as a numpy array."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    kind = column.type
    if pa.types.is_boolean(kind):
        size = (column.offset + len(column) + 7) // 8
        packed = np.frombuffer(column.buffers()[1] or b"", np.uint8, count=size)
        bits = np.unpackbits(packed, bitorder="little")
        return bits[column.offset : column.offset + len(column)].view(np.bool_)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return np.from_dlpack(column)
    return np.asarray(column.to_numpy(zero_copy_only=False))


def filled(column: Any, value: int) -> NDArray[Any]:
    """Return an Arrow array of int32 as a numpy array, with a number in place of nulls."""
    return values_of(column.fill_null(column_of(np.array([value], dtype=np.int32))[0]))


def column_of(values: NDArray[Any], gaps: NDArray[np.bool_] | None = None) -> Any:
    """Return numbers as an Arrow array, with nulls where `gaps` is True."""
    valid = None if gaps is None else pa.py_buffer(np.packbits(~gaps, bitorder="little"))
    whole = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), values.size, [valid, whole])


def texts_of(texts: Sequence[str]) -> Any:
    """Return texts as an Arrow array."""
    raw = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, raw)], dtype=np.int64)
    if ends[-1] > _MOST_BYTES:
        raise ParameterError("a column of ids or names has over 2 GiB of text; shorten the texts")
    places = pa.py_buffer(ends.astype(np.int32))
    return pa.StringArray.from_buffers(len(raw), places, pa.py_buffer(b"".join(raw)))
