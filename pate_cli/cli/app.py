"""The application, whose commands are made from the keywords of verbs.

A verb is a function of the library, and a command calls a verb. In a command, the argument `asked`
has the parameters for the verb, and `view` says how to show the result. All other arguments of a
command, such as `strict`, are options that only the command line has:

    @command(verbs.verify)
    def verify(asked: dict[str, Any], view: View, *, strict: bool = False) -> None: ...

Typer gets every value as a text. For each option, a `Keyword` turns the text into a value and
checks the value.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import importlib
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from pate_cli.cli import help as helping
from pate_cli.cli import terminal
from pate_cli.cli.terminal import interruptible, notes_of, say, what_was_released
from pate_cli.cli.view import ALL, View
from pate_cli.core import __version__
from pate_cli.core.errors import OutputError, PateError, UsageError
from pate_cli.files.addresses import public_name
from pate_cli.verbs.keywords import GONE, Keyword, check_all, keywords_of, nearest_to, with_options

Keywords = Mapping[str, Keyword]

_ABOUT: Final = "Private labels and an honest (epsilon, delta) from a file of teacher votes."
_CLOSING: Final = (
    "pate COMMAND --help explains a command. First steps: pate demo. --install-completion lets the "
    "shell complete options; -V prints the version.\n\n"
    "Exit codes: 0 ok, 1 internal failure, 2 usage, 3 bad vote data or ledger, 4 a validity "
    "condition fails, 5 target unreachable, 6 output exists or cannot be written, 7 a "
    "ledger was released before, 8 labels did not pass their test, 9 workers or a cluster "
    "failed, 10 a report does not hold, 11 not all of a report could be checked and verify "
    "--strict asks for it, 130 interrupted (143 by SIGTERM)."
)
_BROKEN_PIPE: Final = 141
# Patterns in Typer's messages about wrong command lines, and pate's words instead of them.
_HOUSE_STYLE: Final = (
    (r"^Option '([^']*)' requires an argument", r"\1 needs a value"),
    (r"\. Did you mean (.*)\?$", r"; did you mean \1?"),
)
COMMANDS: Final = {
    "aggregate": "Turn votes into private labels and a public report.",
    "session": "Label queries one by one: votes and labels are JSON lines.",
    "plan": "Before there are votes: how many labels, with how many teachers.",
    "tune": "Find settings for a target epsilon or a number of labels.",
    "release": "Make one report for several runs.",
    "spent": "Show all runs of a record, and their total cost.",
    "explain": "Explain a report in plain words.",
    "verify": "Check every number of a report, and its labels.",
    "cost": "Show what labels cost on these votes. SECRET.",
    "smooth-sensitivity": "Show how much one teacher could change the cost of labels. SECRET.",
    "demo": "Label real votes that come with pate.",
}
"""The purpose of each command, in the order of the help."""
_HOMES: Final = {
    "aggregate": ("aggregate", "demo"),
    "session": ("session",),
    "planning": ("plan", "tune", "cost", "smooth-sensitivity"),
    "reports": ("release", "spent", "explain", "verify"),
}
"""The modules of `cli`, with their commands."""


class Command(TyperCommand):
    """A Typer command that knows the keywords of its parameters."""

    keywords: Keywords

    def get_help(self, ctx: Any, *, everything: bool = False) -> str:
        """Return the help of the command; with `everything`, also its rare options."""
        return helping.of_command(
            ctx.command_path, self.help or "", self.keywords, everything=everything
        )

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Show the help if any word asks for it; otherwise store all values as texts.

        `Keyword.read` converts the texts later. Typer must not convert the texts, because Typer
        would import a slow library.
        """
        with ending(ctx.command_path, self.keywords):
            if helping.asks_for_help(args):
                typer.echo(self.get_help(ctx, everything=helping.EVERYTHING in args))
                ctx.exit()
            if not args and self.no_args_is_help:
                return super().parse_args(ctx, args)
            found, rest, _ = self.make_parser(ctx).parse_args(args=list(args))
            ctx.params = {name: found.get(name) for name in self.keywords}
            if ctx.resilient_parsing:  # The shell completes a command line.
                return rest
            if rest:
                wrong = f"unexpected extra argument ({' '.join(rest)})"
                raise UsageError(tells_more(wrong, ctx.command_path))
            for name, keyword in self.keywords.items():
                if keyword.default is Keyword.required and ctx.params[name] in (None, ()):
                    raise UsageError(tells_more(f"missing {keyword.option}", ctx.command_path))
        return rest

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        with ending(ctx.command_path, self.keywords):
            return super().invoke(ctx)


def command(
    verb: Callable[..., Any] | None = None, shown: Sequence[str] = ALL
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Turn a function into a command; its options come from the verb, the function and `View`.

    Args:
        verb: the library function (verb) that the function calls with the argument `asked`; None if
            the function has no argument `asked`.
        shown: the options of `View` that the command has.
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


@functools.cache
def build(name: str) -> Command:
    """Import the command with this name, and return it as a Typer command."""
    home = next(module for module, commands in _HOMES.items() if name in commands)
    function = getattr(importlib.import_module(f"{__package__}.{home}"), name.replace("-", "_"))
    keywords: Keywords = function.__dict__["keywords"]
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    needed = any(each.default is Keyword.required for each in keywords.values())
    alone.command(name, cls=Command, short_help=COMMANDS[name], no_args_is_help=needed)(function)
    built: Any = typer.main.get_command(alone)
    built.keywords = keywords
    found: Command = built
    return found


def _values(keywords: Keywords, texts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the given options; options that are left out are not included."""
    given: dict[str, Any] = {}
    for name, keyword in keywords.items():
        text = texts[name]
        if keyword.flag:
            given |= {} if text in (None, keyword.default) else {name: text}
        elif keyword.several:
            given |= {name: [keyword.read(each) for each in text]} if text else {}
        elif text is not None:
            given[name] = keyword.read(text)
    for name, keyword in keywords.items():
        if keyword.off is not None and given.pop(keyword.off.name, False):
            if name in given:
                both = f"{keyword.off.option} and {keyword.option}"
                raise UsageError(f"{both} contradict each other; give one of them")
            given[name] = False
    return given


def _for_typer(keyword: Keyword) -> inspect.Parameter:
    """Return a keyword as a parameter for Typer: a flag, a text or a list of texts."""
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


@contextlib.contextmanager
def ending(path: str, keywords: Keywords) -> Iterator[None]:
    """If anything goes wrong in the block, end the program with one line and an exit code.

    Args:
        path: the command as the user types it, such as `pate spent`.
        keywords: the keywords of the command; messages name their options.
    """
    with interruptible(typer.Exit):
        try:
            yield
        except BrokenPipeError:
            # The reader stopped reading, and a filter is expected to end quietly then.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(_BROKEN_PIPE) from None
        except Exception as error:
            found = _what_happened(error, path, keywords)
            if found is None:
                raise
            code, line = found
            say(with_options(line + notes_of(error), keywords))
            raise typer.Exit(code) from None


def tells_more(text: str, path: str) -> str:
    """Return a message about a wrong command line, which also names the command for help."""
    stop = "" if text.endswith("?") else ";"
    return f"{text}{stop} {path} --help tells more"


def _what_happened(error: Exception, path: str, keywords: Keywords) -> tuple[int, str] | None:
    """Return the exit code of an error and a line about it; None if Typer handles the error."""
    if isinstance(error, PateError):
        return error.exit_code, str(error)
    if type(error).__module__.partition(".")[0] == "typer":
        refused = hasattr(error, "format_message") and type(error).__name__ != "NoArgsIsHelpError"
        return (UsageError.exit_code, _misuse(error, path, keywords)) if refused else None
    if isinstance(error, MemoryError):
        what = f"out of memory; {what_was_released()}. Fewer `workers` need less memory"
        return PateError.exit_code, what
    if isinstance(error, ImportError):  # Memory is short, or the installation is broken.
        return PateError.exit_code, f"cannot load a library: {error}; {what_was_released()}"
    if isinstance(error, OSError):  # A problem with a file, folder or device is no bug of pate.
        what = error.strerror or type(error).__name__
        if error.filename is not None:
            what = f"{public_name(os.fsdecode(error.filename))}: {what}"
        elif error.errno == errno.ENOENT:
            what = "the current folder no longer exists; change to another folder"
        return OutputError.exit_code, f"{what}; {what_was_released()}"
    if os.environ.get("PATE_DEBUG"):
        return None
    return PateError.exit_code, (
        f"internal failure ({type(error).__name__}); {what_was_released()}. "
        "Set PATE_DEBUG=1 for a traceback, and make sure that it has no votes before you share it"
    )


def _misuse(error: Any, path: str, keywords: Keywords) -> str:
    """Return why Typer refused a command line, in the style of pate's messages."""
    text = str(error.format_message()).strip().rstrip(".")
    if type(error).__name__ == "NoSuchOption" and keywords:
        option = str(error.option_name)
        name = option.lstrip("-").replace("-", "_")
        if name in GONE:
            return f"{option} is gone: {GONE[name]}"
        near = nearest_to(name, [each for each in keywords.values() if not each.argument])
        text = f"no option {option}" + ("" if near is None else f"; did you mean {near.option}?")
    for pattern, words in _HOUSE_STYLE:
        text = re.sub(pattern, words, text, flags=re.DOTALL)
    return tells_more(text[:1].lower() + text[1:], path)


class _Commands(TyperGroup):
    """The group of all commands; a command is only imported when it is called."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands: Any = dict.fromkeys(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Command | None:
        """Return the command with this name; None if there is none."""
        del ctx
        return build(cmd_name) if cmd_name in COMMANDS else None

    def get_help(self, ctx: Any) -> str:
        """Return the help of `pate`, with a line on each command."""
        del ctx
        return helping.of_group(_ABOUT, COMMANDS, _CLOSING)

    def main(self, *args: Any, **rest: Any) -> Any:
        """Run a command line; if it begins with a command, that command reads the rest.

        Typer's group would import a slow library to read the words before the command.
        """
        given = args[0] if args else rest.pop("args", None)
        words = sys.argv[1:] if given is None else list(given)
        with terminal.command():
            if words and words[0] in COMMANDS:
                return build(words[0]).main(words[1:], **rest | {"prog_name": f"pate {words[0]}"})
            return super().main(words, **rest)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words before the command."""
        with ending(ctx.command_path, {}):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Refuse a word that is not a command."""
        with ending(ctx.command_path, {}):
            return super().invoke(ctx)


app = typer.Typer(
    name="pate",
    cls=_Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(value: bool) -> None:
    if value:
        terminal.write(f"pate {__version__}\n")
        raise typer.Exit


_VERSION: Final = typer.Option(
    "--version", "-V", callback=_print_version, is_eager=True, help="Print and exit."
)


@app.callback()
def _root(_version: Annotated[bool, _VERSION] = False) -> None:
    pass
