"""`pate tune`: which threshold, noise and release for so many labels at such an epsilon."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pate_cli.cli.options import (
    Delta,
    OutputOptions,
    Release,
    TeachersPerRecord,
    ViewOptions,
    VoteOptions,
    Without,
    in_panel,
    refuse_overwriting,
    spread,
)
from pate_cli.cli.tables import print_rule, print_tuned
from pate_cli.cli.terminal import say
from pate_cli.cli.tune_source import SafeOptions, TuneSource
from pate_cli.errors import UsageError
from pate_cli.words import (
    DELTA,
    MIN_AGREEMENT,
    SIGMA1_SHARE,
    SIGMA2_SHARE,
    THRESHOLD_SHARE,
    Objective,
    ReleaseKind,
)

if TYPE_CHECKING:
    from pate_cli.tuning import Goal

__all__ = ["tune"]

_INTERRUPTED = 130
_WARNING = (
    "NOT RELEASABLE: these settings were chosen on the votes, and a run with them on the same "
    "votes leaks what the choice says; tune on public votes, --synthetic or --data-independent"
)

_VALUES = "in votes: a,b,c or low:high:count."
_goal, _search = in_panel("Goal"), in_panel("Search")


@dataclass(frozen=True)
class GoalOptions:
    """What is to be reached."""

    target_epsilon: Annotated[
        float | None,
        _goal("--target-epsilon", help="Most expected answers at this published epsilon or less."),
    ] = None
    answers: Annotated[
        float | None,
        _goal(
            "--answers",
            help="Least epsilon for so many expected answers; with a target the best agreement.",
        ),
    ] = None
    objective: Annotated[
        Objective,
        _goal(
            "--objective",
            help="With only a target: most answers, or most answers that equal the plurality.",
        ),
    ] = Objective.ANSWERS
    min_agreement: Annotated[
        float,
        _goal("--min-agreement", help="Least expected share of answers that equal the plurality."),
    ] = MIN_AGREEMENT
    delta: Delta = DELTA
    release: Release = None

    def goal(self, kind: ReleaseKind) -> Goal:
        """The same with what is published, checked."""
        from pate_cli.tuning import Goal

        return Goal(
            delta=self.delta,
            release=kind,
            target_epsilon=self.target_epsilon,
            answers=self.answers,
            objective=self.objective,
            min_agreement=self.min_agreement,
        )


@dataclass(frozen=True)
class GridOptions:
    """The settings to try; None is a grid in proportion to the teachers."""

    threshold: Annotated[str | None, _search("--threshold", help=f"T to try, {_VALUES}")] = None
    sigma1: Annotated[
        str | None,
        _search(
            "--sigma1", "--sigma-threshold", help=f"Noise of the threshold test to try, {_VALUES}"
        ),
    ] = None
    sigma2: Annotated[
        str | None,
        _search("--sigma2", "--sigma-gnmax", help=f"Noise of the argmax to try, {_VALUES}"),
    ] = None

    def axes(self) -> dict[str, tuple[float, ...] | None]:
        """The values to try, by the name of the grid's axis."""
        from pate_cli.tuning.settings import parse_values

        return {
            "thresholds": parse_values("--threshold", self.threshold),
            "sigmas1": parse_values("--sigma1", self.sigma1),
            "sigmas2": parse_values("--sigma2", self.sigma2),
        }


@dataclass(frozen=True)
class FrontOptions(ViewOptions):
    """How what was found is shown."""

    plot: Annotated[
        Path | None,
        in_panel("Output")(
            "--plot", help="Also draw the Pareto front (.png, .svg); needs pate-cli[plot]."
        ),
    ] = None


@spread
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
    *,
    wanted: GoalOptions,
    tried: GridOptions,
    teachers_per_record: TeachersPerRecord = 1,
    reading: Annotated[VoteOptions, Without("max_answers")],
    safe: SafeOptions,
    view: FrontOptions,
    output: OutputOptions,
) -> None:
    """Find threshold, noise and release parameters for a goal. NOT releasable if VOTES are private.

    Searches Confident-GNMax settings jointly with the number of queries and the release; prints
    the winner, its `pate aggregate` line and the Pareto front of answers, agreement and epsilon.
    """
    source = TuneSource(votes, reading, safe, teachers_per_record)
    kind = safe.kind(wanted.release)
    source.check(kind)
    axes = tried.axes()
    if safe.rule_of_thumb:
        if kind is ReleaseKind.NONE or view.plot is not None:
            raise UsageError("--rule-of-thumb is about a release, and draws no plot")
        view.show(_rule_result(source, axes, kind, wanted), print_rule)
        return

    from pate_cli.plots import pareto_figure
    from pate_cli.tuning import Grid, Search

    goal = wanted.goal(kind)
    secret = not source.releasable
    with output.outputs() as out:
        if votes is not None:
            refuse_overwriting(votes, view.plot)
        view.reserve(out, mode=0o600 if secret else 0o644)
        with source.sample(output.note) as (sample, basis):
            grid = Grid.for_teachers(sample.teachers, **axes)
            search = Search(sample, grid, goal)
            complete = True
            try:
                with output.progress("tuning", search.steps) as advance:
                    tuned = search.run(advance)
            except KeyboardInterrupt:
                output.note("interrupted; pricing the best so far")
                best = search.best_so_far()
                if best is None:
                    raise
                tuned, complete = best, False
            result = tuned.to_dict(
                basis=basis,
                releasable=source.releasable,
                votes=source.votes or "VOTES",
                words=source.words(),
            )
        view.draw(out, lambda: pareto_figure(result["pareto"], result["winner"], secret=secret))
    if secret:
        say(_WARNING)
    view.show(result, print_tuned)
    if not complete:
        say("interrupted: this is the best of an incomplete search")
        raise typer.Exit(_INTERRUPTED)


def _rule_result(
    source: TuneSource,
    axes: dict[str, tuple[float, ...] | None],
    kind: ReleaseKind,
    wanted: GoalOptions,
) -> dict[str, Any]:
    """Release parameters by both rules.

    Raises:
        UsageError: no target, or several values for one parameter.
    """
    from pate_cli.tuning import Setting, rule_of_thumb

    target, delta = wanted.target_epsilon, wanted.delta
    if target is None:
        raise UsageError("--rule-of-thumb needs --target-epsilon")
    teachers, classes, queries = source.shape
    single = {name: values[0] for name, values in axes.items() if values and len(values) == 1}
    if len(single) < sum(values is not None for values in axes.values()):
        raise UsageError("--rule-of-thumb takes one --threshold, --sigma1 and --sigma2 at most")
    # In proportion to the teachers, as pate aggregate does.
    setting = Setting(
        threshold=single.get("thresholds", THRESHOLD_SHARE * teachers),
        sigma1=single.get("sigmas1", SIGMA1_SHARE * teachers),
        sigma2=single.get("sigmas2", SIGMA2_SHARE * teachers),
    )
    mechanism = setting.mechanism(
        teachers=teachers, classes=classes, teachers_per_record=source.teachers_per_record
    )
    rules = rule_of_thumb(
        kind, mechanism=mechanism, queries=queries, target_epsilon=target, delta=delta
    )
    return rules.to_dict(words=source.words())
