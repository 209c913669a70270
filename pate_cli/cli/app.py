"""The application: its commands, and the one place where errors become exit codes."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from pate_cli.cli import help as helping
from pate_cli.cli.command import Command, Keywords, build, keywords_of_command
from pate_cli.cli.commands import COMMANDS, load
from pate_cli.cli.terminal import (
    command,
    interruptible,
    notes_of,
    refuse_closed,
    say,
    what_was_released,
)
from pate_cli.core.errors import OutputError, PateError, UsageError
from pate_cli.core.gone import GONE
from pate_cli.core.version import __version__
from pate_cli.files.addresses import public_name
from pate_cli.verbs.parameters.keywords import nearest_to, with_options

_BROKEN_PIPE = 141
_ABOUT = "Private labels and an honest (epsilon, delta) from a file of teacher votes."
_CLOSING = (
    "pate COMMAND --help tells more. First steps: pate demo. --install-completion lets the shell "
    "complete options; -V says which version this is.\n\n"
    "Exit codes: 0 ok, 1 internal failure, 2 usage, 3 bad vote data or ledger, 4 a validity "
    "condition fails, 5 target unreachable, 6 output exists or cannot be written, 7 these "
    "votes were already spent, 8 labels did not pass their test, 9 workers or a cluster "
    "failed, 10 a report does not hold, 11 not all of a report could be checked and verify "
    "--strict asks for it, 130 interrupted (143 by SIGTERM)."
)
# Typer's words for what is wrong with a command line.
_HOUSE_STYLE = (
    (r"^Missing (argument|parameter|option) '([^']*)'.*", r"missing \2"),
    (r"^Option '([^']*)' requires an argument", r"\1 needs a value"),
    (r"\. Did you mean (.*)\?$", r"; did you mean \1?"),
)


class _Imported(Mapping[str, Any]):
    """Commands by name; one is imported when it is asked for, and no other."""

    def __init__(self) -> None:
        self._built: dict[str, Command] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)

    def __getitem__(self, name: str) -> Command:
        if name not in COMMANDS:
            raise KeyError(name)
        if name not in self._built:
            self._built[name] = build(name, load(name))
        return self._built[name]


class _Commands(TyperGroup):
    """The one catch site: a domain error is one line on stderr and its documented exit code."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands: Any = _Imported()

    def get_help(self, ctx: Any) -> str:
        """Return what each command is for, without importing one."""
        return helping.of_group(_ABOUT, COMMANDS, _CLOSING)

    def main(self, *args: Any, **rest: Any) -> Any:
        """Run a command line, and report an interruption whenever it comes."""
        with command(), interruptible(SystemExit):
            try:
                return super().main(*args, **rest)
            except SystemExit as done:
                # While words are parsed, Typer ends an interruption itself, in silence.
                cause = getattr(done.__context__, "__cause__", None)
                if isinstance(cause, KeyboardInterrupt):
                    raise cause from None
                raise

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Show help before anything else: to read values Typer imports what takes long."""
        found = self.get_command(ctx, args[0]) if args else None
        if isinstance(found, Command) and helping.asks_for_help(args[1:]):
            inner = type(ctx)(found, info_name=args[0], parent=ctx, **found.context_settings)
            typer.echo(found.get_help(inner, everything=helping.EVERYTHING in args))
            ctx.exit()
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            line = _misuse(error)
            if line is None:
                raise
            say(line)
            raise typer.Exit(UsageError.exit_code) from None

    def invoke(self, ctx: Any) -> Any:
        """Run a command, and end the program with the exit code of what went wrong."""
        with interruptible(typer.Exit):
            return self._caught(ctx)

    def _caught(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except PateError as error:
            say(with_options(str(error), _keywords(ctx)) + notes_of(error))
            raise typer.Exit(error.exit_code) from None
        except BrokenPipeError:
            # The reader left; closing quietly is what a filter is expected to do.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(_BROKEN_PIPE) from None
        except (typer.Exit, typer.Abort):
            raise
        except Exception as error:
            line = _misuse(error)
            if line is not None:
                say(line)
                raise typer.Exit(UsageError.exit_code) from None
            if type(error).__module__.partition(".")[0] == "typer":
                raise  # a command without words, whose help Typer shows
            if os.environ.get("PATE_DEBUG"):
                raise
            code, line = _what_happened(error)
            say(with_options(line, _keywords(ctx)) + notes_of(error))
            raise typer.Exit(code) from None


def _keywords(ctx: Any) -> Keywords:
    """Return the parameters of the command that runs, whose options messages name."""
    name = ctx.invoked_subcommand
    return {} if name not in COMMANDS else keywords_of_command(load(name))


def _misuse(error: Exception) -> str | None:
    """Return in our words why Typer refused a command line; None for any other error."""
    home, kind = type(error).__module__.partition(".")[0], type(error).__name__
    if home != "typer" or kind == "NoArgsIsHelpError" or not hasattr(error, "format_message"):
        return None
    context: Any = getattr(error, "ctx", None)
    keywords = getattr(getattr(context, "command", None), "keywords", None)
    text = str(error.format_message()).strip().rstrip(".")
    if kind == "NoSuchOption" and keywords is not None:
        option = str(getattr(error, "option_name", ""))
        name = option.lstrip("-").replace("-", "_")
        if name in GONE:
            return f"{option} is gone: {with_options(GONE[name], keywords)}"
        near = nearest_to(name, [each for each in keywords.values() if not each.argument])
        text = f"no option {option}"
        text += "" if near is None else f"; did you mean {near.option}?"
    for pattern, words in _HOUSE_STYLE:
        text = re.sub(pattern, words, text, flags=re.DOTALL)
    path = "pate" if context is None else context.command_path
    stop = "" if text.endswith("?") else ";"
    return f"{text[:1].lower()}{text[1:]}{stop} {path} --help tells more"


def _what_happened(error: Exception) -> tuple[int, str]:
    """The exit code of what no command expected, and a line about it."""
    if isinstance(error, MemoryError):
        return (
            PateError.exit_code,
            f"out of memory; {what_was_released()}. Fewer `workers` take less of it",
        )
    if not isinstance(error, OSError):
        return PateError.exit_code, (
            f"internal failure ({type(error).__name__}); {what_was_released()}. "
            "Set PATE_DEBUG=1 for a traceback; look for votes in it before sharing it"
        )
    # No defect: what files, folders and devices do to a program.
    what = error.strerror or type(error).__name__
    if error.filename is not None:
        what = f"{public_name(os.fsdecode(error.filename))}: {what}"
    elif error.errno == errno.ENOENT:
        what = "the folder this runs in is gone; change to one that is there"
    return OutputError.exit_code, f"{what}; {what_was_released()}"


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
        try:
            refuse_closed()
        except PateError as error:
            say(str(error))
            raise typer.Exit(error.exit_code) from None
        sys.stdout.write(f"pate {__version__}\n")
        raise typer.Exit


@app.callback()
def _root(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", "-V", callback=_print_version, is_eager=True, help="Print and exit."
        ),
    ] = False,
) -> None:
    pass
