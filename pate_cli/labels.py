"""Labels out: one row per query, in the file format that its reader asks for.

Whatever the format, the same table gives the same bytes: there is no clock, no host name and no
random identifier in them, so a seeded run can be compared by checksum.
"""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from pate_cli.errors import ParameterError
from pate_cli.results import Result
from pate_cli.words import LabelFormat

NO_LABEL: Final = -1
"""Label of a query that was refused."""

SOURCES: Final = ("teachers", "student", "none")
"""Who gave a label: the teachers' noisy vote, the student itself (Interactive), or nobody."""

_MAX_LABEL: Final = 2**31 - 1  # labels are int32 in the files
_ROW_GROUP: Final = 1 << 20  # fixed here, so that a library's default never changes the bytes
_TEXT_ROWS: Final = 1 << 16  # rows of CSV or JSONL turned into text at a time
_TEXT: Final = frozenset({str, np.str_})
_SURROGATE: Final = re.compile("[\ud800-\udfff]")  # half of a pair: such text has no UTF-8
_NEEDS_QUOTES: Final = re.compile(r'[",\r\n]')


@dataclass(frozen=True, eq=False, repr=False)
class Labels(Result):
    """Labels of a run, or of a part of it; everything in it is public.

    ids: [queries] whole numbers (kept as int64) or text.
    labels: [queries] int64 in [0, 2^31), or -1 where the query was refused.
    sources: [queries] "teachers", "student" or "none"; "none" exactly where the label is -1.
    metadata: public parameters of the mechanism, text to text.
    ParameterError when the columns do not fit this description or each other.
    """

    ids: NDArray[Any]
    labels: NDArray[np.int64]
    sources: NDArray[Any]
    metadata: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ids = _ids(self.ids)
        labels = _labels(self.labels)
        sources = np.asarray(self.sources)
        if not (ids.shape == labels.shape == sources.shape and ids.ndim == 1):
            raise ParameterError(
                "ids, labels and sources must be one column each, of one length, not of shapes"
                f" {ids.shape}, {labels.shape} and {sources.shape}"
            )
        _refuse_row(~np.isin(sources, SOURCES), f"the source must be one of {', '.join(SOURCES)}")
        _refuse_row(
            (sources == "none") != (labels == NO_LABEL),
            "the source must be none exactly where there is no label",
        )
        if not all(isinstance(text, str) for item in self.metadata.items() for text in item):
            raise ParameterError("metadata must map text to text")
        # Views of the caller's columns that nobody can write through, not copies of them.
        for name, column in (("ids", ids), ("labels", labels), ("sources", sources)):
            view = column.view()
            view.flags.writeable = False
            object.__setattr__(self, name, view)
        object.__setattr__(self, "metadata", MappingProxyType(dict(self.metadata)))

    def __len__(self) -> int:
        return int(self.labels.size)

    def columns(self) -> dict[str, NDArray[Any]]:
        """query_id, label (masked where there is none) and source."""
        labels = np.ma.masked_equal(self.labels.astype(np.int32), NO_LABEL)
        return {"query_id": self.ids, "label": labels, "source": self.sources}

    def to_dict(self) -> dict[str, Any]:
        """How many labels there are and who gave them, with the mechanism's parameters."""
        counts = {source: int(np.sum(self.sources == source)) for source in SOURCES}
        return {"queries": len(self), **counts, **self.metadata}

    def to_arrow(self) -> Any:
        """query_id, label (null: no answer), source; the parameters are in the metadata."""
        import pyarrow as pa

        return _arrow(self, pa)

    def encode(self, path: str | os.PathLike[str]) -> bytes:
        """The file of this name, in the format of its suffix."""
        return encode_labels(self, LabelFormat.from_path(os.fspath(path)))

    @property
    def releasable(self) -> bool:
        """Made to be published."""
        return True

    def headline(self) -> str:
        """How many of the queries were answered."""
        return f"{int(np.sum(self.labels != NO_LABEL))} of {len(self)} queries labelled"


def concatenate(tables: Iterable[Labels]) -> Labels:
    """The chunks of one run as one table, in order.

    ParameterError when there is none, when their metadata differ, or when some ids are numbers and
    others text: such chunks are not of one run.
    """
    chunks = list(tables)
    if not chunks:
        raise ParameterError("there are no label tables to concatenate")
    if any(chunk.metadata != chunks[0].metadata for chunk in chunks):
        raise ParameterError("label tables of different mechanism parameters cannot be one table")
    if len({chunk.ids.dtype.kind == "i" for chunk in chunks}) > 1:
        raise ParameterError("label tables with numbers and with text as ids cannot be one table")
    return Labels(
        ids=np.concatenate([chunk.ids for chunk in chunks]),
        labels=np.concatenate([chunk.labels for chunk in chunks]),
        sources=np.concatenate([chunk.sources for chunk in chunks]),
        metadata=chunks[0].metadata,
    )


def encode_labels(table: Labels, label_format: LabelFormat) -> bytes:
    """The file of `table` in `label_format`, as bytes; see `write_labels`."""
    file = io.BytesIO()
    write_labels(table, file, label_format)
    return file.getvalue()


def write_labels(table: Labels, file: BinaryIO, label_format: LabelFormat) -> None:
    """Write `table` to a binary file object.

    Parquet: query_id, label (nullable int32), source; metadata as JSON under the key `pate`.
    NPY: int32 [queries], -1 for none; ids, sources and metadata do not fit and are left out.
    CSV: header query_id,label,source; no label is an empty field; UTF-8, lines end in LF.
    JSONL: one object with the same three keys per line; no label is null; ASCII.
    """
    if label_format is LabelFormat.PARQUET:
        _write_parquet(table, file)
    elif label_format is LabelFormat.NPY:
        np.lib.format.write_array(file, table.labels.astype("<i4"), (1, 0), allow_pickle=False)
    elif label_format is LabelFormat.CSV:
        file.write(b"query_id,label,source\n")
        _write_text(table, file, "{},{},{}\n", _csv_field, no_label="")
    else:
        row = '{{"query_id":{},"label":{},"source":"{}"}}\n'
        _write_text(table, file, row, json.dumps, no_label="null")


def _arrow(table: Labels, pa: Any) -> Any:
    whole = table.ids.dtype.kind == "i"
    schema = pa.schema(
        [
            pa.field("query_id", pa.int64() if whole else pa.string(), nullable=False),
            pa.field("label", pa.int32(), nullable=True),
            pa.field("source", pa.string(), nullable=False),
        ],
        metadata={"pate": json.dumps(dict(table.metadata), sort_keys=True)},
    )
    columns = [
        pa.array(table.ids, schema.field("query_id").type),
        pa.array(table.labels.astype(np.int32), mask=table.labels == NO_LABEL),
        pa.array(table.sources, pa.string()),
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _write_parquet(table: Labels, file: BinaryIO) -> None:
    import pyarrow.parquet as pq

    pq.write_table(
        table.to_arrow(),
        file,
        version="2.6",
        compression="zstd",
        use_dictionary=["source"],
        row_group_size=_ROW_GROUP,
    )


def _write_text(
    table: Labels, file: BinaryIO, row: str, quote: Callable[[str], str], *, no_label: str
) -> None:
    """Write rows of text: `row` has three places, `quote` writes an id that is text."""
    for start in range(0, len(table), _TEXT_ROWS):
        part = slice(start, start + _TEXT_ROWS)
        ids = table.ids[part].tolist()
        texts = ids if table.ids.dtype.kind == "i" else map(quote, ids)
        labels = table.labels[part].astype(object)
        labels[table.labels[part] == NO_LABEL] = no_label
        lines = map(row.format, texts, labels.tolist(), table.sources[part].tolist())
        file.write("".join(lines).encode())


def _csv_field(text: str) -> str:
    """One field by RFC 4180, section 2, rules 5 to 7."""
    if _NEEDS_QUOTES.search(text):
        return '"' + text.replace('"', '""') + '"'
    return text


def _ids(values: NDArray[Any]) -> NDArray[Any]:
    ids = np.asarray(values)
    if ids.dtype.kind == "i" or (ids.dtype.kind == "u" and ids.dtype.itemsize < 8):
        return ids.astype(np.int64, copy=False)
    if ids.dtype.kind == "u":
        _refuse_row(ids > np.uint64(2**63 - 1), "a query id must fit 64 signed bits")
        return ids.astype(np.int64)
    if ids.dtype.kind == "U" or (ids.dtype.kind == "O" and set(map(type, ids.flat)) <= _TEXT):
        unpaired = np.fromiter(map(bool, map(_SURROGATE.search, ids.flat)), np.bool_, ids.size)
        _refuse_row(unpaired, "a query id must be valid Unicode text")
        return ids
    raise ParameterError(f"query ids must be whole numbers or text, not {ids.dtype}")


def _labels(values: NDArray[Any]) -> NDArray[np.int64]:
    labels = np.asarray(values)
    if labels.dtype.kind not in "iu":
        raise ParameterError(f"labels must be whole numbers, not {labels.dtype}")
    _refuse_row(
        (labels < NO_LABEL) | (labels > _MAX_LABEL),
        f"a label must be in [0, {_MAX_LABEL}], or {NO_LABEL} for none",
    )
    return labels.astype(np.int64, copy=False)


def _refuse_row(bad: NDArray[np.bool_], reason: str) -> None:
    rows = np.flatnonzero(bad)
    if rows.size:
        raise ParameterError(f"row {rows[0]}: {reason}")
