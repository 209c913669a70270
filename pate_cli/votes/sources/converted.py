"""Text and Arrow files as temporary Parquet, written once in bounded memory.

Each format has a reader that settles the schema of all parts first and then hands out their rows:
what a column holds must not depend on the part, nor on what stands in its first rows.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pate_cli.core.errors import VoteError
from pate_cli.votes.columns import TEACHER, is_text
from pate_cli.votes.sources import arrow_files, delimited, json_documents, json_lines
from pate_cli.votes.sources.arrow_files import LONG_TEXTS, MOST_UNPACKED
from pate_cli.votes.sources.copies import LARGE, Copies, leave_room
from pate_cli.votes.sources.formats import Format, SourceFile, is_utf16
from pate_cli.votes.sources.text import in_utf8, refuse_other_bytes

Tables: TypeAlias = Iterator[tuple[Any, Iterator[Any]]]
"""Of each part its schema, and its rows as record batches of this schema."""

_Reader: TypeAlias = Callable[
    [Sequence[SourceFile], Collection[str], Callable[[int], None]], Tables
]
_READERS: dict[Format, _Reader] = {
    Format.CSV: delimited.tables,
    Format.JSONL: json_lines.tables,
    Format.ARROW: arrow_files.tables,
}
# So often a part is read: text for its letters, for what its columns hold, and for its rows.
_READINGS = {Format.CSV: 3, Format.JSONL: 3, Format.ARROW: 1}
# A row group is decoded from its start and each of its columns costs something by itself.
_GROUP_ENTRIES = 1 << 21
_TEXT_ENTRIES = 1 << 17
_WIDE_ENTRIES = 1 << 23
_WIDE_ROWS = 1 << 12


def converted(
    parts: Sequence[SourceFile], kind: Format, copies: Copies, ids: Collection[str]
) -> Iterator[Path]:
    """Yield a Parquet file for each part of a format, `ids` as in `locate`; parts are local.

    Raises:
        VoteError: a part is damaged, or its columns are no table.
    """
    needed = [_needed(part, kind, copies) for part in parts]
    copies.expect(_READINGS[kind] * sum(Path(part.path).stat().st_size for part in needed))
    for part, (schema, batches) in zip(
        needed, _READERS[kind](needed, ids, copies.passed), strict=True
    ):
        path = copies.new(part.name)
        with copies.making(part.name):
            texts = any(is_text(it.type) and it.name not in ids for it in schema)
            entries = _TEXT_ENTRIES if texts else _GROUP_ENTRIES
            _write(path, schema, _limited(batches, schema, kind, copies), part.name, entries)
        copies.drop(part.path)
        yield path


def _needed(part: SourceFile, kind: Format, copies: Copies) -> SourceFile:
    """The part; a text in UTF-8, with a row a line, and of a long one the rows that are asked."""
    if kind is Format.ARROW:
        return part
    with Path(part.path).open("rb") as file:
        foreign = is_utf16(file.read(2))
    if foreign:
        part = _instead(part, copies.rewritten(in_utf8(part), part.name), copies)
    if kind is Format.JSONL and not json_documents.by_line(part):
        refuse_other_bytes(part, copies.passed)
        lines = json_documents.lines(part)
        part = _instead(part, copies.rewritten(lines, part.name), copies)
    cut = copies.beginning(part.path, part.name)
    return part if cut is None else _instead(part, cut, copies)


def _instead(part: SourceFile, copy: Path, copies: Copies) -> SourceFile:
    """A copy of a part, under its name; the part goes if it is one itself."""
    copies.drop(part.path)
    return SourceFile(part.name, str(copy))


def _limited(batches: Iterator[Any], schema: Any, kind: Format, copies: Copies) -> Iterator[Any]:
    """Of Arrow, which is not cut as text is, the batches that hold the rows that are asked."""
    left = copies.rows if kind is Format.ARROW and TEACHER not in schema.names else None
    for batch in batches:
        yield batch
        if left is not None:
            left -= batch.num_rows
            if left <= 0:
                return


def _write(path: Path, schema: Any, batches: Iterator[Any], name: str, entries: int) -> None:
    with _storable(name):
        writer = pq.ParquetWriter(path, schema)
    with writer:
        held: list[Any] = []
        rows = size = taken = 0
        for batch in batches:
            if not batch.num_rows:
                continue
            size = size or _group_rows(batch, entries)
            start = 0
            while start < batch.num_rows:
                piece = batch.slice(start, size - rows)
                held.append(piece)
                taken += piece.nbytes
                if taken > MOST_UNPACKED:
                    raise VoteError(f"{name}: {LONG_TEXTS}")
                start += piece.num_rows
                rows += piece.num_rows
                if rows == size:
                    _flush(writer, held, schema, path, name)
                    held, rows, taken = [], 0, 0
        if held:
            _flush(writer, held, schema, path, name)


def _flush(writer: Any, held: list[Any], schema: Any, path: Path, name: str) -> None:
    table = pa.Table.from_batches(held, schema=schema)
    with _storable(name):
        writer.write_table(table, row_group_size=table.num_rows)
    if path.stat().st_size > LARGE:
        leave_room(path)


@contextlib.contextmanager
def _storable(name: str) -> Iterator[None]:
    try:
        yield
    except pa.ArrowException as error:
        raise VoteError(f"{name}: has a column of a type that is no vote; drop it") from error


def _group_rows(batch: Any, entries: int) -> int:
    """Rows of a row group, by the width of the first row alone: no vote decides where one ends."""
    width = 1 if not batch.num_columns else 0
    for column in batch.slice(0, 1).columns:
        while pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
            column = pc.list_flatten(column)
        width += max(1, len(column))
    return max(1, entries // width, min(_WIDE_ROWS, _WIDE_ENTRIES // width))
