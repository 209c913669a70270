"""Where labels go as they are drawn: to memory, or to a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace

import numpy as np

from pate_cli.core.arrays import NO_LABEL, each_once
from pate_cli.core.dataclass import dataclass
from pate_cli.disclosure.report import LabelFile
from pate_cli.files.digest import Hashed
from pate_cli.files.transaction import Outputs
from pate_cli.labels.forms import LabelForm
from pate_cli.labels.labels import Labels, joined, write_labels
from pate_cli.votes.names import ClassNames


@dataclass(frozen=True)
class InMemory:
    """Keeps labels in memory.

    Attributes:
        vocabulary: what the classes are called, where nobody listed them. SECRET.
        tables: the labels of each batch.
    """

    vocabulary: ClassNames | None = None
    tables: list[Labels] = field(default_factory=list)

    def fill(self, tables: Iterator[Labels], *, queries: int) -> None:
        """Keep all of them."""
        del queries
        self.tables.extend(tables)

    @property
    def labels(self) -> Labels:
        """All of them, in one table."""
        return _named(self.tables, self.vocabulary)


@dataclass
class InFile:
    """Writes labels to an output that is reserved.

    Attributes:
        out: the transaction it is part of.
        path: its name there.
        form: of the file.
        vocabulary: what the classes are called, where nobody listed them. SECRET.
        written: what was written, once all of it is.
    """

    out: Outputs
    path: str
    form: LabelForm
    vocabulary: ClassNames | None = None
    written: LabelFile | None = None

    def fill(self, tables: Iterator[Labels], *, queries: int) -> None:
        """Write all of them, and note the digest of the file."""
        with self.out.open(self.path) as draft:
            file = Hashed(draft)
            if self.vocabulary is not None:
                # Which names came out is known once all labels are drawn.
                tables = iter([_named(list(tables), self.vocabulary)])
            write_labels(tables, file, self.form, rows=queries)
        self.written = LabelFile.of(file.digest, self.form.label_format)


def _named(drawn: Sequence[Labels], vocabulary: ClassNames | None) -> Labels:
    """All labels in one table, under the names that came out where nobody listed the names."""
    found = joined(drawn)
    if vocabulary is None:
        return found
    given = found.labels != NO_LABEL
    # Labels are renumbered, for the place of a name among all that were said tells of the others.
    places = each_once(found.labels[given])
    return replace(
        found,
        labels=np.where(given, np.searchsorted(places, found.labels), NO_LABEL),
        sources=found.source_codes,
        label_names=tuple(
            vocabulary.names[place] if vocabulary.names else str(place) for place in places.tolist()
        ),
    )
