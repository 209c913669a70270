"""`pate verify`: every number of a report again, and the labels it came with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pate_cli.cli import terminal
from pate_cli.cli.options import CheckOptions, Without, spread
from pate_cli.core.errors import MismatchError, UncheckedError

if TYPE_CHECKING:
    from pate_cli.disclosure.verification import Verification


@spread
def verify(
    report: Annotated[
        str,
        typer.Argument(
            metavar="REPORT",
            help="A report of aggregate or release: a file or an address; - is standard input.",
            show_default=False,
        ),
    ],
    labels: Annotated[
        str | None,
        typer.Argument(
            metavar="[LABELS]",
            help="Its labels: a file, or an address.",
            show_default=False,
        ),
    ] = None,
    prior: Annotated[
        list[str] | None,
        typer.Option(
            "--prior",
            metavar="FILE",
            help="The guesses of its prior, to be checked by their hash; once for each of several.",
            show_default=False,
        ),
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(
            "--spend",
            metavar="FILE",
            help="The record of the same teachers, where you keep it: it alone tells whether runs "
            "are missing.",
            show_default=False,
        ),
    ] = None,
    with_dp_accounting: Annotated[
        bool | None,
        typer.Option(
            "--with-dp-accounting/--without-dp-accounting",
            help="Ask Google's library for the textbook numbers, too. Default: where installed; "
            "pip install pate-cli[accounting].",
            show_default=False,
        ),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Exit code 11 if anything could not be checked."),
    ] = False,
    *,
    view: Annotated[CheckOptions, Without("plot")],
) -> None:
    """Check a report: its schema, its numbers from its parameters alone, the hash of its labels.

    Needs no votes, so whoever gets labels and report can do it. A line a check: ok, FAILED, not
    checkable from outside, or not checked because it was not given; then the verdict with the
    report's own epsilon, and one sentence on what could not be checked. Exit code 0 if everything
    that can be checked holds, 10 if anything failed. With --strict 11 if anything is left.
    """
    import pate_cli as pate

    found = pate.verify(
        report, labels, prior=prior, record=record, with_dp_accounting=with_dp_accounting
    )
    view.show(found.to_dict(), lambda _: _print(found))
    if not found.holds:
        raise MismatchError(found.headline())
    if strict and found.unchecked:
        raise UncheckedError(found.remark())


def _print(found: Verification) -> None:
    from rich.text import Text

    console = terminal.printer()
    styles = {"ok": "green", "FAILED": "bold red"}
    for check in found.checks:
        line = Text.assemble(
            (check.outcome, styles.get(check.outcome, "dim")), f": {check.name}: {check.detail}"
        )
        console.print(line, highlight=False, soft_wrap=True)
    console.print(Text(f"verdict: {found.headline()}", "bold"), highlight=False, soft_wrap=True)
    if found.unchecked:
        console.print(found.remark(), highlight=False, soft_wrap=True, markup=False)
