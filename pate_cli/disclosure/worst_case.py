"""The worst case of rows alone, as planning asks for it."""

from __future__ import annotations

from collections.abc import Sequence

from pate_cli.disclosure.cost import Cost, Figure
from pate_cli.disclosure.cost import Rows as Spending
from pate_cli.disclosure.plan import ReleasePlan

DataIndependentCost = Figure
__all__ = ["DataIndependentCost", "Spending", "data_independent_cost"]


def data_independent_cost(
    spent: Sequence[Spending], *, delta: float, plan: ReleasePlan | None
) -> Figure:
    """Return the least ε for all votes of rows and, if a plan is given, its release."""
    return Cost(delta, tuple(spent), () if plan is None else plan.draws).of_curves
