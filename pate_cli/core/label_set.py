"""Several labels a query: how rows of votes and of labels stand for them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pate_cli.core.codec import SPARING, Refusal, called, decoded, encoded, picked
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import ParameterError
from pate_cli.core.words import Voting

UNDECIDED: Final = -1
"""A label of a query about which nothing is said."""

LARGEST_POWERSET: Final = 12
"""Labels beyond which sets of them are no classes: every one of the 2^L counts gets noise."""

_DAMAGED: Final = Refusal(ParameterError, "what is said of several labels is damaged: ")


@dataclass(frozen=True)
class LabelSet:
    """The labels of every query, each of them given or not; all of it public.

    Binary voting: row r of a file is query r // count and label r % count, its classes no and yes.
    Powerset voting: a row is a query, and class Σ 2^l over the labels l that are given is that set.

    Attributes:
        count: L, how many labels there are, at least 1.
        voting: on every label by itself, or on sets of them.
        names: of the labels, [count], each once; None where they have none but their numbers.
    """

    count: int = field(metadata=called("labels_per_query"))
    voting: Voting = Voting.BINARY
    names: tuple[str, ...] | None = field(default=None, metadata=called("label_names") | SPARING)

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ParameterError(f"there must be at least 1 label, got {self.count}")
        if self.voting is Voting.POWERSET and self.count > LARGEST_POWERSET:
            raise ParameterError(
                f"`voting` {self.voting} is for at most {LARGEST_POWERSET} labels, got "
                f"{self.count}: each of the 2^{self.count} sets of them would get its own noise; "
                f"give `voting` {Voting.BINARY}"
            )
        if self.names is not None and len(set(self.names)) != self.count:
            raise ParameterError(
                f"{len(self.names)} names for {self.count} labels: each label needs one of its own"
            )

    @property
    def rows_per_query(self) -> int:
        """How many rows of votes a query is."""
        return self.count if self.voting is Voting.BINARY else 1

    @property
    def classes(self) -> int:
        """m: no and yes, or all sets of labels, whether a teacher ever voted for them or not."""
        return 2 if self.voting is Voting.BINARY else 1 << self.count

    @property
    def titles(self) -> list[str] | list[int]:
        """What the labels are called: their names, or their numbers."""
        return list(range(self.count)) if self.names is None else list(self.names)

    def decided(self, labels: NDArray[Any]) -> NDArray[np.int8]:
        """What labels of rows, below 0 for none, say: 1 given, 0 not, UNDECIDED; [queries, count].

        ParameterError where the rows are not those of whole queries, or a label is no class.
        """
        rows = np.asarray(labels)
        if rows.size % self.rows_per_query:
            raise ParameterError(
                f"{rows.size} rows are no whole queries of {self.count} labels each"
            )
        if rows.size and rows.max() >= self.classes:
            raise ParameterError(f"row {int(np.argmax(rows >= self.classes))}: no set of labels")
        if self.voting is Voting.BINARY:
            return np.maximum(rows, UNDECIDED).reshape(-1, self.count).astype(np.int8)
        bits = rows[:, np.newaxis] >> np.arange(self.count) & 1
        return np.where(rows[:, np.newaxis] < 0, UNDECIDED, bits).astype(np.int8)

    def classes_of(self, decided: NDArray[np.int64]) -> NDArray[np.int64]:
        """The sets that labels [queries, count] of 1, 0 and UNDECIDED are; UNDECIDED if one is."""
        sets = decided @ (1 << np.arange(self.count))
        return np.where((decided == UNDECIDED).any(axis=1), UNDECIDED, sets)

    def by_label(self, codes: NDArray[Any]) -> NDArray[Any]:
        """What is said of rows, said of every label: [queries, count]."""
        if self.voting is Voting.BINARY:
            return codes.reshape(-1, self.count)
        return np.repeat(codes[:, np.newaxis], self.count, axis=1)

    def facts(self) -> dict[str, Any]:
        """It in JSON-ready values."""
        facts: dict[str, Any] = encoded(self)
        return facts

    def texts(self) -> dict[str, str]:
        """It in texts."""
        return {
            name: fact if isinstance(fact, str) else json.dumps(fact)
            for name, fact in self.facts().items()
        }

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> LabelSet:
        """The reverse of `facts`, also among others; ParameterError for anything else."""
        return decoded(cls, picked(cls, facts), _DAMAGED)


def rows_of(label_set: LabelSet | None) -> str:
    """What rows of votes are called: queries, or pairs of a query and a label."""
    pairs = label_set is not None and label_set.voting is Voting.BINARY
    return "pairs of query and label" if pairs else "queries"
