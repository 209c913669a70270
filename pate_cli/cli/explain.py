"""`pate explain`: a public report in plain words."""

from __future__ import annotations

from typing import Any

from pate_cli.cli import terminal
from pate_cli.cli.command import command
from pate_cli.cli.view import View
from pate_cli.core.errors import UsageError
from pate_cli.files.existing import PAGE, REPORT
from pate_cli.verbs import signatures as verbs
from pate_cli.verbs.parameters.kinds import FileName


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
    place = html or export_rdp
    if place is not None:
        if view.as_json or view.as_table:
            option = "--html" if html else "--export-rdp"
            raise UsageError(f"{option} writes a file instead; leave out --json and --table")
        with terminal.outputs(force=force) as outputs:
            outputs.reserve(place, replaces=PAGE if html else REPORT)
            outputs.write(place, _page(asked) if html else _curve(asked))
        return
    found = verbs.explain(**asked)
    if not view.quiet:  # a pipe gets the words of a terminal, too
        View(as_json=view.as_json, as_table=not view.as_json).show(found)


def _page(asked: dict[str, Any]) -> bytes:
    return verbs.explain(**asked).to_html().encode()


def _curve(asked: dict[str, Any]) -> bytes:
    from pate_cli.disclosure.exchange import rdp_curve

    return rdp_curve(asked["report"]).to_json().encode()
