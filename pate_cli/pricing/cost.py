"""What votes would cost: by step, by order and by query. SECRET.

The tight cost of a Confident query is one Rényi divergence (accounting.threshold); "threshold" is
what the selecting coin costs alone and "argmax" the rest. Another analysis may stand in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pate_cli.accounting.conversion import conversion_cost, round_up
from pate_cli.arrays import Counts, Floats, Ints
from pate_cli.checks import check_delta, check_orders
from pate_cli.disclosure.worst_case import DataIndependentCost
from pate_cli.mechanisms.base import ScoredMechanism, plurality
from pate_cli.pricing.prospect import Prospect
from pate_cli.results import Result
from pate_cli.words import Analysis

__all__ = [
    "TIGHT_ORDERS",
    "Cost",
    "CostAnalysis",
    "CostSummary",
    "QueryCosts",
    "TightCost",
    "expected_until",
    "measure_cost",
    "query_costs",
]

TIGHT_ORDERS = np.concatenate(
    [
        np.arange(1.5, 4.0, 0.5),
        np.arange(4.0, 16.0),
        np.arange(16.0, 32.0, 2.0),
        [32.0, 36.0, 40.0, 48.0, 64.0, 96.0, 128.0, 256.0],
    ]
)
"""Orders at which the tight cost is shown unless others are asked for."""

_QUANTILES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)
_BINS = 20


Batches = Callable[[], Iterable[tuple[ScoredMechanism, Counts]]]
"""Returns histograms afresh, each batch with the mechanism bound to its rows."""


class CostAnalysis(Protocol):
    """How queries are charged and what that amounts to."""

    name: Analysis

    def steps(
        self, mechanism: ScoredMechanism, counts: Counts, orders: Floats
    ) -> dict[str, Floats]:
        """The cost of each query by step, [orders, queries], nats."""
        ...

    def epsilon(self, rdp: Floats, orders: Floats, delta: float) -> Floats:
        """ε at each order, [orders], nats."""
        ...


class TightCost:
    """The analysis that is sharp and sound."""

    name = Analysis.TIGHT

    def steps(
        self, mechanism: ScoredMechanism, counts: Counts, orders: Floats
    ) -> dict[str, Floats]:
        """Exact steps of the mechanism."""
        return mechanism.steps(mechanism.score(counts), orders)

    def epsilon(self, rdp: Floats, orders: Floats, delta: float) -> Floats:
        """By the sharp conversion; never negative."""
        return np.maximum(rdp + conversion_cost(orders, delta=delta), 0.0)


@dataclass(frozen=True)
class QueryCosts:
    """Costs of a batch of queries.

    Attributes:
        steps: per step of the mechanism, [orders, queries], nats; they add up to the cost.
        answer: Pr[answer], [queries].
        plurality: max_j n_j, [queries] (votes).
    """

    steps: dict[str, Floats]
    answer: Floats
    plurality: Ints

    @property
    def total(self) -> Floats:
        """The whole cost, [orders, queries], nats."""
        return np.sum(list(self.steps.values()), axis=0)


def query_costs(
    mechanism: ScoredMechanism, counts: Counts, *, orders: Floats, analysis: CostAnalysis
) -> QueryCosts:
    """The cost of every query of a batch at every order, by step. SECRET.

    Raises:
        UsageError: a mechanism that the analysis does not know, or shared records.
    """
    steps = analysis.steps(mechanism, counts, check_orders(orders))
    return QueryCosts(steps, mechanism.answer_chance(counts), plurality(counts))


def expected_until(chance: Floats, wanted: float) -> int:
    """How many rows are needed until Σ chance reaches what is wanted; all if it never does."""
    total = np.cumsum(chance)
    return min(int(np.searchsorted(total, wanted - 1e-9)) + 1, chance.size)


@dataclass(frozen=True)
class CostSummary:
    """The cost of a file of votes. SECRET.

    Attributes:
        orders: [orders].
        steps: Σ over queries per step, [orders] each, nats.
        queries: rows priced.
        expected_answers: Σ Pr[answer].
        epsilon: smallest ε over the orders, nats.
        order: where.
        at_edge: the best order is the first or last of several: a wider range may do better.
        per_query: cost of each query at that order, [queries], nats.
        answer, plurality: per query, as in `QueryCosts`.
    """

    orders: Floats
    steps: dict[str, Floats]
    queries: int
    expected_answers: float
    epsilon: float
    order: float
    at_edge: bool
    per_query: dict[str, Floats]
    answer: Floats
    plurality: Ints

    @property
    def rdp(self) -> Floats:
        """Total cost at each order, nats."""
        return np.sum(list(self.steps.values()), axis=0)

    @property
    def query_total(self) -> Floats:
        """Cost of each query at the best order, nats."""
        return np.sum(list(self.per_query.values()), axis=0)

    def quantiles(self) -> dict[str, float]:
        """Quantiles of the cost per query, by their level."""
        values = np.quantile(self.query_total, _QUANTILES)
        return {f"{level:g}": float(value) for level, value in zip(_QUANTILES, values, strict=True)}

    def histogram(self, teachers: int) -> list[dict[str, Any]]:
        """Queries by plurality count: how many, how often answered, and what they cost.

        Figure 5 of the ICLR 2018 paper in numbers; empty bins are left out.
        """
        edges = np.unique(np.linspace(0, teachers, _BINS + 1).round().astype(np.int64))
        index = np.clip(np.searchsorted(edges, self.plurality, "right") - 1, 0, edges.size - 2)
        total = self.query_total
        whole = max(float(total.sum()), np.finfo(float).tiny)
        rows = []
        for place in np.unique(index).tolist():
            here = index == place
            rows.append(
                {
                    "from": int(edges[place]),
                    "to": int(edges[place + 1]),
                    "queries": int(here.sum()),
                    "expected_answers": float(self.answer[here].sum()),
                    "mean_cost": float(total[here].mean()),
                    "share_of_cost": float(total[here].sum()) / whole,
                }
            )
        return rows


def measure_cost(
    batches: Batches, *, orders: Floats, delta: float, analysis: CostAnalysis | None = None
) -> CostSummary:
    """Price votes in two passes: all orders in total, then each query at the best order.

    Args:
        batches: the histograms; called twice.
        orders: Rényi orders, [orders].
        delta: δ in (0, 1).
        analysis: the tight one unless another is given.
    """
    orders, delta = check_orders(orders), check_delta(delta)
    analysis = TightCost() if analysis is None else analysis
    sums: dict[str, Floats] = {}
    for mechanism, counts in batches():
        costs = query_costs(mechanism, counts, orders=orders, analysis=analysis)
        for step, cost in costs.steps.items():
            sums[step] = sums.get(step, np.zeros(orders.size)) + cost.sum(axis=1)
    rdp = np.sum(list(sums.values()), axis=0)
    epsilon = analysis.epsilon(rdp, orders, delta)
    best = int(np.argmin(epsilon))
    at_best = [
        query_costs(mechanism, counts, orders=orders[best : best + 1], analysis=analysis)
        for mechanism, counts in batches()
    ]
    answer = np.concatenate([part.answer for part in at_best])
    return CostSummary(
        orders=orders,
        steps=sums,
        queries=answer.size,
        expected_answers=float(answer.sum()),
        epsilon=float(epsilon[best]),
        order=float(orders[best]),
        at_edge=orders.size > 1 and best in (0, orders.size - 1),
        per_query={
            step: np.concatenate([part.steps[step][0] for part in at_best]) for step in sums
        },
        answer=answer,
        plurality=np.concatenate([part.plurality for part in at_best]),
    )


@dataclass(frozen=True, repr=False)
class Cost(Result):
    """What the votes would cost, with the ε that holds for all votes beside it. SECRET.

    Attributes:
        summary: the data-dependent part.
        analysis: `tight` or `paper`.
        mechanism: the mechanism's public parameters.
        max_answers: k2, the public cap on answers.
        delta: δ.
        for_all_votes: the data-independent ε of the labels alone.
        ids: of the queries, [queries].
        target: how a target would fare, if one was stated.
    """

    summary: CostSummary
    analysis: Analysis
    mechanism: Mapping[str, Any]
    max_answers: int
    delta: float
    for_all_votes: DataIndependentCost
    ids: NDArray[Any]
    target: Prospect | None = None

    @property
    def epsilon(self) -> float:
        """Data-dependent ε at the best order, nats."""
        return self.summary.epsilon

    def to_dict(self) -> dict[str, Any]:
        """By step, by order and in bins of queries; JSON-ready."""
        found, public = self.summary, self.for_all_votes
        return {
            "schema_version": 1,
            "releasable": False,
            "analysis": self.analysis.value,
            "mechanism": dict(self.mechanism),
            "queries": found.queries,
            "max_answers": self.max_answers,
            "expected_answers": found.expected_answers,
            "epsilon": found.epsilon,
            "order": found.order,
            "order_at_edge": found.at_edge,
            "delta": self.delta,
            "orders": found.orders.tolist(),
            "rdp": found.rdp.tolist(),
            "steps": {step: values.tolist() for step, values in found.steps.items()},
            "data_independent": {
                "epsilon": round_up(public.epsilon),
                "order": public.order,
                "method": public.method,
            },
            "per_query": {
                "order": found.order,
                "quantiles": found.quantiles(),
                "by_plurality": found.histogram(self.mechanism["teachers"]),
            },
            **({} if self.target is None else {"target": self.target.to_dict()}),
        }

    def columns(self) -> dict[str, NDArray[Any]]:
        """One row per query, at the best order."""
        found = self.summary
        return {
            "query_id": self.ids,
            "plurality": found.plurality,
            "answer_probability": found.answer,
            **{f"cost_{step}": values for step, values in found.per_query.items()},
            "cost": found.query_total,
        }

    def headline(self) -> str:
        """ε and for how many answers."""
        return (
            f"epsilon {self.epsilon:.4f} at delta {self.delta:g} for "
            f"{self.summary.expected_answers:.1f} expected answers"
        )
