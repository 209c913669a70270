"""The verbs that spend privacy, or say what they would spend: aggregate, quote, release."""

from __future__ import annotations

import os
import warnings
from dataclasses import replace
from decimal import ROUND_FLOOR, Decimal
from typing import TYPE_CHECKING, Any, Self, Unpack

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
from pate_cli.disclosure.budget import Budget
from pate_cli.disclosure.cautions import cautions, vacuous_warnings
from pate_cli.disclosure.entry import Entry
from pate_cli.disclosure.facts import report_of
from pate_cli.disclosure.figures import shown
from pate_cli.disclosure.guarantee import adjacency, public_prior, read_off_warning
from pate_cli.disclosure.ledger import Ledger, Round
from pate_cli.disclosure.record import Outcome, Run
from pate_cli.disclosure.record_place import Places
from pate_cli.disclosure.report import Quote, RefusedError, Report, Tested
from pate_cli.disclosure.settings import RowsAsked
from pate_cli.disclosure.target import TargetPlan
from pate_cli.disclosure.total import left_of
from pate_cli.labels.labels import Labels
from pate_cli.mechanisms import RULED, MechanismChoice
from pate_cli.mechanisms.base import ComposedMechanism, Mechanism
from pate_cli.run.accounts import Account, PublicAccount, Settlement, TargetAccount
from pate_cli.run.checkpoint import Checkpoint, reached
from pate_cli.run.fold import nothing_seen
from pate_cli.run.labelling import run
from pate_cli.run.publication import Into, Publication, publishing
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

# A rough pass probability is off by no more than this.
_ROUGH_BY = 0.15


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
    places = _places(votes, asked, seeded=asked["seed"] is not None)
    budget = budget_of(promise)
    if asked["checkpoint"] is None and not getattr(into, "ledger", None):
        promise["target_epsilon"] = _left(promise, mechanism, asked, places, budget)
    target = _Target.of(promise, delta=asked["delta"])
    goes_on = reached(asked["checkpoint"]) is not None
    with (
        publishing(into, records=places.paths, resumed=goes_on) as place,
        requested(votes, mechanism, asked) as request,
    ):
        place.check(request.file)
        place.refuse_ledger(composed=request.composed, tested=target is not None)
        promise["keep_ledger"] = promise["keep_ledger"] or place.ledger
        request, account = _charged(request, promise, target, asked, ceiling=asked["seed"] is None)
        tested = account if isinstance(account, TargetAccount) and account.needed else None
        if tested is not None and not goes_on and promise["min_pass"] > 0.0:
            _refuse_hopeless(request, tested, promise["min_pass"])
        if target is not None:
            # Rows are read, counted and priced for the test, and labelled.
            progress(0, (1 if tested is None else 4) * request.queries)
        read = nothing_seen if tested is None else progress
        key, kept = _key(asked, request, promise, (target, *places.paths[:1]), read)
        # What a record would tell of a run takes time, and nobody asks without one.
        planned = _run_of(request, account, key, began) if places.paths else None
        entry = Entry(places, planned, budget=budget)
        _warn_of_twin(places, request, told=isinstance(asked["record"], Places))
        place.try_out(request.file.queries)
        if tested is not None and kept is None:
            _read(request, progress)
        entry.enter()
        with entry.standing(until_read=tested is None):
            if tested is None or tested.test(request.rows, key, progress):
                settled = _drawn(request, account, key, place, kept, progress)
                spent = entry.settle(Outcome.LABELLED, answers=settled.answers)
            else:
                settled = tested.refused(private=key.private, facts=request.file.facts)
                spent = entry.settle(Outcome.REFUSED)
        place.note(entry.note)
        labels = place.written
        facts = replace(settled.facts, run=key.run_id, time=began, labels=labels, spent=spent)
        if settled.failed is not None:
            raise _refusal(settled.failed, report_of(facts), kept)
        report, ledger = report_of(facts), _bound(settled.ledger, places)
        place.publish(report, ledger)
    return Aggregation(place.labels, report, ledger, _left_over(kept, place))


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
    account: Account,
    key: RunKey,
    place: Publication,
    kept: Checkpoint | None,
    progress: Progress,
) -> Settlement:
    """Draw all labels into their place, and return what they cost."""
    return run(
        request.rows,
        request.mechanism,
        account,
        max_answers=request.max_answers,
        key=key,
        into=place,
        checkpoint=kept,
        progress=progress,
        facts=request.file.facts,
    )


def _bound(ledger: Ledger | None, places: Places) -> Ledger | None:
    """Return a ledger that says which records tell of its run."""
    records = tuple(map(os.path.realpath, places.paths))
    return None if ledger is None else replace(ledger, records=records)


def _left_over(kept: Checkpoint | None, place: Publication) -> Checkpoint | None:
    """End a checkpoint once all is in place; return one that its holder is to end."""
    if kept is None or not place.done:
        return kept
    kept.end()
    return None


def _refusal(failed: Tested, report: Report, kept: Checkpoint | None) -> RefusedError:
    """Return what is raised of labels that did not pass, and end their checkpoint."""
    refusal = RefusedError(
        f"the labels did not pass the test of the target {failed.target:g}; none are released. "
        f"This cost {failed.refusal_epsilon:g} at delta {failed.delta:g}",
        report,
    )
    try:
        if kept is not None:
            kept.end()
    except OutputError as error:  # what the test cost is said and published all the same
        refusal.add_note(str(error))
    return refusal


def _places(votes: Votes, asked: QuoteWords, *, seeded: bool) -> Places:
    return Places.of(
        votes,
        record=asked["record"],
        ensemble=asked["ensemble"],
        seeded=seeded,
        accept_lost=asked["accept_lost_record"],
    )


def _warn_of_twin(places: Places, request: Request, *, told: bool) -> None:
    """Warn of another record of as many teachers, unless the command line has `told`."""
    twin = None if told else places.twin(request.mechanism.teachers, flag="`ensemble`")
    if twin is not None:
        warnings.warn(twin, stacklevel=4)


def _left(
    promise: PromiseWords,
    mechanism: Mechanism | MechanismChoice | str,
    asked: QuoteWords,
    places: Places,
    budget: Budget | None,
) -> float | None:
    """The target: as given, or of a budget and nothing else all that is left of it.

    Where nothing is left there is none, and the budget itself refuses the run.
    """
    target = promise["target_epsilon"]
    alone = target is None and budget is not None and places.paths != ()
    for group in (ReleasedWords, ParameterWords, CapWords, RowWords):
        alone = alone and not any(only(group, asked).values())
    plain = Analysis(promise["analysis"]) is Analysis.TIGHT and not promise["keep_ledger"]
    ruled = isinstance(mechanism, str) and MechanismName(mechanism) in RULED
    if isinstance(mechanism, MechanismChoice):
        ruled = mechanism.name in RULED and not mechanism.given
    if budget is None or not (alone and plain and ruled):
        return target
    left, _ = left_of(budget, places.read().runs)
    target = float(Decimal(repr(left)).quantize(Decimal("1e-4"), ROUND_FLOOR))
    return target if target > 0.0 else None


def _run_of(request: Request, account: Account, key: RunKey, began: str) -> Run:
    """A run as a record has it, before it has an outcome."""
    queries, answers, facts = request.queries, request.max_answers, request.file.facts.of_round
    return Run(
        # The seed alone gives a report its name; in a record a run of one is its own.
        id=key.run_id if key.private else key.name("run"),
        outcome=Outcome.PENDING,
        time=began,
        asked=RowsAsked(
            mechanism=request.mechanism.parameters(),
            queries=queries,
            max_answers=answers,
            label_set=facts["label_set"],
            prior=facts["prior"],
        ),
        round=key.name("round"),
        groups=request.groups,
        claimed=key.private and not request.file.facts.read_off,
        **account.charge(queries=queries, max_answers=answers),
    )


def _key(
    asked: AggregateWords,
    request: Request,
    promise: PromiseWords,
    charged: tuple[Any, ...],
    progress: Progress,
) -> tuple[RunKey, Checkpoint | None]:
    """Return the key of all noise: that of a run that was cut short, if there is one.

    A checkpoint belongs to these votes, which are read for it.
    """
    seed, folder = asked["seed"], asked["checkpoint"]
    if folder is None:
        return _fresh(seed), None
    _read(request, progress)
    settings = (
        sorted(only(ReleasedWords, promise).items()),
        promise["analysis"],
        promise["keep_ledger"],
    )
    resumed = Checkpoint.of(folder, request.described((*settings, seed, *charged)), seed=seed)
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
    places = _places(votes, asked, seeded=False)
    budget = budget_of(promise)
    promise["target_epsilon"] = _left(promise, mechanism, asked, places, budget)
    target = _Target.of(promise, delta=asked["delta"])
    with requested(votes, mechanism, asked) as request:
        request, account = _charged(request, promise, target, asked)
        if budget is not None:
            planned_run = _run_of(request, account, RunKey.fresh(), now())
            Entry(places, planned_run, budget=budget)
        for batch in request.file.batches(limit=request.queries):
            progress(len(batch.counts))
        price = account.quote(
            queries=request.queries, max_answers=request.max_answers, groups=request.groups
        )
        hopeless: tuple[str, ...] = ()
        if isinstance(account, TargetAccount) and price.target is not None and account.needed:
            foreseen = _foreseen(request, account)
            chances = foreseen.named_chances()
            price = replace(price, target=replace(price.target, chances=chances))
            hopeless = _hopeless(foreseen, promise["min_pass"])
        gaps = tuple(read_off_warning(fact) for fact in request.file.read_off)
        warned = (
            *cautions(request.mechanism, delta=request.delta),
            *vacuous_warnings(price.epsilon, composed=request.composed is not None),
            *_needs_a_name(request, account, promise),
            *hopeless,
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
            adjacency=adjacency([planned]),
            prior=public_prior([planned]),
        )


def _charged(
    request: Request,
    promise: PromiseWords,
    target: _Target | None,
    asked: QuoteWords,
    *,
    ceiling: bool = False,
) -> tuple[Request, Account]:
    """How a run is charged, fixed before any vote is seen, and the rows that it asks.

    UnreachableError for one whose target, or ε for all votes, is above `max_epsilon`, or above the
    ceiling if there is one.
    """
    if target is None:
        account = request.account(promise)
    else:
        target.refuse_beside(promise)
        request, account = target.account(request, rows_given=asked["max_queries"] is not None)
    _refuse_dearer(request, account, promise["max_epsilon"])
    if ceiling and promise["max_epsilon"] is None:
        _refuse_unnamed(request, account)
    return request, account


def _refuse_dearer(request: Request, account: Account, most: float | None) -> None:
    if most is None:
        return
    check_positive("`max_epsilon`", most)
    if isinstance(account, TargetAccount):
        price = _promised(account)
    else:
        price = account.quote(queries=request.queries, max_answers=request.max_answers).epsilon
    if price > most:
        raise UnreachableError(
            f"this run would cost epsilon {price:.4f} at delta {request.delta:g} in the worst "
            f"case, above `max_epsilon` {most:g}; nothing was drawn or spent. {_cheaper(account)}"
        )


def _promised(account: TargetAccount) -> float:
    """What a run with a target publishes: the target, or less where no votes could cost that."""
    return min(account.public.epsilon, account.plan.epsilon)


def _cheaper(account: Account) -> str:
    if isinstance(account, TargetAccount):
        return "State a smaller `target_epsilon`"
    return "Lower `max_queries` or `max_answers`, take more noise, or state `target_epsilon`"


def _unnamed(request: Request, account: Account) -> str | None:
    """The ε of a target, or of all votes if that alone is promised, if it is above the ceiling."""
    if isinstance(account, TargetAccount):
        price = _promised(account)
    elif account.worst_case_alone:
        charged = account.charge(queries=request.queries, max_answers=request.max_answers)
        price = charged["epsilon"]
    else:
        return None
    return shown(price) if price > CEILING else None


def _refuse_unnamed(request: Request, account: Account) -> None:
    """CeilingError for a run that promises practically nothing, and that nobody asked for so."""
    price = _unnamed(request, account)
    if price is not None:
        raise CeilingError(
            f"this run would cost epsilon {price} at delta {request.delta:g}, whatever the votes, "
            f"and above {CEILING:g} practically nothing is promised; nothing was drawn or spent. "
            f"{_cheaper(account)}. To have it all the same, ask for it by name: "
            f"`max_epsilon` {price}",
            epsilon=float(price),
        )


def _foreseen(request: Request, account: TargetAccount, *, rough: bool = False) -> Forecast:
    """How made-up teachers would fare with a run; nothing of it hangs on the votes."""
    from pate_cli.planning.forecast import public_forecast

    return public_forecast(
        request.scored,
        account.plan,
        rows=request.queries,
        max_answers=request.max_answers,
        bound=account.bound,
        rough=rough,
    )


def _refuse_hopeless(request: Request, account: TargetAccount, least: float) -> None:
    """UnreachableError for a run that would hardly pass however favourably teachers agreed."""
    rough = _foreseen(request, account, rough=True).pass_probability
    if rough.max() >= least + _ROUGH_BY:
        return
    best = float(_foreseen(request, account).pass_probability.max())
    if best >= least:
        return
    from pate_cli.planning.forecast import what_would_pass

    rows, epsilon = what_would_pass(
        request.scored, account.plan, rows=request.queries, bound=account.bound, least=least
    )
    advice = f"Take more noise, or a `target_epsilon` of about {epsilon:.2g}"
    if rows:
        advice = f"Ask at most `max_queries` {rows}"
    raise UnreachableError(
        f"this run would pass its release test with probability {best:.2g} at most, below "
        f"`min_pass` {least:g}; nothing was drawn or spent. {advice}; `min_pass` 0 starts it all "
        "the same"
    )


def _hopeless(foreseen: Forecast, least: float) -> tuple[str, ...]:
    """A warning that a run would be refused so."""
    best = float(foreseen.pass_probability.max())
    if best >= least:
        return ()
    return (f"The run itself would not start: it passes with probability {best:.2g} at most.",)


def _needs_a_name(request: Request, account: Account, promise: PromiseWords) -> tuple[str, ...]:
    """A warning that a run would be refused so; a price is told whatever it is."""
    price = None if promise["max_epsilon"] is not None else _unnamed(request, account)
    if price is None:
        return ()
    return (f"The run itself, unless it is a seeded test, needs --max-epsilon {price}.",)


@dataclass(frozen=True)
class _Target:
    """What is asked of a run with a target."""

    plan: TargetPlan
    bound: Bound

    @classmethod
    def of(cls, promise: PromiseWords, *, delta: float) -> Self | None:
        """The target, if there is one; UsageError for what makes no sense without."""
        bound, epsilon = Bound(promise["bound"]), promise["target_epsilon"]
        if not 0.0 <= promise["min_pass"] <= 1.0:
            raise ParameterError(f"`min_pass` must be in [0, 1], got {promise['min_pass']:g}")
        if epsilon is not None:
            refusal = promise["refusal_epsilon"]
            plan = TargetPlan.of(epsilon, delta=delta, refusal_epsilon=refusal)
            return cls(plan, bound)
        if promise["refusal_epsilon"] is not None:
            raise UsageError("`refusal_epsilon` goes with `target_epsilon`")
        return None

    @staticmethod
    def refuse_beside(promise: PromiseWords) -> None:
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

    def account(self, request: Request, *, rows_given: bool) -> tuple[Request, Account]:
        """How the run is charged; settings and rows that were left open are the public rule's.

        Raises:
            UnreachableError: the target is out of reach, or a composition exceeds it.
        """
        plan, mechanism = self.plan, request.mechanism
        if isinstance(mechanism, ComposedMechanism):
            request.check_delta()
            composed = PublicAccount(
                mechanism,
                queries=request.queries,
                max_answers=request.max_answers,
                delta=plan.delta,
            )
            quoted = composed.quote(queries=request.queries, max_answers=request.max_answers)
            if quoted.epsilon > plan.epsilon:
                raise UnreachableError(
                    f"{mechanism.name} has no Renyi cost to test, and costs {quoted.epsilon:g} for "
                    f"all votes, above the target {plan.epsilon:g}"
                )
            return request, composed
        request = request.by_rule(plan, bound=self.bound, rows_given=rows_given)
        request.check_delta()
        return request, TargetAccount(
            request.scored,
            plan,
            bound=self.bound,
            queries=request.queries,
            max_answers=request.max_answers,
        )
