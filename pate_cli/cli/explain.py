"""`pate explain`: a public report in plain words."""

from __future__ import annotations

import sys
import textwrap
from typing import TYPE_CHECKING, Annotated

import typer

from pate_cli.cli import terminal
from pate_cli.cli.options import Without, WordOptions, spread

if TYPE_CHECKING:
    from pate_cli.disclosure.explain import Explanation

_WIDTH = 80


@spread
def explain(
    report: Annotated[
        str,
        typer.Argument(
            metavar="REPORT",
            help="A report of aggregate or release: a file or an address; - is standard input.",
            show_default=False,
        ),
    ],
    view: Annotated[WordOptions, Without("plot")],
) -> None:
    """Say what a report promises, to whom, on what that rests, and what it does not cover.

    Reads nothing but the public report, so what it says may be published as well.
    """
    import pate_cli as pate

    found = pate.explain(report)
    view.show(found.to_dict(), lambda _: _print(found))


def _print(found: Explanation) -> None:
    console = terminal.printer()
    width = min(console.width, _WIDTH)
    for number, section in enumerate(found.sections):
        sys.stdout.write("\n" * bool(number))
        console.print(section.title, style="bold", highlight=False)
        for text in section.texts:
            for line in textwrap.wrap(
                text,
                width,
                initial_indent="  ",
                subsequent_indent="    ",
                break_long_words=False,
                break_on_hyphens=False,
            ):
                console.print(line, highlight=False, markup=False, soft_wrap=True)
