"""What the footer of a Parquet file says of the columns in its row groups.

[apache/parquet-format, src/main/thrift/parquet.thrift]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pate_cli.votes.sources.thrift import Compact

# The numbers of fields: of the file, a row group, a column in it, and what is said of that.
_ROW_GROUPS, _COLUMNS, _META = 4, 1, 3
_KIND, _PATH, _VALUES, _SIZE, _PACKED, _DATA, _DICTIONARY = 1, 3, 5, 6, 7, 9, 11
_TEXT = 6


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
        footer = Compact(source.read(length)).struct()
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
        entries=int(meta[_VALUES]),
        size=int(meta[_SIZE]),
        packed=int(meta[_PACKED]),
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
