"""`pate explain`: a public report in plain words."""

from __future__ import annotations

import sys
import textwrap
from typing import TYPE_CHECKING, Annotated

import typer

from pate_cli.cli import terminal
from pate_cli.cli.options import OutputOptions, Without, WordOptions, spread
from pate_cli.core.errors import UsageError
from pate_cli.files.existing import PAGE

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
    html: Annotated[
        str | None,
        typer.Option(
            "--html",
            metavar="FILE",
            help="Write a page to read, print and sign instead; - is stdout.",
            show_default=False,
        ),
    ] = None,
    *,
    view: Annotated[WordOptions, Without("plot")],
    output: Annotated[OutputOptions, Without("quiet")],
) -> None:
    """Say in plain words what a report promises, to whom, on what conditions.

    Checks every number first and says what it could not check. Reads nothing but the public report,
    so its words may be published as well. With --html it writes one page that stands by itself, for
    whoever must sign that labels may be handed out.
    """
    import pate_cli as pate

    if html is not None:
        if view.as_json or view.as_table:
            flag = "--json" if view.as_json else "--table"
            raise UsageError(f"{flag} does not go with --html, which writes a page instead")
        with output.outputs() as out:
            out.reserve(html, replaces=PAGE)
            out.write(html, pate.explain(report).to_html().encode())
        return
    found = pate.explain(report)
    view.show(found.to_dict(), lambda _: _print(found))


def _print(found: Explanation) -> None:
    """Print titles, bold at a terminal, with sentences wrapped under them."""
    painted = terminal.printer() if terminal.read_by_person() else None  # rich takes its time
    wrapped = textwrap.TextWrapper(
        min(terminal.width(), _WIDTH),
        initial_indent="  ",
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    for number, section in enumerate(found.sections):
        sys.stdout.write("\n" * bool(number))
        if painted is None:
            sys.stdout.write(f"{section.title}\n")
        else:
            painted.print(section.title, style="bold", highlight=False, markup=False)
        sys.stdout.writelines(f"{wrapped.fill(text)}\n" for text in section.texts)
