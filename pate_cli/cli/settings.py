"""Commands that find settings: `pate plan` before the first vote, `pate tune` on votes."""

from __future__ import annotations

import sys
from typing import Any, Final

import typer

from pate_cli.cli import terminal
from pate_cli.cli.command import command
from pate_cli.cli.view import View, drawn, promised
from pate_cli.verbs import signatures as verbs
from pate_cli.verbs.keywords import FileName


@command(verbs.plan)
def plan(
    asked: dict[str, Any], view: View, *, plot: FileName | None = None, force: bool = False
) -> None:
    """Say before the first vote which settings to use, and what may be expected. Public.

    Of --teachers, --target-epsilon and --answers leave one out: it is found. The answers are those
    of made-up teachers who are right as often as --agreement says, and the chance of passing is
    told for the worst of them as well. No votes are looked at.

      pate plan --classes 3 --queries 100 --answers 60 --target-epsilon 2
      pate plan --teachers 50 --classes 3 --queries 40 --target-epsilon 2
    """
    with terminal.outputs(force=force) as out:
        promised(out, plot, mode=0o644)
        found: Any = verbs.plan(**asked)  # which says no picture of voters is asked for
        if plot is not None:
            from pate_cli.planning.plan import POINTS

            with view.progress("drawing", POINTS) as progress:
                drawn(out, plot, lambda: found.plot(progress=progress))
    view.show(found)


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
    view.show(found)
    if not found.complete:
        terminal.say("interrupted: this is the best of an incomplete search")
        raise typer.Exit(*codes)
