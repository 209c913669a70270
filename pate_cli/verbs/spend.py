"""The verbs that spend privacy, or say what they would spend: aggregate, quote, release."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from typing import Any, TypeAlias

from pate_cli.core.checks import check_positive
from pate_cli.core.clock import now
from pate_cli.core.errors import (
    ParameterError,
    SpentError,
    UnreachableError,
    UsageError,
)
from pate_cli.core.noise import RunKey
from pate_cli.core.words import (
    DELTA,
    Analysis,
    Bound,
    LabelFormat,
    LabelsAs,
    Layout,
    MechanismName,
    ReleaseKind,
)
from pate_cli.disclosure.cautions import cautions, hollow
from pate_cli.disclosure.door import release as release_ledger
from pate_cli.disclosure.external import External, ExternalCurve, ExternalPair
from pate_cli.disclosure.guarantee import adjacency, read_off_warning
from pate_cli.disclosure.ledger import Ledger, Round, SpendRecord
from pate_cli.disclosure.report import LabelFile, Quote, RefusedError, Report
from pate_cli.disclosure.rule import choose_plan_for
from pate_cli.disclosure.target import TargetPlan
from pate_cli.disclosure.worst_case import least_delta, spendings
from pate_cli.files.owner import owned_name
from pate_cli.files.part_folder import PartFolder, digest_of_parts
from pate_cli.labels.forms import check_form
from pate_cli.labels.labels import NOTHING, Labels, concatenate
from pate_cli.mechanisms import MechanismChoice
from pate_cli.mechanisms.base import ComposedMechanism, Mechanism
from pate_cli.run.accounts import Account, PublicAccount, TargetAccount
from pate_cli.run.checkpoint import Checkpoint
from pate_cli.run.labelling import Aggregation, PartPlace, Staged, run, run_in_parts
from pate_cli.run.passes import nothing_seen
from pate_cli.verbs.analyses import analysis_of
from pate_cli.verbs.asked import Asked, Progress, Votes, asking, kind_of
from pate_cli.verbs.attempts import AttemptBook
from pate_cli.votes import Queries


def aggregate(
    votes: Votes,
    mechanism: Mechanism | MechanismChoice | str = MechanismName.CONFIDENT,
    *,
    release: ReleaseKind | str | None = None,
    order: float | None = None,
    beta: float | None = None,
    sigma_release: float | None = None,
    analysis: Analysis | str = Analysis.TIGHT,
    as_published: bool = False,
    keep_ledger: bool = False,
    target_epsilon: float | None = None,
    refusal_epsilon: float | None = None,
    bound: Bound | str = Bound.AUTO,
    budget: float | None = None,
    record: str | PathLike[str] | None = None,
    max_epsilon: float | None = None,
    delta: float = DELTA,
    max_queries: int | None = None,
    max_answers: int | None = None,
    teachers_per_record: int = 1,
    layout: Layout | str | None = None,
    classes: int | None = None,
    teachers: int | None = None,
    queries: Queries | None = None,
    seed: int | None = None,
    workers: int = 1,
    engine: str = "local",
    write: Callable[[Labels], None] | None = None,
    parts: PartFolder | str | PathLike[str] | None = None,
    label_format: LabelFormat | str = LabelFormat.PARQUET,
    labels_as: LabelsAs | str | None = None,
    checkpoint: str | PathLike[str] | None = None,
    progress: Progress = nothing_seen,
    **parameters: Any,
) -> Aggregation:
    """Label queries by the teachers' noisy vote; labels, a public report, perhaps a secret ledger.

    Args:
        votes: the teachers' votes.
        mechanism: the aggregator, or its name.
        release: what is published about the data-dependent ε: `none` if left out, since the ε for
            all votes is what can be signed and mostly the smaller one; `upper` (if left out with
            an order, β or σ_SS given) or `unbiased`.
        order, beta, sigma_release: λ, β and σ_SS of the release; by a public rule where left out.
        analysis: `tight`, or `paper` for the published one, which is no bound.
        as_published: charge the release as the paper does.
        keep_ledger: keep an account of the votes for a later `release`; a run with a sanitized ε
            or with an order for one has it anyway.
        target_epsilon: E, stated in advance: labels are released by a coin that makes (E, δ) hold
            for every vote file, and nothing else is published.
        refusal_epsilon: η, what a refusal costs; E/2 if left out.
        bound: how the cost of the votes is bounded for the coin.
        budget: refuse an attempt that would take the record's total beyond it.
        record: file of attempts at a target; this one is in it, as pending, once all rows are known
            to be votes and before anything is made of them, and counts E should it not end, for
            whatever reason. Without one the caller keeps count.
        max_epsilon: refuse, before anything is drawn or spent, a run that could cost more: all
            that it publishes, whatever the votes, or its target if that is less.
        delta: δ of the guarantee, in (0, 1); at least what `core.noise.smallest_delta` says.
        max_queries, max_answers: public caps; with a target and without `max_queries` the rows
            follow from E by a public rule.
        teachers_per_record: most teachers that one record may have trained.
        layout, classes, teachers, queries: how to read the votes, as in `open_votes`. Where the
            number of classes or, in long form with missing votes, the list of queries is not given
            but read off the votes, the report claims nothing. Votes that count differently are
            opened with `groups` first: each group then has its own ε in the report.
        seed: reproducible noise for tests and papers; nothing drawn with it is private.
        workers: processes that share the work on a large file; labels do not depend on it. More
            than one needs a main module that can be imported without doing anything.
        engine: where they are: `local`, `dask` for a Dask cluster on this machine, or the address
            of a scheduler, whose workers must see the votes under the same names.
        write: given the labels a batch at a time, in order, each with the metadata of all; they are
            then not kept, and must not leave before all is done.
        parts: a folder, by path or address, into which workers write the labels themselves,
            wherever they are, in parts of `label_format`. They are in place after `commit` of the
            result's `staged`.
        labels_as: in those parts, what a row is where a query has several labels; see
            `LabelWriter`.
        checkpoint: a folder in which the run's key and what is finished are kept, so that a run
            with the same arguments goes on there, with the same labels, if this one is cut short.
            Call `end` on the result's `checkpoint` once its labels and report are in place.
        progress: called with the number of rows of each finished part; for a target, whose test
            reads the rows before they are labelled, first as `progress(0, all)` and then with the
            share of `all` that is done.
        parameters: of a mechanism given by name, such as threshold, sigma1 or sigma2.

    Raises:
        RefusedError: the coin came out against the labels; it carries the public report.
        PateError: votes that cannot be read, numbers out of range, and whatever else is refused.
    """
    began = now()  # before anything is spent, should it be refused
    target = _target(
        target_epsilon, refusal_epsilon, budget, record, bound=Bound(bound), delta=delta
    )
    shown = None if labels_as is None else LabelsAs(labels_as)
    if parts is not None and not isinstance(parts, PartFolder):
        parts = PartFolder(fspath(parts))
        parts.check()
    with asking(
        votes,
        mechanism,
        parameters,
        teachers_per_record=teachers_per_record,
        layout=layout,
        classes=classes,
        teachers=teachers,
        listed=queries,
        max_queries=max_queries,
        max_answers=max_answers,
        delta=delta,
        workers=workers,
        engine=engine,
    ) as asked:
        if parts is not None:
            parts.refuse_read(asked.file.read)
            check_form(LabelFormat(label_format), shown, asked.file.label_set)
        drawn = (release, order, beta, sigma_release)
        asked, account = _charged(
            asked,
            target,
            drawn,
            analysis=Analysis(analysis),
            published=as_published,
            ledger=keep_ledger,
            rows_given=max_queries is not None,
        )
        _refuse_dearer(asked, account, max_epsilon)
        warned = cautions(asked.mechanism, delta=delta)
        key, resumed = RunKey.fresh() if seed is None else RunKey.from_seed(seed), None
        if checkpoint is not None:
            # What is kept of finished rows is not the same for a file and for a folder of parts.
            form = None if parts is None else (LabelFormat(label_format), shown)
            settings = (*drawn, analysis, as_published, keep_ledger, seed, target, form)
            resumed = Checkpoint.of(checkpoint, asked.described(settings), seed=seed)
            key, asked.passes.checkpoint = resumed.key, resumed
        if target is not None:
            try:
                target.decide(asked, account, key, progress=progress)
            except RefusedError as error:
                if resumed is not None:
                    resumed.end()
                raise RefusedError(str(error), _named(error.report, key, began)) from None
        if parts is not None:
            # What goes on after a kill finds its parts again; else they are for the next to sweep.
            attempt = owned_name() if resumed is None else key.name("parts")
            place = PartPlace(parts, attempt, LabelFormat(label_format), shown)
            try:
                settled, written = run_in_parts(
                    asked.passes,
                    asked.mechanism,
                    account,
                    queries=asked.queries,
                    max_answers=asked.max_answers,
                    key=key,
                    place=place,
                    progress=progress,
                    warnings=warned,
                    facts=asked.file.facts,
                )
            except BaseException:
                if resumed is None:
                    place.abort()
                raise
            staged = Staged(place, tuple(written), asked.file.read)
            file = LabelFile.of(digest_of_parts(written), place.label_format)
            report = replace(_named(settled.report, key, began), labels=file)
            return Aggregation(NOTHING, report, settled.ledger, resumed, staged)
        kept: list[Labels] = []
        settled = run(
            asked.passes,
            asked.mechanism,
            account,
            queries=asked.queries,
            max_answers=asked.max_answers,
            key=key,
            write=kept.append if write is None else write,
            progress=progress,
            warnings=warned,
            facts=asked.file.facts,
        )
        labels = NOTHING if write is not None else concatenate(kept)
        return Aggregation(labels, _named(settled.report, key, began), settled.ledger, resumed)


def _named(report: Report, key: RunKey, began: str) -> Report:
    """The report with the name of its run and the time when that began."""
    return replace(report, run=key.run_id, time=began)


def quote(
    votes: Votes,
    mechanism: Mechanism | MechanismChoice | str = MechanismName.CONFIDENT,
    *,
    release: ReleaseKind | str | None = None,
    order: float | None = None,
    beta: float | None = None,
    sigma_release: float | None = None,
    analysis: Analysis | str = Analysis.TIGHT,
    as_published: bool = False,
    keep_ledger: bool = False,
    target_epsilon: float | None = None,
    refusal_epsilon: float | None = None,
    bound: Bound | str = Bound.AUTO,
    budget: float | None = None,
    record: str | PathLike[str] | None = None,
    max_epsilon: float | None = None,
    delta: float = DELTA,
    max_queries: int | None = None,
    max_answers: int | None = None,
    teachers_per_record: int = 1,
    layout: Layout | str | None = None,
    classes: int | None = None,
    teachers: int | None = None,
    queries: Queries | None = None,
    progress: Progress = nothing_seen,
    **parameters: Any,
) -> Quote:
    """What `aggregate` would cost for all votes; every row is checked, nothing drawn or spent."""
    target = _target(
        target_epsilon, refusal_epsilon, budget, record, bound=Bound(bound), delta=delta
    )
    with asking(
        votes,
        mechanism,
        parameters,
        teachers_per_record=teachers_per_record,
        layout=layout,
        classes=classes,
        teachers=teachers,
        listed=queries,
        max_queries=max_queries,
        max_answers=max_answers,
        delta=delta,
    ) as asked:
        drawn = (release, order, beta, sigma_release)
        asked, account = _charged(
            asked,
            target,
            drawn,
            analysis=Analysis(analysis),
            published=as_published,
            ledger=keep_ledger,
            rows_given=max_queries is not None,
        )
        _refuse_dearer(asked, account, max_epsilon)
        for batch in asked.file.batches(limit=asked.queries):
            progress(len(batch.counts))
        price = account.quote(
            queries=asked.queries, max_answers=asked.max_answers, groups=asked.groups
        )
        gaps = tuple(read_off_warning(fact) for fact in asked.file.read_off)
        composed = isinstance(asked.mechanism, ComposedMechanism)
        warned = (
            *cautions(asked.mechanism, delta=delta),
            *hollow(price.epsilon, composed=composed),
        )
        planned = Round(
            id="",
            mechanism=price.mechanism,
            queries=price.queries,
            max_answers=price.max_answers,
            answers=0,
            **asked.file.facts.of_round,
        )
        return replace(
            price, sound=not gaps, warnings=(*gaps, *warned), adjacency=adjacency([planned])
        )


_Drawn: TypeAlias = tuple[ReleaseKind | str | None, float | None, float | None, float | None]
"""What is said about a sanitized release: its kind, λ, β and σ_SS."""


def _charged(
    asked: Asked,
    target: _Target | None,
    drawn: _Drawn,
    *,
    analysis: Analysis,
    published: bool,
    ledger: bool,
    rows_given: bool,
) -> tuple[Asked, Account]:
    """How a run is charged, fixed before any vote is seen, and the rows that it asks."""
    if target is None:
        account = asked.account(*drawn, analysis=analysis, published=published, ledger=ledger)
        return asked, account
    target.refuse_beside(drawn, analysis=analysis)
    return target.account(asked, rows_given=rows_given)


def _refuse_dearer(asked: Asked, account: Account, most: float | None) -> None:
    """UnreachableError for a run whose ε for all votes is above `max_epsilon`."""
    if most is None:
        return
    check_positive("`max_epsilon`", most)
    if isinstance(account, TargetAccount):
        price = min(account.public.epsilon, account.plan.epsilon)
    else:
        price = account.quote(queries=asked.queries, max_answers=asked.max_answers).epsilon
    if price > most:
        raise UnreachableError(
            f"this run would cost epsilon {price:.4f} at delta {asked.delta:g} in the worst case, "
            f"above `max_epsilon` {most:g}; nothing was drawn or spent. Lower `max_queries` or "
            "`max_answers`, take more noise, or state `target_epsilon`"
        )


@dataclass(frozen=True)
class _Target:
    """What is asked of a run with a target: the plan, and the record it is kept in."""

    plan: TargetPlan
    bound: Bound
    budget: float | None
    record: str | PathLike[str] | None

    def refuse_beside(self, drawn: _Drawn, *, analysis: Analysis) -> None:
        """UsageError for what contradicts a target."""
        kind, *numbers = drawn
        names = ("order", "beta", "sigma_release")
        given = [name for name, number in zip(names, numbers, strict=True) if number is not None]
        if kind not in (None, ReleaseKind.TARGET):
            given.insert(0, "release")
        if given:
            raise UsageError(
                f"`{given[0]}` does not go with `target_epsilon`: nothing is sanitized; the target "
                "itself is published"
            )
        if analysis is not Analysis.TIGHT:
            raise UsageError(f"`analysis` {analysis} does not go with `target_epsilon`")

    def account(self, asked: Asked, *, rows_given: bool) -> tuple[Asked, Account]:
        """How the run is charged, on as many rows as the public rule says if none were given.

        Raises:
            UnreachableError: the target is out of reach, or a composition exceeds it.
        """
        plan, mechanism = self.plan, asked.mechanism
        if isinstance(mechanism, ComposedMechanism):
            asked.check_delta()
            composed = PublicAccount(
                mechanism,
                queries=asked.queries,
                max_answers=asked.max_answers,
                delta=plan.delta,
            )
            quoted = composed.quote(queries=asked.queries, max_answers=asked.max_answers)
            if quoted.epsilon > plan.epsilon:
                raise UnreachableError(
                    f"{mechanism.name} has no Renyi cost to test, and costs {quoted.epsilon:g} for "
                    f"all votes, above the target {plan.epsilon:g}"
                )
            return asked, composed
        if not rows_given:
            asked = asked.by_rule(plan)
        asked.check_delta()
        return asked, TargetAccount(
            asked.scored,
            plan,
            bound=self.bound,
            queries=asked.queries,
            max_answers=asked.max_answers,
        )

    def decide(
        self,
        asked: Asked,
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
            price = account.quote(queries=asked.queries, max_answers=asked.max_answers).epsilon
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
        progress(0, (2 if tested is None else 4) * asked.queries)
        asked.passes.fingerprint(asked.mechanism, progress=progress)
        book.enter()
        with book.standing():
            passed = tested is None or tested.test(asked.passes, key, progress)
            spent = book.ended(passed=passed)
        if isinstance(account, TargetAccount):
            account.spent = spent
        if tested is not None and not passed:
            raise RefusedError(
                f"the labels did not pass the test of the target {plan.epsilon:g}; none are "
                f"released. This cost {plan.refusal_epsilon:g} at delta {plan.delta:g}",
                tested.refused(private=key.private, facts=asked.file.facts),
            )


def _target(
    epsilon: float | None,
    refusal_epsilon: float | None,
    budget: float | None,
    record: str | PathLike[str] | None,
    *,
    bound: Bound,
    delta: float,
) -> _Target | None:
    """The target, if there is one; UsageError for what makes no sense without."""
    if epsilon is not None:
        plan = TargetPlan.of(epsilon, delta=delta, refusal_epsilon=refusal_epsilon)
        return _Target(plan, bound, budget, record)
    for name, given in (
        ("refusal_epsilon", refusal_epsilon),
        ("budget", budget),
        ("record", record),
    ):
        if given is not None:
            raise UsageError(f"`{name}` goes with `target_epsilon`")
    return None


@dataclass(frozen=True)
class Released:
    """A report (public), the ledger it was drawn from (SECRET), and the record with that draw."""

    report: Report
    ledger: Ledger
    record: SpendRecord


def release(
    ledgers: Ledger | str | PathLike[str] | Sequence[Ledger | str | PathLike[str]],
    *,
    release: ReleaseKind | str | None = None,
    order: float | None = None,
    beta: float | None = None,
    sigma_release: float | None = None,
    as_published: bool = False,
    external: Sequence[ExternalCurve | ExternalPair | str | PathLike[str]] = (),
    record: SpendRecord | None = None,
    again: bool = False,
    recorded: bool = True,
    seed: int | None = None,
) -> Released:
    """Compose ledgers and publish one sanitized (ε, δ) for all they hold.

    Args:
        ledgers: of one or several rounds on the same teachers, or their files.
        release, order, beta, sigma_release, as_published, seed: as in `aggregate`.
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
    kind = kind_of(release, analysis, published=as_published)
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
        beta=beta,
        sigma=sigma_release,
    )
    plan = analysis_of(analysis).plan(plan, as_published=as_published)
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
    key = RunKey.fresh() if seed is None else RunKey.from_seed(seed)
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
