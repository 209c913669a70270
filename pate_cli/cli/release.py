"""`pate release`: from ledgers, reports and records to one public report."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from pate_cli.cli.options import (
    OutputOptions,
    RecordOptions,
    ReleaseOptions,
    ReportOptions,
    spread,
)
from pate_cli.cli.summary import Handling, print_report
from pate_cli.core.errors import UsageError
from pate_cli.files.addresses import public_name


@dataclass(frozen=True)
class BesideOptions:
    """Options for what else was spent on the same records."""

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
    unverified: Annotated[
        bool,
        typer.Option(
            "--unverified",
            help="Take reports and records that do not verify, too; the report then says so and "
            "promises nothing.",
        ),
    ] = False


@spread
def release(
    given: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="Ledgers of rounds on the same teachers (aggregate --ledger), reports, records.",
            show_default=False,
        ),
    ],
    report: ReportOptions,
    parameters: ReleaseOptions,
    kept: RecordOptions,
    output: OutputOptions,
    others: BesideOptions,
) -> None:
    """One public report for several runs: what they cost together, whatever the votes.

    Reports and records may be of tested targets, worst-case runs and releases; with --external
    whatever else was trained on the same records is in the total, too.

    Ledgers may also publish a sanitized epsilon of their votes (--release upper), at one Renyi
    order, fixed before the first label: give --order to every aggregate whose ledgers are to be
    composed. Order, beta and sigma-release come from flags or from a public rule, never from the
    ledgers' own numbers. Every draw is in the record, and a second one from any of the same rounds
    is refused (exit 7).
    """
    import pate_cli as pate
    from pate_cli.disclosure.figures import pair

    external = others.external or []
    if others.again and kept.no_record:
        raise UsageError("--again goes with a record of earlier draws; leave out --no-record")
    if external and report.export_rdp is not None:
        raise UsageError("--export-rdp does not go with --external, whose parts are curves already")
    first = Path(public_name(given[0])).stem.removesuffix(".spent") or "release"
    report_path = report.place(f"{first}.report.json")
    with output.outputs() as out:
        report.reserve(out, report_path)
        out.try_out()
        done = pate.release(
            given,
            external=external,
            again=others.again,
            unverified=others.unverified,
            seed=report.seed,
            **kept.keywords,
            **parameters.keywords,
        )
        try:
            report.write(out, report_path, done.report)
            out.publish()
        except BaseException as error:
            if done.report.sanitized.epsilon is not None and done.report.spent is not None:
                error.add_note("what was drawn stays in the record and counts")
            raise
    total, spent = done.ledger, done.report.spent
    if done.joined is not None:
        output.note(done.joined)
    if total is not None and total.draws:
        output.note(
            f"the rounds published {len(total.draws)} epsilon(s) of their own, charged here; "
            "aggregate --release none --ledger FILE saves that"
        )
    if report.summed_up:
        ledgers = [] if total is None else [name for name in given if _is_ledger(name)]
        secret = dict.fromkeys(public_name(os.path.relpath(at)) for at in ledgers)
        public = [public_name(report_path)]
        print_report(done.report, Handling(public, ["the votes", *secret], public))
        return
    rounds = len(done.report.rounds)
    with_others = f", {len(external)} external part(s)" if external else ""
    output.note(
        f"{rounds} round(s), {done.report.answers} answers{with_others}: "
        f"{pair(done.report.epsilon, done.report.delta)}"
    )
    if spent is not None and spent.count > 1 and done.report.epsilon_kind != "total":
        output.note(
            f"{spent.count} runs of the record: {pair(spent.epsilon, spent.delta)} together"
        )
    for warning in done.report.warnings:
        output.note(f"warning: {warning}")
    if not done.report.sound:
        output.note(f"warning: {done.report.summary}")


def _is_ledger(name: str) -> bool:
    path = Path(name)
    if not path.is_file():  # a pipe, or the address of a report
        return False
    with path.open("rb") as file:
        return b'"pate-ledger"' in file.read(200)
