"""Labels out: one row per query, in the file format that its reader asks for.

Whatever the format, the same table gives the same bytes: there is no clock, no host name and no
random identifier in them, so a seeded run can be compared by checksum. Pages of
Parquet carry checksums of their own.
"""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from types import MappingProxyType, TracebackType
from typing import Any, Final, Protocol, Self, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from pate_cli.core.arrays import NO_LABEL, SOURCES
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import ParameterError
from pate_cli.core.label_set import UNDECIDED, LabelSet, rows_of
from pate_cli.core.words import LabelFormat, LabelsAs
from pate_cli.files.draft import ByteSink
from pate_cli.files.results import Result
from pate_cli.labels.forms import (
    PairsForm,
    SetForm,
    csv_field,
    csv_ids,
    form_of,
    json_ids,
    text_field,
    text_ids,
)

_NONE: Final = SOURCES.index("none")
_MAX_LABEL: Final = 2**31 - 1
_PREVIEWED: Final = 5
_ROW_GROUP: Final = 1 << 20  # fixed here, so that a library's default never changes the bytes
_TEXT_ROWS: Final = 1 << 16  # rows of CSV or JSONL turned into text at a time
_REPEATED: Final = ["source", "label", "labels.list.element", "unanswered.list.element"]
_TEXT: Final = frozenset({str, np.str_})
_SURROGATE: Final = re.compile("[\ud800-\udfff]")  # half of a pair: such text has no UTF-8

_Columns: TypeAlias = tuple[NDArray[Any], NDArray[np.integer[Any]], NDArray[np.uint8]]
"""Ids, labels and codes of sources: rows that were checked when their `Labels` was made."""


class _Sources:
    """The field `sources`: text to the reader, kept as codes of a byte."""

    def __get__(self, table: Labels | None, kind: type[Labels]) -> NDArray[np.str_]:
        if table is None:
            raise AttributeError("sources")  # which tells the dataclass that there is no default
        return np.array(SOURCES)[table.source_codes]

    def __set__(self, table: Labels, sources: NDArray[Any]) -> None:
        object.__setattr__(table, "source_codes", _codes(np.asarray(sources)))


@dataclass(frozen=True, eq=False, repr=False)
class Labels(Result):
    """Labels that were bought: one a query, or none, and who gave it. Public, all of it.

    `aggregate` returns them; train the student on those that are there, or save them as Parquet,
    CSV, JSON lines or NPY, by the name of the file.

        >>> labels = pate.aggregate("sample_votes/demo.parquet", max_queries=300, seed=1).labels
        >>> labels
        <Labels: 163 of 300 queries labelled>
        >>> labels.ids[:3], labels.labels[:3]
        (array([0, 1, 2]), array([ 5, -1,  1], dtype=int32))
        >>> labels.save("labels.csv")

    ids: [queries] whole numbers (kept as int64) or text.
    labels: [queries] whole numbers in [0, 2^31), kept as int32; -1 where the query was refused.
    sources: [queries] "teachers", "student" or "none", or uint8 places in SOURCES; "none" exactly
        where the label is -1. Read back as text, made when asked for.
    metadata: public parameters of the mechanism, text to text.
    label_names: what the labels are called in a table, label 0 first; None for their numbers.
    label_set: where a query has several labels, what the rows stand for; they are then those of
        whole queries, one after the other, and `labels` are classes of it.
    source_codes: [queries] uint8, the sources as places in SOURCES.
    ParameterError when the columns do not fit this description or each other.
    """

    ids: NDArray[Any]
    labels: NDArray[np.integer[Any]]
    sources: _Sources = _Sources()
    metadata: Mapping[str, str] = field(default_factory=dict)
    label_names: tuple[str, ...] | None = None
    label_set: LabelSet | None = None
    source_codes: NDArray[np.uint8] = field(init=False)

    def __post_init__(self) -> None:
        ids, labels, codes = np.asarray(self.ids), np.asarray(self.labels), self.source_codes
        if not (ids.shape == labels.shape == codes.shape and ids.ndim == 1):
            raise ParameterError(
                "ids, labels and sources must be one column each, of one length, not of shapes"
                f" {ids.shape}, {labels.shape} and {codes.shape}"
            )
        ids, labels = _ids(ids), _labels(labels)
        _refuse_row(
            (codes == _NONE) != (labels == NO_LABEL),
            "the source must be none exactly where there is no label",
        )
        if self.label_names is not None:
            _refuse_row(labels >= len(self.label_names), "the label has no name")
        if self.label_set is not None:
            self.label_set.decided(labels)
            each = self.label_set.count
            _refuse_row(
                ids != np.repeat(ids[::each], each), "the query id is not that of its query"
            )
        # Views of the caller's columns that nobody can write through, not copies of them.
        for name, column in (("ids", ids), ("labels", labels), ("source_codes", codes)):
            view = column.view()
            view.flags.writeable = False
            object.__setattr__(self, name, view)
        object.__setattr__(self, "metadata", MappingProxyType(_public(self.metadata)))

    def __len__(self) -> int:
        return int(self.labels.size)

    @overload
    def __getitem__(self, rows: int) -> int | str | None: ...

    @overload
    def __getitem__(self, rows: slice) -> Labels: ...

    def __getitem__(self, rows: int | slice) -> int | str | Labels | None:
        """The label of a row, by name if it has one, None where there is none; or some rows.

        Where a query has several labels, a row's label is the class it stands for.
        """
        if isinstance(rows, slice):
            ids, labels, codes = self.ids[rows], self.labels[rows], self.source_codes[rows]
            return replace(self, ids=ids, labels=labels, sources=codes)
        label = int(self.labels[rows])
        if label == NO_LABEL or self.label_names is None:
            return None if label == NO_LABEL else label
        return self.label_names[label]

    def __iter__(self) -> Iterator[int | str | None]:
        return (self[row] for row in range(len(self)))

    @property
    def by_query(self) -> NDArray[np.int8]:
        """What is said of several labels: 1 for yes, 0 for no, -1 for nothing; [queries, labels].

        ParameterError where a query has one label.
        """
        if self.label_set is None:
            raise ParameterError("a query has one label here, which is in `labels`")
        return self.label_set.decided(self.labels)

    @property
    def answers(self) -> int:
        """How many labels come from the teachers."""
        return int(np.count_nonzero(self.source_codes == SOURCES.index("teachers")))

    def columns(self) -> dict[str, NDArray[Any]]:
        """query_id, label (masked where there is none) and source.

        Where a query has several labels: query_id, label, yes (masked where nothing is said) and
        source, a row a query and label.
        """
        if self.label_set is not None:
            ids, decided, codes = _by_query(self)
            count = self.label_set.count
            return {
                "query_id": np.repeat(ids, count),
                "label": np.tile(np.array(self.label_set.titles), len(ids)),
                "yes": np.ma.MaskedArray(decided == 1, mask=decided == UNDECIDED).reshape(-1),
                "source": np.array(SOURCES)[codes.reshape(-1)],
            }
        values: NDArray[Any] = self.labels
        if self.label_names is not None:
            values = np.array([*self.label_names, ""], dtype=object)[self.labels]
        labels = np.ma.masked_where(self.labels == NO_LABEL, values)
        return {"query_id": self.ids, "label": labels, "source": self.sources}

    def to_dict(self) -> dict[str, Any]:
        """How many labels there are and who gave them, with the mechanism's parameters."""
        counts = np.bincount(self.source_codes, minlength=len(SOURCES)).tolist()
        facts = {"queries": len(self), **dict(zip(SOURCES, counts, strict=True))}
        return {**facts, **_with_names(self.metadata, self.label_names)}

    def preview(self) -> Iterator[tuple[object, ...]]:
        """The first rows of the table; of several labels those of the first query."""
        shown = _PREVIEWED if self.label_set is None else self.label_set.count
        rows = slice(shown)
        columns = self[rows].columns()
        yield tuple(columns)
        cells = (
            np.ma.filled(np.ma.asarray(column).astype(object), "") for column in columns.values()
        )
        yield from zip(*cells, strict=True)
        if len(self) > shown:
            yield ("…",) * len(columns)

    def to_arrow(self) -> Any:
        """query_id, label (null: no answer), source; the parameters are in the metadata.

        Where a query has several labels: query_id, labels, unanswered, a row a query.
        """
        form = form_of(LabelFormat.PARQUET, None, self.label_set, SOURCES)
        schema = _schema(self.metadata, self.label_names, form, whole=_whole(self))
        return _arrow([_rows(self, form)], schema, self.label_names, form)

    def write(
        self, file: ByteSink, path: str | os.PathLike[str], *, escape_formulas: bool = False
    ) -> None:
        """Write the file of this name, by its suffix; not .json, whose facts hold no labels."""
        kind = LabelFormat.from_path(os.fspath(path))
        write_labels(self, file, kind, escape_formulas=escape_formulas)

    @property
    def releasable(self) -> bool:
        """Made to be published."""
        return True

    def headline(self) -> str:
        """How many of the queries were answered."""
        labelled = int(np.count_nonzero(self.labels != NO_LABEL))
        return f"{labelled} of {len(self)} {rows_of(self.label_set)} labelled"


def concatenate(tables: Iterable[Labels]) -> Labels:
    """The chunks of one run as one table, in order.

    ParameterError when there is none, when their metadata, names or sets of labels differ, or when
    some ids are numbers and others text: such chunks are not of one run.
    """
    chunks = list(tables)
    if not chunks:
        raise ParameterError("there are no label tables to concatenate")
    several = {chunk.label_set for chunk in chunks}
    if len(several) > 1 or any(chunk.metadata != chunks[0].metadata for chunk in chunks):
        raise ParameterError("label tables of different mechanism parameters cannot be one table")
    if any(chunk.label_names != chunks[0].label_names for chunk in chunks):
        raise ParameterError("label tables of different names cannot be one table")
    if len({_whole(chunk) for chunk in chunks}) > 1:
        raise ParameterError("label tables with numbers and with text as ids cannot be one table")
    first = chunks[0]
    stacked = _stacked(map(_columns, chunks))
    return Labels(*stacked, first.metadata, first.label_names, first.label_set)


def write_labels(
    table: Labels,
    file: ByteSink,
    label_format: LabelFormat,
    labels_as: LabelsAs | None = None,
    *,
    escape_formulas: bool = False,
) -> None:
    """Write all of `table` to a binary file object; see `LabelWriter`."""
    with LabelWriter(
        file,
        label_format,
        table.metadata,
        rows=len(table),
        label_names=table.label_names,
        label_set=table.label_set,
        labels_as=labels_as,
        escape_formulas=escape_formulas,
    ) as writer:
        writer.write(table)


class LabelWriter:
    """A file of labels, written as they come; how the rows are cut into tables leaves no trace.

    Parquet: query_id, label (nullable int32), source; metadata as JSON under the key `pate`.
    NPY: int32 [queries], -1 for none; ids, sources and metadata do not fit and are left out.
    CSV: header query_id,label,source; no label is an empty field; UTF-8, lines end in LF.
    JSONL: one object with the same three keys per line; no label is null; ASCII.
    Labels that have names are written by name: in Parquet as a dictionary column, whose dictionary
    holds all names in their order, used or not, as does the metadata under `label_names`; NPY
    keeps the numbers.

    Where a query has several labels, as lists a row a query: query_id, labels (the list of those
    that are given, by name where they have names), unanswered (those about which nothing is said);
    as pairs a row a query and label: query_id, label, yes (null for nothing), source. CSV has pairs
    only, NPY is int8 [queries, labels], 1, 0 and -1, whatever is asked.

    with LabelWriter(file, LabelFormat.PARQUET, {"sigma": "40"}) as writer:
        for table in tables:
            writer.write(table)

    A file is whole only after `close`, which leaving the block without an error calls. At most a
    row group of 2^20 rows is held back.
    """

    def __init__(
        self,
        file: ByteSink,
        label_format: LabelFormat,
        metadata: Mapping[str, str],
        *,
        rows: int | None = None,
        label_names: tuple[str, ...] | None = None,
        label_set: LabelSet | None = None,
        labels_as: LabelsAs | None = None,
        escape_formulas: bool = False,
    ) -> None:
        """Begin the file.

        Args:
            file: a binary file object, written from where it stands and left open.
            label_format: its format.
            metadata: public parameters of the mechanism; those of the tables have no say.
            rows: how many the tables will have; NPY, which begins with a number of them, needs it.
            label_names: of all tables; None for numbers.
            label_set: that of the tables.
            labels_as: lists or pairs where a query has several labels; by the format if left out.
            escape_formulas: in CSV, an apostrophe before ids and names that begin as formulas do.

        Raises:
            ParameterError: metadata that are not text to text, or NPY without `rows`.
            UsageError: lists in CSV, `labels_as` where a query has one label, or `escape_formulas`
                in another format.
        """
        self._label_set = label_set
        self._form = form = form_of(
            label_format, labels_as, label_set, SOURCES, escaped=escape_formulas
        )
        self._promised, self._written = rows, 0
        self._whole: bool | None = None
        self._open = True
        self._names = label_names
        public = _public(metadata)
        self._body: _Body
        if label_format is LabelFormat.PARQUET:
            self._body = _Parquet(file, public, label_names, form)
        elif label_format is not LabelFormat.NPY:
            style = _ESCAPED if escape_formulas else _TEXTS[label_format]
            self._body = _Text(file, style) if form is None else _SetText(file, form, label_format)
        elif rows is None:
            raise ParameterError("an NPY file begins with its length; give the number of `rows`")
        else:
            self._body = _Npy(file, rows, label_set)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()

    @property
    def rows(self) -> int:
        """How many rows the file has so far, however many the tables had."""
        if self._label_set is None:
            return self._written
        queries = self._written // self._label_set.count
        pairs = isinstance(self._form, PairsForm) and not isinstance(self._body, _Npy)
        return queries * (self._label_set.count if pairs else 1)

    def write(self, table: Labels) -> None:
        """Append the rows of `table`.

        ParameterError when its ids are text and earlier ones numbers or the other way round, when
        there are more rows than promised, when its labels have other names than the file's or are
        of another set, or when the file is closed.
        """
        if not self._open:
            raise ParameterError("the file of labels is closed; write before closing it")
        if table.label_names != self._names:
            raise ParameterError("labels of other names cannot be in one file")
        if table.label_set != self._label_set:
            raise ParameterError("the labels of a query are not those that the file was begun with")
        if self._whole is None:
            self._whole = _whole(table)
        elif self._whole != _whole(table):
            raise ParameterError("numbers and text as query ids cannot be in one file")
        if self._promised is not None and self._written + len(table) > self._promised:
            raise ParameterError(
                f"row {self._promised}: the file was to hold {self._promised} rows, not more"
            )
        self._body.write(table)
        self._written += len(table)

    def close(self) -> None:
        """Finish the file; a second call does nothing.

        ParameterError when there were fewer rows than promised: the file is then not whole.
        """
        if not self._open:
            return
        self._open = False
        if self._promised is not None and self._written != self._promised:
            raise ParameterError(
                f"the file was to hold {self._promised} rows and got {self._written}"
            )
        self._body.close()


class _Body(Protocol):
    """The rows of a file in one format."""

    def write(self, table: Labels) -> None: ...

    def close(self) -> None: ...


class _Npy:
    def __init__(self, file: ByteSink, rows: int, label_set: LabelSet | None) -> None:
        self._file = file
        shape: tuple[int, ...] = (rows,)
        if label_set is not None:
            shape = (rows // label_set.count, label_set.count)
        kind = "<i4" if label_set is None else "|i1"
        header = {"descr": kind, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)

    def write(self, table: Labels) -> None:
        several = table.label_set is not None
        values = table.by_query if several else table.labels.astype("<i4", copy=False)
        self._file.write(values.tobytes())

    def close(self) -> None:
        pass


class _Text:
    def __init__(self, file: ByteSink, style: _LineStyle) -> None:
        self._file, self._style = file, style
        file.write(style.header)

    def write(self, table: Labels) -> None:
        for start in range(0, len(table), _TEXT_ROWS):
            self._file.write(_lines(table, slice(start, start + _TEXT_ROWS), self._style).encode())

    def close(self) -> None:
        pass


class _SetText:
    def __init__(self, file: ByteSink, form: SetForm, label_format: LabelFormat) -> None:
        self._file, self._form, self._format = file, form, label_format
        self._queries = max(_TEXT_ROWS // form.label_set.count, 1)
        file.write(form.header(label_format))

    def write(self, table: Labels) -> None:
        ids, decided, codes = _by_query(table)
        for start in range(0, len(ids), self._queries):
            part = slice(start, start + self._queries)
            lines = self._form.text(ids[part], decided[part], codes[part], self._format)
            self._file.write(lines.encode())

    def close(self) -> None:
        pass


class _Parquet:
    """Rows are held back until a row group is full, so that no table leaves its own mark."""

    def __init__(
        self,
        file: ByteSink,
        metadata: Mapping[str, str],
        names: tuple[str, ...] | None,
        form: SetForm | None,
    ) -> None:
        self._tap = _Tap(file)
        self._metadata, self._names, self._form = metadata, names, form
        self._group = _ROW_GROUP if form is None else max(_ROW_GROUP // form.label_set.count, 1)
        self._held: list[_Columns] = []
        self._rows = 0
        self._writer: Any = None

    def write(self, table: Labels) -> None:
        if self._writer is None:
            self._begin(whole=_whole(table))
        ids, labels, codes = _rows(table, self._form)
        start = 0
        while start < len(ids):
            stop = min(len(ids), start + self._group - self._rows)
            self._held.append((ids[start:stop], labels[start:stop], codes[start:stop]))
            self._rows += stop - start
            start = stop
            if self._rows == self._group:
                self._flush()

    def close(self) -> None:
        if self._writer is None:
            self._begin(whole=True)
        if self._rows:
            self._flush()
        self._call(self._writer.close)

    def _begin(self, *, whole: bool) -> None:
        import pyarrow.parquet as pq

        self._schema = _schema(self._metadata, self._names, self._form, whole=whole)
        encoded = ["source"] if self._names is None else ["label", "source"]
        encoded = encoded if self._form is None else _REPEATED
        # Numbers of rows are stored as steps of 1: in a third of the time and next to no space.
        steps = {"query_id": "DELTA_BINARY_PACKED"} if whole and self._form is None else None
        options = {
            "version": "2.6",
            "column_encoding": steps,
            "compression": "zstd",
            "use_dictionary": encoded,
            "write_page_checksum": True,  # of the page as it is stored: a bit that flips is told
        }
        self._writer = self._call(pq.ParquetWriter, self._tap, self._schema, **options)

    def _flush(self) -> None:
        group = _arrow(self._held, self._schema, self._names, self._form)
        self._held, self._rows = [], 0
        self._call(self._writer.write_table, group, row_group_size=_ROW_GROUP)

    def _call(self, step: Callable[..., Any], *given: Any, **options: Any) -> Any:
        self._tap.live = True
        try:
            return step(*given, **options)
        finally:
            self._tap.live = False


class _Tap(io.RawIOBase):
    """A file for as long as it is `live`: a Parquet writer that is given up would end it whole."""

    def __init__(self, file: ByteSink) -> None:
        self.live = False
        self._file = file

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        if self.live:
            self._file.write(data)
        return len(data)


@dataclass(frozen=True)
class _LineStyle:
    """How a format of lines writes a row: an id, then everything behind it."""

    header: bytes
    ids: Callable[[list[Any]], Iterable[str]]
    name: Callable[[str], str]
    before: str
    behind: str
    no_label: str


def _lines(table: Labels, part: slice, style: _LineStyle) -> str:
    """The rows of `part`, each with its line end."""
    labels, codes = table.labels[part].astype(np.int64), table.source_codes[part]
    # What stands behind the id is the same text for every row of one label and source.
    found, places = np.unique(labels * len(SOURCES) + codes, return_inverse=True)
    behind = np.array(
        [
            style.behind.format(_label_text(label, table.label_names, style), SOURCES[code])
            for label, code in (divmod(key, len(SOURCES)) for key in found.tolist())
        ],
        dtype=object,
    )
    pieces: list[str] = [style.before] * (3 * labels.size)
    pieces[1::3] = style.ids(table.ids[part].tolist())
    pieces[2::3] = behind[places].tolist()
    return "".join(pieces)


def _label_text(label: int, names: tuple[str, ...] | None, style: _LineStyle) -> str:
    if label == NO_LABEL:
        return style.no_label
    return str(label) if names is None else style.name(names[label])


_TEXTS: Final = {
    LabelFormat.CSV: _LineStyle(
        b"query_id,label,source\n",
        csv_ids,
        name=csv_field,
        before="",
        behind=",{},{}\n",
        no_label="",
    ),
    LabelFormat.JSONL: _LineStyle(
        b"",
        json_ids,
        name=json.dumps,
        before='{"query_id":',
        behind=',"label":{},"source":"{}"}}\n',
        no_label="null",
    ),
}


_ESCAPED: Final = replace(_TEXTS[LabelFormat.CSV], ids=text_ids, name=text_field)


def _whole(table: Labels) -> bool:
    return table.ids.dtype.kind == "i"


def _columns(table: Labels) -> _Columns:
    return table.ids, table.labels, table.source_codes


def _by_query(
    table: Labels,
) -> tuple[NDArray[Any], NDArray[np.int8], NDArray[np.uint8]]:
    """Ids of queries, what is said of their labels and by whom; see `LabelSet.decided`."""
    several = table.label_set
    if several is None:
        raise ParameterError("a query has one label here")
    ids = table.ids[:: several.count]
    return ids, several.decided(table.labels), table.source_codes.reshape(-1, several.count)


def _rows(table: Labels, form: SetForm | None) -> _Columns:
    return _columns(table) if form is None else _by_query(table)


def _stacked(tables: Iterable[_Columns]) -> _Columns:
    ids, labels, codes = map(np.concatenate, zip(*tables, strict=True))
    return ids, labels, codes


def _with_names(metadata: Mapping[str, str], names: tuple[str, ...] | None) -> dict[str, Any]:
    return dict(metadata) if names is None else {**metadata, "label_names": list(names)}


def _schema(
    metadata: Mapping[str, str],
    names: tuple[str, ...] | None,
    form: SetForm | None,
    *,
    whole: bool,
) -> Any:
    import pyarrow as pa

    label = pa.int32() if names is None else pa.dictionary(pa.int32(), pa.string())
    one = [
        pa.field("label", label, nullable=True),
        pa.field("source", pa.string(), nullable=False),
    ]
    return pa.schema(
        [
            pa.field("query_id", pa.int64() if whole else pa.string(), nullable=False),
            *(one if form is None else form.fields()),
        ],
        metadata={"pate": json.dumps(_with_names(metadata, names), sort_keys=True)},
    )


def _arrow(
    tables: Iterable[_Columns],
    schema: Any,
    names: tuple[str, ...] | None,
    form: SetForm | None,
) -> Any:
    import pyarrow as pa

    from pate_cli.core.arrow import column_of, texts_at

    ids, numbers, codes = _stacked(tables)
    if form is not None:
        kind = schema.field("query_id").type
        said = form.arrays(numbers.astype(np.int8, copy=False), codes)
        return pa.Table.from_arrays([pa.array(form.ids(ids), kind), *said], schema=schema)
    labels = column_of(numbers, numbers == NO_LABEL)
    if names is not None:
        labels = pa.DictionaryArray.from_arrays(labels, pa.array(names, pa.string()))
    whole = isinstance(ids, np.ndarray) and ids.dtype == np.int64
    columns = [
        column_of(ids) if whole else pa.array(ids, schema.field("query_id").type),
        labels,
        texts_at(SOURCES, codes),
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _public(metadata: Mapping[str, str]) -> dict[str, str]:
    if not all(isinstance(text, str) for item in metadata.items() for text in item):
        raise ParameterError("metadata must map text to text")
    return dict(metadata)


def _ids(ids: NDArray[Any]) -> NDArray[Any]:
    if ids.dtype.kind == "i" or (ids.dtype.kind == "u" and ids.dtype.itemsize < 8):
        return ids.astype(np.int64, copy=False)
    if ids.dtype.kind == "u":
        _refuse_row(ids > np.uint64(2**63 - 1), "a query id must fit 64 signed bits")
        return ids.astype(np.int64)
    if ids.dtype.kind == "U" or (ids.dtype.kind == "O" and set(map(type, ids.flat)) <= _TEXT):
        if _SURROGATE.search("".join(ids.tolist())):
            unpaired = np.fromiter(map(bool, map(_SURROGATE.search, ids.flat)), np.bool_, ids.size)
            _refuse_row(unpaired, "a query id must be valid Unicode text")
        return ids
    raise ParameterError(f"query ids must be whole numbers or text, not {ids.dtype}")


def _labels(labels: NDArray[Any]) -> NDArray[np.int32]:
    if labels.dtype.kind not in "iu":
        raise ParameterError(f"labels must be whole numbers, not {labels.dtype}")
    _refuse_row(
        (labels < NO_LABEL) | (labels > _MAX_LABEL),
        f"a label must be in [0, {_MAX_LABEL}], or {NO_LABEL} for none",
    )
    return labels.astype(np.int32, copy=False)


def _codes(sources: NDArray[Any]) -> NDArray[np.uint8]:
    codes = sources
    if sources.dtype != np.uint8:
        codes = np.full(sources.shape, len(SOURCES), np.uint8)
        for code, source in enumerate(SOURCES):
            codes[sources == source] = code
    _refuse_row(codes >= len(SOURCES), f"the source must be one of {', '.join(SOURCES)}")
    return codes


def _refuse_row(bad: NDArray[np.bool_], reason: str) -> None:
    if bad.any():
        raise ParameterError(f"row {np.argmax(bad)}: {reason}")


NOTHING: Final = Labels(
    np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.uint8)
)
"""No rows."""
