"""Files of text are UTF-8, whatever is in them."""

from __future__ import annotations

import codecs
from pathlib import Path

from pate_cli.errors import VoteError
from pate_cli.votes.sources.copies import Part

__all__ = ["refuse_other_bytes"]

_CHUNK = 1 << 20


def refuse_other_bytes(part: Part) -> None:
    """VoteError at the first line, counted from 1, that is not UTF-8."""
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
            lines += chunk.count(b"\n")
