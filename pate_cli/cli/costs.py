"""The commands `pate cost` and `pate smooth-sensitivity`, whose results are secret."""

from __future__ import annotations

from typing import Any

from pate_cli.cli import terminal
from pate_cli.cli.command import command
from pate_cli.cli.view import View, drawn, opened, promised
from pate_cli.core.words import LabelFormat
from pate_cli.verbs import signatures as verbs
from pate_cli.verbs.keywords import FileName, Order


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
