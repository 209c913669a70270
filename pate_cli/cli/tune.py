"""`pate tune`: the settings that give the most answers, or cost the least epsilon for so many."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

import typer

from pate_cli.cli import terminal
from pate_cli.cli.command import command
from pate_cli.cli.view import View
from pate_cli.verbs import signatures as verbs

if TYPE_CHECKING:
    from pate_cli.planning.tune import Tuned

_WARNING: Final = (
    "NOT RELEASABLE: these settings were chosen on the votes, and a run with them on the same "
    "votes leaks what the choice says; pate plan looks at none"
)


@command(verbs.tune)
def tune(asked: dict[str, Any], view: View) -> None:
    """Find threshold, noise and rows for a goal. NOT releasable if VOTES are private.

    Searches settings of confident and of gnmax, with the number of queries and the weight of a
    prior; prints the best ones and their `pate aggregate` line. Before there are votes pate plan
    answers, and its answers may be published.

      pate tune votes.parquet --target-epsilon 2
    """
    codes: list[int] = []

    def interrupted() -> None:
        codes.append(terminal.exit_code(sys.exception()))
        view.note("interrupted; pricing the best so far")

    if "votes" not in asked:
        view.note("made-up votes: with others answers, agreement and probabilities differ")
    with view.progress("tuning") as advance:
        found = verbs.tune(**asked, progress=advance, interrupted=interrupted)
    if not found.releasable:
        terminal.say(_WARNING)
    view.show(found.to_dict(), lambda _: _print(found))
    if not found.complete:
        terminal.say("interrupted: this is the best of an incomplete search")
        raise typer.Exit(*codes)


def _print(found: Tuned) -> None:
    """Print the sentences of a result, and what else meets the goal."""
    from pate_cli.cli.grid import TableGrid

    console = terminal.printer()
    *lines, line = found.lines()
    for each in lines:
        console.print(each, highlight=False, markup=False)
    if found.others:
        table = TableGrid(
            "Also found",
            ["mechanism", "release", "epsilon", "answers", "agreement", "queries"],
            named=True,
        )
        for row in found.to_dict()["others"]:
            table.add_row(
                row["mechanism"],
                row["release"],
                f"{row['epsilon']:.4f}",
                f"{row['expected_answers']:.1f}",
                f"{row['agreement']:.2%}",
                str(row["queries"]),
            )
        console.print(table)
    console.print("\n" + line, soft_wrap=True, highlight=False, markup=False)
