"""JSON lines: an object a line, whose names are columns.

What a column holds is settled on all its values in all parts of a source before any is read, as in
`delimited`; numbers and texts in one column are refused, for JSON tells them apart.
"""

from __future__ import annotations

import codecs
import contextlib
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json as pjson
import pyarrow.types as t

from pate_cli.core.errors import VoteError, quoted
from pate_cli.votes.columns import check_columns
from pate_cli.votes.sources.formats import SourceFile
from pate_cli.votes.sources.text import refuse_other_bytes

_BLOCK = 1 << 22
"""Bytes parsed at once."""
LONGEST = 1 << 26
"""Bytes of the longest line."""
DEEPEST = 64
"""Brackets within brackets; the parser and its types take stack for each."""

_CELLS = 1 << 23
"""Rows times columns parsed at once: a name that one line brings is a column of all the lines, so
that a block of many short lines, each with another name, would be as large as its square."""

_MOST_CELLS, _MOST_EMPTY = 1 << 26, 128
"""So many cells of a file may be empty, or so many for each byte: a name is one in every row."""

# A text, and the colon behind it if it is a name.
_TEXT = re.compile(rb'"((?:[^"\\]++|\\.)*+)"(\s*:)?')
# What a byte adds to the number of open brackets.
_STEPS = np.zeros(256, dtype=np.int8)
_STEPS[list(b"[{")], _STEPS[list(b"]}")] = 1, -1


def tables(
    parts: Sequence[SourceFile], ids: Collection[str], passed: Callable[[int], None]
) -> Iterator[tuple[Any, Iterator[Any]]]:
    """Yield the schema and the record batches of each part; a column has one type in all of them.

    A name that a row lacks is a null. Ids are what they are written as, numbers or texts. `passed`
    is told how many bytes were read, as in Copies.

    Raises:
        VoteError: a line that is no object, objects within it, or a column of mixed kinds.
    """
    del ids
    seen: dict[str, Any] = {}
    for part in parts:
        refuse_other_bytes(part, passed)
        row = size = 0
        for block in _blocks(part, passed):
            row += _learn(seen, block, row, part.name)
            size += len(block)
            if row * len(seen) > max(_MOST_CELLS, _MOST_EMPTY * size):
                raise VoteError(
                    f"{part.name}: its rows name {len(seen)} columns and each row very few of "
                    "them; write every column into every row, or sparse lists (label, count)"
                )
    schema = pa.schema([(name, _without_nulls(kind)) for name, kind in seen.items()])
    for part in parts:
        yield schema, _batches(part, schema, passed)


def _batches(part: SourceFile, schema: Any, passed: Callable[[int], None]) -> Iterator[Any]:
    row = 0
    for block in _blocks(part, passed):
        for piece in _pieces(block, len(schema)):
            with _Diagnosis(piece, row, part.name, {}):
                table = _parsed(piece, schema)
                table.validate(full=True)
            row += table.num_rows
            yield from table.select(schema.names).to_batches()


def _parsed(block: bytes, schema: Any = None, *, known: bool = False) -> Any:
    """A block as a table; `known`: pa.ArrowInvalid for a column that is not in `schema`."""
    # Memory of pyarrow's own: its threads may give a block back late, when Python has ended.
    copied = pa.BufferOutputStream()
    copied.write(block)
    return pjson.read_json(
        pa.BufferReader(copied.getvalue()),
        read_options=pjson.ReadOptions(use_threads=False, block_size=len(block)),
        parse_options=pjson.ParseOptions(
            explicit_schema=schema, unexpected_field_behavior="error" if known else "infer"
        ),
    )


def _pieces(block: bytes, columns: int) -> Iterator[bytes]:
    """The lines of a block, as many at once as have _CELLS cells."""
    most = max(1, _CELLS // max(1, columns))
    if block.count(b"\n") < most:
        yield block
        return
    lines = _lines(block)
    for start in range(0, len(lines), most):
        yield b"\n".join(lines[start : start + most])


def _blocks(part: SourceFile, passed: Callable[[int], None]) -> Iterator[bytes]:
    """Yield whole lines, none of them empty."""
    with Path(part.path).open("rb") as file:
        held = file.read(_BLOCK).removeprefix(codecs.BOM_UTF8)
        while held:
            more = file.read(_BLOCK)
            cut = held.rfind(b"\n") + 1 if more else len(held)
            if cut == 0 and len(held) > LONGEST:
                raise VoteError(f"{part.name}: a line is longer than {LONGEST >> 20} MB")
            block, held = held[:cut], held[cut:] + more
            passed(len(block))
            if block.strip():
                yield block


def _learn(seen: dict[str, Any], block: bytes, row: int, name: str) -> int:
    """Add what the columns of these lines hold to what was seen before; return their number."""
    with _Diagnosis(block, row, name, seen):
        lines = _lines(block)
        if not all(map(_closed, lines)) or not (_flat(block) or all(map(_flat, lines))):
            raise pa.ArrowInvalid("a line is no object")
        if _nothing_new(seen, block, len(lines)):
            return len(lines)
        names = {text[1] for text in _TEXT.finditer(block) if text[2]}
        check_columns(len(names), name)
        rows = 0
        for piece in _pieces(block, len(names)):
            table = _parsed(piece)
            rows += table.num_rows
            for part in table.schema:
                kind = _plain(part.type)
                seen[part.name] = _united(seen.get(part.name, pa.null()), kind)
        if rows != len(lines):
            raise pa.ArrowInvalid("several objects in a line")
    check_columns(len(seen), name)
    return len(lines)


def _nothing_new(seen: dict[str, Any], block: bytes, lines: int) -> bool:
    """Whether these lines hold what was seen before and nothing else: most blocks of a file."""
    if not seen:
        return False
    schema = pa.schema(list(seen.items()))
    try:
        pieces = [_parsed(piece, schema, known=True) for piece in _pieces(block, len(seen))]
    except (pa.ArrowException, ValueError, OSError):
        return False
    return lines == sum(piece.num_rows for piece in pieces)


def _lines(block: bytes) -> list[bytes]:
    """The lines of a block; those without anything are no rows."""
    return [line for line in map(bytes.strip, block.split(b"\n")) if line]


def _closed(line: bytes) -> bool:
    return line.startswith(b"{") and line.endswith(b"}")


def _flat(text: bytes) -> bool:
    """Whether brackets are not too deep; those in texts count, and then each line for itself."""
    depths = _STEPS[np.frombuffer(text, dtype=np.uint8)].cumsum(dtype=np.int32)
    return bool((depths - np.minimum.accumulate(depths)).max() <= DEEPEST)


# Types: what a column holds, from row to row.


def _plain(kind: Any) -> Any:
    """A type as it is read in the end: a text that looks like a time is a text."""
    if t.is_list(kind):
        return pa.list_(_plain(kind.value_type))
    if t.is_temporal(kind):
        return pa.string()
    if t.is_struct(kind):
        raise pa.ArrowInvalid("an object in an object")
    return kind


def _united(one: Any, other: Any) -> Any:
    if t.is_null(one) or one == other:
        return other
    if t.is_null(other):
        return one
    if t.is_list(one) and t.is_list(other):
        return pa.list_(_united(one.value_type, other.value_type))
    if {one, other} == {pa.int64(), pa.float64()}:
        return pa.float64()
    raise pa.ArrowInvalid("mixed kinds")


def _without_nulls(kind: Any) -> Any:
    """The type of a column; lists without any entry are of numbers."""
    if not t.is_list(kind):
        return kind
    inner = _without_nulls(kind.value_type)
    return pa.list_(pa.int64() if t.is_null(inner) else inner)


# What is wrong, in which row: found in a second look, for pyarrow's words may quote the votes.


class _Diagnosis:
    """Turns an error of parsing a block into one line."""

    def __init__(self, block: bytes, row: int, name: str, seen: dict[str, Any]) -> None:
        self._block, self._row, self._name, self._seen = block, row, name, seen

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, _: object) -> None:
        if isinstance(error, pa.ArrowException | ValueError | OSError | MemoryError):
            raise VoteError(f"{self._name}: {self._found()}") from error

    def _found(self) -> str:
        words = {name: _word_of_type(kind) for name, kind in self._seen.items()}
        row = self._row
        for line in _lines(self._block):
            values = None
            if _closed(line) and _flat(line):
                with contextlib.suppress(ValueError):
                    values = json.loads(line, object_pairs_hook=_Object)
            if not isinstance(values, _Object):
                return f"row {row} is no JSON object; write one object a line"
            for name, value in values.pairs:
                word, before = _word(value), words.get(name, "")
                if "objects" in word:
                    return (
                        f"row {row} has an object in column {quoted(name)}; votes are lists of "
                        "numbers, in one object a row (pandas: orient='records')"
                    )
                if "mixed" in word:
                    return (
                        f"row {row} has a list in column {quoted(name)} that mixes numbers and "
                        "others"
                    )
                if not (word.startswith(before) or before.startswith(word)):
                    return (
                        f"row {row} is the first where column {quoted(name)} holds {word}, "
                        f"in earlier rows {before}; a column holds one kind"
                    )
                words[name] = max(word, before, key=len)
            names = [name for name, _ in values.pairs]
            twice = next((name for name, times in Counter(names).items() if times > 1), None)
            if twice is not None:
                return f"row {row} names {quoted(twice)} twice"
            row += 1
        return f"cannot be read as JSON lines from row {self._row} on; a row may be damaged"


class _Object:
    """A JSON object as it is written, with names that occur twice."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        self.pairs = pairs


def _word(value: Any) -> str:
    """What a value is; empty for a null, which is anything. One that says more begins alike."""
    if isinstance(value, _Object):
        return "objects"
    if isinstance(value, list):
        inside = {_word(item) for item in value} - {""}
        inner = max(inside, key=len, default="")
        if not all(inner.startswith(word) for word in inside):
            return "mixed lists"
        return f"lists of {inner}" if inner else "lists"
    if value is None:
        return ""
    return {bool: "true or false", str: "texts"}.get(type(value), "numbers")


def _word_of_type(kind: Any) -> str:
    if t.is_list(kind):
        inner = _word_of_type(kind.value_type)
        return f"lists of {inner}" if inner else "lists"
    if t.is_null(kind):
        return ""
    if t.is_boolean(kind):
        return "true or false"
    return "texts" if t.is_string(kind) else "numbers"
