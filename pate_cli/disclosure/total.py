"""(ε, δ) of all runs of a record together, and what a budget admits; public, like the record.

Two figures are told, for they rest on different things (accounting/THEORY.md, section 20).

- *Chosen beforehand*: `total_of` presupposes that which runs there were and their settings did not
  follow from what earlier ones released. It is `Cost.together` of all runs.
- *However chosen*: plain sums of every run's own (ε, δ), or the Rényi filter of the record's
  budget. They presuppose nothing, so they alone admit a run and say what is left of a budget.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Final

from pate_cli.accounting.conversion import order_cost, significant_up
from pate_cli.core.errors import LedgerError, UnreachableError, UsageError
from pate_cli.disclosure.budget import Budget
from pate_cli.disclosure.cost import Cost, Figure
from pate_cli.disclosure.figures import nats, shown
from pate_cli.disclosure.runs import Outcome, Run
from pate_cli.files.document import SPARING

_DIGITS: Final = 12


@dataclass(frozen=True)
class Spent(Figure):
    """All runs that a record tells of, and what they cost together.

    Its ε and δ are of runs chosen beforehand.

    Attributes:
        sum_epsilon, sum_delta: of the runs however they were chosen.
        runs: in order, without what is their holder's alone.
    """

    sum_epsilon: float = field(default=0.0, metadata=SPARING)
    sum_delta: float = field(default=0.0, metadata=SPARING)
    runs: tuple[Run, ...] = ()

    @classmethod
    def of(cls, runs: Sequence[Run], total: Figure | None = None) -> Spent:
        """Return what is published of runs; their total is found if it is not given."""
        found = total_of(runs) if total is None else total
        sums = list(however_chosen(runs))[-1]
        told = tuple(run.public for run in runs)
        return cls(found.epsilon, found.delta, found.method, found.order, *sums, told)

    @property
    def count(self) -> int:
        """How many runs it is of."""
        return len(self.runs)


def total_of(runs: Sequence[Run]) -> Figure:
    """Return what runs cost together if they were chosen beforehand; one by itself.

    Raises:
        LedgerError: no run, or a draw from rounds whose cost nobody told of.
        ParameterError: a δ of 1 or more.
    """
    if not runs:
        raise LedgerError("no run is recorded, so there is no total cost")
    if len(runs) == 1:
        return Figure(runs[0].counted, runs[0].delta, "one")
    return _cost_of(runs).together()


def in_full(runs: Sequence[Run]) -> tuple[Figure, Figure]:
    """Return what runs cost if every test had passed: everything, and the labels without draws."""
    full = [
        replace(run, outcome=Outcome.LABELLED) if run.outcome is Outcome.REFUSED else run
        for run in runs
    ]
    everything = total_of(full)
    labels = [
        replace(run, settings=replace(run.settings, sanitizer=None))
        for run in full
        if run.settings is not None
    ]
    return everything, total_of(labels) if labels else everything


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
        UnreachableError: half of the budget's δ is too small beside what the noise of
            floating-point numbers adds over all runs.
    """
    if budget is not None and budget.order is not None:
        yield from _filtered(runs, budget.delta / 2.0, budget.order)
        return
    epsilon, delta = Decimal(0), Decimal(0)
    for run in runs:
        epsilon += Decimal(repr(run.counted))
        delta += Decimal(repr(run.delta))
        yield float(epsilon), significant_up(delta)


def left_of(budget: Budget, runs: Sequence[Run]) -> tuple[float, float]:
    """Return the (ε, δ) that are left of a budget, rounded down: a run of so much is admitted.

    What is left does not grow with any further run; it does when a run that was under way ends for
    less than it might have cost.
    """
    return budget.left([_nothing(budget), *however_chosen(runs, budget)][-1])


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
    """
    rules = {run.budget.rule for run in earlier if run.budget is not None}
    if rules - {budget.rule} or (budget.rule and earlier and earlier[0].budget is None):
        raise UsageError(
            "the rule of a budget (`budget_order`, and its `budget_delta`) is fixed before the "
            "first run of a record, and runs in this one were entered under another; state theirs, "
            "or leave `budget_order` out where they stated none"
        )
    spent = [_nothing(budget), *however_chosen([*earlier, *fresh], budget)]
    epsilon, delta = spent[-1]
    if epsilon <= budget.epsilon and delta <= budget.delta:
        return
    before = spent[len(earlier)]
    count = "1 run" if len(earlier) == 1 else f"{len(earlier)} runs"
    raise UnreachableError(
        f"the budget is epsilon {shown(budget.epsilon)} at delta {shown(budget.delta)}, and {count}"
        f" in {record} spent epsilon {nats(before[0])} at delta {shown(before[1])}: with this one"
        f" it would be {nats(epsilon)} at delta {shown(delta)}"
    )


def _filtered(runs: Sequence[Run], half: float, order: float) -> Iterator[tuple[float, float]]:
    """Yield the running (ε, δ) at one order: curves add there, δ's of all other runs beside it."""
    conversion = order_cost(order, delta=half)
    least = replace(_cost_of(runs), delta=half).least_delta
    if half < least:
        raise UnreachableError(
            f"the runs of the record need a `budget_delta` of {2.0 * least:.2g} at least: what "
            "floating-point noise adds is not negligible beside half of less"
        )
    rdp, added = Decimal(0), Decimal(repr(half))
    for run in runs:
        cost = run.cost
        found = cost.rdp_at(order)
        if not math.isfinite(found):
            raise UnreachableError(
                f"run {run.id} has no Renyi cost at order {order:g}, so a budget of that order has "
                "no room for it"
            )
        rdp += Decimal(found)
        added += sum(Decimal(repr(pair.delta)) for pair in cost.pairs)
        epsilon = max(float(rdp) + conversion, 0.0)
        yield significant_up(epsilon, digits=_DIGITS), significant_up(added)


def _nothing(budget: Budget) -> tuple[float, float]:
    """Return what no run at all costs: a filter turns a Rényi cost of 0 into an ε as well."""
    if budget.order is None:
        return 0.0, 0.0
    half = budget.delta / 2.0
    conversion = order_cost(budget.order, delta=half)
    return max(significant_up(conversion, digits=_DIGITS), 0.0), half


def _cost_of(runs: Sequence[Run]) -> Cost:
    """Return the cost of all runs; LedgerError for a draw from rounds that are not among them."""
    known = {run.round for run in runs if not run.cost.pairs}
    if any(not known.issuperset(run.drawn_from) for run in runs):
        raise LedgerError(
            "an epsilon was drawn from rounds whose labels the record does not tell of; give "
            "their ledgers to pate release with this record"
        )
    return functools.reduce(operator.add, (run.cost for run in runs), Cost())
