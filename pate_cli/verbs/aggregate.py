"""The work of `aggregate`, which labels queries from votes, and of `quote`, its dry run."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pate_cli.core.errors import CeilingError, OutputError
from pate_cli.core.noise import RunKey
from pate_cli.disclosure.cost import shown
from pate_cli.disclosure.entry import Entry, RecordPlace
from pate_cli.disclosure.guarantee import Quote, quote_of, report_of
from pate_cli.disclosure.ledger import Ledger
from pate_cli.disclosure.report import RefusedError, Report
from pate_cli.disclosure.runs import Outcome
from pate_cli.disclosure.settings import Settings
from pate_cli.files.document import now
from pate_cli.labels.labels import Labels
from pate_cli.run.checkpoint import Checkpoint, begun
from pate_cli.run.fold import nothing_seen
from pate_cli.run.labelling import run
from pate_cli.run.publication import publishing
from pate_cli.verbs.promise import (
    account_of,
    budget_of,
    foreseen,
    promised,
    record_of,
    refuse_dear,
    refuse_hopeless,
    run_of,
)
from pate_cli.verbs.request import Request, requested


@dataclass(frozen=True)
class Aggregation:
    """Everything that a run produces: labels, report, and perhaps a ledger.

    Attributes:
        labels: the released labels with the public parameters of the mechanism; without rows if the
            labels went to a file. Public.
        report: everything that may be published about the labels. Public.
        ledger: the exact costs of the labels; None if the run kept no costs. SECRET.
    """

    labels: Labels
    report: Report
    ledger: Ledger | None

    def _repr_html_(self) -> str:
        # Readers of a notebook need the three parts, not the fields of a dataclass.
        kept = [part for part in (self.labels, self.report, self.ledger) if part is not None]
        return "".join(part._repr_html_() for part in kept)


def labelled(asked: Mapping[str, Any]) -> Aggregation:
    """Label votes: enter the run in the record, draw labels, and write labels, report and ledger.

    `asked` has the parameters of `signatures.aggregate`.
    """
    began, progress = now(), asked["progress"] or nothing_seen
    record, resumed = record_of(asked), begun(asked["checkpoint"])
    with (
        publishing(asked["into"], records=record.paths, resumed=resumed) as place,
        requested(asked) as request,
    ):
        # A run that costs too much, or would hardly pass its test, is refused by public numbers.
        keeps = {"keep_ledger": asked["keep_ledger"] or place.ledger is not None}
        request, settings = promised(request, {**asked, **keeps}, record)
        place.check(request.file)
        refuse_dear(settings, asked["max_epsilon"])
        if not resumed:
            refuse_hopeless(request, settings, asked["min_pass"])
        # Progress has a step for each row that is labelled. A test also has steps for each row that
        # is read, counted and charged before, and a checkpoint for each row that is read before.
        tested, rows = settings.tested is not None, request.rows
        parts = 4 if tested else 1 + (asked["checkpoint"] is not None)
        progress(0, parts * request.queries)
        rows.progress = progress
        key, kept = _key(asked, request, settings, record)
        settings = replace(settings, private=key.private)
        own = run_of(settings, key, began)
        entry = Entry(record, own, budget=budget_of(asked))
        if (twin := record.twin(request.file.teachers)) is not None:
            warnings.warn(twin, stacklevel=5)
        place.try_out(request.file.queries)
        if tested and kept is None:
            rows.read(request.mechanism)
        # The record gets the run before any noise is drawn; from now on its cost counts.
        entry.enter()
        with entry.standing(until_read=not tested):
            account = account_of(request, settings)
            facts, ledger = run(
                rows, request.mechanism, account, settings, key=key, into=place, checkpoint=kept
            )
            # The record gets the outcome before anybody else learns it.
            answers = None if facts.refused else facts.rounds[0].answers
            outcome = Outcome.REFUSED if facts.refused else Outcome.LABELLED
            spent = entry.settle(outcome, answers=answers)
            if spent is not None:  # The time of a resumed run is the time when it first began.
                began = next(each.time for each in spent.runs if each.id == own.id) or began
            facts = replace(facts, run=key.run_id, time=began, spent=spent, labels=place.written)
            report = report_of(facts)
            if ledger is not None:
                rounds = tuple(replace(done, ensemble=record.ensemble) for done in ledger.rounds)
                paths = tuple(str(file.path) for file in record.files)
                ledger = replace(ledger, rounds=rounds, records=paths)
            place.publish(report, ledger)
    _end(kept, report)
    return Aggregation(place.labels, report, ledger)


def _key(
    asked: Mapping[str, Any], request: Request, settings: Settings, record: RecordPlace
) -> tuple[RunKey, Checkpoint | None]:
    """Return the secret key from which all noise is drawn, and the checkpoint if there is one.

    The checkpoint of an interrupted run has the key of this run. If there is a checkpoint, all
    votes are read, to make sure that the checkpoint belongs to these votes.
    """
    seed, folder = asked["seed"], asked["checkpoint"]
    if folder is None:
        return RunKey.of(seed), None
    request.rows.read(request.mechanism)
    # A resumed run must have the record, the ensemble and the declarations with which it began.
    where = ([file.name for file in record.files], record.ensemble, record.disjoint_from)
    run = request.described(settings, seed, *where)
    kept = Checkpoint.of(folder, run, seed=seed)
    return kept.key, kept


def _end(kept: Checkpoint | None, report: Report) -> None:
    """Remove the checkpoint, if there is one, because the run has ended.

    Raises:
        RefusedError: the labels failed their release test.
        OutputError: the labels passed, but the checkpoint cannot be removed.
    """
    failed = report.target
    if failed is None or not report.refused:
        if kept is not None:
            kept.end()
        return
    refusal = RefusedError(
        f"the labels failed the release test of the target {failed.epsilon:g}, so none are "
        f"released. This cost epsilon {failed.refusal_epsilon:g} at delta {failed.delta:g}",
        report,
    )
    try:
        if kept is not None:
            kept.end()
    except OutputError as error:
        refusal.add_note(str(error))
    raise refusal


def quoted_for(asked: Mapping[str, Any]) -> Quote:
    """Return the largest possible cost of a run; `asked` has the parameters of `aggregate`."""
    budget, progress = budget_of(asked), asked["progress"] or nothing_seen
    # Only a quote with a budget or an ensemble needs the record.
    recorded = budget is not None or asked["ensemble"] is not None
    record = record_of(asked) if recorded else RecordPlace()
    with requested(asked) as request:
        request, settings = promised(request, asked, record)
        found, forecast = quote_of(settings), foreseen(request, settings)
        beware = [*found.warnings]
        try:
            refuse_dear(settings, asked["max_epsilon"])
        except CeilingError as error:
            beware.append(f"The run itself needs --max-epsilon {shown(error.epsilon)}.")
        if recorded:
            Entry(record, run_of(settings, RunKey.of(asked["seed"]), now()), budget=budget)
        progress(0, request.queries)
        for batch in request.file.batches(limit=request.queries):
            progress(len(batch.counts))
    if forecast is not None:
        chances, expected = forecast.named_chances(), forecast.at(forecast.middle)
        found = replace(found, chances=chances, expected=expected)
        if forecast.best_chance < asked["min_pass"]:
            best = f"{forecast.best_chance:.2g}"
            told = f"The run itself would not start: it would pass with probability {best} at most."
            beware.append(told)
    return replace(found, warnings=tuple(beware))
