"""An analysis as a whole: how it charges a run, and how it prices votes that are looked at."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from pate_cli.core.arrays import Floats
from pate_cli.core.words import Analysis, OrderChoice
from pate_cli.disclosure.plan import ReleasePlan
from pate_cli.mechanisms.base import ScoredMechanism
from pate_cli.pricing.cost import MOMENT_ORDERS, TIGHT_ORDERS, CostAnalysis, TightCost
from pate_cli.pricing.sensitivity import Sensitivity, price_votes
from pate_cli.run.accounts import LedgerAccount, TightAccount
from pate_cli.run.fold import AskedRows


class FullAnalysis(Protocol):
    """How votes are charged, from a look at their cost to an account of a run."""

    @property
    def name(self) -> Analysis:
        """The word for the analysis."""
        ...

    def plan(self, plan: ReleasePlan) -> ReleasePlan:
        """Return a sound plan as this analysis converts and charges it."""
        ...

    def account(self, mechanism: ScoredMechanism, plan: ReleasePlan) -> LedgerAccount:
        """Return what a run keeps of the votes."""
        ...

    @property
    def cost(self) -> CostAnalysis:
        """What queries cost."""
        ...

    def orders(self, choice: OrderChoice) -> Floats:
        """Rényi orders to try, ascending."""
        ...

    def sensitivity(
        self, votes: AskedRows, mechanism: ScoredMechanism, plan: ReleasePlan, *, queries: int
    ) -> Sensitivity:
        """How far one record could move the cost of the votes at the plan's order. SECRET.

        Args:
            votes: over the queries.
            mechanism: the aggregator.
            plan: a sound one.
            queries: how many there are.
        """
        ...


class TightAnalysis:
    """The one that is sharp and sound."""

    name = Analysis.TIGHT

    def plan(self, plan: ReleasePlan) -> ReleasePlan:
        """Return the plan as it is: a draw has one charge."""
        return plan

    def account(self, mechanism: ScoredMechanism, plan: ReleasePlan) -> TightAccount:
        """Return an account that keeps a tally of scores."""
        return TightAccount(mechanism, plan)

    @property
    def cost(self) -> TightCost:
        """Exact."""
        return TightCost()

    def orders(self, choice: OrderChoice) -> Floats:
        """So many that ε is found to a few digits."""
        return np.array(MOMENT_ORDERS) if choice is OrderChoice.MOMENTS else TIGHT_ORDERS

    def sensitivity(
        self, votes: AskedRows, mechanism: ScoredMechanism, plan: ReleasePlan, *, queries: int
    ) -> Sensitivity:
        """With what the votes cost at most within each of the nearest distances."""
        price, within = price_votes(votes, mechanism, order=plan.order, beta=plan.beta)
        return Sensitivity.of(price, plan, mechanism, queries=queries, within=within)
