"""Commands that find settings: `pate plan` before there are votes, `pate tune` on votes."""

from __future__ import annotations

import sys
from typing import Any, Final

import typer

from pate_cli.cli import terminal
from pate_cli.cli.command import command
from pate_cli.cli.view import View, drawn, promised
from pate_cli.core.errors import UsageError
from pate_cli.verbs import signatures as verbs
from pate_cli.verbs.keywords import FileName


@command(verbs.plan)
def plan(
    asked: dict[str, Any], view: View, *, plot: FileName | None = None, force: bool = False
) -> None:
    """Find settings and expected answers for a run, before there are votes. Public.

    Give two of --teachers, --target-epsilon and --answers, and the plan finds the third. Answers
    are computed for made-up teachers who are right as often as --agreement says. For each
    level of agreement the command prints the probability that a run passes the release test: the
    average over several kinds of queries, and the smallest. The command reads no votes.

      pate plan --classes 3 --queries 100 --answers 60 --target-epsilon 2
      pate plan --teachers 50 --classes 3 --queries 40 --target-epsilon 2
    """
    if plot is not None and asked.get("votes_per_teacher") is not None:
        raise UsageError("a plan with `votes_per_teacher` has no picture; leave out `plot`")
    with terminal.outputs(force=force) as out:
        promised(out, plot, mode=0o644)
        found: Any = verbs.plan(**asked)
        if plot is not None:
            from pate_cli.planning.plan import POINTS

            with view.progress("drawing", POINTS) as progress:
                drawn(out, plot, lambda: found.plot(progress=progress))
    view.show(found)


_WARNING: Final = (
    "NOT RELEASABLE: these settings were chosen on the private votes, so the settings and "
    "every run with them reveal something about the votes; pate plan finds settings without "
    "votes"
)


@command(verbs.tune)
def tune(asked: dict[str, Any], view: View) -> None:
    """Find threshold, noise and number of queries for a goal. NOT releasable if VOTES are private.

    The command tries settings of the mechanisms `confident` and `gnmax`, numbers of queries, and
    weights of a prior. The command prints the best settings, and a `pate aggregate` line with these
    settings. If you have no votes yet, use pate plan, whose results may be published.

      pate tune votes.parquet --target-epsilon 2
    """
    codes: list[int] = []

    def interrupted() -> None:
        codes.append(terminal.exit_code(sys.exception()))
        view.note("interrupted; computing the cost of the best settings so far")

    if "votes" not in asked:
        view.note("made-up votes: answers, agreement and probabilities will differ for real votes")
    with view.progress("tuning") as advance:
        found = verbs.tune(**asked, progress=advance, interrupted=interrupted)
    if not found.releasable:
        terminal.say(_WARNING)
    view.show(found)
    if not found.complete:
        terminal.say("interrupted: this is the best of an incomplete search")
        raise typer.Exit(*codes)
