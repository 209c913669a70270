"""True labels of queries, where they are known: to see how often released labels are right."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pate_cli.errors import VoteError

__all__ = ["UNKNOWN", "Truth", "load_truth"]

Labels = NDArray[np.int64]

UNKNOWN = -1


@dataclass(frozen=True, eq=False)
class Truth:
    """One label a query, matched to votes by id or by order.

    Attributes:
        labels: [queries], classes from 0; −1 where nothing is known.
        ids: the queries' ids, or None when rows match votes by their order.
    """

    labels: Labels
    ids: tuple[Any, ...] | None = None

    def of(self, ids: Any, first_row: int, *, classes: int) -> Labels:
        """Labels of the queries with these ids, or from `first_row` on, each −1 ≤ label < classes.

        Raises:
            VoteError: fewer labels than queries, or a label out of range.
        """
        rows = np.arange(first_row, first_row + len(ids))
        if self.ids is None:
            if rows.size and rows[-1] >= self.labels.size:
                raise VoteError(
                    f"true labels end at row {self.labels.size - 1}, the votes go on to row "
                    f"{int(rows[-1])}"
                )
            found = self.labels[rows]
        else:
            known = dict(zip(self.ids, self.labels.tolist(), strict=True))
            wanted = np.asarray(ids).tolist()
            found = np.array([known.get(one, UNKNOWN) for one in wanted], dtype=np.int64)
        bad = (found < UNKNOWN) | (found >= classes)
        if bad.any():
            raise VoteError(
                f"true labels: the label of row {int(rows[np.argmax(bad)])} is not among the "
                f"{classes} classes of the votes"
            )
        return found


def load_truth(path: str | Path) -> Truth:
    """Read labels: NPY [queries], or Parquet with `label` and optionally `query_id`.

    Raises:
        VoteError: a file that cannot be read as such.
    """
    source = Path(path)
    try:
        with source.open("rb") as file:
            magic = file.read(4)
        if magic == b"PAR1":
            return _from_parquet(source)
        if magic == b"\x93NUM":
            return Truth(_whole(np.load(source, allow_pickle=False), source))
    except OSError as error:
        raise VoteError(f"cannot read {source}: {error.strerror or 'damaged'}") from None
    except (ValueError, EOFError):
        raise VoteError(f"{source}: cannot be read as true labels") from None
    raise VoteError(f"{source}: neither NPY nor Parquet")


def _from_parquet(source: Path) -> Truth:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        table = parquet.read_table(source)
    except pa.ArrowException:
        raise VoteError(f"{source}: cannot be read as true labels") from None
    if "label" not in table.column_names:
        raise VoteError(f"{source}: true labels need a column named label")
    column = table["label"]
    if pa.types.is_integer(column.type):
        column = column.cast(pa.int64()).fill_null(UNKNOWN)
    labels = _whole(column.to_numpy(), source)
    if "query_id" not in table.column_names:
        return Truth(labels)
    ids = tuple(table["query_id"].to_pylist())
    if len(set(ids)) != len(ids):
        raise VoteError(f"{source}: a query id occurs twice")
    return Truth(labels, ids)


def _whole(values: NDArray[Any], source: Path) -> Labels:
    if values.ndim != 1 or values.dtype.kind not in "iu" or values.size == 0:
        raise VoteError(f"{source}: true labels must be whole numbers, one a query")
    return values.astype(np.int64)
