"""`pate verify`: every number of a report again, and the labels it came with."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pate_cli.cli import terminal
from pate_cli.cli.options import CheckOptions, Without, spread
from pate_cli.core.errors import MismatchError, UncheckedError


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
    with_dp_accounting: Annotated[
        bool | None,
        typer.Option(
            "--with-dp-accounting/--without-dp-accounting",
            help="Ask Google's library for the textbook numbers, too. Default: where installed; "
            "pip install pate-cli[accounting].",
            show_default=False,
        ),
    ] = None,
    *,
    view: Annotated[CheckOptions, Without("plot")],
) -> None:
    """Check a report: its schema, its numbers from its parameters alone, the hash of its labels.

    Needs no votes, so whoever gets labels and report can do it. A line a check: ok, FAILED, not
    checkable from outside and why, or passed over; and a verdict. Exit code 0 if all holds, 10 if
    anything failed, 11 if all holds but for what cannot be checked.
    """
    import pate_cli as pate
    from pate_cli.verbs.verify import FAILS

    found = pate.verify(report, labels, prior=prior, with_dp_accounting=with_dp_accounting)
    view.show(found.to_dict(), _print)
    if not found.holds:
        error = MismatchError if found.verdict == FAILS else UncheckedError
        raise error(found.headline())


def _print(found: dict[str, Any]) -> None:
    from rich.text import Text

    console = terminal.printer()
    styles = {"ok": "green", "FAILED": "bold red"}
    for check in found["checks"]:
        line = Text.assemble(
            (check["outcome"], styles.get(check["outcome"], "dim")),
            f": {check['name']}: {check['detail']}",
        )
        console.print(line, highlight=False, soft_wrap=True)
    named = ", ".join(found["failed"] or found["not_checkable"])
    verdict = found["verdict"] + (f": {named}" if named else "")
    console.print(Text(f"verdict: {verdict}", "bold"), highlight=False, soft_wrap=True)
