"""A reproduced table: how each row ended, and how all are shown, to people and as JSON."""

from __future__ import annotations

import contextlib
import csv
import enum
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol, TextIO, TypeAlias

from pate_cli.core.errors import ParameterError, ValidityError, VoteError
from pate_cli.core.progress import Advance
from pate_cli.reproduction.flags import in_flags
from pate_cli.reproduction.latex import tabular
from pate_cli.reproduction.vote_folder import VoteFolder

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
    """One row.

    Attributes:
        name: dataset and aggregator, for notes.
        status: how it ended. An `INVALID` row may hold those figures that do not depend on the
            condition.
        lines: cells of its lines in the printed table, the first of them the name of its data.
        data: the same unrounded, fit for JSON; the reason where there are no figures.
        notes: what a reader has to know, one sentence each.
    """

    name: str
    status: Status
    lines: tuple[tuple[str, ...], ...]
    data: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


class _Row(Protocol):
    @property
    def dataset(self) -> str: ...

    @property
    def files(self) -> tuple[str, ...]: ...


Step: TypeAlias = Callable[[str], None]
"""Called with the name of each step of a row as it begins."""


class Steps:
    """Tells a progress bar of rows that have as many steps each, and which one is at hand."""

    def __init__(self, progress: Advance, *, rows: int, each: int = 1) -> None:
        """None is done."""
        self._progress, self._each = progress, each
        progress(0, rows * each)

    @contextlib.contextmanager
    def row(self, name: str) -> Iterator[Step]:
        """One row, whose steps are all done with it, those that were passed over too."""
        done, begun = 0, False

        def step(words: str) -> None:
            nonlocal done, begun
            self._progress(int(begun), what=f"{name}: {words}")
            done, begun = done + begun, True

        self._progress(0, what=name)
        yield step
        self._progress(self._each - done)


def attempt(
    row: _Row,
    *,
    name: str,
    kind: str,
    rest: tuple[str, ...],
    folder: VoteFolder,
    compute: Callable[[], RowResult],
) -> RowResult:
    """The result of a row whose files may be absent or damaged; never a made-up figure.

    Args:
        row: what the paper calls the data, and every file the row needs.
        name: its name in notes.
        kind: what the second column says of it.
        rest: what the other columns show when it did not run.
        folder: where its files should be.
        compute: called when all files are there.
    """

    def without(status: Status, reason: str) -> RowResult:
        line = (row.dataset, f"{kind}: {status}", *rest)
        return RowResult(name, status, (line,), {"reason": reason}, (f"{name}: {reason}",))

    absent = folder.absent(row.files)
    if absent:
        return without(Status.ABSENT, f"absent from {folder.path}: {', '.join(absent)}")
    try:
        return compute()
    except VoteError as error:
        return without(Status.UNREADABLE, in_flags(error))
    except (ValidityError, ParameterError) as error:
        return without(Status.INVALID, in_flags(error))


@dataclass(frozen=True)
class ResultTable:
    """A reproduced table.

    Attributes:
        name: `table1`, `table2` or `answers`.
        title: printed above it.
        header: names of the columns; the first two are of words, the others of numbers.
        results: its rows.
        notes: what holds for all rows.
    """

    name: str
    title: str
    header: tuple[str, ...]
    results: tuple[RowResult, ...]
    notes: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        """3 if a file was unreadable; else 0 if a row ran; else 4 if a condition failed; else 3."""
        ended = {result.status for result in self.results}
        if Status.UNREADABLE in ended:
            return VoteError.exit_code
        if Status.RAN in ended:
            return 0
        return ValidityError.exit_code if Status.INVALID in ended else VoteError.exit_code

    @property
    def all_notes(self) -> list[str]:
        """Those of the rows, then those of the table."""
        return [note for result in self.results for note in result.notes] + list(self.notes)

    def print(self, stream: TextIO) -> None:
        """Rich on a terminal, aligned plain text elsewhere."""
        if stream.isatty():
            self._print_rich(stream)
        else:
            stream.write(encodable(self._text(), stream.encoding))

    def json(self) -> str:
        """The table unrounded, with the reason where a row has no figures."""
        rows = [
            {"row": result.name, "status": result.status.value, **result.data}
            for result in self.results
        ]
        content = {"table": self.name, "rows": rows, "notes": self.all_notes}
        return json.dumps(content, indent=2, allow_nan=False) + "\n"

    def csv(self) -> str:
        """The cells as they are printed, a line each; without the notes."""
        sink = io.StringIO()
        csv.writer(sink, lineterminator="\n").writerows(self._cells)
        return sink.getvalue()

    def latex(self) -> str:
        """A `tabular` in the manner of booktabs, and the notes below it."""
        groups = [
            [self._whole(line) for line in result.lines] for result in self.results if result.lines
        ]
        return tabular(self.header, groups, words=_WORDS, notes=self.all_notes)

    @property
    def _cells(self) -> list[tuple[str, ...]]:
        """The header and every line, all of one length."""
        lines = [self.header, *(line for result in self.results for line in result.lines)]
        return list(map(self._whole, lines))

    def _whole(self, line: tuple[str, ...]) -> tuple[str, ...]:
        """A line of as many cells as the header has."""
        return line + ("",) * (len(self.header) - len(line))

    def _text(self) -> str:
        full = self._cells
        widths = [max(map(len, column)) for column in zip(*full, strict=True)]
        text = [self.title, "", _aligned(full[0], widths)]
        text += [_aligned(tuple("-" * width for width in widths), widths)]
        text += [_aligned(line, widths) for line in full[1:]]
        text += ["", *(f"- {note}" for note in self.all_notes)]
        return "\n".join(text) + "\n"

    def _print_rich(self, stream: TextIO) -> None:
        from rich import box
        from rich.console import Console
        from rich.padding import Padding
        from rich.table import Table as RichTable
        from rich.text import Text

        console = Console(file=stream)
        shown = RichTable(
            title=Text(self.title),
            title_justify="left",
            box=box.SIMPLE_HEAD,
            pad_edge=False,
            collapse_padding=True,
        )
        for column, name in enumerate(self.header):
            shown.add_column(Text(name), justify="left" if column < _WORDS else "right")
        for result in self.results:
            for number, line in enumerate(result.lines):
                last = number == len(result.lines) - 1
                shown.add_row(*map(Text, line), end_section=last and len(result.lines) > 1)
        console.print(shown)
        for note in self.all_notes:
            console.print(Padding(Text(f"- {note}"), (0, 1)))


def _aligned(cells: tuple[str, ...], widths: list[int]) -> str:
    placed = [
        cell.ljust(width) if column < _WORDS else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(placed).rstrip()


def encodable(text: str, encoding: str | None) -> str:
    """The text with its one sign beyond ASCII spelt out where the stream cannot take it.

    Letters of file names that it cannot take either are question marks.
    """
    try:
        text.encode(encoding or "utf-8")
    except UnicodeEncodeError:
        return text.replace("±", "+-").encode("ascii", "replace").decode()
    return text
