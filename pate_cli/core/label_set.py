"""Several labels a query: how rows of votes and of labels stand for them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pate_cli.core.errors import ParameterError

UNDECIDED: Final = -1
"""A label of a query about which nothing is said."""

CLASSES: Final = 2
"""The classes of a label: 0 where it is not given to the query, and 1 where it is."""


@dataclass(frozen=True)
class LabelSet:
    """The labels of every query, each of them given or not; all of it public.

    Row r of a file is label r % count of query r // count, and its classes are no and yes.

    Attributes:
        count: L, how many labels there are, at least 1.
        names: of the labels, [count], each once; None where they have none but their numbers.
    """

    count: int = field(metadata={"name": "labels_per_query"})  # as documents call it
    names: tuple[str, ...] | None = field(
        default=None, metadata={"name": "label_names", "sparing": True}
    )

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ParameterError(f"there must be at least 1 label, got {self.count}")
        if self.names is not None and len(set(self.names)) != self.count:
            raise ParameterError(
                f"{len(self.names)} names for {self.count} labels: each label needs one of its own"
            )

    @property
    def titles(self) -> list[str] | list[int]:
        """The names of the labels, or their numbers."""
        return list(range(self.count)) if self.names is None else list(self.names)

    def decided(self, labels: NDArray[Any]) -> NDArray[np.int8]:
        """Return 1 for a label that is given, 0 for one that is not, or -1; [queries, count].

        ParameterError where the rows are not those of whole queries, or a label is no class.
        """
        rows = np.asarray(labels)
        if rows.size % self.count:
            raise ParameterError(
                f"{rows.size} rows are no whole queries of {self.count} labels each"
            )
        if rows.size and rows.max() >= CLASSES:
            raise ParameterError(f"row {int(np.argmax(rows >= CLASSES))}: is neither 0 nor 1")
        return np.maximum(rows, UNDECIDED).reshape(-1, self.count).astype(np.int8)


def rows_of(label_set: LabelSet | None) -> str:
    """Return a word for rows of votes: queries, or pairs of a query and a label."""
    return "queries" if label_set is None else "pairs of query and label"
