"""Files of text are read as UTF-8, and have a row a line, whatever is in them."""

from __future__ import annotations

import codecs
import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from pate_cli.core.errors import VoteError
from pate_cli.votes.columns import TEACHER
from pate_cli.votes.sources.formats import HEAD, Format, SourceFile, format_of, is_utf16
from pate_cli.votes.sources.heading import heading_of

_CHUNK = 1 << 20
_NEWLINE, _CARRIAGE, _BLANK = 10, 13, 32


class RowCounter:
    """Counts the rows of a text that comes in chunks, rather too few than too many."""

    def __init__(self, header: int) -> None:
        self._header, self._found = header, 0
        self._tail = np.full(2, _NEWLINE, dtype=np.uint8)

    @classmethod
    def of(cls, start: Any, name: str) -> RowCounter | None:
        """For a file that begins with `start`; None where its rows are no lines, or no queries."""
        begun = bytes(start)
        if is_utf16(begun):
            return None
        first, newline, _ = begun.removeprefix(codecs.BOM_UTF8).partition(b"\n")
        with contextlib.suppress(VoteError, ValueError, RecursionError):
            kind = format_of(begun[:HEAD], name)
            if kind is Format.CSV and newline:
                heading = heading_of(begun, name)
                return None if TEACHER.encode() in heading.line else cls(heading.skipped + 1)
            if kind is Format.JSONL and newline:
                names = json.loads(first)
                return cls(0) if isinstance(names, dict) and TEACHER not in names else None
        return None

    def end(self, chunk: Any, rows: int) -> int | None:
        """Where in the next chunk a line ends behind which so many rows are, if one does.

        A line counts if something other than a blank stands at its end.
        """
        found = np.concatenate([self._tail, np.frombuffer(chunk, dtype=np.uint8)])
        self._tail = found[-2:]
        one, two = found[1:-1], found[:-2]
        some = (one > _BLANK) | ((one == _CARRIAGE) & (two > _BLANK))
        ends = np.flatnonzero((found[2:] == _NEWLINE) & some)
        wanted = max(rows + self._header - self._found, 1)
        self._found += len(ends)
        return int(ends[wanted - 1]) + 1 if wanted <= len(ends) else None


def in_utf8(part: SourceFile) -> Iterator[bytes]:
    """A text in UTF-16, as Excel calls Unicode, in UTF-8.

    Raises:
        VoteError: it is no UTF-16.
    """
    decoder = codecs.getincrementaldecoder("utf-16")()
    with Path(part.path).open("rb") as file:
        while True:
            chunk = file.read(_CHUNK)
            try:
                yield decoder.decode(chunk, final=not chunk).encode()
            except UnicodeError:
                raise VoteError(
                    f"{part.name}: is damaged UTF-16 text; save the file as UTF-8"
                ) from None
            if not chunk:
                return


def refuse_other_bytes(part: SourceFile, passed: Callable[[int], None]) -> None:
    """VoteError at the first line, counted from 1, that is not UTF-8; `passed` as in Copies."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    lines = 1
    with Path(part.path).open("rb") as file:
        while True:
            chunk = file.read(_CHUNK)
            held = decoder.getstate()[0]
            try:
                decoder.decode(chunk, final=not chunk)
            except UnicodeDecodeError as error:
                line = lines + (held + chunk)[: error.start].count(b"\n")
                raise VoteError(
                    f"{part.name}: line {line} is not UTF-8 text; save the file as UTF-8"
                ) from None
            if not chunk:
                return
            passed(len(chunk))
            lines += chunk.count(b"\n")
