"""Costs of given votes: by step, by order, by query, and under a target. SECRET.

The tight cost of a query is one Rényi divergence, that of all its steps together; "threshold" is
what a test costs alone and "argmax" the rest. The published analysis may stand in for it. Votes are
read twice: for their cost at every order, and for the cost of each query at the best order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from pate_cli.accounting.conversion import conversion_cost, round_up
from pate_cli.core.arrays import Floats, Histograms, Ids, Ints, each_once, votes_for
from pate_cli.core.checks import check_delta, check_orders
from pate_cli.core.said import Said
from pate_cli.core.words import Analysis
from pate_cli.disclosure.cost import Cost, Figure, Rows
from pate_cli.files.results import Result
from pate_cli.mechanisms.base import Mechanism, ScoredMechanism, plurality
from pate_cli.planning import words
from pate_cli.planning.target_on_votes import TargetOnVotes
from pate_cli.run.fold import AskedRows, OnCounts
from pate_cli.votes.unmatched import Unmatched
from pate_cli.votes.vote_file import VoteBatch

TIGHT_ORDERS: Final = np.array(
    [1.5, 2, 2.5, 3, 3.5, *range(4, 17), *range(18, 33, 2), 36, 40, 48, 64, 96, 128, 256], float
)
"""Orders at which the tight cost is shown unless others are asked for."""

MOMENT_ORDERS: Final = tuple(float(order) for order in range(2, 10))
"""The 2017 paper computes the moments l = 1 … 8; moment l is Rényi order l + 1."""

SAID: Final = ("silent", "agrees", "disagrees")
"""What a public prior says of a query, beside the teachers, by the number of `Queries.said`."""

_QUANTILES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)
_BINS, _TINY = 20, float(np.finfo(float).tiny)


class CostAnalysis(Protocol):
    """How queries are charged, and the ε of that: tight, or as it was published."""

    name: Analysis

    def steps(
        self, mechanism: ScoredMechanism, counts: Histograms, orders: Floats
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
        self, mechanism: ScoredMechanism, counts: Histograms, orders: Floats
    ) -> dict[str, Floats]:
        """Return Rényi divergences of each query by step, [orders, queries], nats."""
        return mechanism.steps(mechanism.score(counts), orders)

    def epsilon(self, rdp: Floats, orders: Floats, delta: float) -> Floats:
        """Return ε at each order by the sharp conversion, never negative."""
        return np.maximum(rdp + conversion_cost(orders, delta=delta), 0.0)


@dataclass(frozen=True)
class Queries:
    """Queries one by one at one order. SECRET.

    Attributes:
        plurality: the largest count of votes, [queries].
        said: what a prior says, by its place in `SAID`, [queries].
        answers: chance of an answer, [queries].
        steps: cost by step of the mechanism, [queries] each, nats.
        ids: as labels have them, [queries].
    """

    plurality: Ints
    said: Ints
    answers: Floats
    steps: dict[str, Floats]
    ids: Ids

    @property
    def cost(self) -> Floats:
        """Cost of each query, [queries], nats."""
        return np.sum(list(self.steps.values()), axis=0)


@dataclass(frozen=True)
class _SumOfSteps:
    """From histograms to their cost by step, summed over queries, [orders] each."""

    analysis: CostAnalysis
    orders: Floats

    def __call__(self, mechanism: Mechanism, counts: Histograms) -> dict[str, Floats]:
        steps = self.analysis.steps(mechanism, counts, self.orders)  # type: ignore[arg-type]
        return {step: costs.sum(axis=1) for step, costs in steps.items()}


@dataclass(frozen=True)
class _SeeQueries:
    """From a batch to its queries at one order."""

    analysis: CostAnalysis
    order: float

    def __call__(self, mechanism: ScoredMechanism, batch: VoteBatch) -> Queries:
        steps = self.analysis.steps(mechanism, batch.counts, np.array([self.order]))
        return Queries(
            plurality(batch.counts),
            _said(batch),
            mechanism.answer_chance(batch.counts),
            {step: costs[0] for step, costs in steps.items()},
            batch.ids,
        )


def _said(batch: VoteBatch) -> Ints:
    """Places in `SAID` for each query, [queries]; silent without a prior."""
    if batch.alone is None or batch.guesses is None:
        return np.zeros(len(batch.counts), dtype=np.int64)
    agrees = votes_for(batch.alone, np.maximum(batch.guesses, 0)) == plurality(batch.alone)
    return np.where(batch.guesses < 0, 0, np.where(agrees, 1, 2)).astype(np.int64)


def queries_at(
    analysis: CostAnalysis, votes: AskedRows, mechanism: ScoredMechanism, *, order: float
) -> Queries:
    """Return every query with its cost at one order, all of them in memory. SECRET."""
    parts = list(votes.over(mechanism, _SeeQueries(analysis, order)))
    steps = {step: np.concatenate([p.steps[step] for p in parts]) for step in parts[0].steps}
    plurality, said, answers, ids = (
        np.concatenate(each)
        for each in zip(*((p.plurality, p.said, p.answers, p.ids) for p in parts), strict=True)
    )
    return Queries(plurality, said, answers, steps, ids)


@dataclass(frozen=True, repr=False)
class VoteCost(Result):
    """Cost of given votes, with the worst case beside it. SECRET.

    Attributes:
        analysis: `tight` or `paper`.
        mechanism: the mechanism's public parameters.
        max_answers: k2, the public cap on answers.
        delta: δ.
        orders: Rényi orders, [orders].
        steps: sums over queries by step of the mechanism, [orders] each, nats.
        by_orders: ε at each order, [orders], nats.
        queries: every query at the best order.
        worst_case: the ε of the labels alone that holds whatever the votes.
        target: how a target fares, if one was stated.
        prior: whether a prior votes, too.
        unmatched: which votes are texts and no names; None where votes are no texts.
    """

    analysis: Analysis
    mechanism: Mapping[str, Any]
    max_answers: int
    delta: float
    orders: Floats
    steps: dict[str, Floats]
    by_orders: Floats
    queries: Queries
    worst_case: Figure
    target: TargetOnVotes | None = None
    prior: bool = False
    unmatched: Unmatched | None = None

    @property
    def rdp(self) -> Floats:
        """Cost of all queries at each order, [orders], nats."""
        return np.sum(list(self.steps.values()), axis=0)

    @property
    def order(self) -> float:
        """The order at which ε is least."""
        return float(self.orders[np.argmin(self.by_orders)])

    @property
    def epsilon(self) -> float:
        """ε for these votes, nats: under the tight analysis never above the worst case.

        What the published analysis gives is repeated as it is.
        """
        given = float(self.by_orders.min())
        return self.worst_case.least(given) if self.analysis is Analysis.TIGHT else given

    @property
    def order_at_edge(self) -> bool:
        """Whether the best order is the first or last of several: a wider range may do better."""
        best, last = int(np.argmin(self.by_orders)), self.orders.size - 1
        return last > 0 and best in (0, last) and self.epsilon == float(self.by_orders[best])

    @property
    def expected_answers(self) -> float:
        """How many of the queries are answered on average."""
        return float(self.queries.answers.sum())

    @property
    def most_votes(self) -> int:
        """The most votes that a query can have: teachers and prior."""
        return int(self.mechanism["teachers"] + self.mechanism.get("prior_weight", 0))

    def quantiles(self) -> dict[str, float]:
        """Quantiles of the cost of a query by their level, linear between queries, nats."""
        values = np.quantile(self.queries.cost, _QUANTILES).tolist()
        return {f"{level:g}": value for level, value in zip(_QUANTILES, values, strict=True)}

    def histogram(self) -> list[dict[str, Any]]:
        """Bins of queries by plurality: how many, how often answered, and what they cost.

        Figure 5 of the ICLR 2018 paper in numbers; empty bins are left out.
        """
        queries = self.queries
        edges = each_once(np.linspace(0, self.most_votes, _BINS + 1).round().astype(np.int64))
        bins = np.clip(np.searchsorted(edges, queries.plurality, "right") - 1, 0, edges.size - 2)
        return [
            {
                "from": int(edges[place]),
                "to": int(edges[place + 1]),
                **self._part(bins == place),
                "mean_cost": float(queries.cost[bins == place].mean()),
            }
            for place in np.unique(bins).tolist()
        ]

    def by_prior(self) -> dict[str, dict[str, float]]:
        """Queries, expected answers and their share of the cost, by what a prior says of them."""
        return {name: self._part(self.queries.said == said) for said, name in enumerate(SAID)}

    def _part(self, mine: NDArray[np.bool_]) -> dict[str, float]:
        """How many queries these are, how often they are answered, and their share of the cost."""
        cost = self.queries.cost
        return {
            "queries": int(mine.sum()),
            "expected_answers": float(self.queries.answers[mine].sum()),
            "share_of_cost": float(cost[mine].sum()) / max(float(cost.sum()), _TINY),
        }

    def to_dict(self) -> dict[str, Any]:
        """By step, by order and in bins of queries; JSON-ready."""
        worst = self.worst_case
        return {
            "schema_version": 1,
            "releasable": False,
            "analysis": self.analysis.value,
            "mechanism": dict(self.mechanism),
            "queries": self.queries.answers.size,
            "max_answers": self.max_answers,
            "expected_answers": self.expected_answers,
            "epsilon": self.epsilon,
            "order": self.order,
            "order_at_edge": self.order_at_edge,
            "delta": self.delta,
            "orders": self.orders.tolist(),
            "rdp": self.rdp.tolist(),
            "steps": {step: values.tolist() for step, values in self.steps.items()},
            "data_independent": {
                "epsilon": round_up(worst.epsilon),
                "order": worst.order,
                "method": worst.method,
            },
            "per_query": {
                "order": self.order,
                "quantiles": self.quantiles(),
                "by_plurality": self.histogram(),
                **({"by_prior": self.by_prior()} if self.prior else {}),
            },
            **({} if self.target is None else {"target": self.target.to_dict()}),
            **({} if self.unmatched is None else {"unmatched_votes": self.unmatched.to_dict()}),
        }

    def columns(self) -> dict[str, NDArray[Any]]:
        """One row per query, at the best order."""
        rows = self.queries
        return {
            "query_id": np.asarray(rows.ids),
            "plurality": rows.plurality,
            "answer_probability": rows.answers,
            **{f"cost_{step}": values for step, values in rows.steps.items()},
            "cost": rows.cost,
        }

    def said(self) -> Said:
        """Return its lines and tables."""
        return words.of_cost(self.to_dict())

    def plot(self, axes: Any = None) -> Any:
        """Draw which queries cost what on matplotlib Axes, and return them. SECRET.

        Args:
            axes: where to draw; new ones if left out. Needs the extra `plot`.
        """
        from pate_cli.disclosure.pictures import draw_cost

        return draw_cost(self, axes)

    def headline(self) -> str:
        """ε and for how many answers."""
        return (
            f"epsilon {self.epsilon:.4f} at delta {self.delta:g} for "
            f"{self.expected_answers:.1f} expected answers"
        )


def measure_cost(
    votes: AskedRows,
    mechanism: ScoredMechanism,
    *,
    orders: Floats,
    delta: float,
    max_answers: int | None = None,
    analysis: CostAnalysis | None = None,
    target: TargetOnVotes | None = None,
    unmatched: Unmatched | None = None,
) -> VoteCost:
    """Price votes at some orders in total, and every query at the best of them. SECRET.

    Args:
        votes: the rows that are asked.
        mechanism: the aggregator.
        orders: Rényi orders, [orders].
        delta: δ in (0, 1).
        max_answers: k2, the public cap on answers; none if left out.
        analysis: the tight one unless another is given.
        target, unmatched: to be told beside it.
    """
    orders, delta = check_orders(orders), check_delta(delta)
    analysis = TightCost() if analysis is None else analysis
    cap = votes.queries if max_answers is None else max_answers
    steps: dict[str, Floats] = {}
    for part in votes.over(mechanism, OnCounts(_SumOfSteps(analysis, orders))):
        steps = {step: steps.get(step, 0.0) + costs for step, costs in part.items()}
    by_orders = analysis.epsilon(np.sum(list(steps.values()), axis=0), orders, delta)
    best = float(orders[np.argmin(by_orders)])
    return VoteCost(
        analysis=analysis.name,
        mechanism=mechanism.parameters(),
        max_answers=cap,
        delta=delta,
        orders=orders,
        steps=steps,
        by_orders=by_orders,
        queries=queries_at(analysis, votes, mechanism, order=best),
        worst_case=Cost(delta, (Rows(mechanism, votes.queries, cap),)).of_curves,
        target=target,
        prior=mechanism.prior_weight > 0,
        unmatched=unmatched,
    )
