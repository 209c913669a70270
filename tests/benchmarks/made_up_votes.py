"""Vote files of any length, the same on every machine, written piece by piece."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

__all__ = ["VoteShape", "is_whole", "pieces", "votes_file"]

SEED = 2018
# Rows of a piece and of a row group.
PIECE = 1 << 18
_ENTRIES = 1 << 22


@dataclass(frozen=True)
class VoteShape:
    """What a file holds: rows of `classes` counts that sum to `teachers`."""

    rows: int
    teachers: int = 250
    classes: int = 10

    @property
    def file_name(self) -> str:
        """Says all that the content follows from; another recipe needs another seed."""
        return f"{self.rows}x{self.classes}-{self.teachers}-teachers-seed-{SEED}.parquet"

    @property
    def piece(self) -> int:
        """Rows made at a time."""
        return max(1, min(PIECE, _ENTRIES // self.classes))


def votes_file(shape: VoteShape, folder: Path) -> Path:
    """The file in `folder`, written unless it is there and whole."""
    path = folder / shape.file_name
    if not is_whole(path, shape):
        folder.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".draft")
        schema = pa.schema([(f"class_{j}", _kind(shape)) for j in range(shape.classes)])
        with pq.ParquetWriter(draft, schema) as writer:
            for counts in pieces(shape):
                columns = [pa.array(column) for column in counts.T]
                writer.write_table(pa.table(columns, schema=schema))
        draft.replace(path)
    return path


def is_whole(path: Path, shape: VoteShape) -> bool:
    """Whether the file is there with all its rows; one cut short has no footer."""
    try:
        return bool(pq.read_metadata(path).num_rows == shape.rows)
    except (OSError, pa.ArrowInvalid):
        return False


def pieces(shape: VoteShape) -> Iterator[NDArray[np.unsignedinteger]]:
    """Yield histograms [rows, classes]; a shorter file is the beginning of a longer one."""
    for number, start in enumerate(range(0, shape.rows, shape.piece)):
        rows = min(shape.piece, shape.rows - start)
        yield _piece(shape, np.random.default_rng([SEED, number]))[:rows]


def _piece(shape: VoteShape, rng: np.random.Generator) -> NDArray[np.unsignedinteger]:
    """One class's share is Beta(4, 1.2), easy to hard; the rest is Dirichlet(1, …, 1).

    Votes are the rounded steps of the running sum of shares, so that they sum to the teachers.
    """
    rows, classes = shape.piece, shape.classes
    share = rng.beta(4.0, 1.2, rows)
    rest = rng.standard_exponential((rows, classes - 1))
    rest *= ((1.0 - share) / rest.sum(axis=1))[:, np.newaxis]
    sums = np.cumsum(np.column_stack([share, rest]), axis=1)
    sums[:, -1] = 1.0
    votes = np.diff(np.rint(shape.teachers * sums), axis=1, prepend=0.0)
    counts = votes.astype(str(_kind(shape)))
    row, favourite = np.arange(rows), rng.integers(0, classes, rows)
    first = counts[:, 0].copy()
    counts[:, 0] = counts[row, favourite]
    counts[row, favourite] = first
    return counts


def _kind(shape: VoteShape) -> pa.DataType:
    return pa.uint8() if shape.teachers < 256 else pa.uint16()
