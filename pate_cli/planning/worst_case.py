"""Goals without a release test: ε for all votes, met always by the rows and a cap on answers.

The cost of k1 rows with at most k2 answers is known whatever the votes. For given votes the rows
are all that there are, and the cap is the largest that the target allows: what a run may expect to
answer then is the smaller of the two, on average over the noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pate_cli.accounting.conversion import conversion_cost
from pate_cli.core.special import ndtr
from pate_cli.disclosure.target import most_rows
from pate_cli.disclosure.worst_case import Spending, data_independent_cost
from pate_cli.planning.pair_costs import pair_costs
from pate_cli.planning.search import Candidate
from pate_cli.planning.settings import Settings
from pate_cli.planning.tested_target import missed
from pate_cli.planning.vote_model import VoteModel

_WORST_OF_MORE = 1.25


@dataclass(eq=False)
class CappedWorstCase:
    """Looks at settings whose labels cost at most ε whatever the votes.

    Attributes:
        votes: the votes.
        epsilon, delta: the guarantee.
        available: how many rows a run may ask.
        min_agreement: least share of answers equal to the plurality.
    """

    votes: VoteModel
    epsilon: float
    delta: float
    available: int
    min_agreement: float

    def look(self, settings: Sequence[Settings], near: int | None) -> list[Candidate]:
        """Candidates for settings, each with the cap on answers in the place of its rows."""
        del near
        return [self.candidate(each, self._quick_cap(each)) for each in settings]

    def candidate(self, settings: Settings, cap: int) -> Candidate:
        """Settings with a cap, by the answers that are expected under it."""
        votes = self.votes.with_prior_weight(settings.prior_weight)
        answers, agreement = capped_answers(votes, settings, cap, available=self.available)
        merit = np.log(answers + 1e-3) - float(missed(np.array(self.min_agreement - agreement)))
        return Candidate(settings, float(merit), cap)

    def exact_cap(self, settings: Settings) -> int:
        """The most answers that all rows may have under ε whatever the votes; 0 if none."""
        mechanism = self.votes.mechanism(settings)

        def within(answers: int) -> bool:
            spent = [Spending(mechanism, self.available, answers)]
            return data_independent_cost(spent, delta=self.delta, plan=None).epsilon <= self.epsilon

        return most_rows(within, available=self.available)

    def _quick_cap(self, settings: Settings) -> int:
        """About the same, by Gaussian DP for looks and answers and by pairs for whole queries."""
        squared = self._most_mu_squared()
        looks = self.available * (settings.sigma1 or np.inf) ** -2.0
        cap = int(max(squared - looks, 0.0) * settings.sigma2**2 / 2.0)
        orders = np.geomspace(2.0, 40.0, 8)
        votes = self.votes.with_prior_weight(settings.prior_weight)
        *_, largest = pair_costs(votes.thinned(2), [settings], orders)
        total = self.available * _WORST_OF_MORE * largest[0]
        total = total + conversion_cost(orders, delta=self.delta)
        whole = self.available if total.min() <= self.epsilon else 0
        return min(max(cap, whole), self.available)

    def _most_mu_squared(self) -> float:
        """μ² of Gaussian DP at (ε, δ), by bisection."""
        low, high = 1e-6, 100.0
        for _ in range(60):
            middle = np.sqrt(low * high)
            delta = ndtr(-self.epsilon / middle + middle / 2.0) - np.exp(self.epsilon) * ndtr(
                -self.epsilon / middle - middle / 2.0
            )
            low, high = (middle, high) if delta <= self.delta else (low, middle)
        return float(low**2)


def capped_answers(
    votes: VoteModel, settings: Settings, cap: int, *, available: int
) -> tuple[float, float]:
    """Expected answers of all rows under a cap, and the share equal to the plurality."""
    chance = votes.answer_chance(settings)
    scale = available / votes.rows
    mean = float(chance.sum()) * scale
    sd = float(np.sqrt(max((chance * (1.0 - chance)).sum() * scale, 1e-18)))
    x = (cap - mean) / sd
    density = np.exp(-0.5 * min(x * x, 1400.0)) / np.sqrt(2.0 * np.pi)
    expected = mean - sd * (density - x * float(ndtr(-x)))
    agreement = float(chance @ votes.agreement_chance(settings)) / max(float(chance.sum()), 1e-300)
    return float(min(max(expected, 0.0), cap)), agreement


def best_capped(goal: CappedWorstCase, candidates: Sequence[Candidate]) -> Candidate | None:
    """The best of some candidates at their exact caps; None where none gives an answer."""
    exact = [goal.candidate(each.settings, goal.exact_cap(each.settings)) for each in candidates]
    exact = [each for each in exact if each.rows > 0]
    return max(exact, key=lambda each: each.merit, default=None)


def expected_of(votes: VoteModel, found: Candidate, *, available: int) -> tuple[float, float]:
    """Expected answers and agreement of a candidate under its cap."""
    votes = votes.with_prior_weight(found.settings.prior_weight)
    return capped_answers(votes, found.settings, found.rows, available=available)
