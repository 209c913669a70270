"""`pate aggregate`: votes in, private labels and a public report out."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from pate_cli.cli import options as opt
from pate_cli.cli.notes import note, outputs, progress
from pate_cli.cli.pictures import growth, reserve_plot
from pate_cli.cli.setup import (
    MechanismOptions,
    assumptions,
    count_queries,
    refuse_overwriting,
    release_kind,
    stem_of,
)
from pate_cli.errors import UsageError
from pate_cli.label_format import LabelFormat
from pate_cli.words import Analysis, MechanismName, ReleaseKind

__all__ = ["aggregate"]


def aggregate(
    votes: opt.Votes,
    output: Annotated[
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
    report: opt.Report = "-",
    ledger: opt.LedgerOut = None,
    mechanism: opt.Mechanism = MechanismName.CONFIDENT,
    threshold: opt.Threshold = None,
    sigma1: opt.Sigma1 = None,
    sigma2: opt.Sigma2 = None,
    laplace_scale: opt.LaplaceScale = None,
    student: opt.Student = None,
    confidence: opt.Confidence = None,
    teachers_per_record: opt.TeachersPerRecord = 1,
    query_epsilon: opt.QueryEpsilon = None,
    query_delta: opt.QueryDelta = None,
    refusals: opt.Refusals = None,
    max_queries: opt.MaxQueries = None,
    max_answers: opt.MaxAnswers = None,
    delta: opt.Delta = 1e-5,
    release: opt.Release = None,
    order: opt.Order = None,
    beta: opt.Beta = None,
    sigma_release: opt.SigmaRelease = None,
    analysis: opt.AnalysisOption = Analysis.TIGHT,
    as_published: opt.AsPublished = False,
    plot: opt.Plot = None,
    layout: opt.LayoutOption = None,
    classes: opt.Classes = None,
    teachers: opt.Teachers = None,
    seed: opt.Seed = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Check votes and outputs, print the data-independent price, spend nothing.",
        ),
    ] = False,
    force: opt.Force = False,
    quiet: opt.Quiet = False,
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
    import numpy as np

    from pate_cli import run as engine
    from pate_cli.labels import encode_labels
    from pate_cli.noise import Noise
    from pate_cli.published.account import require_published_sensitivity
    from pate_cli.release.door import price
    from pate_cli.release.rule import choose_plan
    from pate_cli.stable_run import aggregate_stable, price_stable
    from pate_cli.votes import open_votes

    labels_path = output or f"{stem_of(votes)}.labels.parquet"
    label_format = label_format or LabelFormat.from_path(labels_path)
    if labels_path == "-" and report == "-":
        raise UsageError("labels and report cannot both go to stdout; give --report FILE")
    if plot is not None and dry_run:
        raise UsageError("--plot does not go with --dry-run, which publishes its price")
    refuse_overwriting(votes, labels_path, report, ledger, plot)
    if student is not None:
        refuse_overwriting(
            student, labels_path, report, ledger, plot, what="the student's predictions"
        )
    kind = release_kind(release, analysis=analysis, as_published=as_published)
    described = MechanismOptions(
        mechanism,
        threshold,
        sigma1,
        sigma2,
        laplace_scale,
        student,
        confidence,
        teachers_per_record,
        query_epsilon,
        query_delta,
        refusals,
    )
    if described.stable:
        _refuse_sanitizing(mechanism, release=release, ledger=ledger, analysis=analysis)
    noise = Noise.from_entropy() if seed is None else Noise.from_seed(seed)

    with outputs(force=force) as out:
        # The record of what is spent is put in place before what spends it.
        if ledger is not None:
            out.reserve(ledger, mode=0o600)
        out.reserve(labels_path)
        out.reserve(report)
        reserve_plot(out, plot)
        with open_votes(votes, layout=layout, classes=classes, teachers=teachers) as file:
            note(file.describe(), quiet=quiet)
            queries, cap = count_queries(file, max_queries=max_queries, max_answers=max_answers)
            batches = file.batches(limit=queries)
            if described.stable:
                stable = described.build_stable(
                    teachers=file.teachers, classes=file.classes, queries=queries, delta=delta
                )
                bounds = price_stable(stable, queries=queries, max_answers=cap, delta=delta)
            else:
                aggregator = described.build(teachers=file.teachers, classes=file.classes)
                plan = choose_plan(
                    kind,
                    mechanism=aggregator,
                    queries=queries,
                    delta=delta,
                    order=order,
                    beta=beta,
                    sigma=sigma_release,
                )
                plan = replace(plan, analysis=analysis, as_published=as_published)
                if analysis is Analysis.PAPER:
                    require_published_sensitivity(aggregator, np.array([plan.order]))
            if plot is not None:
                from pate_cli.plots import encode_figure

                figure = growth(file, described, queries=queries, delta=delta)
                out.write(plot, encode_figure(figure, plot))
            with progress("aggregating", queries, quiet=quiet) as advance:
                if dry_run:
                    for batch in batches:
                        advance(len(batch.counts))
                    if not described.stable:
                        bounds = price(aggregator, plan, queries=queries, max_answers=cap)
                    out.write(report, (json.dumps(bounds, indent=2) + "\n").encode())
                    note("dry run: the votes are sound, nothing was drawn or spent", quiet=quiet)
                    return
                if described.stable:
                    labels, public = aggregate_stable(
                        batches,
                        stable,
                        queries=queries,
                        max_answers=cap,
                        delta=delta,
                        noise=noise,
                        progress=advance,
                        warnings=assumptions(file),
                    )
                else:
                    done = engine.aggregate(
                        batches,
                        aggregator,
                        plan,
                        queries=queries,
                        max_answers=cap,
                        noise=noise,
                        progress=advance,
                        warnings=assumptions(file),
                    )
                    labels, public = done.labels, done.report
        if ledger is not None:
            out.write(ledger, done.ledger.to_json().encode())
        out.write(labels_path, encode_labels(labels, label_format))
        out.write(report, public.to_json().encode())
    note(
        f"answered {public.answers} of {queries} queries, labels in "
        f"{'standard output' if labels_path == '-' else labels_path}; "
        f"epsilon {public.epsilon:.4f} at delta {delta:g}",
        quiet=quiet,
    )
    for warning in public.warnings:
        note(f"warning: {warning}", quiet=quiet)
    if not public.private:
        note("drawn from a fixed seed: NOT private, for tests and papers only", quiet=quiet)


def _refuse_sanitizing(
    mechanism: MechanismName,
    *,
    release: ReleaseKind | None,
    ledger: Path | None,
    analysis: Analysis,
) -> None:
    """The stability family's ε needs no sanitizing and has no Rényi cost to keep."""
    if release not in (None, ReleaseKind.NONE):
        raise UsageError(f"--release {release} does not go with {mechanism}: nothing to sanitize")
    if ledger is not None:
        raise UsageError(f"--ledger does not go with {mechanism}, which has no Renyi cost to keep")
    if analysis is not Analysis.TIGHT:
        raise UsageError(f"--analysis {analysis} does not go with {mechanism}")
