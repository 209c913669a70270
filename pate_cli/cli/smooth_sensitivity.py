"""`pate smooth-sensitivity`: how far one teacher could move the cost, smoothed over distances."""

from __future__ import annotations

from typing import Any

from pate_cli.cli import terminal
from pate_cli.cli.command import command
from pate_cli.cli.pictures import drawn, promised
from pate_cli.cli.view import View
from pate_cli.cli.votes import opened
from pate_cli.verbs import signatures as verbs
from pate_cli.verbs.keywords import FileName


@command(verbs.smooth_sensitivity)
def smooth_sensitivity(
    asked: dict[str, Any], view: View, *, plot: FileName | None = None, force: bool = False
) -> None:
    """Say how far one record could move the cost of the votes, by distance. NOT releasable.

    With --analysis paper it also says whether the published conditions C5 and C6 hold; exit code 4
    if they fail.

      pate smooth-sensitivity votes.parquet --max-queries 300
    """
    with terminal.outputs(force=force) as out:
        promised(out, plot)
        with opened(asked, view):
            found = verbs.smooth_sensitivity(**asked)
        drawn(out, plot, found.plot)
    view.show(found)
