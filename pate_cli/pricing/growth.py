"""How the cost grows with the answers as a file is read from its first row on. SECRET."""

from __future__ import annotations

import functools

import numpy as np

from pate_cli.accounting.conversion import conversion_cost
from pate_cli.core.arrays import Floats
from pate_cli.core.checks import check_delta
from pate_cli.core.dataclass import dataclass
from pate_cli.mechanisms.base import ScoredMechanism
from pate_cli.pricing.cost import TIGHT_ORDERS, TightCost, query_costs
from pate_cli.run.fold import AskedRows, OnCounts


@dataclass(frozen=True)
class CostCurve:
    """What the first answers cost, one point a query.

    Attributes:
        answers: expected answers so far, [queries], non-decreasing.
        epsilon: data-dependent ε so far, tight analysis at the best order for each, [queries].
    """

    answers: Floats
    epsilon: Floats


def measure_growth(
    votes: AskedRows,
    mechanism: ScoredMechanism,
    *,
    delta: float,
    orders: Floats = TIGHT_ORDERS,
) -> CostCurve:
    """ε against expected answers: Figure 1 (middle) of the ICLR 2018 paper.

    Args:
        votes: over the queries.
        mechanism: the aggregator.
        delta: δ in (0, 1).
        orders: Rényi orders to choose from at every point, [orders].
    """
    spent = np.zeros((orders.size, 1))
    answered = np.zeros(1)
    price = conversion_cost(orders, delta=check_delta(delta))[:, None]
    answers, epsilon = [], []
    tight = functools.partial(query_costs, orders=orders, analysis=TightCost())
    for costs in votes.over(mechanism, OnCounts(tight)):
        rdp = spent + np.cumsum(costs.total, axis=1)
        so_far = answered + np.cumsum(costs.answer)
        answers.append(so_far)
        epsilon.append(np.maximum((rdp + price).min(axis=0), 0.0))
        spent, answered = rdp[:, -1:], so_far[-1:]
    return CostCurve(np.concatenate(answers), np.concatenate(epsilon))
