"""The verbs that spend privacy, or say what they would spend: aggregate, quote, release."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from decimal import ROUND_FLOOR, Decimal
from typing import TYPE_CHECKING, Unpack

from pate_cli.core.checks import check_positive
from pate_cli.core.clock import now
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import (
    CeilingError,
    OutputError,
    ParameterError,
    UnreachableError,
    UsageError,
)
from pate_cli.core.noise import RunKey
from pate_cli.core.words import CEILING, Analysis, Bound, MechanismName, ReleaseKind
from pate_cli.disclosure import door
from pate_cli.disclosure.budget import Budget
from pate_cli.disclosure.cautions import cautions, vacuous_warnings
from pate_cli.disclosure.cost import Cost
from pate_cli.disclosure.entry import Entry
from pate_cli.disclosure.facts import report_of
from pate_cli.disclosure.figures import shown
from pate_cli.disclosure.guarantee import public_prior, read_off_warning
from pate_cli.disclosure.ledger import Ledger, Round
from pate_cli.disclosure.record import Run
from pate_cli.disclosure.record_place import RecordPlace
from pate_cli.disclosure.report import Outlook, Quote, RefusedError, Report
from pate_cli.disclosure.settings import Settings
from pate_cli.disclosure.target import TargetPlan
from pate_cli.disclosure.total import left_of
from pate_cli.labels.labels import Labels
from pate_cli.mechanisms import RULED, MechanismChoice
from pate_cli.mechanisms.base import Mechanism, ScoredMechanism
from pate_cli.run.accounts import LedgerAccount, Settlement, refused, release_test
from pate_cli.run.checkpoint import Checkpoint, reached
from pate_cli.run.fold import nothing_seen
from pate_cli.run.labelling import run
from pate_cli.run.publication import Into, Publication, publishing, refuse_ledger
from pate_cli.verbs.keywords import (
    AggregateWords,
    CapWords,
    ParameterWords,
    PromiseWords,
    QuoteWords,
    ReleasedWords,
    RowWords,
    budget_of,
    only,
    takes_keywords,
)
from pate_cli.verbs.request import Progress, Request, Votes, requested
from pate_cli.votes.vote_file import VoteBatch

if TYPE_CHECKING:
    from pate_cli.planning.forecast import Forecast


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


@takes_keywords
def aggregate(
    votes: Votes,
    mechanism: Mechanism | MechanismChoice | str = MechanismName.CONFIDENT,
    *,
    into: Into = None,
    progress: Progress = nothing_seen,
    **asked: Unpack[AggregateWords],
) -> Aggregation:
    """Label queries by the teachers' noisy vote; labels, a public report, perhaps a secret ledger.

    The one verb that gives labels. `quote` says first what they may cost at most.

        >>> done = pate.aggregate("sample_votes/demo.parquet", max_queries=300, seed=1)
        >>> done.labels
        <Labels: 163 of 300 queries labelled, 700 not asked>
        >>> done.report
        <Report: epsilon 1.3788 at delta 1e-05, 163 of 300 queries answered>
        >>> done = pate.aggregate("sample_votes/demo.parquet", max_queries=300, into="found.csv")

    Args:
        votes: the teachers' votes: a path or an address, an array, a table, or what `open_votes`
            yields.
        mechanism: the aggregator, or its name.
        into: where labels and report go as one: a path or a Destination; None keeps them in memory.
        progress: called with the number of rows of each finished part; for a target, whose test
            reads the rows before they are labelled, first as `progress(0, all)` and then with the
            share of `all` that is done.

    Raises:
        RefusedError: the coin came out against the labels; it carries the public report.
        UnreachableError: what all runs of the record cost together would exceed the `budget`, or
            this one `max_epsilon`; or it would hardly pass its release test (`min_pass`).
        PateError: votes that cannot be read, numbers out of range, and whatever else is refused.
    """
    began = now()  # before anything is spent, should it be refused
    promise = only(PromiseWords, asked)
    record = _record_of(votes, asked, seeded=asked["seed"] is not None)
    budget = budget_of(promise)
    if asked["checkpoint"] is None and not getattr(into, "ledger", None):
        promise["target_epsilon"] = _left(promise, mechanism, asked, record, budget)
    target = _target_of(promise, delta=asked["delta"])
    goes_on = reached(asked["checkpoint"]) is not None
    with (
        publishing(into, records=record.paths, resumed=goes_on) as place,
        requested(votes, mechanism, asked) as request,
    ):
        place.check(request.file)
        if place.ledger:
            refuse_ledger(composed=request.composed, tested=target is not None)
            promise["keep_ledger"] = True
        request, settings = _settled(request, promise, target, asked)
        if asked["seed"] is None and promise["max_epsilon"] is None:
            _refuse_unnamed(settings)
        account, tested = request.account(settings), settings.tested is not None
        if settings.tested is not None and not goes_on:
            _refuse_hopeless(request, settings.tested, promise["min_pass"])
        if target is not None:
            # Rows are read, counted and priced for the test, and labelled.
            progress(0, (4 if tested else 1) * request.queries)
        kept_in = [file.name for file in record.files]
        read = progress if tested else nothing_seen
        key, kept = _key(asked, request, settings, kept_in, read)
        settings = replace(settings, private=key.private)
        # What a record would tell of a run takes time, and nobody asks without one.
        planned = _run_of(settings, key, began) if record.file else None
        entry = Entry(record, planned, budget=budget)
        _warn_of_twin(record, request, told=isinstance(asked["record"], RecordPlace))
        place.try_out(request.file.queries)
        if tested and kept is None:
            _read(request, progress)
        entry.enter()
        with entry.standing(until_read=not tested):
            settled = _drawn(request, settings, account, key, place, kept, progress)
            spent = entry.settle(settled.outcome, answers=settled.answers)
            labels = place.written
            facts = replace(settled.facts, run=key.run_id, time=began, labels=labels, spent=spent)
            report, ledger = report_of(facts), _bound(settled.ledger, record)
            place.publish(report, ledger)
        if settled.failed is not None:
            raise _refusal(settled.failed, report, kept)
        if kept is not None and into is not None:
            kept.end()
            kept = None
    return Aggregation(place.labels, report, ledger, kept)


def _read(request: Request, progress: Progress) -> None:
    """Read all rows before the run is entered, and make nothing of them.

    Whether a file holds votes is told for nothing, and nothing that follows fails by what they are.
    Whoever changes them before they are labelled is found out.
    """
    for _ in request.rows.read(request.mechanism, _nothing, progress=progress):
        pass


def _nothing(_mechanism: Mechanism, _batch: VoteBatch) -> None:
    """Make nothing of a batch."""


def _drawn(
    request: Request,
    settings: Settings,
    account: LedgerAccount | None,
    key: RunKey,
    place: Publication,
    kept: Checkpoint | None,
    progress: Progress,
) -> Settlement:
    """Draw all labels into their place unless they fail a test; return what that cost."""
    if settings.tested is not None and not release_test(
        request.rows, request.scored, settings, key, progress
    ):
        return refused(settings)
    return run(
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


def _bound(ledger: Ledger | None, record: RecordPlace) -> Ledger | None:
    """Return a ledger that says which record tells of its run."""
    records = tuple(str(file.path) for file in record.files)
    return None if ledger is None else replace(ledger, records=records)


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


def _record_of(votes: Votes, asked: QuoteWords, *, seeded: bool) -> RecordPlace:
    return RecordPlace.of(
        votes,
        record=asked["record"],
        ensemble=asked["ensemble"],
        seeded=seeded,
        accept_lost=asked["accept_lost_record"],
    )


def _warn_of_twin(record: RecordPlace, request: Request, *, told: bool) -> None:
    """Warn of another record of as many teachers, unless the command line has `told`."""
    twin = None if told else record.twin(request.mechanism.teachers, flag="`ensemble`")
    if twin is not None:
        warnings.warn(twin, stacklevel=4)


def _left(
    promise: PromiseWords,
    mechanism: Mechanism | MechanismChoice | str,
    asked: QuoteWords,
    record: RecordPlace,
    budget: Budget | None,
) -> float | None:
    """The target: as given, or of a budget and nothing else all that is left of it.

    Where nothing is left there is none, and the budget itself refuses the run.
    """
    target = promise["target_epsilon"]
    alone = target is None and budget is not None and record.file is not None
    for group in (ReleasedWords, ParameterWords, CapWords, RowWords):
        alone = alone and not any(only(group, asked).values())
    plain = Analysis(promise["analysis"]) is Analysis.TIGHT and not promise["keep_ledger"]
    ruled = isinstance(mechanism, str) and MechanismName(mechanism) in RULED
    if isinstance(mechanism, MechanismChoice):
        ruled = mechanism.name in RULED and not mechanism.given
    if budget is None or not (alone and plain and ruled):
        return target
    left, _ = left_of(budget, record.record.runs)
    target = float(Decimal(repr(left)).quantize(Decimal("1e-4"), ROUND_FLOOR))
    return target if target > 0.0 else None


def _run_of(settings: Settings, key: RunKey, began: str) -> Run:
    """A run as a record has it, before it has an outcome."""
    # The seed alone gives a report its name; in a record a run of one is its own.
    name = key.run_id if key.private else key.name("run")
    return Run.of(settings, id=name, time=began, round=key.name("round"))


def _key(
    asked: AggregateWords,
    request: Request,
    settings: Settings,
    records: Sequence[str],
    progress: Progress,
) -> tuple[RunKey, Checkpoint | None]:
    """Return the key of all noise: that of a run that was cut short, if there is one.

    A checkpoint belongs to these votes, which are read for it.
    """
    seed, folder = asked["seed"], asked["checkpoint"]
    if folder is None:
        return _fresh(seed), None
    _read(request, progress)
    resumed = Checkpoint.of(folder, request.described(settings, seed, records), seed=seed)
    return resumed.key, resumed


def _fresh(seed: int | None) -> RunKey:
    return RunKey.fresh() if seed is None else RunKey.from_seed(seed)


@takes_keywords
def quote(
    votes: Votes,
    mechanism: Mechanism | MechanismChoice | str = MechanismName.CONFIDENT,
    *,
    progress: Progress = nothing_seen,
    **asked: Unpack[QuoteWords],
) -> Quote:
    """What `aggregate` would cost for all votes; every row is checked, nothing drawn or spent.

        >>> pate.quote("sample_votes/demo.parquet", max_queries=300)
        <Quote: at most epsilon 1.3788 at delta 1e-05 for all votes>

    Args:
        votes: the teachers' votes.
        mechanism: the aggregator, or its name.
        progress: called with the number of rows of each part that was checked.

    Raises:
        PateError: as `aggregate` would.
    """
    promise = only(PromiseWords, asked)
    budget = budget_of(promise)
    # Nobody asks what is left where there is no budget.
    record = RecordPlace() if budget is None else _record_of(votes, asked, seeded=False)
    promise["target_epsilon"] = _left(promise, mechanism, asked, record, budget)
    target = _target_of(promise, delta=asked["delta"])
    with requested(votes, mechanism, asked) as request:
        request, settings = _settled(request, promise, target, asked)
        request.account(settings)  # refuses what the analysis does not cover
        if budget is not None:
            Entry(record, _run_of(settings, RunKey.fresh(), now()), budget=budget)
        for batch in request.file.batches(limit=request.queries):
            progress(len(batch.counts))
        price = door.quote(settings)
        foreseen = _foreseen(request, settings)
        gaps = tuple(read_off_warning(fact) for fact in request.file.read_off)
        warned = (
            *cautions(request.mechanism, delta=request.delta),
            *vacuous_warnings(price.epsilon, composed=request.composed is not None),
            *_needs_a_name(settings, promise),
            *_hopeless(foreseen, promise["min_pass"]),
        )
        planned = Round(
            id="",
            mechanism=price.mechanism,
            queries=price.queries,
            max_answers=price.max_answers,
            answers=0,
            **request.file.facts.of_round,
        )
        return replace(
            price,
            sound=not gaps,
            warnings=(*gaps, *warned),
            prior=public_prior([planned]),
            target=_outlook(request, settings, foreseen),
        )


def _foreseen(request: Request, settings: Settings) -> Forecast | None:
    """Return what made-up teachers would give; None where no test stands in front of the labels."""
    target = settings.tested
    if target is None:
        return None
    from pate_cli.planning.forecast import public_forecast

    return public_forecast(
        request.scored,
        target,
        rows=request.queries,
        max_answers=request.max_answers,
        bound=target.bound,
    )


def _outlook(request: Request, settings: Settings, foreseen: Forecast | None) -> Outlook | None:
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
        chances=None if foreseen is None else foreseen.named_chances(),
    )


def _settled(
    request: Request,
    promise: PromiseWords,
    target: TargetPlan | None,
    asked: QuoteWords,
) -> tuple[Request, Settings]:
    """Return what a run is told, fixed before any vote is seen, and the rows that it asks.

    Args:
        request: the votes, and what they are put to.
        promise: what is promised about the labels.
        target: as it was stated.
        asked: all keywords of the verb.

    Raises:
        UnreachableError: a target, or ε for all votes, above `max_epsilon`.
    """
    if target is None:
        settings = request.settings(plan=request.sanitized(promise))
    else:
        _refuse_beside(promise)
        if isinstance(request.mechanism, ScoredMechanism):
            given = asked["max_queries"] is not None
            request = request.by_rule(target, bound=target.bound, rows_given=given)
        settings = request.at_target(target)
    most = promise["max_epsilon"]
    if most is not None:
        _refuse_dearer(settings, check_positive("`max_epsilon`", most))
    return request, settings


def _promised(settings: Settings) -> float:
    """Return the ε that is published at most: the worst case, or the target if that is less."""
    worst = Cost.of(replace(settings, target=None)).own.epsilon
    return worst if settings.target is None else min(worst, settings.target.epsilon)


def _refuse_dearer(settings: Settings, most: float) -> None:
    price = _promised(settings)
    if price > most:
        raise UnreachableError(
            f"this run would cost epsilon {price:.4f} at delta {settings.delta:g} in the worst "
            f"case, above `max_epsilon` {most:g}; nothing was drawn or spent. {_cheaper(settings)}"
        )


def _cheaper(settings: Settings) -> str:
    if settings.target is not None:
        return "State a smaller `target_epsilon`"
    return "Lower `max_queries` or `max_answers`, take more noise, or state `target_epsilon`"


def _unnamed(settings: Settings) -> str | None:
    """The ε of a target, or of all votes if that alone is promised, if it is above the ceiling."""
    if settings.sanitizer is not None and settings.sanitizer.publishes_draw:
        return None
    price = _promised(settings)
    return shown(price) if price > CEILING else None


def _refuse_unnamed(settings: Settings) -> None:
    """CeilingError for a run that promises practically nothing, and that nobody asked for so."""
    price = _unnamed(settings)
    if price is not None:
        raise CeilingError(
            f"this run would cost epsilon {price} at delta {settings.delta:g}, whatever the votes, "
            f"and above {CEILING:g} practically nothing is promised; nothing was drawn or spent. "
            f"{_cheaper(settings)}. To have it all the same, ask for it by name: "
            f"`max_epsilon` {price}",
            epsilon=float(price),
        )


def _refuse_hopeless(request: Request, target: TargetPlan, least: float) -> None:
    from pate_cli.planning.passing import refuse_hopeless

    refuse_hopeless(
        request.scored,
        target,
        rows=request.queries,
        max_answers=request.max_answers,
        least=least,
    )


def _hopeless(foreseen: Forecast | None, least: float) -> tuple[str, ...]:
    if foreseen is None:
        return ()
    from pate_cli.planning.passing import hopeless_warnings

    return hopeless_warnings(foreseen, least)


def _needs_a_name(settings: Settings, promise: PromiseWords) -> tuple[str, ...]:
    """A warning that a run would be refused so; a price is told whatever it is."""
    price = None if promise["max_epsilon"] is not None else _unnamed(settings)
    if price is None:
        return ()
    return (f"The run itself, unless it is a seeded test, needs --max-epsilon {price}.",)


def _target_of(promise: PromiseWords, *, delta: float) -> TargetPlan | None:
    """Return the target, if there is one; UsageError for what makes no sense without."""
    bound, epsilon = Bound(promise["bound"]), promise["target_epsilon"]
    if not 0.0 <= promise["min_pass"] <= 1.0:
        raise ParameterError(f"`min_pass` must be in [0, 1], got {promise['min_pass']:g}")
    refusal = promise["refusal_epsilon"]
    if epsilon is not None:
        return TargetPlan.of(epsilon, delta=delta, refusal_epsilon=refusal, bound=bound)
    if refusal is not None:
        raise UsageError("`refusal_epsilon` goes with `target_epsilon`")
    return None


def _refuse_beside(promise: PromiseWords) -> None:
    """UsageError for what contradicts a target."""
    names = ("order", "beta", "sigma_release")
    given = [name for name in names if promise.get(name) is not None]
    if promise["release"] not in (None, ReleaseKind.TARGET):
        given.insert(0, "release")
    analysis = Analysis(promise["analysis"])
    if given:
        raise UsageError(
            f"`{given[0]}` does not go with `target_epsilon`: nothing is sanitized; the target "
            "itself is published"
        )
    if analysis is not Analysis.TIGHT:
        raise UsageError(f"`analysis` {analysis} does not go with `target_epsilon`")
