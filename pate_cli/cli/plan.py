"""`pate plan`: before the first vote, which settings and how many answers."""

from __future__ import annotations

from typing import Any

from pate_cli.cli import terminal
from pate_cli.cli.command import command
from pate_cli.cli.pictures import drawn, promised
from pate_cli.cli.view import View
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
        found = verbs.plan(**asked)
        if plot is not None:
            from pate_cli.planning.plan import POINTS

            with view.progress("drawing", POINTS) as progress:
                drawn(out, plot, lambda: found.plot(progress=progress))
    view.show(found)
