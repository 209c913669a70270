"""Limits of a run or a session: what it may cost, and how likely it must be to give labels.

They look at public numbers alone and refuse before anything is drawn or spent.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pate_cli.core.checks import check_positive
from pate_cli.core.errors import CeilingError, UnreachableError
from pate_cli.core.words import CEILING
from pate_cli.disclosure.cost import Cost
from pate_cli.disclosure.figures import shown
from pate_cli.disclosure.settings import Settings
from pate_cli.verbs.request import Request

if TYPE_CHECKING:
    from pate_cli.planning.forecast import Forecast

_ROUGH_BY: Final = 0.15
"""How far a rough pass probability may be off."""
_NOTHING: Final = "nothing was drawn or spent"


def promised(settings: Settings) -> float:
    """Return ε that a run promises: its worst case, or its target if that is less."""
    worst = Cost.of(replace(settings, target=None)).own.epsilon
    return worst if settings.target is None else min(worst, settings.target.epsilon)


def unnamed(settings: Settings, most: float | None) -> str | None:
    """Return ε where a run promises practically nothing and nobody asked for it so; else None.

    A run that publishes a sanitized ε does not promise its worst case alone.
    """
    drawn = settings.sanitizer is not None and settings.sanitizer.publishes_draw
    if most is not None or drawn or (epsilon := promised(settings)) <= CEILING:
        return None
    return shown(epsilon)


def refuse_dear(settings: Settings, most: float | None, *, ceiling: bool) -> None:
    """Refuse a run that could cost more than `max_epsilon`, which is `CEILING` if left out.

    Args:
        settings: what the run is told.
        most: `max_epsilon`.
        ceiling: whether to refuse what promises practically nothing and was not asked for so.

    Raises:
        UnreachableError, CeilingError: as `refuse_cost`.
    """
    cheaper = "Lower `max_queries` or `max_answers`, take more noise, or state `target_epsilon`"
    if settings.target is not None:
        cheaper = "State a smaller `target_epsilon`"
    if most is not None or (ceiling and unnamed(settings, most) is not None):
        refuse_cost("this run", promised(settings), settings.delta, most, cheaper)


def refuse_cost(what: str, epsilon: float, delta: float, most: float | None, cheaper: str) -> None:
    """Refuse what costs more than it may.

    Args:
        what: the run or session, in words.
        epsilon, delta: of all that it says, whatever the votes, nats.
        most: `max_epsilon`; None is `CEILING`.
        cheaper: advice to pay less.

    Raises:
        UnreachableError: it costs more than `max_epsilon`.
        CeilingError: it promises practically nothing, and nobody asked for it so.
    """
    named = shown(epsilon)
    costs = f"{what} would cost epsilon {named} at delta {delta:g}, whatever the votes"
    if most is not None and epsilon > check_positive("`max_epsilon`", most):
        raise UnreachableError(f"{costs}, above `max_epsilon` {most:g}; {_NOTHING}. {cheaper}")
    if most is None and epsilon > CEILING:
        raise CeilingError(
            f"{costs}, and above {CEILING:g} practically nothing is promised; {_NOTHING}. "
            f"{cheaper}. To have it all the same, ask for it by name: `max_epsilon` {named}",
            epsilon=float(named),
        )


def foreseen(request: Request, settings: Settings, *, rough: bool = False) -> Forecast | None:
    """Return what made-up teachers would give in a run with a release test; None without a test.

    It looks at public numbers alone; `rough` is quicker, and off by up to 0.15.
    """
    target = settings.tested
    if target is None:
        return None
    from pate_cli.planning.forecast import public_forecast

    return public_forecast(
        request.scored,
        target,
        rows=settings.queries,
        max_answers=settings.max_answers,
        rough=rough,
    )


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
    rough = foreseen(request, settings, rough=True)
    if rough is not None and rough.best_chance >= least + _ROUGH_BY:
        return
    found = foreseen(request, settings)
    if found is None or found.best_chance >= least:
        return
    from pate_cli.planning.forecast import what_would_pass

    fewer, larger = what_would_pass(request.scored, target, rows=settings.queries, least=least)
    advice = f"Take more noise, or a `target_epsilon` of about {larger:.2g}"
    if fewer:
        advice = f"Ask at most `max_queries` {fewer}"
    raise UnreachableError(
        f"this run would pass its release test with probability {found.best_chance:.2g} at most, "
        f"below `min_pass` {least:g}; {_NOTHING}. {advice}; `min_pass` 0 starts it all the same"
    )
