"""`pate plan`: before the first vote, which settings and how many answers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from pate_cli.cli.help import GOAL, PICTURES, PRIOR, SHARED
from pate_cli.cli.options import (
    Delta,
    OutputOptions,
    TeachersPerRecord,
    ViewOptions,
    in_panel,
    spread,
)
from pate_cli.cli.tables import print_plan
from pate_cli.core.words import DELTA, MechanismName

_goal, _prior = in_panel(GOAL), in_panel(PRIOR)


@dataclass(frozen=True)
class PlannedRunOptions:
    """What is known, and what is asked."""

    teachers: Annotated[
        int | None, _goal("--teachers", help="How many teachers; found if left out.")
    ] = None
    target_epsilon: Annotated[
        float | None,
        _goal("--target-epsilon", help="Epsilon, stated in advance; found if left out."),
    ] = None
    answers: Annotated[
        int | None, _goal("--answers", help="How many answers are wanted; found if left out.")
    ] = None
    queries: Annotated[
        int | None, _goal("--queries", help="How many queries there are. Default: plenty.")
    ] = None
    delta: Delta = DELTA
    classes: Annotated[int | None, typer.Option("--classes", help="How many classes.")] = None
    labels: Annotated[
        int | None,
        typer.Option(
            "--labels", help="Instead: how many labels a query has, each of them yes or no."
        ),
    ] = None
    agreement: Annotated[
        str | None,
        typer.Option(
            "--agreement",
            metavar="LOW:HIGH",
            help="How often a teacher is right on average: a share or a range. Default: 0.5:0.95, "
            "of two classes 0.65:0.95.",
        ),
    ] = None
    mechanism: Annotated[
        MechanismName,
        typer.Option("--mechanism", "-m", help="confident, or gnmax: every query is answered."),
    ] = MechanismName.CONFIDENT


@dataclass(frozen=True)
class PlannedPriorOptions:
    """A public guess for every query."""

    prior_accuracy: Annotated[
        float | None,
        _prior("--prior-accuracy", help="How often a public guess is right, if there are any."),
    ] = None
    prior_weight: Annotated[
        str | None,
        _prior("--prior-weight", help="Its votes, or as in 20% of the teachers. Default: 20%."),
    ] = None


@dataclass(frozen=True)
class PlanViewOptions(ViewOptions):
    """How the plan is shown."""

    plot: Annotated[
        Path | None,
        in_panel(PICTURES)(
            "--plot",
            help="Also draw answers against epsilon, and epsilon against teachers, with bands "
            "over agreement (.pdf, .png, .svg); needs pate-cli[plot].",
        ),
    ] = None


@spread
def plan(
    *,
    asked: PlannedRunOptions,
    teachers_per_record: TeachersPerRecord = 1,
    groups: Annotated[
        Path | None,
        in_panel(SHARED)(
            "--groups",
            help="Public groups of the teachers, with weights; instead of a number.",
        ),
    ] = None,
    prior: PlannedPriorOptions,
    view: PlanViewOptions,
    output: OutputOptions,
) -> None:
    """Before the first vote: settings, answers and chances; public, for no votes are looked at.

    Of --teachers, --target-epsilon and --answers leave one out: it is found. The answers are those
    of made-up teachers who are right as often as --agreement says, and the chance of passing is
    told for the worst of them as well.

    \b
    How many teachers for 60 answers?
      pate plan --classes 3 --queries 100 --answers 60 --target-epsilon 2
    How many answers will 50 teachers give?
      pate plan --teachers 50 --classes 3 --queries 40 --target-epsilon 2
    """
    import pate_cli as pate
    from pate_cli.planning.plan import POINTS, points

    with output.outputs() as out:
        view.reserve(out, mode=0o644)
        planned = pate.plan(
            classes=asked.classes,
            labels=asked.labels,
            teachers=asked.teachers,
            target_epsilon=asked.target_epsilon,
            answers=asked.answers,
            queries=asked.queries,
            delta=asked.delta,
            agreement=asked.agreement,
            groups=groups,
            teachers_per_record=teachers_per_record,
            prior_accuracy=prior.prior_accuracy,
            prior_weight=prior.prior_weight,
            mechanism=asked.mechanism,
        )
        if view.plot is not None:
            from pate_cli.planning.pictures import draw_plan

            with output.progress("drawing", POINTS) as progress:
                around = points(planned, lambda done: progress(done, POINTS))
            axes = draw_plan(
                around,
                levels=[row["agreement"] for row in planned.by_agreement],
                teachers=planned.known.teachers or 1,
                epsilon=planned.known.epsilon or 1.0,
                answers=planned.answers,
                delta=planned.known.delta,
            )
            view.draw(out, lambda: axes)
    view.show(planned.to_dict(), print_plan)
