"""A reproduced table for people (Rich on a terminal, aligned text elsewhere) and as JSON."""

from __future__ import annotations

import json
from typing import TextIO

from pate_cli.reproduction.outcome import Table

__all__ = ["as_json", "as_text", "print_table"]

_WORDS = 2  # columns of words, left-aligned; the others hold numbers


def print_table(table: Table, stream: TextIO) -> None:
    """Print a table the way `stream` can take it."""
    if stream.isatty():
        _print_rich(table, stream)
    else:
        stream.write(_encodable(as_text(table), stream.encoding))


def as_text(table: Table) -> str:
    """Aligned plain text; every outcome starts with the name of its data."""
    lines = [table.header]
    for outcome in table.outcomes:
        lines += outcome.lines
    full = [line + ("",) * (len(table.header) - len(line)) for line in lines]
    widths = [max(map(len, column)) for column in zip(*full, strict=True)]
    text = [table.title, "", _aligned(full[0], widths), _aligned(["-" * w for w in widths], widths)]
    text += [_aligned(line, widths) for line in full[1:]]
    text += ["", *(f"- {note}" for note in _notes(table))]
    return "\n".join(text) + "\n"


def as_json(table: Table) -> str:
    """The table unrounded, with the reason where a row has no figures."""
    rows = [
        {"row": outcome.name, "status": outcome.status.value, **outcome.data}
        for outcome in table.outcomes
    ]
    content = {"table": table.name, "rows": rows, "notes": _notes(table)}
    return json.dumps(content, indent=2, allow_nan=False) + "\n"


def _encodable(text: str, encoding: str | None) -> str:
    """The text with its one sign beyond ASCII spelt out where the stream cannot take it."""
    try:
        text.encode(encoding or "utf-8")
    except UnicodeEncodeError:
        return text.replace("±", "+-").encode("ascii", "replace").decode()
    return text


def _notes(table: Table) -> list[str]:
    return [note for outcome in table.outcomes for note in outcome.notes] + list(table.notes)


def _aligned(cells: tuple[str, ...] | list[str], widths: list[int]) -> str:
    placed = [
        cell.ljust(width) if column < _WORDS else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(placed).rstrip()


def _print_rich(table: Table, stream: TextIO) -> None:
    from rich import box
    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table as RichTable
    from rich.text import Text

    console = Console(file=stream)
    shown = RichTable(title=Text(table.title), box=box.SIMPLE_HEAD, title_justify="left")
    for column, name in enumerate(table.header):
        shown.add_column(Text(name), justify="left" if column < _WORDS else "right")
    for outcome in table.outcomes:
        for number, line in enumerate(outcome.lines):
            last = number == len(outcome.lines) - 1
            shown.add_row(*map(Text, line), end_section=last and len(outcome.lines) > 1)
    console.print(shown)
    for note in _notes(table):
        console.print(Padding(Text(f"- {note}"), (0, 1)))
