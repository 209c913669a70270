"""Pictures that commands draw beside their results."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pate_cli.files.existing import PICTURE

if TYPE_CHECKING:
    from pate_cli.cli.view import View
    from pate_cli.files.outputs import Outputs
    from pate_cli.planning.cost import VoteCost
    from pate_cli.planning.plan import Plan
    from pate_cli.planning.sensitivity import Sensitivity
    from pate_cli.verbs.spent import RecordCost


def promised(out: Outputs, plot: str | None, *, mode: int = 0o600) -> None:
    """Promise a picture, where one is wanted; one that shows votes is its owner's alone."""
    if plot is not None:
        from pate_cli.planning.pictures import check_plot

        check_plot(plot)
        out.reserve(plot, mode=mode, replaces=PICTURE)


def drawn(out: Outputs, plot: str | None, picture: Callable[[], Any]) -> None:
    """Write a picture, where one is wanted; only then is it drawn."""
    if plot is not None:
        from pate_cli.planning.pictures import encode_picture

        out.write(plot, encode_picture(picture(), plot))


def of_spent(found: RecordCost) -> Any:
    """Return the picture of what all runs cost together, run by run. Public."""
    from pate_cli.planning.pictures import draw_spent

    budget = None if found.budget is None else found.budget.epsilon
    return draw_spent(list(found.rows()), budget=budget)


def of_plan(found: Plan, view: View) -> Any:
    """Return the picture of answers against epsilon, and of epsilon against teachers. Public."""
    from pate_cli.planning.pictures import draw_plan
    from pate_cli.planning.plan import POINTS, points

    with view.progress("drawing", POINTS) as progress:
        around = points(found, lambda done: progress(done, POINTS))
    return draw_plan(
        around,
        levels=[row["agreement"] for row in found.by_agreement],
        teachers=found.known.teachers or 1,
        epsilon=found.known.epsilon or 1.0,
        answers=found.answers,
        delta=found.known.delta,
    )


def of_cost(found: VoteCost) -> Any:
    """Return the picture of queries by plurality. SECRET."""
    from pate_cli.planning.pictures import draw_cost

    return draw_cost(found)


def of_sensitivity(found: Sensitivity) -> Any:
    """Return the picture of the sensitivity by distance. SECRET."""
    from pate_cli.planning.pictures import draw_sensitivity

    return draw_sensitivity(found)
