"""Costs of given votes by step, order and query, and the pass probability of a target. SECRET.

The tight analysis computes one Rényi divergence of all steps of a query together. The step
"threshold" is the cost of comparing the largest count with the threshold, and "argmax" is the rest
of the cost. A caller may instead choose the analysis that the two PATE papers of 2017 and 2018
published (`paper.analysis`). Votes are read a first time for the total cost at every order, and a
second time for the cost of each query at the best order.

If teachers vote on few queries, replacing one teacher changes at most K queries. If replacing one
teacher changes at most K queries, the total cost is the sum of the costs of the K costliest
queries. The costliest queries are chosen separately at every order. If teachers vote on few
queries, a ledger and a release test add up the costs of the costliest queries only.

Mechanisms are compared on the same votes at an equal number of expected answers.

For a target, the result includes the pass probability, the smallest target that would pass, and the
largest number of rows that would pass. The numbers for a target are computed from the votes, so
they are exact and no forecast.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pate_cli.accounting.conversion import conversion_cost, round_up
from pate_cli.accounting.cost_table import Tally
from pate_cli.accounting.few_votes import CostSum, Few, costliest, touched
from pate_cli.core.arrays import Floats, Histograms, each_once, votes_for
from pate_cli.core.checks import check_delta, check_orders
from pate_cli.core.said import Said
from pate_cli.core.words import Analysis, OrderChoice
from pate_cli.disclosure.cost import Cost, Figure
from pate_cli.disclosure.target import TargetPlan, coin_orders, states_for
from pate_cli.files.results import Result
from pate_cli.mechanisms.base import ComposedMechanism, Mechanism, ScoredMechanism, plurality
from pate_cli.planning import words
from pate_cli.planning.forecast import worst_case_epsilon
from pate_cli.planning.query_costs import QueryCosts
from pate_cli.planning.search import least, most_rows
from pate_cli.run.fold import AskedRows, OnCounts
from pate_cli.votes.names import Unmatched
from pate_cli.votes.vote_file import VoteBatch

TIGHT_ORDERS: Final = np.array(
    [1.5, 2, 2.5, 3, 3.5, *range(4, 17), *range(18, 33, 2), 36, 40, 48, 64, 96, 128, 256], float
)
"""The orders of the tight analysis, unless the caller gives other orders."""

MOMENT_ORDERS: Final = tuple(float(order) for order in range(2, 10))
"""The 2017 paper computes the moments l = 1 … 8; moment l is Rényi order l + 1."""

SAID: Final = ("silent", "agrees", "disagrees")
"""Whether the guess of a public prior is the plurality of the teachers, or is missing."""

_QUANTILES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)
_BINS, _TINY = 20, float(np.finfo(float).tiny)
LIKELY: Final = 0.977
"""A pass probability that counts as likely: two standard deviations, one-sided."""

CHANCES: Final = (0.9, LIKELY, 0.999)
"""Pass probabilities for which the smallest target is shown."""

# The number of refusals depends on the threshold, and the threshold slightly on the number of
# refusals. So both are computed in turn, at most this many times.
_ROUNDS = 6
_COUNTED = "the guesses of the prior are counted as votes, and agreement includes them"
_ENDS = "the file has too few queries for this number of answers"
# The number of states whose costs are computed at once.
_AT_ONCE = 50_000
# The smallest target is searched within a factor of 64 of the last guess, to a relative precision
# of 1e-4, at most 3 times.
_WIDEST, _PRECISION, _TRIES = 64.0, 1e-4, 3
# If rounding made the target too small, it is increased by this factor.
_STEP = 1.001

Columns: TypeAlias = dict[str, NDArray[Any]]


class CostAnalysis:
    """How the RDP cost of queries is computed, and how it is converted to ε.

    This class is the tight analysis, which is sound: its costs are exact Rényi divergences or upper
    bounds, and its conversion is the sharpest. Other analyses are derived from this class.
    """

    name: ClassVar[Analysis] = Analysis.TIGHT
    usual_orders: ClassVar[tuple[float, ...]] = tuple(TIGHT_ORDERS.tolist())

    def orders(self, choice: OrderChoice) -> Floats:
        """Return the usual Rényi orders, or those of the moments of the 2017 paper."""
        return np.array(MOMENT_ORDERS if choice is OrderChoice.MOMENTS else self.usual_orders)

    def steps(
        self, mechanism: ScoredMechanism, counts: Histograms, orders: Floats
    ) -> dict[str, Floats]:
        """Return the cost of each query by step of the mechanism, [orders, queries] each, nats."""
        return mechanism.steps(mechanism.score(counts), orders)

    def epsilon(self, rdp: Floats, orders: Floats, delta: float) -> Floats:
        """Return ε at each order from the RDP cost at each order, [orders], nats."""
        return np.maximum(rdp + conversion_cost(orders, delta=delta), 0.0)


TIGHT: Final = CostAnalysis()
"""The tight analysis."""


def _steps_of_batch(
    few: Few, analysis: CostAnalysis, orders: Floats, mechanism: ScoredMechanism, counts: Histograms
) -> dict[str, Floats]:
    """Return what a batch adds to the total RDP cost; see `_steps_that_count`."""
    return _steps_that_count(few, analysis.steps(mechanism, counts, orders))


def _steps_that_count(few: Few, steps: dict[str, Floats]) -> dict[str, Floats]:
    """Return what the queries add to the total RDP cost, by step, [orders, columns], nats.

    If teachers may vote on all queries, all queries count, and the sum of their costs is the only
    column. If the votes of one teacher are limited, the result has a column for each of the
    costliest queries, and no column for the other queries.

    Args:
        few: the limit on the votes of one teacher; None if there is no limit.
        steps: the cost of each query, [orders, queries], nats, by the step that causes it (the
            threshold test or the answer).
    """
    if few is None:
        return {step: costs.sum(axis=1, keepdims=True) for step, costs in steps.items()}
    total = np.sum(list(steps.values()), axis=0)
    places, _ = costliest(few, total, np.ones(total.shape[1], dtype=np.int64))
    return {step: np.take_along_axis(costs, places, axis=1) for step, costs in steps.items()}


def _queries_of(
    analysis: CostAnalysis, order: float, mechanism: ScoredMechanism, batch: VoteBatch
) -> Columns:
    """Return the queries of a batch with their costs at one order, as columns."""
    steps = analysis.steps(mechanism, batch.counts, np.array([order]))
    said = np.zeros(len(batch.counts), dtype=np.int64)
    if batch.alone is not None and batch.guesses is not None:
        votes = votes_for(batch.alone, np.maximum(batch.guesses, 0))
        said = np.where(votes == plurality(batch.alone), 1, 2) * (batch.guesses >= 0)
    return {
        "query_id": np.asarray(batch.ids),
        "plurality": plurality(batch.counts),
        "answer_probability": mechanism.answer_chance(batch.counts),
        **{f"cost_{step}": costs[0] for step, costs in steps.items()},
        "cost": np.sum(list(steps.values()), axis=0)[0],
        "said": said,
    }


def queries_at(
    analysis: CostAnalysis, votes: AskedRows, mechanism: ScoredMechanism, *, order: float
) -> Columns:
    """Return every query with its cost at one order, as columns in memory. SECRET.

    Returns:
        Columns, [queries] each. `query_id` is the id, `plurality` the largest count of votes, and
        `answer_probability` the probability of an answer. Each step of the mechanism has a column
        for its cost, such as `cost_threshold`, and `cost` is the total cost of the query, in nats.
        `said` is an index into `SAID`: it says whether the guess of a prior is the plurality of the
        teachers, or is missing.
    """
    parts = list(votes.over(mechanism, functools.partial(_queries_of, analysis, order)))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


@dataclass(frozen=True, repr=False)
class VoteCost(Result):
    """The RDP cost of given votes, by order and by query, and the worst-case ε. SECRET.

    Attributes:
        analysis: `tight` or `paper`.
        mechanism: the public parameters of the mechanism.
        max_answers: the public cap on answers; without a cap, the number of queries.
        delta: δ.
        orders: Rényi orders, [orders].
        steps: the RDP cost by step of the mechanism, [orders] each, nats. If teachers vote on few
            queries, `steps` includes the costs of the costliest queries only.
        by_orders: ε at each order, [orders], nats.
        queries: every query with its cost at the best order, in the columns that `queries_at`
            describes.
        worst_case: the worst-case ε of the labels, if no sanitized ε is released.
        target: the result of `measure_target`; None without a target.
        costliest_queries: how many queries can change at most if one teacher is replaced. The total
            cost is the sum of the costs of the `costliest_queries` costliest queries.
            `costliest_queries` is None if teachers may vote on all queries.
        prior: whether a public prior votes, too.
        unmatched: votes in words that match no class name; None if votes are not texts.
    """

    analysis: Analysis
    mechanism: Mapping[str, Any]
    max_answers: int
    delta: float
    orders: Floats
    steps: dict[str, Floats]
    by_orders: Floats
    queries: Columns
    worst_case: Figure
    target: Mapping[str, Any] | None = None
    costliest_queries: int | None = None
    prior: bool = False
    unmatched: Unmatched | None = None

    @property
    def rdp(self) -> Floats:
        """Return the total RDP cost at each order, [orders], nats.

        If teachers vote on few queries, the total is the cost of the costliest queries only.
        """
        return np.sum(list(self.steps.values()), axis=0)

    @property
    def order(self) -> float:
        """Return the order with the smallest ε."""
        return float(self.orders[np.argmin(self.by_orders)])

    @property
    def epsilon(self) -> float:
        """Return ε for these votes, nats.

        The ε of the tight analysis is never above the worst-case ε. The ε of the published
        analysis, `paper`, may be larger than the worst-case ε.
        """
        given = float(self.by_orders.min())
        return self.worst_case.least(given) if self.analysis is Analysis.TIGHT else given

    @property
    def order_at_edge(self) -> bool:
        """Return whether the best order is the smallest or the largest of several orders.

        If the best order is the smallest or the largest, orders outside the range may give a
        smaller ε.
        """
        best, last = int(np.argmin(self.by_orders)), self.orders.size - 1
        return last > 0 and best in (0, last) and self.epsilon == float(self.by_orders[best])

    @property
    def expected_answers(self) -> float:
        """Return the expected number of answers of all queries."""
        return float(self.queries["answer_probability"].sum())

    def quantiles(self) -> dict[str, float]:
        """Return quantiles of the costs of the queries, nats; the key "0.5" has the median."""
        values = np.quantile(self.queries["cost"], _QUANTILES).tolist()
        return {f"{level:g}": value for level, value in zip(_QUANTILES, values, strict=True)}

    def histogram(self) -> list[dict[str, Any]]:
        """Return the queries in bins by plurality: their number, answers and cost.

        Figure 5 of the ICLR 2018 paper shows number, answers and cost of queries by plurality for
        the votes of the paper. Empty bins are left out.
        """
        most = self.mechanism["teachers"] + self.mechanism.get("prior_weight", 0)
        edges = each_once(np.linspace(0, most, _BINS + 1).round().astype(np.int64))
        bins = np.searchsorted(edges, self.queries["plurality"], "right") - 1
        bins = np.clip(bins, 0, edges.size - 2)
        return [
            {
                "from": int(edges[place]),
                "to": int(edges[place + 1]),
                **self._part(bins == place),
                "mean_cost": float(self.queries["cost"][bins == place].mean()),
            }
            for place in np.unique(bins).tolist()
        ]

    def by_prior(self) -> dict[str, dict[str, float]]:
        """Return number, expected answers and share of the cost of queries, by the prior's guess.

        The guess for a query is missing, is the plurality of the teachers, or is another class.
        """
        return {name: self._part(self.queries["said"] == said) for said, name in enumerate(SAID)}

    def _part(self, mine: NDArray[np.bool_]) -> dict[str, float]:
        """Return number, expected answers and share of cost of the queries that `mine` selects."""
        cost = self.queries["cost"]
        return {
            "queries": int(mine.sum()),
            "expected_answers": float(self.queries["answer_probability"][mine].sum()),
            "share_of_cost": float(cost[mine].sum()) / max(float(cost.sum()), _TINY),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the costs by step, by order and in bins of queries, ready for JSON."""
        worst, few = self.worst_case, self.costliest_queries
        return {
            "schema_version": 1,
            "releasable": False,
            "analysis": self.analysis.value,
            "mechanism": dict(self.mechanism),
            "queries": self.queries["cost"].size,
            "max_answers": self.max_answers,
            **({} if few is None else {"costliest_queries": few}),
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
            **({} if self.target is None else {"target": dict(self.target)}),
            **({} if self.unmatched is None else {"unmatched_votes": self.unmatched.to_dict()}),
        }

    def columns(self) -> Columns:
        """Return a table with one row for each query, with its cost at the best order."""
        return {name: values for name, values in self.queries.items() if name != "said"}

    def said(self) -> Said:
        """Return the lines and tables that show the costs to people."""
        return words.of_cost(self.to_dict())

    def plot(self, axes: Any = None) -> Any:
        """Draw the cost of queries on matplotlib Axes, and return the Axes. SECRET.

        The extra `plot` must be installed.

        Args:
            axes: the Axes to draw on; if left out, new Axes are made.
        """
        from pate_cli.disclosure.pictures import draw_cost

        return draw_cost(self, axes)

    def headline(self) -> str:
        """Return ε, δ and the expected number of answers in one line."""
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
    analysis: CostAnalysis = TIGHT,
    few: Few = None,
    target: Mapping[str, Any] | None = None,
    unmatched: Unmatched | None = None,
) -> VoteCost:
    """Return the cost of votes at some orders, and of every query at the best order. SECRET.

    Args:
        votes: the rows that are asked.
        mechanism: the aggregator.
        orders: Rényi orders, [orders].
        delta: δ in (0, 1).
        max_answers: the public cap on answers; None without a cap.
        analysis: how costs are computed and converted to ε.
        few: the limit on the votes of one teacher; None if there is no limit.
        target: the result of `measure_target`, to be included in the result.
        unmatched: votes that match no class name, to be included in the result.
    """
    orders, delta = check_orders(orders), check_delta(delta)
    cap = votes.queries if max_answers is None else max_answers
    columns: dict[str, Floats] = {}
    look = OnCounts(functools.partial(_steps_of_batch, few, analysis, orders))
    for part in votes.over(mechanism, look):
        every = {step: np.hstack([columns[step], costs]) for step, costs in part.items() if columns}
        columns = _steps_that_count(few, every or part)
    steps = {step: costs.sum(axis=1) for step, costs in columns.items()}
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
        worst_case=Cost.of_rows(mechanism, votes.queries, cap, delta, few).of_curves,
        target=target,
        costliest_queries=None if few is None else touched(few, votes.queries, cap)[0],
        prior=mechanism.prior_weight > 0,
        unmatched=unmatched,
    )


def measure_target(
    votes: AskedRows,
    mechanism: ScoredMechanism,
    plan: TargetPlan,
    *,
    queries: int,
    max_answers: int,
    few: Few = None,
) -> dict[str, Any]:
    """Return the pass probability of a run, and targets with which the run would pass. SECRET.

    The result also says how many rows a run may ask so that it is likely to pass.

    Args:
        votes: the rows that are asked, and perhaps further rows of the file.
        mechanism: the aggregator.
        plan: the target of the run; its `bound` must be `two-tail` or `conditional`, not `auto`.
        queries: how many rows the run asks.
        max_answers: the cap on answers of the run.
        few: the limit on the votes of one teacher; None if there is no limit.

    Returns:
        A mapping, ready for JSON, with the target and its `pass_probability` on the rows of the
        run. `smallest_epsilon` has, for each probability in `CHANCES`, the smallest target ε with
        which the run passes with this probability, in nats. For each target in `smallest_epsilon`,
        a failed test costs the same share of ε as for `plan`. `passing_queries` is the largest n
        such that a run over the first n rows passes with a probability of at least `LIKELY`.

    Raises:
        UnreachableError: no target that the search tries would pass.
    """
    # Smaller targets need higher orders, and the table of states must cover the highest order.
    highest = float(plan.at(plan.epsilon / 8.0).orders[-1])
    states = states_for(plan.bound, mechanism, highest_order=highest)
    looked, places = Tally.with_places(
        np.concatenate([*votes.over(mechanism, OnCounts(states.of))])
    )
    always = worst_case_epsilon(
        mechanism, rows=queries, max_answers=max_answers, delta=plan.delta, few=few
    )
    cap = max_answers if max_answers < queries else looked.queries

    @functools.cache
    def by_state(order: float) -> Floats:
        starts = range(0, len(looked.cells), _AT_ONCE)
        return np.hstack([states.costs(order, looked.cells[at : at + _AT_ONCE]) for at in starts])

    def known(at: TargetPlan) -> QueryCosts:
        """Return the RDP costs of the queries at the orders at which a target is tested."""
        orders = coin_orders(plan.bound, mechanism, at.orders)
        costs = np.stack([by_state(order) for order in orders.tolist()])
        worst = mechanism.worst_rdp(queries=1, answers=1, orders=orders)
        return QueryCosts(orders, costs, worst, None, places, looked.queries, few)

    def chance(at: TargetPlan, costs: QueryCosts, rows: int = queries) -> float:
        shape = {"queries": rows, "answers": min(rows, cap)}
        most = mechanism.worst_rdp(**shape, orders=costs.orders, few=few)
        return float(costs.pass_probability(at, np.array([rows]), ceiling=most[None])[0, 0])

    costs = known(plan)
    return {
        "epsilon": plan.epsilon,
        "delta": plan.delta,
        "refusal_epsilon": plan.refusal_epsilon,
        "bound": plan.bound.value,
        "queries": queries,
        "pass_probability": 1.0 if always <= plan.epsilon else chance(plan, costs),
        "smallest_epsilon": {
            f"{wanted:g}": _smallest(wanted, plan, always, known, chance) for wanted in CHANCES
        },
        "passing_queries": most_rows(
            lambda rows: chance(plan, costs, rows) >= LIKELY, available=looked.queries
        ),
        "looked_at": looked.queries,
        "orders": costs.orders.tolist(),
    }


def _smallest(
    wanted: float,
    plan: TargetPlan,
    always: float,
    known: Callable[[TargetPlan], QueryCosts],
    chance: Callable[[TargetPlan, QueryCosts], float],
) -> float:
    """Return the smallest target with the wanted pass probability, at most the worst-case ε.

    Args:
        wanted: the wanted pass probability.
        plan: a target to start from.
        always: the worst-case ε of the run, at which no test is needed, nats.
        known: returns the costs at the orders of a target.
        chance: returns the pass probability for a target and costs.
    """
    found = min(plan.epsilon, always)
    # The orders depend on the target, so each bisection uses the orders of the last guess.
    for _ in range(_TRIES):
        costs = known(plan.at(found))
        found = least(
            lambda epsilon: chance(plan.at(epsilon), costs) >= wanted,  # noqa: B023
            start=found,
            within=(found / _WIDEST, _WIDEST * found),
            precision=_PRECISION,
        )
        found = min(found, always)
    found = round_up(found)
    while found < always and chance(at := plan.at(found), known(at)) < wanted:
        found = min(round_up(found * _STEP), always)
    return found


@dataclass(frozen=True, repr=False)
class Compared(Result):
    """The costs of several mechanisms for the same number of expected answers. SECRET.

    Attributes:
        rows: the result of `compare_at` for each mechanism.
        matched_answers: the number of expected answers of every mechanism.
        delta: δ.
    """

    rows: tuple[dict[str, Any], ...]
    matched_answers: float
    delta: float

    def to_dict(self) -> dict[str, Any]:
        """Return one entry for each mechanism, ready for JSON."""
        return {
            "schema_version": 1,
            "releasable": False,
            "matched_answers": self.matched_answers,
            "max_answers": math.ceil(self.matched_answers),
            "delta": self.delta,
            "compare": list(self.rows),
        }

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return a table with one row for each mechanism.

        `epsilon` and `order` are NaN if the mechanism has no ε that depends on the votes.
        """
        return {
            name: np.array([np.nan if row[name] is None else row[name] for row in self.rows])
            for name in self.rows[0]
        }

    def said(self) -> Said:
        """Return the lines and tables that show the comparison to people."""
        return words.of_comparison(self.to_dict())

    def headline(self) -> str:
        """Return in one line how many mechanisms are compared, at how many expected answers."""
        return f"{len(self.rows)} mechanisms at {self.matched_answers:.1f} expected answers"


def compare_at(
    votes: AskedRows,
    build: Callable[[int], Mechanism],
    *,
    answers: float,
    delta: float,
    few: Few = None,
) -> dict[str, Any]:
    """Return the cost of a mechanism for a wanted number of expected answers. SECRET.

    Args:
        votes: the rows that may be asked, from the first row on.
        build: makes the mechanism from its limit on refusals, which are queries without an answer.
            `build` ignores the limit if the mechanism has no limit on refusals.
        answers: the wanted number of expected answers.
        delta: δ in (0, 1).
        few: the limit on the votes of one teacher; None if there is no limit.

    Returns:
        A mapping. `queries` is the number of rows that must be asked. `expected_answers` is the
        expected number of answers on the rows that must be asked. If the file has too few rows,
        `expected_answers` is smaller than the wanted number. `agreement` is the expected share of
        answers that equal the plurality. `epsilon` is ε for the given votes at `order`; `epsilon`
        and `order` are None if the mechanism has no ε that depends on the votes. `data_independent`
        is the worst-case ε of a run over the rows that must be asked. If the mechanism has RDP
        costs, `data_independent` is for a run with a cap on answers: `answers` rounded up to a
        whole number. `note` says how many refusals the mechanism allows, whether votes of a prior
        are counted, and whether the file has too few rows; it may be empty.
    """
    mechanism = build(1)
    for _ in range(_ROUNDS):
        asked, expected, agreeing, rdp = _asked(votes, mechanism, answers, few)
        afforded = getattr(mechanism, "refusals", None)
        needed = max(1, math.ceil(asked - expected))
        if afforded in (None, needed):
            break
        mechanism = build(needed)
    notes = [] if afforded is None else [f"{afforded} refusals afforded"]
    if mechanism.prior_weight:
        notes.append(_COUNTED)
    if expected < answers - 1e-6:
        notes.append(_ENDS)
    epsilon, order, most = None, None, math.inf
    if isinstance(mechanism, ScoredMechanism):
        by_orders = TIGHT.epsilon(rdp, TIGHT_ORDERS, delta)
        cap = min(asked, math.ceil(answers))
        worst = Cost.of_rows(mechanism, asked, cap, delta, few).of_curves
        epsilon, order = worst.least(by_orders.min()), float(TIGHT_ORDERS[by_orders.argmin()])
        most = worst.epsilon
    elif isinstance(mechanism, ComposedMechanism):
        most = mechanism.privacy(max(touched(few, asked, 0)[0], 1), delta).epsilon
    return {
        "mechanism": mechanism.name,
        "queries": asked,
        "expected_answers": expected,
        "agreement": agreeing / max(expected, 1e-12),
        "epsilon": epsilon,
        "order": order,
        "data_independent": round_up(most),
        "note": "; ".join(notes),
    }


def _seen(mechanism: Mechanism, counts: Histograms) -> Floats:
    """Return answer probabilities and RDP costs, with a column for each query.

    The first row of the result has the probability of an answer. The second row of the result has
    the probability of an answer that is the plurality. If the mechanism has RDP costs, all further
    rows of the result are RDP costs at the orders `TIGHT_ORDERS`, in nats.
    """
    answer = mechanism.answer_chance(counts)
    if not isinstance(mechanism, ScoredMechanism):  # such mechanisms answer with the plurality only
        return np.stack([answer, answer])
    agreeing = answer * (1.0 - mechanism.loss_chance(counts))
    return np.vstack([answer, agreeing, mechanism.rdp(mechanism.score(counts), TIGHT_ORDERS)])


def _asked(
    votes: AskedRows, mechanism: Mechanism, wanted: float, few: Few
) -> tuple[int, float, float, Floats]:
    """Return how many rows give the wanted expected answers, and answers and cost of the rows.

    The last three results are totals of the rows: the expected answers, the expected answers that
    are the plurality, and the RDP cost at the orders `TIGHT_ORDERS`, [orders], nats.
    """
    asked, expected, agreeing, total = 0, 0.0, 0.0, CostSum(few, TIGHT_ORDERS.size)
    for seen in votes.over(mechanism, OnCounts(_seen)):
        missing = wanted - expected - 1e-9
        taken = seen[:, : int(np.searchsorted(np.cumsum(seen[0]), missing)) + 1]
        asked, expected = asked + taken.shape[1], expected + float(taken[0].sum())
        agreeing += float(taken[1].sum())
        if isinstance(mechanism, ScoredMechanism):
            total.add(taken[2:], np.ones(taken.shape[1], dtype=np.int64))
        if expected >= wanted - 1e-9:
            break
    return asked, expected, agreeing, total.total
