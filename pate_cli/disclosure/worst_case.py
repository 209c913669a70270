"""The worst case of rows alone, as planning asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from pate_cli.disclosure.cost import Cost, Figure, Rows
from pate_cli.disclosure.plan import ReleasePlan

Spending: TypeAlias = Rows
DataIndependentCost: TypeAlias = Figure


def data_independent_cost(
    spent: Sequence[Rows], *, delta: float, plan: ReleasePlan | None
) -> Figure:
    """Return the least ε for all votes of rows and, if a plan is given, its release."""
    return Cost(delta, tuple(spent), () if plan is None else plan.draws).of_curves
