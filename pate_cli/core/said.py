"""The text of a result, as lines, pairs and tables that a terminal or a notebook can show."""

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
        text: the text, of any length.
        style: the style on a terminal with colours, such as `bold`.
        whole: whether the line (for example, a command that users copy) is never wrapped.
        hangs: whether the text is wrapped as an indented paragraph of at most 80 columns.
        first: a text that is printed before `text`, and the style of this first text.
    """

    text: str
    style: str = ""
    whole: bool = False
    hangs: bool = False
    first: tuple[str, str] = ("", "")


@dataclass(frozen=True)
class Pairs:
    """A table with two columns, names and texts."""

    rows: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Grid:
    """A table of texts.

    Attributes:
        title: the line above the table.
        heads: the heads of the columns.
        rows: the rows, with one cell per column.
        words: how many columns, counted from the left, contain words; all further columns contain
            numbers.
        bold: the index of the row that is printed in bold; None if no row is bold.
    """

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: int = 1
    bold: int | None = None


Said: TypeAlias = Iterable[Line | Pairs | Grid]


def texts_of(module: str, name: str) -> dict[str, dict[str, str]]:
    """Return the texts of an INI file beside a module, by heading and key, without line breaks."""
    parser = configparser.ConfigParser(delimiters="=", interpolation=None)
    parser.read_string(Path(module).with_name(name).read_text("utf-8"))
    return {
        title: {name: " ".join(text.split()) for name, text in parser[title].items()}
        for title in parser.sections()
    }


def on_terminal(console: Console, said: Said) -> None:
    """Print the text of a result at the width of a terminal, without cutting any word."""
    from rich.text import Text

    for each in said:
        if isinstance(each, Line) and not each.hangs:
            text = Text.assemble(each.first, (printable(each.text), each.style))
            console.print(text, soft_wrap=each.whole, highlight=False)
        else:
            for pieces in _pieces(each, console):
                console.print(Text.assemble(*pieces), soft_wrap=True, highlight=False)


def as_html(said: Said) -> str:
    """Return the text of a result as HTML for a notebook, with everything escaped."""
    return "".join(map(_html, said))


def _pieces(each: Line | Pairs | Grid, console: Console) -> Iterator[list[tuple[str, str]]]:
    """Yield lines that fit the width of a terminal; a line is a list of (text, style) pairs."""
    if isinstance(each, Line):
        for line in _wrapped(each.text, min(console.width, _PARAGRAPH), "  ", "    "):
            yield [(line, "")]
    elif isinstance(each, Pairs):
        names = max([_NAMES, *(len(name) + 1 for name, _ in each.rows)])
        for name, text in each.rows:
            for line in _wrapped(text, max(console.width, _LEAST_WIDTH) - names):
                yield [(f"{name:<{names}}", "bold"), (line, "")]
                name = ""
    else:
        plain = console.is_dumb_terminal or not console.encoding.lower().startswith("utf")
        yield from ([line] for line in _lines(each, console.width, "-" if plain else "─"))


def _wrapped(text: str, width: int, first: str = "", rest: str = "") -> list[str]:
    """Return a text as indented lines of at most `width` columns, without cutting any word."""
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

    Columns that do not fit the width go to a second table below, which repeats the first column.
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
    """Return a row of a table as text; words are aligned to the left, numbers to the right."""
    shown = [
        row[at].ljust(widths[at]) if at < words else row[at].rjust(widths[at]) for at in columns
    ]
    return (" " * _GAP).join(shown).rstrip()


def _panels(widths: Sequence[int], width: int) -> list[list[int]]:
    """Divide the columns after the first among tables, which all repeat the first column."""
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
