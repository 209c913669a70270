"""What the builders of the sample ensembles share: disjoint parts, ballots, and how files are kept.

The same versions of numpy, scikit-learn and pyarrow give the same bytes; others may train
slightly different teachers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

FOLDER = Path(__file__).resolve().parent


def count_votes(
    teach: Callable[[int, NDArray[np.int64]], Any],
    parts: Sequence[NDArray[np.int64]],
    queries: NDArray[Any],
    classes: int,
) -> tuple[NDArray[np.int16], NDArray[np.int8]]:
    """Train a teacher on each part and count its votes.

    Args:
        teach: (teacher, rows) to a fitted model with `predict`; rows are places in the records.
        parts: disjoint rows, one part a teacher.
        queries: features, [queries, features].
        classes: m.

    Returns:
        Counts [queries, classes], and every teacher's vote [teachers, queries].
    """
    ballots = np.stack([teach(k, rows).predict(queries) for k, rows in enumerate(parts)])
    counts = np.zeros((len(queries), classes), dtype=np.int16)
    rows = np.arange(len(queries))
    for ballot in ballots:
        counts[rows, ballot] += 1
    return counts, ballots.astype(np.int8)


def counts_table(counts: NDArray[Any]) -> pa.Table:
    """One row a query, one whole-number column a class."""
    return pa.table({f"class_{j}": counts[:, j].astype(np.int16) for j in range(counts.shape[1])})


def truth_table(labels: NDArray[Any]) -> pa.Table:
    """The queries' recorded labels, in the order of the votes but kept apart from them."""
    return pa.table({"label": labels.astype(np.int16)})


def describe(counts: NDArray[Any], ballots: NDArray[Any], truth: NDArray[Any]) -> str:
    """One line: how good teachers and ensemble are, and how much they agree."""
    top = np.sort(counts, axis=1)[:, ::-1]
    return (
        f"{len(ballots)} teachers, {len(counts)} queries: a teacher is right on "
        f"{(ballots == truth).mean():.1%}, the plurality on "
        f"{(counts.argmax(axis=1) == truth).mean():.1%}; it has {top[:, 0].mean():.1f} votes, "
        f"{(top[:, 0] - top[:, 1]).mean():.1f} more than the second"
    )


def keep(table: pa.Table, name: str, folder: Path = FOLDER) -> Path:
    """Write a table compactly; the same table gives the same bytes."""
    path = folder / name
    pq.write_table(table, path, version="2.6", compression="zstd", compression_level=19)
    return path


def load(name: str, folder: Path = FOLDER) -> dict[str, NDArray[Any]]:
    """The columns of a kept table."""
    table = pq.read_table(folder / name)
    return {column: table[column].to_numpy() for column in table.column_names}


def load_counts(name: str, folder: Path = FOLDER) -> NDArray[np.int64]:
    """Counts [queries, classes] of a kept table of votes."""
    return np.stack(list(load(name, folder).values()), axis=1).astype(np.int64)
