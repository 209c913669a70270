"""`pate release`: from ledgers to one public report, drawing the sanitizing noise once."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from pate_cli.cli.options import (
    OutputOptions,
    ReleaseOptions,
    ReportOptions,
    refuse_overwriting,
    spread,
)
from pate_cli.errors import UsageError

__all__ = ["release"]


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
    wanted: ReleaseOptions,
    output: OutputOptions,
    spend: Annotated[
        Path | None,
        typer.Option(
            "--spend",
            help="Record of releases: refuses a second draw from the same rounds (exit 7).",
        ),
    ] = None,
    again: Annotated[
        bool,
        typer.Option("--again", help="Draw again all the same; earlier draws are charged, too."),
    ] = False,
) -> None:
    """Compose ledgers and publish one sanitized (epsilon, delta) for all they hold.

    Ledgers add up at one Renyi order, fixed before the first label: give --order to every
    aggregate whose ledgers are to be composed. Order, beta and sigma-release come from flags or
    from a public rule, never from the ledgers' own numbers.
    """
    import pate_cli as pate
    from pate_cli.ledger import SpendRecord

    if again and spend is None:
        raise UsageError("--again goes with --spend FILE, the record of earlier draws")
    for path in ledgers:
        refuse_overwriting(path, report.report, what="one of the ledgers")
    with _alone(spend), output.outputs() as out:
        record = SpendRecord() if spend is None else SpendRecord.read(spend)
        # The record of what is spent is put in place before what spends it.
        if spend is not None:
            out.reserve(spend, mode=0o600, replace=True)
        out.reserve(report.report)
        done = pate.release(ledgers, record=record, again=again, seed=report.seed, **wanted.wanted)
        if spend is not None:
            out.write(spend, done.record.to_json().encode())
        out.write(report.report, done.report.to_json().encode())
    total = done.ledger
    if total.draws:
        output.note(
            f"the rounds published {len(total.draws)} epsilon(s) of their own, charged here; "
            "aggregate --release none --ledger FILE saves that"
        )
    output.note(
        f"{len(total.rounds)} round(s), {total.answers} answers: epsilon "
        f"{done.report.epsilon:.4f} at delta {total.delta:g}"
    )


@contextlib.contextmanager
def _alone(path: Path | None) -> Iterator[None]:
    """Hold the record's folder, so that two releases at once cannot both find it unspent."""
    if path is None or not path.parent.is_dir():
        yield
        return
    try:
        import fcntl
    except ImportError:  # no such locks on this system; the check itself still stands
        yield
        return
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)
