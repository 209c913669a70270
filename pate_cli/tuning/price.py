"""A setting priced: which release and how many rows serve a goal, coarsely or as a run would."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from pate_cli.accounting.conversion import conversion_cost, round_up
from pate_cli.accounting.cost_table import Price, ScoreTable, Tally
from pate_cli.accounting.score_grid import COARSE
from pate_cli.accounting.sensitivity import (
    distances_for,
    local_sensitivity_blocks,
    sparse_distances,
)
from pate_cli.arrays import Floats, Ints
from pate_cli.mechanisms.confident import ConfidentTable
from pate_cli.release.best import SPREADS, BestRelease, best_release, candidate_betas
from pate_cli.release.plan import ReleasePlan, failure_delta
from pate_cli.release.worst_case import Spending, data_independent_cost
from pate_cli.tuning.goal import Goal
from pate_cli.tuning.sample import VoteSample, Yield
from pate_cli.tuning.settings import Setting
from pate_cli.words import ReleaseKind

__all__ = ["Outcome", "Pricing", "SanitizedPricing"]


@dataclass(frozen=True)
class Outcome:
    """One way to run `pate aggregate`, priced.

    Attributes:
        setting: T, σ1, σ2.
        queries: k1, the rows that are asked.
        max_answers: k2, the cap on answers; None for none.
        plan: how ε is released; None for `none`.
        mean, sd: of the sanitized ε over the release's noise, nats; None without a release.
        data_independent: ε for all votes of everything that is released, nats; infinite where it
            was not computed.
        labels: ε for all votes of the labels alone, nats, likewise.
        expected: what labels it is expected to give.
        exact: whether the numbers are those a run would use (False: a coarser lattice's).
    """

    setting: Setting
    queries: int
    max_answers: int | None
    plan: ReleasePlan | None
    mean: float | None
    sd: float | None
    data_independent: float
    labels: float
    expected: Yield
    exact: bool = True

    @property
    def release(self) -> ReleaseKind:
        """What is published."""
        return ReleaseKind.NONE if self.plan is None else self.plan.kind

    @property
    def sanitized(self) -> float | None:
        """Mean plus two standard deviations of the sanitized ε, rounded up as a report does."""
        if self.mean is None or self.sd is None:
            return None
        return _round_up(max(self.mean + SPREADS * self.sd, 0.0))

    @property
    def epsilon(self) -> float:
        """What would be published: the smaller of the sanitized and the data-independent ε."""
        public = _round_up(self.data_independent)
        return public if self.sanitized is None else min(self.sanitized, public)

    @property
    def always(self) -> bool:
        """Whether ε holds for every draw, not just for 97.7% of them."""
        return self.epsilon == _round_up(self.data_independent)

    def meets(self, goal: Goal) -> bool:
        """Whether every constraint of a goal is met."""
        return goal.missed_by(self.epsilon, self.expected) == 0.0

    def rank(self, goal: Goal) -> tuple[float, float, float]:
        """How well it serves a goal; larger is better."""
        return goal.rank(self.epsilon, self.expected)


class Pricing(Protocol):
    """How settings are priced for one kind of ε.

    Attributes:
        beam: how many of the best settings are looked around before a search ends.
        whole: grids of up to so many settings are priced whole.
    """

    beam: int
    whole: int

    def agrees(self, setting: Setting, goal: Goal, queries: int) -> bool:
        """Whether enough of its answers would equal the plurality, without a price."""
        ...

    def estimate(self, setting: Setting, goal: Goal, near: Outcome | None) -> Outcome | None:
        """A quick price for a choice; None where there is none.

        Args:
            setting: what to price.
            goal: decides how many rows are asked.
            near: the outcome of another setting to start from, or None.
        """
        ...

    def polished(self, rough: Outcome, goal: Goal, *, strides: tuple[int, ...] = (1,)) -> Outcome:
        """A better estimate of the same setting, for a start in these strides."""
        ...

    def exact(self, rough: Outcome, goal: Goal) -> Outcome | None:
        """What a run would say of such an outcome; None where it misses the goal."""
        ...

    def labels_bound(self, outcome: Outcome) -> Outcome:
        """The outcome with the ε for all votes of its labels alone."""
        ...


# Orders are tried on a ladder of λ − 1.
_RUNG = 1.12
_LEAST_ORDER, _MOST_ORDER = 1.05, 2000.0
# What the best λ − 1 is of 2 log(1/δ)/ε, about.
_ORDER_SHARE = 0.67
_USUAL_EPSILON = 2.0
_MOST_ROWS = 10_000
_DISTANCES, _COARSE_DISTANCES = 60, 11
_GROWTH_STEPS = 6
# Prefixes whose numbers of rows are within this factor are taken to be alike.
_ALIKE = 1.2
# Blocks of fewer rows are looked at whole.
_SPARSE_BLOCK = 24
# Rounds and relative slack of a number of rows that fills a budget.
_COARSE_ROUNDS, _COARSE_SLACK = 6, 0.005
_EXACT_ROUNDS, _EXACT_SLACK = 8, 0.0005
_ALL_VOTES_ROUNDS = 4


@dataclass(frozen=True, eq=False)
class _QuickTable(ConfidentTable):
    """Sensitivities from the middle rows of large blocks alone: for a choice, not for a bound."""

    @cached_property
    def blocks(self) -> Floats:
        """About the largest LS_0 in every block of the lattice, nats."""
        size = self.rows_per_block
        if size < _SPARSE_BLOCK:
            return super().blocks
        middles = np.arange(size // 2, self.lattice_rows + size // 2, size)
        firsts = np.minimum(middles - 1, self.lattice_rows - 3)
        parts = [self._three_rows(first) for first in firsts.tolist()]
        return np.concatenate(parts)

    def _three_rows(self, first: int) -> Floats:
        return local_sensitivity_blocks(
            lambda low, high: self.rows(first + low, first + high),
            rows=3,
            grid=self.grid,
            rows_per_block=3,
        )


def _quick_table(table: ConfidentTable, argmax: ScoreTable) -> _QuickTable:
    """The same costs with an argmax that is tabulated already."""
    every = {each.name: getattr(table, each.name) for each in fields(table)}
    return _QuickTable(**every | {"argmax": argmax})


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows of a sample on the lattice of one σ2 and one order.

    Attributes:
        argmax: cost of the argmax.
        cells: distinct occupied cells, [occupied, 2].
        place: which of them each row is in, [queries].
    """

    argmax: ScoreTable
    cells: Ints
    place: Ints

    def tally(self, queries: int) -> Tally:
        """The first rows."""
        weights = np.bincount(self.place[:queries], minlength=len(self.cells))
        used = weights > 0
        return Tally(self.cells[used], weights[used])


class SanitizedPricing:
    """Prices of sanitized releases, with λ, β and σ_SS chosen for each setting."""

    beam, whole = 3, 27

    def __init__(self, sample: VoteSample, *, release: ReleaseKind, delta: float) -> None:
        """Estimates look at 10,000 evenly spaced rows at most."""
        self._sample, self._release, self._delta = sample, release, delta
        self._thinned = sample.thinned(_MOST_ROWS)
        self._scale = sample.queries / self._thinned.queries
        self._rows: dict[tuple[float, float], _Rows] = {}

    def estimate(self, setting: Setting, goal: Goal, near: Outcome | None) -> Outcome | None:
        """The best release on the coarse lattice: at the order of a neighbour or a usual one."""
        if near is not None and near.plan is not None:
            return self._at(setting, goal, _rung(near.plan.order), near.queries)
        epsilon = goal.target_epsilon or _USUAL_EPSILON
        order = 1.0 + _ORDER_SHARE * 2.0 * math.log(1.0 / self._delta) / epsilon
        return self._at(setting, goal, _rung(order), self._sample.queries)

    def agrees(self, setting: Setting, goal: Goal, queries: int) -> bool:
        """Whether enough of its answers would equal the plurality, without a price."""
        rows: int | None = max(round(queries / self._scale), 1)
        if goal.answers is not None:
            rows = self._thinned.prefix_for(setting, goal.answers / self._scale)
        return rows is None or self._thinned.yields(setting, rows).agreement >= goal.min_agreement

    def polished(self, rough: Outcome, goal: Goal, *, strides: tuple[int, ...] = (1,)) -> Outcome:
        """The same setting along the ladder of orders while the price gets better."""
        best = rough
        for stride in strides:
            for step in (stride, -stride):
                while best.plan is not None:
                    rung = _rung(best.plan.order) + step
                    there = self._at(best.setting, goal, rung, best.queries)
                    if there is None or there.rank(goal) <= best.rank(goal):
                        break
                    best = there
        return best

    def exact(self, rough: Outcome, goal: Goal) -> Outcome | None:
        """The same order on the lattice a run uses, at parameters rounded as they are printed.

        With a target and no number of answers the rows become the most that the exact price
        allows, nearly.
        """
        if rough.plan is None:
            return None
        sample, setting, order = self._sample, rough.setting, rough.plan.order
        start: int | None = rough.queries
        if goal.answers is not None:
            start = sample.prefix_for(setting, goal.answers)
        if start is None:
            return None
        mechanism = sample.mechanism(setting)
        table = mechanism.cost_table(order)
        cells = mechanism.cells(sample.score(setting), table)
        few = self._few_distances(candidate_betas(order), _DISTANCES)
        price = table.price(Tally.of(cells[:start]), few)
        best = best_release(self._release, price, order=order, delta=self._delta)
        if best is None:
            return None
        plan = self._plan(best)
        farthest = distances_for(plan.beta, teachers=sample.teachers)
        few = self._few_distances(np.array([plan.beta]), _DISTANCES)

        def quick(rows: int) -> _Filled:
            price = table.price(Tally.of(cells[:rows]), few)
            smooth = float(price.discounted(plan.beta).max())
            epsilon = plan.value(price.rdp, smooth, SPREADS)
            return _Filled(rows, epsilon, plan.overhead, epsilon - plan.overhead)

        def priced(rows: int) -> Outcome:
            # The very routines of a run, at all distances.
            price = table.price(Tally.of(cells[:rows]), np.arange(farthest))
            expected = sample.yields(setting, rows)
            return self._outcome(setting, rows, plan, plan.moments(price), expected, exact=True)

        def by_all_votes(rows: int) -> _Filled:
            spent = [Spending(mechanism, rows, rows)]
            epsilon = data_independent_cost(spent, delta=self._delta, plan=plan).epsilon
            return _Filled(rows, epsilon, 0.0, 0.0)

        if not goal.fills_budget:
            return priced(start)
        # What is printed is rounded up to the fourth decimal.
        target = math.floor((goal.target_epsilon or 0.0) * 1e4 + 1e-6) / 1e4 - 1e-9
        filled = _fill(
            quick,
            target,
            most=sample.queries,
            start=start,
            rounds=_EXACT_ROUNDS,
            slack=_EXACT_SLACK,
        )
        rows, found = filled.queries, []
        while filled.epsilon <= target and rows > 0:
            outcome = priced(rows)
            if outcome.epsilon <= target:
                found.append(outcome)
                break
            # The few distances missed the largest discounted sensitivity by a trifle.
            rows -= max(1, rows // 1000)
        # Where ε for all votes is the smaller one, it may allow more rows.
        if rows < sample.queries and all(outcome.data_independent <= target for outcome in found):
            more = _fill(
                by_all_votes,
                target,
                most=sample.queries,
                start=rows + 1,
                rounds=_ALL_VOTES_ROUNDS,
                slack=_COARSE_SLACK,
            )
            if more.epsilon <= target:
                found.append(priced(more.queries))
        return max(found, key=lambda outcome: outcome.rank(goal), default=None)

    def labels_bound(self, outcome: Outcome) -> Outcome:
        """The outcome with the ε for all votes of its labels alone."""
        spent = [self._spending(outcome)]
        cost = data_independent_cost(spent, delta=self._delta, plan=None)
        return replace(outcome, labels=cost.epsilon)

    def _spending(self, outcome: Outcome) -> Spending:
        mechanism = self._sample.mechanism(outcome.setting)
        return Spending(mechanism, outcome.queries, outcome.queries)

    def _at(self, setting: Setting, goal: Goal, rung: int, queries: int) -> Outcome | None:
        """The best β and σ_SS at a rung for as many rows as the goal asks for, from a guess."""
        order = _three_digits(1.0 + _RUNG**rung)
        if not _LEAST_ORDER <= order <= _MOST_ORDER:
            return None
        thinned, scale = self._thinned, self._scale
        betas = candidate_betas(order)
        if betas.size == 0:
            return None
        rows = self._rows_at(setting, order)
        table = _quick_table(thinned.mechanism(setting).cost_table(order, COARSE), rows.argmax)
        few = self._few_distances(betas, _COARSE_DISTANCES)
        conversion = self._conversion(order)
        priced: dict[int, Price] = {}
        found: dict[int, BestRelease] = {}

        def fill(queries: int) -> _Filled:
            nearest = min(priced, key=lambda known: abs(math.log(known / queries)), default=0)
            if not nearest / _ALIKE <= queries <= nearest * _ALIKE:
                nearest = queries
                priced[queries] = table.price(rows.tally(queries), few).scaled(scale)
            price = priced[nearest].scaled(queries / nearest)
            best = best_release(self._release, price, order=order, delta=self._delta)
            if best is None:
                return _Filled(queries, math.inf, conversion, math.inf)
            found[queries] = best
            return _Filled(queries, best.value, conversion, price.rdp)

        if goal.answers is not None:
            asked = thinned.prefix_for(setting, goal.answers / scale) or thinned.queries
            fill(asked)
        elif goal.target_epsilon is not None:
            asked = _fill(
                fill,
                goal.target_epsilon,
                most=thinned.queries,
                start=max(round(queries / scale), 1),
                rounds=_COARSE_ROUNDS,
                slack=_COARSE_SLACK,
            ).queries
        else:
            asked = thinned.queries
            fill(asked)
        if asked not in found:
            return None
        best = found[asked]
        expected, moments = thinned.yields(setting, asked).scaled(scale), (best.mean, best.sd)
        rows_asked = max(round(asked * scale), 1)
        return self._outcome(setting, rows_asked, self._plan(best), moments, expected, exact=False)

    def _rows_at(self, setting: Setting, order: float) -> _Rows:
        key = (setting.sigma2, order)
        known = self._rows.get(key)
        if known is None:
            mechanism = self._thinned.mechanism(setting)
            table = mechanism.cost_table(order, COARSE)
            cells = mechanism.cells(self._thinned.score(setting), table)
            flat, place = np.unique(
                cells[:, 0] * table.grid.size + cells[:, 1], return_inverse=True
            )
            distinct = np.stack(np.divmod(flat, table.grid.size), axis=1)
            known = self._rows[key] = _Rows(table.argmax, distinct, place)
        return known

    def _few_distances(self, betas: Floats, most: int) -> Ints:
        return sparse_distances(float(betas.min()), teachers=self._sample.teachers, most=most)

    def _conversion(self, order: float) -> float:
        delta = self._delta - failure_delta(self._release, self._delta)
        return float(conversion_cost(np.array([order]), delta=delta)[0])

    def _plan(self, best: BestRelease) -> ReleasePlan:
        return ReleasePlan(
            kind=self._release,
            delta=self._delta,
            order=_three_digits(best.order),
            beta=_three_digits(best.beta),
            sigma=_three_digits(best.sigma),
        )

    def _outcome(
        self,
        setting: Setting,
        queries: int,
        plan: ReleasePlan,
        moments: tuple[float, float],
        expected: Yield,
        *,
        exact: bool,
    ) -> Outcome:
        outcome = Outcome(
            setting=setting,
            queries=queries,
            max_answers=None,
            plan=plan,
            mean=moments[0],
            sd=moments[1],
            data_independent=math.inf,
            labels=math.inf,
            expected=expected,
            exact=exact,
        )
        if not exact:
            return outcome
        cost = data_independent_cost([self._spending(outcome)], delta=plan.delta, plan=plan)
        return replace(outcome, data_independent=cost.epsilon)


@dataclass(frozen=True)
class _Filled:
    """ε of so many rows: a constant, what grows with the rows, and the rest with their power 2/3.

    The last is what a draw costs whose noise is chosen for the rows.
    """

    queries: int
    epsilon: float
    constant: float
    linear: float

    def growth(self, target: float) -> float:
        """How many times the rows would cost about so much."""
        room, rest = target - self.constant, self.epsilon - self.constant - self.linear
        if room <= 0.0 or not math.isfinite(self.epsilon):
            return 0.5
        growth = 1.0
        for _ in range(_GROWTH_STEPS):
            growth *= (room / (self.linear * growth + rest * growth ** (2.0 / 3.0))) ** 1.2
        return growth


def _fill(
    price: Callable[[int], _Filled],
    target: float,
    *,
    most: int,
    start: int,
    rounds: int,
    slack: float,
) -> _Filled:
    """Nearly the most rows whose ε, which grows with them, stays at or below a target.

    Where even the fewest rows that were tried cost more, those.
    """
    low, high = 0, most + 1
    fits: _Filled | None = None
    rows = min(max(start, 1), most)
    for _ in range(rounds):
        found = price(rows)
        if found.epsilon <= target:
            low, fits = rows, found
        else:
            high = rows
        if high - low <= 1 or (fits is found and found.epsilon >= (1.0 - slack) * target):
            break
        guess = rows * found.growth(target * (1.0 - 0.3 * slack))
        rows = min(max(int(guess), low + 1), high - 1)
    return fits or found


def _rung(order: float) -> int:
    """The rung nearest to an order."""
    return round(math.log(max(order, _LEAST_ORDER) - 1.0) / math.log(_RUNG))


def _three_digits(value: float) -> float:
    return float(f"{value:.3g}")


def _round_up(epsilon: float) -> float:
    return round_up(epsilon) if math.isfinite(epsilon) else math.inf
