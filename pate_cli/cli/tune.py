"""`pate tune`: which threshold, noise and release for so many labels at such an epsilon."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pate_cli.choices import Layout, Objective, ReleaseKind
from pate_cli.cli import options as opt
from pate_cli.cli.notes import note, outputs, progress, say
from pate_cli.cli.setup import count_queries, refuse_overwriting
from pate_cli.errors import ParameterError, UsageError

if TYPE_CHECKING:
    from pate_cli.tuning import Electorate, Goal, Grid, Tuned

__all__ = ["tune"]

_INTERRUPTED = 130
_GOAL, _SEARCH, _SAFE = "Goal", "Search", "Without private votes"
_WARNING = (
    "NOT RELEASABLE: these settings were chosen on the votes, and a run with them on the same "
    "votes leaks what the choice says; tune on public votes, --synthetic or --data-independent"
)

Values = "in votes: a,b,c or low:high:count."


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
        typer.Option("--threshold", help=f"T to try, {Values}", rich_help_panel=_SEARCH),
    ] = None,
    sigma1: Annotated[
        str | None,
        typer.Option(
            "--sigma1",
            "--sigma-threshold",
            help=f"Noise of the threshold test to try, {Values}",
            rich_help_panel=_SEARCH,
        ),
    ] = None,
    sigma2: Annotated[
        str | None,
        typer.Option(
            "--sigma2",
            "--sigma-gnmax",
            help=f"Noise of the argmax to try, {Values}",
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
    source = _Source(
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
        result = _by_rule(source, axes, kind, target_epsilon=target_epsilon, delta=delta)
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
            result = _result(tuned, source, electorate, grid, goal)
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


@dataclass
class _Source:
    """Where histograms come from, and what is known about them."""

    votes: str | None
    layout: Layout | None
    classes: int | None
    teachers: int | None
    queries: int | None
    max_queries: int | None
    truth: Path | None
    synthetic: str | None
    teachers_per_record: int
    public: bool

    @property
    def releasable(self) -> bool:
        """Whether what is found may be published."""
        return self.votes is None or self.public

    @property
    def shape(self) -> tuple[int, int, int]:
        """(teachers, classes, queries) as given; UsageError when one is missing or too small."""
        if self.teachers is None or self.classes is None or self.queries is None:
            raise UsageError("without VOTES give --teachers, --classes and --queries")
        for flag, value, least in (
            ("--teachers", self.teachers, 1),
            ("--classes", self.classes, 2),
            ("--queries", self.queries, 1),
        ):
            if value < least:
                raise ParameterError(f"{flag} must be at least {least}, got {value}")
        return self.teachers, self.classes, self.queries

    def check(self, kind: ReleaseKind, *, rule: bool) -> None:
        """Refuse combinations of flags that contradict each other."""
        if self.votes is not None:
            if rule or self.synthetic is not None:
                raise UsageError(
                    f"{'--rule-of-thumb' if rule else '--synthetic'} looks at no votes; "
                    "leave out VOTES"
                )
            if self.queries is not None:
                raise UsageError("--queries goes without VOTES; use --max-queries")
            return
        for flag, given in (
            ("--max-queries", self.max_queries is not None),
            ("--truth", self.truth is not None),
            ("--layout", self.layout is not None),
            ("--public-votes", self.public),
        ):
            if given:
                raise UsageError(f"{flag} needs VOTES")
        if self.synthetic is not None:
            if rule:
                raise UsageError("--rule-of-thumb and --synthetic exclude each other")
            if any(one is not None for one in (self.teachers, self.classes, self.queries)):
                raise UsageError(
                    "--synthetic names teachers, classes and queries itself; leave out "
                    "--teachers, --classes and --queries"
                )
        elif rule or kind is ReleaseKind.NONE:
            _ = self.shape
        else:
            raise UsageError(
                "give VOTES, or one of --synthetic, --data-independent, --rule-of-thumb"
            )

    @contextlib.contextmanager
    def electorate(self, *, quiet: bool) -> Iterator[Electorate]:
        """The histograms."""
        import numpy as np

        from pate_cli.tuning import Electorate
        from pate_cli.tuning.sources import made_up, reference, truth_in
        from pate_cli.votes import open_votes

        self.basis: dict[str, Any]
        shared = self.teachers_per_record
        if self.synthetic is not None:
            electorate, recipe = made_up(self.synthetic, teachers_per_record=shared)
            self.basis = {"votes": "synthetic", **recipe}
            yield electorate
            return
        if self.votes is None:
            teachers, classes, queries = self.shape
            electorate, recipe = reference(
                teachers=teachers, classes=classes, queries=queries, teachers_per_record=shared
            )
            self.basis = {"votes": "reference", **recipe}
            note("no votes: answers and agreement are those of made-up ones", quiet=quiet)
            yield electorate
            return
        with open_votes(
            self.votes, layout=self.layout, classes=self.classes, teachers=self.teachers
        ) as file:
            note(file.describe(), quiet=quiet)
            queries, _ = count_queries(file, max_queries=self.max_queries, max_answers=None)
            known = None if self.truth is None else truth_in(self.truth)
            parts, right = [], []
            for batch in file.batches(limit=queries):
                parts.append(batch.counts)
                if known is not None:
                    right.append(known.of(batch.ids, batch.first_row, classes=file.classes))
            self.basis = {
                "votes": "file",
                "teachers": file.teachers,
                "classes": file.classes,
                "queries": queries,
            }
            yield Electorate(
                np.concatenate(parts).astype(np.int64),
                file.teachers,
                shared,
                truth=None if known is None else np.concatenate(right),
            )

    def words(self) -> list[str]:
        """What `pate aggregate` must be told about the file as well."""
        words: list[str] = []
        if self.votes is not None:
            for flag, value in (
                ("--layout", self.layout and self.layout.value),
                ("--classes", self.classes),
                ("--teachers", self.teachers),
            ):
                words += [] if value is None else [flag, str(value)]
        if self.teachers_per_record != 1:
            words += ["--teachers-per-record", str(self.teachers_per_record)]
        return words


def _result(
    tuned: Tuned, source: _Source, electorate: Electorate, grid: Grid, goal: Goal
) -> dict[str, Any]:
    from pate_cli.tuning.command import aggregate_command, described, shares

    winner, command = None, None
    if tuned.winner is not None:
        winner = described(tuned.winner) | {"cost_shares": shares(tuned.winner, electorate)}
        command = aggregate_command(
            tuned.winner, votes=source.votes or "VOTES", delta=goal.delta, extra=source.words()
        )
    return {
        "schema_version": 1,
        "releasable": source.releasable,
        "complete": tuned.complete,
        "analysis": "tight",
        "goal": {
            "target_epsilon": goal.target_epsilon,
            "answers": goal.answers,
            "objective": goal.objective.value,
            "min_agreement": goal.min_agreement,
            "release": goal.release.value,
            "delta": goal.delta,
        },
        "basis": source.basis,
        "grid": {
            "points": grid.size,
            "thresholds": list(grid.thresholds),
            "sigmas1": list(grid.sigmas1),
            "sigmas2": list(grid.sigmas2),
        },
        "floor": tuned.floor,
        "winner": winner,
        "command": command,
        "pareto": [described(one) for one in tuned.pareto],
    }


def _by_rule(
    source: _Source,
    axes: dict[str, tuple[float, ...] | None],
    kind: ReleaseKind,
    *,
    target_epsilon: float | None,
    delta: float,
) -> dict[str, Any]:
    import shlex

    from pate_cli.mechanisms import ConfidentGNMax
    from pate_cli.tuning import Setting
    from pate_cli.tuning.rule_of_thumb import rule_of_thumb

    if target_epsilon is None:
        raise UsageError("--rule-of-thumb needs --target-epsilon")
    teachers, classes, queries = source.shape
    single = {name: values[0] for name, values in axes.items() if values and len(values) == 1}
    if len(single) < sum(values is not None for values in axes.values()):
        raise UsageError("--rule-of-thumb takes one --threshold, --sigma1 and --sigma2 at most")
    # In proportion to the teachers, as pate aggregate does.
    setting = Setting(
        threshold=single.get("thresholds", 0.8 * teachers),
        sigma1=single.get("sigmas1", 0.6 * teachers),
        sigma2=single.get("sigmas2", 0.16 * teachers),
    )
    mechanism: ConfidentGNMax = setting.mechanism(
        teachers=teachers, classes=classes, teachers_per_record=source.teachers_per_record
    )
    by_thumb, public = rule_of_thumb(
        kind, mechanism=mechanism, queries=queries, target_epsilon=target_epsilon, delta=delta
    )
    words = ["pate", "aggregate", "VOTES", *source.words(), "--threshold", repr(setting.threshold)]
    words += ["--sigma1", repr(setting.sigma1), "--sigma2", repr(setting.sigma2)]
    words += ["--max-queries", str(queries), "--delta", repr(delta), "--release", kind.value]
    words += ["--order", repr(by_thumb.order), "--beta", repr(by_thumb.beta)]
    words += ["--sigma-release", repr(by_thumb.sigma)]
    return {
        "schema_version": 1,
        "releasable": True,
        "rule_of_thumb": {
            "order": by_thumb.order,
            "beta": by_thumb.beta,
            "sigma_release": by_thumb.sigma,
        },
        "public_rule": {
            "order": public.order,
            "beta": public.beta,
            "sigma_release": public.sigma,
        },
        "release": kind.value,
        "delta": delta,
        "target_epsilon": target_epsilon,
        "mechanism": mechanism.parameters(),
        "queries": queries,
        "command": shlex.join(words),
    }


def _print(result: dict[str, Any], *, as_json: bool) -> None:
    if as_json or not sys.stdout.isatty():
        sys.stdout.write(json.dumps(result, indent=2, allow_nan=False) + "\n")
        return
    from pate_cli.cli.tune_tables import print_rule, print_tuned

    (print_rule if "rule_of_thumb" in result else print_tuned)(result)
