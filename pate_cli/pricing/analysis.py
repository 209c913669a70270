"""An analysis as a whole: everything that verbs ask of the way in which votes are charged.

The tight one is here. Another has the same face and a room of its own, of which nothing here knows.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from pate_cli.core.arrays import Floats
from pate_cli.core.words import Analysis, OrderChoice
from pate_cli.disclosure.plan import ReleasePlan
from pate_cli.mechanisms.base import ScoredMechanism
from pate_cli.pricing.cost import MOMENT_ORDERS, TIGHT_ORDERS, CostAnalysis, TightCost
from pate_cli.pricing.sensitivity import Sensitivity, price_votes
from pate_cli.run.accounts import Account, TightAccount
from pate_cli.run.passes import Passes


class FullAnalysis(Protocol):
    """How votes are charged, from a look at their cost to an account of a run."""

    @property
    def name(self) -> Analysis:
        """The word for it."""
        ...

    @property
    def cost(self) -> CostAnalysis:
        """What queries cost."""
        ...

    def orders(self, choice: OrderChoice) -> Floats:
        """Rényi orders to try, ascending."""
        ...

    def plan(self, plan: ReleasePlan, *, as_published: bool = False) -> ReleasePlan:
        """A sound plan as this analysis converts and charges it.

        Args:
            plan: gives the parameters.
            as_published: charge the draw by a theorem of its own, where it has one.
        """
        ...

    def account(
        self, mechanism: ScoredMechanism, plan: ReleasePlan, *, as_published: bool = False
    ) -> Account:
        """What a run keeps; the arguments are those of `plan`."""
        ...

    def sensitivity(
        self, passes: Passes, mechanism: ScoredMechanism, plan: ReleasePlan, *, queries: int
    ) -> Sensitivity:
        """How far one record could move the cost of the votes at the plan's order. SECRET.

        Args:
            passes: over the queries.
            mechanism: the aggregator.
            plan: a sound one.
            queries: how many there are.
        """
        ...


class TightAnalysis:
    """The one that is sharp and sound."""

    name = Analysis.TIGHT

    @property
    def cost(self) -> TightCost:
        """Exact."""
        return TightCost()

    def orders(self, choice: OrderChoice) -> Floats:
        """So many that ε is found to a few digits."""
        return np.array(MOMENT_ORDERS) if choice is OrderChoice.MOMENTS else TIGHT_ORDERS

    def plan(self, plan: ReleasePlan, *, as_published: bool = False) -> ReleasePlan:
        """As it is: a draw has one charge."""
        del as_published
        return plan

    def account(
        self, mechanism: ScoredMechanism, plan: ReleasePlan, *, as_published: bool = False
    ) -> TightAccount:
        """A tally of scores."""
        return TightAccount(mechanism, self.plan(plan, as_published=as_published))

    def sensitivity(
        self, passes: Passes, mechanism: ScoredMechanism, plan: ReleasePlan, *, queries: int
    ) -> Sensitivity:
        """With what the votes cost at most within each of the nearest distances."""
        price, within = price_votes(passes, mechanism, order=plan.order, beta=plan.beta)
        return Sensitivity.of(price, plan, mechanism, queries=queries, within=within)
