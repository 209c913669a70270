"""The published analysis as a whole; never a bound."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from pate_cli.core.arrays import Floats
from pate_cli.core.errors import ValidityError
from pate_cli.core.words import Analysis, OrderChoice
from pate_cli.disclosure.plan import ReleasePlan
from pate_cli.mechanisms.base import ScoredMechanism
from pate_cli.planning.cost import MOMENT_ORDERS
from pate_cli.planning.sensitivity import Sensitivity
from pate_cli.published.account import (
    PublishedAccount,
    PublishedCost,
    PublishedPlan,
    published_price,
)
from pate_cli.published.conditions import check_conditions
from pate_cli.published.conversion import TABLE_ORDERS
from pate_cli.run.fold import AskedRows


class PublishedAnalysis:
    """That of the paper, for comparison with it."""

    name = Analysis.PAPER

    @property
    def cost(self) -> PublishedCost:
        """Expectations."""
        return PublishedCost()

    def orders(self, choice: OrderChoice) -> Floats:
        """Those of the tables."""
        return np.array(MOMENT_ORDERS if choice is OrderChoice.MOMENTS else TABLE_ORDERS)

    def plan(self, plan: ReleasePlan) -> PublishedPlan:
        """With the published conversion."""
        return PublishedPlan.of(plan)

    def account(self, mechanism: ScoredMechanism, plan: ReleasePlan) -> PublishedAccount:
        """Sums of expectations; ValidityError where C5 or C6 fails."""
        return PublishedAccount(mechanism, self.plan(plan))

    def sensitivity(
        self, votes: AskedRows, mechanism: ScoredMechanism, plan: ReleasePlan, *, queries: int
    ) -> Sensitivity:
        """By Algorithms 3 to 5, with verdicts on their conditions.

        Raises:
            ValidityError: one of them fails.
        """
        verdicts = _conditions(mechanism, plan)
        own = self.plan(plan)
        price = published_price(votes, mechanism, own)
        return Sensitivity.of(price, own, mechanism, queries=queries, conditions=verdicts)


def _conditions(mechanism: ScoredMechanism, plan: ReleasePlan) -> tuple[dict[str, Any], ...]:
    """Verdicts on C5 and C6 where there is a σ2; ValidityError at the first that fails."""
    sigma = mechanism.parameters().get("sigma2")
    if sigma is None:
        return ()
    verdicts = check_conditions(
        sigma=sigma, classes=mechanism.classes, orders=np.array([plan.order])
    )
    for verdict in verdicts:
        if not verdict.holds:
            raise ValidityError(
                f"smooth sensitivity is not valid at order {plan.order:g}: {verdict.reason}; "
                "try another `order` or `analysis` tight"
            )
    return tuple(asdict(verdict) for verdict in verdicts)
