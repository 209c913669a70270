"""NPY arrays, memory-mapped and never unpickled; arrays in memory under the same rules."""

from __future__ import annotations

import tokenize
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pate_cli.arrays import Ints
from pate_cli.errors import VoteError
from pate_cli.votes.checks import Ids, Where, whole_numbers

_KINDS = {
    "b": "true/false values",
    "c": "complex numbers",
    "S": "byte strings",
    "U": "strings",
    "M": "dates",
    "m": "durations",
    "V": "records",
}


@dataclass(frozen=True, eq=False)
class NpyMatrix:
    """An array [queries, width], perhaps the transposed view of one [teachers, queries]."""

    where: Where
    array: NDArray[Any] = field(repr=False)

    @property
    def rows(self) -> int:
        """Number of queries."""
        return int(self.array.shape[0])

    @property
    def width(self) -> int:
        """Entries per query."""
        return int(self.array.shape[1])

    def transposed(self) -> NpyMatrix:
        """Return the same file with a query per column."""
        return NpyMatrix(Where(self.where.name, "column"), self.array.T)

    def blocks(
        self, size: int, stop: int, *, absent_limit: int | None
    ) -> Iterator[tuple[int, Ids, Ints]]:
        """Yield checked blocks; an array has no gaps, so `absent_limit` does not matter."""
        del absent_limit
        for start in range(0, stop, size):
            part = self.array[start : min(start + size, stop)]
            ids = np.arange(start, start + part.shape[0], dtype=np.int64)
            yield start, ids, whole_numbers(part, start, self.where)


def open_npy(path: Path, name: str) -> NpyMatrix:
    """Map the array at `path`; `name` is what messages call it.

    Raises:
        VoteError: pickled, truncated, not two-dimensional, empty, or not of numbers.
    """
    shape, fortran, dtype, offset = _header(path, name)
    _check_array(shape, dtype, name)
    # Python integers: a forged header cannot overflow the product.
    expected = offset + shape[0] * shape[1] * dtype.itemsize
    size = path.stat().st_size
    if size < expected:
        raise VoteError(f"{name}: the NPY file is truncated ({size} of {expected} bytes)")
    if size > expected:
        raise VoteError(
            f"{name}: the NPY file goes on after its array ({size} bytes, {expected} expected); "
            "save one array per file"
        )
    order: Any = "F" if fortran else "C"
    mapped = np.memmap(path, dtype=dtype, mode="r", offset=offset, shape=shape, order=order)
    return NpyMatrix(Where(name), mapped)


def array_matrix(array: NDArray[Any], name: str) -> NpyMatrix:
    """Take an array for what it would be as a file; it is not copied.

    Raises:
        VoteError: masked, not two-dimensional, empty, or not of numbers.
    """
    if isinstance(array, np.ma.MaskedArray):
        raise VoteError(
            f"{name}: the array is masked, which would be lost; fill it, or store missing votes "
            "as nulls in a table"
        )
    _check_array(array.shape, array.dtype, name)
    return NpyMatrix(Where(name), np.asarray(array))


def _check_array(shape: tuple[int, ...], dtype: np.dtype[Any], name: str) -> None:
    if dtype.hasobject:
        raise VoteError(
            f"{name}: the array has object dtype, which is stored as a pickle and never opened; "
            "save it as integers"
        )
    if dtype.kind not in "iuf":
        kind = _KINDS.get(dtype.kind, str(dtype))
        raise VoteError(f"{name}: the array holds {kind}; votes are stored as integers")
    if len(shape) != 2:
        raise VoteError(
            f"{name}: the array has shape {shape}; votes need two dimensions, "
            "[queries, classes] or [queries, teachers]"
        )
    if shape[0] == 0:
        raise VoteError(f"{name}: the array has no rows (shape {shape})")
    if shape[1] == 0:
        raise VoteError(f"{name}: the array has no columns (shape {shape})")


def _header(path: Path, name: str) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Return shape, whether the order is Fortran's, dtype, and where the data begin."""
    with path.open("rb") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # headers written by Python 2 parse with a warning
        try:
            version = np.lib.format.read_magic(file)
            if version == (1, 0):
                header = np.lib.format.read_array_header_1_0(file)
            elif version == (2, 0):
                header = np.lib.format.read_array_header_2_0(file)
            else:
                # Version 3 exists for records with non-ASCII names, which are no votes.
                raise VoteError(f"{name}: NPY format version {version} is not supported")
        except (ValueError, EOFError, TypeError, SyntaxError, tokenize.TokenError) as error:
            raise VoteError(f"{name}: the NPY header is truncated or damaged") from error
        shape, fortran, dtype = header
        if any(extent < 0 for extent in shape):
            raise VoteError(f"{name}: the NPY header is truncated or damaged")
        return shape, fortran, dtype, file.tell()
