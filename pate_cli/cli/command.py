"""Commands for Typer, made from the rows of verbs.

A command is a function that takes `asked`, what was given of the verb's parameters, `view`, how
the result is to be shown, and by keyword whatever the command line alone has:

    @command(verbs.verify)
    def verify(asked: dict[str, Any], view: View, *, strict: bool = False) -> None: ...

Typer gets every value as a text, and its row turns it into a value and checks it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from pate_cli.cli import help as helping
from pate_cli.cli.commands import COMMANDS
from pate_cli.cli.view import ALL, View
from pate_cli.core.errors import UsageError
from pate_cli.verbs.parameters.rows import Row, check_all, rows_of

Rows = Mapping[str, Row]


class Command(TyperCommand):
    """A Typer command that knows the rows of its parameters."""

    rows: Rows

    def get_help(self, ctx: Any, *, everything: bool = False) -> str:
        """Return the help of the command, with its rare options if `everything` is asked for."""
        return helping.of_command(
            ctx.command_path, self.help or "", self.rows, everything=everything
        )


def command(
    verb: Callable[..., Any] | None = None, shown: Sequence[str] = ALL
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a function a command: its options are the verb's parameters, its own, and of `View`.

    Args:
        verb: the verb, if there is one; the function then gets `asked`.
        shown: the options of `View` that make sense for the command.
    """

    def made(function: Callable[..., None]) -> Callable[..., None]:
        of_verb = {} if verb is None else rows_of(verb)
        of_view = {name: row for name, row in rows_of(View).items() if name in shown}
        own = rows_of(function, without=("asked", "view"))
        rows = {name: row for name, row in of_verb.items() if not row.says.hidden} | own | of_view

        def run(**texts: Any) -> None:
            given = _values(rows, texts)
            check_all(rows, given)
            view = View(**{name: given.pop(name) for name in of_view if name in given})
            mine = {name: given.pop(name) for name in own if name in given}
            if verb is not None:
                mine["asked"] = given
            mine |= {"view": view} if shown else {}
            function(**mine)

        parameters = [parameter for row in rows.values() for parameter in _for_typer(row)]
        run.__dict__["__signature__"] = inspect.Signature(parameters)
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        run.__doc__ = function.__doc__
        run.__dict__["rows"] = rows
        return run

    return made


def rows_of_command(function: Callable[..., None]) -> Rows:
    """Return the rows of a function that `command` made."""
    rows: Rows = function.__dict__["rows"]
    return rows


def build(name: str, function: Callable[..., None]) -> Command:
    """Return the Typer command of a function that `command` made."""
    rows = rows_of_command(function)
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    helps = any(row.default is Row.required for row in rows.values()) or name == "plan"
    alone.command(name, cls=Command, short_help=COMMANDS[name], no_args_is_help=helps)(function)
    built: Any = typer.main.get_command(alone)
    built.rows = rows
    found: Command = built
    return found


def _values(rows: Rows, texts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of what was given; what was left out has the verb's default."""
    given: dict[str, Any] = {}
    for name, row in rows.items():
        text, off = texts[name], texts.get(_off(row))
        if row.flag:
            given |= {} if text in (None, row.default) else {name: text}
        elif row.says.several:
            given |= {name: [row.read(each) for each in text]} if text else {}
        elif text is not None:
            given[name] = row.read(text)
        if off and name in given:
            raise UsageError(f"{row.option} and {row.says.off} contradict each other; give one")
        if off:
            given[name] = False
    return given


def _off(row: Row) -> str:
    """Return the name of the parameter that stands for False; "" if the row has none."""
    return "" if row.says.off is None else row.says.off.lstrip("-").replace("-", "_")


def _for_typer(row: Row) -> list[inspect.Parameter]:
    """Return a row as Typer wants it: a flag, a text, or a list of texts; perhaps one for False."""
    says, required = row.says, row.default is Row.required
    kind: Any = bool if row.flag else list[str] if says.several else str
    if says.argument:
        information = typer.Argument(metavar=row.option, show_default=False)
        return [_keyword(row.name, kind if required else kind | None, information)]
    spelled = f"{row.option}/{says.off}" if row.flag and says.off else row.option
    information = typer.Option(
        *([spelled] if says.short is None else [spelled, says.short]),
        metavar=row.metavar or None,
        help=says.help,
        hidden=not says.everyday,
        autocompletion=row.complete if row.choices else None,
    )
    found = [_keyword(row.name, kind | None, information)]
    if says.off is not None and not row.flag:
        no = typer.Option(says.off, help=f"{row.option} False.", hidden=not says.everyday)
        found.append(_keyword(_off(row), bool | None, no))
    return found


def _keyword(name: str, kind: Any, information: Any) -> inspect.Parameter:
    default = None if kind in (bool | None, str | None, list[str] | None) else Row.required
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[kind, information],
    )
