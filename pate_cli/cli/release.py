"""`pate release`: from ledgers to one public report, drawing the sanitizing noise once."""

from __future__ import annotations

import functools
import operator
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from pate_cli.cli.options import (
    OutputOptions,
    ReleaseOptions,
    ReportOptions,
    spread,
)
from pate_cli.cli.summary import Handling, print_report
from pate_cli.core.errors import UsageError
from pate_cli.files.addresses import public_name


@dataclass(frozen=True)
class BesideOptions:
    """What else was spent on the same records."""

    spend: Annotated[
        Path | None,
        typer.Option(
            "--spend",
            help="One more record of releases, shared by ledgers that have copies elsewhere.",
        ),
    ] = None
    no_spend: Annotated[
        bool,
        typer.Option(
            "--no-spend",
            help="Keep no record: earlier draws are not charged, and the report claims nothing.",
        ),
    ] = False
    external: Annotated[
        list[Path] | None,
        typer.Option(
            "--external",
            metavar="FILE",
            help="Add what else was trained on the same records: JSON with `adjacency`, and "
            "`orders` and `rdp` or `epsilon` and `delta`. May be given several times.",
            show_default=False,
        ),
    ] = None
    again: Annotated[
        bool,
        typer.Option("--again", help="Draw again all the same; earlier draws are charged, too."),
    ] = False


@spread
def release(
    ledgers: Annotated[
        list[Path],
        typer.Argument(
            metavar="LEDGER...",
            help="Ledgers of one or several rounds on the same teachers, from aggregate --ledger.",
            show_default=False,
        ),
    ],
    report: ReportOptions,
    parameters: ReleaseOptions,
    output: OutputOptions,
    others: BesideOptions,
) -> None:
    """Compose ledgers and publish one sanitized (epsilon, delta) for all they hold.

    Ledgers add up at one Renyi order, fixed before the first label: give --order to every
    aggregate whose ledgers are to be composed. Order, beta and sigma-release come from flags or
    from a public rule, never from the ledgers' own numbers.

    Every draw is noted beside every ledger it was made from, in <ledger>.spent.json, and a second
    one from any of the same rounds is refused (exit 7). Keep these records with the ledgers.
    """
    import pate_cli as pate
    from pate_cli.disclosure.figures import pair
    from pate_cli.disclosure.ledger import Ledger, SpendRecord, record_beside
    from pate_cli.files.lock import locked

    if others.no_spend and (others.again or others.spend is not None):
        other = "--again" if others.spend is None else "--spend"
        raise UsageError(f"{other} goes with a record of earlier draws; leave out --no-spend")
    external = others.external or []
    if external and report.export_rdp is not None:
        raise UsageError("--export-rdp does not go with --external, whose parts are curves already")
    report_path = report.place(f"{ledgers[0].stem}.report.json")
    rounds = [Ledger.read(path) for path in ledgers]
    beside = [] if others.no_spend else list(dict.fromkeys(record_beside(path) for path in ledgers))
    shared = [] if others.spend is None or others.spend.resolve() in beside else [others.spend]
    records = [*beside, *shared]
    with locked(records), output.outputs() as out:
        known = functools.reduce(operator.or_, map(SpendRecord.read, records), SpendRecord())
        # The records of what is spent are put in place before what spends it.
        for place in records:
            out.reserve(place, mode=0o600, replace=True)
        report.reserve(out, report_path)
        done = pate.release(
            rounds,
            record=known,
            again=others.again,
            recorded=not others.no_spend,
            external=external,
            seed=report.seed,
            **parameters.keywords,
        )
        for place in records if done.record != known else shared:
            out.write(place, done.record.to_json().encode())
        report.write(out, report_path, done.report)
    total = done.ledger
    if total.draws:
        output.note(
            f"the rounds published {len(total.draws)} epsilon(s) of their own, charged here; "
            "aggregate --release none --ledger FILE saves that"
        )
    if report.summed_up:
        secret = dict.fromkeys(public_name(os.path.relpath(at)) for at in (*ledgers, *records))
        public = [public_name(report_path)]
        print_report(done.report, Handling(public, ["the votes", *secret], public))
        return
    with_others = f", {len(external)} external part(s)" if external else ""
    output.note(
        f"{len(total.rounds)} round(s), {total.answers} answers{with_others}: "
        f"{pair(done.report.epsilon, done.report.delta)}"
    )
    for warning in done.report.warnings:
        output.note(f"warning: {warning}")
    if not done.report.sound:
        output.note(f"warning: {done.report.summary}")
