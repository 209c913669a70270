"""`pate spent`: all runs of a record, and what they cost together."""

from __future__ import annotations

from typing import Any

from pate_cli.cli import terminal
from pate_cli.cli.command import command
from pate_cli.cli.pictures import drawn, promised
from pate_cli.cli.view import View
from pate_cli.core.errors import MismatchError
from pate_cli.verbs import signatures as verbs
from pate_cli.verbs.keywords import FileName


@command(verbs.spent)
def spent(
    asked: dict[str, Any], view: View, *, plot: FileName | None = None, force: bool = False
) -> None:
    """Show all runs on votes of the same teachers: what was published, and what it cost together.

    A record holds nothing of the votes, only settings, outcomes and what runs cost whatever the
    votes: it may be shown to anybody who may know when they were made, and what files were called.

      pate spent votes.parquet --budget 10
    """
    with terminal.outputs(force=force) as out:
        promised(out, plot, mode=0o644)
        found = verbs.spent(**asked)
        drawn(out, plot, found.plot)
    view.show(found)
    if not found.holds:
        wrong = [check for check in found.reports or () if check.outcome != "ok"]
        raise MismatchError(f"{wrong[0].name}: {wrong[0].detail}")
