"""What a file of labels says of itself: rows, answers of the teachers, and public parameters."""

from __future__ import annotations

import json
from os import PathLike, fspath
from typing import Any

import numpy as np

from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import VoteError
from pate_cli.core.label_set import LabelSet
from pate_cli.core.words import LabelFormat
from pate_cli.files.addresses import is_address
from pate_cli.files.digest import opened


@dataclass(frozen=True)
class LabelCounts:
    """Counts in units of the report, and the metadata of a Parquet file.

    Attributes:
        queries: rows that were asked: queries, or pairs of a query and a label.
        answers: how many of them the teachers answered; None where the file does not tell theirs
            from a student's.
        labelled: how many have a label.
        metadata: texts, and `label_names` a list of them; None where the format has none.
    """

    queries: int
    answers: int | None
    labelled: int
    metadata: dict[str, Any] | None


def count_labels(
    path: str | PathLike[str], label_format: LabelFormat, label_set: LabelSet | None
) -> LabelCounts:
    """The counts of a file of labels.

    Raises:
        VoteError: it cannot be read as labels of this format.
    """
    import pyarrow as pa

    name = fspath(path)
    try:
        if label_format in (LabelFormat.PARQUET, LabelFormat.CSV):
            # Never a file of Python's: a thread of pyarrow's that gives it back late, at the end of
            # the process, ends that with a signal.
            with opened(name) if is_address(name) else pa.OSFile(name) as file:
                return _of_table(_table(file, label_format), label_set)
        with opened(name) as file:
            if label_format is LabelFormat.NPY:
                return _of_array(np.lib.format.read_array(file, allow_pickle=False))
            return _of_table(_of_lines(file), label_set)
    except (OSError, ValueError, KeyError, TypeError, EOFError, pa.ArrowException):
        raise VoteError(f"the labels cannot be read as {label_format}") from None


def _table(file: Any, label_format: LabelFormat) -> Any:
    if label_format is LabelFormat.PARQUET:
        from pyarrow import parquet

        # Of a whole data set it would make a query, with all that takes to import.
        with parquet.ParquetFile(file) as one:
            return one.read()
    from pyarrow import csv

    # An id may hold line ends.
    return csv.read_csv(file, parse_options=csv.ParseOptions(newlines_in_values=True))


def _of_lines(file: Any) -> Any:
    import pyarrow as pa

    columns: dict[str, list[Any]] = {}
    for line in file:
        for name, value in json.loads(line).items():
            columns.setdefault(name, []).append(value)
    return pa.table({name: columns[name] for name in columns if name != "query_id"})


def _of_array(labels: Any) -> LabelCounts:
    said = labels >= 0
    return LabelCounts(said.size, None, int(np.count_nonzero(said)), None)


def _of_table(table: Any, label_set: LabelSet | None) -> LabelCounts:
    raw = (table.schema.metadata or {}).get(b"pate")
    metadata = None if raw is None else dict(json.loads(raw))
    rows = table.num_rows
    if "unanswered" in table.column_names and label_set is not None:
        from pyarrow import compute

        lengths = np.asarray(compute.list_value_length(table["unanswered"]))
        pairs = rows * label_set.count
        return LabelCounts(pairs, None, pairs - int(lengths.sum()), metadata)
    sources = np.asarray(table["source"].to_pylist())
    return LabelCounts(
        rows,
        int(np.count_nonzero(sources == "teachers")),
        int(np.count_nonzero(sources != "none")),
        metadata,
    )
