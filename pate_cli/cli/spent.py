"""`pate spent`: all runs of a record, and what they cost together."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pate_cli.cli.help import PICTURES
from pate_cli.cli.options import OutputOptions, ViewOptions, Without, in_panel, spread
from pate_cli.cli.tables import print_bill
from pate_cli.core.errors import MismatchError
from pate_cli.core.words import BUDGET_DELTA
from pate_cli.files.existing import PICTURE


@spread
def spent(
    record: Annotated[
        str | None,
        typer.Argument(
            metavar="[RECORD]",
            help="A record, or votes that have one beside them.",
            show_default=False,
        ),
    ] = None,
    ensemble: Annotated[
        str | None,
        typer.Option("--ensemble", metavar="NAME", help="The record under this name, instead."),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(
            "--budget", help="Epsilon of which to tell what is left. Default: the last run's."
        ),
    ] = None,
    budget_delta: Annotated[
        float | None,
        typer.Option("--budget-delta", help=f"Its delta. Default: {BUDGET_DELTA:g}."),
    ] = None,
    budget_order: Annotated[
        float | None,
        typer.Option("--budget-order", help="Its Renyi order, if it has one."),
    ] = None,
    verify: Annotated[
        list[str] | None,
        typer.Option(
            "--verify",
            metavar="REPORT",
            help="Hold a report against the record (exit 10 if it is charged otherwise, or not at "
            "all). May be given several times.",
            show_default=False,
        ),
    ] = None,
    picture: Annotated[
        Path | None,
        in_panel(PICTURES)(
            "--plot", help="Draw the total over time (.pdf, .png, .svg). Needs pate-cli[plot]."
        ),
    ] = None,
    *,
    view: Annotated[ViewOptions, Without("plot")],
    output: OutputOptions,
) -> None:
    """All runs on votes of the same teachers: what was published, and what it cost together.

    A record holds nothing of the votes, only settings, outcomes and what runs cost whatever the
    votes: it may be shown to anybody who may know when they were made, and what files were called.
    """
    import pate_cli as pate

    with output.outputs() as out:
        if picture is not None:
            from pate_cli.planning.pictures import check_plot

            check_plot(picture)
            out.reserve(picture, replaces=PICTURE)
        found = pate.spent(
            record,
            ensemble=ensemble,
            budget=budget,
            budget_delta=budget_delta,
            budget_order=budget_order,
            reports=verify,
        )
        if picture is not None:
            from pate_cli.planning.pictures import draw_spent, encode_picture

            limit = None if found.budget is None else found.budget.epsilon
            axes = draw_spent(list(found.rows()), budget=limit)
            out.write(picture, encode_picture(axes, picture))
    view.show(found.to_dict(), lambda _: print_bill(found))
    if not found.holds:
        wrong = [check for check in found.reports or () if check.outcome != "ok"]
        raise MismatchError(f"{wrong[0].name}: {wrong[0].detail}")
