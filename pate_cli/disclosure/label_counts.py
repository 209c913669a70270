"""Counts of a file of labels: its rows, the answers of the teachers, and public parameters."""

from __future__ import annotations

import json
from os import PathLike, fspath
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from pate_cli.core.arrays import LabelSet
from pate_cli.core.errors import VoteError
from pate_cli.core.words import LabelFormat
from pate_cli.files.addresses import is_address, reading
from pate_cli.labels.forms import FORMATS

# AttributeError of a line of JSON that is no object, RecursionError of lists in lists in lists.
_DAMAGE: Final = (
    *(OSError, ValueError, KeyError, TypeError, EOFError, AttributeError, RecursionError),
    pa.ArrowException,
)


class LabelCounts(NamedTuple):
    """Counts in units of the report, and the metadata of the file.

    Attributes:
        rows: of votes: queries, or pairs of a query and a label.
        sources: whether the file tells who gave a label, and which rows were not asked.
        asked: rows that were asked; all of them where the file does not tell.
        answers: rows that the teachers answered; where the file does not tell, that have a label.
        metadata: texts, and `label_names` a list of them; empty where the file has none.
    """

    rows: int
    sources: bool
    asked: int
    answers: int
    metadata: dict[str, Any]


def count_labels(
    path: str | PathLike[str], label_format: LabelFormat, label_set: LabelSet | None
) -> LabelCounts:
    """Return the counts of a file of labels.

    Raises:
        VoteError: it cannot be read as labels of this format.
    """
    name = fspath(path)
    try:
        # Arrow gets no file of Python's: a thread of Arrow's that gives it back late, at the end
        # of the process, ends that with a signal.
        there = reading(name, "the labels that are checked", VoteError)
        with there if is_address(name) else pa.OSFile(name) as file:
            table = FORMATS[label_format].read(file)
            table.validate(full=True)
            return _counted(table, label_set)
    except _DAMAGE:
        raise VoteError(f"the labels cannot be read as {label_format}") from None


def _counted(table: pa.Table, label_set: LabelSet | None) -> LabelCounts:
    import pyarrow.compute as pc  # heavy, and rarely needed

    about, rows = (table.schema.metadata or {}).get(b"pate", "{}"), table.num_rows
    metadata = dict(json.loads(about))
    if label_set is not None and "unanswered" in table.column_names:
        rows *= label_set.count
        silent = pc.sum(pc.list_value_length(table["unanswered"])).as_py() or 0
    elif "source" not in table.column_names:
        silent = table["label"].null_count
    else:
        sources = np.asarray(table["source"].to_pylist())
        left, answers = (int(np.count_nonzero(sources == who)) for who in ("not asked", "teachers"))
        return LabelCounts(rows, True, rows - left, answers, metadata)
    return LabelCounts(rows, False, rows, rows - silent, metadata)
