"""The analysis of a name: the one place where a verb comes to know the published one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pate_cli.core.words import Analysis, OrderChoice

if TYPE_CHECKING:
    from pate_cli.core.arrays import Floats
    from pate_cli.disclosure.settings import ReleasePlan
    from pate_cli.mechanisms.base import ScoredMechanism
    from pate_cli.paper.analysis import PublishedAnalysis
    from pate_cli.planning.cost import CostAnalysis
    from pate_cli.planning.sensitivity import Sensitivity
    from pate_cli.run.fold import AskedRows
    from pate_cli.run.labelling import LedgerAccount


class TightAnalysis:
    """The analysis that is sharp and sound; what it needs is loaded when it is asked for."""

    name = Analysis.TIGHT

    @property
    def cost(self) -> CostAnalysis:
        """The cost of queries: Rényi divergences."""
        from pate_cli.planning.cost import TIGHT

        return TIGHT

    def plan(self, plan: ReleasePlan) -> ReleasePlan:
        """Return a sound plan as it is: a draw has one charge."""
        return plan

    def account(self, mechanism: ScoredMechanism, plan: ReleasePlan) -> LedgerAccount:
        """Return what a run keeps of the votes: a tally of scores."""
        from pate_cli.run.labelling import LedgerAccount

        return LedgerAccount(mechanism, plan)

    def orders(self, choice: OrderChoice) -> Floats:
        """Rényi orders to try, so many that ε is found to a few digits; or those of the moments."""
        from pate_cli.planning.cost import MOMENT_ORDERS, TIGHT_ORDERS

        return np.array(MOMENT_ORDERS) if choice is OrderChoice.MOMENTS else TIGHT_ORDERS

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
        from pate_cli.planning.sensitivity import Sensitivity, price_votes

        price, within = price_votes(votes, mechanism, order=plan.order, beta=plan.beta)
        return Sensitivity.of(price, plan, mechanism, queries=queries, within=within)


def analysis_of(name: Analysis | str) -> TightAnalysis | PublishedAnalysis:
    """Return how votes are charged under a name; the published way is loaded for that alone."""
    if Analysis(name) is Analysis.TIGHT:
        return TightAnalysis()
    from pate_cli.paper.analysis import PublishedAnalysis

    return PublishedAnalysis()
