"""The labels of a run: the class `Labels`, and a function that writes labels to a file."""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import IO, Any, Final, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pate_cli.core.arrays import CLASSES, NO_LABEL, SOURCES, LabelSet, rows_of
from pate_cli.core.errors import ParameterError, quoted
from pate_cli.core.said import Grid, Said
from pate_cli.core.words import LabelFormat
from pate_cli.files.protected import Replaces
from pate_cli.files.results import Result
from pate_cli.labels.forms import (
    BEHIND_IDS,
    FORMATS,
    Outline,
    column_of,
    labels_in,
    recut,
    texts_of,
)

_NOBODY, _NOT_ASKED = map(SOURCES.index, ("none", "not asked"))
_LARGEST: Final = 2**31 - 1
_TEXT: Final = frozenset({str, np.str_})
_SURROGATE: Final = re.compile("[\ud800-\udfff]")  # A text with half of a pair has no UTF-8.
_PREVIEWED: Final = 5

QUERY_ID: Final = "query_id"
"""The name of the column of ids, unless the votes have another name for it."""


class _Sources:
    """The field `sources` of `Labels`: it returns texts, and stores one byte per row."""

    def __get__(self, labels: Labels | None, kind: type[Labels]) -> NDArray[np.str_]:
        if labels is None:
            raise AttributeError("sources")  # A dataclass then knows that there is no default.
        return np.array(SOURCES)[labels.source_codes]

    def __set__(self, labels: Labels, sources: NDArray[Any]) -> None:
        object.__setattr__(labels, "source_codes", _codes(np.asarray(sources)))


@dataclass(frozen=True, eq=False, repr=False)
class Labels(Result):
    """Released labels: one or none per query, and the source of each. All of it is public.

    `aggregate` returns them. Train the student on the queries that have a label, or save the
    labels. The suffix of the file's name decides the format: Parquet, CSV, JSON lines, NPY or
    Arrow.

        >>> labels = pate.aggregate("sample_votes/demo.parquet", max_queries=300, seed=1).labels
        >>> labels
        <Labels: 163 of 300 queries labelled, 700 not asked>
        >>> labels.ids[:3], labels.labels[:3]
        (array([0, 1, 2]), array([ 5, -1,  1], dtype=int32))
        >>> labels.save("labels.csv")

    Attributes:
        ids: whole numbers (stored as int64) or texts, [queries].
        labels: classes, stored as int32, [queries]; -1 if the query was not answered, or not asked.
        sources: "teachers", "student", "none" (asked and not answered) or "not asked", [queries].
            The source is "none" or "not asked" exactly where the label is -1. `sources` may also
            be given as indexes in SOURCES (uint8); reading `sources` always returns texts.
        metadata: the names and values of the mechanism's public parameters, both as texts.
        label_names: the names of the classes in tables, class 0 first; None if classes are numbers.
        label_set: how many labels each query has, and their names, if queries have several labels;
            otherwise None. With several labels, each row is about one label of one query, the rows
            of a query follow each other, and `labels` has 1 for yes and 0 for no.
        id_column: the name of the column of ids in tables of labels; a run keeps the name that this
            column has in the votes.
        source_codes: the sources as indexes in SOURCES, uint8, [queries].

    Raises:
        ParameterError: an attribute is not as described above, or two columns do not fit each
            other.
    """

    ids: NDArray[Any]
    labels: NDArray[np.integer[Any]]
    sources: _Sources = _Sources()
    metadata: Mapping[str, str] = field(default_factory=dict)
    label_names: tuple[str, ...] | None = None
    label_set: LabelSet | None = None
    id_column: str = QUERY_ID
    source_codes: NDArray[np.uint8] = field(init=False)

    def __post_init__(self) -> None:
        ids, labels, codes = np.asarray(self.ids), np.asarray(self.labels), self.source_codes
        if not (ids.shape == labels.shape == codes.shape and ids.ndim == 1):
            shapes = f"{ids.shape}, {labels.shape} and {codes.shape}"
            raise ParameterError(f"ids, labels and sources must be columns of one length: {shapes}")
        ids = _ids(ids)
        if labels.dtype.kind not in "iu":
            raise ParameterError(f"labels must be whole numbers, not {labels.dtype}")
        most = _LARGEST if self.label_names is None else len(self.label_names) - 1
        most = most if self.label_set is None else CLASSES - 1
        wrong = (labels < NO_LABEL) | (labels > most)
        _refuse_row(wrong, f"a label must be in [0, {most}], or {NO_LABEL} for none")
        wrong = (codes >= _NOBODY) != (labels == NO_LABEL)
        _refuse_row(wrong, "the source must be none or not asked exactly where there is no label")
        if self.label_set is not None:
            each = self.label_set.count
            if ids.size % each:
                raise ParameterError(
                    f"labels must have {each} rows for every query, one per label; got "
                    f"{ids.size} rows"
                )
            wrong = ids != np.repeat(ids[::each], each)
            _refuse_row(wrong, "all labels of a query must have the same query id")
        if not all(isinstance(text, str) for item in self.metadata.items() for text in item):
            raise ParameterError("metadata must map text to text")
        check_id_column(self.id_column)
        object.__setattr__(self, "metadata", MappingProxyType(dict(self.metadata)))
        labels = labels.astype(np.int32, copy=False)
        # Read-only views of the caller's columns, not copies of them.
        for name, column in (("ids", ids), ("labels", labels), ("source_codes", codes)):
            view = column.view()
            view.flags.writeable = False
            object.__setattr__(self, name, view)

    def __len__(self) -> int:
        return int(self.labels.size)

    @overload
    def __getitem__(self, rows: int) -> int | str | None: ...

    @overload
    def __getitem__(self, rows: slice) -> Labels: ...

    def __getitem__(self, rows: int | slice) -> int | str | Labels | None:
        """Return the label of a row, or the labels of a slice of rows.

        The label of a row is the name of a class if classes have names, and None if the row has no
        label. If queries have several labels, each row is about one label of one query; the value
        of the row is 1 if the query has this label, and 0 if not.
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
        """The decision on each label of a query with several labels, [queries, labels].

        A decision is 1 for yes, 0 for no, and -1 if the label was not answered or not asked.
        ParameterError is raised if a query has one label.
        """
        if self.label_set is None:
            raise ParameterError(
                "by_query needs several labels per query, but every query has one; use `labels`"
            )
        return self.labels.reshape(-1, self.label_set.count).astype(np.int8)

    @property
    def answers(self) -> int:
        """The number of labels that come from the teachers."""
        return int(np.count_nonzero(self.source_codes == SOURCES.index("teachers")))

    @property
    def asked(self) -> int:
        """The number of rows that were asked."""
        return len(self) - int(np.count_nonzero(self.source_codes == _NOT_ASKED))

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the ids, label (None for no answer) and source, by name of the column.

        If queries have several labels, there is a row for each query and label, and the columns are
        ids, label, yes (None for no answer) and source.
        """
        _, *said = self.batch(lists=False).to_pydict().items()
        texts = {name: np.array(column, dtype=object) for name, column in said}
        return {self.id_column: self.ids, **texts}

    def to_dict(self) -> dict[str, Any]:
        """Return how many rows were asked, how many labels each source gave, and the metadata.

        The metadata are the public parameters of the mechanism, and the names of the classes.
        """
        counts = np.bincount(self.source_codes, minlength=len(SOURCES)).tolist()
        names = {} if self.label_names is None else {"label_names": list(self.label_names)}
        counted = {"queries": self.asked, **dict(zip(SOURCES, counts, strict=True))}
        return {**counted, **self.metadata, **names}

    def said(self) -> Said:
        """Return the first rows of the table as a preview.

        If queries have several labels, the rows of the first query are returned.
        """
        shown = _PREVIEWED if self.label_set is None else self.label_set.count
        columns = self[:shown].columns()
        cells = zip(*columns.values(), strict=True)
        rows = [["" if cell is None else str(cell) for cell in row] for row in cells]
        more = [["…"] * len(columns)] if len(self) > shown else []
        return [Grid("The first of them", list(columns), [*rows, *more])]

    def to_arrow(self) -> Any:
        """Return the ids, label (null: no answer) and source as a pyarrow.Table.

        The metadata of the table contain the public parameters of the mechanism. If queries have
        several labels, there is one row per query, and the columns are ids, labels and unanswered.
        """
        return pa.Table.from_batches([self.batch(lists=True)])

    def to_pandas(self) -> Any:
        """Return the table of `to_arrow` as a pandas.DataFrame, whose index is the ids.

        With the ids as index, the labels can be joined with a data frame of votes or queries that
        has the same index.

        Raises:
            UsageError: pandas is not installed.
        """
        frame = super().to_pandas()
        frame.index = frame[self.id_column].to_list()
        return frame

    def write(self, file: IO[bytes], path: str | os.PathLike[str]) -> None:
        """Write the labels in the format that the suffix of `path` names; .json is an error."""
        write_labels([self], file, LabelFormat.from_path(os.fspath(path)), rows=len(self))

    def _replaces(self, path: str) -> Replaces:
        """Return a function that says whether a file has labels, so that `force` may replace it."""
        return labels_in(LabelFormat.from_path(path))

    @property
    def releasable(self) -> bool:
        """Return True, because labels are made to be published."""
        return True

    def headline(self) -> str:
        """Return how many of the asked queries have a label, and how many were not asked."""
        labelled, left = int(np.count_nonzero(self.labels != NO_LABEL)), len(self) - self.asked
        others = f", {left} not asked" if left else ""
        return f"{labelled} of {self.asked} {rows_of(self.label_set)} labelled{others}"

    def batch(self, *, lists: bool) -> pa.RecordBatch:
        """Return the rows as an Arrow record batch.

        The metadata of its schema contain, under the key `pate`, the public parameters of the
        mechanism and the names of the classes.

        Args:
            lists: matters only if queries have several labels. If `lists` is True, there is one row
                per query, with two lists: the labels that the query has, and the labels that are
                not decided. If `lists` is False, there is one row per label of each query.
        """
        each = self.label_set.count if lists and self.label_set is not None else 1
        ids = self.ids[::each]
        first = column_of(ids) if ids.dtype.kind == "i" else texts_of(ids.tolist())
        columns = {self.id_column: first, **self._said(lists=lists)}
        unanswered = "label" if self.label_set is None else "yes"
        fields = [pa.field(n, c.type, nullable=n == unanswered) for n, c in columns.items()]
        names = {} if self.label_names is None else {"label_names": list(self.label_names)}
        about = json.dumps({**self.metadata, **names}, sort_keys=True)
        schema = pa.schema(fields, {"pate": about})
        return pa.RecordBatch.from_arrays([*columns.values()], schema=schema)

    def _said(self, *, lists: bool) -> dict[str, pa.Array]:
        """Return all columns of the table of labels except the query ids."""
        sources = texts_of(SOURCES).take(column_of(self.source_codes))
        none = self.labels == NO_LABEL
        if self.label_set is None:
            labels = column_of(self.labels, none)
            if self.label_names is not None:
                labels = pa.DictionaryArray.from_arrays(labels, texts_of(self.label_names))
            return {"label": labels, "source": sources}
        count, names = self.label_set.count, self.label_set.names
        titles = column_of(np.arange(count, dtype=np.int32)) if names is None else texts_of(names)
        if lists:
            chosen = {"labels": self.by_query == 1, "unanswered": self.by_query == NO_LABEL}
            return {name: _lists(each, titles) for name, each in chosen.items()}
        label = titles.take(column_of(np.arange(len(self)) % count))
        yes = column_of(self.labels, none).cast(pa.bool_())
        return {"label": label, "yes": yes, "source": sources}


def write_labels(
    chunks: Iterable[Labels], file: IO[bytes], kind: LabelFormat, *, rows: int
) -> None:
    """Write the labels of one run to an open file, part by part as the labels arrive.

    Args:
        chunks: all labels in order, at least one chunk.
        file: a binary file object, written from its current position and left open.
        kind: the format of the file.
        rows: the number of rows in all chunks.

    Raises:
        ParameterError: the chunks together do not have `rows` rows.
    """
    several, lists = iter(chunks), FORMATS[kind].lists
    head = next(several)
    schema = head[:0].batch(lists=lists).schema
    count = None if head.label_set is None else head.label_set.count
    drawn = (chunk.batch(lists=lists) for chunk in itertools.chain([head], several))
    outline = Outline(kind, schema, count, rows)
    FORMATS[kind].write(recut(drawn, outline), outline, file)


def joined(parts: Sequence[Labels]) -> Labels:
    """Return the labels of one or more parts of one run, in order."""
    columns = [(part.ids, part.labels, part.source_codes) for part in parts]
    ids, labels, codes = map(np.concatenate, zip(*columns, strict=True))
    return replace(parts[0], ids=ids, labels=labels, sources=codes)


def check_id_column(name: str) -> None:
    """Raise ParameterError unless a table of labels can have a column of ids with this name."""
    if not isinstance(name, str) or _SURROGATE.search(name):
        raise ParameterError("`id_column` must be the name of a column, in valid Unicode")
    if name in BEHIND_IDS:
        twice = f"the column of ids is called {quoted(name)}, like another column of the labels"
        raise ParameterError(f"{twice}; rename the column of ids")


def _lists(chosen: NDArray[np.bool_], titles: pa.Array) -> pa.Array:
    """Return a list per query: titles of the labels where `chosen`, [queries, labels], is True."""
    ends = np.cumsum([0, *np.count_nonzero(chosen, axis=1)], dtype=np.int32)
    each = titles.take(column_of(np.nonzero(chosen)[1]))
    kind = pa.list_(pa.field("item", titles.type, nullable=False))
    return pa.ListArray.from_arrays(column_of(ends), each, type=kind)


def _ids(ids: NDArray[Any]) -> NDArray[Any]:
    if ids.dtype.kind in "iu":
        _refuse_row(ids > np.uint64(2**63 - 1), "a query id must fit 64 signed bits")
        return ids.astype(np.int64, copy=False)
    if ids.dtype.kind == "U" or (ids.dtype.kind == "O" and set(map(type, ids.flat)) <= _TEXT):
        if _SURROGATE.search("".join(ids.tolist())):
            unpaired = np.array([bool(_SURROGATE.search(text)) for text in ids.flat])
            _refuse_row(unpaired, "a query id must be valid Unicode text")
        return ids
    raise ParameterError(f"query ids must be whole numbers or text, not {ids.dtype}")


def _codes(sources: NDArray[Any]) -> NDArray[np.uint8]:
    codes = sources
    if sources.dtype != np.uint8:
        codes = np.full(sources.shape, len(SOURCES), np.uint8)
        for code, source in enumerate(SOURCES):
            codes[sources == source] = code
    _refuse_row(codes >= len(SOURCES), f"the source must be one of {', '.join(SOURCES)}")
    return codes


def _refuse_row(wrong: NDArray[np.bool_], reason: str) -> None:
    if wrong.any():
        raise ParameterError(f"row {np.argmax(wrong)}: {reason}")
