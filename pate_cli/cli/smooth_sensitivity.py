"""`pate smooth-sensitivity`: how far one teacher could move the cost, smoothed over distances."""

from __future__ import annotations

from typing import Annotated

from pate_cli.cli.options import (
    AccountOptions,
    EngineOptions,
    OutputOptions,
    PriorOptions,
    ReleaseOptions,
    RenyiOptions,
    ViewOptions,
    VoteOptions,
    Votes,
    Without,
    spread,
)
from pate_cli.cli.tables import print_smooth


@spread
def smooth_sensitivity(
    votes: Votes,
    described: RenyiOptions,
    prior: PriorOptions,
    reading: Annotated[VoteOptions, Without("max_answers")],
    account: AccountOptions,
    release: Annotated[ReleaseOptions, Without("release", "sigma_release")],
    view: ViewOptions,
    engine: Annotated[EngineOptions, Without("checkpoint")],
    output: OutputOptions,
) -> None:
    """Smooth sensitivity of the cost, by distance, and the most the cost could be within it.

    NOT releasable: it describes the votes.

    paper also says whether the published conditions C5 and C6 hold; exit code 4 when they fail.
    """
    import pate_cli as pate
    from pate_cli.planning.pictures import draw_sensitivity

    choice = described.choice()
    with output.outputs() as out, reading.open(votes, output, any_name=not choice.listed) as file:
        view.reserve(out)
        output.note_votes(file, reading.rows(file))
        found = pate.smooth_sensitivity(
            file,
            choice,
            order=release.order,
            beta=release.beta,
            max_queries=reading.max_queries,
            **account.keywords,
            **engine.keywords,
            **prior.keywords,
        )
        view.draw(out, lambda: draw_sensitivity(found))
    view.show(found.to_dict(), print_smooth)
