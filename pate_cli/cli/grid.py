"""Tables of numbers that no width of terminal cuts: what does not fit stands below, in full."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.text import Text

_GAP: Final = 2
_BAR: Final = 20


def ascii_only(console: Console) -> bool:
    """Whether letters and lines beyond ASCII are better not shown."""
    return console.is_dumb_terminal or not console.encoding.lower().startswith("utf")


@dataclass
class TableGrid:
    """A table for `rich`: the first column names a row, the others are numbers, to the right.

    Columns that do not fit the width go to a second table below, beside the first column again.

    Attributes:
        title: above it.
        heads: of the columns; the first is that of the rows' names.
        named: whether those are words, to the left.
        bars: head of a last column of bars, the first thing that is left out; None without bars.
    """

    title: str
    heads: Sequence[str]
    named: bool = False
    bars: str | None = None
    _rows: list[tuple[tuple[str, ...], str]] = field(default_factory=list)
    _shares: list[float] = field(default_factory=list)

    def add_row(self, *cells: str, share: float = 0.0, style: str = "") -> None:
        """A cell for every head; `share` in [0, 1] is the length of its bar."""
        self._rows.append((cells, style))
        self._shares.append(share)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        """Its lines at the width of the console."""
        from rich.text import Text

        plain = ascii_only(console)
        yield Text(f"\n{self.title}", style="italic")
        for place, chosen in enumerate(self._panels(options.max_width)):
            if place:
                yield Text()
            last = self._bars(chosen, options.max_width, block="#" if plain else "█")
            head, *lines = self._lines(chosen, last)
            yield Text(head[0], style="bold")
            yield Text(("-" if plain else "─") * max(len(line) for line, _ in (head, *lines)))
            for line, style in lines:
                yield Text(line, style=style)

    def _widths(self) -> list[int]:
        columns = zip(self.heads, *(cells for cells, _ in self._rows), strict=True)
        return [max(map(len, column)) for column in columns]

    def _panels(self, width: int) -> list[list[int]]:
        """Which columns stand beside the first in each of the tables."""
        widths = self._widths()
        panels: list[list[int]] = [[]]
        used = widths[0]
        for column in range(1, len(widths)):
            if panels[-1] and used + _GAP + widths[column] > width:
                panels.append([])
                used = widths[0]
            panels[-1].append(column)
            used += _GAP + widths[column]
        return panels

    def _bars(self, chosen: Sequence[int], width: int, *, block: str) -> list[str] | None:
        """The column of bars, its head first, beside the last column if there is room."""
        if self.bars is None or (chosen and chosen[-1] != len(self.heads) - 1):
            return None
        widths = self._widths()
        left = width - widths[0] - sum(_GAP + widths[column] for column in chosen) - _GAP
        if left < max(len(self.bars), _BAR // 2):
            return None
        return [self.bars, *(block * round(min(_BAR, left) * share) for share in self._shares)]

    def _lines(
        self, chosen: Sequence[int], last: Sequence[str] | None
    ) -> Iterator[tuple[str, str]]:
        """The head and the rows, each with its style."""
        widths = self._widths()
        for index, (cells, style) in enumerate([(tuple(self.heads), ""), *self._rows]):
            name = cells[0].ljust(widths[0]) if self.named else cells[0].rjust(widths[0])
            numbers = [cells[column].rjust(widths[column]) for column in chosen]
            line = (" " * _GAP).join([name, *numbers, *([] if last is None else [last[index]])])
            yield line.rstrip(), style
