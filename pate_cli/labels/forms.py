"""Files of labels. Each format is one function that writes parts of labels as they come.

To add a format, write its function and add one line to `FORMATS`. The same labels give the same
bytes, however they were cut when they came: files hold no clock, no host name and no random number.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pate_cli.core.arrays import NO_LABEL, SOURCES
from pate_cli.core.arrow import column_of, texts_at, texts_of
from pate_cli.core.errors import ParameterError, UsageError
from pate_cli.core.formulas import as_text, refuse_escapes
from pate_cli.core.label_set import LabelSet
from pate_cli.core.words import LabelFormat, LabelsAs
from pate_cli.files.draft import ByteSink, Draft

_ROW_GROUP: Final = 1 << 20  # fixed here, so that a library's default never changes the bytes
_TEXT_ROWS: Final = 1 << 16  # rows that are turned into text at a time
_NEEDS_QUOTES: Final = re.compile(r'[",\r\n]')


@dataclass(frozen=True)
class LabelForm:
    """The form of a file of labels.

    Attributes:
        label_format: the format of the file.
        labels_as: with several labels a query, whether a row is a query (lists) or a query and a
            label (pairs); None for lists, or pairs in CSV.
        escape_formulas: in CSV, whether texts that begin as formulas do get an apostrophe.
    """

    label_format: LabelFormat
    labels_as: LabelsAs | None = None
    escape_formulas: bool = False

    def check(self, label_set: LabelSet | None, *, unlisted: bool = False) -> None:
        """Raise UsageError if labels of these queries have no such form.

        Args:
            label_set: the labels of a query, where it has several.
            unlisted: whether nobody listed the classes, so that labels are texts.
        """
        if self.escape_formulas:
            refuse_escapes(self.label_format)
        if label_set is None and self.labels_as is not None:
            raise UsageError("`labels_as` goes with several labels a query; these have one")
        if self.label_format is LabelFormat.CSV and self.labels_as is LabelsAs.LISTS:
            raise UsageError(
                f"CSV has no lists of labels; give `labels_as` {LabelsAs.PAIRS}, or write Parquet "
                "or JSONL"
            )
        if self.label_format is LabelFormat.NPY and unlisted:
            raise UsageError(
                "NPY holds numbers, and labels that nobody listed are texts; write Parquet, CSV or "
                "JSONL"
            )


class LabelRows(NamedTuple):
    """Consecutive rows of labels, as columns: ids, classes (-1 for none), places in SOURCES."""

    ids: NDArray[Any]
    labels: NDArray[np.integer[Any]]
    sources: NDArray[np.uint8]

    def cut(self, rows: slice) -> LabelRows:
        """Return some of the rows."""
        return LabelRows(self.ids[rows], self.labels[rows], self.sources[rows])


_NO_ROWS: Final = LabelRows(np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.uint8))


class Outline(NamedTuple):
    """What all rows of a file look like.

    Attributes:
        form: the form of the file.
        metadata: public parameters of the mechanism.
        label_names: what classes are called; None for their numbers.
        label_set: the labels of a query, where it has several.
        numbered: whether ids are numbers, not texts.
        length: how many rows of labels there will be, if that is known.
    """

    form: LabelForm
    metadata: Mapping[str, str]
    label_names: tuple[str, ...] | None
    label_set: LabelSet | None
    numbered: bool
    length: int | None = None

    @property
    def lists(self) -> bool:
        """Whether a row of the file is a query, whatever number of labels it has."""
        pairs = self.form.labels_as is LabelsAs.PAIRS or self.form.label_format is LabelFormat.CSV
        return self.label_set is None or not pairs

    @property
    def per_query(self) -> int:
        """How many rows are one query."""
        return 1 if self.label_set is None else self.label_set.count

    def ids(self, rows: LabelRows) -> NDArray[Any]:
        """Return the query ids of the rows of the file that rows of labels become."""
        return rows.ids[:: self.per_query] if self.lists else rows.ids

    def said(self, rows: LabelRows) -> dict[str, pa.Array]:
        """Return the columns behind the query id."""
        sources, none = texts_at(SOURCES, rows.sources), rows.labels == NO_LABEL
        if self.label_set is None:
            labels = column_of(rows.labels, none)
            if self.label_names is not None:
                labels = pa.DictionaryArray.from_arrays(labels, texts_of(self.label_names))
            return {"label": labels, "source": sources}
        count, names = self.label_set.count, self.label_set.names
        titles = column_of(np.arange(count, dtype=np.int32)) if names is None else texts_of(names)
        if self.lists:
            said = self.label_set.decided(rows.labels)
            chosen = {"labels": said == 1, "unanswered": said == NO_LABEL}
            return {name: _lists(each, titles) for name, each in chosen.items()}
        label = titles.take(column_of(np.arange(len(rows.ids)) % count))
        yes = column_of(rows.labels, none).cast(pa.bool_())
        return {"label": label, "yes": yes, "source": sources}

    def columns(self, rows: LabelRows) -> dict[str, pa.Array]:
        """Return the columns of a file."""
        ids = self.ids(rows)
        first = column_of(ids) if self.numbered else texts_of(ids.tolist())
        return {"query_id": first, **self.said(rows)}

    @property
    def schema(self) -> pa.Schema:
        """The columns in Arrow, with the metadata of the labels under the key `pate`."""
        metadata: dict[str, Any] = dict(self.metadata)
        if self.label_names is not None:
            metadata["label_names"] = list(self.label_names)
        unanswered = "label" if self.label_set is None else "yes"
        fields = [
            pa.field(name, column.type, nullable=name == unanswered)
            for name, column in self.columns(_NO_ROWS).items()
        ]
        return pa.schema(fields, {"pate": json.dumps(metadata, sort_keys=True)})

    def batch(self, rows: LabelRows) -> pa.RecordBatch:
        """Return rows in the columns of the schema."""
        return pa.RecordBatch.from_arrays([*self.columns(rows).values()], schema=self.schema)


def write_form(rows: Iterable[LabelRows], outline: Outline, file: ByteSink) -> None:
    """Write rows, in pieces of any length, to an open file as they come.

    At most a row group of them is held back. A file that is given up, because drawing or writing
    failed, is never ended as if whole. ParameterError for another number of rows than promised.
    """
    write, size = FORMATS[outline.form.label_format]
    whole = True

    def put(data: Any) -> int:
        # Arrow ends a Parquet file also where its writer is only let go of: what it still writes
        # after a failure goes nowhere.
        if whole:
            file.write(data)
        return len(data)

    try:
        write(_recut(rows, outline, size), outline, Draft(put))
    except BaseException:
        whole = False
        raise


def write_npy(parts: Iterator[LabelRows], outline: Outline, file: Draft) -> None:
    """Write int32 [queries], -1 for none; or int8 [queries, labels]. Ids have no place in it."""
    if outline.length is None:
        raise ParameterError("an NPY file begins with its length; give the number of `rows`")
    several = outline.label_set is not None
    shape = (outline.length // outline.per_query, *([outline.per_query] if several else []))
    kind = "|i1" if several else "<i4"
    header = {"descr": kind, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    for part in parts:
        file.write(part.labels.astype(kind, copy=False).tobytes())


def write_parquet(parts: Iterator[LabelRows], outline: Outline, file: Draft) -> None:
    """Write query_id, label (null for none) and source, or the columns of lists or pairs."""
    from pyarrow import parquet

    repeated = ["source"] if outline.label_names is None else ["label", "source"]
    if outline.label_set is not None:
        repeated = ["source", "label", "labels.list.element", "unanswered.list.element"]
    # Numbers of rows are stored as steps of 1: in a third of the time and next to no space.
    steps = {"query_id": "DELTA_BINARY_PACKED"}
    writer = parquet.ParquetWriter(
        file,
        outline.schema,
        version="2.6",
        column_encoding=steps if outline.numbered and outline.label_set is None else None,
        compression="zstd",
        use_dictionary=repeated,
        write_page_checksum=True,  # of the page as it is stored: a bit that flips is told
    )
    for part in parts:
        writer.write_batch(outline.batch(part), row_group_size=_ROW_GROUP)
    writer.close()


def write_arrow(parts: Iterator[LabelRows], outline: Outline, file: Draft) -> None:
    """Write the columns of Parquet as an Arrow IPC file."""
    writer = pa.ipc.new_file(file, outline.schema)
    for part in parts:
        writer.write_batch(outline.batch(part))
    writer.close()


def write_csv(parts: Iterator[LabelRows], outline: Outline, file: Draft) -> None:
    """Write the columns of Parquet below a line of their names; no answer is an empty field."""

    def field(value: str | int | None) -> str:
        # [RFC 4180, section 2, rules 5 to 7]
        if not isinstance(value, str):
            return "" if value is None else str(value).lower()  # false and true, as JSON has them
        text = as_text(value) if outline.form.escape_formulas else value
        return '"' + text.replace('"', '""') + '"' if _NEEDS_QUOTES.search(text) else text

    def ids(values: list[Any]) -> Iterable[str]:
        return map(str if outline.numbered else field, values)

    def rest(row: dict[str, Any]) -> str:
        return ",".join(["", *map(field, row.values())])

    file.write((",".join(outline.schema.names) + "\n").encode())
    for part in parts:
        file.write(_lines(part, outline, "", ids, rest))


def write_jsonl(parts: Iterator[LabelRows], outline: Outline, file: Draft) -> None:
    """Write an object a line with the columns of Parquet; no answer is null."""

    def ids(values: list[Any]) -> Iterable[str]:
        # A line feed inside a text is escaped, so that a bare one can stand between the texts.
        return json.dumps(values, separators=("\n", ":"))[1:-1].split("\n")

    def rest(row: dict[str, Any]) -> str:
        return "," + json.dumps(row, separators=(",", ":"))[1:]

    for part in parts:
        file.write(_lines(part, outline, '{"query_id":', ids, rest))


Write: TypeAlias = Callable[[Iterator[LabelRows], Outline, Draft], None]

FORMATS: Final[dict[LabelFormat, tuple[Write, int]]] = {
    LabelFormat.PARQUET: (write_parquet, _ROW_GROUP),
    LabelFormat.ARROW: (write_arrow, _ROW_GROUP),
    LabelFormat.NPY: (write_npy, _TEXT_ROWS),
    LabelFormat.CSV: (write_csv, _TEXT_ROWS),
    LabelFormat.JSONL: (write_jsonl, _TEXT_ROWS),
}
"""What writes each format, and in parts of how many rows."""


def _lines(
    part: LabelRows,
    outline: Outline,
    before: str,
    ids: Callable[[list[Any]], Iterable[str]],
    rest: Callable[[dict[str, Any]], str],
) -> bytes:
    """Return rows as lines: `before`, the id, and the rest, which is the same text for many."""
    if outline.label_set is not None and outline.lists:
        kinds: NDArray[Any] = outline.label_set.decided(part.labels)
    else:
        label = np.arange(len(part.ids)) % outline.per_query
        kinds = (label << 34) | ((part.labels.astype(np.int64) + 1) << 2) | part.sources
    axis = None if kinds.ndim == 1 else 0
    _, first, which = np.unique(kinds, return_index=True, return_inverse=True, axis=axis)
    said = outline.said(part)
    texts = [rest({name: said[name][at].as_py() for name in said}) + "\n" for at in first.tolist()]
    pieces = [before] * (3 * which.size)
    pieces[1::3] = ids(outline.ids(part).tolist())
    pieces[2::3] = np.array(texts, dtype=object)[which.reshape(-1)].tolist()
    return "".join(pieces).encode()


def _lists(chosen: NDArray[np.bool_], titles: pa.Array) -> pa.Array:
    """Return for each query the list of the labels that are chosen; [queries, labels]."""
    ends = np.cumsum([0, *np.count_nonzero(chosen, axis=1)], dtype=np.int32)
    each = titles.take(column_of(np.nonzero(chosen)[1]))
    kind = pa.list_(pa.field("item", titles.type, nullable=False))
    return pa.ListArray.from_arrays(column_of(ends), each, type=kind)


def _recut(rows: Iterable[LabelRows], outline: Outline, size: int) -> Iterator[LabelRows]:
    """Yield the same rows in parts of one size, so that how they came leaves no trace.

    ParameterError, before the file is ended, if there are not as many as the outline says.
    """
    size = max(size // outline.per_query, 1) * outline.per_query
    held: list[LabelRows] = []
    room, taken = size, 0
    for piece in rows:
        start, length = 0, len(piece.ids)
        while start < length:
            held.append(piece.cut(slice(start, start + room)))
            start, room = start + room, room - len(held[-1].ids)
            if not room:
                yield stacked(held)
                held, room = [], size
        taken += length
    if outline.length not in (None, taken):
        raise ParameterError(f"the file was to hold {outline.length} rows and got {taken}")
    if held:
        yield stacked(held)


def stacked(pieces: Iterable[LabelRows]) -> LabelRows:
    """Return the rows of several pieces, at least one, in order."""
    ids, labels, sources = map(np.concatenate, zip(*pieces, strict=True))
    return LabelRows(ids, labels, sources)
