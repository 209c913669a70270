"""A setting priced for all votes: how many rows and which cap on answers serve a goal."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from pate_cli.accounting.conversion import conversion_cost, gaussian_delta
from pate_cli.accounting.threshold import worst_threshold_rdp
from pate_cli.core.arrays import Floats, Ints, each_once
from pate_cli.core.dataclass import dataclass
from pate_cli.core.words import Objective
from pate_cli.disclosure.worst_case import Spending, data_independent_cost
from pate_cli.planning.sample import VoteSample, capped_mean
from pate_cli.planning.setting import Setting
from pate_cli.tuning.goal import Goal
from pate_cli.tuning.price import Costed

_ROWS = 80
_CAP_STEPS = np.linspace(-4.0, 6.0, 201)
_ORDERS = 1.0 + np.geomspace(0.1, 512.0, 80)
# Orders either side of the best by the guess that are priced exactly for a choice.
_AROUND = 3


@dataclass(frozen=True, eq=False)
class _Costs:
    """What rows and answers cost, per order [orders], nats.

    Attributes:
        conversion: of turning RDP into ε.
        asking, answering: of one row and of one answer, for all votes.
        whole: of one row with its answer, for all votes; less than both.
        by_gauss: (μ² allowed by a target, of one row, of one answer) in the Gaussian-DP bound.
    """

    conversion: Floats
    asking: Floats
    answering: Floats
    whole: Floats
    by_gauss: tuple[float, float, float] | None = None

    def epsilon(self, rows: Ints, caps: Floats) -> Floats:
        """ε of k1 rows with k2 answers, by the best of the orders."""
        rdp = np.multiply.outer(rows, self.asking) + np.multiply.outer(caps, self.answering)
        rdp = np.minimum(rdp, np.multiply.outer(rows, self.whole))
        return np.asarray(np.maximum((rdp + self.conversion).min(axis=-1), 0.0))

    def largest_caps(self, rows: Ints, target: float) -> Floats:
        """The most answers under a target, per k1; below 1 where even one is too many."""
        room = target - self.conversion - np.multiply.outer(rows, self.asking)
        caps = (room / self.answering).max(axis=-1)
        if self.by_gauss is not None:
            mu_squared, asking, answering = self.by_gauss
            caps = np.maximum(caps, (mu_squared - rows * asking) / answering)
        uncapped = (np.multiply.outer(rows, self.whole) + self.conversion).min(axis=-1) <= target
        return np.asarray(np.where(uncapped, rows, np.minimum(np.floor(caps + 1e-9), rows)))


class _ExpectedAnswers:
    """What a setting is expected to answer among the first k1 rows, with a cap k2."""

    def __init__(self, sample: VoteSample, setting: Setting) -> None:
        self._sample, self._setting = sample, setting
        chance = sample.answer_chance(setting)
        agreeing = sample.agreeing_chance(setting)
        self._mean = np.concatenate([[0.0], np.cumsum(chance)])
        self._variance = np.concatenate([[0.0], np.cumsum(chance * (1.0 - chance))])
        self._agreeing = np.concatenate([[0.0], np.cumsum(agreeing)])

    def moments(self, rows: Ints) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the number of answers without a cap."""
        return self._mean[rows], np.sqrt(self._variance[rows])

    def agreement(self, rows: Ints) -> Floats:
        """Share of the answers that equal the plurality."""
        return self._agreeing[rows] / np.maximum(self._mean[rows], 1e-300)

    def capped(self, rows: Ints, caps: Floats) -> Floats:
        """Expected answers with a cap."""
        mean, sd = self.moments(rows)
        return np.where(caps >= rows, mean, capped_mean(mean, sd, caps))

    def for_all_rows(self) -> tuple[int, int]:
        """All rows, and a cap that hardly ever stops the run early."""
        rows = self._sample.queries
        mean, sd = self.moments(np.array([rows]))
        return rows, max(min(rows, math.ceil(float(mean[0] + 2.0 * sd[0]))), 1)

    def for_number(self, wanted: float, costs: _Costs, min_agreement: float) -> tuple[int, int]:
        """The cheapest k1 and k2 with so many expected answers; all rows where they give fewer."""
        least = self._sample.prefix_for(self._setting, wanted)
        if least is None:
            return self.for_all_rows()
        rows = _spread(least, self._sample.queries)
        mean, sd = self.moments(rows)
        # A few caps around the number wanted serve sure votes, whose number hardly varies.
        near = np.broadcast_to(math.ceil(wanted) + np.arange(3.0), (rows.size, 3))
        caps = np.ceil(mean[:, None] + np.outer(sd, _CAP_STEPS))
        caps = np.clip(np.concatenate([caps, near, rows[:, None]], axis=1), 1.0, rows[:, None])
        enough = self.capped(rows[:, None], caps) >= wanted
        cap = np.where(enough, caps, np.inf).min(axis=1)
        missing = np.maximum(min_agreement - self.agreement(rows), 0.0)
        best = np.lexsort((costs.epsilon(rows, cap), missing))[0]
        return int(rows[best]), int(cap[best])

    def for_target(self, target: float, costs: _Costs, goal: Goal) -> tuple[int, int]:
        """The k1 and k2 with the most expected answers (or agreeing ones) under a target ε.

        The fewest of both where even those cost more.
        """
        rows, chosen = _spread(1, self._sample.queries), (1, 1)
        for _ in range(2):
            caps = costs.largest_caps(rows, target)
            value = self.capped(rows, np.maximum(caps, 1.0))
            if goal.objective is Objective.AGREEMENT:
                value = value * self.agreement(rows)
            missing = np.maximum(goal.min_agreement - self.agreement(rows), 0.0)
            best = np.lexsort((-value, missing, caps < 1.0))[0]
            if caps[best] < 1.0:
                return chosen
            chosen = int(rows[best]), int(caps[best])
            low, high = rows[max(best - 1, 0)], rows[min(best + 1, rows.size - 1)]
            rows = each_once(np.append(np.linspace(low, high, _ROWS).astype(np.int64), chosen[0]))
        return chosen


class CappedPricing:
    """Prices for all votes: no release, and a public cap on answers.

    Estimates take a row to cost λ/(πσ1²) and an answer 2λ/(πσ2²), which is 2/π of what the Gaussian
    mechanism would, and a whole row what coins of small steps would at the worst plurality; exact
    prices come from the routine that a run uses.
    """

    beam, whole, front_ranges, between = 12, 2000, 4, False

    def __init__(self, sample: VoteSample, *, delta: float) -> None:
        """The histograms decide what is answered; costs do not depend on them."""
        self._sample, self._delta = sample, delta
        self._conversion = conversion_cost(_ORDERS, delta=delta)
        self._answering: dict[tuple[float, int], Floats] = {}
        self._last: tuple[Setting, _ExpectedAnswers] | None = None

    def estimate(self, setting: Setting, goal: Goal, near: Costed | None) -> Costed | None:
        """Rows and cap for the goal at guessed costs."""
        del near
        costs = self._guessed(setting)
        rows, cap = self._chosen(setting, costs, goal)
        epsilon = costs.epsilon(np.array([rows]), np.array([float(cap)]))
        return self._outcome(setting, rows, cap, float(epsilon[0]), exact=False)

    def starts(self, goal: Goal) -> Sequence[Setting]:
        """None: there is no such rule."""
        del goal
        return ()

    def agrees(self, setting: Setting, goal: Goal, queries: int) -> bool:
        """True: rows are chosen so that they do, if any number of rows is."""
        del setting, goal, queries
        return True

    def polished(self, rough: Costed, goal: Goal, *, strides: tuple[int, ...] = (1,)) -> Costed:
        """The same: a guess does not depend on where it started."""
        del goal, strides
        return rough

    def exact(
        self, rough: Costed, goal: Goal, tick: Callable[[], None] = lambda: None
    ) -> Costed | None:
        """Rows and cap chosen again at exact costs; what a run would publish."""
        del tick
        setting, target = rough.setting, goal.target_epsilon
        if target is None or goal.answers is not None:
            return self.priced(setting, rough.queries, rough.max_answers or rough.queries)
        rows, cap = self._chosen(setting, self._priced_near(setting, target), goal)
        # Rows that are priced whole, without a cap, go down together with it.
        whole = cap >= rows
        outcome = self.priced(setting, rows, cap)
        if outcome.epsilon <= target:
            return outcome
        low, high, step, fits = 0, cap, 1, None
        while high - low > 1:
            cap = max(high - step, 1) if fits is None else (low + high) // 2
            outcome = self.priced(setting, cap if whole else rows, cap)
            if outcome.epsilon <= target:
                low, fits = cap, outcome
            else:
                high, step = cap, 2 * step
        return fits

    def priced(self, setting: Setting, queries: int, max_answers: int) -> Costed:
        """What k1 rows with a cap k2 cost for all votes, by the routine a run uses."""
        spent = [Spending(self._sample.mechanism(setting), queries, max_answers)]
        cost = data_independent_cost(spent, delta=self._delta, plan=None)
        return self._outcome(setting, queries, max_answers, cost.epsilon, exact=True)

    def labels_bound(self, outcome: Costed) -> Costed:
        """The outcome as it is: nothing but labels is released."""
        return outcome

    def _chosen(self, setting: Setting, costs: _Costs, goal: Goal) -> tuple[int, int]:
        answers = self._answers(setting)
        if goal.answers is not None:
            return answers.for_number(goal.answers, costs, goal.min_agreement)
        if goal.target_epsilon is not None:
            return answers.for_target(goal.target_epsilon, costs, goal)
        return answers.for_all_rows()

    def _answers(self, setting: Setting) -> _ExpectedAnswers:
        """What a setting answers; the last one asked for is kept."""
        if self._last is None or self._last[0] != setting:
            self._last = setting, _ExpectedAnswers(self._sample, setting)
        return self._last[1]

    def _guessed(self, setting: Setting) -> _Costs:
        slope = self._sample.teachers_per_record**2 * _ORDERS / np.pi
        mechanism = self._sample.confident(setting)
        asking, answering = slope / mechanism.sigma1**2, 2.0 * slope / mechanism.sigma2**2
        whole = self._sample.guessed_ceiling(setting, _ORDERS)
        return _Costs(self._conversion, asking, answering, whole)

    def _priced_near(self, setting: Setting, target: float) -> _Costs:
        """Exact costs around the order at which the guess affords the largest μ²."""
        centre = int(np.argmax((target - self._conversion) / _ORDERS))
        near = slice(max(centre - _AROUND, 0), centre + _AROUND + 1)
        mechanism, orders = self._sample.confident(setting), _ORDERS[near]
        asking = worst_threshold_rdp(
            teachers=self._sample.most_votes,
            threshold=mechanism.threshold,
            sigma=mechanism.sigma1,
            orders=orders,
            teachers_per_record=self._sample.teachers_per_record,
        )
        by_gauss = (
            _largest_mu_squared(target, self._delta),
            mechanism.gaussian_mu(queries=1, answers=0) ** 2,
            mechanism.gaussian_mu(queries=0, answers=1) ** 2,
        )
        answering = self._answering.get((setting.sigma2, centre))
        if answering is None:
            answering = mechanism.argmax.worst_answer(orders)
            self._answering[setting.sigma2, centre] = answering
        whole = mechanism.worst_rdp(queries=1, answers=1, orders=orders)
        return _Costs(self._conversion[near], asking, answering, whole, by_gauss)

    def _outcome(
        self, setting: Setting, queries: int, max_answers: int, epsilon: float, *, exact: bool
    ) -> Costed:
        expected = self._sample.yields(setting, queries)
        capped = max_answers < queries
        if capped and expected.answers > 0.0:
            answers = self._answers(setting)
            kept = float(answers.capped(np.array(queries), np.array(float(max_answers))))
            expected = expected.scaled(kept / expected.answers)
        return Costed(
            setting=setting,
            queries=queries,
            max_answers=max_answers if capped else None,
            plan=None,
            mean=None,
            sd=None,
            data_independent=epsilon,
            labels=epsilon,
            expected=expected,
            exact=exact,
        )


def _spread(low: int, high: int) -> Ints:
    return each_once(np.geomspace(low, high, _ROWS).round().astype(np.int64))


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
