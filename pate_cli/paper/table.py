"""A reproduced table: how each row ended, and how all are shown, as text, CSV and JSON."""

from __future__ import annotations

import csv
import enum
import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from pate_cli.core.errors import PateError, ValidityError, VoteError
from pate_cli.paper.folder import Asked, VoteFolder
from pate_cli.paper.rows import TableRow

_WORDS = 2  # columns of words, left-aligned; the others hold numbers


class Status(enum.StrEnum):
    """How a row ended."""

    RAN = "ran"
    ABSENT = "votes absent"
    UNSTATED = "scale not published"
    UNREADABLE = "votes unreadable"
    INVALID = "a condition fails"


@dataclass(frozen=True)
class RowResult:
    """One row of a reproduced table.

    Attributes:
        status: how it ended. An `INVALID` row may hold those figures that do not depend on the
            condition.
        lines: cells of its lines in the printed table, without the name of its data.
        data: the figures unrounded, fit for JSON; the reason where there are none.
        notes: what a reader has to know, one sentence each.
    """

    status: Status
    lines: tuple[tuple[str, ...], ...]
    data: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


Compute: TypeAlias = Callable[[TableRow, Sequence[Asked]], RowResult]
"""Gives the result of a row whose votes are at hand."""


def row_result(row: TableRow, folder: VoteFolder, compute: Compute, *, blank: int) -> RowResult:
    """Compute a row whose files may be absent or damaged; never a made-up figure.

    Args:
        row: what the paper prints, or a sample.
        folder: where its files should be.
        compute: called where they can be read.
        blank: how many columns stand before the printed figures of a row that did not run.
    """
    absent = folder.absent(row.files)
    if not all(each.noise for each in row.rounds):
        status, reason = Status.UNSTATED, "the paper does not say which Laplace scale this row used"
    elif absent:
        status, reason = Status.ABSENT, f"absent from {folder.path}: {', '.join(absent)}"
    else:
        try:
            rounds = [folder.ask(each) for each in row.rounds]
            found = compute(row, rounds)
            remarks = tuple(remark for each in rounds for remark in each.remarks)
            data = {**found.data, "rounds": [each.described for each in rounds]}
            return replace(found, data=data, notes=remarks + found.notes)
        except PateError as error:
            status = Status.UNREADABLE if isinstance(error, VoteError) else Status.INVALID
            reason = in_flags(error)
    line = (f"{row.aggregator}: {status}", *("-",) * blank, *row.printed)
    return RowResult(status, (line,), {"reason": reason}, (reason,))


def in_flags(error: PateError) -> str:
    """The message of an error, with flags for the parameters, which stand in backticks."""
    return re.sub(r"`(\w+)`", lambda found: f"--{found[1].replace('_', '-')}", str(error))


@dataclass(frozen=True)
class ResultTable:
    """A reproduced table.

    Attributes:
        title: printed above it.
        header: names of the columns; the first two are of words, the others of numbers.
        results: what became of each row.
        notes: what holds for all rows.
    """

    title: str
    header: tuple[str, ...]
    results: Mapping[TableRow, RowResult]
    notes: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        """0 if a row ran; else 4 if a condition failed; else 3."""
        ended = {result.status for result in self.results.values()}
        if Status.RAN in ended:
            return 0
        return ValidityError.exit_code if Status.INVALID in ended else VoteError.exit_code

    @property
    def all_notes(self) -> list[str]:
        """Notes on the rows, then on the table."""
        of_rows = [
            f"{row.name}: {note}" for row, result in self.results.items() for note in result.notes
        ]
        return [*of_rows, *self.notes]

    def text(self) -> str:
        """Title, aligned lines and notes, for people."""
        cells = self._cells
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        cells.insert(1, tuple("-" * width for width in widths))
        lines = [
            "  ".join(
                cell.ljust(width) if column < _WORDS else cell.rjust(width)
                for column, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in cells
        ]
        notes = [f"- {note}" for note in self.all_notes]
        return "\n".join([self.title, "", *lines, "", *notes]) + "\n"

    def json(self) -> str:
        """The table unrounded, with the reason where a row has no figures."""
        rows = [
            {"row": row.name, "status": result.status.value, **result.data}
            for row, result in self.results.items()
        ]
        content = {"table": self.title, "rows": rows, "notes": self.all_notes}
        return json.dumps(content, indent=2, allow_nan=False) + "\n"

    def csv(self) -> str:
        """The cells as they are printed, a line each; without the notes."""
        sink = io.StringIO()
        csv.writer(sink, lineterminator="\n").writerows(self._cells)
        return sink.getvalue()

    @property
    def _cells(self) -> list[tuple[str, ...]]:
        """The header and every line, all of one length."""
        cells = [self.header]
        for row, result in self.results.items():
            names = (row.dataset, *("",) * (len(result.lines) - 1))
            cells += [(name, *line) for name, line in zip(names, result.lines, strict=True)]
        return [line + ("",) * (len(self.header) - len(line)) for line in cells]
