"""Commands that find settings and costs: `plan` without votes, the others on votes."""

from __future__ import annotations

import sys
from typing import Any, Final

import typer

from pate_cli.cli import terminal
from pate_cli.cli.app import command
from pate_cli.cli.view import View, drawn, opened, promised
from pate_cli.core.errors import UsageError
from pate_cli.core.words import LabelFormat
from pate_cli.verbs import signatures as verbs
from pate_cli.verbs.keywords import FileName, Order

_WARNING: Final = (
    "NOT RELEASABLE: these settings were chosen on the private votes, so the settings and "
    "every run with them reveal something about the votes; pate plan finds settings without "
    "votes"
)


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


@command(verbs.cost)
def cost(
    asked: dict[str, Any],
    view: View,
    *,
    order: Order | None = None,
    per_query: FileName | None = None,
    compare: bool = False,
    plot: FileName | None = None,
    force: bool = False,
) -> None:
    """Show the privacy cost of labels of these votes, by step, order and query. NOT releasable.

    For a cost that may be published, use pate aggregate --dry-run, which prints the worst case.

      pate cost votes.parquet --max-queries 300
      pate cost votes.parquet --compare
    """
    from pate_cli.files.results import columns_in

    if order is not None:
        asked["orders"] = [order]
    with terminal.outputs(force=force) as out:
        promised(out, plot)
        if per_query is not None:
            like = columns_in(LabelFormat.from_path(per_query), "query_id", "plurality")
            out.reserve(per_query, mode=0o600, replaces=like)
        with opened(asked, view):
            if compare:
                view.show(verbs.compare(**asked))
                return
            found = verbs.cost(**asked)
        if per_query is not None:
            with out.open(per_query) as draft:
                found.write(draft, per_query)
        drawn(out, plot, found.plot)
    view.show(found)


@command(verbs.smooth_sensitivity)
def smooth_sensitivity(
    asked: dict[str, Any], view: View, *, plot: FileName | None = None, force: bool = False
) -> None:
    """Show how much one record could change the cost of these votes. NOT releasable.

    With --analysis paper the command also checks conditions C5 and C6 of the 2018 paper, without
    which the paper's smooth sensitivity is not valid. If C5 or C6 fails, the exit code is 4.

      pate smooth-sensitivity votes.parquet --max-queries 300
    """
    with terminal.outputs(force=force) as out:
        promised(out, plot)
        with opened(asked, view):
            found = verbs.smooth_sensitivity(**asked)
        drawn(out, plot, found.plot)
    view.show(found)
