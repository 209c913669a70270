"""`pate release`: from ledgers to one public report, drawing the sanitizing noise once."""

from __future__ import annotations

import contextlib
import functools
import operator
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pate_cli.cli.options import (
    OutputOptions,
    ReleaseOptions,
    ReportOptions,
    refuse_overwriting,
    spread,
)
from pate_cli.errors import LedgerError, SpentError, UsageError
from pate_cli.words import Analysis

if TYPE_CHECKING:
    from pate_cli.ledger import Ledger
    from pate_cli.spending import SpendRecord

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
    from pate_cli.mechanisms import mechanism_from_parameters
    from pate_cli.release.door import release as release_report
    from pate_cli.release.rule import choose_plan_for

    if again and spend is None:
        raise UsageError("--again goes with --spend FILE, the record of earlier draws")
    for path in ledgers:
        refuse_overwriting(path, report.report, what="one of the ledgers")
    total = functools.reduce(operator.add, [_read(path) for path in ledgers])
    analysis = Analysis(total.analysis)
    kind = wanted.kind(analysis)
    order = wanted.order
    if order is None:
        if total.orders.size > 1:
            held = ", ".join(f"{value:g}" for value in total.orders)
            raise UsageError(f"the ledgers hold orders {held}; choose one with --order")
        order = float(total.orders[0])
    total.row(order)
    plan = choose_plan_for(
        kind,
        [(mechanism_from_parameters(held.mechanism), held.queries) for held in total.rounds],
        delta=total.delta,
        order=order,
        beta=wanted.beta,
        sigma=wanted.sigma_release,
    )
    plan = replace(plan, analysis=analysis, as_published=wanted.as_published)
    with _alone(spend), output.outputs() as out:
        record = _read_record(spend)
        prior = record.touching(total)
        if prior and not again and plan.draws:
            raise SpentError(
                f"these rounds were released before, {len(prior)} time(s); another draw costs "
                "privacy: publish the first report, or give --again to be charged for all draws"
            )
        # The record of what is spent is put in place before what spends it.
        if spend is not None:
            out.reserve(spend, mode=0o600, replace=True)
        out.reserve(report.report)
        public = release_report(total, plan, report.noise(), prior=[past.draw for past in prior])
        if spend is not None:
            out.write(spend, record.after(total, plan).to_json().encode())
        out.write(report.report, public.to_json().encode())
    if total.draws:
        output.note(
            f"the rounds published {len(total.draws)} epsilon(s) of their own, charged here; "
            "aggregate --release none --ledger FILE saves that"
        )
    output.note(
        f"{len(total.rounds)} round(s), {total.answers} answers: epsilon {public.epsilon:.4f} "
        f"at delta {total.delta:g}"
    )


def _read(path: Path) -> Ledger:
    from pate_cli.ledger import Ledger

    with _named(path):
        return Ledger.from_json(path.read_bytes())


def _read_record(path: Path | None) -> SpendRecord:
    from pate_cli.spending import SpendRecord

    if path is not None:
        with _named(path), contextlib.suppress(FileNotFoundError):
            return SpendRecord.from_json(path.read_bytes())
    return SpendRecord()


@contextlib.contextmanager
def _named(path: Path) -> Iterator[None]:
    """Errors in reading a file say which one it is."""
    try:
        yield
    except OSError as error:
        raise LedgerError(f"cannot read {path}: {error.strerror}") from None
    except LedgerError as error:
        raise LedgerError(f"{path}: {error}") from None


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
