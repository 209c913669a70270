"""`pate release`: one public report from ledgers, reports and records."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pate_cli.cli import terminal
from pate_cli.cli.command import command
from pate_cli.cli.view import QUIET, View
from pate_cli.core.errors import UsageError
from pate_cli.files.addresses import public_name
from pate_cli.files.protected import REPORT
from pate_cli.verbs import signatures as verbs
from pate_cli.verbs.keywords import FileName

if TYPE_CHECKING:
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
        _sum_up(done, place)


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


def _sum_up(done: Released, place: str) -> None:
    """Print a summary for a person: what was released, and what to do with the files."""
    from pate_cli.disclosure.explain import summary_of

    secret, public = ["the votes"], [public_name(place)]
    secret += [] if done.ledger is None else ["the ledgers"]
    terminal.print_words([summary_of(done.report, publish=public, secret=secret, check=public)])
