"""Words of a result: lines, facts and tables, said once and shown by a terminal or a notebook."""

from __future__ import annotations

import configparser
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from pate_cli.core.errors import printable

if TYPE_CHECKING:
    from rich.console import Console

_NAMES: Final = 12
_LEAST_WIDTH: Final = 30
_GAP: Final = 2
_PARAGRAPH: Final = 80


@dataclass(frozen=True)
class Line:
    """A line of text.

    Attributes:
        text: it may be long.
        style: how a terminal that has colours shows it, such as `bold`.
        whole: it is never wrapped: a command to copy, or a check with its outcome.
        hangs: it is wrapped as a paragraph of at most 80 columns, indented.
        first: what stands before the text in a style of its own.
    """

    text: str
    style: str = ""
    whole: bool = False
    hangs: bool = False
    first: tuple[str, str] = ("", "")


@dataclass(frozen=True)
class Pairs:
    """Pairs by name, in two columns."""

    rows: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Grid:
    """A table of texts.

    Attributes:
        title: the line above it.
        heads: of the columns.
        rows: a cell for each head.
        words: how many columns, from the left, are words; the others are numbers.
        bold: the row to emphasise.
    """

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: int = 1
    bold: int | None = None


Said: TypeAlias = Iterable[Line | Pairs | Grid]


def texts_of(module: str, name: str) -> dict[str, dict[str, str]]:
    """Return the texts in a file beside a module, by heading and name; each is one paragraph."""
    parser = configparser.ConfigParser(delimiters="=", interpolation=None)
    parser.read_string(Path(module).with_name(name).read_text("utf-8"))
    return {
        title: {name: " ".join(text.split()) for name, text in parser[title].items()}
        for title in parser.sections()
    }


def on_terminal(console: Console, said: Said) -> None:
    """Print words at the width of a terminal, which cuts none of them."""
    from rich.text import Text

    for each in said:
        if isinstance(each, Line) and not each.hangs:
            text = Text.assemble(each.first, (printable(each.text), each.style))
            console.print(text, soft_wrap=each.whole, highlight=False)
        else:
            for pieces in _pieces(each, console):
                console.print(Text.assemble(*pieces), soft_wrap=True, highlight=False)


def as_html(said: Said) -> str:
    """Return words for a notebook, with everything escaped."""
    return "".join(map(_html, said))


def _pieces(each: Line | Pairs | Grid, console: Console) -> Iterator[list[tuple[str, str]]]:
    """Yield lines that have the width of a terminal, as pieces with their styles."""
    if isinstance(each, Line):
        for line in _wrapped(each.text, min(console.width, _PARAGRAPH), "  ", "    "):
            yield [(line, "")]
    elif isinstance(each, Pairs):
        for name, text in each.rows:
            for line in _wrapped(text, max(console.width, _LEAST_WIDTH) - _NAMES):
                yield [(f"{name:<{_NAMES}}", "bold"), (line, "")]
                name = ""
    else:
        plain = console.is_dumb_terminal or not console.encoding.lower().startswith("utf")
        yield from ([line] for line in _lines(each, console.width, "-" if plain else "─"))


def _wrapped(text: str, width: int, first: str = "", rest: str = "") -> list[str]:
    """Return a text in lines of a width, indented; no word and no number is cut."""
    return textwrap.wrap(
        printable(text),
        width,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _lines(grid: Grid, width: int, rule: str) -> Iterator[tuple[str, str]]:
    """Yield the lines of a table with their styles.

    Columns that do not fit the width go to a second table below, beside the first column again.
    """
    cells = [list(map(printable, row)) for row in (grid.heads, *grid.rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    yield "", ""
    for line in _wrapped(grid.title, width):
        yield line, "italic"
    for place, chosen in enumerate(_panels(widths, width)):
        if place:
            yield "", ""
        columns = (0, *chosen)
        lines = [_row(row, columns, widths, grid.words) for row in cells]
        yield lines[0], "bold"
        yield rule * max(map(len, lines)), ""
        for number, line in enumerate(lines[1:]):
            yield line, "bold" if number == grid.bold else ""


def _row(row: Sequence[str], columns: Iterable[int], widths: Sequence[int], words: int) -> str:
    """Return a line of a table: words to the left, numbers to the right."""
    shown = [
        row[at].ljust(widths[at]) if at < words else row[at].rjust(widths[at]) for at in columns
    ]
    return (" " * _GAP).join(shown).rstrip()


def _panels(widths: Sequence[int], width: int) -> list[list[int]]:
    """Return which columns stand beside the first in each of the tables."""
    panels: list[list[int]] = [[]]
    used = widths[0]
    for column in range(1, len(widths)):
        if panels[-1] and used + _GAP + widths[column] > width:
            panels.append([])
            used = widths[0]
        panels[-1].append(column)
        used += _GAP + widths[column]
    return panels


def _html(each: Line | Pairs | Grid) -> str:
    from html import escape

    def row(tag: str, cells: Iterable[str]) -> str:
        return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"

    if isinstance(each, Line):
        text = escape(each.first[0] + each.text)
        return f"<p><b>{text}</b></p>" if each.style == "bold" else f"<p>{text}</p>"
    if isinstance(each, Pairs):
        return f"<table>{''.join(row('td', fact) for fact in each.rows)}</table>"
    rows = [row("th", each.heads), *(row("td", cells) for cells in each.rows)]
    return f"<table><caption>{escape(each.title)}</caption>{''.join(rows)}</table>"
