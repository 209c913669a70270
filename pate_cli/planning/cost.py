"""What given votes cost: by step, by order, by query, and under a target. SECRET.

The tight cost of a query is one Rényi divergence, that of all its steps together; "threshold" is
what a test costs alone and "argmax" the rest. The published analysis may stand in for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from pate_cli.accounting.conversion import conversion_cost, round_up
from pate_cli.accounting.cost_table import Tally
from pate_cli.accounting.score_grid import ScoreGrid
from pate_cli.core.arrays import Floats, Histograms, Ids, Ints, each_once, votes_for
from pate_cli.core.checks import check_delta, check_orders
from pate_cli.core.errors import UsageError
from pate_cli.core.said import Said
from pate_cli.core.words import Analysis
from pate_cli.disclosure.cost import Cost, Figure, Rows
from pate_cli.files.results import Result
from pate_cli.mechanisms.base import ScoredMechanism, plurality
from pate_cli.planning import words
from pate_cli.planning.target_on_votes import TargetOnVotes
from pate_cli.run.fold import AskedRows
from pate_cli.votes.unmatched import Unmatched
from pate_cli.votes.vote_file import VoteBatch

TIGHT_ORDERS: Final = np.array(
    [1.5, 2, 2.5, 3, 3.5, *range(4, 17), *range(18, 33, 2), 36, 40, 48, 64, 96, 128, 256], float
)
"""Orders at which the tight cost is shown unless others are asked for."""

MOMENT_ORDERS: Final = tuple(float(order) for order in range(2, 10))
"""The 2017 paper computes the moments l = 1 … 8; moment l is Rényi order l + 1."""

_QUANTILES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)
_BINS = 20
# Columns of the lattice that are priced together.
_COLUMNS = 2048


class Standing(IntEnum):
    """What a public prior says of a query, beside the teachers."""

    SILENT = 0
    AGREES = 1
    DISAGREES = 2

    @property
    def said(self) -> str:
        """What the prior does, in words."""
        return ("no guess", "agrees", "disagrees")[self]


@dataclass(frozen=True)
class Queries:
    """Queries by kinds that are alike in cost and plurality, or one by one. SECRET.

    Attributes:
        plurality: the largest count of votes, [kinds].
        standing: what a prior says, [kinds].
        number: how many queries there are of each kind, [kinds].
        answers: expected answers of each kind, [kinds].
        steps: cost of one query by step of the mechanism, [kinds] each, nats.
        ids: ids of queries that are told one by one, [kinds]; None of kinds.
    """

    plurality: Ints
    standing: Ints
    number: Ints
    answers: Floats
    steps: dict[str, Floats]
    ids: NDArray[Any] | None = None

    @property
    def cost(self) -> Floats:
        """Cost of one query, [kinds], nats."""
        return np.sum(list(self.steps.values()), axis=0)


@dataclass(frozen=True)
class Priced:
    """Costs of all queries at many orders. SECRET.

    Attributes:
        steps: sums over queries by step of the mechanism, [orders] each, nats.
        at: from the place of an order to the queries with their costs there.
    """

    steps: dict[str, Floats]
    at: Callable[[int], Queries]


class CostAnalysis(Protocol):
    """How queries are charged, and what that amounts to: tight, or as it was published."""

    name: Analysis

    def steps(
        self, mechanism: ScoredMechanism, counts: Histograms, orders: Floats
    ) -> dict[str, Floats]:
        """The cost of each query by step, [orders, queries], nats."""
        ...

    def price(self, votes: AskedRows, mechanism: ScoredMechanism, orders: Floats) -> Priced:
        """Costs of all queries at all orders."""
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
        """Rényi divergences of each query by step, [orders, queries], nats."""
        return mechanism.steps(mechanism.score(counts), orders)

    def price(self, votes: AskedRows, mechanism: ScoredMechanism, orders: Floats) -> Priced:
        """Costs by one reading of the votes: queries of one cell cost the same at every order."""
        grid = mechanism.cost_table(float(np.max(orders))).grid
        seen = list(votes.over(mechanism, _SeeCells(grid)))
        kinds, places = Tally.with_places(np.concatenate([cells for cells, _, _ in seen]))
        number, answers = (
            np.bincount(places, weights=np.concatenate(part))
            for part in zip(*(each[1:] for each in seen), strict=True)
        )
        alone = Tally.of(kinds.cells[:, 2:], number.astype(np.int64))
        halves = [slice(start, None, 2) for start in range(min(2, orders.size))]
        parts = [(half, part) for part in _by_columns(alone) for half in halves]
        steps: dict[str, Floats] = {}
        found = votes.share(_StepSums(mechanism, grid, orders), parts)
        for (half, _), sums in zip(parts, found, strict=True):
            for step, costs in sums.items():
                steps.setdefault(step, np.zeros(orders.size))[half] += costs

        def at(place: int) -> Queries:
            order = orders[place : place + 1]
            each = mechanism.cell_steps(kinds.cells[:, 2:], grid, order)
            each = {step: costs[0] for step, costs in each.items()}
            return Queries(
                kinds.cells[:, 0],
                kinds.cells[:, 1],
                number.astype(np.int64),
                answers.astype(np.float64),
                each,
            )

        return Priced(steps, at)

    def epsilon(self, rdp: Floats, orders: Floats, delta: float) -> Floats:
        """ε at each order by the sharp conversion, never negative."""
        return np.maximum(rdp + conversion_cost(orders, delta=delta), 0.0)


@dataclass(frozen=True)
class _SeeCells:
    """From a batch to its distinct (plurality, standing, cell), and how many and how answered."""

    grid: ScoreGrid

    def __call__(self, mechanism: ScoredMechanism, batch: VoteBatch) -> tuple[Ints, Floats, Floats]:
        cells = mechanism.cells_of(batch.counts, self.grid)
        numbers = np.column_stack([plurality(batch.counts), _standings(batch), cells])
        tally, places = Tally.with_places(numbers)
        chance = mechanism.answer_chance(batch.counts)
        answered = np.bincount(places, weights=chance, minlength=len(tally.cells))
        return tally.cells, tally.weights.astype(np.float64), answered.astype(np.float64)


def _standings(batch: VoteBatch) -> Ints:
    """What the prior says of each query, [queries]; SILENT without one."""
    if batch.alone is None or batch.guesses is None:
        return np.full(len(batch.counts), Standing.SILENT, dtype=np.int64)
    guessed = votes_for(batch.alone, np.maximum(batch.guesses, 0))
    agrees = guessed == plurality(batch.alone)
    said = np.where(agrees, Standing.AGREES, Standing.DISAGREES)
    return np.where(batch.guesses < 0, Standing.SILENT, said).astype(np.int64)


@dataclass(frozen=True)
class _StepSums:
    """From some of the orders and tallied cells to their cost there by step, [orders] each."""

    mechanism: ScoredMechanism
    grid: ScoreGrid
    orders: Floats

    def __call__(self, item: tuple[slice, Tally]) -> dict[str, Floats]:
        some, tally = item
        steps = self.mechanism.cell_steps(tally.cells, self.grid, self.orders[some])
        return {step: costs @ tally.weights for step, costs in steps.items()}


def _by_columns(tally: Tally) -> list[Tally]:
    """Parts of a tally with so many columns each, which are what costs most of the time."""
    order = np.argsort(tally.cells[:, 1], kind="stable")
    cells, weights = tally.cells[order], tally.weights[order]
    number = np.cumsum(np.diff(cells[:, 1], prepend=cells[0, 1]) > 0) // _COLUMNS
    ends = np.flatnonzero(np.diff(number)) + 1
    return [
        Tally(*part) for part in zip(np.split(cells, ends), np.split(weights, ends), strict=True)
    ]


@dataclass(frozen=True)
class _SeeRows:
    """From a batch to its queries one by one; at more than one order only sums of their steps."""

    analysis: CostAnalysis
    orders: Floats

    def __call__(self, mechanism: ScoredMechanism, batch: VoteBatch) -> tuple[Ids, Queries]:
        counts = batch.counts
        steps = self.analysis.steps(mechanism, counts, self.orders)
        one = self.orders.size == 1
        told = {step: costs[0] if one else costs.sum(axis=1) for step, costs in steps.items()}
        each = np.ones(len(counts), dtype=np.int64)
        answers = mechanism.answer_chance(counts)
        return batch.ids, Queries(plurality(counts), _standings(batch), each, answers, told)


def price_rows(
    analysis: CostAnalysis, votes: AskedRows, mechanism: ScoredMechanism, orders: Floats
) -> Priced:
    """Costs of queries one by one, by two readings, for an analysis that knows no cells."""
    steps: dict[str, Floats] = {}
    one = orders.size == 1
    for _, part in votes.over(mechanism, _SeeRows(analysis, orders)):
        for step, costs in part.steps.items():
            steps[step] = steps.get(step, 0.0) + (costs.sum(keepdims=True) if one else costs)
    return Priced(
        steps, lambda place: rows_at(analysis, votes, mechanism, order=float(orders[place]))
    )


def rows_at(
    analysis: CostAnalysis, votes: AskedRows, mechanism: ScoredMechanism, *, order: float
) -> Queries:
    """Every query with its cost at one order, all of them in memory. SECRET."""
    ids, parts = zip(*votes.over(mechanism, _SeeRows(analysis, np.array([order]))), strict=True)

    def whole(name: str) -> Any:
        return np.concatenate([getattr(part, name) for part in parts])

    return Queries(
        whole("plurality"),
        whole("standing"),
        whole("number"),
        whole("answers"),
        {step: np.concatenate([part.steps[step] for part in parts]) for step in parts[0].steps},
        np.concatenate([np.asarray(each) for each in ids]),
    )


@dataclass(frozen=True, repr=False)
class VoteCost(Result):
    """What given votes cost, with the worst case beside it. SECRET.

    Attributes:
        analysis: `tight` or `paper`.
        mechanism: the mechanism's public parameters.
        max_answers: k2, the public cap on answers.
        delta: δ.
        orders: Rényi orders, [orders].
        steps: sums over queries by step of the mechanism, [orders] each, nats.
        by_orders: ε at each order, [orders], nats.
        queries: costs of queries at the best order.
        worst_case: the ε of the labels alone that holds whatever the votes.
        rows: every query at the best order; None where that was not asked for.
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
    rows: Queries | None = None
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

    @property
    def series(self) -> dict[str, list[dict[str, Any]]]:
        """Bins of queries by their plurality; with a prior apart by what it says of them."""
        if not self.prior:
            return {"": self.histogram()}
        every = {each.said: self.histogram(each) for each in Standing}
        return {said: bins for said, bins in every.items() if bins}

    def quantiles(self) -> dict[str, float]:
        """Quantiles of the cost of a query by their level, linear between queries, nats."""
        order = np.argsort(self.queries.cost)
        costs, upto = self.queries.cost[order], np.cumsum(self.queries.number[order])
        places = np.array(_QUANTILES) * (upto[-1] - 1)
        below, above = (
            costs[np.searchsorted(upto, rounded(places), side="right")]
            for rounded in (np.floor, np.ceil)
        )
        values = below + (places - np.floor(places)) * (above - below)
        return {f"{level:g}": float(value) for level, value in zip(_QUANTILES, values, strict=True)}

    def histogram(self, standing: Standing | None = None) -> list[dict[str, Any]]:
        """Bins of queries by plurality: how many, how often answered, and what they cost.

        Figure 5 of the ICLR 2018 paper in numbers; empty bins are left out.

        Args:
            standing: only queries of which a prior says this.
        """
        found = self.queries
        edges = each_once(np.linspace(0, self.most_votes, _BINS + 1).round().astype(np.int64))
        bins = np.clip(np.searchsorted(edges, found.plurality, "right") - 1, 0, edges.size - 2)
        mine = np.ones(bins.size) if standing is None else found.standing == standing
        queries, answers, cost = (
            np.bincount(bins, numbers * mine, minlength=edges.size - 1)
            for numbers in (found.number, found.answers, found.cost * found.number)
        )
        whole = self._whole_cost
        return [
            {
                "from": int(edges[place]),
                "to": int(edges[place + 1]),
                "queries": int(queries[place]),
                "expected_answers": float(answers[place]),
                "mean_cost": float(cost[place] / queries[place]),
                "share_of_cost": float(cost[place]) / whole,
            }
            for place in np.flatnonzero(queries).tolist()
        ]

    def by_standing(self) -> dict[str, dict[str, float]]:
        """Queries, expected answers and their share of the cost, by what a prior says of them."""
        found, told = self.queries, {}
        for standing in Standing:
            mine = found.standing == standing
            cost = found.cost[mine] @ found.number[mine]
            told[standing.name.lower()] = {
                "queries": int(found.number[mine].sum()),
                "expected_answers": float(found.answers[mine].sum()),
                "share_of_cost": float(cost) / self._whole_cost,
            }
        return told

    @property
    def _whole_cost(self) -> float:
        """The cost of all queries at the best order, nats, but not 0."""
        return max(float(self.queries.cost @ self.queries.number), np.finfo(float).tiny)

    def to_dict(self) -> dict[str, Any]:
        """By step, by order and in bins of queries; JSON-ready."""
        worst = self.worst_case
        return {
            "schema_version": 1,
            "releasable": False,
            "analysis": self.analysis.value,
            "mechanism": dict(self.mechanism),
            "queries": int(self.queries.number.sum()),
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
                **({"by_prior": self.by_standing()} if self.prior else {}),
            },
            **({} if self.target is None else {"target": self.target.to_dict()}),
            **({} if self.unmatched is None else {"unmatched_votes": self.unmatched.to_dict()}),
        }

    def columns(self) -> dict[str, NDArray[Any]]:
        """One row per query, at the best order.

        Raises:
            UsageError: costs by query were not asked for.
        """
        rows = self.rows
        if rows is None or rows.ids is None:
            raise UsageError("costs by query are not there; ask for them with `per_query`")
        return {
            "query_id": rows.ids,
            "plurality": rows.plurality,
            "answer_probability": rows.answers,
            **{f"cost_{step}": values for step, values in rows.steps.items()},
            "cost": rows.cost,
        }

    def said(self) -> Said:
        """Return its lines and tables."""
        return words.of_cost(self.to_dict())

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
    per_query: bool = False,
) -> VoteCost:
    """What votes cost at some orders in total, and single queries at the best of them. SECRET.

    Args:
        votes: the rows that are asked.
        mechanism: the aggregator.
        orders: Rényi orders, [orders].
        delta: δ in (0, 1).
        max_answers: k2, the public cap on answers; none if left out.
        analysis: the tight one unless another is given.
        per_query: whether every query is told by itself, too, all in memory.
    """
    orders, delta = check_orders(orders), check_delta(delta)
    analysis = TightCost() if analysis is None else analysis
    cap = votes.queries if max_answers is None else max_answers
    priced = analysis.price(votes, mechanism, orders)
    by_orders = analysis.epsilon(np.sum(list(priced.steps.values()), axis=0), orders, delta)
    best = int(np.argmin(by_orders))
    found = VoteCost(
        analysis=analysis.name,
        mechanism=mechanism.parameters(),
        max_answers=cap,
        delta=delta,
        orders=orders,
        steps=priced.steps,
        by_orders=by_orders,
        queries=priced.at(best),
        worst_case=Cost(delta, (Rows(mechanism, votes.queries, cap),)).of_curves,
        prior=mechanism.prior_weight > 0,
    )
    if not per_query:
        return found
    return replace(found, rows=rows_at(analysis, votes, mechanism, order=found.order))
