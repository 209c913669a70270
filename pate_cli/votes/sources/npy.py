"""NPY arrays, read row by row and never unpickled; arrays in memory under the same rules."""

from __future__ import annotations

import contextlib
import math
import os
import threading
import tokenize
import warnings
from collections.abc import Iterator
from dataclasses import field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pate_cli.core.arrays import Ints
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import NotOpenedError, VoteError
from pate_cli.core.words import Layout
from pate_cli.votes.batches import row_numbers
from pate_cli.votes.checks import Ids, Where, whole_labels, whole_numbers
from pate_cli.votes.matching import Matching, plain_texts
from pate_cli.votes.ranges import Stretch
from pate_cli.votes.sources.formats import SourceFile
from pate_cli.votes.sources.mapped import Mapped
from pate_cli.votes.sources.unchanged import Mark, changed, refuse_changed
from pate_cli.votes.unnamed import Said

# How many sides an array has, and what they are; two, of queries and votes, where nothing is said.
_SIDES = {
    Layout.SCORES: ((3,), "[queries, teachers, classes]"),
    Layout.SCORES_BY_TEACHER: ((3,), "[teachers, queries, classes]"),
    Layout.MULTILABEL_COUNTS: ((2, 3), "[queries, labels] or [queries, labels, 2]"),
    Layout.MULTILABEL: ((3,), "[queries, teachers, labels]"),
    Layout.MULTILABEL_BY_TEACHER: ((3,), "[teachers, queries, labels]"),
}
_TEXT_BYTES = 1 << 23
"""So much of an array of texts is looked up at once, however long they are."""
_AHEAD = 1 << 23
"""So many bytes of rows are read at once where a row does not lie in one place."""
_LARGEST_SIDE = 1 << 63
# What numpy raises over a header, which it takes for a Python expression.
_DAMAGED = (
    ArithmeticError,
    EOFError,
    LookupError,
    MemoryError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    tokenize.TokenError,
)
_KINDS = {
    "b": "true/false values",
    "c": "complex numbers",
    "S": "byte strings",
    "M": "dates",
    "m": "durations",
    "V": "records",
}


@dataclass(frozen=True)
class _Header:
    """Where in a file which array is."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]
    offset: int


class _OpenArray:
    """An array in a file that is open; reading it from several threads is safe."""

    def __init__(
        self,
        path: Path,
        name: str,
        layout: Layout | None,
        expected: Mark | None,
        *,
        texts: bool,
    ) -> None:
        self._part = SourceFile(name, str(path))
        self._lock = threading.Lock()
        try:
            self._file = path.open("rb", buffering=0)
        except FileNotFoundError:
            raise NotOpenedError(f"{name}: no such file or folder") from None
        except OSError as error:
            raise NotOpenedError(f"{name}: cannot be read: {error.strerror}") from error
        try:
            with self._told():
                self.mark = Mark.of(os.fstat(self._file.fileno()))
                if expected is not None and not expected.agrees(self.mark):
                    changed(name)
                self.header = _header(self._file, name)
            _check_array(self.header.shape, self.header.dtype, name, layout, texts=texts)
            _check_size(self.mark.size, self.header, name)
        except BaseException:  # an error keeps its frames, and those the file
            self._file.close()
            raise

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self._file.close()

    def rows(self, axis: int, first: int, stop: int) -> NDArray[Any]:
        """What stands at first ≤ i < stop of a side, read anew.

        Raises:
            VoteError: it cannot be read, or the file is not as it was when it was opened.
        """
        header = self.header
        sides = header.shape[::-1] if header.fortran else header.shape
        axis = len(sides) - 1 - axis if header.fortran else axis
        runs = math.prod(sides[:axis])
        each = math.prod(sides[axis + 1 :]) * header.dtype.itemsize
        length = (stop - first) * each
        data = np.empty(runs * length, dtype=np.uint8)
        with self._told():
            for run in range(runs if length else 0):
                at = header.offset + (run * sides[axis] + first) * each
                self._read(data.data[run * length : (run + 1) * length], at)
        refuse_changed(self._part, self.mark, self._file.fileno())
        found = data.view(header.dtype).reshape(*sides[:axis], stop - first, *sides[axis + 1 :])
        return found.T if header.fortran else found

    def _read(self, view: memoryview, at: int) -> None:
        with self._lock:
            self._file.seek(at)
            while view:
                count = self._file.readinto(view)
                if not count:
                    changed(self._part.name)
                view = view[count:]

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise VoteError(f"{self._part.name}: cannot be read: {error.strerror}") from error


@dataclass(frozen=True, eq=False)
class _Ahead:
    """Rows first ≤ i < stop that were read together."""

    first: int
    stop: int
    entries: NDArray[Any]


class StoredArray:
    """An array in a file; a pickled copy opens it anew when it first reads."""

    portable = True

    def __init__(
        self, path: Path, name: str, layout: Layout | None, *, texts: bool = False
    ) -> None:
        """Open the file now: one that is removed later is still there."""
        self._path, self._name = path, name
        self._layout, self._texts = layout, texts
        opened = self._opened(None)
        self._header, self._mark = opened.header, opened.mark
        self._open: _OpenArray | None = opened
        self._ahead: _Ahead | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_open": None, "_ahead": None}

    @property
    def shape(self) -> tuple[int, ...]:
        """The sides of the array."""
        return self._header.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of its entries."""
        return self._header.dtype

    def rows(self, axis: int, first: int, stop: int) -> NDArray[Any]:
        """What stands at first ≤ i < stop of a side; of one array the same side is always asked.

        Raises:
            VoteError: the file is gone, cannot be read, or is another one by now.
        """
        if self._open is None:
            self._open = self._opened(self._mark)
            if self._open.header != self._header:
                changed(self._name)
        axis_of_file = len(self.shape) - 1 - axis if self._header.fortran else axis
        if axis_of_file == 0:
            return self._open.rows(axis, first, stop)
        # Rows that do not lie together are read ahead: a batch alone might be bytes here and there.
        ahead = self._ahead
        if ahead is None or not (ahead.first <= first and stop <= ahead.stop):
            each = math.prod(self.shape) // self.shape[axis] * self.dtype.itemsize
            beyond = min(max(stop, first + _AHEAD // max(each, 1)), self.shape[axis])
            ahead = _Ahead(first, beyond, self._open.rows(axis, first, beyond))
            self._ahead = ahead
        place = (slice(None),) * axis + (slice(first - ahead.first, stop - ahead.first),)
        return ahead.entries[place]

    def _opened(self, expected: Mark | None) -> _OpenArray:
        return _OpenArray(self._path, self._name, self._layout, expected, texts=self._texts)


@dataclass(frozen=True, eq=False)
class HeldArray:
    """An array in memory, or in a file that is mapped there."""

    array: NDArray[Any] = field(repr=False)
    name: str
    mapped: Mapped | None
    portable: ClassVar[bool] = False

    @classmethod
    def of(cls, array: NDArray[Any], name: str) -> HeldArray:
        """It; `name` is what messages call it."""
        return cls(np.asarray(array), name, Mapped.under(array))

    @property
    def shape(self) -> tuple[int, ...]:
        """The sides of the array."""
        return self.array.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of its entries."""
        return self.array.dtype

    def rows(self, axis: int, first: int, stop: int) -> NDArray[Any]:
        """What stands at first ≤ i < stop of a side, as it lies there, or a copy of a file's.

        Raises:
            VoteError: the file is shorter by now.
        """
        part = self.array[first:stop] if axis == 0 else self.array[:, first:stop]
        return part if self.mapped is None else self.mapped.copied(part, self.name)


@dataclass(frozen=True, eq=False)
class _Array:
    """An array whose first side is the queries, or, turned, whose second side is."""

    where: Where
    source: StoredArray | HeldArray
    turned: bool = False

    @property
    def rows(self) -> int:
        """Number of queries."""
        return int(self.source.shape[1 if self.turned else 0])

    @property
    def stretches(self) -> tuple[Stretch, ...]:
        """The one file, which may be cut anywhere."""
        return (Stretch(self.where.name, self.rows),)

    @property
    def portable(self) -> bool:
        """Whether the array is in a file."""
        return self.source.portable


@dataclass(frozen=True, eq=False)
class NpyMatrix(_Array):
    """An array [queries, width], or with a query per column one [width, queries].

    matching: what texts are votes for, if they may be texts.
    """

    matching: Matching | None = None
    columns: ClassVar[None] = None

    @property
    def texts(self) -> bool:
        """Whether it holds texts: true and false are, where classes have names."""
        return self.source.dtype.kind == "U" or (self.matching is not None and self._of_truths)

    @property
    def truths(self) -> bool:
        """Whether it holds true and false, and these are classes 1 and 0."""
        return self.matching is None and self._of_truths

    @property
    def _of_truths(self) -> bool:
        return self.source.dtype.kind == "b"

    @property
    def width(self) -> int:
        """Entries per query."""
        return int(self.source.shape[0 if self.turned else 1])

    def transposed(self) -> NpyMatrix:
        """Return the same file with a query per column."""
        return replace(self, where=Where(self.where.name, "column"), turned=True)

    def blocks(
        self, size: int, start: int, stop: int, *, absent_limit: int | None
    ) -> Iterator[tuple[int, Ids, Ints]]:
        """Yield checked blocks; where votes may be missing, -1 and NaN are those that are."""
        whole = whole_numbers if absent_limit is None else whole_labels
        for first, part in self._pieces(size, start, stop):
            ids = row_numbers(first, first + part.shape[0])
            matching = self.matching if self.texts else None
            if matching is None:
                values = whole(part, first, self.where)
            else:
                values = np.concatenate([matching.places(few) for few in _few(part)])
            yield first, ids, values

    def texts_said(self, size: int, stop: int) -> Iterator[Said]:
        """See Matrix; where votes are texts, and none without."""
        for _, part in self._pieces(size, 0, stop) if self.texts else ():
            for few in _few(part):
                distinct, votes = np.unique(few, return_counts=True)
                yield plain_texts(distinct), votes

    def _pieces(self, size: int, start: int, stop: int) -> Iterator[tuple[int, NDArray[Any]]]:
        for first in range(start, stop, size):
            rows = self.source.rows(1 if self.turned else 0, first, min(first + size, stop))
            if self._of_truths:
                true = rows.view(np.uint8) != 0  # whatever a file has there
                rows = true.view(np.uint8) if self.truths else np.where(true, "true", "false")
            yield first, rows.T if self.turned else rows


@dataclass(frozen=True, eq=False)
class NpyCube(_Array):
    """An array [queries, i, j], or teacher by teacher one [i, queries, j]."""

    @property
    def sides(self) -> tuple[int, int]:
        """(i, j)."""
        return int(self.source.shape[0 if self.turned else 1]), int(self.source.shape[2])

    def blocks(self, size: int, start: int, stop: int) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield queries start..stop-1 as (first query, copy of the entries [queries, i, j])."""
        for first in range(start, stop, size):
            rows = self.source.rows(1 if self.turned else 0, first, min(first + size, stop))
            by_query = rows.transpose(1, 0, 2) if self.turned else rows
            # A copy, so that what was checked cannot change under the reader in somebody's array.
            yield first, np.array(by_query, order="C", subok=False)


def _few(texts: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """So many rows of texts as are looked up at once."""
    step = max(1, _TEXT_BYTES // max(1, texts[:1].nbytes))
    for row in range(0, len(texts), step):
        yield texts[row : row + step]


def open_npy(
    path: Path, name: str, layout: Layout | None = None, matching: Matching | None = None
) -> NpyMatrix | NpyCube:
    """Open the array at `path`; `name` is what messages call it, `layout` what the user said.

    matching: what texts are votes for, if votes may be texts.

    Raises:
        VoteError: pickled, truncated, not of the sides it needs, empty, or not of numbers (or, with
            `matching`, texts).
    """
    source = StoredArray(path, name, layout, texts=matching is not None)
    return _sided(name, source, layout, matching)


def held_array(
    array: NDArray[Any],
    name: str,
    layout: Layout | None = None,
    matching: Matching | None = None,
) -> NpyMatrix | NpyCube:
    """Take an array for what it would be as a file; it is not copied.

    Raises:
        VoteError: masked, not of the sides it needs, empty, or not of numbers (or, with
            `matching`, texts).
    """
    if isinstance(array, np.ma.MaskedArray):
        raise VoteError(
            f"{name}: the array is masked, which would be lost; fill it, or store missing votes "
            "as nulls in a table"
        )
    _check_array(array.shape, array.dtype, name, layout, texts=matching is not None)
    return _sided(name, HeldArray.of(array, name), layout, matching)


def _sided(
    name: str,
    source: StoredArray | HeldArray,
    layout: Layout | None,
    matching: Matching | None,
) -> NpyMatrix | NpyCube:
    by_teacher = layout is not None and layout.by_teacher
    if len(source.shape) == 3:
        return NpyCube(Where(name), source, by_teacher)
    return NpyMatrix(Where(name), source, matching=matching)


def _check_array(
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    name: str,
    layout: Layout | None,
    *,
    texts: bool,
) -> None:
    if dtype.hasobject:
        raise VoteError(
            f"{name}: the array has object dtype, which is stored as a pickle and never opened; "
            "save it as integers"
        )
    if dtype.kind == "U" and not texts:
        raise VoteError(f"{name}: the array holds strings; if they are votes, give `label_names`")
    if dtype.kind == "b" and layout not in (Layout.MULTILABEL, Layout.MULTILABEL_BY_TEACHER):
        _check_truths(name, layout)
    if dtype.kind not in ("iufb" if layout is not None and layout.never_inferred else "iufbU"):
        kind = _KINDS.get(dtype.kind, str(dtype))
        raise VoteError(f"{name}: the array holds {kind}; votes are stored as integers")
    if layout in _SIDES:
        numbers, sides = _SIDES[layout]
        if len(shape) not in numbers:
            raise VoteError(f"{name}: the array has shape {shape}; layout {layout} needs {sides}")
    elif len(shape) != 2:
        three = f"; with three, say `layout` {'|'.join(_SIDES)}" if len(shape) == 3 else ""
        raise VoteError(
            f"{name}: the array has shape {shape}; votes need two dimensions, "
            f"[queries, classes] or [queries, teachers]{three}"
        )
    if shape[0] == 0:
        raise VoteError(f"{name}: the array has no rows (shape {shape})")
    if shape[1] == 0:
        raise VoteError(f"{name}: the array has no columns (shape {shape})")
    if 0 in shape:
        raise VoteError(f"{name}: the array has an empty side (shape {shape})")


def _check_truths(name: str, layout: Layout | None) -> None:
    """VoteError for true and false under a layout of numbers."""
    if layout is Layout.COUNTS:
        raise VoteError(
            f"{name}: the array holds {_KINDS['b']}; counts are integers; if they are labels, say "
            f"`layout` {Layout.LABELS}|{Layout.LABELS_BY_TEACHER}"
        )
    if layout is not None and layout.never_inferred:
        raise VoteError(
            f"{name}: the array holds {_KINDS['b']}; under layout {layout} votes are numbers; "
            "convert it first, as by astype('uint8')"
        )


def _check_size(size: int, header: _Header, name: str) -> None:
    # Python integers: a forged header cannot overflow the product.
    expected = header.offset + math.prod(header.shape) * header.dtype.itemsize
    if size < expected:
        raise VoteError(f"{name}: the NPY file is truncated ({size} of {expected} bytes)")
    if size > expected:
        raise VoteError(
            f"{name}: the NPY file goes on after its array ({size} bytes, {expected} expected); "
            "save one array per file"
        )


def _header(file: Any, name: str) -> _Header:
    with warnings.catch_warnings():
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
        except _DAMAGED as error:
            raise VoteError(f"{name}: the NPY header is truncated or damaged") from error
        shape, fortran, dtype = header
        if not dtype.itemsize or not all(0 <= extent < _LARGEST_SIDE for extent in shape):
            raise VoteError(f"{name}: the NPY header is truncated or damaged")
        return _Header(shape, fortran, dtype, file.tell())
