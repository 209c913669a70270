"""`pate aggregate`: votes in, private labels and a public report out."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pate_cli.cli.options import (
    AccountOptions,
    MechanismOptions,
    OutputOptions,
    ReleaseOptions,
    ReportOptions,
    ViewOptions,
    VoteOptions,
    Votes,
    Without,
    bound_batches,
    in_panel,
    refuse_overwriting,
    spread,
    stem_of,
)
from pate_cli.errors import UsageError
from pate_cli.words import Analysis, LabelFormat, MechanismName, ReleaseKind

if TYPE_CHECKING:
    from pate_cli.labels import LabelTable
    from pate_cli.ledger import Ledger
    from pate_cli.noise import Noise
    from pate_cli.release.report import PublicReport
    from pate_cli.votes import VoteFile

__all__ = ["aggregate"]

_CURVES = (
    MechanismName.LNMAX,
    MechanismName.GNMAX,
    MechanismName.CONFIDENT,
    MechanismName.INTERACTIVE,
)


@spread
def aggregate(
    votes: Votes,
    labels_path: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            help="Labels; - is stdout. Default: <stem>.labels.parquet in this folder.",
        ),
    ] = None,
    label_format: Annotated[
        LabelFormat | None,
        typer.Option("--format", help="Format of the labels. Default: by the output's suffix."),
    ] = None,
    *,
    report: ReportOptions,
    ledger: Annotated[
        Path | None,
        in_panel("Output")(
            "--ledger",
            help="Also keep the ledger here (mode 0600). Secret: needed to compose several rounds.",
        ),
    ] = None,
    described: MechanismOptions,
    reading: VoteOptions,
    account: AccountOptions,
    release: ReleaseOptions,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Check votes and outputs, print the data-independent price, spend nothing.",
        ),
    ] = False,
    view: Annotated[ViewOptions, Without("as_json")],
    output: OutputOptions,
) -> None:
    """Label queries by the teachers' noisy vote and report a publishable (epsilon, delta).

    Publish the labels and the report; keep the votes and the ledger. Everything that shapes the
    run is fixed by flags or public rules before the first vote is read.

    \b
    Which mechanism?
      confident      the default: best labels for the price, where some queries may go without
      interactive    a second round: asks only where the teachers correct your student
      gnmax          every query must get a label
      lnmax          as gnmax, when few queries and pure epsilon matter (the 2017 paper)
      stability, sparse-vector   few queries, almost unanimous teachers, the exact plurality
    """
    from pate_cli.labels import encode_labels

    labels_path = labels_path or f"{stem_of(votes)}.labels.parquet"
    label_format = label_format or LabelFormat.from_path(labels_path)
    if labels_path == "-" and report.report == "-":
        raise UsageError("labels and report cannot both go to stdout; give --report FILE")
    if view.plot is not None and dry_run:
        raise UsageError("--plot does not go with --dry-run, which publishes its price")
    targets = (labels_path, report.report, ledger, view.plot)
    refuse_overwriting(votes, *targets)
    if described.student is not None:
        refuse_overwriting(described.student, *targets, what="the student's predictions")
    kind = release.kind(account.analysis)
    if described.stable:
        _refuse_sanitizing(described, release, account, ledger=ledger)
    noise = report.noise()

    with output.outputs() as out:
        # The record of what is spent is put in place before what spends it.
        if ledger is not None:
            out.reserve(ledger, mode=0o600)
        out.reserve(labels_path)
        out.reserve(report.report)
        view.reserve(out)
        with reading.open(votes) as file:
            output.note(file.describe())
            queries, cap = reading.count(file)
            if described.stable:
                run = _stable_run(file, described, account, queries=queries, cap=cap)
            else:
                run = _renyi_run(file, described, account, release, kind, queries=queries, cap=cap)
            view.draw(out, lambda: _growth(file, described, queries=queries, delta=account.delta))
            with output.progress("aggregating", queries) as advance:
                if dry_run:
                    for batch in file.batches(limit=queries):
                        advance(len(batch.counts))
                    out.write(report.report, (json.dumps(run.price(), indent=2) + "\n").encode())
                    output.note("dry run: the votes are sound, nothing was drawn or spent")
                    return
                labels, public, spent = run.draw(noise, advance)
        if ledger is not None and spent is not None:
            out.write(ledger, spent.to_json().encode())
        out.write(labels_path, encode_labels(labels, label_format))
        out.write(report.report, public.to_json().encode())
    output.note(
        f"answered {public.answers} of {queries} queries, labels in "
        f"{'standard output' if labels_path == '-' else labels_path}; "
        f"epsilon {public.epsilon:.4f} at delta {account.delta:g}"
    )
    for warning in public.warnings:
        output.note(f"warning: {warning}")
    if not public.private:
        output.note("drawn from a fixed seed: NOT private, for tests and papers only")


@dataclass(frozen=True)
class _Run:
    """A run that is ready: what it costs in advance, and how to draw it.

    Attributes:
        price: the data-independent price, as --dry-run prints it.
        draw: from noise and a callback for progress to labels, report and, if it has one, ledger.
    """

    price: Callable[[], dict[str, Any]]
    draw: Callable[[Noise, Callable[[int], None]], tuple[LabelTable, PublicReport, Ledger | None]]


def _renyi_run(
    file: VoteFile,
    described: MechanismOptions,
    account: AccountOptions,
    release: ReleaseOptions,
    kind: ReleaseKind,
    *,
    queries: int,
    cap: int,
) -> _Run:
    import numpy as np

    from pate_cli import run as engine
    from pate_cli.published.account import require_published_sensitivity
    from pate_cli.release.door import price
    from pate_cli.release.rule import choose_plan

    mechanism = described.build(teachers=file.teachers, classes=file.classes)
    plan = choose_plan(
        kind,
        mechanism=mechanism,
        queries=queries,
        delta=account.delta,
        order=release.order,
        beta=release.beta,
        sigma=release.sigma_release,
    )
    plan = replace(plan, analysis=account.analysis, as_published=release.as_published)
    if account.analysis is Analysis.PAPER:
        require_published_sensitivity(mechanism, np.array([plan.order]))

    def draw(
        noise: Noise, progress: Callable[[int], None]
    ) -> tuple[LabelTable, PublicReport, Ledger]:
        done = engine.aggregate(
            file.batches(limit=queries),
            mechanism,
            plan,
            queries=queries,
            max_answers=cap,
            noise=noise,
            progress=progress,
            warnings=_assumptions(file),
        )
        return done.labels, done.report, done.ledger

    return _Run(lambda: price(mechanism, plan, queries=queries, max_answers=cap), draw)


def _stable_run(
    file: VoteFile, described: MechanismOptions, account: AccountOptions, *, queries: int, cap: int
) -> _Run:
    from pate_cli.stable_run import aggregate_stable, price_stable

    mechanism = described.build_stable(
        teachers=file.teachers, classes=file.classes, queries=queries, delta=account.delta
    )
    bounds = price_stable(mechanism, queries=queries, max_answers=cap, delta=account.delta)

    def draw(
        noise: Noise, progress: Callable[[int], None]
    ) -> tuple[LabelTable, PublicReport, None]:
        labels, public = aggregate_stable(
            file.batches(limit=queries),
            mechanism,
            queries=queries,
            max_answers=cap,
            delta=account.delta,
            noise=noise,
            progress=progress,
            warnings=_assumptions(file),
        )
        return labels, public, None

    return _Run(lambda: bounds, draw)


def _refuse_sanitizing(
    described: MechanismOptions,
    release: ReleaseOptions,
    account: AccountOptions,
    *,
    ledger: Path | None,
) -> None:
    """The stability family's ε needs no sanitizing and has no Rényi cost to keep."""
    name = described.mechanism
    if release.release not in (None, ReleaseKind.NONE):
        raise UsageError(
            f"--release {release.release} does not go with {name}: nothing to sanitize"
        )
    if ledger is not None:
        raise UsageError(f"--ledger does not go with {name}, which has no Renyi cost to keep")
    if account.analysis is not Analysis.TIGHT:
        raise UsageError(f"--analysis {account.analysis} does not go with {name}")


def _assumptions(file: VoteFile) -> list[str]:
    """What a guarantee takes as public although it was read off the votes."""
    found = []
    if file.classes_from_data:
        found.append(
            f"The number of classes, {file.classes}, was read off the votes; every statement "
            "takes it as public knowledge. Give --classes to settle it."
        )
    if file.rows_from_data:
        found.append(
            "Votes may be missing in a long-form file, so which queries it holds depends on the "
            "votes; every statement takes the list of queries as public knowledge."
        )
    return found


def _growth(file: VoteFile, described: MechanismOptions, *, queries: int, delta: float) -> Any:
    """The figure of cumulative costs, for every aggregator with a Rényi cost.

    Each takes the command's own flags where it knows them, and its defaults otherwise.
    """
    from pate_cli.plots import growth_figure
    from pate_cli.pricing.growth import measure_growth

    curves = {}
    for name in _CURVES:
        options = described.restricted_to(name)
        if options is None:
            continue
        mechanism = options.build(teachers=file.teachers, classes=file.classes)
        curves[mechanism.name] = measure_growth(
            bound_batches(file, mechanism, queries), delta=delta
        )
    return growth_figure(curves, delta=delta)
