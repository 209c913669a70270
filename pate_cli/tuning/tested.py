"""A setting priced for a tested budget: how many rows to ask, and how likely they pass."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from pate_cli.accounting.conversion import conversion_cost, round_up
from pate_cli.core.arrays import Floats, Histograms, Ints, each_once
from pate_cli.core.dataclass import dataclass
from pate_cli.core.words import Bound
from pate_cli.disclosure.profile import (
    States,
    VoteProfile,
    coin_orders,
    seconds_for,
    settled_bound,
    states_for,
)
from pate_cli.disclosure.target import LIKELY, TargetPlan
from pate_cli.disclosure.worst_case import Spending, data_independent_cost
from pate_cli.mechanisms.base import ScoredMechanism, Shares, no_progress
from pate_cli.planning.ensembles import Ensembles
from pate_cli.planning.made_up_rule import Chosen, choose
from pate_cli.planning.sample import VoteSample
from pate_cli.planning.setting import Setting
from pate_cli.planning.target_on_votes import PassProbability
from pate_cli.tuning.estimates import Estimates, LatticeEstimates, PairEstimates, Prices
from pate_cli.tuning.goal import Goal
from pate_cli.tuning.price import Costed

_MOST_ROWS = 10_000
# Where the least target is sought, the first guess is so many times what the labels cost.
_ABOVE_COST = 1.1
_PRECISION = 0.002
# Until anything is known of the least target; it only settles a bound that is left open.
_FIRST_TARGET = 1.0
_ANY = Setting(None, None, 1.0)
# Between these targets a start is sought for a number of answers, so many times halved.
_LEAST_TARGET, _LARGEST_TARGET, _GUESSES = 0.1, 20.0, 6
# Seconds that an exact chance is worth, or rows of the quicker bound; beyond it is told by a price
# this much above the quick one, about as far as the bound of a run ever was.
_WORTH, _RUN_AT_MOST, _MANY_ROWS = 0.7, 1.07, 500
# Distances that decide: by them an estimate is compared to an exact profile.
_NEAR = 24
# Numbers of rows that are tried at once, around the last best, and how often.
_WIDE = np.array([0.03, 0.1, 0.25, 0.4, 0.6, 0.8, 1.0, 1.25, 1.7, 2.5, 5.0, 20.0])
_CLOSE = np.array([0.8, 0.87, 0.92, 0.95, 0.98, 1.0, 1.02, 1.05, 1.1, 1.2])
_ROUNDS = 4


@dataclass(frozen=True, eq=False)
class _CountedStates:
    """States that call `tick` whenever their costs at an order have been found."""

    states: States
    tick: Callable[[], None]

    def of(self, mechanism: ScoredMechanism, counts: Histograms) -> Ints:
        """As theirs."""
        return self.states.of(mechanism, counts)

    def worth(self, orders: Floats) -> Floats:
        """As theirs."""
        return self.states.worth(orders)

    def costs(self, order: float, states: Ints, progress: Shares = no_progress) -> Floats:
        """As theirs."""
        found = self.states.costs(order, states, progress)
        self.tick()
        return found


class TestedPricing:
    """Prices of tested budgets: ε is the target, and answers count by the chance that they pass.

    Without a target ε is the least that passes with a chance of 97.7%.
    """

    beam, whole, front_ranges, between = 3, 27, 8, True

    def __init__(self, sample: VoteSample, *, delta: float, bound: Bound) -> None:
        """Estimates look at 10,000 evenly spaced rows at most."""
        self._sample, self._delta, self._bound = sample, delta, bound
        self._first_guess = TargetPlan.of(_FIRST_TARGET, delta=delta)
        self._thinned = sample.thinned(_MOST_ROWS)
        self._scale = sample.queries / self._thinned.queries
        self._estimates: dict[Bound, Estimates] = {}
        self._above = 1.0 - _PRECISION
        """How far the last exact ε was from its estimate, as a factor."""

    def starts(self, goal: Goal) -> Sequence[Setting]:
        """What the public rule would take for these votes, with a test and without one."""
        found = [self._by_rule(goal, tested=tested) for tested in (True, False)]
        return [setting for setting in found if setting is not None]

    def _by_rule(self, goal: Goal, *, tested: bool) -> Setting | None:
        """The rule's settings at the target; for a number of answers at about the least of them."""
        ensemble = Ensembles.of(self._thinned)

        def chosen(epsilon: float, start: Setting | None = None) -> Chosen:
            plan = TargetPlan.of(epsilon, delta=self._delta)
            return choose(
                ensemble,
                plan,
                bound=self._settled(_ANY, 1, plan),
                available=self._sample.queries,
                tested=tested,
                start=start,
            )

        if goal.target_epsilon is not None:
            return chosen(goal.target_epsilon).setting
        if goal.answers is None:
            return None
        low, high = _LEAST_TARGET, _LARGEST_TARGET
        found = chosen(math.sqrt(low * high))
        for _ in range(_GUESSES):
            middle = math.sqrt(low * high)
            found = chosen(middle, found.setting)
            low, high = (low, middle) if found.forecast.mean >= goal.answers else (middle, high)
        return chosen(high).setting

    def agrees(self, setting: Setting, goal: Goal, queries: int) -> bool:
        """Whether enough of its answers would equal the plurality, without a price."""
        rows: int | None = max(round(queries / self._scale), 1)
        if goal.answers is not None:
            rows = self._thinned.prefix_for(setting, goal.answers / LIKELY / self._scale)
        return rows is None or self._thinned.yields(setting, rows).agreement >= goal.min_agreement

    def estimate(self, setting: Setting, goal: Goal, near: Costed | None) -> Costed | None:
        """Rows for a target, or the least target for rows."""
        if goal.target_epsilon is None or goal.answers is not None:
            rows = self._rows_for(setting, goal)
            guess = None if near is None else near.target
            bound = self._settled(setting, rows, guess or self._first_guess)
            plan = self._least_target(bound, setting, rows)
            if self._settled(setting, rows, plan) is not bound:
                bound = self._settled(setting, rows, plan)
                plan = self._least_target(bound, setting, rows)
            return self._outcome(setting, rows, plan, LIKELY, bound=bound)
        plan = TargetPlan.of(goal.target_epsilon, delta=self._delta)
        known: dict[Bound, tuple[Prices, Floats]] = {}

        def chances(rows: Ints) -> Floats:
            # More rows may be too many for a bound that takes long, fewer never are.
            bounds = [self._settled(setting, int(rows.max()), plan)] * rows.size
            if bounds[0] is not self._settled(setting, int(rows.min()), plan):
                bounds = [self._settled(setting, number, plan) for number in rows.tolist()]
            found = np.zeros(rows.size)
            for bound in set(bounds):
                if bound not in known:
                    estimates = self._estimates_by(bound)
                    orders = estimates.orders(plan, settled=True)
                    known[bound] = estimates.prices(setting, orders), orders
                prices, orders = known[bound]
                mine = np.array([each is bound for each in bounds])
                found[mine] = prices.chances(plan, orders, rows[mine])
            return found

        start = self._sample.queries if near is None else near.queries
        rows, passing = self._best_rows(setting, chances, start=start, most=self._sample.queries)
        bound = self._settled(setting, rows, plan)
        return self._outcome(setting, rows, plan, passing, bound=bound)

    def polished(self, rough: Costed, goal: Goal, *, strides: tuple[int, ...] = (1,)) -> Costed:
        """The same: orders follow from the target."""
        del goal, strides
        return rough

    def exact(
        self, rough: Costed, goal: Goal, tick: Callable[[], None] = lambda: None
    ) -> Costed | None:
        """The same by the bound, orders and distances of a run."""
        setting, plan = rough.setting, rough.target
        fixed = goal.target_epsilon is None or goal.answers is not None
        if plan is None or (fixed and self._hopeless(rough, goal)):
            return None
        most = rough.queries if rough.slow else self._sample.queries
        mechanism = self._sample.mechanism(setting)
        seconds = seconds_for(rough.bound, mechanism, rows=rough.queries, orders=plan.orders)
        many = rough.bound is Bound.TWO_TAIL and rough.queries > _MANY_ROWS
        if seconds > _WORTH or many:
            return self._nearly(rough, plan, goal, fixed=fixed)
        highest = float(plan.at(plan.epsilon / 2.0).orders[-1])
        states = states_for(rough.bound, mechanism, highest_order=highest)
        profile = VoteProfile(_CountedStates(states, tick), in_order=True)
        profile.add(mechanism, self._sample.counts[:most])
        chances = PassProbability(mechanism, profile, rough.queries, rough.queries)

        def always(rows: int) -> float:
            return self._always(setting, rows)

        if fixed:
            rows = rough.queries
            if rough.slow:
                plan = self._corrected(rough, plan, profile)
            least = chances.least_target(plan, LIKELY, always=round_up(always(rows)))
            if rough.slow:
                self._above = least / rough.epsilon
            plan = TargetPlan.of(least, delta=self._delta)
            found = self._outcome(setting, rows, plan, LIKELY, bound=rough.bound, exact=True)
            return replace(found, data_independent=always(rows))
        rows, chance = self._best_rows(
            setting,
            lambda rows: np.array([chances.of(plan, rows=number) for number in rows.tolist()]),
            start=rough.queries,
            most=most,
        )
        found = self._outcome(setting, rows, plan, chance, bound=rough.bound, exact=True)
        found = replace(found, data_independent=always(rows))
        # As many rows may be within the target whatever the votes.
        room = plan.epsilon - conversion_cost(plan.orders, delta=self._delta)
        worst = mechanism.worst_rdp(queries=1, answers=1, orders=plan.orders)
        free = min(int(np.max(np.maximum(room, 0.0) / worst)), self._sample.queries)
        if free >= 1 and always(free) <= plan.epsilon:
            sure = self._outcome(setting, free, plan, 1.0, bound=rough.bound, exact=True)
            if sure.expected.answers > found.expected.answers:
                found = replace(sure, data_independent=always(free))
        return found

    def _always(self, setting: Setting, rows: int) -> float:
        """ε for all votes of so many rows."""
        spent = [Spending(self._sample.mechanism(setting), rows, rows)]
        return data_independent_cost(spent, delta=self._delta, plan=None).epsilon

    def _nearly(self, rough: Costed, plan: TargetPlan, goal: Goal, *, fixed: bool) -> Costed | None:
        """Where the bound itself takes long: a quick price above it, as a rule."""
        setting, estimates = rough.setting, self._estimates_by(rough.bound)
        if fixed:
            rows = rough.queries
            plan = self._least_target(rough.bound, setting, rows, factor=_RUN_AT_MOST)
            plan = TargetPlan.of(round_up(plan.epsilon), delta=self._delta)
            found = self._outcome(setting, rows, plan, LIKELY, bound=rough.bound, exact=True)
            found = replace(found, data_independent=self._always(setting, rows), about=True)
            return found if found.meets(goal) or goal.target_epsilon is None else None
        orders = estimates.orders(plan, settled=True)
        prices = estimates.prices(setting, orders)
        rows, chance = self._best_rows(
            setting,
            lambda rows: prices.chances(plan, orders, rows, factor=_RUN_AT_MOST),
            start=rough.queries,
            most=self._sample.queries,
        )
        found = self._outcome(setting, rows, plan, chance, bound=rough.bound, exact=True)
        return replace(found, data_independent=self._always(setting, rows), about=True)

    def _corrected(self, rough: Costed, plan: TargetPlan, profile: VoteProfile) -> TargetPlan:
        """The least target if all orders are as far from the estimate as one of them.

        Most orders of a run at it are then those of the end of the search, and none is wasted.
        """
        orders = coin_orders(rough.bound, self._sample.mechanism(rough.setting), plan.orders)
        rows, order = rough.queries, float(orders[orders.size // 2])
        estimates = self._estimates_by(rough.bound)
        guess = estimates.prices(rough.setting, plan.orders).profile(order, rows)
        exact = profile.at(order, first=rows)
        near = min(guess.size, _NEAR)
        factor = float(exact[:near].sum() / max(guess[:near].sum(), 1e-300))
        return self._least_target(rough.bound, rough.setting, rows, factor=factor)

    def _hopeless(self, rough: Costed, goal: Goal) -> bool:
        """Whether a dear estimate misses the goal once it is corrected as the last one was."""
        if goal.target_epsilon is None or not rough.slow:
            return False
        return rough.epsilon * self._above > goal.target_epsilon * (1.0 + _PRECISION)

    def _settled(self, setting: Setting, rows: int, plan: TargetPlan) -> Bound:
        """How a run over so many rows bounds what votes cost."""
        mechanism = self._sample.mechanism(setting)
        return settled_bound(self._bound, mechanism, rows=rows, orders=plan.orders)

    def labels_bound(self, outcome: Costed) -> Costed:
        """The outcome with the ε for all votes of its labels alone."""
        return replace(outcome, labels=outcome.data_independent)

    def _rows_for(self, setting: Setting, goal: Goal) -> int:
        rows = self._sample.queries
        if goal.answers is not None:
            # Answers count by the chance that they pass.
            rows = self._sample.prefix_for(setting, goal.answers / LIKELY) or rows
        return rows

    def _best_rows(
        self, setting: Setting, chances: Callable[[Ints], Floats], *, start: int, most: int
    ) -> tuple[int, float]:
        """The rows with the most expected answers, by the chance that they pass; and it."""
        answers = np.cumsum(self._sample.answer_chance(setting))
        rows, factors = min(max(start, 1), most), _WIDE
        best, passing = 1, 0.0
        for _ in range(_ROUNDS):
            tried = each_once(np.clip(np.ceil(rows * factors), 1, most).astype(np.int64))
            found = chances(tried)
            place = int(np.argmax(answers[tried - 1] * found))
            last, best, passing = best, int(tried[place]), float(found[place])
            if factors is _CLOSE and best == last:
                break
            if best not in (tried[0], tried[-1]) or best in (1, most):
                factors = _CLOSE
            rows = best
        return best, passing

    def _least_target(
        self, bound: Bound, setting: Setting, rows: int, *, factor: float = 1.0
    ) -> TargetPlan:
        """The least target that so many rows are likely to pass, nearly."""
        estimates = self._estimates_by(bound)
        prices = estimates.prices(setting, estimates.ladder)
        costs = factor * prices.cost(estimates.wide, rows)
        costs = costs + conversion_cost(estimates.wide, delta=self._delta)
        guess = TargetPlan.of(max(_ABOVE_COST * float(costs.min()), 1e-3), delta=self._delta)
        orders = estimates.orders(guess, settled=False)

        def passes(epsilon: float) -> bool:
            return prices.chance(guess.at(epsilon), orders, rows, factor=factor) >= LIKELY

        low = high = guess.epsilon
        while not passes(high):
            low, high = high, 1.3 * high
        while low > 1e-3 and passes(low):
            low, high = low / 1.3, low
        while high - low > _PRECISION * low:
            middle = (low + high) / 2.0
            low, high = (low, middle) if passes(middle) else (middle, high)
        return guess.at(high)

    def _estimates_by(self, bound: Bound) -> Estimates:
        if bound not in self._estimates:
            kind = LatticeEstimates if bound is Bound.TWO_TAIL else PairEstimates
            self._estimates[bound] = kind(self._thinned, scale=self._scale)
        return self._estimates[bound]

    def _outcome(
        self,
        setting: Setting,
        rows: int,
        plan: TargetPlan,
        chance: float,
        *,
        bound: Bound,
        exact: bool = False,
    ) -> Costed:
        return Costed(
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
            bound=bound,
        )
