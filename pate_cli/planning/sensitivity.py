"""How far one record could move the cost of given votes, by distance. SECRET."""

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

# The largest cost is shown up to this distance from the votes; a release test looks at 64.
_NEAR = 256


def price_votes(
    votes: AskedRows, mechanism: ScoredMechanism, *, order: float, beta: float, few: Few = None
) -> tuple[Price, Floats]:
    """Return cost and LS_d of all queries at one order, and the largest cost within d votes.

    Args:
        votes: the rows of the queries.
        mechanism: the aggregator.
        order: λ > 1.
        beta: determines how many distances are kept.
        few: the limit on the votes of one teacher; all of these are then of the costliest queries.
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
    """How far one record could move the cost of the votes, by distance. SECRET.

    Attributes:
        price: cost and LS_d at the plan's order.
        plan: order and β, fixed without looking at the votes.
        mechanism: the mechanism's public parameters.
        queries: the number of rows.
        within: u_d, the largest cost within each of the nearest distances, nats; empty in the
            published analysis, which has no such bound.
        conditions: verdicts on C5 and C6, if the published analysis requires them.
    """

    price: Price
    plan: ReleasePlan
    mechanism: Mapping[str, Any]
    queries: int
    within: Floats
    conditions: tuple[Mapping[str, Any], ...] = ()

    @cached_property
    def best(self) -> BestRelease | None:
        """Return the best β and σ_SS for these votes; None if the β of the plan has no finite cost.

        The ε of a release is computed by the conversion of the plan.
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
        """Return the curve and its smooth sensitivity; JSON-ready."""
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
        """Return one row per distance."""
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
        """Return its lines and tables."""
        return words.of_sensitivity(self.to_dict())

    def plot(self, axes: Any = None) -> Any:
        """Draw the sensitivity by distance on matplotlib Axes, and return them. SECRET.

        Args:
            axes: where to draw; new ones if left out. Needs the extra `plot`.
        """
        from pate_cli.disclosure.pictures import draw_sensitivity

        return draw_sensitivity(self, axes)

    def headline(self) -> str:
        """Return SS_β with its order and β."""
        return f"{self.smooth:.6g} nats at order {self.plan.order:g}, beta {self.plan.beta:g}"
