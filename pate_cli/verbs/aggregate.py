"""The verb that gives labels: the story of a run, from votes to a report."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pate_cli.core.clock import now
from pate_cli.core.errors import OutputError
from pate_cli.core.noise import RunKey
from pate_cli.disclosure.entry import Entry
from pate_cli.disclosure.facts import report_of
from pate_cli.disclosure.ledger import Ledger
from pate_cli.disclosure.record_place import RecordPlace
from pate_cli.disclosure.report import RefusedError, Report
from pate_cli.disclosure.settings import Settings
from pate_cli.disclosure.target import TargetPlan
from pate_cli.labels.labels import Labels
from pate_cli.mechanisms.base import Mechanism
from pate_cli.run.accounts import refused, release_test
from pate_cli.run.checkpoint import Checkpoint, reached
from pate_cli.run.fold import nothing_seen
from pate_cli.run.labelling import run
from pate_cli.run.publication import publishing, refuse_ledger
from pate_cli.verbs.promise import (
    account_of,
    budget_of,
    record_of,
    refuse_hopeless,
    refuse_unnamed,
    run_of,
    settled,
    target_of,
)
from pate_cli.verbs.request import Progress, Request, requested
from pate_cli.votes.vote_file import VoteBatch


@dataclass(frozen=True)
class Aggregation:
    """Everything a run produces.

    Attributes:
        labels: released labels with the mechanism's public parameters; none where they went to a
            file. Public.
        report: what may be published about them. Public.
        ledger: what they cost; None where nothing was kept of the votes. SECRET.
        checkpoint: what the run would have gone on from, for whoever puts labels and report in
            place to `end`; None where the run has done so. SECRET.
    """

    labels: Labels
    report: Report
    ledger: Ledger | None
    checkpoint: Checkpoint | None = None

    def _repr_html_(self) -> str:
        # A frozen dataclass says nothing in a notebook that its parts do not say better.
        kept = [part for part in (self.labels, self.report, self.ledger) if part is not None]
        return "".join(part._repr_html_() for part in kept)


def labelled(asked: dict[str, Any]) -> Aggregation:
    """Open, price, refuse, enter, draw, settle and write.

    Args:
        asked: every parameter of `signatures.aggregate`, by name.
    """
    votes, mechanism, into = asked["votes"], asked["mechanism"], asked["into"]
    progress: Progress = asked["progress"] or nothing_seen
    began, seeded = now(), asked["seed"] is not None
    budget, record = budget_of(asked), record_of(votes, asked, seeded=seeded)
    if getattr(into, "ledger", None):
        asked["keep_ledger"] = True
    target = target_of(mechanism, asked, budget, record)
    resumed = reached(asked["checkpoint"]) is not None
    with (
        publishing(into, records=record.paths, resumed=resumed) as place,
        requested(votes, mechanism, asked) as request,
    ):
        # Price it, and refuse what could not end well, as far as public numbers tell.
        place.check(request.file)
        if place.ledger:
            refuse_ledger(composed=request.composed, tested=target is not None)
        request, settings = settled(request, asked, target)
        account, tested = account_of(request, settings), settings.tested is not None
        if not seeded:
            refuse_unnamed(settings, asked["max_epsilon"])
        if not resumed:
            refuse_hopeless(request, settings, asked["min_pass"])
        if target is not None:
            # Rows are read, counted and priced for the test, and labelled.
            progress(0, (4 if tested else 1) * request.queries)
        key, kept = _key(asked, request, settings, record, progress if tested else nothing_seen)
        settings = replace(settings, private=key.private)
        # What a record would tell of a run takes time, and nobody asks without one.
        planned = run_of(settings, key, began) if record.file else None
        entry = Entry(record, planned, budget=budget)
        if not isinstance(asked["record"], RecordPlace):  # the command line has told it
            twin = record.twin(request.mechanism.teachers, flag="`ensemble`")
            if twin is not None:
                warnings.warn(twin, stacklevel=4)
        place.try_out(request.file.queries)
        if tested and kept is None:
            _read(request, progress)
        # Enter it, before any noise is drawn: from now on it is paid for.
        entry.enter()
        with entry.standing(until_read=not tested):
            # Test and draw.
            if tested and not release_test(request.rows, request.scored, settings, key, progress):
                done = refused(settings)
            else:
                done = run(
                    request.rows,
                    request.mechanism,
                    account,
                    settings,
                    key=key,
                    into=place,
                    checkpoint=kept,
                    progress=progress,
                    facts=request.file.facts,
                )
            # Settle, before anybody is told how it ended; then write.
            spent = entry.settle(done.outcome, answers=done.answers)
            facts = replace(done.facts, run=key.run_id, time=began, spent=spent)
            report, ledger = report_of(replace(facts, labels=place.written)), done.ledger
            if ledger is not None:
                ledger = replace(ledger, records=tuple(str(file.path) for file in record.files))
            place.publish(report, ledger)
        if done.failed is not None:
            raise _refusal(done.failed, report, kept)
        if kept is not None and into is not None:
            kept.end()
            kept = None
    return Aggregation(place.labels, report, ledger, kept)


def _key(
    asked: Mapping[str, Any],
    request: Request,
    settings: Settings,
    record: RecordPlace,
    progress: Progress,
) -> tuple[RunKey, Checkpoint | None]:
    """Return the key of all noise: that of a run that was cut short, if there is one.

    A checkpoint belongs to these votes, which are read for it.
    """
    seed, folder = asked["seed"], asked["checkpoint"]
    if folder is None:
        return RunKey.fresh() if seed is None else RunKey.from_seed(seed), None
    _read(request, progress)
    records: Sequence[str] = [file.name for file in record.files]
    resumed = Checkpoint.of(folder, request.described(settings, seed, records), seed=seed)
    return resumed.key, resumed


def _read(request: Request, progress: Progress) -> None:
    """Read all rows before the run is entered, and make nothing of them.

    Whether a file holds votes is told for nothing, and nothing that follows fails by what they are.
    Whoever changes them before they are labelled is found out.
    """
    for _ in request.rows.read(request.mechanism, _nothing, progress=progress):
        pass


def _nothing(_mechanism: Mechanism, _batch: VoteBatch) -> None:
    """Make nothing of a batch."""


def _refusal(failed: TargetPlan, report: Report, kept: Checkpoint | None) -> RefusedError:
    """Return what is raised of labels that did not pass, and end their checkpoint."""
    refusal = RefusedError(
        f"the labels did not pass the test of the target {failed.epsilon:g}; none are released. "
        f"This cost {failed.refusal_epsilon:g} at delta {failed.delta:g}",
        report,
    )
    try:
        if kept is not None:
            kept.end()
    except OutputError as error:  # what the test cost is said and published all the same
        refusal.add_note(str(error))
    return refusal
