"""Commands for Typer, made from the keywords of verbs.

A command is a function that takes `asked`, what was given of the verb's parameters, `view`, how
the result is to be shown, and by keyword whatever the command line alone has:

    @command(verbs.verify)
    def verify(asked: dict[str, Any], view: View, *, strict: bool = False) -> None: ...

Typer gets every value as a text, and its keyword turns it into a value and checks it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from pate_cli.cli import help as helping
from pate_cli.cli.commands import COMMANDS
from pate_cli.cli.view import ALL, View
from pate_cli.core.errors import UsageError
from pate_cli.verbs.parameters.keywords import Keyword, check_all, dashed, keywords_of

Keywords = Mapping[str, Keyword]


class Command(TyperCommand):
    """A Typer command that knows the keywords of its parameters."""

    keywords: Keywords

    def get_help(self, ctx: Any, *, everything: bool = False) -> str:
        """Return the help of the command, with its rare options if `everything` is asked for."""
        return helping.of_command(
            ctx.command_path, self.help or "", self.keywords, everything=everything
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
        of_verb = {} if verb is None else keywords_of(verb)
        shared = {name: each for name, each in of_verb.items() if not each.hidden}
        viewed = keywords_of(View, called=function.__name__)
        of_view = {name: viewed[name] for name in shown}
        own = keywords_of(function, without=("asked", "view"))
        keywords = shared | own | of_view

        def run(**texts: Any) -> None:
            given = _values(keywords, texts)
            check_all(keywords, given)
            view = View(**{name: given.pop(name) for name in of_view if name in given})
            mine = {name: given.pop(name) for name in own if name in given}
            if verb is not None:
                mine["asked"] = given
            mine |= {"view": view} if shown else {}
            function(**mine)

        parameters = [found for each in keywords.values() for found in _for_typer(each)]
        run.__dict__["__signature__"] = inspect.Signature(parameters)
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        run.__doc__ = function.__doc__
        run.__dict__["keywords"] = keywords
        return run

    return made


def keywords_of_command(function: Callable[..., None]) -> Keywords:
    """Return the keywords of a function that `command` made."""
    keywords: Keywords = function.__dict__["keywords"]
    return keywords


def build(name: str, function: Callable[..., None]) -> Command:
    """Return the Typer command of a function that `command` made."""
    keywords = keywords_of_command(function)
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    needed = any(each.default is Keyword.required for each in keywords.values())
    alone.command(name, cls=Command, short_help=COMMANDS[name], no_args_is_help=needed)(function)
    built: Any = typer.main.get_command(alone)
    built.keywords = keywords
    found: Command = built
    return found


def _values(keywords: Keywords, texts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of what was given; what was left out has the verb's default."""
    given: dict[str, Any] = {}
    for name, keyword in keywords.items():
        text = texts[name]
        if keyword.flag:
            given |= {} if text in (None, keyword.default) else {name: text}
        elif keyword.several:
            given |= {name: [keyword.read(each) for each in text]} if text else {}
        elif text is not None:
            given[name] = keyword.read(text)
        if keyword.off and texts[keyword.off]:
            if name in given:
                both = f"{dashed(keyword.off)} and {keyword.option}"
                raise UsageError(f"{both} contradict each other; give one of them")
            given[name] = False
    return given


def _for_typer(keyword: Keyword) -> Iterator[inspect.Parameter]:
    """Yield a flag, a text or a list of texts as Typer wants it, and perhaps a flag for False."""
    kind: Any = bool if keyword.flag else list[str] if keyword.several else str
    if keyword.argument:
        required = keyword.default is Keyword.required
        about = typer.Argument(metavar=keyword.option, help=keyword.says.help)
        yield _parameter(keyword.name, kind if required else kind | None, about)
        return
    about = typer.Option(
        *(keyword.spelled.split(", ")[::-1]),
        metavar=keyword.metavar or None,
        help=keyword.says.help,
        autocompletion=keyword.complete if keyword.choices else None,
    )
    yield _parameter(keyword.name, kind | None, about)
    if keyword.off is not None:
        about = typer.Option(dashed(keyword.off), help=keyword.without)
        yield _parameter(keyword.off, bool | None, about)


def _parameter(name: str, kind: Any, about: Any) -> inspect.Parameter:
    default = Keyword.required if kind in (str, list[str]) else None
    annotation = Annotated[kind, about]
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )
