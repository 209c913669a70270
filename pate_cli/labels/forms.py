"""Write and read files of labels, with one pair of functions for each format.

To add a format, write two functions and add one line to `FORMATS`. The same labels always give the
same bytes, however a run splits them into parts. A file of labels contains no time of writing, no
host name and no random number.
"""

from __future__ import annotations

import io
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pate_cli.core.arrays import NO_LABEL
from pate_cli.core.errors import ParameterError, UsageError
from pate_cli.core.words import LabelFormat
from pate_cli.files.protected import Replaces, beginning
from pate_cli.files.results import column_names

_COLUMNS: Final = (("label", "source"), ("label", "yes", "source"), ("labels", "unanswered"))
BEHIND_IDS: Final = frozenset().union(*_COLUMNS)
"""The columns after the column of ids, in any format."""

# Only files with one label per query are recognised: several labels per query look like votes.
_NPY: Final = beginning(
    rb"\x93NUMPY\x01\x00..\{'descr': '<i4', 'fortran_order': False, 'shape': \(\d+,\)"
)
_ROW_GROUP: Final = 1 << 20  # A new default of a library must not change the bytes.
_TEXT_ROWS: Final = 1 << 16  # How many rows are turned into text at a time.
_NEEDS_QUOTES: Final = re.compile(r'[",\r\n]')
_MOST_BYTES: Final = 2**31 - 1  # Arrow stores offsets of texts in 32 bits.


class Outline(NamedTuple):
    """The columns and the size of a file of labels, known before its first row.

    Attributes:
        label_format: the format of the file.
        schema: the columns in Arrow.
        several: the number of labels of each query; None if queries have a single label.
        rows: how many rows of labels there will be.
    """

    label_format: LabelFormat
    schema: pa.Schema
    several: int | None
    rows: int


class FileFormat(NamedTuple):
    """How files of one format are written and read, and what they contain.

    Attributes:
        write: writes the rows of labels, in parts, to a file.
        read: returns the rows of an open file as a table, which may lack some columns, such as the
            ids. If `read` raises any exception, the file is damaged.
        least_bytes: the smallest number of bytes that a row of labels takes.
        part_rows: how many labels are written at a time.
        lists: how several labels of a query are stored: if true, as lists in one row; if false,
            each label in its own row.
        texts: whether the format can hold ids and names of classes.
        metadata: whether the format holds the public parameters of the mechanism.
    """

    write: Callable[[Iterator[pa.RecordBatch], Outline, IO[bytes]], None]
    read: Callable[[Any], pa.Table]
    least_bytes: int
    part_rows: int = _TEXT_ROWS
    lists: bool = True
    texts: bool = True
    metadata: bool = False


def write_npy(parts: Iterator[pa.RecordBatch], outline: Outline, file: IO[bytes]) -> None:
    """Write the labels as an array without ids, in which -1 means no label.

    If queries have one label, the array has one int32 number for each query. If they have several
    labels, the array has one int8 number for each query and label: 1 for yes and 0 for no.
    """
    several, shape = outline.several, [outline.rows]
    kind, name = ("<i4", "label") if several is None else ("|i1", "yes")
    if several is not None:
        shape = [outline.rows // several, several]
    header = {"descr": kind, "fortran_order": False, "shape": tuple(shape)}
    np.lib.format.write_array_header_1_0(file, header)
    for part in parts:
        said = part[name].indices if pa.types.is_dictionary(part[name].type) else part[name]
        numbers = _filled(said.cast(pa.int32()), NO_LABEL)
        file.write(numbers.astype(kind, copy=False).tobytes())


def read_npy(file: Any) -> pa.Table:
    """Return the column of labels in an NPY file.

    NPY files do not say which labels come from teachers and which from a student.
    """
    said = np.lib.format.read_array(file, allow_pickle=False).ravel()
    return pa.table({"label": column_of(said, said < 0)})


def write_parquet(parts: Iterator[pa.RecordBatch], outline: Outline, file: IO[bytes]) -> None:
    """Write the columns of labels to a Parquet file; a null in `label` means no answer."""
    from pyarrow import parquet

    single, query = outline.several is None, outline.schema.field(0)
    repeated = ["source"]
    if not single:
        repeated += ["labels.list.element", "unanswered.list.element"]
    if not single or pa.types.is_dictionary(outline.schema.field("label").type):
        repeated.append("label")
    # Row numbers are stored as differences of 1, in a third of the time and almost no space.
    steps = {query.name: "DELTA_BINARY_PACKED"}
    numbered = pa.types.is_integer(query.type)
    with parquet.ParquetWriter(
        file,
        outline.schema,
        version="2.6",
        column_encoding=steps if numbered and single else None,
        compression="zstd",
        use_dictionary=repeated,
        write_page_checksum=True,  # A reader notices a bit that was flipped.
    ) as writer:
        for part in parts:
            writer.write_batch(part, row_group_size=_ROW_GROUP)


def read_parquet(file: Any) -> pa.Table:
    """Return the rows of a Parquet file, without the slow import of pyarrow's data sets."""
    from pyarrow import parquet

    with parquet.ParquetFile(file) as one:
        return one.read()


def write_arrow(parts: Iterator[pa.RecordBatch], outline: Outline, file: IO[bytes]) -> None:
    """Write the columns of labels to an Arrow IPC file; a null in `label` means no answer."""
    with pa.ipc.new_file(file, outline.schema) as writer:
        for part in parts:
            writer.write_batch(part)


def read_arrow(file: Any) -> pa.Table:
    """Return the rows of an Arrow IPC file."""
    return pa.ipc.open_file(file).read_all()


def write_csv(parts: Iterator[pa.RecordBatch], outline: Outline, file: IO[bytes]) -> None:
    """Write a line of column names, and a line per row; an empty field means no answer."""

    def field(value: Any) -> str:
        # [RFC 4180, section 2, rules 5 to 7]
        if not isinstance(value, str):
            return "" if value is None else str(value).lower()  # false and true, as in JSON
        return '"' + value.replace('"', '""') + '"' if _NEEDS_QUOTES.search(value) else value

    names = outline.schema.names
    file.write((",".join(map(field, names)) + "\n").encode())
    _write_lines(parts, file, ["", *[","] * (len(names) - 1), "\n"], field)


def read_csv(file: Any) -> pa.Table:
    """Return the rows of a CSV file, in which ids may contain line ends."""
    from pyarrow import csv

    return csv.read_csv(file, parse_options=csv.ParseOptions(newlines_in_values=True))


def write_jsonl(parts: Iterator[pa.RecordBatch], outline: Outline, file: IO[bytes]) -> None:
    """Write one JSON object per row, with a field for each column; null means no answer."""
    say = json.JSONEncoder(separators=(",", ":")).encode
    first, *others = (f"{say(name)}:" for name in outline.schema.names)
    _write_lines(parts, file, ["{" + first, *("," + each for each in others), "}\n"], say)


def read_jsonl(file: Any) -> pa.Table:
    """Return the rows of a file of JSON lines, without their ids."""
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
"""All properties of a format, except its name and its suffixes."""


def _filled(column: Any, value: int) -> NDArray[Any]:
    """Return an Arrow array of int32 as a numpy array, with a number in place of nulls."""
    return np.from_dlpack(column.fill_null(column_of(np.array([value], dtype=np.int32))[0]))


def column_of(values: NDArray[Any], gaps: NDArray[np.bool_] | None = None) -> Any:
    """Return numbers as an Arrow array, with nulls where `gaps` is True.

    The conversion that pyarrow offers imports pandas, which takes longer than importing numpy.
    """
    valid = None if gaps is None else pa.py_buffer(np.packbits(~gaps, bitorder="little"))
    whole = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), values.size, [valid, whole])


def texts_of(texts: Sequence[str]) -> Any:
    """Return texts as an Arrow array."""
    raw = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, raw)], dtype=np.int64)
    if ends[-1] > _MOST_BYTES:
        raise ParameterError("a column of ids or names has over 2 GiB of text; shorten the texts")
    places = pa.py_buffer(ends.astype(np.int32))
    return pa.StringArray.from_buffers(len(raw), places, pa.py_buffer(b"".join(raw)))


def labels_in(kind: LabelFormat) -> Replaces:
    """Return a function that says whether a file has labels, so that `force` may replace it.

    A file with a table has labels if all columns after the first have the names that pate gives to
    columns of labels. The first column, which has the ids of the queries, may have any name.
    """
    if kind is LabelFormat.NPY:
        return _NPY
    return lambda file: column_names(file, kind)[1:] in _COLUMNS


def refuse_names(kind: LabelFormat) -> None:
    """Raise UsageError if a format cannot store the names of classes as texts."""
    if not FORMATS[kind].texts:
        raise UsageError(
            f"{kind} cannot store the names of classes that an open vocabulary releases; give "
            f"`label_format` {'|'.join(formats_with('texts'))}"
        )


def formats_with(what: str) -> list[LabelFormat]:
    """Return the formats that can store `what`, which is "texts" or "metadata"."""
    return [name for name, kind in FORMATS.items() if getattr(kind, what)]


def _write_lines(
    parts: Iterator[pa.RecordBatch], file: IO[bytes], around: list[str], say: Callable[[Any], str]
) -> None:
    """Write one line per row: the values of the columns, between the texts in `around`.

    `say` returns a value as a text.
    """
    first, *between, last = around
    for part in parts:
        ids, *others = part.columns
        keys = map(str if pa.types.is_integer(ids.type) else say, ids.to_pylist())
        columns = map(_texts, others, between, itertools.repeat(say))
        rows = zip(itertools.repeat(first), keys, *columns, itertools.repeat(last))
        file.write("".join(itertools.chain.from_iterable(rows)).encode())


def _texts(column: pa.Array, before: str, say: Callable[[Any], str]) -> list[str]:
    """Return for each value of a column the text `before` followed by the result of `say`.

    To save time, `say` is called only once for each distinct value, unless values are lists.
    """
    if pa.types.is_list(column.type):
        return [before + say(value) for value in column.to_pylist()]
    coded = column.dictionary_encode()
    texts = [before + say(value) for value in [*coded.dictionary.to_pylist(), None]]
    places = _filled(coded.indices, len(texts) - 1)
    found: list[str] = np.array(texts, dtype=object)[places].tolist()
    return found


def recut(batches: Iterable[pa.RecordBatch], outline: Outline) -> Iterator[pa.RecordBatch]:
    """Yield the rows of all batches in parts of one size, whatever the sizes of the batches.

    Parts of one size make the bytes of the file independent of the sizes of the batches. If there
    are not as many rows as the outline says, ParameterError is raised before the file is complete.
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
        raise ParameterError(f"the labels have {taken} rows, not {outline.rows}; correct `rows`")
    if held:
        yield _whole(held)


def _whole(pieces: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Return the rows of all pieces, copied to buffers that contain no other rows."""
    nothing = pieces[0].slice(0, 0)
    return pa.concat_batches([*pieces, nothing])
