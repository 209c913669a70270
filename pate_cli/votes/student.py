"""A student's predictions on the queries: public input of Interactive-GNMax."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pate_cli.arrays import Floats
from pate_cli.errors import VoteError

__all__ = ["StudentPredictions", "load_predictions"]


_SUM_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class StudentPredictions:
    """Class probabilities per query, matched to votes by id or by order.

    Attributes:
        probabilities: [queries, classes]; rows sum to 1 within 1e-6.
        ids: the queries' ids, or None when rows match votes by their order.
    """

    probabilities: Floats
    ids: NDArray[Any] | None = None
    _places: dict[Any, int] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        values = self.probabilities
        if values.ndim != 2 or values.shape[1] < 2 or values.shape[0] == 0:
            raise VoteError(
                "student predictions must be [queries, classes] with at least 2 classes, got "
                f"shape {values.shape}"
            )
        good = np.logical_and(values >= 0.0, values < np.inf).all(axis=1, keepdims=True)
        bad = np.abs(np.where(good, values, 0.0).sum(axis=1) - 1.0) > _SUM_TOLERANCE
        if bad.any():
            raise VoteError(
                f"student predictions, row {int(np.argmax(bad))}: not probabilities that sum to 1 "
                "within 1e-6; give the output of a softmax or predict_proba"
            )
        if self.ids is not None:
            self._find_places(self.ids.tolist())

    def _find_places(self, ids: list[Any]) -> None:
        if len(ids) != len(self.probabilities):
            raise VoteError(
                f"student predictions: {len(ids)} query ids for {len(self.probabilities)} rows"
            )
        for place, one in enumerate(ids):
            first = self._places.setdefault(one, place)
            if first != place:
                raise VoteError(
                    f"student predictions: the query id of row {place} is that of row {first}, too"
                )

    @property
    def classes(self) -> int:
        """m."""
        return self.probabilities.shape[1]

    def of(self, ids: Any, first_row: int) -> Floats:
        """Probabilities of the queries with these ids, or from `first_row` on.

        Raises:
            VoteError: a query without predictions.
        """
        if self.ids is None:
            rows = np.arange(first_row, first_row + len(ids))
            if rows.size and rows[-1] >= len(self.probabilities):
                raise VoteError(
                    f"student predictions end at row {len(self.probabilities) - 1}, the votes go "
                    f"on to row {int(rows[-1])}"
                )
            return self.probabilities[rows]
        places = []
        for offset, one in enumerate(np.asarray(ids).tolist()):
            if one not in self._places:
                raise VoteError(
                    f"student predictions: none for the query of row {first_row + offset}"
                )
            places.append(self._places[one])
        return self.probabilities[places]


def load_predictions(path: str | Path) -> StudentPredictions:
    """Read predictions: NPY [queries, classes], or Parquet with one column per class or one list
    column, and optionally `query_id`.

    Raises:
        VoteError: a file that cannot be read as such.
    """
    source = Path(path)
    try:
        with source.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise VoteError(f"cannot read {source}: {error.strerror}") from None
    try:
        if magic == b"PAR1":
            return _from_parquet(source)
        if magic == b"\x93NUM":
            values = np.load(source, allow_pickle=False)
            return StudentPredictions(_as_floats(values))
    except (OSError, ValueError, TypeError, EOFError):
        raise VoteError(f"{source}: cannot be read as student predictions") from None
    raise VoteError(f"{source}: neither NPY nor Parquet")


def _from_parquet(source: Path) -> StudentPredictions:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        table = parquet.read_table(source)
    except pa.ArrowException:
        raise VoteError(f"{source}: a truncated or damaged Parquet file") from None
    ids = None
    names = list(table.column_names)
    if "query_id" in names:
        ids = np.asarray(table.column("query_id").to_pylist())
        names.remove("query_id")
    if len(names) == 1 and pa.types.is_nested(table.column(names[0]).type):
        rows = table.column(names[0]).to_pylist()
        for row, values in enumerate(rows):
            if values is None or len(values) != len(rows[0]):
                raise VoteError(
                    f"{source}: row {row} is the first with another number of classes than row 0"
                )
        return StudentPredictions(_as_floats(np.array(rows, dtype=np.float64)), ids)
    columns = [_as_floats(table.column(name).to_numpy()) for name in names]
    return StudentPredictions(np.column_stack(columns), ids)


def _as_floats(values: NDArray[Any]) -> Floats:
    if values.dtype.kind not in "fiu":
        raise VoteError(f"student predictions must be numbers, got {values.dtype}")
    return values.astype(np.float64)
