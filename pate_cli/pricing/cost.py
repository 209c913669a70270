"""What votes would cost: by step, by order and by query. SECRET.

The tight cost of a Confident query is one Rényi divergence (accounting.threshold); "threshold" is
what the selecting coin costs alone and "argmax" the rest. Another analysis may stand in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import IntEnum
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pate_cli.accounting.conversion import conversion_cost, round_up
from pate_cli.accounting.cost_table import Tally, TallySum
from pate_cli.accounting.score_grid import ScoreGrid
from pate_cli.core.arrays import Floats, Histograms, Ids, Ints, each_once, votes_for
from pate_cli.core.checks import check_delta, check_orders
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import UsageError
from pate_cli.core.words import Analysis
from pate_cli.disclosure.worst_case import DataIndependentCost
from pate_cli.files.results import Result
from pate_cli.mechanisms.base import ScoredMechanism, plurality
from pate_cli.pricing.prospect import Prospect
from pate_cli.run.fold import AskedRows
from pate_cli.votes.unmatched import Unmatched
from pate_cli.votes.vote_file import VoteBatch

TIGHT_ORDERS = np.concatenate(
    [
        np.arange(1.5, 4.0, 0.5),
        np.arange(4.0, 16.0),
        np.arange(16.0, 32.0, 2.0),
        [32.0, 36.0, 40.0, 48.0, 64.0, 96.0, 128.0, 256.0],
    ]
)
"""Orders at which the tight cost is shown unless others are asked for."""

MOMENT_ORDERS: tuple[float, ...] = tuple(float(order) for order in range(2, 10))
"""The 2017 paper computes the moments l = 1 … 8; moment l is Rényi order l + 1."""

_QUANTILES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)
_BINS = 20
# Columns that are priced together.
_COLUMNS = 2048


class Standing(IntEnum):
    """What a public prior says of a query, beside the teachers."""

    SILENT = 0
    AGREES = 1
    DISAGREES = 2

    @property
    def said(self) -> str:
        """In words."""
        return ("no guess", "agrees", "disagrees")[self]


def standings(batch: VoteBatch) -> Ints:
    """What the prior says of each query, [queries]; SILENT without one. SECRET."""
    if batch.alone is None or batch.guesses is None:
        return np.full(len(batch.counts), Standing.SILENT, dtype=np.int64)
    guessed = votes_for(batch.alone, np.maximum(batch.guesses, 0))
    agrees = guessed == plurality(batch.alone)
    said = np.where(agrees, Standing.AGREES, Standing.DISAGREES)
    return np.where(batch.guesses < 0, Standing.SILENT, said).astype(np.int64)


class CostAnalysis(Protocol):
    """How queries are charged and what that amounts to."""

    name: Analysis

    def steps(
        self, mechanism: ScoredMechanism, counts: Histograms, orders: Floats
    ) -> dict[str, Floats]:
        """The cost of each query by step, [orders, queries], nats."""
        ...

    def price(self, votes: AskedRows, mechanism: ScoredMechanism, orders: Floats) -> Priced:
        """All queries, priced."""
        ...

    def epsilon(self, rdp: Floats, orders: Floats, delta: float) -> Floats:
        """ε at each order, [orders], nats."""
        ...


@dataclass(frozen=True)
class Priced:
    """What queries cost, and how often they are answered. SECRET.

    Attributes:
        steps: Σ over queries per step, [orders] each, nats.
        answers: expected answers of the queries with a plurality of v and one standing, [kinds],
            ascending with `pluralities`.
        pluralities: v of each (votes), [kinds]; one a value that occurs where there is no prior.
        standings: what a prior says of them, [kinds].
        single: from the index of an order to the cost of single queries there.
    """

    steps: dict[str, Floats]
    pluralities: Ints
    standings: Ints
    answers: Floats
    single: Callable[[int], QueryKinds]


@dataclass(frozen=True)
class QueryKinds:
    """Costs of queries that are alike in cost and plurality.

    Attributes:
        cost: of one of them, [kinds], nats.
        plurality: max_j n_j, [kinds] (votes).
        standing: what a prior says of them, [kinds].
        queries: how many there are, [kinds].
    """

    cost: Floats
    plurality: Ints
    standing: Ints
    queries: Ints


class TightCost:
    """The analysis that is sharp and sound."""

    name = Analysis.TIGHT

    def steps(
        self, mechanism: ScoredMechanism, counts: Histograms, orders: Floats
    ) -> dict[str, Floats]:
        """Exact steps of the mechanism."""
        return mechanism.steps(mechanism.score(counts), orders)

    def price(self, votes: AskedRows, mechanism: ScoredMechanism, orders: Floats) -> Priced:
        """By one reading: queries of one cell cost the same at every order."""
        grid = mechanism.cost_table(float(np.max(orders))).grid
        tallies, answers = TallySum(4), _Expected.none()
        for tally, expected in votes.over(mechanism, _SeeCells(grid)):
            tallies.add(tally)
            answers += expected
        kinds = tallies.total
        places = kinds.cells[:, 2:]
        cells = Tally.of(places, kinds.weights)
        halves = [slice(start, None, 2) for start in range(min(2, orders.size))]
        parts = [(half, part) for part in _by_columns(cells) for half in halves]
        sums = votes.share(_StepSums(mechanism, grid, orders), parts)
        steps: dict[str, Floats] = {}
        for (half, _), found in zip(parts, sums, strict=True):
            for step, costs in found.items():
                steps.setdefault(step, np.zeros(orders.size))[half] += costs

        def single(place: int) -> QueryKinds:
            alone = mechanism.cell_steps(places, grid, orders[place : place + 1])
            cost = np.sum(list(alone.values()), axis=0)[0]
            return QueryKinds(cost, kinds.cells[:, 0], kinds.cells[:, 1], kinds.weights)

        return Priced(steps, *answers.by_kind, single)

    def epsilon(self, rdp: Floats, orders: Floats, delta: float) -> Floats:
        """By the sharp conversion; never negative."""
        return np.maximum(rdp + conversion_cost(orders, delta=delta), 0.0)


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
    """A tally in parts, each of so many columns, which are what costs most of the time."""
    order = np.argsort(tally.cells[:, 1], kind="stable")
    cells, weights = tally.cells[order], tally.weights[order]
    number = np.cumsum(np.diff(cells[:, 1], prepend=cells[0, 1]) > 0) // _COLUMNS
    ends = np.flatnonzero(np.diff(number)) + 1
    return [
        Tally(*part) for part in zip(np.split(cells, ends), np.split(weights, ends), strict=True)
    ]


@dataclass(frozen=True)
class _Expected:
    """Expected answers of the queries of a kind, which is (plurality, standing) in one number."""

    kinds: Ints
    expected: Floats

    @classmethod
    def none(cls) -> _Expected:
        return cls(np.zeros(0, dtype=np.int64), np.zeros(0))

    @classmethod
    def of(cls, votes: Ints, standing: Ints, chances: Floats) -> _Expected:
        return cls._summed(votes * len(Standing) + standing, chances)

    @classmethod
    def _summed(cls, kinds: Ints, numbers: Floats) -> _Expected:
        distinct, places = np.unique(kinds, return_inverse=True)
        return cls(distinct, _sums(places, numbers, distinct.size))

    def __add__(self, other: _Expected) -> _Expected:
        return self._summed(
            np.concatenate([self.kinds, other.kinds]),
            np.concatenate([self.expected, other.expected]),
        )

    @property
    def by_kind(self) -> tuple[Ints, Ints, Floats]:
        """(pluralities, standings, answers), [kinds] each."""
        return *np.divmod(self.kinds, len(Standing)), self.expected


def _sums(places: Ints, numbers: Floats, size: int) -> Floats:
    """Of the numbers at each place, [size]."""
    return np.bincount(places, weights=numbers, minlength=size).astype(np.float64)


@dataclass(frozen=True)
class _SeeCells:
    """What a batch adds: queries by (plurality, standing, cell), and expected answers."""

    grid: ScoreGrid

    def __call__(self, mechanism: ScoredMechanism, batch: VoteBatch) -> tuple[Tally, _Expected]:
        votes = plurality(batch.counts)
        standing = standings(batch)
        cells = mechanism.cells_of(batch.counts, self.grid)
        tally = Tally.of(np.column_stack([votes, standing, cells]))
        return tally, _Expected.of(votes, standing, mechanism.answer_chance(batch.counts))


@dataclass(frozen=True)
class QueryCosts:
    """Costs of a batch of queries.

    Attributes:
        steps: per step of the mechanism, [orders, queries], nats; they add up to the cost.
        answer: Pr[answer], [queries].
        plurality: max_j n_j, [queries] (votes).
        standing: what a prior says of each, [queries].
    """

    steps: dict[str, Floats]
    answer: Floats
    plurality: Ints
    standing: Ints

    @property
    def total(self) -> Floats:
        """The whole cost, [orders, queries], nats."""
        return np.sum(list(self.steps.values()), axis=0)


def query_costs(
    mechanism: ScoredMechanism, counts: Histograms, *, orders: Floats, analysis: CostAnalysis
) -> QueryCosts:
    """The cost of every query of a batch at every order, by step. SECRET.

    Raises:
        UsageError: a mechanism that the analysis does not know, or shared records.
    """
    steps = analysis.steps(mechanism, counts, check_orders(orders))
    silent = np.full(len(counts), Standing.SILENT, dtype=np.int64)
    return QueryCosts(steps, mechanism.answer_chance(counts), plurality(counts), silent)


@dataclass(frozen=True)
class _SeeRows:
    """The costs of a batch row by row, with its ids; at more than one order only their sums."""

    analysis: CostAnalysis
    orders: Floats

    def __call__(self, mechanism: ScoredMechanism, batch: VoteBatch) -> tuple[Ids, QueryCosts]:
        found = query_costs(mechanism, batch.counts, orders=self.orders, analysis=self.analysis)
        found = replace(found, standing=standings(batch))
        if self.orders.size > 1:
            sums = {step: costs.sum(axis=1) for step, costs in found.steps.items()}
            found = replace(found, steps=sums)
        return batch.ids, found


def price_rows(
    analysis: CostAnalysis, votes: AskedRows, mechanism: ScoredMechanism, orders: Floats
) -> Priced:
    """Queries priced one by one, for an analysis that has no cells."""
    steps: dict[str, Floats] = {}
    answers = _Expected.none()
    for _, part in votes.over(mechanism, _SeeRows(analysis, orders)):
        for step, sums in part.steps.items():
            steps[step] = steps.get(step, 0.0) + sums.reshape(orders.size, -1).sum(axis=1)
        answers += _Expected.of(part.plurality, part.standing, part.answer)

    def single(place: int) -> QueryKinds:
        rows = rows_at(analysis, votes, mechanism, order=float(orders[place]))
        each = np.ones(rows.plurality.size, dtype=np.int64)
        return QueryKinds(rows.total, rows.plurality, rows.standing, each)

    return Priced(steps, *answers.by_kind, single)


@dataclass(frozen=True)
class RowCosts:
    """Every query at one order. SECRET.

    Attributes:
        ids: [queries].
        steps: cost of each by step, [queries], nats.
        answer, plurality, standing: as in `QueryCosts`.
    """

    ids: NDArray[Any]
    steps: dict[str, Floats]
    answer: Floats
    plurality: Ints
    standing: Ints

    @property
    def total(self) -> Floats:
        """Cost of each, [queries], nats."""
        return np.sum(list(self.steps.values()), axis=0)


def rows_at(
    analysis: CostAnalysis, votes: AskedRows, mechanism: ScoredMechanism, *, order: float
) -> RowCosts:
    """The cost of every query at one order; all of them in memory."""
    parts = list(votes.over(mechanism, _SeeRows(analysis, np.array([order]))))
    steps = parts[0][1].steps
    return RowCosts(
        ids=np.concatenate([np.asarray(ids) for ids, _ in parts]),
        steps={step: np.concatenate([part.steps[step][0] for _, part in parts]) for step in steps},
        answer=np.concatenate([part.answer for _, part in parts]),
        plurality=np.concatenate([part.plurality for _, part in parts]),
        standing=np.concatenate([part.standing for _, part in parts]),
    )


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
        epsilon: smallest ε over the orders, nats.
        order: where.
        at_edge: the best order is the first or last of several: a wider range may do better.
        kinds: cost of single queries at that order.
        answers, pluralities, standings: as in `Priced`.
    """

    orders: Floats
    steps: dict[str, Floats]
    epsilon: float
    order: float
    at_edge: bool
    kinds: QueryKinds
    answers: Floats
    pluralities: Ints
    standings: Ints

    @property
    def queries(self) -> int:
        """Rows priced."""
        return int(self.kinds.queries.sum())

    @property
    def expected_answers(self) -> float:
        """Σ Pr[answer]."""
        return float(self.answers.sum())

    @property
    def rdp(self) -> Floats:
        """Total cost at each order, nats."""
        return np.sum(list(self.steps.values()), axis=0)

    def quantiles(self) -> dict[str, float]:
        """Quantiles of the cost per query, by their level, between queries linear."""
        order = np.argsort(self.kinds.cost)
        costs, upto = self.kinds.cost[order], np.cumsum(self.kinds.queries[order])
        places = np.array(_QUANTILES) * (self.queries - 1)
        below, above = (
            costs[np.searchsorted(upto, rounded(places), side="right")]
            for rounded in (np.floor, np.ceil)
        )
        values = below + (places - np.floor(places)) * (above - below)
        return {f"{level:g}": float(value) for level, value in zip(_QUANTILES, values, strict=True)}

    def histogram(self, votes: int, standing: Standing | None = None) -> list[dict[str, Any]]:
        """Queries by plurality count: how many, how often answered, and what they cost.

        Figure 5 of the ICLR 2018 paper in numbers; empty bins are left out.

        Args:
            votes: most of a query: τ, or τ + B with a prior.
            standing: only queries of which a prior says this.
        """
        edges = each_once(np.linspace(0, votes, _BINS + 1).round().astype(np.int64))

        def summed(counts: Ints, standings: Ints, numbers: Floats) -> Floats:
            index = np.clip(np.searchsorted(edges, counts, "right") - 1, 0, edges.size - 2)
            mine = np.where(standings == standing, numbers, 0.0)
            return _sums(index, numbers if standing is None else mine, edges.size - 1)

        kinds = self.kinds
        asked = kinds.queries.astype(np.float64)
        queries = summed(kinds.plurality, kinds.standing, asked)
        answers = summed(self.pluralities, self.standings, self.answers)
        each = kinds.cost * kinds.queries
        cost = summed(kinds.plurality, kinds.standing, each)
        whole = float(cost.sum() if standing is None else each.sum())
        whole = max(whole, np.finfo(float).tiny)
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
        kinds, found = self.kinds, {}
        cost = kinds.cost * kinds.queries
        whole = max(float(cost.sum()), np.finfo(float).tiny)
        for standing in Standing:
            mine = kinds.standing == standing
            found[standing.name.lower()] = {
                "queries": int(kinds.queries[mine].sum()),
                "expected_answers": float(self.answers[self.standings == standing].sum()),
                "share_of_cost": float(cost[mine].sum()) / whole,
            }
        return found


def measure_cost(
    votes: AskedRows,
    mechanism: ScoredMechanism,
    *,
    orders: Floats,
    delta: float,
    analysis: CostAnalysis | None = None,
) -> CostSummary:
    """Price votes: all orders in total, then single queries at the best order.

    Args:
        votes: over the queries.
        mechanism: the aggregator.
        orders: Rényi orders, [orders].
        delta: δ in (0, 1).
        analysis: the tight one unless another is given.
    """
    orders, delta = check_orders(orders), check_delta(delta)
    analysis = TightCost() if analysis is None else analysis
    priced = analysis.price(votes, mechanism, orders)
    epsilon = analysis.epsilon(np.sum(list(priced.steps.values()), axis=0), orders, delta)
    best = int(np.argmin(epsilon))
    return CostSummary(
        orders=orders,
        steps=priced.steps,
        epsilon=float(epsilon[best]),
        order=float(orders[best]),
        at_edge=orders.size > 1 and best in (0, orders.size - 1),
        kinds=priced.single(best),
        answers=priced.answers,
        pluralities=priced.pluralities,
        standings=priced.standings,
    )


@dataclass(frozen=True, repr=False)
class VoteCost(Result):
    """What the votes would cost, with the ε that holds for all votes beside it. SECRET.

    Attributes:
        summary: the data-dependent part.
        analysis: `tight` or `paper`.
        mechanism: the mechanism's public parameters.
        max_answers: k2, the public cap on answers.
        delta: δ.
        for_all_votes: the data-independent ε of the labels alone.
        rows: every query at the best order; None where that was not asked for.
        target: how a target would fare, if one was stated.
        prior: whether a prior votes, too.
        unmatched: which votes are texts and no names; None where votes are no texts.
    """

    summary: CostSummary
    analysis: Analysis
    mechanism: Mapping[str, Any]
    max_answers: int
    delta: float
    for_all_votes: DataIndependentCost
    rows: RowCosts | None = None
    target: Prospect | None = None
    prior: bool = False
    unmatched: Unmatched | None = None

    @property
    def series(self) -> dict[str, list[dict[str, Any]]]:
        """Bins of queries by their plurality; with a prior apart by what it says of them."""
        found, most = self.summary, self.most_votes
        if not self.prior:
            return {"": found.histogram(most)}
        every = {each.said: found.histogram(most, each) for each in Standing}
        return {said: bins for said, bins in every.items() if bins}

    @property
    def most_votes(self) -> int:
        """τ + B."""
        return int(self.mechanism["teachers"] + self.mechanism.get("prior_weight", 0))

    @property
    def epsilon(self) -> float:
        """ε for these votes, nats: of the tight analysis never above that for all votes.

        What the paper's analysis gives is repeated as it is.
        """
        given = self.summary.epsilon
        return self.for_all_votes.least(given) if self.analysis is Analysis.TIGHT else given

    @property
    def by_order(self) -> bool:
        """Whether ε was found at one of the orders, and not as the worst case."""
        return self.epsilon == self.summary.epsilon

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
            "epsilon": self.epsilon,
            "order": found.order,
            "order_at_edge": found.at_edge and self.by_order,
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
                "by_plurality": found.histogram(self.most_votes),
                **({"by_prior": found.by_standing()} if self.prior else {}),
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
        if rows is None:
            raise UsageError("costs by query are not there; ask for them with `per_query`")
        return {
            "query_id": rows.ids,
            "plurality": rows.plurality,
            "answer_probability": rows.answer,
            **{f"cost_{step}": values for step, values in rows.steps.items()},
            "cost": rows.total,
        }

    def headline(self) -> str:
        """ε and for how many answers."""
        return (
            f"epsilon {self.epsilon:.4f} at delta {self.delta:g} for "
            f"{self.summary.expected_answers:.1f} expected answers"
        )
