"""A guard before pyarrow: what a Parquet file says of itself, read here before it is decoded.

pyarrow ends the process over some damage in a footer instead of raising an error, and takes as much
memory as a file asks for: a page of a few bytes may stand for two GB, and a text of a megabyte that
is stored once for one in every row. So what the footer says of columns, and pages of themselves, is
read by a reader of our own, which raises. By that the pages of columns that are read side by side
are bounded, lists that are too long are refused, and where texts are long fewer rows are read at
once.

[apache/parquet-format, src/main/thrift/parquet.thrift; the compact protocol of Apache Thrift]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

MOST_PAGES = 1 << 29
"""Bytes of the largest pages of all columns that are read side by side, at most."""
AT_ONCE = 1 << 26
"""Bytes of texts that are read at once, about."""

# The numbers of fields: of the file, a row group, a column in it, and what is said of that.
_ROW_GROUPS, _COLUMNS, _META = 4, 1, 3
_KIND, _PATH, _ENTRIES, _COLUMN_SIZE, _COLUMN_PACKED, _DATA, _DICTIONARY = 1, 3, 5, 6, 7, 9, 11
_TEXT = 6
# The same of a page, and of what is said of its kind.
_PAGE_TYPE, _SIZE, _PACKED, _KINDS, _VALUES = 1, 2, 3, (5, 7, 8), 1
_DICTIONARY_PAGE = 2
_SHORT = 1 << 8  # bytes of a dictionary that nobody needs to look into
_HEADERS = (1 << 9, 1 << 13, 1 << 20, 1 << 24)  # bytes of a page's header: of most, and of any


# The footer.


@dataclass(frozen=True)
class Chunk:
    """A column in a row group.

    path: the names that lead to it. text: whether it holds texts. entries: at least as many as its
    lists have together; an empty list may count as one. size, packed: bytes of its pages, decoded
    and as they are stored. start: of the first of them in the file.
    """

    path: tuple[str, ...]
    text: bool
    entries: int
    size: int
    packed: int
    start: int


def chunks_of(source: Any) -> tuple[tuple[Chunk, ...], ...]:
    """The columns of every row group; none where the footer cannot be read.

    source: an open pyarrow.NativeFile.
    """
    size = source.size()
    source.seek(max(size - 8, 0))
    length = int.from_bytes(source.read(4), "little")
    if length > size - 8:
        return ()
    source.seek(size - 8 - length)
    try:
        footer = _Compact(source.read(length)).struct()
        return tuple(
            tuple(_chunk(column[_META]) for column in group[_COLUMNS])
            for group in footer[_ROW_GROUPS]
        )
    except (AttributeError, LookupError, TypeError, ValueError):
        return ()  # damaged: whoever reads it will say so


def _chunk(meta: dict[int, Any]) -> Chunk:
    starts = [meta[_DATA], meta.get(_DICTIONARY, 0)]
    return Chunk(
        path=tuple(name.decode(errors="replace") for name in meta[_PATH]),
        text=meta[_KIND] == _TEXT,
        entries=int(meta[_ENTRIES]),
        size=int(meta[_COLUMN_SIZE]),
        packed=int(meta[_COLUMN_PACKED]),
        start=min(start for start in starts if start > 0),
    )


def entries_of(chunks: tuple[tuple[Chunk, ...], ...], column: str) -> int:
    """At least as many as the lists of `column` have."""
    return sum(
        chunk.entries
        for group in chunks
        for chunk in group
        if len(chunk.path) > 1 and chunk.path[0] == column
    )


# Pages.


@dataclass(frozen=True)
class _Page:
    """size: bytes once it is decompressed."""

    size: int
    values: int
    dictionary: bool


def fit(source: Any, chunks: Iterable[Chunk]) -> bool:
    """Whether the largest pages of these columns of a row group have MOST_PAGES together.

    Columns are looked into only where all their pages together have more. The headers of pages tell
    their bytes, and a page that holds more than that is refused by whoever reads it.
    """
    left = sorted(chunks, key=lambda chunk: chunk.size)
    total = sum(chunk.size for chunk in left)
    while total > MOST_PAGES and left:
        chunk = left.pop()
        pages = list(_pages(source, chunk))
        shared = sum(page.size for page in pages if page.dictionary)
        largest = max((page.size for page in pages if not page.dictionary), default=0)
        total -= max(chunk.size - shared - largest, 0)
    return total <= MOST_PAGES


def rows_at_once(
    source: Any, chunks: Sequence[Chunk], rows: int, longest: Callable[[Chunk], int | None]
) -> int:
    """How many of the rows of a row group may be read at once for their texts, at least 1.

    chunks: columns whose texts are read as they are, each once for every row. longest: bytes of the
    longest text in the dictionary of a column, if that can be told.
    """
    weight = 0
    for chunk in chunks:
        first = next(_pages(source, chunk), None)
        shared = first.size if first is not None and first.dictionary else 0
        entries = max(chunk.entries, rows)
        if chunk.size + entries * shared <= AT_ONCE // len(chunks):
            continue
        each = shared if shared <= _SHORT else longest(chunk) or shared
        if chunk.size - shared > AT_ONCE:
            plain = (page for page in _pages(source, chunk) if not page.dictionary)
            each = max([each, *(math.ceil(page.size / max(page.values, 1)) for page in plain)])
        weight += each * math.ceil(entries / max(rows, 1))
    return max(1, AT_ONCE // weight) if weight else rows


def _pages(source: Any, chunk: Chunk) -> Iterator[_Page]:
    """The pages of a column by their headers; those after a damaged one are left out."""
    at, end = chunk.start, chunk.start + chunk.packed
    while at < end:
        header = None
        for length in _HEADERS:
            source.seek(at)
            compact = _Compact(source.read(min(length, end - at)))
            try:
                header = compact.struct()
                break
            except (LookupError, ValueError):
                if length >= end - at:
                    return
        if header is None:
            return
        said = next((header[kind] for kind in _KINDS if kind in header), None)
        numbers = [
            header.get(_SIZE),
            header.get(_PACKED),
            said.get(_VALUES) if isinstance(said, dict) else None,
        ]
        size, packed, values = (n if isinstance(n, int) and n >= 0 else -1 for n in numbers)
        if min(size, packed, values) < 0:
            return
        yield _Page(size, values, header.get(_PAGE_TYPE) == _DICTIONARY_PAGE)
        at += compact.at + packed


# Thrift's compact protocol, in which both are written.

_DEEPEST = 16  # the structs of a footer are far less deep
_STOP, _TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 0, 1, 2, 3, 7, 8, 9, 10, 12
_NUMBERS = (4, 5, 6)


class _Compact:
    """A reader of Thrift's compact protocol: structs as {number of field: value}."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    @property
    def at(self) -> int:
        """Bytes that were read."""
        return self._at

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """The fields up to the stop.

        Raises:
            IndexError, ValueError: it ends early, or is none.
        """
        fields: dict[int, Any] = {}
        number = 0
        while True:
            head = self._byte()
            kind = head & 15
            if kind == _STOP:
                return fields
            number = number + (head >> 4) if head >> 4 else self._signed()
            fields[number] = kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind, depth)

    def _value(self, kind: int, depth: int) -> Any:
        if depth > _DEEPEST:
            raise ValueError("too deep")
        if kind in _NUMBERS:
            return self._signed()
        if kind in (_TRUE, _FALSE, _BYTE):  # in lists truth takes a byte
            return self._byte()
        if kind == _DOUBLE:
            return self._bytes(8)
        if kind == _BINARY:
            return self._bytes(self._unsigned())
        if kind in (_LIST, _SET):
            head = self._byte()
            count = self._unsigned() if head >> 4 == 15 else head >> 4
            return [self._value(head & 15, depth + 1) for _ in range(count)]
        if kind == _STRUCT:
            return self.struct(depth + 1)
        raise ValueError("not in a footer")

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _bytes(self, count: int) -> bytes:
        self._at += count
        if self._at > len(self._data):
            raise ValueError("ends early")
        return self._data[self._at - count : self._at]

    def _unsigned(self) -> int:
        number = 0
        for shift in range(0, 64, 7):
            byte = self._byte()
            number |= (byte & 127) << shift
            if byte < 128:
                return number
        raise ValueError("too long")

    def _signed(self) -> int:
        number = self._unsigned()
        return (number >> 1) ^ -(number & 1)
