"""Labels whose ε holds whatever the votes, met always by the rows and a public cap on answers.

k1 rows of which k2 may be answered cost k1·w1(λ) + k2·w2(λ) at order λ, or k1·w12(λ), where w1 is
the cost of a test, w2 of an answer and w12 of a whole row, each for the worst votes. How many rows
get an answer depends on the votes. So for given votes numbers of rows are tried, each with the
largest cap that ε allows, or with the least that gives so many answers on average over the noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import log_ndtr, ndtr

from pate_cli.accounting.conversion import conversion_cost
from pate_cli.core.arrays import Floats, Ints
from pate_cli.disclosure.target import TargetPlan
from pate_cli.planning.forecast import capped_mean, expected_by_rows, forecast, worst_case_epsilon
from pate_cli.planning.goal import Found, Pricing
from pate_cli.planning.search import Candidate
from pate_cli.planning.tuning import Tuning
from pate_cli.planning.vote_model import VoteModel

_ORDERS = 1.0 + np.geomspace(0.1, 512.0, 80)
# Orders either side of the best at quick costs that are priced exactly.
_AROUND = 3
# Numbers of rows that are tried, pluralities among which a row costs most, and caps by how many
# standard deviations they are above the mean.
_ROWS, _PLURALITIES, _CAP_STEPS = 60, 41, np.linspace(-4.0, 6.0, 201)
_SHRINK, _OUT_OF_REACH = 0.999, -9.0


@dataclass(frozen=True, eq=False)
class _Costs:
    """Costs of rows and answers whatever the votes, at some orders, [orders] each, nats."""

    conversion: Floats
    test: Floats
    answer: Floats
    whole: Floats

    def epsilons(self, rows: Ints, caps: Floats) -> Floats:
        """ε of so many rows with so many answers at each order, [rows, orders]."""
        rdp = np.multiply.outer(rows, self.test) + np.multiply.outer(caps, self.answer)
        return np.minimum(rdp, np.multiply.outer(rows, self.whole)) + self.conversion

    def caps(self, rows: Ints, epsilon: float) -> Floats:
        """The most answers under ε, below 1 where even one is too many, [rows]."""
        room = epsilon - self.conversion - np.multiply.outer(rows, self.test)
        caps = np.floor((room / self.answer).max(axis=-1) + 1e-9)
        whole = (np.multiply.outer(rows, self.whole) + self.conversion).min(axis=-1)
        return np.asarray(np.where(whole <= epsilon, rows, np.minimum(caps, rows)))


class CappedVotes(Pricing):
    """Settings for a worst case, on a file of votes; SECRET if the votes are."""

    _above = 1.0
    """How far the cost of a whole row is above the quick one, where there is a test."""

    def look(self, settings: Sequence[Tuning], near: int | None) -> list[Candidate]:
        """Return candidates at quick costs, whose rows and caps need no start."""
        del near
        return [self._best(self.few, each, self._quick(each))[0] for each in settings]

    def price(self, candidate: Candidate, *, last: bool) -> Found | None:
        """Return a candidate with the rows and the cap that are best at exact costs."""
        del last
        settings, goal = candidate.settings, self.goal
        best, cap = self._best(self.votes, settings, self._exact(settings))
        mechanism, rows, whole = self.votes.mechanism(settings), best.rows, cap >= best.rows
        while cap >= 1:
            epsilon = worst_case_epsilon(mechanism, rows=rows, max_answers=cap, delta=goal.delta)
            if goal.epsilon is None or epsilon <= goal.epsilon:
                target = TargetPlan.of(epsilon, delta=goal.delta)
                told = forecast(self.votes, mechanism, target, rows=rows, max_answers=cap)
                return Found(goal, told, cap if cap < rows else None)
            cap = min(cap - 1, int(cap * _SHRINK))
            rows = cap if whole else rows
        return None

    def learn(self, best: Found) -> None:
        """Learn nothing more: `price` has seen how far costs are above the quick ones."""

    def _best(self, votes: VoteModel, settings: Tuning, costs: _Costs) -> tuple[Candidate, int]:
        """The settings with their best number of rows, and the best cap on answers.

        Args:
            votes: those that are looked at, which stand for all.
            settings: threshold, noise and weight of the prior.
            costs: of the settings.
        """
        goal, votes = self.goal, votes.with_prior_weight(settings.prior_weight)
        mechanism = votes.mechanism(settings)
        rows = np.geomspace(1, self.votes.rows, _ROWS).round().astype(np.int64)
        for _ in range(2):
            rows = np.unique(rows)
            mean, agreeing, variance = expected_by_rows(votes, mechanism, rows, self.votes.rows)[
                :, 0
            ]
            sd, agreement = np.sqrt(variance), agreeing / np.maximum(mean, 1e-300)
            if goal.answers is None:
                caps = costs.caps(rows, goal.epsilon or 0.0)
            else:
                caps = _least_caps(mean, sd, rows, goal.answers)
            used = np.maximum(caps, 1.0)
            answers = np.where(used >= rows, mean, capped_mean(mean, sd, used))
            epsilon = np.maximum(costs.epsilons(rows, used).min(axis=-1), 1e-9)
            merit = goal.merit(epsilon, answers, agreement)
            merit = np.where(caps >= 1.0, merit, _OUT_OF_REACH - used / used[-1])
            holds = (caps >= 1.0) & (agreement >= goal.min_agreement)
            best = int(np.argmax(np.where(holds, merit, _OUT_OF_REACH + merit)))
            found = Candidate(settings, float(merit[best]), int(rows[best]), bool(holds[best]))
            cap, low, high = used[best], rows[max(best - 1, 0)], rows[min(best + 1, rows.size - 1)]
            rows = np.append(np.linspace(low, high, _ROWS).astype(np.int64), rows[best])
        return found, int(cap)

    def _quick(self, settings: Tuning) -> _Costs:
        """The costs where a vote moves every coin by little: by its Fisher information.

        A fair coin costs λ/(πσ1²) for a test and 2λ/(πσ2²) for an answer, others less.
        """
        most, answer = float(self.votes.teachers + settings.prior_weight), 2.0 / settings.sigma2**2
        largest = np.linspace(most / 2.0, most, _PLURALITIES)
        whole = _fairness((2.0 * largest - most) / (settings.sigma2 * np.sqrt(2.0))) * answer
        test, above = 0.0, 1.0
        if settings.threshold is not None and settings.sigma1 is not None:
            z, test = (largest - settings.threshold) / settings.sigma1, settings.sigma1**-2.0
            whole, above = _fairness(z) * test + ndtr(z) * whole, self._above
        slope = self.votes.teachers_per_record**2 * _ORDERS / np.pi
        conversion = conversion_cost(_ORDERS, delta=self.goal.delta)
        return _Costs(conversion, slope * test, slope * answer, slope * above * float(whole.max()))

    def _exact(self, settings: Tuning) -> _Costs:
        """The costs that a run is charged, at the orders around the best one by quick costs."""
        quick = self._quick(settings)
        best, cap = self._best(self.few, settings, quick)
        centre = int(np.argmin(quick.epsilons(np.array([best.rows]), np.array([float(cap)]))))
        near = slice(max(centre - _AROUND, 0), centre + _AROUND + 1)
        mechanism, orders = self.votes.mechanism(settings), _ORDERS[near]
        argmax = self.votes.mechanism(replace(settings, threshold=None, sigma1=None))
        answer = argmax.worst_rdp(queries=1, answers=1, orders=orders)
        whole, test = answer, np.zeros(orders.size)
        if settings.threshold is not None:
            whole = mechanism.worst_rdp(queries=1, answers=1, orders=orders)
            test = mechanism.worst_rdp(queries=1, answers=0, orders=orders)
            self._above *= float(whole[0] / quick.whole[near][0])
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
