"""Commands about reports and records: `release`, `explain`, `verify` and `spent`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pate_cli.cli import terminal
from pate_cli.cli.app import command
from pate_cli.cli.view import QUIET, View, drawn, promised
from pate_cli.core.errors import MismatchError, UncheckedError, UsageError
from pate_cli.files.addresses import public_name
from pate_cli.files.protected import PAGE, REGISTRY, REPORT
from pate_cli.verbs import signatures as verbs
from pate_cli.verbs.keywords import FileName

if TYPE_CHECKING:
    from pate_cli.disclosure.explain import Explanation
    from pate_cli.verbs.release import Released


@command(verbs.release, QUIET)
def release(
    asked: dict[str, Any], view: View, *, report: FileName | None = None, force: bool = False
) -> None:
    """Publish one report for several runs, with the worst-case cost of all of them together.

    Give reports or records of any runs. With --external the total also includes other mechanisms
    that were trained on the same records. If you give only ledgers, you may also publish a
    sanitized epsilon of their votes (--release upper). All ledgers must have the same Renyi order.
    Choose the Renyi order before the first label is drawn, and give it as --order to every pate
    aggregate whose ledger you will give to pate release. pate release writes every sanitized
    epsilon to the record. If a sanitized epsilon was already drawn from one of the runs, pate
    refuses to draw another sanitized epsilon (exit code 7).

      pate release first.report.json second.report.json --report both.report.json
    """
    if asked.get("again") and asked.get("record") is False:
        raise UsageError("`again` needs a record with earlier draws; leave out `record` False")
    first = Path(public_name(asked["given"][0])).stem.removesuffix(".spent") or "release"
    piped = report == "-" or (report is None and not terminal.read_by_person())
    place = "-" if piped else report or f"{first}.report.json"
    with terminal.outputs(force=force) as out:
        out.reserve(place, replaces=REPORT)
        out.try_out()
        done = verbs.release(**asked)
        try:
            out.write(place, done.report.to_json().encode())
            out.publish()
        except BaseException as error:
            if done.report.sanitized is not None and done.report.spent is not None:
                error.add_note("the record keeps this draw of an epsilon, and its cost counts")
            raise
    summed_up = terminal.read_by_person() and not piped
    for line in _notes(done, summed_up=summed_up):
        view.note(line)
    if summed_up:
        from pate_cli.disclosure.explain import summary_of

        public, ledgers = [public_name(place)], [] if done.ledger is None else ["the ledgers"]
        secret = ["the votes", *ledgers]
        told = summary_of(done.report, publish=public, secret=secret, check=public)
        terminal.print_words([told])


def _notes(done: Released, *, summed_up: bool) -> Iterator[str]:
    """Yield notes on a release; if a summary was printed, yield only what the summary lacks."""
    total, report = done.ledger, done.report
    if done.joined is not None:
        yield done.joined
    if total is not None and total.draws:
        yield (
            f"{len(total.draws)} sanitized epsilon(s) were published from these rounds before, "
            "and this report pays for them; if you run aggregate with --release none --ledger "
            "FILE, there is no such cost"
        )
    if not summed_up:
        yield report.headline()
        warnings = report.warnings if report.sound else (*report.warnings, report.summary)
        yield from (f"warning: {warning}" for warning in dict.fromkeys(warnings))


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
    from pate_cli.disclosure.explain import blanks, registry_entry
    from pate_cli.disclosure.report import report_in

    with terminal.outputs(force=force) as outputs:
        for name, kind in ((html, PAGE), (export_rdp, REPORT), (registry, REGISTRY)):
            if name is not None:
                outputs.reserve(name, replaces=kind)
        asked["report"] = report = report_in(asked["report"])  # A pipe can be read only once.
        found = verbs.explain(**asked)
        if html is None and export_rdp is None and registry is None and not view.quiet:
            # A pipe gets the same text as a terminal.
            View(as_json=view.as_json, as_table=not view.as_json).show(found)
        if export_rdp is not None or registry is not None:
            _refuse_false(found)
        if html is not None:
            outputs.write(html, found.to_html().encode())
        if export_rdp is not None:
            from pate_cli.disclosure.cost import nats
            from pate_cli.disclosure.exchange import converted, rdp_curve

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
