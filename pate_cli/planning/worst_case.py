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
from scipy.special import log_ndtr, ndtr

from pate_cli.accounting.conversion import conversion_cost
from pate_cli.core.arrays import Floats, Ints
from pate_cli.disclosure.target import TargetPlan
from pate_cli.planning.forecast import capped_mean, forecast, worst_case_epsilon
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
    """Costs of rows and answers whatever the votes, at some orders, [orders] each, nats."""

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
        self._votes, self._few = votes, votes.thinned(_MOST_ROWS)
        self._goal = self._sought = goal
        self._above: dict[bool, float] = {}

    def look(self, settings: Sequence[Tuning], near: int | None) -> list[Candidate]:
        """Return candidates at quick costs, whose rows and caps need no start."""
        del near
        found = []
        for each in settings:
            rows, _, merit, holds = self._best(self._few, each, self._quick(each), self._sought)
            found.append(Candidate(each, merit, rows, holds))
        return found

    def price(self, candidate: Candidate, *, last: bool) -> Found | None:
        """Return a candidate with the rows and the cap that are best at exact costs."""
        del last
        settings, goal = candidate.settings, self._goal
        votes = self._votes.with_prior_weight(settings.prior_weight)
        rows, cap, *_ = self._best(votes, settings, self._exact(settings), goal)
        mechanism, whole = votes.mechanism(settings), cap >= rows
        while cap >= 1:
            epsilon = worst_case_epsilon(mechanism, rows=rows, max_answers=cap, delta=goal.delta)
            if goal.epsilon is None or epsilon <= goal.epsilon:
                target = TargetPlan.of(epsilon, delta=goal.delta)
                found = forecast(votes, mechanism, target, rows=rows, max_answers=cap)
                return Found.of(found, goal, max_answers=cap if cap < rows else None)
            cap = min(cap - 1, int(cap * _SHRINK))
            rows = cap if whole else rows
        return None

    def learn(self, best: Found) -> None:
        """Ask for more agreement where it was too little; exact costs have told of themselves."""
        self._sought = self._goal.stricter(best, self._few, available=self._votes.rows)

    def _best(
        self, votes: VoteModel, settings: Tuning, costs: _Costs, goal: Goal
    ) -> tuple[int, int, float, bool]:
        """The best numbers of rows and answers, how well they serve, and whether they agree enough.

        Args:
            votes: those that are looked at, which stand for all.
            settings: threshold, noise and weight of the prior.
            costs: of the settings.
            goal: says what is best.
        """
        votes = votes.with_prior_weight(settings.prior_weight)
        chance, scale = votes.answer_chance(settings), votes.rows / self._votes.rows
        parts = [chance, chance * (1.0 - chance), chance * votes.agreement_chance(settings)]
        sums = np.cumsum(parts, axis=1)
        rows = np.geomspace(1, self._votes.rows, _ROWS).round().astype(np.int64)
        for _ in range(2):
            rows = np.unique(rows)
            seen = np.clip(np.round(rows * scale), 1, votes.rows).astype(np.int64)
            mean, variance, agreeing = sums[:, seen - 1] * (rows / seen)
            sd, agreement = np.sqrt(variance), agreeing / np.maximum(mean, 1e-300)
            caps = costs.caps(rows, goal.epsilon or 0.0)
            if goal.answers is not None:
                caps = _least_caps(mean, sd, rows, goal.answers)
            used = np.maximum(caps, 1.0)
            answers = np.where(used >= rows, mean, capped_mean(mean, sd, used))
            merit = goal.merit(costs.epsilon(rows, used), answers, agreement)
            merit = np.where(caps >= 1.0, merit, _OUT_OF_REACH - used / used[-1])
            holds = (caps >= 1.0) & (agreement >= goal.min_agreement)
            best = int(np.argmax(np.where(holds, merit, _OUT_OF_REACH + merit)))
            found = int(rows[best]), int(used[best]), float(merit[best]), bool(holds[best])
            low, high = rows[max(best - 1, 0)], rows[min(best + 1, rows.size - 1)]
            rows = np.append(np.linspace(low, high, _ROWS).astype(np.int64), rows[best])
        return found

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
        rows, cap, *_ = self._best(self._few, settings, quick, self._sought)
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


def _least_caps(mean: Floats, sd: Floats, rows: Ints, answers: float) -> Floats:
    """The fewest answers under which so many are expected, 0 where rows have fewer, [rows]."""
    near = np.ceil(answers) + np.arange(3.0) + np.zeros((rows.size, 1))
    caps = np.ceil(mean[:, None] + np.outer(sd, _CAP_STEPS))
    caps = np.clip(np.hstack([caps, near, rows[:, None]]), 1.0, rows[:, None])
    enough = capped_mean(mean[:, None], sd[:, None], caps) >= answers
    return np.where(enough.any(axis=1), np.where(enough, caps, np.inf).min(axis=1), 0.0)
