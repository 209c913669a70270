"""What given settings cost on given votes: the verb `cost`. SECRET unless the votes are public."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from pate_cli.core.words import Bound
from pate_cli.disclosure.target import TargetPlan, most_rows
from pate_cli.planning.bisection import least
from pate_cli.planning.forecast import Forecast, forecast_of_costs
from pate_cli.planning.query_costs import exact_costs
from pate_cli.planning.settings import Settings
from pate_cli.planning.vote_model import VoteModel

LIKELY: Final = (0.9, 0.977, 0.999)
"""Probabilities of passing for which the least target is told."""


@dataclass(frozen=True, eq=False)
class CostOfVotes:
    """How a target fares on a file of votes. SECRET.

    Attributes:
        forecast: of the rows that were asked.
        least_epsilon: by probability of passing, the least target, nats.
        likely_rows: how many of the first rows pass with probability .977.
    """

    forecast: Forecast
    least_epsilon: dict[float, float]
    likely_rows: int

    def lines(self) -> list[str]:
        """The costs in sentences."""
        found = self.forecast
        lines = [
            f"{found.rows} queries: {found.answers[0]:.1f} expected answers, "
            f"{found.agreement[0]:.1%} equal the plurality",
            f"any votes cost at most epsilon {found.worst_case:g}",
            f"these pass the release test of epsilon {found.epsilon:g} with probability "
            f"{found.pass_probability[0]:.1%}; failing costs {found.refusal_epsilon:g}",
            f"the first {self.likely_rows} queries pass with probability 97.7%",
        ]
        for chance, epsilon in self.least_epsilon.items():
            lines.append(f"to pass with probability {chance:.1%} takes epsilon {epsilon:.4g}")
        return lines

    def table(self) -> dict[str, list[float]]:
        """Columns of a plain table: the least target for each probability of passing."""
        return {
            "pass_probability": list(self.least_epsilon),
            "epsilon": list(self.least_epsilon.values()),
        }


def cost(
    votes: VoteModel,
    settings: Settings,
    target: TargetPlan,
    *,
    rows: int,
    bound: Bound = Bound.AUTO,
) -> CostOfVotes:
    """What the first rows of a file cost under a tested target, and which targets would suit them.

    The Rényi orders are those of the stated target; a target far from it would be tested at others.
    """
    votes = votes.with_prior_weight(settings.prior_weight)
    mechanism = votes.mechanism(settings)
    costs = exact_costs(votes, mechanism, target, bound=bound, rows=rows)
    found = forecast_of_costs(votes, mechanism, target, costs, rows=rows)

    def chance(target: TargetPlan, rows: int) -> float:
        return float(costs.pass_probability(target, np.array([rows]))[0, 0])

    def least_target(wanted: float) -> float:
        found = least(
            lambda epsilon: chance(target.at(epsilon), rows) >= wanted,
            start=target.epsilon,
            low=target.epsilon / 64.0,
            high=64.0 * target.epsilon,
            precision=1e-4,
        )
        return min(found, worst)

    worst = found.worst_case
    return CostOfVotes(
        found,
        {wanted: least_target(wanted) for wanted in LIKELY},
        most_rows(lambda rows: chance(target, rows) >= LIKELY[1], available=votes.rows),
    )
