"""Options that several commands share, one spelling and one help text each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pate_cli.words import Analysis, Layout, MechanismName, ReleaseKind

_VOTES = "Votes"
_MECHANISM = "Mechanism"
_RELEASE = "Release of epsilon"
_OUTPUT = "Output"

Votes = Annotated[
    str,
    typer.Argument(
        metavar="VOTES",
        help="NPY or Parquet file, folder or glob of Parquet parts, URI, or - for a pipe.",
        show_default=False,
    ),
]
LayoutOption = Annotated[
    Layout | None,
    typer.Option(
        "--layout",
        help="What a row of the file is; inferred only when there is no doubt.",
        rich_help_panel=_VOTES,
    ),
]
Classes = Annotated[
    int | None,
    typer.Option("--classes", help="Number of classes m.", rich_help_panel=_VOTES),
]
Teachers = Annotated[
    int | None,
    typer.Option(
        "--teachers",
        help="Number of teachers; also allows rows in which some are missing.",
        rich_help_panel=_VOTES,
    ),
]
MaxQueries = Annotated[
    int | None,
    typer.Option("--max-queries", help="Ask only the first N rows.", rich_help_panel=_VOTES),
]
Mechanism = Annotated[
    MechanismName,
    typer.Option(
        "--mechanism",
        help="confident: answer where teachers agree; interactive: where they correct the student; "
        "gnmax, lnmax: answer every query; stability, sparse-vector: the exact plurality "
        "where no few votes could change it.",
        rich_help_panel=_MECHANISM,
    ),
]
Threshold = Annotated[
    float | None,
    typer.Option(
        "--threshold",
        help="T: votes the plurality should have. Default 0.8 x teachers.",
        rich_help_panel=_MECHANISM,
    ),
]
Sigma1 = Annotated[
    float | None,
    typer.Option(
        "--sigma1",
        "--sigma-threshold",
        help="Noise of the threshold test, in votes. Default 0.6 x teachers.",
        rich_help_panel=_MECHANISM,
    ),
]
Sigma2 = Annotated[
    float | None,
    typer.Option(
        "--sigma2",
        "--sigma-gnmax",
        help="Noise on each count of the argmax, in votes. Default 0.16 x teachers.",
        rich_help_panel=_MECHANISM,
    ),
]
LaplaceScale = Annotated[
    float | None,
    typer.Option(
        "--laplace-scale",
        help="b of lnmax: Laplace noise on each count, the 2017 paper's 1/gamma. "
        "Default 0.08 x teachers.",
        rich_help_panel=_MECHANISM,
    ),
]
Student = Annotated[
    Path | None,
    typer.Option(
        "--student",
        help="Predictions of interactive's student: probabilities per query, NPY or Parquet.",
        rich_help_panel=_MECHANISM,
    ),
]
Confidence = Annotated[
    float | None,
    typer.Option(
        "--confidence",
        help="gamma of interactive: reinforce student labels surer than this. Default 0.9.",
        rich_help_panel=_MECHANISM,
    ),
]
TeachersPerRecord = Annotated[
    int,
    typer.Option(
        "--teachers-per-record",
        help="Most teachers that one record may have trained; 1 when their data are disjoint.",
        rich_help_panel=_MECHANISM,
    ),
]
QueryEpsilon = Annotated[
    float | None,
    typer.Option(
        "--query-epsilon",
        help="epsilon per query (stability) or refusal (sparse-vector). Default: a public rule.",
        rich_help_panel=_MECHANISM,
    ),
]
QueryDelta = Annotated[
    float | None,
    typer.Option(
        "--query-delta",
        help="delta per query or refusal, below --delta. Default: half of it in all.",
        rich_help_panel=_MECHANISM,
    ),
]
Refusals = Annotated[
    int | None,
    typer.Option(
        "--refusals",
        help="Q of sparse-vector: stop after so many refusals; only they cost. Default 10.",
        rich_help_panel=_MECHANISM,
    ),
]
MaxAnswers = Annotated[
    int | None,
    typer.Option(
        "--max-answers",
        help="Stop after N answers: a public cap that lowers the data-independent epsilon.",
        rich_help_panel=_MECHANISM,
    ),
]
Delta = Annotated[
    float,
    typer.Option("--delta", help="delta of the guarantee, below 1 / teachers' records."),
]
AnalysisOption = Annotated[
    Analysis,
    typer.Option(
        "--analysis",
        help="tight: sharp and sound. paper: as published in 2018, for comparison only.",
    ),
]
AsPublished = Annotated[
    bool,
    typer.Option(
        "--as-published",
        help="With --analysis paper: charge the release by the published theorem (unsound).",
    ),
]
Release = Annotated[
    ReleaseKind | None,
    typer.Option(
        "--release",
        help=(
            "upper (default): a bound, too low with probability delta/10 only; unbiased: an "
            "estimate; none: the data-independent epsilon alone."
        ),
        rich_help_panel=_RELEASE,
    ),
]
Order = Annotated[
    float | None,
    typer.Option("--order", help="Renyi order. Default: a public rule.", rich_help_panel=_RELEASE),
]
Beta = Annotated[
    float | None,
    typer.Option(
        "--beta",
        help="Smoothness of the sensitivity, per vote. Default: a public rule.",
        rich_help_panel=_RELEASE,
    ),
]
SigmaRelease = Annotated[
    float | None,
    typer.Option(
        "--sigma-release",
        help="Noise of the release, in smooth sensitivities. Default: a public rule.",
        rich_help_panel=_RELEASE,
    ),
]
Report = Annotated[
    str,
    typer.Option("--report", help="Public report (JSON); - is stdout.", rich_help_panel=_OUTPUT),
]
LedgerOut = Annotated[
    Path | None,
    typer.Option(
        "--ledger",
        help="Also keep the ledger here (mode 0600). Secret: needed to compose several rounds.",
        rich_help_panel=_OUTPUT,
    ),
]
Plot = Annotated[
    Path | None,
    typer.Option(
        "--plot",
        help="Also draw a picture (.png, .svg; mode 0600). Secret; needs pate-cli[plot].",
        rich_help_panel=_OUTPUT,
    ),
]
Json = Annotated[
    bool,
    typer.Option("--json", help="JSON also on a terminal; a pipe always gets JSON."),
]
Force = Annotated[
    bool,
    typer.Option("--force", help="Replace existing outputs.", rich_help_panel=_OUTPUT),
]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", help="No progress and no notes on stderr."),
]
Seed = Annotated[
    int | None,
    typer.Option(
        "--seed",
        help="Reproducible noise for tests and papers; the report says private: false.",
    ),
]
