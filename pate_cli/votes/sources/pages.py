"""How large a Parquet file grows as it is read, by what it says before anything is decoded.

A page of a few bytes may stand for two GB, and a text of a megabyte that is stored once for one in
every row. So the pages of columns that are read side by side are bounded, and where texts are long
fewer rows are read at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pate_cli.votes.sources.footers import Chunk
from pate_cli.votes.sources.thrift import Compact

MOST_PAGES = 1 << 29
"""Bytes of the largest pages of all columns that are read side by side, at most."""
AT_ONCE = 1 << 26
"""Bytes of texts that are read at once, about."""

_SHORT = 1 << 8  # bytes of a dictionary that nobody needs to look into
_HEADERS = (1 << 9, 1 << 13, 1 << 20, 1 << 24)  # bytes of a page's header: of most, and of any
# The numbers of fields: of a page, and of what is said of its kind.
_TYPE, _SIZE, _PACKED, _KINDS, _VALUES = 1, 2, 3, (5, 7, 8), 1
_DICTIONARY = 2


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
            compact = Compact(source.read(min(length, end - at)))
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
        yield _Page(size, values, header.get(_TYPE) == _DICTIONARY)
        at += compact.at + packed
