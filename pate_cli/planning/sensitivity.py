"""How far one record could change RDP costs, at each distance from given votes. SECRET."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pate_cli.accounting.cost_table import Price, TallySum
from pate_cli.accounting.few_votes import Few
from pate_cli.accounting.sensitivity import distances_for
from pate_cli.core.arrays import Floats
from pate_cli.core.said import Said
from pate_cli.disclosure.settings import ReleasePlan
from pate_cli.disclosure.target import States
from pate_cli.files.results import Result
from pate_cli.mechanisms.base import ScoredMechanism
from pate_cli.planning import words
from pate_cli.planning.sanitized import BestRelease, best_release
from pate_cli.run.fold import AskedRows, OnCounts

# The largest cost within a distance is computed for this many distances; a release test uses 64.
_NEAR = 256


def price_votes(
    votes: AskedRows, mechanism: ScoredMechanism, *, order: float, beta: float, few: Few = None
) -> tuple[Price, Floats]:
    """Return the cost of all queries with local sensitivities, and largest costs by distance.

    All costs are RDP costs at one order. The local sensitivity LS_d is how far one record can
    change the cost of vote files at distance d. The cost within a distance d is the largest cost of
    all vote files at distance d or less.

    Args:
        votes: the rows that are asked.
        mechanism: the aggregator.
        order: λ > 1.
        beta: the smoothness β; a smaller β needs more distances.
        few: the limit on the votes of one teacher. If there is a limit, only the costliest queries
            have a cost: as many queries as one teacher can change.
    """
    table = mechanism.cost_table(order)
    parts = TallySum()
    for part in votes.over(mechanism, OnCounts(States(mechanism, table.grid).tally)):
        parts.add(part)
    tally = parts.total
    distances = np.arange(distances_for(beta, teachers=mechanism.teachers))
    return table.price(tally, distances, few), table.profile(tally, distances[:_NEAR], few)


@dataclass(frozen=True, repr=False)
class Sensitivity(Result):
    """How far one record could change the RDP cost of the votes, by distance. SECRET.

    Attributes:
        price: the cost of the votes and its local sensitivities LS_d, at the order of the plan.
        plan: the order and β, which were chosen without looking at the votes.
        mechanism: the public parameters of the mechanism.
        queries: the number of rows.
        within: u_d, the largest cost of all vote files within distance d, for the smallest
            distances, nats. Empty for the published analysis, which does not bound the cost at a
            distance.
        conditions: whether the conditions C5 and C6 are met, for the published analysis only.
    """

    price: Price
    plan: ReleasePlan
    mechanism: Mapping[str, Any]
    queries: int
    within: Floats
    conditions: tuple[Mapping[str, Any], ...] = ()

    @cached_property
    def best(self) -> BestRelease | None:
        """Return β and σ_SS with the smallest sanitized ε for these votes; None if no ε is finite.

        The plan gives the order, and the conversion from RDP costs to ε.
        """
        plan = self.plan
        conversion = plan.conversion(plan.delta - plan.delta_shift)
        return best_release(self.price, order=plan.order, delta=plan.delta, conversion=conversion)

    @property
    def smooth(self) -> float:
        """Return the smooth sensitivity SS_β, nats."""
        return self.price.smooth(self.plan.beta)

    @property
    def discounted(self) -> Floats:
        """Return e^{−βd} LS_d at each distance, nats."""
        return self.price.discounted(self.plan.beta)

    def to_dict(self) -> dict[str, Any]:
        """Return the smooth sensitivity and all costs by distance, ready for JSON."""
        plan, discounted, best = self.plan, self.discounted, self.best
        return {
            "schema_version": 1,
            "releasable": False,
            "analysis": plan.analysis.value,
            "mechanism": dict(self.mechanism),
            "queries": self.queries,
            "delta": plan.delta,
            "order": plan.order,
            "beta": plan.beta,
            "smooth_sensitivity": self.smooth,
            "distance": int(np.argmax(discounted)),
            "rdp": self.price.rdp,
            "best": None if best is None else asdict(best),
            "conditions": [dict(verdict) for verdict in self.conditions],
            "local_sensitivity": self.price.curve.tolist(),
            "discounted": discounted.tolist(),
            "cost_by_distance": self.within.tolist(),
            "ceiling": self.price.ceiling,
        }

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return a table with one row for each distance."""
        columns = {
            "distance": self.price.distances,
            "local_sensitivity": self.price.curve,
            "discounted": self.discounted,
        }
        if self.within.size:
            missing = self.price.distances.size - self.within.size
            columns["cost_by_distance"] = np.append(self.within, np.full(missing, np.nan))
        return columns

    def said(self) -> Said:
        """Return the lines and tables that show the sensitivity to people."""
        return words.of_sensitivity(self.to_dict())

    def plot(self, axes: Any = None) -> Any:
        """Draw the sensitivity by distance on matplotlib Axes, and return the Axes. SECRET.

        The extra `plot` must be installed.

        Args:
            axes: the Axes to draw on; if left out, new Axes are made.
        """
        from pate_cli.disclosure.pictures import draw_sensitivity

        return draw_sensitivity(self, axes)

    def headline(self) -> str:
        """Return the smooth sensitivity, its order and its β in one line."""
        return f"{self.smooth:.6g} nats at order {self.plan.order:g}, beta {self.plan.beta:g}"
