"""Files of labels: what each format holds, how it is written as labels come, and how it is read.

To add a format, write two functions and add one line to `FORMATS`. The same labels give the same
bytes, however they were cut when they came: files hold no clock, no host name and no random number.
"""

from __future__ import annotations

import io
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from pate_cli.core.arrays import NO_LABEL
from pate_cli.core.arrow import column_of, filled
from pate_cli.core.errors import ParameterError, UsageError
from pate_cli.core.words import LabelFormat
from pate_cli.files.protected import Replaces, beginning
from pate_cli.files.results import column_names

_COLUMNS: Final = (("label", "source"), ("label", "yes", "source"), ("labels", "unanswered"))
BEHIND_IDS: Final = frozenset().union(*_COLUMNS)
"""The columns behind that of ids, in any form."""

# One label a query. Several labels a query are told from votes of teachers by nothing.
_NPY: Final = beginning(
    rb"\x93NUMPY\x01\x00..\{'descr': '<i4', 'fortran_order': False, 'shape': \(\d+,\)"
)
_ROW_GROUP: Final = 1 << 20  # fixed here, so that a library's default never changes the bytes
_TEXT_ROWS: Final = 1 << 16  # rows that are turned into text at a time
_NEEDS_QUOTES: Final = re.compile(r'[",\r\n]')


class Outline(NamedTuple):
    """The columns and the size of a file of labels, known before its first row.

    Attributes:
        label_format: the format of the file.
        schema: the columns in Arrow.
        several: how many labels a query has; None where it has one.
        rows: how many rows of labels there will be.
    """

    label_format: LabelFormat
    schema: pa.Schema
    several: int | None
    rows: int


class FileFormat(NamedTuple):
    """How files of one format are written and read, and what they hold.

    Attributes:
        write: writes the rows of labels, in parts, to a file.
        read: returns the rows of an open file, with the columns that it was written from or fewer;
            whatever error a library raises says that the file is damaged.
        least_bytes: how many bytes a row of labels has at least.
        part_rows: how many labels are written at a time.
        lists: with several labels a query, whether a row is a query, with lists of what its labels
            are called, and not a query and a label.
        texts: whether ids and names of classes are in it.
        metadata: whether the public parameters of the mechanism are in it.
    """

    write: Callable[[Iterator[pa.RecordBatch], Outline, IO[bytes]], None]
    read: Callable[[Any], pa.Table]
    least_bytes: int
    part_rows: int = _TEXT_ROWS
    lists: bool = True
    texts: bool = True
    metadata: bool = False


def write_npy(parts: Iterator[pa.RecordBatch], outline: Outline, file: IO[bytes]) -> None:
    """Write int32 [queries], -1 for none; or int8 [queries, labels]. Ids have no place in it."""
    several, shape = outline.several, [outline.rows]
    kind, name = ("<i4", "label") if several is None else ("|i1", "yes")
    if several is not None:
        shape = [outline.rows // several, several]
    header = {"descr": kind, "fortran_order": False, "shape": tuple(shape)}
    np.lib.format.write_array_header_1_0(file, header)
    for part in parts:
        said = part[name].indices if pa.types.is_dictionary(part[name].type) else part[name]
        numbers = filled(said.cast(pa.int32()), NO_LABEL)
        file.write(numbers.astype(kind, copy=False).tobytes())


def read_npy(file: Any) -> pa.Table:
    """Return the column of labels; nothing tells the teachers' from a student's."""
    said = np.lib.format.read_array(file, allow_pickle=False).ravel()
    return pa.table({"label": column_of(said, said < 0)})


def write_parquet(parts: Iterator[pa.RecordBatch], outline: Outline, file: IO[bytes]) -> None:
    """Write the ids, label (null for none) and source, or the columns of lists or pairs."""
    from pyarrow import parquet

    single, query = outline.several is None, outline.schema.field(0)
    repeated = ["source"]
    if not single:
        repeated += ["labels.list.element", "unanswered.list.element"]
    if not single or pa.types.is_dictionary(outline.schema.field("label").type):
        repeated.append("label")
    # Numbers of rows are stored as steps of 1: in a third of the time and next to no space.
    steps = {query.name: "DELTA_BINARY_PACKED"}
    numbered = pa.types.is_integer(query.type)
    with parquet.ParquetWriter(
        file,
        outline.schema,
        version="2.6",
        column_encoding=steps if numbered and single else None,
        compression="zstd",
        use_dictionary=repeated,
        write_page_checksum=True,  # of the page as it is stored: a bit that flips is told
    ) as writer:
        for part in parts:
            writer.write_batch(part, row_group_size=_ROW_GROUP)


def read_parquet(file: Any) -> pa.Table:
    """Return the rows; reading a whole data set would take a query, with all that it imports."""
    from pyarrow import parquet

    with parquet.ParquetFile(file) as one:
        return one.read()


def write_arrow(parts: Iterator[pa.RecordBatch], outline: Outline, file: IO[bytes]) -> None:
    """Write the columns of Parquet as an Arrow IPC file."""
    with pa.ipc.new_file(file, outline.schema) as writer:
        for part in parts:
            writer.write_batch(part)


def read_arrow(file: Any) -> pa.Table:
    """Return the rows of an Arrow IPC file."""
    return pa.ipc.open_file(file).read_all()


def write_csv(parts: Iterator[pa.RecordBatch], outline: Outline, file: IO[bytes]) -> None:
    """Write the columns of Parquet below a line of their names; no answer is an empty field."""

    def field(value: Any) -> str:
        # [RFC 4180, section 2, rules 5 to 7]
        if not isinstance(value, str):
            return "" if value is None else str(value).lower()  # false and true, as JSON has them
        return '"' + value.replace('"', '""') + '"' if _NEEDS_QUOTES.search(value) else value

    names = outline.schema.names
    file.write((",".join(map(field, names)) + "\n").encode())
    _write_lines(parts, file, ["", *[","] * (len(names) - 1), "\n"], field)


def read_csv(file: Any) -> pa.Table:
    """Return the rows, of which an id may hold line ends."""
    from pyarrow import csv

    return csv.read_csv(file, parse_options=csv.ParseOptions(newlines_in_values=True))


def write_jsonl(parts: Iterator[pa.RecordBatch], outline: Outline, file: IO[bytes]) -> None:
    """Write an object a line with the columns of Parquet; no answer is null."""
    say = json.JSONEncoder(separators=(",", ":")).encode
    first, *others = (f"{say(name)}:" for name in outline.schema.names)
    _write_lines(parts, file, ["{" + first, *("," + each for each in others), "}\n"], say)


def read_jsonl(file: Any) -> pa.Table:
    """Return the rows without their ids."""
    columns: dict[str, list[Any]] = {}
    for line in io.BufferedReader(file):
        for name, value in json.loads(line).items():
            columns.setdefault(name, []).append(value)
    return pa.table({name: columns[name] for name in columns if name in BEHIND_IDS})


FORMATS: Final[dict[LabelFormat, FileFormat]] = {
    LabelFormat.PARQUET: FileFormat(write_parquet, read_parquet, 0, _ROW_GROUP, metadata=True),
    LabelFormat.ARROW: FileFormat(write_arrow, read_arrow, 12, _ROW_GROUP, metadata=True),
    LabelFormat.NPY: FileFormat(write_npy, read_npy, 1, lists=False, texts=False),
    LabelFormat.CSV: FileFormat(write_csv, read_csv, 8, lists=False),
    LabelFormat.JSONL: FileFormat(write_jsonl, read_jsonl, 30),
}
"""All that is known of a format, but its name and its suffixes."""


def labels_in(kind: LabelFormat) -> Replaces:
    """Replace labels in a format: the column of ids may have any name, those behind it not."""
    if kind is LabelFormat.NPY:
        return _NPY
    return lambda file: column_names(file, kind)[1:] in _COLUMNS


def refuse_names(kind: LabelFormat) -> None:
    """UsageError for a format without texts, where labels are names that nobody listed."""
    if not FORMATS[kind].texts:
        raise UsageError(
            f"{kind} holds no names, and nobody listed those of labels; give `label_format` "
            f"{'|'.join(formats_with('texts'))}"
        )


def formats_with(what: str) -> list[LabelFormat]:
    """Return the formats that hold texts or metadata."""
    return [name for name, kind in FORMATS.items() if getattr(kind, what)]


def _write_lines(
    parts: Iterator[pa.RecordBatch], file: IO[bytes], around: list[str], say: Callable[[Any], str]
) -> None:
    """Write rows as lines: what `say` makes of each column, and before, between and after them."""
    first, *between, last = around
    for part in parts:
        ids, *others = part.columns
        keys = map(str if pa.types.is_integer(ids.type) else say, ids.to_pylist())
        columns = map(_texts, others, between, itertools.repeat(say))
        rows = zip(itertools.repeat(first), keys, *columns, itertools.repeat(last))
        file.write("".join(itertools.chain.from_iterable(rows)).encode())


def _texts(column: pa.Array, before: str, say: Callable[[Any], str]) -> list[str]:
    """Return `before` and what `say` makes of each value; it is asked once for equal ones."""
    if pa.types.is_list(column.type):
        return [before + say(value) for value in column.to_pylist()]
    coded = column.dictionary_encode()
    texts = [before + say(value) for value in [*coded.dictionary.to_pylist(), None]]
    places = filled(coded.indices, len(texts) - 1)
    found: list[str] = np.array(texts, dtype=object)[places].tolist()
    return found


def recut(batches: Iterable[pa.RecordBatch], outline: Outline) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in parts of one size, so that how they came leaves no trace.

    ParameterError, before the file is ended, if there are not as many as the outline says.
    """
    per_query = outline.several or 1
    part, lists = FORMATS[outline.label_format].part_rows, FORMATS[outline.label_format].lists
    per_row = per_query if lists else 1
    size = max(part // per_query, 1) * per_query // per_row
    held: list[pa.RecordBatch] = []
    room, taken = size, 0
    for batch in batches:
        start = 0
        while start < batch.num_rows:
            held.append(batch.slice(start, room))
            start, room = start + room, room - held[-1].num_rows
            if not room:
                yield _whole(held)
                held, room = [], size
        taken += batch.num_rows * per_row
    if taken != outline.rows:
        raise ParameterError(f"the file was to hold {outline.rows} rows and got {taken}")
    if held:
        yield _whole(held)


def _whole(pieces: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Return the rows of all pieces in buffers of their own, in which nothing else stands."""
    nothing = pieces[0].slice(0, 0)
    return pa.concat_batches([*pieces, nothing])
