"""The application: its commands, its help and its version."""

from __future__ import annotations

import sys
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from pate_cli.cli import help as helping
from pate_cli.cli.command import COMMANDS, Command, build, ending
from pate_cli.cli.terminal import command, write
from pate_cli.core import __version__

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
        """Run a command line; if it begins with a command, that command reads the rest."""
        given = args[0] if args else rest.pop("args", None)
        words = sys.argv[1:] if given is None else list(given)
        with command():
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
        write(f"pate {__version__}\n")
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
