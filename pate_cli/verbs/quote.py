"""The verb that says what a run would cost, before anything is drawn or spent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from pate_cli.core.clock import now
from pate_cli.core.noise import RunKey
from pate_cli.disclosure import door
from pate_cli.disclosure.cautions import cautions, vacuous_warnings
from pate_cli.disclosure.entry import Entry
from pate_cli.disclosure.guarantee import GAPS, public_prior
from pate_cli.disclosure.record_place import RecordPlace
from pate_cli.disclosure.report import Outlook, Quote
from pate_cli.disclosure.settings import Settings
from pate_cli.run.fold import nothing_seen
from pate_cli.verbs.promise import (
    account_of,
    budget_of,
    foreseen,
    record_of,
    run_of,
    settled,
    target_of,
    unnamed,
)
from pate_cli.verbs.request import Progress, Request, requested

if TYPE_CHECKING:
    from pate_cli.planning.forecast import Forecast

_NAMED: Final = "The run itself, unless it is a seeded test, needs --max-epsilon {}."


def quoted_for(asked: Mapping[str, Any]) -> Quote:
    """Return what a run would cost at most; `asked` as `signatures.aggregate` has it."""
    votes, mechanism = asked["votes"], asked["mechanism"]
    progress: Progress = asked["progress"] or nothing_seen
    budget = budget_of(asked)
    # Nobody asks what is left where there is no budget.
    record = RecordPlace() if budget is None else record_of(votes, asked, seeded=False)
    target = target_of(mechanism, asked, budget, record)
    with requested(votes, mechanism, asked) as request:
        request, settings = settled(request, asked, target)
        account_of(request, settings)  # refuses what the analysis does not cover
        if budget is not None:
            Entry(record, run_of(settings, RunKey.fresh(), now()), budget=budget)
        for batch in request.file.batches(limit=request.queries):
            progress(len(batch.counts))
        found = door.quote(settings)
        forecast = None if settings.tested is None else foreseen(request, settings.tested)
        gaps = tuple(GAPS[fact] for fact in settings.read_off)
        named = unnamed(settings, asked["max_epsilon"])
        return replace(
            found,
            sound=not gaps,
            warnings=(
                *gaps,
                *cautions(request.mechanism, delta=request.delta),
                *vacuous_warnings(found.epsilon, composed=request.composed is not None),
                *([] if named is None else [_NAMED.format(named)]),
                *_hopeless(forecast, asked["min_pass"]),
            ),
            prior=public_prior([settings]),
            target=_outlook(request, settings, forecast),
        )


def _hopeless(forecast: Forecast | None, least: float) -> tuple[str, ...]:
    """Return a warning that the run would not be started; none where it would."""
    if forecast is None or forecast.best_chance >= least:
        return ()
    best = forecast.best_chance
    return (f"The run itself would not start: it passes with probability {best:.2g} at most.",)


def _outlook(request: Request, settings: Settings, forecast: Forecast | None) -> Outlook | None:
    """Return what may be expected of a run with a target, before anything is spent."""
    target = settings.target
    if target is None:
        return None
    return Outlook(
        target=target.epsilon,
        delta=target.delta,
        refusal_epsilon=target.refusal_epsilon,
        orders=target.test_orders(request.scored),
        distances=target.distances,
        needed=target.tested,
        chances=None if forecast is None else forecast.named_chances(),
    )
