"""What becomes of labels once all are drawn: those of queries, under names that came out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from pate_cli.core.arrays import NO_LABEL, each_once
from pate_cli.core.dataclass import dataclass
from pate_cli.labels.labels import Labels, concatenate
from pate_cli.run.by_query import by_query
from pate_cli.votes.beside.pool import Members
from pate_cli.votes.vocabulary import Vocabulary


@dataclass(frozen=True)
class LastStep:
    """Of a run.

    Attributes:
        members: the queries, where rows are clusters of them.
        vocabulary: what the classes are called, where nobody listed them. SECRET, but for the names
            of labels.
    """

    members: Members | None = None
    vocabulary: Vocabulary | None = None

    @property
    def waits(self) -> bool:
        """Whether all labels must be there first."""
        return self.members is not None or self.vocabulary is not None

    def rows(self, asked: int) -> int:
        """How many rows there are in the end, if so many are asked."""
        return asked if self.members is None else len(self.members.places)

    def named(self, drawn: Sequence[Labels]) -> Labels:
        """All that were drawn, under the names that came out and no others."""
        found = concatenate(drawn)
        return found if self.vocabulary is None else _renumbered(found, self.vocabulary)

    def tables(self, found: Labels) -> Iterator[Labels]:
        """Their rows, some at a time."""
        if self.members is None:
            yield found
        else:
            yield from by_query(found, self.members)


NO_STEP: Final = LastStep()
"""Labels are what they are drawn as."""


def _renumbered(found: Labels, vocabulary: Vocabulary) -> Labels:
    """The same with the places of labels among those that came out, for theirs tell of others."""
    given = found.labels != NO_LABEL
    places = each_once(found.labels[given])
    return replace(
        found,
        labels=np.where(given, np.searchsorted(places, found.labels), NO_LABEL),
        sources=found.source_codes,
        label_names=tuple(map(vocabulary.title, places.tolist())),
    )
