"""Labels whose ε holds whatever the votes, met always by the rows and a public cap on answers.

k1 rows of which k2 may be answered cost k1·w1(λ) + k2·w2(λ) at order λ, or k1·w12(λ), where w1 is
the cost of a test, w2 of an answer and w12 of a whole row, each for the worst votes. How many rows
get an answer depends on the votes. So for given votes numbers of rows are tried, each with the
largest cap that ε allows, or with the least that gives so many answers on average over the noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pate_cli.accounting.conversion import conversion_cost
from pate_cli.core.arrays import Floats, Ints
from pate_cli.core.special import log_ndtr, ndtr
from pate_cli.disclosure.target import TargetPlan
from pate_cli.planning.forecast import (
    agreement_error,
    capped_mean,
    forecast_of_costs,
    worst_case_epsilon,
)
from pate_cli.planning.goal import Found, Goal
from pate_cli.planning.search import Candidate
from pate_cli.planning.tuning import Tuning
from pate_cli.planning.vote_model import VoteModel

_ORDERS = 1.0 + np.geomspace(0.1, 512.0, 80)
# Orders either side of the best at quick costs that are priced exactly.
_AROUND = 3
# Numbers of rows that are tried, pluralities among which a row costs most, and caps by how many
# standard deviations they are above the mean.
_ROWS, _PLURALITIES, _CAP_STEPS = 60, 41, np.linspace(-4.0, 6.0, 201)
_SHRINK, _MOST_ROWS, _OUT_OF_REACH = 0.999, 10_000, -9.0


@dataclass(frozen=True, eq=False)
class _Costs:
    """What rows and answers cost whatever the votes, at some orders, [orders] each, nats."""

    conversion: Floats
    test: Floats
    answer: Floats
    whole: Floats

    def epsilon(self, rows: Ints, caps: Floats) -> Floats:
        """ε of so many rows with so many answers, [rows]."""
        rdp = np.multiply.outer(rows, self.test) + np.multiply.outer(caps, self.answer)
        rdp = np.minimum(rdp, np.multiply.outer(rows, self.whole))
        return np.asarray(np.maximum((rdp + self.conversion).min(axis=-1), 1e-9))

    def caps(self, rows: Ints, epsilon: float) -> Floats:
        """The most answers under ε, below 1 where even one is too many, [rows]."""
        room = epsilon - self.conversion - np.multiply.outer(rows, self.test)
        caps = np.floor((room / self.answer).max(axis=-1) + 1e-9)
        whole = (np.multiply.outer(rows, self.whole) + self.conversion).min(axis=-1)
        return np.asarray(np.where(whole <= epsilon, rows, np.minimum(caps, rows)))


class CappedVotes:
    """Settings for a worst case, on a file of votes; SECRET if the votes are."""

    def __init__(self, votes: VoteModel, goal: Goal) -> None:
        """Nothing is looked at yet."""
        self._votes, self._few, self._goal = votes, votes.thinned(_MOST_ROWS), goal
        self._sought = goal
        self._above: dict[bool, float] = {}

    def look(self, settings: Sequence[Tuning], near: int | None) -> list[Candidate]:
        """Candidates at quick costs, whose rows and caps need no start."""
        del near
        return [self._candidate(each) for each in settings]

    def price(self, candidate: Candidate, *, last: bool) -> Found | None:
        """A candidate with the rows and the cap that are best at exact costs."""
        del last
        settings, goal = candidate.settings, self._goal
        mechanism = self._votes.mechanism(settings)
        rows, cap, *_ = self._best(self._votes, settings, self._exact(settings), strictly=True)
        whole = cap >= rows
        while cap >= 1:
            epsilon = worst_case_epsilon(mechanism, rows=rows, max_answers=cap, delta=goal.delta)
            if goal.epsilon is None or epsilon <= goal.epsilon:
                return self._found(settings, rows, cap, epsilon)
            cap = min(cap - 1, int(cap * _SHRINK))
            rows = cap if whole else rows
        return None

    def learn(self, best: Found) -> None:
        """Ask for more agreement where it was too little; exact costs have told of themselves."""
        self._sought = self._goal.stricter(best, self._few, available=self._votes.rows)

    def _found(self, settings: Tuning, rows: int, cap: int, epsilon: float) -> Found:
        votes, goal = self._votes.with_prior_weight(settings.prior_weight), self._goal
        forecast = forecast_of_costs(
            votes,
            votes.mechanism(settings),
            TargetPlan.of(epsilon, delta=goal.delta),
            None,
            rows=rows,
            max_answers=cap,
        )
        return Found.of(forecast, goal, max_answers=cap if cap < rows else None)

    def _candidate(self, settings: Tuning) -> Candidate:
        rows, _, merit, holds = self._best(self._few, settings, self._quick(settings))
        return Candidate(settings, merit, rows, holds)

    def _best(
        self, votes: VoteModel, settings: Tuning, costs: _Costs, *, strictly: bool = False
    ) -> tuple[int, int, float, bool]:
        """The best numbers of rows and answers, how well they serve, and whether they agree enough.

        Args:
            votes: those that are looked at, which stand for all.
            settings: threshold, noise and weight of the prior.
            costs: of the settings.
            strictly: whether rows that agree often enough go before all others.
        """
        goal, rows = self._sought, _spread(1, self._votes.rows)
        if strictly:
            short = agreement_error(
                votes.with_prior_weight(settings.prior_weight), settings, rows=votes.rows
            )
            goal = self._goal.with_floor(self._goal.min_agreement + short)
        for _ in range(2):
            caps = self._caps(votes, settings, rows, costs)
            used = np.maximum(caps, 1.0)
            answers, agreement = self._expected(votes, settings, rows, used)
            merit, holds = goal.merit(costs.epsilon(rows, used), answers, agreement), caps >= 1.0
            merit = np.where(holds, merit, _OUT_OF_REACH - used / used[-1])
            holds &= agreement >= goal.min_agreement
            best = int(np.argmax(np.where(holds | (not strictly), merit, _OUT_OF_REACH + merit)))
            found = int(rows[best]), int(used[best]), float(merit[best]), bool(holds[best])
            low, high = rows[max(best - 1, 0)], rows[min(best + 1, rows.size - 1)]
            rows = np.unique(np.append(np.linspace(low, high, _ROWS).astype(np.int64), rows[best]))
        return found

    def _caps(self, votes: VoteModel, settings: Tuning, rows: Ints, costs: _Costs) -> Floats:
        """The most answers under ε, or the fewest that give as many as are wanted, [rows].

        None of the rows may give so many: 0 stands there.
        """
        goal = self._goal
        if goal.answers is None:
            return costs.caps(rows, goal.epsilon or 0.0)
        mean, sd, _ = self._moments(votes, settings, rows)
        near = np.ceil(goal.answers) + np.arange(3.0) + np.zeros((rows.size, 1))
        caps = np.ceil(mean[:, None] + np.outer(sd, _CAP_STEPS))
        caps = np.clip(np.hstack([caps, near, rows[:, None]]), 1.0, rows[:, None])
        enough = capped_mean(mean[:, None], sd[:, None], caps) >= goal.answers
        return np.where(enough.any(axis=1), np.where(enough, caps, np.inf).min(axis=1), 0.0)

    def _expected(
        self, votes: VoteModel, settings: Tuning, rows: Ints, caps: Floats
    ) -> tuple[Floats, Floats]:
        """Expected answers under caps, and the share equal to the plurality, [rows] each."""
        mean, sd, agreement = self._moments(votes, settings, rows)
        return np.where(caps >= rows, mean, capped_mean(mean, sd, caps)), agreement

    def _moments(
        self, votes: VoteModel, settings: Tuning, rows: Ints
    ) -> tuple[Floats, Floats, Floats]:
        """Mean and standard deviation of the answers of the first rows, and their agreement."""
        votes = votes.with_prior_weight(settings.prior_weight)
        chance = votes.answer_chance(settings)
        parts = [chance, chance * (1.0 - chance), chance * votes.agreement_chance(settings)]
        seen = np.clip(np.round(rows * (votes.rows / self._votes.rows)), 1, votes.rows)
        mean, variance, agreeing = np.cumsum(parts, axis=1)[:, seen.astype(np.int64) - 1]
        scale = rows / seen
        agreement = agreeing / np.maximum(mean, 1e-300)
        return mean * scale, np.sqrt(variance * scale), agreement

    def _quick(self, settings: Tuning) -> _Costs:
        """The costs where a vote moves every coin by little: by its Fisher information.

        A fair coin costs λ/(πσ1²) for a test and 2λ/(πσ2²) for an answer, others less.
        """
        votes = self._few.with_prior_weight(settings.prior_weight)
        slope = votes.teachers_per_record**2 * _ORDERS / np.pi
        most, answer = float(votes.most_votes), 2.0 / settings.sigma2**2
        largest = np.linspace(most / 2.0, most, _PLURALITIES)
        whole = _fairness((2.0 * largest - most) / (settings.sigma2 * np.sqrt(2.0))) * answer
        test = 0.0
        if settings.threshold is not None and settings.sigma1 is not None:
            z, test = (largest - settings.threshold) / settings.sigma1, settings.sigma1**-2.0
            whole = _fairness(z) * test + ndtr(z) * whole
        conversion = conversion_cost(_ORDERS, delta=self._goal.delta)
        row = slope * float(whole.max()) * self._above.get(settings.threshold is not None, 1.0)
        return _Costs(conversion, slope * test, slope * answer, row)

    def _exact(self, settings: Tuning) -> _Costs:
        """The costs that a run is charged, at the orders around the best one by quick costs."""
        quick = self._quick(settings)
        rows, cap, *_ = self._best(self._few, settings, quick)
        rdp = np.minimum(rows * quick.test + cap * quick.answer, rows * quick.whole)
        centre = int(np.argmin(rdp + quick.conversion))
        near = slice(max(centre - _AROUND, 0), centre + _AROUND + 1)
        mechanism, orders = self._votes.mechanism(settings), _ORDERS[near]
        argmax = self._votes.mechanism(Tuning(None, None, settings.sigma2, settings.prior_weight))
        whole = mechanism.worst_rdp(queries=1, answers=1, orders=orders)
        answer = argmax.worst_rdp(queries=1, answers=1, orders=orders)
        test = np.zeros(orders.size)
        if settings.threshold is not None:
            test = mechanism.worst_rdp(queries=1, answers=0, orders=orders)
        tested, middle = settings.threshold is not None, min(_AROUND, orders.size - 1)
        above = float(whole[middle] / quick.whole[near][middle])
        self._above[tested] = above * self._above.get(tested, 1.0)
        return _Costs(quick.conversion[near], test, answer, whole)


def _fairness(z: Floats) -> Floats:
    """The Fisher information of a coin Φ(z) in z, as a share of a fair one's."""
    log_density = -0.5 * z * z - 0.5 * math.log(2.0 * math.pi)
    return np.exp(2.0 * log_density - log_ndtr(z) - log_ndtr(-z)) * math.pi / 2.0


def _spread(low: int, high: int) -> Ints:
    return np.unique(np.geomspace(low, high, _ROWS).round().astype(np.int64))
