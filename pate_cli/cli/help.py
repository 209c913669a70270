"""The help of a command: options in panels, rare ones on request only, and quick to print."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Sequence
from typing import Any, Final

from typer.core import TyperCommand

GOAL: Final = "Goal"
EVERYDAY: Final = "Everyday"
VOTES: Final = "Votes"
SEARCH: Final = "Search"
MECHANISM: Final = "Mechanism"
TARGET: Final = "Target stated in advance"
EPSILON: Final = "Published epsilon"
ACCOUNT: Final = "Account of all runs"
DATA: Final = "Without private votes"
SECOND: Final = "Second round"
PRIOR: Final = "What is known already"
OTHER: Final = "Other mechanisms"
SPECIAL: Final = "Special votes and labels"
SHARED: Final = "Teachers that share records"
LARGE: Final = "Large files"
PICTURES: Final = "Pictures"
TESTS: Final = "Tests and papers"

_RARE: Final = (PRIOR, SECOND, OTHER, SPECIAL, SHARED, LARGE, PICTURES, TESTS)
_PLAIN: Final = (GOAL, EVERYDAY, VOTES, SEARCH, MECHANISM, TARGET, ACCOUNT, EPSILON, DATA)
PANELS: Final = (*_PLAIN, *_RARE)
"""From the everyday to the rare."""
_EVERYTHING: Final = "--help-all"

_WIDEST: Final = 80
_NARROW: Final = 52
"""Below so many columns what an option does stands under it, and not beside it."""
_INDENT: Final = 4
# What stays in one line: a word, or one of several choices with the bar behind it.
_UNBROKEN: Final = re.compile(r" *[^ |]*(?:\||(?= )|$)")
# The first column of a line that has two.
_FIRST_COLUMN: Final = re.compile(r" *\S+(?: \S+)* {2,}")


def asks_for_help(words: Sequence[str]) -> bool:
    """Whether help is asked for anywhere among the words of a command."""
    options = words[: words.index("--")] if "--" in words else words
    return any(word in ("-h", "--help", _EVERYTHING) for word in options)


def fitted_help(command: Any, ctx: Any) -> str:
    """The help of a command or a group, no line of it longer than the terminal is wide."""
    columns = shutil.get_terminal_size().columns
    formatter = ctx.formatter_class(width=max(min(columns, _WIDEST) - 2, 2 * _INDENT))
    if columns < _NARROW:
        formatter.write_dl = lambda rows, *_, **__: _stacked(formatter, rows)
    command.format_help(ctx, formatter)
    lines = formatter.getvalue().rstrip("\n").split("\n")
    return "\n".join(piece for line in lines for piece in _fitted(line, min(columns, _WIDEST)))


def _stacked(formatter: Any, rows: Iterable[tuple[str, str]]) -> None:
    for term, text in rows:
        formatter.write(f"{'':{formatter.current_indent}}{term}\n")
        for _ in range(2):
            formatter.indent()
        formatter.write_text(text)
        for _ in range(2):
            formatter.dedent()


def _fitted(line: str, columns: int) -> list[str]:
    """A line in as many as it takes, further ones indented."""
    if len(line) <= columns:
        return [line]
    first = _FIRST_COLUMN.match(line)
    own = len(line) - len(line.lstrip())
    under = len(first[0]) if first is not None and len(first[0]) <= columns // 2 else own + _INDENT
    lines = [""]
    for piece in filter(None, _UNBROKEN.findall(line)):
        if lines[-1].strip() and len(lines[-1] + piece) > columns:
            lines.append(" " * under + piece.lstrip())
        else:
            lines[-1] += piece
    return lines


class PanelledCommand(TyperCommand):
    """A command that shows its options by panels."""

    def get_help(self, ctx: Any) -> str:
        """See `fitted_help`."""
        return fitted_help(self, ctx)

    def help_for(self, ctx: Any, words: Sequence[str]) -> str:
        """Its help, with the rare panels if these words ask for them."""
        ctx.meta[_EVERYTHING] = _EVERYTHING in words
        return self.get_help(ctx)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments, panels from the everyday to the rare, and how many options are left out."""
        everything = ctx.meta.get(_EVERYTHING, False)
        panels: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                panels.setdefault(_panel(parameter), []).append(record)
        left = [] if everything else [name for name in panels if name in _RARE]
        hidden = sum(len(panels.pop(name)) for name in left)
        for name in sorted(panels, key=_rank):
            with formatter.section(name):
                formatter.write_dl(panels[name])
        if hidden:
            formatter.write_paragraph()
            formatter.write_text(
                f"{ctx.command_path} {_EVERYTHING} shows {hidden} more: {'; '.join(left).lower()}."
            )


def _panel(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return "Arguments"
    return getattr(parameter, "rich_help_panel", None) or EVERYDAY


def _rank(panel: str) -> int:
    return ("Arguments", *PANELS).index(panel)
