"""What a text says before its rows: a mark of byte order, `sep=`, comments, and the names."""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterator

from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import VoteError

DELIMITERS = {",": "a comma", ";": "a semicolon", "\t": "a tab"}
# Read as such only where none of these is there: they stand in names and within them, too.
_RARE = {"|": "a bar", " ": "a blank"}
_DECLARED = re.compile(r"\"?sep=(.)\"?\s*", re.IGNORECASE)
_LINE_END = re.compile(rb"\r\n|\r|\n")


@dataclass(frozen=True)
class Heading:
    """The line that names the columns, and what stands around it.

    Attributes:
        line: as it is written; empty where there is none.
        skipped: lines before it.
        declared: what a first line `sep=` says to stand between fields, as Excel writes and reads
            it; None without one.
        comment: the last line before it that begins with #, without that; None where none does.
        comment_line: its number, from 1.
        row: the first line behind it with something in it; empty where there is none.
    """

    line: bytes
    skipped: int
    declared: str | None
    comment: bytes | None
    comment_line: int
    row: bytes


def heading_of(start: bytes, name: str) -> Heading:
    """What stands at the beginning of a text, of which `start` has the first lines.

    Raises:
        VoteError: `sep=` says what stands between no fields.
    """
    lines = _lines(start.removeprefix(codecs.BOM_UTF8))
    declared, comment = None, None
    skipped = comment_line = 0
    names = b""
    for place, line in enumerate(lines):
        said = _DECLARED.fullmatch(line.decode(errors="replace")) if not place else None
        if said:
            declared = said[1]
            if declared not in DELIMITERS | _RARE:
                raise VoteError(
                    f"{name}: the first line says sep={declared}; between fields may stand a "
                    "comma, a semicolon, a tab, a bar or a blank"
                )
        elif line.startswith(b"#"):
            comment, comment_line = line.lstrip(b"#"), place + 1
        elif line.strip():
            names = line
            break
        skipped += 1
    row = next((line for line in lines if line.strip()), b"")
    return Heading(names, skipped, declared, comment, comment_line, row)


def _lines(start: bytes) -> Iterator[bytes]:
    at = 0
    for end in _LINE_END.finditer(start):
        yield start[at : end.start()]
        at = end.end()
    yield start[at:]


def delimiter_of(heading: Heading, name: str) -> str:
    """What stands between the fields; a comma where there is one field only.

    Raises:
        VoteError: it is unclear, or the line may not name the columns at all.
    """
    line = heading.line.decode()
    bare = _unquoted(line)
    found = [delimiter for delimiter in DELIMITERS if delimiter in bare]
    if heading.declared is not None:
        if found and heading.declared not in bare:
            raise VoteError(
                f"{name}: the first line says sep={heading.declared}, but the names of the columns "
                f"have {DELIMITERS[found[0]]} between them; drop the first line"
            )
        found = [heading.declared]
    if len(found) > 1:
        both = " and ".join(DELIMITERS[delimiter] for delimiter in found)
        raise VoteError(
            f"{name}: the first line has {both}, so it is unclear what stands between fields; "
            "rename the columns"
        )
    row = _unquoted(heading.row.decode(errors="replace"))
    delimiter = found[0] if found else _rare_one(bare, row, name)
    if heading.comment is not None:
        comment = heading.comment.decode(errors="replace")
        fields = len(_fields(line, delimiter))
        if fields > 1 and fields == len(_fields(comment, delimiter)):
            raise VoteError(
                f"{name}: line {heading.comment_line} begins with # and may name the columns, and "
                "so may the line behind it; take off the #, or drop the line"
            )
    return delimiter


def _rare_one(bare: str, row: str, name: str) -> str:
    """A bar or a blank, if it cuts the first row as it cuts the names; else a comma."""
    if bare.strip().startswith("|") and bare.count("|") > 1:
        raise VoteError(
            f"{name}: is a table drawn with bars; write it as CSV, with a comma between fields"
        )
    if "|" in bare:
        if re.search(r" \||\| ", bare):
            raise VoteError(
                f"{name}: blanks stand beside the bars between fields; write it as CSV, with a "
                "comma between them"
            )
        return "|"
    if len(bare.split()) > 1 and len(bare.split()) == len(row.split()):
        if any(line.strip().count(" ") >= len(line.split()) for line in (bare, row)):
            raise VoteError(
                f"{name}: several blanks stand between fields; write it as CSV, with a comma "
                "between them"
            )
        return " "
    return ","


def _unquoted(line: str) -> str:
    return re.sub(r'"[^"]*"', '""', line)


def _fields(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line.strip()], delimiter=delimiter), [])
    except csv.Error:
        return []
