"""The verb that says what a run would cost, before anything is drawn or spent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from pate_cli.core.clock import now
from pate_cli.core.errors import CeilingError
from pate_cli.core.noise import RunKey
from pate_cli.disclosure.entry import Entry, RecordPlace
from pate_cli.disclosure.facts import Quote, quote_of
from pate_cli.disclosure.figures import shown
from pate_cli.run.fold import nothing_seen
from pate_cli.verbs.promise import budget_of, foreseen, priced, record_of, refuse_dear, run_of
from pate_cli.verbs.request import Progress

if TYPE_CHECKING:
    pass

_NAMED: Final = "The run itself needs --max-epsilon {}."
_HOPELESS: Final = "The run itself would not start: it passes with probability {:.2g} at most."


def quoted_for(asked: Mapping[str, Any]) -> Quote:
    """Return what a run would cost at most; `asked` as `signatures.aggregate` has it."""
    progress: Progress = asked["progress"] or nothing_seen
    budget, key = budget_of(asked), RunKey.of(asked["seed"])
    # Nobody asks what is left where there is no budget.
    record = RecordPlace() if budget is None else record_of(asked["votes"], asked, seeded=False)
    with priced(asked, budget, record) as (request, settings, _):
        beware = list[str]()
        try:
            refuse_dear(settings, asked["max_epsilon"])
        except CeilingError as error:
            beware.append(_NAMED.format(shown(error.epsilon)))
        if budget is not None:
            Entry(record, run_of(settings, key, now()), budget=budget)
        progress(0, request.queries)
        for batch in request.file.batches(limit=request.queries):
            progress(len(batch.counts))
        forecast = foreseen(request, settings)
        found = quote_of(settings)
        warnings = [*found.warnings, *beware]
        if forecast is not None:
            chances, expected = forecast.named_chances(), forecast.at(forecast.middle)
            found = replace(found, chances=chances, expected=expected)
            if forecast.best_chance < asked["min_pass"]:
                warnings.append(_HOPELESS.format(forecast.best_chance))
        return replace(found, warnings=tuple(warnings))
