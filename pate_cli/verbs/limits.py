"""Limits of a run or a session: what it may cost, and how likely it must be to give labels.

They look at public numbers alone and refuse before anything is drawn or spent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pate_cli.core.errors import CeilingError, UnreachableError
from pate_cli.core.words import CEILING
from pate_cli.disclosure.cost import Cost
from pate_cli.disclosure.figures import shown
from pate_cli.disclosure.settings import Settings
from pate_cli.verbs.request import Request

if TYPE_CHECKING:
    from pate_cli.planning.forecast import Forecast

_ROUGH_BY: Final = 0.06
"""How far a rough pass probability may be off."""


def refuse_dear(settings: Settings, most: float | None) -> None:
    """Refuse what could cost more than `max_epsilon`, which is `CEILING` if left out.

    Seeded tests, and runs that publish a sanitized ε beside their worst case, have no such default.

    Args:
        settings: what a run or a session is told.
        most: `max_epsilon`, nats; None where it is left out.

    Raises:
        UnreachableError: it could cost more than `max_epsilon`.
        CeilingError: it promises practically nothing, and nobody asked for it so.
    """
    epsilon, plan = Cost.of(settings).own.epsilon, settings.sanitizer
    named = shown(epsilon)
    costs = f"this would cost epsilon {named} at delta {settings.delta:g}, whatever the votes"
    cheaper = (
        "nothing was drawn or spent. Lower `max_queries`, take more noise, or state a smaller "
        "`target_epsilon`"
    )
    if most is not None and epsilon > most:
        raise UnreachableError(f"{costs}, above `max_epsilon` {most:g}; {cheaper}")
    exempt = not settings.private or (plan is not None and plan.publishes_draw)
    if most is None and not exempt and epsilon > CEILING:
        raise CeilingError(
            f"{costs}, and above {CEILING:g} practically nothing is promised; {cheaper}. "
            f"To have it all the same, ask for it by name: `max_epsilon` {named}",
            epsilon=float(named),
        )


def foreseen(request: Request, settings: Settings, *, rough: bool = False) -> Forecast | None:
    """Return what made-up teachers would give in a run with a release test; None without a test.

    It looks at public numbers alone; `rough` is quicker, and off by up to 0.06.
    """
    if settings.tested is None:
        return None
    from pate_cli.planning.forecast import public_forecast

    shape = {"rows": settings.queries, "max_answers": settings.max_answers}
    return public_forecast(request.scored, settings.tested, **shape, rough=rough)


def refuse_hopeless(request: Request, settings: Settings, least: float) -> None:
    """Refuse a run that would hardly pass its release test, however well the teachers agree.

    Args:
        request: what is asked.
        settings: what the run is told.
        least: the pass probability below which a run is not started, at the most favourable level
            of agreement; 0 starts every run.

    Raises:
        UnreachableError: the probability is smaller; it says what would pass.
    """
    target = settings.tested
    if target is None or least == 0.0:
        return
    from pate_cli.planning.forecast import what_would_pass

    best = 0.0
    for rough in (True, False):
        found = foreseen(request, settings, rough=rough)
        best = 0.0 if found is None else found.best_chance
        if best >= least + (_ROUGH_BY if rough else 0.0):
            return
    fewer, larger = what_would_pass(request.scored, target, rows=settings.queries, least=least)
    advice = f"Take more noise, or a `target_epsilon` of about {larger:.2g}"
    if fewer:
        advice = f"Ask at most `max_queries` {fewer}"
    raise UnreachableError(
        f"this run would pass its release test with probability {best:.2g} at most, below "
        f"`min_pass` {least:g}; nothing was drawn or spent. {advice}; `min_pass` 0 starts it all "
        "the same"
    )
