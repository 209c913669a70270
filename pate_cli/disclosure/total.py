"""What all runs of a record cost together, whatever the votes; public, like the record.

Two numbers are told, for they rest on different things (accounting/THEORY.md, section 20).

- The *total* presupposes that which runs there were and their settings did not follow from what
  earlier ones released. Curves (labels by their worst case, draws, external curves) add at every
  order and are converted once, at the largest δ of any of them; what is stated as (ε, δ) (tested
  targets, compositions, external pairs) is composed with them by `accounting.together`, or added
  as it came out, a refusal at what that costs, whichever is less. The δ's of stated parts add.
- The *sum* presupposes nothing: basic composition of every run's own (ε, δ).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any, Final

import numpy as np

from pate_cli.accounting.conversion import significant_up
from pate_cli.accounting.together import Curves, epsilon_together
from pate_cli.core.codec import SPARING
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import LedgerError, ParameterError
from pate_cli.disclosure.checked import (
    COMPUTED,
    RECORD,
)
from pate_cli.disclosure.external import External, ExternalCurve, ExternalPair
from pate_cli.disclosure.record import Outcome, Run, RunKind, decimal_sum, delta_sum
from pate_cli.disclosure.worst_case import (
    Spending,
    WorstCurve,
    data_independent_cost,
    least_delta,
)
from pate_cli.mechanisms import scored_from_parameters

_DIGITS: Final = 12
# Where only (ε, δ)'s are composed, a δ more is spent if it lowers ε to this share at least.
_WORTH_A_DELTA: Final = 0.99


@dataclass(frozen=True)
class Total:
    """What runs cost together.

    Attributes:
        epsilon, delta: presupposing that runs and settings did not follow from earlier results.
        method: `one` of a single run; `renyi`, `gaussian-dp` or `pure-dp` of curves alone; `joint`
            of both kinds; `basic` or `optimal` of (ε, δ)'s alone.
        order: the Rényi order it was found at, where there is one.
        sum_epsilon, sum_delta: presupposing nothing; None where some run's own is not known.
    """

    epsilon: float
    delta: float
    method: str
    order: float | None
    sum_epsilon: float | None
    sum_delta: float | None


@dataclass(frozen=True)
class Spent:
    """The account as a report has it: all runs that its record told of, this one among them.

    Attributes:
        epsilon, delta, method, order, sum_epsilon, sum_delta: as in `Total`.
        runs: in order, without what is its holder's alone.
    """

    epsilon: float = field(metadata=COMPUTED)
    delta: float = field(metadata=COMPUTED)
    method: str = field(metadata=COMPUTED)
    order: float | None = field(default=None, metadata=SPARING | COMPUTED)
    sum_epsilon: float | None = field(default=None, metadata=SPARING | COMPUTED)
    sum_delta: float | None = field(default=None, metadata=SPARING | COMPUTED)
    runs: tuple[Run, ...] = field(default=(), metadata=RECORD)

    @classmethod
    def of(cls, runs: Sequence[Run], total: Total | None = None) -> Spent:
        """What is published of an account, and its total if that is known."""
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
    """What was tested as it came out, added; what cannot come out in two ways composed."""
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
    """What was asked; LedgerError for a draw from rounds that are not among it."""
    known = {run.asked.round for run in runs if run.asked is not None}
    if any(not known.issuperset(run.drawn_from) for run in runs):
        raise LedgerError(
            "an epsilon was drawn from rounds whose labels the record does not tell of; give "
            "their ledgers to pate release with this record"
        )
    return [
        Spending(scored_from_parameters(each.mechanism), each.queries, each.max_answers)
        for each in (run.asked for run in runs)
        if each is not None
    ]


def _draws(runs: Sequence[Run]) -> list[Any]:
    return [draw for draw in (run.draw for run in runs) if draw is not None]


def _curves(runs: Sequence[Run]) -> list[ExternalCurve]:
    return [part for part in (run.part for run in runs) if isinstance(part, ExternalCurve)]


def _below_one(delta: float) -> float:
    if delta >= 1.0:
        raise ParameterError(f"all runs together have a delta of {delta:g}, which says nothing")
    return delta
