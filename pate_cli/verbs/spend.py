"""The verbs that spend privacy, or say what they would spend: aggregate, quote, release."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Self, Unpack

from pate_cli.core.checks import check_positive
from pate_cli.core.clock import now
from pate_cli.core.errors import ParameterError, SpentError, UnreachableError, UsageError
from pate_cli.core.noise import RunKey
from pate_cli.core.words import Analysis, Bound, MechanismName, ReleaseKind
from pate_cli.disclosure.cautions import cautions, vacuous_warnings
from pate_cli.disclosure.door import release as release_ledger
from pate_cli.disclosure.external import External, ExternalCurve, ExternalPair
from pate_cli.disclosure.guarantee import adjacency, public_prior, read_off_warning
from pate_cli.disclosure.ledger import Ledger, Round, SpendRecord
from pate_cli.disclosure.report import Quote, RefusedError, Report
from pate_cli.disclosure.rule import choose_plan_for
from pate_cli.disclosure.target import TargetPlan
from pate_cli.disclosure.worst_case import least_delta, spendings
from pate_cli.mechanisms import MechanismChoice
from pate_cli.mechanisms.base import ComposedMechanism, Mechanism
from pate_cli.run.accounts import Account, PublicAccount, TargetAccount
from pate_cli.run.checkpoint import Checkpoint
from pate_cli.run.labelling import Aggregation, run
from pate_cli.run.passes import nothing_seen
from pate_cli.run.publication import Into, Publication, publishing
from pate_cli.verbs.analyses import charging_of
from pate_cli.verbs.attempts import AttemptBook
from pate_cli.verbs.keywords import (
    AggregateWords,
    PromiseWords,
    QuoteWords,
    ReleasedWords,
    ReleaseWords,
    only,
    takes_keywords,
)
from pate_cli.verbs.request import Progress, Request, Votes, kind_of, requested


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
        <Labels: 163 of 300 queries labelled>
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
        PateError: votes that cannot be read, numbers out of range, and whatever else is refused.
    """
    began = now()  # before anything is spent, should it be refused
    promise = only(PromiseWords, asked)
    target = _Target.of(promise, delta=asked["delta"])
    with (
        publishing(into, record=promise["record"]) as place,
        requested(votes, mechanism, asked) as request,
    ):
        place.check(request.file)
        place.refuse_ledger(composed=request.composed, tested=target is not None)
        promise["keep_ledger"] = promise["keep_ledger"] or place.ledger
        request, account = _charged(request, promise, target, asked)
        key, resumed = _key(asked, request, promise, target, place)
        if target is not None:
            try:
                target.decide(request, account, key, progress=progress)
            except RefusedError as error:
                if resumed is not None:
                    resumed.end()
                raise RefusedError(str(error), _named(error.report, key, began)) from None
        settled = run(
            request.passes,
            request.mechanism,
            account,
            queries=request.queries,
            max_answers=request.max_answers,
            key=key,
            into=place.sink(key, resumed=resumed is not None),
            progress=progress,
            warnings=cautions(request.mechanism, delta=request.delta),
            facts=request.file.facts,
        )
        report = replace(_named(settled.report, key, began), labels=place.written)
        place.publish(report, settled.ledger)
    if resumed is not None and place.done:
        resumed.end()
        resumed = None
    return Aggregation(place.labels, report, settled.ledger, resumed)


def _key(
    asked: AggregateWords,
    request: Request,
    promise: PromiseWords,
    target: _Target | None,
    place: Publication,
) -> tuple[RunKey, Checkpoint | None]:
    """What all noise follows from: that of a run that was cut short, if there is one."""
    seed, folder = asked["seed"], asked["checkpoint"]
    if folder is None:
        return _fresh(seed), None
    # What is kept of finished rows is not the same for a file and for a folder of parts.
    settings = (
        sorted(only(ReleasedWords, promise).items()),
        promise["analysis"],
        promise["keep_ledger"],
    )
    resumed = Checkpoint.of(
        folder, request.described((*settings, seed, target, place.in_parts)), seed=seed
    )
    request.passes.checkpoint = resumed
    return resumed.key, resumed


def _fresh(seed: int | None) -> RunKey:
    return RunKey.fresh() if seed is None else RunKey.from_seed(seed)


def _named(report: Report, key: RunKey, began: str) -> Report:
    """The report with the name of its run and the time when that began."""
    return replace(report, run=key.run_id, time=began)


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
    target = _Target.of(promise, delta=asked["delta"])
    with requested(votes, mechanism, asked) as request:
        request, account = _charged(request, promise, target, asked)
        for batch in request.file.batches(limit=request.queries):
            progress(len(batch.counts))
        price = account.quote(
            queries=request.queries, max_answers=request.max_answers, groups=request.groups
        )
        gaps = tuple(read_off_warning(fact) for fact in request.file.read_off)
        warned = (
            *cautions(request.mechanism, delta=request.delta),
            *vacuous_warnings(price.epsilon, composed=request.composed is not None),
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
    request: Request, promise: PromiseWords, target: _Target | None, asked: QuoteWords
) -> tuple[Request, Account]:
    """How a run is charged, fixed before any vote is seen, and the rows that it asks.

    UnreachableError for one whose ε for all votes is above `max_epsilon`.
    """
    if target is None:
        account = request.account(promise)
    else:
        target.refuse_beside(promise)
        request, account = target.account(request, rows_given=asked["max_queries"] is not None)
    _refuse_dearer(request, account, promise["max_epsilon"])
    return request, account


def _refuse_dearer(request: Request, account: Account, most: float | None) -> None:
    if most is None:
        return
    check_positive("`max_epsilon`", most)
    if isinstance(account, TargetAccount):
        price = min(account.public.epsilon, account.plan.epsilon)
    else:
        price = account.quote(queries=request.queries, max_answers=request.max_answers).epsilon
    if price > most:
        raise UnreachableError(
            f"this run would cost epsilon {price:.4f} at delta {request.delta:g} in the worst "
            f"case, above `max_epsilon` {most:g}; nothing was drawn or spent. Lower `max_queries` "
            "or `max_answers`, take more noise, or state `target_epsilon`"
        )


@dataclass(frozen=True)
class _Target:
    """What is asked of a run with a target: the plan, and the record it is kept in."""

    plan: TargetPlan
    bound: Bound
    budget: float | None
    record: str | PathLike[str] | None

    @classmethod
    def of(cls, promise: PromiseWords, *, delta: float) -> Self | None:
        """The target, if there is one; UsageError for what makes no sense without."""
        bound, epsilon = Bound(promise["bound"]), promise["target_epsilon"]
        if epsilon is not None:
            refusal = promise["refusal_epsilon"]
            plan = TargetPlan.of(epsilon, delta=delta, refusal_epsilon=refusal)
            return cls(plan, bound, promise["budget"], promise["record"])
        for name in ("refusal_epsilon", "budget", "record"):
            if promise.get(name) is not None:
                raise UsageError(f"`{name}` goes with `target_epsilon`")
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
        """How the run is charged, on as many rows as the public rule says if none were given.

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
        if not rows_given:
            request = request.by_rule(plan)
        request.check_delta()
        return request, TargetAccount(
            request.scored,
            plan,
            bound=self.bound,
            queries=request.queries,
            max_answers=request.max_answers,
        )

    def decide(
        self,
        request: Request,
        account: Account,
        key: RunKey,
        *,
        progress: Progress,
    ) -> None:
        """Draw the coin where one is needed; the record knows of it before votes are priced.

        Raises:
            RefusedError: the labels did not pass.
            UnreachableError: the budget is exhausted.
            VoteError: a row is no vote; the record does not know of it.
        """
        plan = self.plan
        tested = account if isinstance(account, TargetAccount) and account.needed else None
        price, refusal = plan.epsilon, plan.refusal_epsilon
        if tested is None:
            price = account.quote(queries=request.queries, max_answers=request.max_answers).epsilon
            refusal = price
        book = AttemptBook(
            self.record,
            epsilon=price,
            delta=plan.delta,
            refusal_epsilon=refusal,
            budget=self.budget,
            name=key.name("attempt"),
        )
        # Whether a file holds votes is told for nothing. Nothing that follows fails by what they
        # are, and whatever fails is paid for like a pass.
        # Read, read again for the test, priced and labelled.
        progress(0, (2 if tested is None else 4) * request.queries)
        request.passes.fingerprint(request.mechanism, progress=progress)
        book.enter()
        with book.standing():
            passed = tested is None or tested.test(request.passes, key, progress)
            spent = book.ended(passed=passed)
        if isinstance(account, TargetAccount):
            account.spent = spent
        if tested is not None and not passed:
            raise RefusedError(
                f"the labels did not pass the test of the target {plan.epsilon:g}; none are "
                f"released. This cost {plan.refusal_epsilon:g} at delta {plan.delta:g}",
                tested.refused(private=key.private, facts=request.file.facts),
            )


@dataclass(frozen=True)
class Released:
    """A report (public), the ledger it was drawn from (SECRET), and the record with that draw."""

    report: Report
    ledger: Ledger
    record: SpendRecord


@takes_keywords
def release(
    ledgers: Ledger | str | PathLike[str] | Sequence[Ledger | str | PathLike[str]],
    *,
    external: Sequence[ExternalCurve | ExternalPair | str | PathLike[str]] = (),
    record: SpendRecord | None = None,
    again: bool = False,
    recorded: bool = True,
    **asked: Unpack[ReleaseWords],
) -> Released:
    """Compose ledgers and publish one sanitized (ε, δ) for all they hold.

    For several rounds on the same teachers, each labelled with `keep_ledger`.

        >>> votes = "sample_votes/demo.parquet"
        >>> given = {"order": 8, "release": "none"}
        >>> first = pate.aggregate(votes, max_queries=100, seed=2, **given)
        >>> second = pate.aggregate(votes, "gnmax", max_queries=20, seed=3, **given)
        >>> pate.release([first.ledger, second.ledger], seed=4).report
        <Report: epsilon 1.2370 at delta 1e-05, 75 of 120 queries answered>

    Args:
        ledgers: of one or several rounds on the same teachers, or their files.
        external: what else was trained on the same records, or files that state its cost (see
            `disclosure.external`); it is added to the total.
        record: all earlier draws, from the `record` of what was released last; a second one from
            the same rounds is refused, or charged. Left out, the report presupposes that none of
            these rounds was released before: nothing is looked up, and this draw is noted nowhere
            but in the `record` of the result. (The command line keeps a record beside each ledger.)
        again: draw again all the same.
        recorded: False where there may be draws that `record` does not tell of, so that they are
            not charged: the report then claims nothing.

    Raises:
        ParameterError: a δ too small beside what floating-point noise adds over all rounds.
        SpentError: the rounds were released before.
        LedgerError: a ledger or an external file is damaged, or does not fit the others.
    """
    began = now()
    given = [ledgers] if isinstance(ledgers, Ledger | str | PathLike) else list(ledgers)
    total = functools.reduce(
        operator.add, [item if isinstance(item, Ledger) else Ledger.read(item) for item in given]
    )
    analysis = Analysis(total.analysis)
    drawn, order = only(ReleasedWords, asked), asked["order"]
    kind = kind_of(drawn["release"], analysis, published=drawn["as_published"])
    if order is None:
        if total.orders.size > 1:
            held = ", ".join(f"{value:g}" for value in total.orders)
            raise UsageError(f"the ledgers hold orders {held}; choose one with `order`")
        order = float(total.orders[0])
    total.row(order)
    if external and analysis is not Analysis.TIGHT:
        raise UsageError(f"`external` goes with the tight analysis, the ledgers hold {analysis}")
    others = External.of(external, order=order)
    spent = spendings(total.rounds)
    plan = choose_plan_for(
        kind,
        [(each.mechanism, each.queries) for each in spent],
        delta=total.delta,
        order=float(order),
        beta=drawn["beta"],
        sigma=drawn["sigma_release"],
    )
    plan = charging_of(analysis).plan(plan, as_published=drawn["as_published"])
    least = least_delta(spent, delta=total.delta, external=others)
    if total.delta < least:
        raise ParameterError(
            f"these rounds together need a `delta` of at least {least:.2g}, they were charged for "
            f"{total.delta:g}: floating-point noise is not negligible beside it"
        )
    known = SpendRecord() if record is None else record
    prior = known.touching(total)
    if prior and not again and plan.publishes_draw:
        raise SpentError(
            f"these rounds were released before, {len(prior)} time(s); another draw costs "
            "privacy: publish the first report, or give `again` to be charged for all draws"
        )
    key = _fresh(asked["seed"])
    report = release_ledger(
        total,
        plan,
        key.aside("release"),
        prior=[past.draw for past in prior],
        recorded=recorded,
        warnings=cautions(*(each.mechanism for each in spent), delta=total.delta),
        external=others,
    )
    draw = plan.draw if plan.publishes_draw else None
    return Released(_named(report, key, began), total, known.after(total, draw))
