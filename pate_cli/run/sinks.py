"""Where labels go as they are drawn: to memory, or to a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from pate_cli.core.arrays import NO_LABEL, each_once
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import UsageError
from pate_cli.core.words import LabelFormat, LabelsAs
from pate_cli.disclosure.report import LabelFile
from pate_cli.files.digest import Hashed
from pate_cli.files.draft import Draft
from pate_cli.files.transaction import Outputs
from pate_cli.labels.forms import check_form
from pate_cli.labels.labels import Labels, LabelWriter, concatenate
from pate_cli.run.engine import behind
from pate_cli.run.labelling import Drawing
from pate_cli.votes.facts import Facts
from pate_cli.votes.names import ClassNames
from pate_cli.votes.vote_file import VoteFile


@dataclass(frozen=True)
class LabelForm:
    """The form that a file of labels has.

    Attributes:
        label_format: their format.
        labels_as: what a row is where a query has several labels; by the format where None.
        escape_formulas: whether no cell of CSV is a formula.
    """

    label_format: LabelFormat
    labels_as: LabelsAs | None = None
    escape_formulas: bool = False

    def check(self, file: VoteFile) -> None:
        """UsageError where labels of these queries cannot have it."""
        check_form(self.label_format, self.labels_as, file.label_set, escaped=self.escape_formulas)
        if self.label_format is LabelFormat.NPY and file.unlisted:
            raise UsageError(
                "NPY holds numbers, and labels that nobody listed are texts; write Parquet, CSV or "
                "JSONL"
            )

    def writer(
        self, file: Draft, metadata: Mapping[str, str], facts: Facts, *, rows: int
    ) -> LabelWriter:
        """A file of labels of this form, begun."""
        return LabelWriter(
            file,
            self.label_format,
            metadata,
            rows=rows,
            label_names=facts.label_names,
            label_set=facts.label_set,
            labels_as=self.labels_as,
            escape_formulas=self.escape_formulas,
        )


@dataclass(frozen=True)
class InMemory:
    """Keeps labels in memory.

    Attributes:
        vocabulary: what the classes are called, where nobody listed them. SECRET.
        tables: the labels of each batch.
    """

    vocabulary: ClassNames | None = None
    tables: list[Labels] = field(default_factory=list)

    def fill(self, drawing: Drawing, add: Callable[[Any], None]) -> tuple[int, int]:
        """See LabelSink."""
        rows = answers = 0
        for table, kept in drawing.batches():
            add(kept)
            self.tables.append(table)
            rows, answers = rows + len(table), answers + table.answers
        return rows, answers

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

    def fill(self, drawing: Drawing, add: Callable[[Any], None]) -> tuple[int, int]:
        """See LabelSink."""
        form, facts = self.form, drawing.facts
        rows = answers = 0

        def drawn() -> Iterator[Labels]:
            nonlocal rows, answers
            for table, kept in drawing.batches():
                add(kept)
                rows, answers = rows + len(table), answers + table.answers
                yield table

        promised = int(drawing.metadata["queries"])
        with self.out.open(self.path) as draft:
            file, tables = Hashed(draft), drawn()
            if self.vocabulary is not None:
                # Which names came out is known once all labels are drawn.
                found = _named(list(tables), self.vocabulary)
                tables, facts = iter([found]), replace(facts, label_names=found.label_names)
            with (
                form.writer(file, drawing.metadata, facts, rows=promised) as writer,
                behind(writer.write, entries=promised) as write,
            ):
                for table in tables:
                    write(table)
        self.written = LabelFile.of(file.digest, form.label_format)
        return rows, answers


def _named(drawn: Sequence[Labels], vocabulary: ClassNames | None) -> Labels:
    """All labels in one table, under the names that came out where nobody listed the names."""
    found = concatenate(drawn)
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
