"""A guard before pyarrow: what a Parquet file says of itself, read here before it is decoded.

pyarrow ends the process over some damage in a footer instead of raising an error, and takes as much
memory as a file asks for: a page of a few bytes may stand for two GB, or only say that it does, and
a text of a megabyte that is stored once for one in every row. So what the footer says of columns,
and pages of themselves, is read by a reader of our own, which raises. By that the pages of columns
that are read side by side are bounded, what pages say beyond what the footer says is refused, lists
that are too long are, and where texts are long fewer rows are read at once. Nothing is believed
that could not be held against the bytes that are there: a page is no larger than its column, and
a column no larger than the file.

[apache/parquet-format, src/main/thrift/parquet.thrift]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from pate_cli.core.dataclass import dataclass
from pate_cli.votes.sources.thrift import Wanted, struct

MOST_PAGES = 1 << 29
"""Bytes of the largest pages of all columns that are read side by side, at most."""
AT_ONCE = 1 << 26
"""Bytes of texts that are read at once, about."""

AT_HAND = 1 << 26
"""Bytes of columns as they are stored that are read at once, and not page by page, at most."""

# The numbers of fields: of the file, a row group, a column in it, and what is said of that.
_ROW_GROUPS, _COLUMNS, _META = 4, 1, 3
_KIND, _ENCODINGS, _PATH, _CODEC, _ENTRIES, _COLUMN_SIZE, _COLUMN_PACKED = 1, 2, 3, 4, 5, 6, 7
_DATA, _DICTIONARY = 9, 11
_OF_CHUNK = (
    _KIND,
    _ENCODINGS,
    _PATH,
    _CODEC,
    _ENTRIES,
    _COLUMN_SIZE,
    _COLUMN_PACKED,
    _DATA,
    _DICTIONARY,
)
_FOOTER: Wanted = {_ROW_GROUPS: {_COLUMNS: {_META: dict.fromkeys(_OF_CHUNK)}}}
_TEXT = 6
_DELTA_TEXTS = 7
# The same of a page, and of what is said of its kind.
_PAGE_TYPE, _SIZE, _PACKED, _VALUES = 1, 2, 3, 1
_DATA_PAGE, _DICTIONARY_PAGE, _DATA_PAGE_2 = 0, 2, 3
_KINDS = {_DATA_PAGE: 5, _DICTIONARY_PAGE: 7, _DATA_PAGE_2: 8}  # others are passed over
_HEADER: Wanted = {_PAGE_TYPE: None, _SIZE: None, _PACKED: None} | {
    field: {_VALUES: None} for field in _KINDS.values()
}
_SHORT = 1 << 8  # bytes of a dictionary that nobody needs to look into
_HEADERS = (1 << 9, 1 << 13, 1 << 20, 1 << 24)  # bytes of a page's header: of most, and of any
_FAR = 1 << 22  # bytes that are read at once where every request takes its time
# How many times as large as it is stored a page may really be, by its codec; no word on others.
_NONE, _SNAPPY, _LZ4, _LZ4_RAW = 0, 1, 5, 7
_MOST_TIMES = {_NONE: 1, _SNAPPY: 24, _LZ4: 256, _LZ4_RAW: 256}
# Earlier writers counted their pages up to so many bytes too short.
_SLACK = 100


# The footer.


@dataclass(frozen=True)
class Chunk:
    """A column in a row group.

    path: the names that lead to it. text: whether it holds texts. entries: at least as many as its
    lists have together; an empty list may count as one. size, packed: bytes of its pages, decoded
    and as they are stored. start: of the first of them in the file. codec: that they are packed by.
    repeats: whether a text may be stored as so much of the one before, hardly a byte.
    """

    path: tuple[str, ...]
    text: bool
    entries: int
    size: int
    packed: int
    start: int
    codec: int
    repeats: bool


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
        footer, _ = struct(source.read(length), _FOOTER)
        return tuple(
            tuple(_chunk(column[_META]) for column in group[_COLUMNS])
            for group in footer[_ROW_GROUPS]
        )
    except (AttributeError, LookupError, TypeError, ValueError):
        return ()  # damaged: whoever reads it will say so


def _chunk(meta: dict[int, Any]) -> Chunk:
    first, shared = int(meta[_DATA]), int(meta.get(_DICTIONARY, 0))
    if min(int(meta[number]) for number in (_ENTRIES, _COLUMN_SIZE, _COLUMN_PACKED)) < 0:
        raise ValueError("less than nothing")
    return Chunk(
        path=tuple(name.decode(errors="replace") for name in meta[_PATH]),
        text=meta[_KIND] == _TEXT,
        entries=int(meta[_ENTRIES]),
        size=int(meta[_COLUMN_SIZE]),
        packed=int(meta[_COLUMN_PACKED]),
        start=shared if 0 < shared < first else first,
        codec=int(meta[_CODEC]),
        repeats=_DELTA_TEXTS in meta[_ENCODINGS],
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


def fit(source: Any, chunks: Sequence[Chunk]) -> bool:
    """Whether the largest pages of these columns of a row group have MOST_PAGES together.

    The headers of pages tell their bytes, and a page that holds more than that is refused by
    whoever reads it. Where all that is stored could not grow to so much, and is read at once, no
    header is looked into: a page that says more comes to its end at once.

    Raises:
        OSError: a page says what cannot be.
    """
    nested = any(len(chunk.path) > 1 for chunk in chunks)
    if not nested and at_hand(chunks):
        most = sum(chunk.packed * _MOST_TIMES.get(chunk.codec, MOST_PAGES) for chunk in chunks)
        if most <= MOST_PAGES:
            return True
    total = 0
    for chunk in chunks:
        pages = list(_pages(source, chunk))
        total += sum(page.size for page in pages if page.dictionary)
        total += max((page.size for page in pages if not page.dictionary), default=0)
    return total <= MOST_PAGES


def at_hand(chunks: Iterable[Chunk]) -> bool:
    """Whether these columns of a row group are read at once, as they are stored."""
    return sum(chunk.packed for chunk in chunks) <= AT_HAND


def size_of(source: Any, chunks: Iterable[Chunk]) -> int:
    """Bytes of all pages of these columns once they are unpacked.

    Raises:
        OSError: a page says what cannot be.
    """
    return sum(page.size for chunk in chunks for page in _pages(source, chunk))


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
        # Such a text is no longer than the page that it is in.
        pages = _pages(source, chunk) if chunk.repeats else ()
        most = max((page.size for page in pages), default=0)
        if chunk.size + entries * (shared + most) <= AT_ONCE // len(chunks):
            continue
        each = shared if shared <= _SHORT else longest(chunk) or shared
        if chunk.size - shared > AT_ONCE:
            plain = (page for page in _pages(source, chunk) if not page.dictionary)
            each = max([each, *(math.ceil(page.size / max(page.values, 1)) for page in plain)])
        weight += max(each, most) * math.ceil(entries / max(rows, 1))
    return max(1, AT_ONCE // weight) if weight else rows


def _pages(source: Any, chunk: Chunk) -> Iterator[_Page]:
    """The pages of a column by their headers, up to where all its entries are told.

    Raises:
        OSError: one is damaged, or says that it has more bytes, or entries, than are left.
    """
    at, end = chunk.start, chunk.start + chunk.packed
    beyond = min(end + _SLACK, source.size())
    if at <= 0 or end > beyond:
        raise OSError("a column is not in the file")
    left, window = chunk.entries, _Window(source, beyond)
    while left > 0 and at < end:
        page, at = window.page(at)
        if at > beyond or page.values > (page.size if page.dictionary else left):
            raise OSError("a page says more than there is")
        left -= 0 if page.dictionary else page.values
        yield page


def _is_near(source: Any) -> bool:
    """Whether it is a file of the system, of which little may be read at once."""
    try:
        source.fileno()
    except OSError:
        return False
    return True


class _Window:
    """Reads the headers of pages, and of what is between no more than it must."""

    def __init__(self, source: Any, end: int) -> None:
        self._source, self._end = source, end
        self._at, self._data = 0, b""
        self._ahead = 0 if _is_near(source) else _FAR

    def page(self, at: int) -> tuple[_Page, int]:
        """The page whose header begins there, and where the next one does."""
        for length in _HEADERS:
            data, place = self._bytes(at, length)
            try:
                header, stop = struct(data, _HEADER, place)
            except (LookupError, ValueError):
                continue  # cut short, perhaps
            if stop <= len(data):
                return self._told(header, at + stop - place)
        raise OSError("the header of a page is damaged")

    @staticmethod
    def _told(header: dict[int, Any], at: int) -> tuple[_Page, int]:
        kind: Any = header.get(_PAGE_TYPE)
        said = header.get(_KINDS[kind]) if kind in _KINDS else {_VALUES: 0}
        values = said.get(_VALUES) if isinstance(said, dict) else None
        numbers = [header.get(_SIZE), header.get(_PACKED), values]
        size, packed, values = (n if type(n) is int and n >= 0 else -1 for n in numbers)
        if min(size, packed, values) < 0:
            raise OSError("the header of a page is damaged")
        return _Page(size, values, kind == _DICTIONARY_PAGE), at + packed

    def _bytes(self, at: int, length: int) -> tuple[bytes, int]:
        """So many bytes from there on, or all up to the end, behind so many others."""
        stop = min(at + length, self._end)
        if not self._at <= at <= stop <= self._at + len(self._data):
            self._source.seek(at)
            self._at = at
            self._data = self._source.read(min(max(length, self._ahead), self._end - at))
        return self._data, at - self._at
