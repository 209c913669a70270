"""Votes in memory, under the types that other libraries have for them: as an array or a table.

A data frame, or whatever else gives an Arrow stream (`__arrow_c_stream__`), is the pyarrow.Table
that it gives; whatever is like an array (`__array__`), and a list of rows, is the numpy array.
"""

from __future__ import annotations

import json
import re
import sys
import warnings
from collections.abc import Collection, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pate_cli.core.errors import ParameterError

ARRAY, TABLE = "array", "table"
"""What messages call them."""

_NAMELESS_INDEX = re.compile(r"__index_level_\d+__")
_MIXED = (
    f"{ARRAY}: it holds other things than numbers; give numbers alone, or texts alone with "
    "`label_names`, and -1 or an empty text where a vote is missing"
)


class ArrowStream(Protocol):
    """A data frame of pandas, polars, ..., and whatever else Arrow's PyCapsule interface knows."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """A capsule with a stream of record batches."""


class ArrayLike(Protocol):
    """What numpy takes for an array."""

    def __array__(self) -> NDArray[Any]:
        """The array."""


Held: TypeAlias = NDArray[Any] | Sequence[Sequence[Any]] | ArrowStream | ArrayLike
"""Votes in memory; a pyarrow.Table gives an Arrow stream, too."""


def in_memory(source: Any, ids: Collection[str]) -> Any:
    """A numpy array or a pyarrow.Table of votes in memory; None for what is neither.

    ids: columns that name queries or teachers, and so are kept of an index.

    Raises:
        ParameterError: rows of other lengths, entries that are neither numbers nor texts, or what
            does not turn into either of them.
    """
    if isinstance(source, np.ndarray):
        return source
    arrow = sys.modules.get("pyarrow")  # whoever has a table has imported it
    if arrow is not None and isinstance(source, arrow.Table):
        return source
    if hasattr(source, "__arrow_c_stream__"):
        return _table(source, ids)
    if hasattr(source, "__array__"):
        if hasattr(source, "columns"):
            raise ParameterError(
                f"{TABLE}: this {type(source).__name__} has columns, whose names an array would "
                "lose; give a pyarrow.Table of it (pyarrow.Table.from_pandas), or a newer version"
            )
        return _array(source)
    if isinstance(source, Sequence) and not isinstance(source, str | bytes | bytearray):
        return _array_of_rows(source)
    return None


def _table(source: ArrowStream, ids: Collection[str]) -> Any:
    import pyarrow as pa

    try:
        table = pa.RecordBatchReader.from_stream(source).read_all()
    except Exception as error:  # whatever its library raises, which may quote votes
        raise ParameterError(
            f"{TABLE}: this {type(source).__name__} does not turn into an Arrow table; give "
            "columns of numbers, each of one type"
        ) from error
    return table.drop_columns(_index_of(table.schema, ids))


def _index_of(schema: Any, ids: Collection[str]) -> list[str]:
    """The columns that were the index of a pandas data frame, which is no vote."""
    names = {name for name in schema.names if _NAMELESS_INDEX.fullmatch(name)}
    try:
        said = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))["index_columns"]
    except (KeyError, TypeError, ValueError, RecursionError):
        said = []  # not from pandas
    for column in said if isinstance(said, list) else []:
        if isinstance(column, str) and column in schema.names and column not in ids:
            names.add(column)
    return sorted(names)


def _array(source: ArrayLike) -> NDArray[Any]:
    try:
        array = np.asarray(source)
    except Exception as error:  # whatever its library raises, which may quote votes
        raise ParameterError(
            f"{ARRAY}: this {type(source).__name__} does not turn into a numpy array; turn it into "
            "one first"
        ) from error
    if array.dtype.hasobject:
        raise ParameterError(_MIXED)
    return array


def _array_of_rows(rows: Sequence[Any]) -> NDArray[Any]:
    if any(isinstance(row, np.ma.MaskedArray) for row in rows):
        raise ParameterError(f"{ARRAY}: a row is masked, which would be lost; fill it")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)  # of a masked entry
            array = np.asarray(rows)
    except (TypeError, ValueError, OverflowError, RecursionError, UserWarning) as error:
        raise ParameterError(
            f"{ARRAY}: its rows are not all of one length, or hold no numbers; give a "
            "pyarrow.Table with a column of lists, or -1 where a vote is missing"
        ) from error
    if array.dtype.hasobject:
        raise ParameterError(_MIXED)
    if array.ndim < 2 and len(rows):
        raise ParameterError(
            f"{ARRAY}: a list of votes holds a list for every row; of several files give their "
            "folder or a glob"
        )
    # numpy turns numbers beside texts into texts.
    if array.dtype.kind == "U" and not all(isinstance(vote, str) for row in rows for vote in row):
        raise ParameterError(_MIXED)
    return array
