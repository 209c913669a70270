"""Votes in memory: arrays, lists of rows, Arrow tables, and data frames of pandas, polars and others.

They are read as the files are that their libraries write: an index that pandas keeps is the query
ids, and None, NaN or pandas.NA is a missing entry.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pate_cli.core.errors import ParameterError, PateError
from pate_cli.votes.columns import LABEL
from pate_cli.votes.formats.npy import Array, check_dtype
from pate_cli.votes.table import Table, held, indexed

_MISSING = ("NoneType", "NAType", "NaTType")


def open_held(source: Any, ids: tuple[str, ...]) -> Array | Table:
    """Return votes in memory as an array or a table; `ids` are the columns of ids."""
    if isinstance(source, np.ndarray):
        return _array(source, "the array")
    if hasattr(source, "to_frame"):  # a column of a data frame, whatever it is called
        source = source.to_frame(LABEL)
    module = type(source).__module__.partition(".")[0]
    streams = hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__")
    if streams or (module == "pandas" and hasattr(source, "columns")):
        name = "the table" if module == "pyarrow" else "the data frame"
        try:
            table = pa.table(source)
        except Exception:
            raise ParameterError(
                f"{name}: does not turn into an Arrow table; give each column one type"
            ) from None
        return indexed([held(table, name)], ids)[0]
    if isinstance(source, list | tuple):
        return _array(_stacked(source), "the list of rows")
    if hasattr(source, "__array__") and not hasattr(source, "columns"):
        try:
            return _array(np.asarray(source), "the array")
        except PateError:
            raise
        except Exception:
            raise ParameterError(
                f"this {type(source).__name__} does not turn into an array; give a numpy array"
            ) from None
    raise ParameterError(
        "votes are a path, a URI, -, a numpy array, a list of rows, a pyarrow.Table or a data "
        f"frame, not {type(source).__name__}"
    )


def _array(values: NDArray[Any], name: str) -> Array:
    if isinstance(values, np.ma.MaskedArray):
        raise ParameterError(f"{name}: is masked; fill it, with -1 or NaN where a vote is missing")
    if values.dtype.kind in "OST":
        values = _plain(values.astype(object), name)
    kind = np.dtype("U1") if values.dtype.hasobject else values.dtype
    check_dtype(kind, name)
    return Array(name, values.shape, kind, partial(_slab, np.asarray(values)))


def _slab(values: NDArray[Any], axis: int, start: int, stop: int) -> NDArray[Any]:
    # A copy: what was checked must not change under the reader in somebody's array.
    return np.array(np.moveaxis(values, axis, 0)[start:stop], order="C", subok=False)


def _stacked(rows: Any) -> NDArray[Any]:
    """Return a list of rows as an array; numpy would turn numbers beside texts into texts."""
    try:
        if any(isinstance(row, np.ma.MaskedArray) for row in rows):
            raise ParameterError("the list of rows: a row is masked; fill it")
        with warnings.catch_warnings(action="error", category=UserWarning):  # a masked entry
            values = np.asarray(rows)
        return np.asarray(rows, dtype=object) if values.dtype.kind == "U" else values
    except PateError:
        raise
    except Exception:
        raise ParameterError(f"the list of rows: {_uneven(rows)}") from None


def _uneven(rows: Any) -> str:
    """Return what is wrong with rows that are no array, without any entry of them."""
    try:
        shapes = [np.shape(row) for row in rows]
    except ValueError:
        shapes = []
    for place, shape in enumerate(shapes):
        if shape != shapes[0]:
            return (
                f"entry {place} (a teacher, or a row) has shape {shape}, entry 0 has {shapes[0]}; "
                "all must have the same: a teacher that knows fewer classes scores the others 0, "
                "and -1 stands for a missing vote"
            )
    return "its rows are no numbers and no texts, or of several lengths"


def _plain(values: NDArray[Any], name: str) -> NDArray[Any]:
    """Return objects as numbers, or as texts of Python; the same texts as words in a file."""
    flat = values.ravel().tolist()
    gone = [
        type(each).__name__ in _MISSING or (isinstance(each, float | np.floating) and each != each)
        for each in flat
    ]
    kinds = {type(each) for each, none in zip(flat, gone, strict=True) if not none}
    if kinds and all(issubclass(kind, str | bytes) for kind in kinds):
        texts = np.empty(len(flat), dtype=object)
        texts[:] = [
            "" if none else each.decode(errors="replace") if isinstance(each, bytes) else each
            for each, none in zip(flat, gone, strict=True)
        ]
        return texts.reshape(values.shape)
    if not all(issubclass(kind, int | float | np.number | np.bool_) for kind in kinds):
        raise ParameterError(
            f"{name}: holds {'words and numbers' if kinds & {str, bytes} else 'Python objects'}; "
            "votes are whole numbers alone, or with `label_names` words alone"
        )
    if any(gone):
        flat = [np.nan if none else each for each, none in zip(flat, gone, strict=True)]
    try:
        found = np.array(flat)
    except (OverflowError, ValueError):
        found = np.array(flat, dtype=object)
    if found.dtype.hasobject:
        raise ParameterError(f"{name}: holds a number of more than 64 bits")
    return found.reshape(values.shape)
