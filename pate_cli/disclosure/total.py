"""(ε, δ) of all runs of a record together, whatever the votes; public, like the record.

Two figures are told, for they rest on different things (accounting/THEORY.md, section 20).

- *Chosen beforehand*: the total presupposes that which runs there were and their settings did not
  follow from what earlier ones released. Curves (labels by their worst case, draws, external
  curves) add at every order and are converted once, at the largest δ of any of them; what is stated
  as (ε, δ) (tested targets, compositions, external pairs) is composed with them by
  `accounting.together`, or added as it came out, a refusal at what that costs, whichever is less.
  The δ's of stated parts add.
- *However chosen*: plain sums of every run's own (ε, δ), or the Rényi filter of the record's
  budget. They presuppose nothing, so they alone admit a run and say what is left of a budget.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from decimal import Decimal
from typing import Any, Final

import numpy as np

from pate_cli.accounting.conversion import conversion_cost, significant_up
from pate_cli.accounting.gnss import largest_order
from pate_cli.accounting.laplace.randomised_response import randomised_response_rdp
from pate_cli.accounting.together import Curves, epsilon_together
from pate_cli.core.codec import SPARING
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import LedgerError, ParameterError, UnreachableError, UsageError
from pate_cli.disclosure.budget import Budget
from pate_cli.disclosure.checked import (
    COMPUTED,
    RECORD,
)
from pate_cli.disclosure.external import External, ExternalCurve, ExternalPair
from pate_cli.disclosure.figures import nats, shown
from pate_cli.disclosure.record import Outcome, Run, RunKind, decimal_sum, delta_sum
from pate_cli.disclosure.worst_case import (
    Spending,
    WorstCurve,
    data_independent_cost,
    least_delta,
    spendings,
)

_DIGITS: Final = 12
# Where only (ε, δ)'s are composed, a δ more is spent if it lowers ε to this share at least.
_WORTH_A_DELTA: Final = 0.99


@dataclass(frozen=True)
class Total:
    """(ε, δ) of runs together, by both figures.

    Attributes:
        epsilon, delta: presupposing that runs and settings did not follow from earlier results.
        method: `one` of a single run; `renyi`, `gaussian-dp` or `pure-dp` of curves alone; `joint`
            of both kinds; `basic` or `optimal` of (ε, δ)'s alone.
        order: the Rényi order it was found at, where there is one.
        sum_epsilon, sum_delta: presupposing nothing; None where some run's own is not known.
    """

    epsilon: float = field(metadata=COMPUTED)
    delta: float = field(metadata=COMPUTED)
    method: str = field(metadata=COMPUTED)
    order: float | None = field(default=None, metadata=SPARING | COMPUTED)
    sum_epsilon: float | None = field(default=None, metadata=SPARING | COMPUTED)
    sum_delta: float | None = field(default=None, metadata=SPARING | COMPUTED)


@dataclass(frozen=True)
class Spent(Total):
    """All runs that the record of a report told of, and what they cost together.

    Attributes:
        runs: in order, that of the report among them, without what is its holder's alone.
    """

    runs: tuple[Run, ...] = field(default=(), metadata=RECORD)

    @classmethod
    def of(cls, runs: Sequence[Run], total: Total | None = None) -> Spent:
        """Return what is published of runs; their total is found if it is not given."""
        total = total_of(runs) if total is None else total
        return cls(**vars(total), runs=tuple(run.public for run in runs))

    @property
    def count(self) -> int:
        """How many runs it is of."""
        return len(self.runs)


def total_of(runs: Sequence[Run]) -> Total:
    """Together, this is what they cost.

    Raises:
        LedgerError: no run, or a draw from rounds whose cost nobody told of.
        ParameterError: a δ of 1 or more.
    """
    if not runs:
        raise LedgerError("there is no run whose cost could be told")
    own = [(run.cost, run.delta) for run in runs if run.cost is not None and run.delta is not None]
    sums: dict[str, Any] = {"sum_epsilon": None, "sum_delta": None}
    if len(own) == len(runs):
        sums = {
            "sum_epsilon": decimal_sum(epsilon for epsilon, _ in own),
            "sum_delta": delta_sum(delta for _, delta in own),
        }
        if len(runs) == 1:
            return Total(*own[0], "one", None, **sums)
    return Total(**_together(runs), **sums)


def however_chosen(
    runs: Sequence[Run], budget: Budget | None = None
) -> Iterator[tuple[float, float]]:
    """Yield the (ε, δ) of all runs up to each one, however they were chosen.

    By plain sums, or by the filter of a budget that has an order. A run that is under way counts in
    full; a refusal of a tested target counts as what it cost in the sums, and in full in a filter.

    Args:
        runs: in the order in which they were entered.
        budget: by whose rule.

    Raises:
        LedgerError: a run states no (ε, δ) of its own.
        UnreachableError: half of the budget's δ is too small beside what the noise of
            floating-point numbers adds over all runs.
    """
    if budget is not None and budget.order is not None:
        yield from _filtered(runs, budget.delta / 2.0, budget.order)
        return
    epsilon, delta = Decimal(0), Decimal(0)
    for run in runs:
        if run.cost is None or run.delta is None:
            raise LedgerError(f"run {run.id} states no epsilon of its own, so no sum covers it")
        epsilon += Decimal(repr(run.cost))
        delta += Decimal(repr(run.delta))
        yield float(epsilon), significant_up(delta)


def left_of(budget: Budget, runs: Sequence[Run]) -> tuple[float, float]:
    """Return the (ε, δ) that are left of a budget, rounded down: a run of so much is admitted.

    What is left does not grow with any further run; it does when a run that was under way ends for
    less than it might have cost.
    """
    spent = list(however_chosen(runs, budget))
    return budget.left(spent[-1] if spent else _nothing(budget))


def refuse_beyond(
    budget: Budget, earlier: Sequence[Run], fresh: Sequence[Run], *, record: str = "the record"
) -> None:
    """Refuse runs that a budget has no room for.

    Args:
        budget: the most that all runs may cost.
        earlier: the runs of the record, in order.
        fresh: what is to be entered.
        record: what it is called, in the message.

    Raises:
        UnreachableError: all of them together would cost more than the budget.
        UsageError: earlier runs were admitted by another rule, or before a filter was chosen.
        LedgerError: a run states no (ε, δ) of its own.
    """
    rules = {run.budget.rule for run in earlier if run.budget is not None}
    if rules - {budget.rule} or (budget.rule and earlier and earlier[0].budget is None):
        raise UsageError(
            "the rule of a budget (`budget_order`, and its `budget_delta`) is fixed before the "
            "first run of a record, and runs in this one were entered under another; state theirs, "
            "or leave `budget_order` out where they stated none"
        )
    spent = list(however_chosen([*earlier, *fresh], budget))
    epsilon, delta = spent[-1] if spent else _nothing(budget)
    if epsilon <= budget.epsilon and delta <= budget.delta:
        return
    before = spent[len(earlier) - 1] if earlier else _nothing(budget)
    count = "1 run" if len(earlier) == 1 else f"{len(earlier)} runs"
    raise UnreachableError(
        f"the budget is epsilon {shown(budget.epsilon)} at delta {shown(budget.delta)}, and {count}"
        f" in {record} spent epsilon {nats(before[0])} at delta {shown(before[1])}: with this one"
        f" it would be {nats(epsilon)} at delta {shown(delta)}"
    )


def _filtered(runs: Sequence[Run], half: float, order: float) -> Iterator[tuple[float, float]]:
    """Yield the running (ε, δ) at one order: curves add there, δ's of all other runs beside it."""
    conversion = float(conversion_cost(np.array([order]), delta=half)[0])
    curved = [run for run in runs if run.curved]
    external = External(tuple(_curves(curved)))
    least = least_delta(_spendings(curved), delta=half, external=external)
    if half < least:
        raise UnreachableError(
            f"the runs of the record need a `budget_delta` of {2.0 * least:.2g} at least: what "
            "floating-point noise adds is not negligible beside half of less"
        )
    rdp, added = Decimal(0), Decimal(repr(half))
    for run in runs:
        rdp += Decimal(_rdp_at(run, order))
        if not run.curved:
            added += Decimal(repr(_stated_delta(run)))
        epsilon = max(float(rdp) + conversion, 0.0)
        yield significant_up(epsilon, digits=_DIGITS), significant_up(added)


def _rdp_at(run: Run, order: float) -> float:
    """Return the Rényi cost of a run at one order, nats; of an (ε, δ), randomised response at ε."""
    at = np.array([order])
    if not run.curved:
        epsilon = _in_full(run)
        return float(randomised_response_rdp(epsilon=epsilon, orders=at)[0]) if epsilon else 0.0
    found = sum(
        float(
            each.mechanism.worst_rdp(queries=each.queries, answers=each.max_answers, orders=at)[0]
        )
        for each in _spendings([replace(run, drawn_from=())])
    )
    found += sum(
        draw.rdp(order) if order < largest_order(draw.beta) else math.inf for draw in _draws([run])
    )
    found += sum(float(curve.rdp(at)[0]) for curve in _curves([run]))
    if not math.isfinite(found):
        raise UnreachableError(
            f"run {run.id} has no Renyi cost at order {order:g}, so a budget of that order has no "
            "room for it"
        )
    return found


def _together(runs: Sequence[Run]) -> dict[str, Any]:
    curved, stated = [run for run in runs if run.curved], [run for run in runs if not run.curved]
    added = [_stated_delta(run) for run in stated]
    if not curved:
        return _of_pairs(stated, added)
    spent, draws, parts = _spendings(curved), _draws(curved), _curves(curved)
    external = External(tuple(parts))
    largest = max((run.delta for run in curved if run.delta is not None), default=0.0)
    delta = max(largest, least_delta(spent, delta=largest, external=external))
    if delta <= 0.0:
        raise LedgerError("no run says at which delta the curves are to be converted")
    total = _below_one(delta_sum([delta, *added]))
    if not stated:
        alone = data_independent_cost(spent, delta=delta, plan=None, prior=draws, external=external)
        return {
            "epsilon": significant_up(alone.epsilon, digits=_DIGITS),
            "delta": total,
            "method": alone.method,
            "order": alone.order,
        }
    curves = WorstCurve(spent, draws, external).around(delta=delta)
    epsilon = min(_fixed(stated, curves, delta), _as_it_came(stated, curves, delta))
    return {
        "epsilon": significant_up(epsilon, digits=_DIGITS),
        "delta": total,
        "method": "joint",
        "order": None,
    }


def _of_pairs(stated: Sequence[Run], added: Sequence[float]) -> dict[str, Any]:
    """(ε, δ)'s alone: their sum, or the optimal composition where a δ more is worth it."""
    basic = decimal_sum(_flat(run) for run in stated)
    slack = max(added)
    if slack > 0.0:
        optimal = min(_fixed(stated, None, slack), _as_it_came(stated, None, slack))
        if optimal < _WORTH_A_DELTA * basic:
            return {
                "epsilon": significant_up(optimal, digits=_DIGITS),
                "delta": _below_one(delta_sum([slack, *added])),
                "method": "optimal",
                "order": None,
            }
    return {
        "epsilon": basic, "delta": _below_one(delta_sum(added)), "method": "basic", "order": None
    }  # fmt: skip


def _fixed(stated: Sequence[Run], curves: Curves | None, delta: float) -> float:
    """Every stated part in full, whatever came out: its ε is fixed beforehand."""
    return epsilon_together(np.array([_in_full(run) for run in stated]), curves, delta=delta)


def _as_it_came(stated: Sequence[Run], curves: Curves | None, delta: float) -> float:
    """Return tests as they came out, added; what cannot come out in two ways is composed."""
    settled = [_in_full(run) for run in stated if run.kind is not RunKind.TARGET]
    if settled or curves is not None:
        rest = epsilon_together(np.array(settled), curves, delta=delta)
    else:
        rest = 0.0
    return rest + decimal_sum(_flat(run) for run in stated if run.kind is RunKind.TARGET)


def _in_full(run: Run) -> float:
    part = run.part
    if isinstance(part, ExternalPair):
        return part.epsilon
    if run.epsilon is None:
        raise LedgerError(f"run {run.id} does not say what it cost")
    return run.epsilon


def _flat(run: Run) -> float:
    refusal = run.refusal_epsilon if run.outcome is Outcome.REFUSED else None
    return _in_full(run) if refusal is None else refusal


def _stated_delta(run: Run) -> float:
    part = run.part
    return part.delta if part is not None else (run.delta or 0.0)


def _spendings(runs: Sequence[Run]) -> list[Spending]:
    """Return the rows asked; LedgerError for a draw from rounds that are not among them."""
    known = {run.round for run in runs}
    if any(not known.issuperset(run.drawn_from) for run in runs):
        raise LedgerError(
            "an epsilon was drawn from rounds whose labels the record does not tell of; give "
            "their ledgers to pate release with this record"
        )
    asked = [run.asked for run in runs if run.asked is not None]
    return spendings(asked) if asked else []


def _draws(runs: Sequence[Run]) -> list[Any]:
    return [draw for draw in (run.draw for run in runs) if draw is not None]


def _curves(runs: Sequence[Run]) -> list[ExternalCurve]:
    return [part for part in (run.part for run in runs) if isinstance(part, ExternalCurve)]


def _nothing(budget: Budget) -> tuple[float, float]:
    """Return what no run at all costs: a filter turns a Rényi cost of 0 into an ε as well."""
    if budget.order is None:
        return 0.0, 0.0
    half = budget.delta / 2.0
    conversion = float(conversion_cost(np.array([budget.order]), delta=half)[0])
    return max(significant_up(conversion, digits=_DIGITS), 0.0), half


def _below_one(delta: float) -> float:
    if delta >= 1.0:
        raise ParameterError(f"all runs together have a delta of {delta:g}, which says nothing")
    return delta
