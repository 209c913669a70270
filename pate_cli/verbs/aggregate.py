"""The verb that gives labels, from votes to a report; and what says their price beforehand."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from pate_cli.core.errors import CeilingError, OutputError
from pate_cli.core.noise import RunKey
from pate_cli.core.stamps import now
from pate_cli.disclosure.entry import Entry, RecordPlace
from pate_cli.disclosure.facts import Quote, quote_of, report_of
from pate_cli.disclosure.figures import shown
from pate_cli.disclosure.ledger import Ledger
from pate_cli.disclosure.report import RefusedError, Report
from pate_cli.disclosure.runs import Outcome
from pate_cli.disclosure.settings import Settings
from pate_cli.labels.labels import Labels
from pate_cli.run.checkpoint import Checkpoint, begun
from pate_cli.run.fold import nothing_seen
from pate_cli.run.labelling import run
from pate_cli.run.publication import publishing
from pate_cli.verbs.promise import (
    budget_of,
    foreseen,
    priced,
    record_of,
    refuse_dear,
    refuse_hopeless,
    run_of,
)
from pate_cli.verbs.request import Progress, Request, Votes

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class Aggregation:
    """Everything a run produces.

    Attributes:
        labels: released labels with the mechanism's public parameters; none where they went to a
            file. Public.
        report: what may be published about them. Public.
        ledger: what they cost; None where nothing was kept of the votes. SECRET.
    """

    labels: Labels
    report: Report
    ledger: Ledger | None

    def _repr_html_(self) -> str:
        # A frozen dataclass says nothing in a notebook that its parts do not say better.
        kept = [part for part in (self.labels, self.report, self.ledger) if part is not None]
        return "".join(part._repr_html_() for part in kept)


def labelled(votes: Votes, asked: Mapping[str, Any]) -> Aggregation:
    """Open, price, refuse, enter, draw, settle and write.

    Args:
        votes: as `signatures.aggregate` takes them.
        asked: every parameter of it, by name.
    """
    began, seed, into = now(), asked["seed"], asked["into"]
    progress: Progress = asked["progress"] or nothing_seen
    budget, record = budget_of(asked), record_of(votes, asked, seeded=seed is not None)
    resumed = begun(asked["checkpoint"])
    with (
        publishing(into, records=record.paths, resumed=resumed) as place,
        priced(votes, asked, budget, record, place.ledger) as (request, settings, account),
    ):
        # Refuse what could not end well, as far as public numbers tell.
        place.check(request.file)
        refuse_dear(settings, asked["max_epsilon"])
        if not resumed:
            refuse_hopeless(request, settings, asked["min_pass"])
        tested, rows = settings.tested is not None, request.rows
        # Rows are read, counted and priced for a test, read for a checkpoint, and labelled.
        parts = 4 if tested else 1 + (asked["checkpoint"] is not None)
        progress(0, parts * request.queries)
        rows.progress = progress
        key, kept = _key(asked, request, settings, record)
        settings = replace(settings, private=key.private)
        own = run_of(settings, key, began)
        entry = Entry(record, own, budget=budget)
        twin = record.twin(request.mechanism.teachers)
        if twin is not None:
            warnings.warn(twin, stacklevel=5)
        place.try_out(request.file.queries)
        if tested and kept is None:
            rows.read(request.mechanism)
        # Enter it, before any noise is drawn: from now on it is paid for.
        entry.enter()
        with entry.standing(until_read=not tested):
            facts, ledger = run(
                rows, request.mechanism, account, settings, key=key, into=place, checkpoint=kept
            )
            # Settle, before anybody is told how it ended; then write.
            answers = None if facts.refused else facts.rounds[0].answers
            outcome = Outcome.REFUSED if facts.refused else Outcome.LABELLED
            spent = entry.settle(outcome, answers=answers)
            if spent is not None:  # a resumed run is of the time at which it was entered
                began = next(each.time for each in spent.runs if each.id == own.id) or began
            facts = replace(facts, run=key.run_id, time=began, spent=spent, labels=place.written)
            report = report_of(facts)
            if ledger is not None:
                ledger = replace(ledger, records=tuple(str(file.path) for file in record.files))
            place.publish(report, ledger)
    _end(kept, report)
    return Aggregation(place.labels, report, ledger)


def _key(
    asked: Mapping[str, Any], request: Request, settings: Settings, record: RecordPlace
) -> tuple[RunKey, Checkpoint | None]:
    """Return the key of all noise: that of a run that was cut short, if there is one.

    A checkpoint belongs to these votes, which are read for it.
    """
    seed, folder = asked["seed"], asked["checkpoint"]
    if folder is None:
        return RunKey.of(seed), None
    request.rows.read(request.mechanism)
    run = request.described(settings, seed, [file.name for file in record.files])
    kept = Checkpoint.of(folder, run, seed=seed)
    return kept.key, kept


def _end(kept: Checkpoint | None, report: Report) -> None:
    """End the checkpoint, and tell of labels that failed their test; RefusedError for those."""
    failed, refusal = report.target, None
    if failed is not None and report.refused:
        refusal = RefusedError(
            f"the labels did not pass the test of the target {failed.epsilon:g}; none are "
            f"released. This cost {failed.refusal_epsilon:g} at delta {failed.delta:g}",
            report,
        )
    try:
        if kept is not None:
            kept.end()
    except OutputError as error:
        if refusal is None:
            raise
        refusal.add_note(str(error))
    if refusal is not None:
        raise refusal


_NAMED: Final = "The run itself needs --max-epsilon {}."
_HOPELESS: Final = "The run itself would not start: it passes with probability {:.2g} at most."


def quoted_for(votes: Votes, asked: Mapping[str, Any]) -> Quote:
    """Return what a run would cost at most; `asked` as `signatures.aggregate` has it."""
    progress: Progress = asked["progress"] or nothing_seen
    budget, key = budget_of(asked), RunKey.of(asked["seed"])
    # Nobody asks what is left where there is no budget.
    record = RecordPlace() if budget is None else record_of(votes, asked, seeded=False)
    with priced(votes, asked, budget, record) as (request, settings, _):
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
