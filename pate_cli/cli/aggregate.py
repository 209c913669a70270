"""`pate aggregate`: votes in, private labels and a public report out."""

from __future__ import annotations

from typing import Annotated

import typer

from pate_cli.choices import MechanismName, ReleaseKind
from pate_cli.cli import options as opt
from pate_cli.reports.label_format import LabelFormat

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
    max_queries: opt.MaxQueries = None,
    max_answers: opt.MaxAnswers = None,
    delta: opt.Delta = 1e-5,
    release: opt.Release = ReleaseKind.UPPER,
    order: opt.Order = None,
    beta: opt.Beta = None,
    sigma_release: opt.SigmaRelease = None,
    layout: opt.LayoutOption = None,
    classes: opt.Classes = None,
    teachers: opt.Teachers = None,
    seed: opt.Seed = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Check the votes and the outputs, print the data-independent price, spend nothing.",
        ),
    ] = False,
    force: opt.Force = False,
    quiet: opt.Quiet = False,
) -> None:
    """Label queries by the teachers' noisy vote and report a publishable (epsilon, delta).

    Publish the labels and the report; keep the votes and the ledger. Everything that shapes the
    run is fixed by flags or public rules before the first vote is read.
    """
