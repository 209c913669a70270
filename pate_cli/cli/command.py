"""Commands for Typer, made from the keywords of verbs.

A command is a function that takes `asked`, what was given of the verb's parameters, `view`, how
the result is to be shown, and by keyword whatever the command line alone has:

    @command(verbs.verify)
    def verify(asked: dict[str, Any], view: View, *, strict: bool = False) -> None: ...

Typer gets every value as a text, and its keyword turns it into a value and checks it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from pate_cli.cli import help as helping
from pate_cli.cli.commands import COMMANDS, load
from pate_cli.cli.ending import Keywords, ending, tells_more
from pate_cli.cli.view import ALL, View
from pate_cli.core.errors import UsageError
from pate_cli.verbs.keywords import OFF, Keyword, check_all, keywords_of


class Command(TyperCommand):
    """A Typer command that knows the keywords of its parameters."""

    keywords: Keywords

    def get_help(self, ctx: Any, *, everything: bool = False) -> str:
        """Return the help of the command, with its rare options if `everything` is asked for."""
        return helping.of_command(
            ctx.command_path, self.help or "", self.keywords, everything=everything
        )

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Show help wherever it is asked for; else leave texts as they are to their keywords.

        Typer itself would read each of them with a library that takes long to import.
        """
        with ending(ctx.command_path, self.keywords):
            if helping.asks_for_help(args):
                typer.echo(self.get_help(ctx, everything=helping.EVERYTHING in args))
                ctx.exit()
            if not args and self.no_args_is_help:
                return super().parse_args(ctx, args)
            found, rest, _ = self.make_parser(ctx).parse_args(args=list(args))
            ctx.params = {name: found.get(name) for name in (each.name for each in self.params)}
            if not ctx.resilient_parsing:
                self._check(ctx.params, rest, ctx.command_path)
        return rest

    def _check(self, params: Mapping[str, Any], rest: Sequence[str], path: str) -> None:
        """UsageError for an argument that is missing, and for one too many."""
        if rest:
            raise UsageError(tells_more(f"got unexpected extra argument ({' '.join(rest)})", path))
        for name, keyword in self.keywords.items():
            if keyword.default is Keyword.required and params[name] in (None, ()):
                raise UsageError(tells_more(f"missing {keyword.option}", path))

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        with ending(ctx.command_path, self.keywords):
            return super().invoke(ctx)


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
        given = shared | own | of_view
        keywords = given | {off.name: off for each in given.values() if (off := each.off)}

        def run(**texts: Any) -> None:
            given = _values(keywords, texts)
            check_all(keywords, given)
            view = View(**{name: given.pop(name) for name in of_view if name in given})
            mine = {name: given.pop(name) for name in own if name in given}
            if verb is not None:
                mine["asked"] = given
            mine |= {"view": view} if shown else {}
            function(**mine)

        parameters = [_for_typer(each) for each in keywords.values()]
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


@functools.cache
def build(name: str) -> Command:
    """Return the Typer command of a name, which is imported for it."""
    function = load(name)
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
    for name, off in OFF.items():
        if given.pop(off, False):
            if name in given:
                both = f"{keywords[off].option} and {keywords[name].option}"
                raise UsageError(f"{both} contradict each other; give one of them")
            given[name] = False
    return given


def _for_typer(keyword: Keyword) -> inspect.Parameter:
    """Return a flag, a text or a list of texts as Typer wants it."""
    kind: Any = bool if keyword.flag else list[str] if keyword.several else str
    required = keyword.default is Keyword.required
    about: Any = typer.Argument(metavar=keyword.option, help=keyword.says.help)
    if not keyword.argument:
        about = typer.Option(
            *(keyword.spelled.split(", ")[::-1]),
            metavar=keyword.metavar or None,
            help=keyword.says.help,
            autocompletion=keyword.complete if keyword.choices else None,
        )
    return inspect.Parameter(
        keyword.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=Keyword.required if required else None,
        annotation=Annotated[kind if required else kind | None, about],
    )
