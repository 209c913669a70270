"""Where labels go as they are drawn: to memory, to a file, or to parts that workers write."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from typing import Any

from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import ParameterError, UsageError
from pate_cli.core.words import LabelFormat, LabelsAs
from pate_cli.disclosure.report import LabelFile
from pate_cli.files.digest import Hashed
from pate_cli.files.draft import Draft
from pate_cli.files.part_folder import Part, PartFolder, digest_of_parts
from pate_cli.files.transaction import Outputs
from pate_cli.labels.forms import check_form
from pate_cli.labels.labels import Labels, LabelWriter, concatenate
from pate_cli.run.engine import behind
from pate_cli.run.labelling import Drawing, DrawnBatch
from pate_cli.run.last_step import NO_STEP, LastStep
from pate_cli.run.passes import FilePasses
from pate_cli.votes.facts import Facts
from pate_cli.votes.vote_file import VoteFile


@dataclass(frozen=True)
class LabelForm:
    """The form that files of labels have.

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
        if self.label_format is LabelFormat.NPY and file.vocabulary is not None:
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
    """Keeps them; `last` is what becomes of all."""

    last: LastStep = NO_STEP
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
        return concatenate(self.last.tables(self.last.named(self.tables)))


@dataclass
class InFile:
    """Writes them to an output that is reserved.

    Attributes:
        out: the transaction it is part of.
        path: its name there.
        form: of the file.
        last: what becomes of all of them.
        written: what was written, once all of it is.
    """

    out: Outputs
    path: str
    form: LabelForm
    last: LastStep = NO_STEP
    written: LabelFile | None = None

    def fill(self, drawing: Drawing, add: Callable[[Any], None]) -> tuple[int, int]:
        """See LabelSink."""
        form, last, facts = self.form, self.last, drawing.facts
        rows = answers = 0

        def drawn() -> Iterator[Labels]:
            nonlocal rows, answers
            for table, kept in drawing.batches():
                add(kept)
                rows, answers = rows + len(table), answers + table.answers
                yield table

        promised = last.rows(int(drawing.metadata["queries"]))
        with self.out.open(self.path) as draft:
            file, tables = Hashed(draft), drawn()
            if last.waits:
                found = last.named(list(tables))
                tables, facts = last.tables(found), replace(facts, label_names=found.label_names)
            with (
                form.writer(file, drawing.metadata, facts, rows=promised) as writer,
                behind(writer.write, entries=promised) as write,
            ):
                for table in tables:
                    write(table)
        self.written = LabelFile.of(file.digest, form.label_format)
        return rows, answers


@dataclass(frozen=True)
class PartPlace:
    """Where workers write parts of labels, and how; it travels to them.

    Attributes:
        folder: what the parts are for.
        run: names this attempt to fill it.
        form: of the parts.
    """

    folder: PartFolder
    run: str
    form: LabelForm


@dataclass
class InParts:
    """Has workers write them, wherever they are: a part of a folder for each range of rows.

    Attributes:
        place: where they write.
        parts: those that are staged, in order, once all of them are.
    """

    place: PartPlace
    parts: tuple[Part, ...] = ()

    @property
    def written(self) -> LabelFile | None:
        """What was written, once all of it is."""
        if not self.parts:
            return None
        return LabelFile.of(digest_of_parts(self.parts), self.place.form.label_format)

    def fill(self, drawing: Drawing, add: Callable[[Any], None]) -> tuple[int, int]:
        """See LabelSink."""
        passes, place = drawing.passes, self.place
        if not isinstance(passes, FilePasses):
            raise ParameterError("labels go to parts where the votes are in a file")
        ranges, look = passes.ranges, drawing.look
        write = _WritePart(
            place,
            drawing.metadata,
            drawing.facts,
            numbers={start: number for number, (start, _) in enumerate(ranges)},
            allowed={},
            staged=place.folder.staged(place.run),
        )
        receipts = []
        for receipt in passes.gathered(
            drawing.mechanism,
            look,
            write,
            ranges=ranges,
            progress=drawing.progress,
            in_order=look.in_order,
        ):
            for kept in receipt.kept:
                add(kept)
            receipts.append(replace(receipt, kept=[]))
        receipts = self._capped(passes, drawing, write, receipts)
        self.parts = tuple(receipt.part for receipt in receipts)
        return sum(each.rows for each in receipts), sum(each.answers for each in receipts)

    @staticmethod
    def _capped(
        passes: FilePasses, drawing: Drawing, write: _WritePart, receipts: list[_Receipt]
    ) -> list[_Receipt]:
        """Parts that the cap falls into, and those after it, written again with what it leaves."""
        ranges, left, allowed = passes.ranges, drawing.max_answers, {}
        for (start, _), receipt in zip(ranges, receipts, strict=True):
            if receipt.answers >= left:
                allowed[start] = left
            left = max(left - receipt.answers, 0)
        if not allowed:
            return receipts
        look = replace(drawing, keep=None).look
        again = [rows for rows in ranges if rows[0] in allowed or look.in_order]
        capped = passes.gathered(
            drawing.mechanism,
            look,
            replace(write, allowed=allowed),
            ranges=again,
            in_order=look.in_order,
        )
        redone = {rows[0]: receipt for rows, receipt in zip(again, capped, strict=True)}
        return [
            redone.get(start, receipt) for (start, _), receipt in zip(ranges, receipts, strict=True)
        ]


@dataclass(frozen=True)
class _Receipt:
    """A part that is staged."""

    part: Part
    rows: int
    answers: int
    kept: list[Any]


@dataclass(frozen=True)
class _WritePart:
    """The labels of a range, written where they were drawn."""

    place: PartPlace
    metadata: Mapping[str, str]
    facts: Facts
    numbers: Mapping[int, int]
    """Of the parts, by the first row of their ranges."""
    allowed: Mapping[int, int]
    """Answers that a cap leaves, by the first row of the range; all where nothing is said."""
    staged: Mapping[str, int]
    """Sizes of parts that an earlier process of the same run has left, by name."""

    def __call__(self, rows: tuple[int, int], found: list[DrawnBatch]) -> _Receipt:
        start, stop = rows
        left = self.allowed.get(start, stop - start + 1)
        answers, place, facts = 0, self.place, self.facts
        suffix = f".{place.form.label_format}"
        with (
            place.folder.open_part(place.run, self.numbers[start], suffix) as file,
            place.form.writer(file, self.metadata, facts, rows=stop - start) as writer,
        ):
            for drawn in found:
                table = drawn.until(left - answers, self.metadata, facts)
                answers += table.answers
                writer.write(table)
        part = file.part(rows=writer.rows)
        return _Receipt(part, stop - start, answers, [each.kept for each in found])

    def stands(self, known: _Receipt) -> bool:
        # A part that a cap cuts may have been written over without it.
        part, place = known.part, self.place
        there = not self.allowed and self.staged.get(part.name) == part.size
        return there and place.folder.holds(place.run, part)
