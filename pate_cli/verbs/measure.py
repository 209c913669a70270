"""The verbs that look at votes and print nothing public: cost, compare, accuracy and so on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from typing import Any

from pate_cli.core.arrays import Floats
from pate_cli.core.checks import check_orders
from pate_cli.core.errors import UsageError
from pate_cli.core.words import (
    DELTA,
    Analysis,
    Bound,
    Layout,
    MechanismName,
    OrderChoice,
    ReleaseKind,
)
from pate_cli.disclosure.profile import settled_bound
from pate_cli.disclosure.rule import choose_plan
from pate_cli.disclosure.target import TargetPlan
from pate_cli.disclosure.worst_case import Spending, data_independent_cost
from pate_cli.mechanisms import CLASSES, MechanismChoice
from pate_cli.mechanisms.base import Mechanism
from pate_cli.pricing.accuracy import Accuracy, measure_accuracy
from pate_cli.pricing.compare import Compared, Comparison, compare_composed, compare_scored
from pate_cli.pricing.cost import Cost, measure_cost, rows_at
from pate_cli.pricing.growth import CostCurve, measure_growth
from pate_cli.pricing.prospect import Prospect, measure_prospect
from pate_cli.pricing.sensitivity import Sensitivity
from pate_cli.run.engine import engine_for
from pate_cli.run.passes import FilePasses
from pate_cli.verbs.analyses import analysis_of
from pate_cli.verbs.asked import (
    Asked,
    Votes,
    asking,
    choice_of,
    count,
    kind_of,
    votes_per_record,
)
from pate_cli.votes import Queries, open_votes
from pate_cli.votes.beside.truth import Truth, truth_of

# Rows beyond those asked that are looked at, to see how many would pass.
_LOOK_AHEAD, _SLOW_LOOK_AHEAD = 10, 1


def cost(
    votes: Votes,
    mechanism: Mechanism | MechanismChoice | str = MechanismName.CONFIDENT,
    *,
    orders: Sequence[float] | OrderChoice | str = OrderChoice.DEFAULT,
    per_query: bool = True,
    analysis: Analysis | str = Analysis.TIGHT,
    target_epsilon: float | None = None,
    refusal_epsilon: float | None = None,
    bound: Bound | str = Bound.AUTO,
    delta: float = DELTA,
    workers: int = 1,
    engine: str = "local",
    max_queries: int | None = None,
    max_answers: int | None = None,
    teachers_per_record: int = 1,
    layout: Layout | str | None = None,
    classes: int | None = None,
    teachers: int | None = None,
    queries: Queries | None = None,
    **parameters: Any,
) -> Cost:
    """What the votes would cost by step, order and query. SECRET: it describes the votes.

    Args:
        orders: Rényi orders to try; `default`, or `moments` for the 2017 paper's.
        per_query: also tell the cost of every query, all in memory.
        target_epsilon, refusal_epsilon, bound: also tell how `aggregate` would fare with them; the
            rows are those that it would ask.

    The other arguments and errors are those of `aggregate`.
    """
    plan = None
    if target_epsilon is not None:
        plan = TargetPlan.of(target_epsilon, delta=delta, refusal_epsilon=refusal_epsilon)
        if Analysis(analysis) is not Analysis.TIGHT:
            raise UsageError(f"`analysis` {analysis} does not go with `target_epsilon`")
    elif refusal_epsilon is not None:
        raise UsageError("`refusal_epsilon` goes with `target_epsilon`")
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
        scored = asked.scored
        if plan is not None and max_queries is None:
            asked = asked.by_rule(plan)
        wanted, charged = _orders(orders, Analysis(analysis)), analysis_of(analysis).cost
        summary = measure_cost(asked.passes, scored, orders=wanted, delta=delta, analysis=charged)
        rows = None
        if per_query:
            rows = rows_at(charged, asked.passes, scored, order=summary.order)
        spent = [Spending(scored, asked.queries, asked.max_answers)]
        return Cost(
            summary=summary,
            analysis=charged.name,
            mechanism=scored.parameters(),
            max_answers=asked.max_answers,
            delta=delta,
            for_all_votes=data_independent_cost(spent, delta=delta, plan=None),
            rows=rows,
            target=None if plan is None else _prospect(asked, plan, Bound(bound)),
        )


def compare(
    votes: Votes,
    mechanism: MechanismChoice | str = MechanismName.CONFIDENT,
    *,
    analysis: Analysis | str = Analysis.TIGHT,
    orders: Sequence[float] | OrderChoice | str = OrderChoice.DEFAULT,
    delta: float = DELTA,
    workers: int = 1,
    engine: str = "local",
    max_queries: int | None = None,
    max_answers: int | None = None,
    teachers_per_record: int = 1,
    layout: Layout | str | None = None,
    classes: int | None = None,
    teachers: int | None = None,
    queries: Queries | None = None,
    **parameters: Any,
) -> Compared:
    """Every mechanism that applies, at as many expected answers as the one given. SECRET.

    Each takes the given parameters that it knows, and its defaults otherwise. Arguments and errors
    are those of `cost`.
    """
    choice = choice_of(mechanism, parameters, teachers_per_record)
    with asking(
        votes,
        choice,
        {},
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
        scored = asked.scored
        summary = measure_cost(
            asked.passes,
            scored,
            orders=_orders(orders, Analysis(analysis)),
            delta=delta,
            analysis=analysis_of(analysis).cost,
        )
        matched = min(float(asked.max_answers), summary.expected_answers)
        rows = [
            _compared(asked, other, matched)
            for name in CLASSES
            if (other := choice.among(name)).takes(asked.file.classes)
        ]
        return Compared(tuple(rows), matched, delta)


def accuracy(
    votes: Votes,
    truth: Truth | str | PathLike[str],
    *,
    delta: float = DELTA,
    workers: int = 1,
    engine: str = "local",
    max_queries: int | None = None,
    teachers_per_record: int = 1,
    layout: Layout | str | None = None,
    classes: int | None = None,
    teachers: int | None = None,
    queries: Queries | None = None,
) -> Accuracy:
    """How often labels of gnmax and lnmax are right and what they cost, over a range of noise.

    SECRET. `truth` holds the true labels of the queries; other arguments as in `aggregate`.
    """
    with (
        engine_for(engine, workers=workers) as place,
        open_votes(
            votes, layout=layout, classes=classes, teachers=teachers, queries=queries
        ) as file,
    ):
        asked, _ = count(file, max_queries, None)
        known = truth_of(truth, file.label_set, id_column=file.id_column)
        known.check_length(asked=asked, rows=file.queries, rows_per_query=file.rows_per_query)
        points = measure_accuracy(
            FilePasses(file, asked, place),
            known.named(file.class_names),
            teachers=file.teachers,
            classes=file.classes,
            delta=delta,
            teachers_per_record=votes_per_record(file, teachers_per_record),
        )
        return Accuracy(tuple(points), asked, delta)


def growth(
    votes: Votes,
    mechanism: MechanismChoice | str = MechanismName.CONFIDENT,
    *,
    delta: float = DELTA,
    workers: int = 1,
    engine: str = "local",
    max_queries: int | None = None,
    teachers_per_record: int = 1,
    layout: Layout | str | None = None,
    classes: int | None = None,
    teachers: int | None = None,
    queries: Queries | None = None,
    **parameters: Any,
) -> dict[str, CostCurve]:
    """How the cost grows with the answers, for every mechanism with a Rényi cost. SECRET."""
    choice = choice_of(mechanism, parameters, teachers_per_record)
    with (
        engine_for(engine, workers=workers) as place,
        open_votes(
            votes, layout=layout, classes=classes, teachers=teachers, queries=queries
        ) as file,
    ):
        rows, _ = count(file, max_queries, None)
        curves = {}
        for name in CLASSES:
            other = choice.among(name)
            asked = Asked(file, other, rows, rows, delta, place)
            if other.takes(file.classes) and not other.composed:
                curves[name.value] = measure_growth(asked.passes, asked.scored, delta=delta)
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
    workers: int = 1,
    engine: str = "local",
    max_queries: int | None = None,
    teachers_per_record: int = 1,
    layout: Layout | str | None = None,
    classes: int | None = None,
    teachers: int | None = None,
    queries: Queries | None = None,
    **parameters: Any,
) -> Sensitivity:
    """How far one record could move the cost of the votes, smoothed over distances. SECRET.

    Arguments as in `aggregate`; `paper` follows Algorithms 3 to 5.

    Raises:
        ValidityError: the published conditions C5 or C6 fail.
    """
    kind = kind_of(release, Analysis(analysis), published=False)
    if kind is ReleaseKind.NONE:
        raise UsageError("`release` none needs no smooth sensitivity; give upper or unbiased")
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
        max_answers=None,
        delta=delta,
        workers=workers,
        engine=engine,
    ) as asked:
        scored = asked.scored
        plan = choose_plan(
            kind, mechanism=scored, queries=asked.queries, delta=delta, order=order, beta=beta
        )
        return analysis_of(analysis).sensitivity(asked.passes, scored, plan, queries=asked.queries)


def _prospect(asked: Asked, plan: TargetPlan, bound: Bound) -> Prospect:
    """How a target would fare on the rows that are asked, and on some times as many."""
    scored = asked.scored
    bound = settled_bound(bound, scored, rows=asked.queries, orders=plan.orders)
    further = _LOOK_AHEAD if bound is Bound.TWO_TAIL else _SLOW_LOOK_AHEAD
    rows = min(further * asked.queries, asked.file.queries)
    return measure_prospect(
        replace(asked, queries=rows).passes,
        scored,
        plan,
        bound=bound,
        queries=asked.queries,
        max_answers=asked.max_answers,
    )


def _orders(orders: Sequence[float] | OrderChoice | str, analysis: Analysis) -> Floats:
    if not isinstance(orders, str):
        return check_orders(orders)
    return analysis_of(analysis).orders(OrderChoice(orders))


def _compared(asked: Asked, choice: MechanismChoice, answers: float) -> Comparison:
    """One mechanism at the matched number of answers."""
    if choice.composed:

        def build(refusals: int) -> Any:
            return replace(asked, choice=choice.affording(refusals)).mechanism

        return compare_composed(asked.passes, build, answers=answers, delta=asked.delta)
    scored = replace(asked, choice=choice).scored
    return compare_scored(asked.passes, scored, answers=answers, delta=asked.delta)
