"""JSON that has no row a line: an array of objects, or objects over several lines.

It is cut into lines by its brackets alone; what a line holds, `json_lines` reads and checks.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import VoteError
from pate_cli.votes.sources.formats import SourceFile
from pate_cli.votes.sources.json_lines import DEEPEST, LONGEST

_CHUNK = 1 << 20
# A bracket, a text, or the beginning of one that goes on.
_INSIDE = rb'(?:[^"\\]++|\\.)*+'
_TOKEN = re.compile(rb'[\[\]{}]|"' + _INSIDE + rb'"|"', re.DOTALL)
_REST = re.compile(_INSIDE, re.DOTALL)


def by_line(part: SourceFile) -> bool:
    """Whether the first line is an object, or anything else that is none of these forms."""
    first = last = b""
    with Path(part.path).open("rb") as file:
        piece = file.readline(_CHUNK).removeprefix(codecs.BOM_UTF8)
        while piece:
            said = piece.strip()
            first, last = first or said[:1], said[-1:] or last
            if first and piece.endswith(b"\n"):
                break
            piece = file.readline(_CHUNK)
    return first != b"[" and (first != b"{" or last == b"}")


def lines(part: SourceFile) -> Iterator[bytes]:
    """The objects of a file in order, a line each, in pieces of several.

    Raises:
        VoteError: what stands beside them or in their place is none, or one has no end.
    """
    cutter = _Cutter(part.name)
    with Path(part.path).open("rb") as file:
        chunk = file.read(_CHUNK).removeprefix(codecs.BOM_UTF8)
        while chunk:
            yield b"".join(cutter.cut(chunk))
            chunk = file.read(_CHUNK)
    cutter.end()


@dataclass
class _Cutter:
    """What was read and not handed on, and where in the brackets it is.

    outer: brackets around a row, 1 within an array; None before the first.
    text: whether it is in a text, of which as much was seen.
    """

    name: str
    row: int = 0
    _held: bytes = b""
    _seen: int = 0
    _text: bool = False
    _depth: int = 0
    _outer: int | None = None
    _closed: bool = False

    def cut(self, chunk: bytes) -> Iterator[bytes]:
        """The objects that end in this chunk, each in a line."""
        self._held += chunk
        done = 0
        if self._text:
            self._go_on()
        for token in _TOKEN.finditer(self._held, self._seen):
            kind = token[0]
            self._seen = token.end() - done
            if kind[:1] == b'"':
                if self._depth == self._outer:
                    self._refuse()
                if kind == b'"':
                    self._text = True
                    break
                continue
            if kind in b"[{":
                if self._outer is None:
                    self._outer = 1 if kind == b"[" else 0
                    if kind == b"[":
                        self._between(self._held[done : token.start()], first=True)
                        done, self._seen, self._depth = token.end(), 0, 1
                        continue
                if self._depth == self._outer:
                    self._between(self._held[done : token.start()], first=not self.row)
                    if kind == b"[" or self._closed:
                        self._refuse()
                    done, self._seen = token.start(), token.end() - token.start()
                self._depth += 1
                if self._depth - (self._outer or 0) > DEEPEST:
                    self._refuse()
                continue
            self._depth -= 1
            if self._outer is not None and self._depth == self._outer:
                row = self._held[done : token.end()]
                yield row.replace(b"\n", b" ").replace(b"\r", b" ") + b"\n"
                done, self._seen = token.end(), 0
                self.row += 1
            elif self._depth < (self._outer or 0) or self._depth < 0:
                if self._outer != 1 or kind != b"]":
                    self._refuse()
                self._between(self._held[done : token.start()], first=True)
                done, self._seen, self._closed = token.end(), 0, True
                self._outer = self._depth = 0
        else:
            if not self._text:
                self._seen = len(self._held) - done
        self._held = self._held[done:]
        if self._text:
            self._go_on()
        if len(self._held) > LONGEST:
            raise VoteError(f"{self.name}: row {self.row} is longer than {LONGEST >> 20} MB")

    def _go_on(self) -> None:
        """See more of a text; what was seen of it is not looked at again."""
        rest = _REST.match(self._held, self._seen)
        self._seen = rest.end() if rest else self._seen
        if self._held[self._seen : self._seen + 1] == b'"':
            self._seen, self._text = self._seen + 1, False

    def end(self) -> None:
        """VoteError where something has no end."""
        if self._depth or self._held.strip():
            self._refuse()

    def _between(self, gap: bytes, *, first: bool) -> None:
        """VoteError for what stands between rows, but for a comma in an array."""
        comma = self._outer == 1 and not first
        if gap.strip() != (b"," if comma else b""):
            self._refuse()

    def _refuse(self) -> NoReturn:
        raise VoteError(
            f"{self.name}: row {self.row} is no JSON object; write an array of objects, or one "
            "object a line"
        )
