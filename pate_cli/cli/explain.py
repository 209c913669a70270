"""`pate explain`: a public report in plain words."""

from __future__ import annotations

from typing import Any

from pate_cli.cli import terminal
from pate_cli.cli.command import command
from pate_cli.cli.view import View
from pate_cli.files.existing import PAGE, REPORT
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
