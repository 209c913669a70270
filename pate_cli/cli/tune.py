"""`pate tune`: which threshold, noise and release for so many labels at such an epsilon."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from pate_cli.cli import options as opt
from pate_cli.cli.notes import note, outputs, prints_json, progress, say
from pate_cli.cli.setup import refuse_overwriting
from pate_cli.cli.tune_results import rule_result, tuned_result
from pate_cli.cli.tune_source import TuneSource
from pate_cli.errors import UsageError
from pate_cli.words import Objective, ReleaseKind

__all__ = ["tune"]

_INTERRUPTED = 130
_GOAL, _SEARCH, _SAFE = "Goal", "Search", "Without private votes"
_WARNING = (
    "NOT RELEASABLE: these settings were chosen on the votes, and a run with them on the same "
    "votes leaks what the choice says; tune on public votes, --synthetic or --data-independent"
)

_VALUES = "in votes: a,b,c or low:high:count."


def tune(
    votes: Annotated[
        str | None,
        typer.Argument(
            metavar="[VOTES]",
            help="Votes as in pate aggregate; none with --synthetic, --rule-of-thumb, or "
            "--data-independent and a shape.",
            show_default=False,
        ),
    ] = None,
    target_epsilon: Annotated[
        float | None,
        typer.Option(
            "--target-epsilon",
            help="Most expected answers at this published epsilon or less.",
            rich_help_panel=_GOAL,
        ),
    ] = None,
    answers: Annotated[
        float | None,
        typer.Option(
            "--answers",
            help="Least epsilon for so many expected answers; with a target the best agreement.",
            rich_help_panel=_GOAL,
        ),
    ] = None,
    objective: Annotated[
        Objective,
        typer.Option(
            "--objective",
            help="With only a target: most answers, or most answers that equal the plurality.",
            rich_help_panel=_GOAL,
        ),
    ] = Objective.ANSWERS,
    min_agreement: Annotated[
        float,
        typer.Option(
            "--min-agreement",
            help="Least expected share of answers that equal the plurality.",
            rich_help_panel=_GOAL,
        ),
    ] = 0.9,
    delta: opt.Delta = 1e-5,
    release: opt.Release = None,
    threshold: Annotated[
        str | None,
        typer.Option("--threshold", help=f"T to try, {_VALUES}", rich_help_panel=_SEARCH),
    ] = None,
    sigma1: Annotated[
        str | None,
        typer.Option(
            "--sigma1",
            "--sigma-threshold",
            help=f"Noise of the threshold test to try, {_VALUES}",
            rich_help_panel=_SEARCH,
        ),
    ] = None,
    sigma2: Annotated[
        str | None,
        typer.Option(
            "--sigma2",
            "--sigma-gnmax",
            help=f"Noise of the argmax to try, {_VALUES}",
            rich_help_panel=_SEARCH,
        ),
    ] = None,
    teachers_per_record: opt.TeachersPerRecord = 1,
    max_queries: opt.MaxQueries = None,
    truth: Annotated[
        Path | None,
        typer.Option(
            "--truth",
            help="True labels (NPY, Parquet, CSV): also estimate accuracy, from below.",
            rich_help_panel="Votes",
        ),
    ] = None,
    data_independent: Annotated[
        bool,
        typer.Option(
            "--data-independent",
            help="epsilon for all votes, met always by a cap on answers; needs no VOTES.",
            rich_help_panel=_SAFE,
        ),
    ] = False,
    synthetic: Annotated[
        str | None,
        typer.Option(
            "--synthetic",
            help="Made-up votes: teachers=250,classes=10,queries=1000,agreement=0.85,spread=0.3,"
            "confusion=0.3,imbalance=0,seed=0.",
            rich_help_panel=_SAFE,
        ),
    ] = None,
    rule_of_thumb: Annotated[
        bool,
        typer.Option(
            "--rule-of-thumb",
            help="Release parameters by rule for a target, without any search.",
            rich_help_panel=_SAFE,
        ),
    ] = False,
    queries: Annotated[
        int | None,
        typer.Option(
            "--queries",
            help="Without VOTES: how many queries there are.",
            rich_help_panel=_SAFE,
        ),
    ] = None,
    public_votes: Annotated[
        bool,
        typer.Option(
            "--public-votes",
            help="Assert that VOTES are public, so that the result may be published.",
            rich_help_panel=_SAFE,
        ),
    ] = False,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            help="Also draw the Pareto front (.png, .svg); needs pate-cli[plot].",
            rich_help_panel="Output",
        ),
    ] = None,
    as_json: opt.Json = False,
    layout: opt.LayoutOption = None,
    classes: opt.Classes = None,
    teachers: opt.Teachers = None,
    force: opt.Force = False,
    quiet: opt.Quiet = False,
) -> None:
    """Find threshold, noise and release parameters for a goal. NOT releasable if VOTES are private.

    Searches Confident-GNMax settings jointly with the number of queries and the release; prints
    the winner, its `pate aggregate` line and the Pareto front of answers, agreement and epsilon.
    """
    source = TuneSource(
        votes=votes,
        layout=layout,
        classes=classes,
        teachers=teachers,
        queries=queries,
        max_queries=max_queries,
        truth=truth,
        synthetic=synthetic,
        teachers_per_record=teachers_per_record,
        public=public_votes,
    )
    kind = _kind(release, data_independent=data_independent)
    source.check(kind, rule=rule_of_thumb)

    from pate_cli.tuning.grid import parse_values

    axes = {
        "thresholds": parse_values("--threshold", threshold),
        "sigmas1": parse_values("--sigma1", sigma1),
        "sigmas2": parse_values("--sigma2", sigma2),
    }
    if rule_of_thumb:
        if kind is ReleaseKind.NONE or plot is not None:
            raise UsageError("--rule-of-thumb is about a release, and draws no plot")
        result = rule_result(source, axes, kind, target_epsilon=target_epsilon, delta=delta)
        _print(result, as_json=as_json)
        return

    from pate_cli.tuning import Goal, Grid, Search

    goal = Goal(
        delta=delta,
        release=kind,
        target_epsilon=target_epsilon,
        answers=answers,
        objective=objective,
        min_agreement=min_agreement,
    )
    with outputs(force=force) as out:
        if plot is not None:
            from pate_cli.plots import check_plot

            if votes is not None:
                refuse_overwriting(votes, plot)
            picture = check_plot(plot)
            out.reserve(plot, mode=0o644 if source.releasable else 0o600)
        with source.electorate(quiet=quiet) as electorate:
            grid = Grid.for_teachers(electorate.teachers, **axes)
            search = Search(electorate, grid, goal)
            complete = True
            try:
                with progress("tuning", search.steps, quiet=quiet) as advance:
                    tuned = search.run(advance)
            except KeyboardInterrupt:
                note("interrupted; pricing the best so far", quiet=quiet)
                best = search.best_so_far()
                if best is None:
                    raise
                tuned, complete = best, False
            result = tuned_result(tuned, source, electorate, grid, goal)
        if plot is not None:
            from pate_cli.plots import pareto_picture

            out.write(plot, pareto_picture(result["pareto"], result["winner"], picture=picture))
    if not result["releasable"]:
        say(_WARNING)
    _print(result, as_json=as_json)
    if not complete:
        say("interrupted: this is the best of an incomplete search")
        raise typer.Exit(_INTERRUPTED)


def _kind(release: ReleaseKind | None, *, data_independent: bool) -> ReleaseKind:
    if not data_independent:
        return release or ReleaseKind.UPPER
    if release not in (None, ReleaseKind.NONE):
        raise UsageError(
            f"--data-independent publishes no data-dependent epsilon; leave out --release {release}"
        )
    return ReleaseKind.NONE


def _print(result: dict[str, Any], *, as_json: bool) -> None:
    if prints_json(result, as_json=as_json):
        return
    from pate_cli.cli.tune_tables import print_rule, print_tuned

    (print_rule if "rule_of_thumb" in result else print_tuned)(result)
