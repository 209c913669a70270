"""Values that stand beside votes, matched to their rows by query id, or by order without ids."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pate_cli.core.arrays import Ids
from pate_cli.core.errors import VoteError
from pate_cli.votes.checks import ABSENT


@dataclass(frozen=True, eq=False)
class Joined:
    """Values for queries: a class each, or a row of numbers each.

    Attributes:
        noun: what messages call it ("the prior").
        values: classes [rows], -1 for none; numbers [rows, classes or labels]; or texts [rows].
        ids: the query id of each row, where 7 and "7" are the same; None where rows are in the
            order of the votes.
        labels: how many rows of votes are one query: 1, or as many as a query has labels.
        titles: what the columns of numbers are called, as long as their order is not that of the
            votes.
    """

    noun: str
    values: NDArray[Any]
    ids: Ids | None = None
    labels: int = 1
    titles: tuple[str, ...] | None = None
    _places: dict[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        keys = [] if self.ids is None else _keys(self.ids)
        places = {key: row for row, key in enumerate(keys)}
        if len(places) < len(keys):
            row = next(row for row, key in enumerate(keys) if places[key] != row)
            twice = f"row {places[keys[row]]} has the query id of row {row}, too"
            raise VoteError(f"{self.noun}: {twice}")
        object.__setattr__(self, "_places", places)

    @property
    def by_id(self) -> bool:
        """Whether rows are matched by query ids."""
        return self.ids is not None

    @property
    def sha256(self) -> str:
        """A digest of the values, and of the query ids where there are any."""
        if self.values.dtype.kind == "O":
            content = json.dumps(self.values.tolist()).encode()
        else:
            known = np.nan_to_num(self.values, nan=ABSENT)
            whole = bool((known == np.floor(known)).all())
            if not whole and known.ndim == 2:  # as the votes of a prior are shared out
                known = known / known.sum(axis=1, keepdims=True)
            content = np.ascontiguousarray(known, dtype="<i8" if whole else "<f8").tobytes()
        ids = b"" if self.ids is None else json.dumps(_keys(self.ids)).encode()
        return hashlib.sha256(content + ids).hexdigest()

    def at(self, ids: Ids | range, first_row: int, none: float) -> NDArray[Any]:
        """Return the value of each row of votes, `none` where there is none.

        The rows have these query ids, or are those from `first_row` on. VoteError where the values
        end before.
        """
        place = first_row + np.arange(len(ids))
        rows = place // self.labels
        if self.by_id:
            rows = np.array([*map(self._places.get, _keys(ids), repeat(ABSENT))], dtype=np.int64)
        elif rows.size and rows[-1] >= len(self.values):
            raise VoteError(
                f"{self.noun}: ends at row {len(self.values) - 1}, the votes go on to row "
                f"{rows[-1]}; give a row for each query, or a table with `query_id`"
            )
        values = self.values[rows] if self.labels == 1 else self.values[rows, place % self.labels]
        found = values.astype(np.result_type(values, type(none)))
        found[rows < 0] = none
        return found

    def said_of(self, ids: Ids | range, first_row: int) -> int:
        """Return about how many of these rows of votes it says something."""
        said = self.at(ids, first_row, ABSENT) >= 0
        return int(np.count_nonzero(said.reshape(len(said), -1).all(axis=1)))


def _keys(ids: Ids | range) -> list[str]:
    """Return query ids as they are compared: 7 and "7" are the same."""
    return [*map(str, ids.tolist() if isinstance(ids, np.ndarray) else ids)]
