"""What the library does, one function a verb; the command line calls these and nothing else.

Votes go in as a path, an array, a table or an opened file; results come out frozen. A mechanism is
an instance, or a name with some of its parameters, the others in proportion to the run. Messages
name parameters in backticks, which the command line turns into its flags.
"""

from __future__ import annotations

import contextlib
import functools
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from pate_cli.arrays import Counts, Floats
from pate_cli.checks import check_orders
from pate_cli.errors import ParameterError, SpentError, UsageError, ValidityError
from pate_cli.ledger import Ledger, SpendRecord
from pate_cli.mechanisms import CLASSES, MechanismChoice, scored_from_parameters
from pate_cli.mechanisms.base import ComposedMechanism, Mechanism, RunShape, ScoredMechanism
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.noise import Noise
from pate_cli.pricing.accuracy import Accuracy, measure_accuracy
from pate_cli.pricing.compare import Compared, Comparison, compare_composed, compare_scored
from pate_cli.pricing.cost import TIGHT_ORDERS, Cost, CostAnalysis, TightCost, measure_cost
from pate_cli.pricing.growth import CostCurve, measure_growth
from pate_cli.pricing.sensitivity import Sensitivity, price_votes
from pate_cli.release.best import best_release
from pate_cli.release.door import release as release_ledger
from pate_cli.release.plan import ReleasePlan
from pate_cli.release.report import Quote, Report
from pate_cli.release.rule import choose_plan, choose_plan_for
from pate_cli.release.worst_case import Spending, data_independent_cost
from pate_cli.run import Account, Aggregation, ComposedAccount, TightAccount, run
from pate_cli.tuning import Goal, Grid, RuleOfThumb, Search, Tuned
from pate_cli.tuning import rule_of_thumb as by_rule_of_thumb
from pate_cli.tuning.source import TuneSource
from pate_cli.votes import VoteFile, open_votes
from pate_cli.votes.side_files import Truth, load_truth
from pate_cli.words import (
    DELTA,
    MIN_AGREEMENT,
    Analysis,
    Layout,
    MechanismName,
    Objective,
    OrderChoice,
    ReleaseKind,
)

__all__ = [
    "Released",
    "accuracy",
    "aggregate",
    "compare",
    "cost",
    "growth",
    "quote",
    "release",
    "rule_of_thumb",
    "smooth_sensitivity",
    "tune",
]

Votes: TypeAlias = Any
"""A path or URI, an array, a pyarrow.Table, or what `open_votes` yields."""
Progress: TypeAlias = Callable[[int], None]


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
    delta: float = DELTA,
    max_queries: int | None = None,
    max_answers: int | None = None,
    teachers_per_record: int = 1,
    layout: Layout | str | None = None,
    classes: int | None = None,
    teachers: int | None = None,
    seed: int | None = None,
    progress: Progress = lambda _rows: None,
    **parameters: Any,
) -> Aggregation:
    """Label queries by the teachers' noisy vote; labels, a public report, and a secret ledger.

    Args:
        votes: the teachers' votes.
        mechanism: the aggregator, or its name.
        release: what is published about the data-dependent ε: `upper`, `unbiased` or `none`.
        order, beta, sigma_release: λ, β and σ_SS of the release; by a public rule where left out.
        analysis: `tight`, or `paper` for the published one, which is no bound.
        as_published: charge the release as the paper does.
        delta: δ of the guarantee, in (0, 1).
        max_queries, max_answers: public caps.
        teachers_per_record: most teachers that one record may have trained.
        layout, classes, teachers: how to read the votes, as in `open_votes`.
        seed: reproducible noise for tests and papers; nothing drawn with it is private.
        progress: called with the number of rows of each finished batch.
        parameters: of a mechanism given by name, such as threshold, sigma1 or sigma2.

    Raises:
        PateError: votes that cannot be read, numbers out of range, and whatever else is refused.
    """
    noise = Noise.from_entropy() if seed is None else Noise.from_seed(seed)
    with _asked(
        votes,
        mechanism,
        parameters,
        teachers_per_record=teachers_per_record,
        layout=layout,
        classes=classes,
        teachers=teachers,
        max_queries=max_queries,
        max_answers=max_answers,
        delta=delta,
    ) as asked:
        account = asked.account(
            release, order, beta, sigma_release, analysis=Analysis(analysis), published=as_published
        )
        return run(
            asked.file.batches(limit=asked.queries),
            asked.mechanism,
            account,
            queries=asked.queries,
            max_answers=asked.max_answers,
            noise=noise,
            progress=progress,
            warnings=_assumptions(asked.file),
        )


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
    delta: float = DELTA,
    max_queries: int | None = None,
    max_answers: int | None = None,
    teachers_per_record: int = 1,
    layout: Layout | str | None = None,
    classes: int | None = None,
    teachers: int | None = None,
    progress: Progress = lambda _rows: None,
    **parameters: Any,
) -> Quote:
    """What `aggregate` would cost for all votes; every row is checked, nothing drawn or spent."""
    with _asked(
        votes,
        mechanism,
        parameters,
        teachers_per_record=teachers_per_record,
        layout=layout,
        classes=classes,
        teachers=teachers,
        max_queries=max_queries,
        max_answers=max_answers,
        delta=delta,
    ) as asked:
        account = asked.account(
            release, order, beta, sigma_release, analysis=Analysis(analysis), published=as_published
        )
        for batch in asked.file.batches(limit=asked.queries):
            progress(len(batch.counts))
        return account.quote(queries=asked.queries, max_answers=asked.max_answers)


def cost(
    votes: Votes,
    mechanism: Mechanism | MechanismChoice | str = MechanismName.CONFIDENT,
    *,
    orders: Sequence[float] | OrderChoice | str = OrderChoice.DEFAULT,
    analysis: Analysis | str = Analysis.TIGHT,
    delta: float = DELTA,
    max_queries: int | None = None,
    max_answers: int | None = None,
    teachers_per_record: int = 1,
    layout: Layout | str | None = None,
    classes: int | None = None,
    teachers: int | None = None,
    **parameters: Any,
) -> Cost:
    """What the votes would cost by step, order and query. SECRET: it describes the votes.

    Args:
        orders: Rényi orders to try; `default`, or `moments` for the 2017 paper's.

    The other arguments and errors are those of `aggregate`.
    """
    with _asked(
        votes,
        mechanism,
        parameters,
        teachers_per_record=teachers_per_record,
        layout=layout,
        classes=classes,
        teachers=teachers,
        max_queries=max_queries,
        max_answers=max_answers,
        delta=delta,
    ) as asked:
        scored = asked.scored
        wanted, charged = _orders(orders, Analysis(analysis)), _cost_analysis(Analysis(analysis))
        summary = measure_cost(
            lambda: asked.batches(scored), orders=wanted, delta=delta, analysis=charged
        )
        spent = [Spending(scored, asked.queries, asked.max_answers)]
        return Cost(
            summary=summary,
            analysis=charged.name,
            mechanism=scored.parameters(),
            max_answers=asked.max_answers,
            delta=delta,
            for_all_votes=data_independent_cost(spent, delta=delta, plan=None),
            ids=np.concatenate(
                [np.asarray(batch.ids) for batch in asked.file.batches(limit=asked.queries)]
            ),
        )


def compare(
    votes: Votes,
    mechanism: MechanismChoice | str = MechanismName.CONFIDENT,
    *,
    analysis: Analysis | str = Analysis.TIGHT,
    orders: Sequence[float] | OrderChoice | str = OrderChoice.DEFAULT,
    delta: float = DELTA,
    max_queries: int | None = None,
    max_answers: int | None = None,
    teachers_per_record: int = 1,
    layout: Layout | str | None = None,
    classes: int | None = None,
    teachers: int | None = None,
    **parameters: Any,
) -> Compared:
    """Every mechanism that applies, at as many expected answers as the one given. SECRET.

    Each takes the given parameters that it knows, and its defaults otherwise. Arguments and errors
    are those of `cost`.
    """
    choice = _choice(mechanism, parameters, teachers_per_record)
    with _asked(
        votes,
        choice,
        {},
        teachers_per_record=teachers_per_record,
        layout=layout,
        classes=classes,
        teachers=teachers,
        max_queries=max_queries,
        max_answers=max_answers,
        delta=delta,
    ) as asked:
        scored = asked.scored
        summary = measure_cost(
            lambda: asked.batches(scored),
            orders=_orders(orders, Analysis(analysis)),
            delta=delta,
            analysis=_cost_analysis(Analysis(analysis)),
        )
        matched = min(float(asked.max_answers), summary.expected_answers)
        rows = [
            _compared(asked, other, matched)
            for name in CLASSES
            if (other := choice.among(name)).complete
        ]
        return Compared(tuple(rows), matched, delta)


def accuracy(
    votes: Votes,
    truth: Truth | str | PathLike[str],
    *,
    delta: float = DELTA,
    max_queries: int | None = None,
    teachers_per_record: int = 1,
    layout: Layout | str | None = None,
    classes: int | None = None,
    teachers: int | None = None,
) -> Accuracy:
    """How often labels of gnmax and lnmax are right and what they cost, over a range of noise.

    SECRET. `truth` holds the true labels of the queries; other arguments as in `aggregate`.
    """
    known = truth if isinstance(truth, Truth) else load_truth(Path(truth))
    with open_votes(votes, layout=_layout(layout), classes=classes, teachers=teachers) as file:
        queries, _ = _count(file, max_queries, None)

        def batches() -> Iterator[tuple[Counts, Any]]:
            for batch in file.batches(limit=queries):
                yield batch.counts, known.of(batch.ids, batch.first_row, classes=file.classes)

        points = measure_accuracy(
            batches,
            teachers=file.teachers,
            classes=file.classes,
            delta=delta,
            teachers_per_record=teachers_per_record,
        )
        return Accuracy(tuple(points), queries, delta)


def growth(
    votes: Votes,
    mechanism: MechanismChoice | str = MechanismName.CONFIDENT,
    *,
    delta: float = DELTA,
    max_queries: int | None = None,
    teachers_per_record: int = 1,
    layout: Layout | str | None = None,
    classes: int | None = None,
    teachers: int | None = None,
    **parameters: Any,
) -> dict[str, CostCurve]:
    """How the cost grows with the answers, for every mechanism with a Rényi cost. SECRET."""
    choice = _choice(mechanism, parameters, teachers_per_record)
    with open_votes(votes, layout=_layout(layout), classes=classes, teachers=teachers) as file:
        queries, _ = _count(file, max_queries, None)
        curves = {}
        for name in CLASSES:
            other = choice.among(name)
            asked = _Asked(file, other, queries, queries, delta)
            if other.complete and not other.composed:
                curves[name.value] = measure_growth(asked.batches(asked.scored), delta=delta)
        return curves


def smooth_sensitivity(
    votes: Votes,
    mechanism: Mechanism | MechanismChoice | str = MechanismName.CONFIDENT,
    *,
    release: ReleaseKind | str | None = None,
    order: float | None = None,
    beta: float | None = None,
    analysis: Analysis | str = Analysis.TIGHT,
    delta: float = DELTA,
    max_queries: int | None = None,
    teachers_per_record: int = 1,
    layout: Layout | str | None = None,
    classes: int | None = None,
    teachers: int | None = None,
    **parameters: Any,
) -> Sensitivity:
    """How far one record could move the cost of the votes, smoothed over distances. SECRET.

    Arguments as in `aggregate`; `paper` follows Algorithms 3 to 5.

    Raises:
        ValidityError: the published conditions C5 or C6 fail.
    """
    kind, analysis = _kind(release, Analysis(analysis), published=False), Analysis(analysis)
    if kind is ReleaseKind.NONE:
        raise UsageError("`release` none needs no smooth sensitivity; give upper or unbiased")
    with _asked(
        votes,
        mechanism,
        parameters,
        teachers_per_record=teachers_per_record,
        layout=layout,
        classes=classes,
        teachers=teachers,
        max_queries=max_queries,
        max_answers=None,
        delta=delta,
    ) as asked:
        scored = asked.scored
        plan = choose_plan(
            kind, mechanism=scored, queries=asked.queries, delta=delta, order=order, beta=beta
        )
        verdicts: list[dict[str, Any]] = []
        conversion = None
        if analysis is Analysis.PAPER:
            from pate_cli.published.account import PublishedPlan, published_price

            verdicts = _conditions(scored, plan)
            plan = PublishedPlan.of(plan)
            price = published_price(asked.batches(scored), scored, plan)
            conversion = plan.conversion(delta - plan.delta_shift)
        else:
            price = price_votes(asked.batches(scored), scored, order=plan.order, beta=plan.beta)
        best = best_release(kind, price, order=plan.order, delta=delta, conversion=conversion)
        return Sensitivity(price, plan, best, scored.parameters(), asked.queries, tuple(verdicts))


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
    record: SpendRecord | None = None,
    again: bool = False,
    seed: int | None = None,
) -> Released:
    """Compose ledgers and publish one sanitized (ε, δ) for all they hold.

    Args:
        ledgers: of one or several rounds on the same teachers, or their files.
        release, order, beta, sigma_release, as_published, seed: as in `aggregate`.
        record: earlier draws; a second one from the same rounds is refused, or charged.
        again: draw again all the same.

    Raises:
        SpentError: the rounds were released before.
        LedgerError: a ledger is damaged, or does not fit the others.
    """
    given = [ledgers] if isinstance(ledgers, Ledger | str | PathLike) else list(ledgers)
    total = functools.reduce(
        operator.add, [item if isinstance(item, Ledger) else Ledger.read(item) for item in given]
    )
    analysis = Analysis(total.analysis)
    kind = _kind(release, analysis, published=as_published)
    if order is None:
        if total.orders.size > 1:
            held = ", ".join(f"{value:g}" for value in total.orders)
            raise UsageError(f"the ledgers hold orders {held}; choose one with `order`")
        order = float(total.orders[0])
    total.row(order)
    plan = choose_plan_for(
        kind,
        [(scored_from_parameters(done.mechanism), done.queries) for done in total.rounds],
        delta=total.delta,
        order=float(order),
        beta=beta,
        sigma=sigma_release,
    )
    if analysis is Analysis.PAPER:
        from pate_cli.published.account import PublishedPlan

        plan = PublishedPlan.of(plan, as_published=as_published)
    known = SpendRecord() if record is None else record
    prior = known.touching(total)
    if prior and not again and plan.publishes_draw:
        raise SpentError(
            f"these rounds were released before, {len(prior)} time(s); another draw costs "
            "privacy: publish the first report, or give `again` to be charged for all draws"
        )
    noise = Noise.from_entropy() if seed is None else Noise.from_seed(seed)
    report = release_ledger(total, plan, noise, prior=[past.draw for past in prior])
    draw = plan.draw if plan.publishes_draw else None
    return Released(report, total, known.after(total, draw))


def tune(
    votes: Votes | None = None,
    *,
    target_epsilon: float | None = None,
    answers: float | None = None,
    objective: Objective | str = Objective.ANSWERS,
    min_agreement: float = MIN_AGREEMENT,
    release: ReleaseKind | str | None = None,
    delta: float = DELTA,
    thresholds: Sequence[float] | None = None,
    sigmas1: Sequence[float] | None = None,
    sigmas2: Sequence[float] | None = None,
    data_independent: bool = False,
    synthetic: str | None = None,
    public_votes: bool = False,
    queries: int | None = None,
    max_queries: int | None = None,
    truth: Truth | str | PathLike[str] | None = None,
    teachers_per_record: int = 1,
    layout: Layout | str | None = None,
    classes: int | None = None,
    teachers: int | None = None,
    progress: Callable[[int, int], None] = lambda _done, _of: None,
    interrupted: Callable[[], None] = lambda: None,
) -> Tuned:
    """Find threshold, noise and release parameters of Confident-GNMax for a goal.

    SECRET, unless the votes are public or made up: settings chosen on votes tell about them.

    Args:
        votes: the votes; None with `synthetic`, or with `data_independent` and a shape.
        target_epsilon: most expected answers at this published ε or less.
        answers: least ε for so many expected answers; with a target the best agreement.
        objective: with only a target, `answers` or `agreement`.
        min_agreement: least expected share of answers that equal the plurality.
        release: as in `aggregate`.
        thresholds, sigmas1, sigmas2: values to try (votes); a grid in proportion if left out.
        data_independent: ε for all votes, met always by a cap on answers.
        synthetic: made-up votes, `teachers=250,classes=10,queries=1000,agreement=0.85,…`.
        public_votes: the caller asserts that the votes are public.
        queries: without votes, how many there are.
        truth: true labels, to estimate accuracy from below.
        progress: called after every step with 1 and with how many there are at most.
        interrupted: called when a search is broken off (KeyboardInterrupt) and its best so far
            is about to be priced.

    Raises:
        UnreachableError: no setting meets the goal; the message says what can be had.
    """
    kind = _tuned_kind(release, data_independent=data_independent)
    source = TuneSource(
        votes=votes,
        synthetic=synthetic,
        layout=_layout(layout),
        classes=classes,
        teachers=teachers,
        queries=queries,
        max_queries=max_queries,
        truth=truth,
        public=public_votes,
        teachers_per_record=teachers_per_record,
    )
    source.check(data_independent=kind is ReleaseKind.NONE)
    goal = Goal(
        delta=delta,
        release=kind,
        target_epsilon=target_epsilon,
        answers=answers,
        objective=Objective(objective),
        min_agreement=min_agreement,
    )
    sample, basis = source.sample()
    grid = Grid.for_teachers(
        sample.teachers, thresholds=thresholds, sigmas1=sigmas1, sigmas2=sigmas2
    )
    search = Search(sample, grid, goal)
    try:
        found = search.run(lambda done: progress(done, search.steps))
    except KeyboardInterrupt:
        interrupted()
        best = search.best_so_far()
        if best is None:
            raise
        found = best
    return replace(
        found, basis=basis, public=source.releasable, votes=source.name, words=tuple(source.words)
    )


def rule_of_thumb(
    target_epsilon: float,
    *,
    teachers: int | None,
    classes: int | None,
    queries: int | None,
    threshold: float | None = None,
    sigma1: float | None = None,
    sigma2: float | None = None,
    release: ReleaseKind | str | None = None,
    delta: float = DELTA,
    teachers_per_record: int = 1,
) -> RuleOfThumb:
    """Release parameters by rule for a target, without votes and without a search; public."""
    kind = _tuned_kind(release, data_independent=False)
    if kind is ReleaseKind.NONE:
        raise UsageError("`rule_of_thumb` is about a release")
    source = TuneSource(
        teachers=teachers,
        classes=classes,
        queries=queries,
        teachers_per_record=teachers_per_record,
    )
    settled = {"threshold": threshold, "sigma1": sigma1, "sigma2": sigma2}
    given = {name: value for name, value in settled.items() if value is not None}
    tau, m, k1 = source.shape
    shape = RunShape(
        teachers=tau,
        classes=m,
        queries=k1,
        delta=delta,
        teachers_per_record=teachers_per_record,
    )
    return by_rule_of_thumb(
        kind,
        mechanism=ConfidentGNMax.for_run(shape, given),
        queries=k1,
        target_epsilon=target_epsilon,
        delta=delta,
    )


@dataclass(frozen=True)
class _Asked:
    """An opened file, the mechanism it is asked, and the public numbers of the run."""

    file: VoteFile
    choice: Mechanism | MechanismChoice
    queries: int
    max_answers: int
    delta: float

    @functools.cached_property
    def mechanism(self) -> Mechanism:
        """The mechanism, built for this run."""
        if not isinstance(self.choice, MechanismChoice):
            return self.choice
        return self.choice.build(
            teachers=self.file.teachers,
            classes=self.file.classes,
            queries=self.queries,
            delta=self.delta,
        )

    @property
    def scored(self) -> ScoredMechanism:
        """The mechanism, if it has a Rényi cost; UsageError if not."""
        if not isinstance(self.mechanism, ScoredMechanism):
            raise UsageError(
                f"{self.mechanism.name} has no Renyi cost; pate aggregate --dry-run prints its "
                "epsilon"
            )
        return self.mechanism

    def batches(self, mechanism: ScoredMechanism) -> Iterator[tuple[ScoredMechanism, Counts]]:
        """The histograms, each batch with the mechanism bound to its rows."""
        for batch in self.file.batches(limit=self.queries):
            yield mechanism.for_rows(batch.ids, batch.first_row), batch.counts

    def account(
        self,
        release: ReleaseKind | str | None,
        order: float | None,
        beta: float | None,
        sigma: float | None,
        *,
        analysis: Analysis,
        published: bool,
    ) -> Account:
        """How the run is charged, fixed before any vote is seen."""
        kind = _kind(release, analysis, published=published)
        if isinstance(self.mechanism, ComposedMechanism):
            name = self.mechanism.name
            if release is not None and kind is not ReleaseKind.NONE:
                raise UsageError(f"`release` {kind} does not go with {name}: nothing to sanitize")
            if analysis is not Analysis.TIGHT:
                raise UsageError(f"`analysis` {analysis} does not go with {name}")
            return ComposedAccount(self.mechanism, queries=self.queries, delta=self.delta)
        scored = self.scored
        plan = choose_plan(
            kind,
            mechanism=scored,
            queries=self.queries,
            delta=self.delta,
            order=order,
            beta=beta,
            sigma=sigma,
        )
        if analysis is Analysis.TIGHT:
            return TightAccount(scored, plan)
        from pate_cli.published.account import PublishedAccount, PublishedPlan

        return PublishedAccount(scored, PublishedPlan.of(plan, as_published=published))


@contextlib.contextmanager
def _asked(
    votes: Votes,
    mechanism: Mechanism | MechanismChoice | str,
    parameters: dict[str, Any],
    *,
    teachers_per_record: int,
    layout: Layout | str | None,
    classes: int | None,
    teachers: int | None,
    max_queries: int | None,
    max_answers: int | None,
    delta: float,
) -> Iterator[_Asked]:
    choice: Mechanism | MechanismChoice
    if isinstance(mechanism, Mechanism):
        if parameters:
            raise UsageError(f"{next(iter(parameters))} is settled by the mechanism that is given")
        choice = mechanism
    else:
        choice = _choice(mechanism, parameters, teachers_per_record)
    with open_votes(votes, layout=_layout(layout), classes=classes, teachers=teachers) as file:
        if isinstance(choice, Mechanism):
            for name in ("teachers", "classes"):
                if getattr(choice, name) != getattr(file, name):
                    raise ParameterError(
                        f"the mechanism is for {getattr(choice, name)} {name}, the votes have "
                        f"{getattr(file, name)}"
                    )
        queries, cap = _count(file, max_queries, max_answers)
        yield _Asked(file, choice, queries, cap, delta)


def _choice(
    mechanism: MechanismChoice | str, parameters: dict[str, Any], teachers_per_record: int
) -> MechanismChoice:
    if isinstance(mechanism, MechanismChoice):
        return mechanism
    try:
        name = MechanismName(mechanism)
    except ValueError:
        raise UsageError(f"no mechanism {mechanism!r}; there are {', '.join(CLASSES)}") from None
    return MechanismChoice(name, parameters, teachers_per_record)


def _layout(layout: Layout | str | None) -> Layout | None:
    return None if layout is None else Layout(layout)


def _count(file: VoteFile, max_queries: int | None, max_answers: int | None) -> tuple[int, int]:
    """(k1, k2): the rows that are asked and the public cap on answers, both within the file."""
    queries = file.limited(max_queries)
    return queries, min(queries, file.limited(max_answers, name="max_answers"))


def _kind(release: ReleaseKind | str | None, analysis: Analysis, *, published: bool) -> ReleaseKind:
    """What is published, or its default: a bound, except where the paper has estimates only."""
    if published and analysis is not Analysis.PAPER:
        raise UsageError("`as_published` goes with `analysis` paper")
    if release is not None:
        return ReleaseKind(release)
    return ReleaseKind.UNBIASED if published else ReleaseKind.UPPER


def _tuned_kind(release: ReleaseKind | str | None, *, data_independent: bool) -> ReleaseKind:
    """What is published: a bound unless told otherwise, nothing sanitized for all votes."""
    if not data_independent:
        return ReleaseKind(release or ReleaseKind.UPPER)
    if release is not None and ReleaseKind(release) is not ReleaseKind.NONE:
        raise UsageError(
            f"`data_independent` publishes no data-dependent epsilon; leave out `release` {release}"
        )
    return ReleaseKind.NONE


def _orders(orders: Sequence[float] | OrderChoice | str, analysis: Analysis) -> Floats:
    if not isinstance(orders, str):
        return check_orders(orders)
    if analysis is Analysis.TIGHT and OrderChoice(orders) is OrderChoice.DEFAULT:
        return TIGHT_ORDERS
    from pate_cli.published import MOMENT_ORDERS, TABLE_ORDERS

    moments = OrderChoice(orders) is OrderChoice.MOMENTS
    return np.asarray(MOMENT_ORDERS if moments else TABLE_ORDERS, dtype=np.float64)


def _cost_analysis(analysis: Analysis) -> CostAnalysis:
    if analysis is Analysis.TIGHT:
        return TightCost()
    from pate_cli.published.account import PublishedCost

    return PublishedCost()


def _compared(asked: _Asked, choice: MechanismChoice, answers: float) -> Comparison:
    """One mechanism at the matched number of answers."""
    if choice.composed:

        def build(refusals: int) -> Any:
            afforded = choice.affording(refusals)
            return _Asked(asked.file, afforded, asked.queries, asked.queries, asked.delta).mechanism

        def counts() -> Iterator[Counts]:
            return (batch.counts for batch in asked.file.batches(limit=asked.queries))

        return compare_composed(counts, build, answers=answers, delta=asked.delta)
    scored = _Asked(asked.file, choice, asked.queries, asked.queries, asked.delta).scored
    return compare_scored(lambda: asked.batches(scored), scored, answers=answers, delta=asked.delta)


def _conditions(mechanism: ScoredMechanism, plan: ReleasePlan) -> list[dict[str, Any]]:
    """Verdicts on C5 and C6 where there is a σ2; ValidityError at the first that fails."""
    from pate_cli.published import check_conditions

    sigma = mechanism.parameters().get("sigma2")
    if sigma is None:
        return []
    verdicts = check_conditions(
        sigma=sigma, classes=mechanism.classes, orders=np.array([plan.order])
    )
    for verdict in verdicts:
        if not verdict.holds:
            raise ValidityError(
                f"smooth sensitivity is not valid at order {plan.order:g}: {verdict.reason}; "
                "try another `order` or `analysis` tight"
            )
    return [asdict(verdict) for verdict in verdicts]


def _assumptions(file: VoteFile) -> list[str]:
    """What a guarantee takes as public although it was read off the votes."""
    found = []
    if file.classes_from_data:
        found.append(
            f"The number of classes, {file.classes}, was read off the votes; every statement "
            "takes it as public knowledge. Give --classes to settle it."
        )
    if file.rows_from_data:
        found.append(
            "Votes may be missing in a long-form file, so which queries it holds depends on the "
            "votes; every statement takes the list of queries as public knowledge."
        )
    return found
