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
    """Return the RDP cost of all queries, its local sensitivities, and costs of nearby votes.

    All costs are RDP costs at one order. A vote file is at distance d from `votes` if d records
    must be changed to get from one to the other. The local sensitivity LS_d bounds how far one
    more record can change the cost of any vote file within distance d of `votes`. The cost within
    distance d of `votes` is an upper bound on the cost of every vote file within distance d.

    Args:
        votes: the rows that are asked.
        mechanism: the aggregator.
        order: λ > 1.
        beta: the smoothness β; a smaller β needs more distances.
        few: on how many queries one teacher may vote; None if there is no limit. If `few` is
            given, the cost is the sum of the costs of the K costliest queries only; K is how many
            queries one teacher can change.
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
    """How far one record could change the RDP cost of the votes, or of nearby votes. SECRET.

    Attributes:
        price: the RDP cost of the votes at the order of `plan`, and the local sensitivity LS_d of
            this cost at each distance d from the votes.
        plan: the order and β, which were chosen without looking at the votes.
        mechanism: the public parameters of the mechanism.
        queries: the number of rows.
        within: u_0, u_1, …, nats: u_d is an upper bound on the RDP cost of every vote file that
            differs from the votes by at most d records. `within` has small d only. With
            `analysis` `paper`, `within` is empty, because the 2018 paper gives no bound u_d.
        conditions: with `analysis` paper, whether conditions C5 and C6 of the 2018 paper, Appendix
            B.2, are met; otherwise empty.
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

        The order, and the conversion from RDP costs to ε, are those of `plan`.
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
        """Return the smooth sensitivity, and sensitivities and costs by distance, for JSON."""
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
        """Return a table of sensitivities and costs: a row for each distance from the votes."""
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
        """Return the lines and the table of sensitivities that the terminal shows."""
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
