"""The verbs whose results depend on the votes and are secret: cost, compare, smooth_sensitivity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pate_cli.accounting.few_votes import Few
from pate_cli.core.checks import check_orders
from pate_cli.core.errors import UsageError
from pate_cli.core.words import Bound, OrderChoice, ReleaseKind
from pate_cli.disclosure.target import TargetPlan, settled_bound
from pate_cli.mechanisms import CLASSES, MechanismChoice, mechanism_class
from pate_cli.mechanisms.base import Mechanism
from pate_cli.planning.cost import (
    TIGHT,
    Compared,
    VoteCost,
    compare_at,
    measure_cost,
    measure_target,
)
from pate_cli.planning.sanitized import Sensitivity, choose_plan, price_votes
from pate_cli.verbs.promise import stated_target
from pate_cli.verbs.request import Request, mechanism_of, published, requested
from pate_cli.votes.join import student

# `cost` computes pass probabilities on up to this multiple of the rows of the run.
_LOOK_AHEAD, _SLOW_LOOK_AHEAD = 10, 1


def measured_cost(asked: Mapping[str, Any]) -> VoteCost:
    """Return what the labels from these votes would cost, computed from the votes. SECRET.

    `asked` maps each parameter of `signatures.cost` to its value.
    """
    plan = stated_target(asked)
    with requested(asked) as request:
        if plan is not None:
            request = request.by_rule(plan, rows_given=asked["max_queries"] is not None)
        unmatched = request.file.unmatched(request.queries)
        return _measured(
            request,
            asked,
            max_answers=request.max_answers,
            target=None if plan is None else _on_target(request, plan),
            unmatched=unmatched if unmatched.cast else None,
        )


def compared(asked: Mapping[str, Any]) -> Compared:
    """Return the costs of all mechanisms at the same expected number of answers. SECRET.

    `asked` maps each parameter of `signatures.cost` to its value.
    """
    choice = mechanism_of(asked)
    if not isinstance(choice, MechanismChoice):
        raise UsageError("`compare` takes the name of a mechanism, not a mechanism object")
    with requested({**asked, "mechanism": choice, **dict.fromkeys(choice.given)}) as request:
        choice = choice.with_student(lambda given: student(given, request.file))
        matched = min(float(request.max_answers), _measured(request, asked).expected_answers)
        few = request.few()
        rows = [
            _compared(request, other, matched, few)
            for name in CLASSES
            if (other := choice.among(name)).takes(request.file.classes)
            and (few is None or mechanism_class(name).takes_few_votes)
        ]
        return Compared(tuple(rows), matched, request.delta)


def sensitivity(asked: Mapping[str, Any]) -> Sensitivity:
    """Return how far one training record could change the RDP cost of the labels. SECRET.

    `asked` maps each parameter of `signatures.smooth_sensitivity` to its value.
    """
    with requested(asked) as request:
        scored, few = request.scored, request.few(asked["analysis"])
        plan = choose_plan(
            ReleaseKind.UPPER,
            [(scored, request.queries)],
            delta=request.delta,
            order=asked["order"],
            beta=asked["beta"],
        )
        paper, queries = published(asked["analysis"]), request.queries
        if paper is not None:
            return paper.sensitivity(request.rows, scored, plan, queries=queries)
        numbers = {"order": plan.order, "beta": plan.beta}
        price, within = price_votes(request.rows, scored, **numbers, few=few)
        return Sensitivity(price, plan, scored.parameters(), queries, within)


def _measured(request: Request, asked: Mapping[str, Any], **told: Any) -> VoteCost:
    """Return the cost of the labels of a run, with the analysis and the RDP orders in `asked`."""
    analysis, orders = published(asked["analysis"]) or TIGHT, asked["orders"]
    named = isinstance(orders, str)
    return measure_cost(
        request.rows,
        request.scored,
        orders=analysis.orders(OrderChoice(orders)) if named else check_orders(orders),
        delta=request.delta,
        analysis=analysis,
        few=request.few(asked["analysis"]),
        **told,
    )


def _on_target(request: Request, plan: TargetPlan) -> dict[str, Any]:
    """Return the pass probability of a run, and targets and row counts with which runs may pass."""
    scored = request.scored
    bound = settled_bound(plan.bound, scored, rows=request.queries, orders=plan.orders)
    further = _LOOK_AHEAD if bound is Bound.TWO_TAIL else _SLOW_LOOK_AHEAD
    rows = min(further * request.queries, request.file.queries)
    return measure_target(
        replace(request, queries=rows).rows,
        scored,
        replace(plan, bound=bound),
        queries=request.queries,
        max_answers=request.max_answers,
        few=request.few(),
    )


def _compared(
    request: Request, choice: MechanismChoice, answers: float, few: Few
) -> dict[str, Any]:
    """Return the cost of one mechanism if the expected number of answers is `answers`."""
    request = request.under(choice)

    def build(refusals: int) -> Mechanism:
        return request.under(choice.affording(refusals)).mechanism

    return compare_at(request.rows, build, answers=answers, delta=request.delta, few=few)
