"""Charging a run by the published analysis, for comparison with the paper and never as a bound.

Costs are expectations over the aggregator's own coins, as in Table 2: a Jensen gap below a Rényi
divergence. Everything is a sum over queries, so batches add up.
"""

from __future__ import annotations

import numpy as np

from pate_cli import published
from pate_cli.arrays import Counts, Floats
from pate_cli.checks import check_orders
from pate_cli.errors import UsageError
from pate_cli.mechanisms.base import Mechanism
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.mechanisms.gnmax import GNMax

__all__ = ["PublishedAccount", "require_disjoint_teachers", "require_published_sensitivity"]


def require_disjoint_teachers(mechanism: Mechanism) -> None:
    """Refuse records that trained several teachers, of which the paper knows nothing.

    Raises:
        UsageError: more than one teacher per record.
    """
    if mechanism.parameters().get("teachers_per_record", 1) != 1:
        raise UsageError(
            "the published analysis knows disjoint teachers only; --teachers-per-record goes with "
            "--analysis tight"
        )


def require_published_sensitivity(mechanism: Mechanism, orders: Floats) -> None:
    """Refuse what the paper gives no smooth sensitivity for.

    Raises:
        UsageError: a mechanism without a published smooth sensitivity, or shared records.
        ValidityError: C5 or C6 fails for this (σ, m, λ).
    """
    if not isinstance(mechanism, ConfidentGNMax | GNMax):
        raise UsageError(
            f"the published analysis has no smooth sensitivity for {mechanism.name}; "
            "use --analysis tight"
        )
    require_disjoint_teachers(mechanism)
    published.require_conditions(sigma=mechanism.sigma2, classes=mechanism.classes, orders=orders)


class PublishedAccount:
    """Expected costs and expected local sensitivities at fixed orders, summed over queries. SECRET.

    Attributes:
        orders: Rényi orders, [orders].
        rdp: expected cost so far, [orders], nats.
        sensitivity: Σ of the published local sensitivity at distance d < τ, [orders, τ], nats.
        queries: rows seen.
    """

    def __init__(self, mechanism: Mechanism, orders: Floats) -> None:
        """Start at nothing; ValidityError when C5 or C6 fails for this mechanism."""
        self.orders = check_orders(orders)
        require_published_sensitivity(mechanism, self.orders)
        self.rdp = np.zeros(self.orders.size)
        self.sensitivity = np.zeros((self.orders.size, mechanism.teachers))
        self.queries = 0

    def add(self, one: Mechanism, counts: Counts) -> None:
        """Charge a batch of histograms to a mechanism bound to its rows."""
        self.queries += len(counts)
        if isinstance(one, ConfidentGNMax):
            scores = one.test_score(counts)
            cost = published.confident_expected_cost(
                counts,
                threshold=one.threshold,
                sigma1=one.sigma1,
                sigma2=one.sigma2,
                orders=self.orders,
                scores=scores,
            )
            for row, order in enumerate(self.orders.tolist()):
                self.sensitivity[row] += published.expected_local_sensitivity(
                    counts,
                    threshold=one.threshold,
                    sigma1=one.sigma1,
                    sigma2=one.sigma2,
                    order=order,
                    teachers=one.teachers,
                    scores=scores,
                )
        elif isinstance(one, GNMax):
            cost = published.gnmax_rdp(counts, one.sigma2, self.orders)
            for row, order in enumerate(self.orders.tolist()):
                self.sensitivity[row] += published.gnmax_local_sensitivity(
                    counts, sigma=one.sigma2, order=order, teachers=one.teachers
                )
        self.rdp += cost.sum(axis=1)
