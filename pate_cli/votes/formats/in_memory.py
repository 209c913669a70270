"""Votes in memory: arrays, lists of rows, Arrow tables, and data frames of pandas or polars.

The index of a pandas data frame is the query ids, and None, NaN or pandas.NA is a missing entry. A
pandas data frame in memory is read like a file to which pandas wrote the same data frame.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from numbers import Number
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pate_cli.core.errors import ParameterError, PateError, quoted
from pate_cli.votes.columns import LABEL, kind_of
from pate_cli.votes.formats.npy import Array, check_dtype
from pate_cli.votes.table import Table, held, indexed, refuse_twice


def open_held(source: Any, ids: tuple[str, ...]) -> Array | Table:
    """Return votes in memory as an array or a table; `ids` are the names of columns of ids."""
    if hasattr(source, "to_frame"):  # This is a column of a data frame.
        source = source.to_frame(LABEL)
    is_array, is_list = isinstance(source, np.ndarray), isinstance(source, list | tuple)
    streams = ("__arrow_c_stream__", "__arrow_c_array__", "columns")
    lazy = hasattr(source, "collect")  # A lazy frame of polars has no rows yet.
    is_table = not (is_array or lazy) and any(hasattr(source, name) for name in streams)
    if not (is_table or is_list or hasattr(source, "__array__")):
        kinds = "a path, a URI, -, a numpy array, a list of rows, a pyarrow.Table or a data frame"
        raise ParameterError(f"votes must be {kinds}, not {type(source).__name__}")
    name = "the table" if is_table else "the list of rows" if is_list else "the array"
    if any(isinstance(each, np.ma.MaskedArray) for each in (source if is_list else [source])):
        raise ParameterError(
            f"{name}: is a masked array; fill it with -1 or NaN where a vote is missing"
        )
    try:
        if is_table:
            titles = getattr(source, "column_names", getattr(source, "columns", ()))
            refuse_twice([*map(str, titles)], name)
            return indexed([held(pa.table(source), name)], ids)[0]
        return _array(_stacked(source) if is_list else np.asanyarray(source), name)
    except PateError as error:
        raise type(error)(f"{name}: {str(error).removeprefix(f'{name}: ')}") from None
    except Exception:  # The message of a library may quote votes.
        why = _uneven(source) if is_list else _mixed(source)
        raise ParameterError(f"{name}: {why}") from None


def _array(values: NDArray[Any], name: str) -> Array:
    kind = values.dtype
    if kind.kind in "OST":
        values, kind = _plain(values.astype(object))
    check_dtype(kind, name)
    return Array(name, values.shape, kind, partial(_slab, np.asarray(values)), portable=False)


def _slab(values: NDArray[Any], axis: int, start: int, stop: int) -> NDArray[Any]:
    # Copied, so that a caller's array cannot change after it was checked.
    return np.array(np.moveaxis(values, axis, 0)[start:stop], order="C", subok=False)


def _stacked(rows: Any) -> NDArray[Any]:
    """Return a list of rows as an array, in which no entry changes the type of another one.

    Numbers beside texts stay numbers, and True beside NaN stays True. If a whole score is above
    2^53, all scores become floats, even if no score is a fraction.
    """
    values = np.asarray(rows)
    if values.dtype.kind in "Uif":
        objects = np.asarray(rows, dtype=object)
        if values.dtype.kind == "U" or not {bool, np.bool_}.isdisjoint(map(type, objects.ravel())):
            return objects
    return _rounded(values)


def _rounded(values: NDArray[Any]) -> NDArray[Any]:
    """Return whole scores as floats if one of them is above 2^53.

    NumPy makes all scores floats if one is a fraction. With this function, the rounding of scores
    never depends on whether another teacher has a fraction. Only arrays of three dimensions are
    scores; other whole numbers may be ids, and stay exact.
    """
    whole = values.dtype.kind in "iu" and values.size > 0 and values.ndim == 3
    large = whole and max(int(values.max()), -int(values.min())) > 1 << 53
    return values.astype(np.float64) if large else values


def _uneven(rows: Any) -> str:
    """Return why a list of rows does not form an array; the returned text contains no vote."""
    shapes = [getattr(row, "shape", None) or (len(row),) for row in rows if hasattr(row, "__len__")]
    usual = Counter(shapes).most_common(1)[0][0] if shapes else ()
    for place, shape in enumerate(shapes):
        if shape != usual:
            fix = "-1 is a missing vote, and a class that a teacher does not know scores 0"
            return f"row {place} (or teacher {place}) has shape {shape}, most have {usual}; {fix}"
    return "its rows are no numbers and no texts"


def _mixed(frame: Any) -> str:
    """Return which column of a data frame mixes words and numbers, and from which row on."""
    for column in getattr(frame, "columns", ()):
        said = [*frame[column]]
        words = np.array([isinstance(each, str) for each in said])
        numbers = np.array([isinstance(each, Number) and each == each for each in said])
        if words.any() and numbers.any():
            row = max(words.argmax(), numbers.argmax())
            mixed = f"holds words and numbers: row {row} is unlike those before it"
            return f"column {quoted(column)} {mixed}; give each column one type"
    return "cannot be read; give each column one type"


def _is_number(entry: Any) -> bool:
    """Return whether an entry is a number, but not a truth value or an integer above 64 bits."""
    large = isinstance(entry, int) and abs(entry) >= 1 << 64
    return isinstance(entry, Number) and not isinstance(entry, bool) and not large


def _plain(values: NDArray[Any]) -> tuple[NDArray[Any], np.dtype[Any]]:
    """Return an array of objects as numbers or as texts of Python, and the type of its entries.

    Truth values of which some are missing become 1, 0 and NaN, and the returned type is bool.
    """
    flat = [e.encode(errors="replace") if isinstance(e, str) else e for e in values.ravel()]
    try:
        found = pa.array(flat, from_pandas=True)
    except (pa.ArrowException, OverflowError):
        found = pa.array([[]])  # The entries have several types, which is refused below.
        if all(e is None or _is_number(e) for e in flat):  # Large ones stand beside fractions.
            found = pa.array([None if e is None else float(e) for e in flat], from_pandas=True)
    if pa.types.is_binary(found.type):
        texts = [(each or b"").decode(errors="replace") for each in found.to_pylist()]
        return np.array(texts, dtype=object).reshape(values.shape), np.dtype("U1")
    if kind_of(found.type) not in ("number", "truth", "nothing"):
        what = "has texts beside numbers, Python objects or a number of more than 64 bits"
        if any(isinstance(e, bool | np.bool_) for e in flat) and any(map(_is_number, flat)):
            what = "has true or false beside numbers"
        raise ParameterError(f"{what}; votes must be whole numbers, or texts with `label_names`")
    truth = pa.types.is_boolean(found.type)
    found = found.cast(pa.float64(), safe=False) if found.null_count else found
    numbers = _rounded(np.asarray(found.to_numpy(zero_copy_only=False)).reshape(values.shape))
    return numbers, np.dtype(bool) if truth else numbers.dtype
