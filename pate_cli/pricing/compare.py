"""Mechanisms side by side on the same votes, at a matched number of expected answers. SECRET."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pate_cli.accounting.conversion import conversion_cost, round_up
from pate_cli.core.arrays import Floats, Histograms
from pate_cli.core.table import row_columns
from pate_cli.disclosure.worst_case import Spending, data_independent_cost
from pate_cli.files.results import Result
from pate_cli.mechanisms.base import ComposedMechanism, ScoredMechanism
from pate_cli.pricing.cost import TIGHT_ORDERS, QueryCosts, TightCost, expected_until, query_costs
from pate_cli.run.fold import AskedRows, OnCounts

# Refusals to be afforded depend on the threshold, and the threshold, barely, on them.
_ROUNDS = 6
_COUNTED = "the prior votes, too, and agreement counts its votes"
_ENDS = "the file ends before so many answers"


@dataclass(frozen=True)
class Comparison:
    """One mechanism at the matched number of answers.

    Attributes:
        mechanism: its name.
        queries: rows that had to be asked, from the first on.
        expected_answers: Σ Pr[answer] over them; below the target when the file ends first.
        agreement: expected share of the answers that equal the plurality.
        epsilon: the data-dependent ε (tight analysis, best order), None where there is none.
        order: its order.
        data_independent: ε for all votes, with the target, rounded up, as public cap on answers;
            below that of a run over the same queries without a cap.
        note: what a reader should know.
    """

    mechanism: str
    queries: int
    expected_answers: float
    agreement: float
    epsilon: float | None
    order: float | None
    data_independent: float
    note: str = ""


@dataclass(frozen=True, repr=False)
class Compared(Result):
    """Mechanisms at a matched number of expected answers. SECRET."""

    rows: tuple[Comparison, ...]
    matched_answers: float
    delta: float

    @property
    def cap(self) -> int:
        """The cap on answers with which worst cases are stated."""
        return _cap(self.matched_answers)

    def to_dict(self) -> dict[str, Any]:
        """One entry a mechanism; JSON-ready."""
        return {
            "schema_version": 1,
            "releasable": False,
            "matched_answers": self.matched_answers,
            "max_answers": self.cap,
            "delta": self.delta,
            "compare": [asdict(row) for row in self.rows],
        }

    def columns(self) -> dict[str, NDArray[Any]]:
        """One row a mechanism; NaN where there is no data-dependent ε."""
        return row_columns(self.rows)

    def headline(self) -> str:
        """What was matched."""
        return f"{len(self.rows)} mechanisms at {self.matched_answers:.1f} expected answers"


def compare_scored(
    votes: AskedRows, mechanism: ScoredMechanism, *, answers: float, delta: float
) -> Comparison:
    """A mechanism with a Rényi cost: asked row by row until it is expected to have answered.

    Args:
        votes: over the queries.
        mechanism: the aggregator.
        answers: the number of answers to be matched.
        delta: δ in (0, 1).
    """
    rdp = np.zeros(TIGHT_ORDERS.size)
    asked, expected, agreeing = 0, 0.0, 0.0
    for costs, losing in votes.over(mechanism, OnCounts(_costs_and_losses)):
        take = expected_until(costs.answer, answers - expected)
        rdp += costs.total[:, :take].sum(axis=1)
        asked += take
        expected += float(costs.answer[:take].sum())
        agreeing += float(costs.answer[:take] @ (1.0 - losing[:take]))
        if expected >= answers - 1e-9:
            break
    epsilon = np.maximum(rdp + conversion_cost(TIGHT_ORDERS, delta=delta), 0.0)
    best = int(np.argmin(epsilon))
    cap = min(asked, _cap(answers))
    bound_cost = data_independent_cost([Spending(mechanism, asked, cap)], delta=delta, plan=None)
    notes = [_COUNTED] if mechanism.prior_weight else []
    if expected < answers - 1e-6:
        notes.append(_ENDS)
    return Comparison(
        mechanism=mechanism.name,
        queries=asked,
        expected_answers=expected,
        agreement=agreeing / max(expected, 1e-12),
        epsilon=bound_cost.least(float(epsilon[best])),
        order=float(TIGHT_ORDERS[best]),
        data_independent=round_up(bound_cost.epsilon),
        note="; ".join(notes),
    )


def _cap(answers: float) -> int:
    return int(np.ceil(answers))


def _costs_and_losses(mechanism: ScoredMechanism, counts: Histograms) -> tuple[QueryCosts, Floats]:
    """What each query of a batch costs, and how likely an answer to it is not the plurality."""
    costs = query_costs(mechanism, counts, orders=TIGHT_ORDERS, analysis=TightCost())
    return costs, mechanism.loss_chance(counts)


def compare_composed(
    votes: AskedRows,
    build: Callable[[int], ComposedMechanism],
    *,
    answers: float,
    delta: float,
) -> Comparison:
    """A mechanism whose ε is a composition for all votes.

    Args:
        votes: over the queries.
        build: the mechanism for a number of refusals to be afforded, if it counts them.
        answers: the number of answers to be matched.
        delta: δ in (0, 1).
    """
    mechanism, asked, expected = build(1), 0, 0.0
    for _ in range(_ROUNDS):
        asked, expected = _rows_asked(mechanism, votes, answers)
        refusals = max(1, int(np.ceil(asked - expected)))
        if mechanism.refusals in (None, refusals):
            break
        mechanism = build(refusals)
    cost = mechanism.privacy(max(asked, 1), delta)
    notes = []
    if mechanism.refusals is not None:
        notes.append(f"{mechanism.refusals} refusals afforded")
    if expected < answers - 1e-6:
        notes.append(_ENDS)
    return Comparison(
        mechanism=mechanism.name,
        queries=asked,
        expected_answers=expected,
        agreement=1.0,
        epsilon=None,
        order=None,
        data_independent=round_up(cost.epsilon),
        note="; ".join(notes),
    )


def _answer_chance(mechanism: ComposedMechanism, counts: Histograms) -> Floats:
    return mechanism.answer_chance(counts)


def _rows_asked(
    mechanism: ComposedMechanism, votes: AskedRows, answers: float
) -> tuple[int, float]:
    """Rows asked until so many answers are expected, and how many are."""
    asked, expected = 0, 0.0
    for chance in votes.over(mechanism, OnCounts(_answer_chance)):
        take = expected_until(chance, answers - expected)
        asked, expected = asked + take, expected + float(chance[:take].sum())
        if expected >= answers - 1e-9:
            break
    return asked, expected
