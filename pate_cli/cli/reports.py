"""Commands that read public files: `pate explain`, `pate verify` and `pate spent`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pate_cli.cli import terminal
from pate_cli.cli.command import command
from pate_cli.cli.view import View, drawn, promised
from pate_cli.core.errors import MismatchError, UncheckedError
from pate_cli.files.protected import PAGE, REGISTRY, REPORT
from pate_cli.verbs import signatures as verbs
from pate_cli.verbs.keywords import FileName

if TYPE_CHECKING:
    from pate_cli.disclosure.explain import Explanation


@command(verbs.explain)
def explain(
    asked: dict[str, Any],
    view: View,
    *,
    html: FileName | None = None,
    export_rdp: FileName | None = None,
    registry: FileName | None = None,
    force: bool = False,
) -> None:
    """Explain in plain words what a report guarantees, to whom, and what it does not cover.

    The command first checks every number, and names what it could not check. The command only reads
    the public report, so its text may be published, too. With --html the command writes one page
    for the person who must sign that the labels may be handed out. If a number or sentence of the
    report is false, the explanation only says which checks failed, and the exit code is 10.

      pate explain labels.report.json --html page.html
    """
    if html is None and export_rdp is None and registry is None:
        found = verbs.explain(**asked)
        if not view.quiet:  # A pipe gets the same text as a terminal.
            View(as_json=view.as_json, as_table=not view.as_json).show(found)
        _refuse_false(found)
        return
    from pate_cli.disclosure.cost import nats
    from pate_cli.disclosure.exchange import converted, rdp_curve
    from pate_cli.disclosure.explain import blanks, registry_entry
    from pate_cli.disclosure.report import report_in

    with terminal.outputs(force=force) as outputs:
        for name, kind in ((html, PAGE), (export_rdp, REPORT), (registry, REGISTRY)):
            if name is not None:
                outputs.reserve(name, replaces=kind)
        asked["report"] = report = report_in(asked["report"])  # A pipe can be read only once.
        found = verbs.explain(**asked)
        if export_rdp is not None or registry is not None:
            _refuse_false(found)
        if html is not None:
            outputs.write(html, found.to_html().encode())
        if export_rdp is not None:
            curve, worst = rdp_curve(report), nats(report.data_independent.epsilon)
            outputs.write(export_rdp, curve.to_json().encode())
            alone = nats(converted(curve, report.delta))
            if alone != worst:
                view.note(
                    f"from this curve alone, another accountant gets epsilon {alone}; the "
                    f"report states epsilon {worst}, by a sharper bound than a curve at these "
                    "orders can give"
                )
        if registry is not None:
            entry = registry_entry(report, found, unit=asked.get("unit"))
            outputs.write(registry, entry.encode())
            view.note(
                "fill in these fields of the entry yourself: "
                f"{', '.join(blanks(json.loads(entry)))}"
            )
    _refuse_false(found)


def _refuse_false(found: Explanation) -> None:
    """Raise MismatchError if a number or sentence of the explained report is false."""
    if found.failed:
        failed = ", ".join(found.failed)
        raise MismatchError(f"do not rely on the report; these checks failed: {failed}")


@command(verbs.verify)
def verify(asked: dict[str, Any], view: View, *, strict: bool = False) -> None:
    """Check a report: its schema, its numbers, and the hash of its labels. Needs no votes.

    Anybody who has the labels and the report can use this command. The command prints one line per
    check: ok, FAILED, not checkable without secrets, or not checked because a file is missing. The
    last line is the verdict with the report's own epsilon. The exit code is 0 if no check failed,
    and 10 if a check failed. With --strict the exit code is 11 if a check could not be made.

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
    """Show all runs on votes of the same teachers, and what they cost together.

    A record contains no votes, only settings, outcomes and worst-case costs. You may show a record
    to anybody who may know the times of runs and the names of files.

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
