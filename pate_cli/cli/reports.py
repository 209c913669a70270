"""Commands that read what was published: `pate explain`, `pate verify` and `pate spent`."""

from __future__ import annotations

from typing import Any

from pate_cli.cli import terminal
from pate_cli.cli.command import command
from pate_cli.cli.view import View, drawn, promised
from pate_cli.core.errors import MismatchError, UncheckedError
from pate_cli.files.protected import PAGE, REPORT
from pate_cli.verbs import signatures as verbs
from pate_cli.verbs.keywords import FileName


@command(verbs.explain)
def explain(
    asked: dict[str, Any],
    view: View,
    *,
    html: FileName | None = None,
    export_rdp: FileName | None = None,
    force: bool = False,
) -> None:
    """Say what a report promises, to whom, on what conditions, and what it does not cover.

    Checks every number first and says what it could not check. Reads nothing but the public report,
    so what it says may be published as well. With --html it writes one page that stands by itself,
    for whoever must sign that labels may be handed out.

      pate explain labels.report.json --html page.html
    """
    if html is None and export_rdp is None:
        found = verbs.explain(**asked)
        if not view.quiet:  # a pipe gets the words of a terminal, too
            View(as_json=view.as_json, as_table=not view.as_json).show(found)
        return
    from pate_cli.disclosure.exchange import rdp_curve

    with terminal.outputs(force=force) as outputs:
        if html is not None:
            outputs.reserve(html, replaces=PAGE)
            outputs.write(html, verbs.explain(**asked).to_html().encode())
        if export_rdp is not None:
            outputs.reserve(export_rdp, replaces=REPORT)
            outputs.write(export_rdp, rdp_curve(asked["report"]).to_json().encode())


@command(verbs.verify)
def verify(asked: dict[str, Any], view: View, *, strict: bool = False) -> None:
    """Check a report: its schema, its numbers, the hash of its labels. Needs no votes.

    Whoever gets labels and report can do it. A line a check: ok, FAILED, not checkable from
    outside, or not checked because it was not given; then the verdict with the report's own
    epsilon. Exit code 0 if everything that can be checked holds, 10 if anything failed, with
    --strict 11 if anything is left.

      pate verify labels.report.json labels.csv
    """
    found = verbs.verify(**asked)
    if not view.quiet:
        view.show(found)
    if not found.holds:
        raise MismatchError(found.headline())
    if strict and found.unchecked:
        raise UncheckedError(found.remark())


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
