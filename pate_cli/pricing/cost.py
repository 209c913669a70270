"""What votes would cost: by step, by order and by query. SECRET, except the data-independent part.

The tight cost of a Confident query is one Rényi divergence (accounting.threshold); "threshold" is
what the selecting coin costs alone and "argmax" the rest. The published cost is an expectation that
really is a sum of the two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from pate_cli import published
from pate_cli.accounting.conversion import conversion_cost
from pate_cli.accounting.threshold import threshold_rdp
from pate_cli.arrays import Counts, Floats
from pate_cli.checks import check_delta, check_orders
from pate_cli.errors import UsageError
from pate_cli.mechanisms.base import Mechanism, plurality
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.mechanisms.gnmax import GNMax
from pate_cli.published.account import require_disjoint_teachers
from pate_cli.words import Analysis, MechanismName

__all__ = ["TIGHT_ORDERS", "CostSummary", "QueryCosts", "measure_cost", "query_costs"]


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
    plurality: NDArray[np.int64]

    @property
    def total(self) -> Floats:
        """The whole cost, [orders, queries], nats."""
        return np.sum(list(self.steps.values()), axis=0)


def query_costs(
    mechanism: Mechanism, counts: Counts, *, orders: Floats, analysis: Analysis
) -> QueryCosts:
    """The cost of every query of a batch at every order, by step. SECRET.

    Raises:
        UsageError: a mechanism that the published analysis does not know, or shared records.
    """
    orders = check_orders(orders)
    answer = np.ones(len(counts))
    if isinstance(mechanism, ConfidentGNMax):
        answer = ndtr((mechanism.test_score(counts) - mechanism.threshold) / mechanism.sigma1)
    cost = _tight_steps if analysis is Analysis.TIGHT else _published_steps
    return QueryCosts(cost(mechanism, counts, orders), answer, plurality(counts))


def _tight_steps(mechanism: Mechanism, counts: Counts, orders: Floats) -> dict[str, Floats]:
    total = mechanism.rdp(mechanism.score(counts), orders)
    if not isinstance(mechanism, ConfidentGNMax):
        return {"argmax": total}
    selecting = threshold_rdp(
        mechanism.test_score(counts),
        threshold=mechanism.threshold,
        sigma=mechanism.sigma1,
        orders=orders,
        reach=float(mechanism.teachers_per_record),
    )
    return {"threshold": selecting, "argmax": np.maximum(total - selecting, 0.0)}


def _published_steps(mechanism: Mechanism, counts: Counts, orders: Floats) -> dict[str, Floats]:
    require_disjoint_teachers(mechanism)
    if mechanism.name == MechanismName.LNMAX:
        scale = float(mechanism.parameters()["laplace_scale"])
        return {"argmax": published.laplace_rdp(counts, scale, orders)}
    if isinstance(mechanism, GNMax):
        return {"argmax": published.gnmax_rdp(counts, mechanism.sigma2, orders)}
    if not isinstance(mechanism, ConfidentGNMax):
        raise UsageError(
            f"the published analysis does not cover {mechanism.name}; use --analysis tight"
        )
    answering = published.gnmax_rdp(counts, mechanism.sigma2, orders)
    highest = mechanism.test_score(counts)
    chance = ndtr((highest - mechanism.threshold) / mechanism.sigma1)
    selecting = published.threshold_rdp(
        highest, threshold=mechanism.threshold, sigma=mechanism.sigma1, orders=orders
    )
    return {"threshold": selecting, "argmax": answering * chance}


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
    plurality: NDArray[np.int64]

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
    batches: Callable[[], Iterable[tuple[Mechanism, Counts]]],
    *,
    orders: Floats,
    delta: float,
    analysis: Analysis,
) -> CostSummary:
    """Price votes in two passes: all orders in total, then each query at the best order.

    Args:
        batches: returns the histograms afresh, [rows, classes] at a time, each with the mechanism
            bound to its rows; called twice.
        orders: Rényi orders, [orders].
        delta: δ in (0, 1).
        analysis: `tight` or `paper`, which also decides the conversion to ε.
    """
    orders, delta = check_orders(orders), check_delta(delta)
    sums: dict[str, Floats] = {}
    for mechanism, counts in batches():
        for step, cost in query_costs(
            mechanism, counts, orders=orders, analysis=analysis
        ).steps.items():
            sums[step] = sums.get(step, np.zeros(orders.size)) + cost.sum(axis=1)
    rdp = np.sum(list(sums.values()), axis=0)
    if analysis is Analysis.PAPER:
        epsilon = published.to_epsilon(rdp, orders=orders, delta=delta)
    else:
        epsilon = np.maximum(rdp + conversion_cost(orders, delta=delta), 0.0)
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
