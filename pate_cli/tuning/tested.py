"""A setting priced for a tested budget: how many rows to ask, and how likely they pass."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from pate_cli.accounting.conversion import conversion_cost, round_up
from pate_cli.accounting.cost_table import ScoreTable
from pate_cli.accounting.score_grid import COARSE
from pate_cli.arrays import Floats, Ints
from pate_cli.disclosure.profile import VoteProfile, lattice_states
from pate_cli.disclosure.target import LIKELY, TargetPlan
from pate_cli.disclosure.worst_case import Spending, data_independent_cost
from pate_cli.mechanisms.confident import ConfidentTable
from pate_cli.pricing.prospect import Chances, smallest_target
from pate_cli.tuning.goal import Goal
from pate_cli.tuning.price import Outcome
from pate_cli.tuning.sample import VoteSample
from pate_cli.tuning.settings import Setting

__all__ = ["TestedPricing"]

_MOST_ROWS = 10_000
# For a choice: no distances that hardly ever matter.
_FEW_DISTANCES = np.arange(40)
# Where the least target is sought, the first guess is so many times what the labels cost.
_ABOVE_COST = 1.1
# Few orders in all, so that settings share their tables.
_LADDER, _STRIDE = np.array([1.5, 2.0, 3.0, 4.5, 6.5, 10.0, 15.0, 22.0, 32.0, 48.0]), 2
_PRECISION = 0.002
# Numbers of rows that are tried around the most that are likely to pass.
_ROWS_TRIED = np.array([0.8, 0.85, 0.9, 0.94, 0.97, 0.99, 1.0, 1.01, 1.03])
_MOST_CHANCE = 0.9999


def _few_orders(plan: TargetPlan) -> Floats:
    """For a choice: every other order of a run; a large target has only one."""
    return plan.orders[1::2] if plan.orders.size > 1 else plan.orders


class _Prices:
    """What the first rows of a sample cost at one setting, on the coarse lattice, by distance."""

    def __init__(self, place: Ints, weights_of: Callable[[float], Floats], scale: float) -> None:
        """`weights_of(order)` is u_d of each distinct cell, [distances, cells]."""
        self._place, self._within, self._scale = place, weights_of, scale

    def chance(self, plan: TargetPlan, orders: Floats, rows: int) -> float:
        """The chance that so many rows of the whole sample pass."""
        return plan.coin(self._at(rows), orders=orders).chance

    def cost(self, orders: Floats, rows: int) -> Floats:
        """u_0 of so many rows, [orders], nats."""
        at = self._at(rows)
        return np.array([at(order)[0] for order in orders.tolist()])

    def _at(self, rows: int) -> Callable[[float], Floats]:
        seen = max(1, min(round(rows / self._scale), self._place.size))
        weights = np.bincount(self._place[:seen]) * (rows / seen)

        def at(order: float) -> Floats:
            return self._within(order)[:, : weights.size] @ weights

        return at


class TestedPricing:
    """Prices of tested budgets: ε is the target, and answers count by the chance that they pass.

    Without a target ε is the least that passes with a chance of 97.7%.
    """

    beam, whole, front_ranges = 3, 27, 8

    def __init__(self, sample: VoteSample, *, delta: float) -> None:
        """Estimates look at 10,000 evenly spaced rows at most."""
        self._sample, self._delta = sample, delta
        self._thinned = sample.thinned(_MOST_ROWS)
        self._scale = sample.queries / self._thinned.queries
        self._argmaxes: dict[tuple[float, float], ScoreTable] = {}

    def agrees(self, setting: Setting, goal: Goal, queries: int) -> bool:
        """Whether enough of its answers would equal the plurality, without a price."""
        rows: int | None = max(round(queries / self._scale), 1)
        if goal.answers is not None:
            rows = self._thinned.prefix_for(setting, goal.answers / LIKELY / self._scale)
        return rows is None or self._thinned.yields(setting, rows).agreement >= goal.min_agreement

    def estimate(self, setting: Setting, goal: Goal, near: Outcome | None) -> Outcome | None:
        """Rows for a target, or the least target for rows, on the coarse lattice."""
        prices = self._prices(setting)
        if goal.target_epsilon is None or goal.answers is not None:
            self._prepare(setting, _LADDER)
            rows = self._rows_for(setting, goal)
            plan = self._least_target(prices, rows)
            return self._outcome(setting, rows, plan, LIKELY)
        plan = TargetPlan.of(goal.target_epsilon, delta=self._delta)
        orders = _few_orders(plan)
        self._prepare(setting, orders)
        start = self._sample.queries if near is None else near.queries
        rows, chance = self._best_rows(
            setting, lambda rows: prices.chance(plan, orders, rows), start=start
        )
        return self._outcome(setting, rows, plan, chance)

    def polished(self, rough: Outcome, goal: Goal, *, strides: tuple[int, ...] = (1,)) -> Outcome:
        """The same: orders follow from the target."""
        del goal, strides
        return rough

    def exact(self, rough: Outcome, goal: Goal) -> Outcome | None:
        """The same on the lattice, orders and distances of a run."""
        setting = rough.setting
        mechanism = self._sample.mechanism(setting)
        plan = rough.target
        if plan is None:
            return None
        highest = float(plan.at(plan.epsilon / 2.0).orders[-1])
        profile = VoteProfile(lattice_states(mechanism, highest_order=highest), in_order=True)
        profile.add(mechanism, self._sample.counts)
        fixed = goal.target_epsilon is None or goal.answers is not None

        def always(rows: int) -> float:
            spent = [Spending(mechanism, rows, rows)]
            return data_independent_cost(spent, delta=self._delta, plan=None).epsilon

        if fixed:
            rows = rough.queries
            chances = Chances(mechanism, profile, queries=rows, max_answers=rows)
            least = smallest_target(chances, plan, LIKELY, always=round_up(always(rows)))
            plan = TargetPlan.of(least, delta=self._delta)
            found = self._outcome(setting, rows, plan, LIKELY, exact=True)
            return replace(found, data_independent=always(rows))
        chances = Chances(mechanism, profile, queries=rough.queries, max_answers=rough.queries)
        rows, chance = self._best_rows(
            setting, lambda rows: chances.of_first(plan, rows), start=rough.queries
        )
        found = self._outcome(setting, rows, plan, chance, exact=True)
        found = replace(found, data_independent=always(rows))
        # As many rows may be within the target whatever the votes.
        room = plan.epsilon - conversion_cost(plan.orders, delta=self._delta)
        worst = mechanism.worst_rdp(queries=1, answers=1, orders=plan.orders)
        free = min(int(np.max(np.maximum(room, 0.0) / worst)), self._sample.queries)
        if free >= 1 and always(free) <= plan.epsilon:
            sure = self._outcome(setting, free, plan, 1.0, exact=True)
            if sure.expected.answers > found.expected.answers:
                found = replace(sure, data_independent=always(free))
        return found

    def labels_bound(self, outcome: Outcome) -> Outcome:
        """The outcome with the ε for all votes of its labels alone."""
        return replace(outcome, labels=outcome.data_independent)

    def _rows_for(self, setting: Setting, goal: Goal) -> int:
        rows = self._sample.queries
        if goal.answers is not None:
            # Answers count by the chance that they pass.
            rows = self._sample.prefix_for(setting, goal.answers / LIKELY) or rows
        return rows

    def _best_rows(
        self, setting: Setting, chance: Callable[[int], float], *, start: int
    ) -> tuple[int, float]:
        """The rows with the most expected answers, by the chance that they pass; and it."""
        most = self._sample.queries
        low, high = 0, most + 1
        rows = min(max(start, 1), most)
        # The most rows that pass as often as not.
        while high - low > max(1, low // 50):
            if chance(rows) >= 0.5:
                low = rows
                rows = min(2 * rows, most) if high > most else (low + high) // 2
                if low == most:
                    break
            else:
                high = rows
                rows = max((low + high) // 2, 1)
                if high == 1:
                    break
        tried = np.unique(np.clip((_ROWS_TRIED * max(low, 1)).astype(np.int64), 1, most))
        answers = np.cumsum(self._sample.answer_chance(setting))
        passing = [chance(rows) for rows in tried.tolist()]
        best = int(np.argmax(answers[tried - 1] * np.array(passing)))
        return int(tried[best]), passing[best]

    def _least_target(self, prices: _Prices, rows: int) -> TargetPlan:
        """The least target that so many rows are likely to pass, nearly."""
        wide = _LADDER[::_STRIDE]
        costs = prices.cost(wide, rows) + conversion_cost(wide, delta=self._delta)
        guess = TargetPlan.of(max(_ABOVE_COST * float(costs.min()), 1e-3), delta=self._delta)
        near = np.searchsorted(_LADDER, _few_orders(guess))
        orders = _LADDER[np.unique(np.minimum(near, _LADDER.size - 1))]
        low = high = guess.epsilon
        while prices.chance(guess.at(high), orders, rows) < LIKELY:
            low, high = high, 1.3 * high
        while low > 1e-3 and prices.chance(guess.at(low), orders, rows) >= LIKELY:
            low, high = low / 1.3, low
        while high - low > _PRECISION * low:
            middle = (low + high) / 2.0
            passes = prices.chance(guess.at(middle), orders, rows) >= LIKELY
            low, high = (low, middle) if passes else (middle, high)
        return guess.at(high)

    def _prices(self, setting: Setting) -> _Prices:
        mechanism = self._thinned.mechanism(setting)
        table = self._table(setting, _LADDER[-1])
        cells = mechanism.cells(self._thinned.score(setting), table.grid)
        flat, place = np.unique(cells[:, 0] * table.grid.size + cells[:, 1], return_inverse=True)
        distinct = np.stack(np.divmod(flat, table.grid.size), axis=1)
        known: dict[float, Floats] = {}

        def within(order: float) -> Floats:
            if order not in known:
                there = self._table(setting, order)
                moved = np.column_stack(
                    [distinct[:, 0], there.grid.merged(distinct[:, 1], table.grid)]
                )
                known[order] = there.within(moved, _FEW_DISTANCES)
            return known[order]

        return _Prices(place, within, self._scale)

    def _table(self, setting: Setting, order: float) -> ConfidentTable:
        """The cost table of a setting; the argmax's part is shared by all with the same σ2."""
        table = self._thinned.mechanism(setting).cost_table(order, COARSE)
        argmax = self._argmaxes.setdefault((setting.sigma2, order), table.argmax)
        return replace(table, argmax=argmax)

    def _prepare(self, setting: Setting, orders: Floats) -> None:
        """Open the argmax's tables at several orders, their ceilings found all at once."""
        if all((setting.sigma2, order) in self._argmaxes for order in orders.tolist()):
            return
        mechanism = self._thinned.mechanism(setting)
        mechanism.argmax.worst_answer(orders)
        for order in orders.tolist():
            table = mechanism.cost_table(order, COARSE)
            self._argmaxes.setdefault((setting.sigma2, order), table.argmax)

    def _outcome(
        self, setting: Setting, rows: int, plan: TargetPlan, chance: float, *, exact: bool = False
    ) -> Outcome:
        return Outcome(
            setting=setting,
            queries=rows,
            max_answers=None,
            plan=None,
            mean=None,
            sd=None,
            data_independent=math.inf,
            labels=math.inf,
            expected=self._sample.yields(setting, rows).scaled(chance),
            exact=exact,
            target=plan,
            chance=chance,
        )
