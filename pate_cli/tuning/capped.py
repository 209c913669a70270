"""Exact pass of a search on the data-independent ε: rows and a cap on answers, no release."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from pate_cli.accounting.conversion import conversion_cost, gaussian_delta
from pate_cli.accounting.threshold import worst_threshold_rdp
from pate_cli.arrays import Floats, Ints
from pate_cli.release.worst_case import Spending, data_independent_cost
from pate_cli.tuning.electorate import Electorate, capped_mean
from pate_cli.tuning.goal import Goal
from pate_cli.tuning.grid import Setting
from pate_cli.tuning.outcome import Outcome
from pate_cli.tuning.shortlist import Candidate
from pate_cli.words import Objective

__all__ = ["price_capped", "priced_at"]


_ROWS = 80
_CAP_STEPS = np.linspace(-4.0, 6.0, 201)
_ORDERS = 1.0 + np.geomspace(0.1, 512.0, 80)
_AROUND = 4
_MOST_STEPS = 40


def price_capped(electorate: Electorate, candidate: Candidate, goal: Goal) -> Outcome | None:
    """Choose rows k1 and cap k2 for a setting; None where the goal is out of its reach."""
    one = _Capped(electorate, candidate.setting, goal)
    if goal.answers is not None:
        rows, caps = one.for_answers(goal.answers)
    elif goal.target_epsilon is not None:
        rows, caps = one.for_target(goal.target_epsilon)
    else:
        rows, caps = _all_rows(one)
    if rows is None or caps is None:
        return None
    outcome = priced_at(electorate, candidate.setting, goal, rows, caps)
    target = goal.target_epsilon
    if target is None or goal.answers is not None:
        return outcome
    for _ in range(_MOST_STEPS):
        if outcome.epsilon <= target or caps <= 1:
            break
        caps = min(caps - 1, int(caps * min(1.0, target / outcome.epsilon)))
        outcome = priced_at(electorate, candidate.setting, goal, rows, max(caps, 1))
    return outcome if outcome.epsilon <= target else None


def priced_at(
    electorate: Electorate, setting: Setting, goal: Goal, queries: int, max_answers: int
) -> Outcome:
    """What k1 rows with a cap k2 cost whatever the votes, by the routine a run uses."""
    cap = min(max_answers, queries)
    cost = data_independent_cost(
        [Spending(electorate.mechanism(setting), queries, cap)], delta=goal.delta, plan=None
    )
    expected = electorate.yields(setting, queries)
    if cap < queries:
        chance = electorate.answer_chance(setting)[:queries]
        sd = math.sqrt(float((chance * (1.0 - chance)).sum()))
        answers = capped_mean(np.array(expected.answers), np.array(sd), np.array(float(cap)))
        expected = expected.capped(float(answers))
    return Outcome(
        setting=setting,
        queries=queries,
        max_answers=cap if cap < queries else None,
        plan=None,
        mean=None,
        sd=None,
        data_independent=cost.epsilon,
        labels=cost.epsilon,
        expected=expected,
    )


def _all_rows(one: _Capped) -> tuple[int, int]:
    """All rows, and a cap that hardly ever stops the run early."""
    rows = one.electorate.queries
    mean, sd = one.moments(np.array([rows]))
    return rows, min(rows, math.ceil(float(mean[0] + 2.0 * sd[0])))


class _Capped:
    """One setting's expected answers and data-independent costs, for any k1 and k2."""

    def __init__(self, electorate: Electorate, setting: Setting, goal: Goal) -> None:
        self.electorate, self._setting, self._goal = electorate, setting, goal
        chance = electorate.answer_chance(setting)
        self._mean = np.concatenate([[0.0], np.cumsum(chance)])
        self._variance = np.concatenate([[0.0], np.cumsum(chance * (1.0 - chance))])

    def moments(self, rows: Ints) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the number of answers without a cap."""
        return self._mean[rows], np.sqrt(self._variance[rows])

    def answers(self, rows: Ints, caps: Floats) -> Floats:
        """Expected answers with a cap."""
        mean, sd = self.moments(rows)
        return np.where(caps >= rows, mean, capped_mean(mean, sd, caps))

    def for_answers(self, wanted: float) -> tuple[int | None, int | None]:
        """The cheapest k1 and k2 with so many expected answers."""
        least = self.electorate.prefix_for(self._setting, wanted)
        if least is None:
            return None, None
        rows = self._spread(least, self.electorate.queries)
        mean, sd = self.moments(rows)
        # A few caps around the number wanted serve sure votes, whose number hardly varies.
        near = np.broadcast_to(math.ceil(wanted) + np.arange(3.0), (rows.size, 3))
        caps = np.ceil(mean[:, None] + np.outer(sd, _CAP_STEPS))
        caps = np.concatenate([caps, near, rows[:, None]], axis=1)
        caps = np.clip(caps, 1.0, rows[:, None])
        reached = self.answers(rows[:, None], caps) >= wanted
        cap = np.where(reached, caps, np.inf).min(axis=1)
        mu = np.where(self._agrees(rows), self._mu_squared(rows, cap), np.inf)
        best = int(np.argmin(mu))
        if not np.isfinite(mu[best]):
            return None, None
        return int(rows[best]), int(cap[best])

    def for_target(self, target: float) -> tuple[int | None, int | None]:
        """k1 and k2 with the most expected answers (or agreeing ones) under a target ε."""
        most = self.electorate.queries
        rows = self._spread(1, most)
        costs = self._afford(target)
        for _ in range(2):
            cap = self._largest_caps(rows, target, costs)
            value = np.where(cap >= 1.0, self.answers(rows, np.maximum(cap, 1.0)), -np.inf)
            if self._goal.objective == Objective.AGREEMENT:
                value = value * self._agreement(rows)
            value = np.where(self._agrees(rows), value, -np.inf)
            best = int(np.argmax(value))
            if not np.isfinite(value[best]):
                return None, None
            chosen = int(rows[best]), int(cap[best])
            low, high = rows[max(best - 1, 0)], rows[min(best + 1, rows.size - 1)]
            rows = np.unique(np.append(np.linspace(low, high, _ROWS).astype(np.int64), chosen[0]))
        return chosen

    def _agrees(self, rows: Ints) -> NDArray[np.bool_]:
        """Whether enough of the answers among the first rows equal the plurality."""
        return np.asarray(self._agreement(rows) >= self._goal.min_agreement)

    def _agreement(self, rows: Ints) -> Floats:
        chance = self.electorate.answer_chance(self._setting)
        keep = np.concatenate(
            [[0.0], np.cumsum(chance * ndtr(-self.electorate.scores(self._setting)))]
        )
        return keep[rows] / np.maximum(self._mean[rows], 1e-300)

    def _spread(self, low: int, high: int) -> Ints:
        return np.unique(np.geomspace(low, high, _ROWS).round().astype(np.int64))

    def _mu_squared(self, rows: Ints, caps: Floats) -> Floats:
        reach = self.electorate.teachers_per_record
        one = self._setting
        return reach**2 * (rows / one.sigma1**2 + 2.0 * caps / one.sigma2**2)

    def _afford(self, target: float) -> tuple[Floats, Floats, Floats]:
        """Per order: ε left for the labels, and what asking and answering once cost at worst."""
        delta = self._goal.delta
        conversion = conversion_cost(_ORDERS, delta=delta)
        room = target - conversion
        # The order at which the quadratic guess affords the largest μ² is about the best.
        centre = int(np.argmax(room / _ORDERS))
        near = slice(max(centre - _AROUND, 0), centre + _AROUND + 1)
        mechanism = self.electorate.mechanism(self._setting)
        orders = _ORDERS[near]
        answering = mechanism.argmax.worst_rdp(queries=0, answers=1, orders=orders)
        reach = self.electorate.teachers_per_record
        asking = worst_threshold_rdp(
            teachers=self.electorate.teachers,
            threshold=self._setting.threshold,
            sigma=self._setting.sigma1,
            orders=orders,
            reach=float(reach),
        )
        return room[near], asking, answering

    def _largest_caps(self, rows: Ints, target: float, costs: tuple[Floats, ...]) -> Floats:
        """k2 at most, per k1, by either route; below 1 where even one answer is too many."""
        room, asking, answering = costs
        by_order = (room - np.outer(rows, asking)) / answering
        spent = rows / self._setting.sigma1**2
        reach = self.electorate.teachers_per_record
        by_gauss = (_largest_mu_squared(target, self._goal.delta) / reach**2 - spent) * (
            self._setting.sigma2**2 / 2.0
        )
        return np.minimum(np.floor(np.maximum(by_order.max(axis=1), by_gauss) + 1e-9), rows)


def _largest_mu_squared(target: float, delta: float) -> float:
    """The largest μ² whose Gaussian-DP ε at δ is at most the target."""
    low, high = 1e-9, 1.0
    while gaussian_delta(mu=high, epsilon=target) < delta:
        low, high = high, 2.0 * high
    for _ in range(60):
        middle = 0.5 * (low + high)
        if gaussian_delta(mu=middle, epsilon=target) <= delta:
            low = middle
        else:
            high = middle
    return low * low
