"""A setting priced for a sanitized release: rows, λ, β and σ_SS that serve a goal."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from functools import cached_property

import numpy as np

from pate_cli.accounting.conversion import conversion_cost
from pate_cli.accounting.cost_table import Price, ScoreTable, Tally
from pate_cli.accounting.score_grid import QUICK
from pate_cli.accounting.sensitivity import (
    distances_for,
    local_sensitivity_blocks,
    sparse_distances,
)
from pate_cli.core.arrays import Floats, Ints
from pate_cli.core.dataclass import dataclass
from pate_cli.core.words import ReleaseKind
from pate_cli.disclosure.plan import ReleasePlan, failure_delta
from pate_cli.disclosure.worst_case import Spending, data_independent_cost
from pate_cli.mechanisms.confident import ConfidentTable
from pate_cli.planning.sample import VoteSample, Yield
from pate_cli.planning.sanitized import SPREADS, BestRelease, best_release, candidate_betas
from pate_cli.planning.setting import Setting
from pate_cli.tuning.goal import Goal
from pate_cli.tuning.price import Costed, Filled, fill_budget

# Orders are tried on a ladder of λ − 1.
_RUNG = 1.12
_LEAST_ORDER, _MOST_ORDER = 1.05, 2000.0
# What the best λ − 1 is of 2 log(1/δ)/ε, about; the highest order to begin with.
_ORDER_SHARE, _MOST_FIRST_ORDER = 0.67, 200.0
_MOST_ROWS = 10_000
_DISTANCES, _COARSE_DISTANCES = 24, 11
# Prefixes whose numbers of rows are within this factor are taken to be alike.
_ALIKE = 1.2
# Blocks of fewer rows are looked at whole.
_SPARSE_BLOCK = 24
# Prices and relative slack of a number of rows that fills a budget.
_COARSE_ROUNDS, _COARSE_SLACK = 6, 0.005
_EXACT_ROUNDS, _EXACT_SLACK = 8, 0.0005
_ALL_VOTES_ROUNDS = 4


@dataclass(frozen=True)
class _Release:
    """An upper release: at which δ, and of an ensemble of how many teachers."""

    delta: float
    teachers: int

    def best(self, price: Price, order: float) -> BestRelease | None:
        """The best β and σ_SS."""
        return best_release(price, order=order, delta=self.delta)

    def plan(self, best: BestRelease) -> ReleasePlan:
        """The same, rounded as it is printed."""
        return ReleasePlan(
            kind=ReleaseKind.UPPER,
            delta=self.delta,
            order=_three_digits(best.order),
            beta=_three_digits(best.beta),
            sigma=_three_digits(best.sigma),
        )

    def conversion(self, order: float) -> float:
        """What turning RDP into ε costs, nats."""
        delta = self.delta - failure_delta(self.delta)
        return float(conversion_cost(np.array([order]), delta=delta)[0])

    def distances(self, betas: Floats, most: int) -> Ints:
        """About so many distances, enough to choose among these β."""
        return sparse_distances(float(betas.min()), teachers=self.teachers, most=most)


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
            grid=self.lattice,
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


class _CoarsePrices:
    """Prices of prefixes of a sample at one setting and order, on the coarse lattice."""

    def __init__(
        self, release: _Release, table: ConfidentTable, rows: _Rows, *, scale: float
    ) -> None:
        self._release, self._table, self._rows, self._scale = release, table, rows, scale
        self._few = release.distances(candidate_betas(table.order), _COARSE_DISTANCES)
        self._conversion = release.conversion(table.order)
        self._priced: dict[int, Price] = {}
        self.best: dict[int, BestRelease] = {}

    def fill(self, queries: int) -> Filled:
        """The least that so many rows can publish; infinite where no release has a finite cost."""
        near = min(self._priced, key=lambda known: abs(math.log(known / queries)), default=0)
        if not near / _ALIKE <= queries <= near * _ALIKE:
            near = queries
            price = self._table.price(self._rows.tally(queries), self._few)
            self._priced[queries] = price.scaled(self._scale)
        price = self._priced[near].scaled(queries / near)
        best = self._release.best(price, self._table.order)
        if best is None:
            return Filled(queries, math.inf, self._conversion, math.inf)
        self.best[queries] = best
        return Filled(queries, best.value, self._conversion, price.rdp)


class _ExactPrices:
    """Prices of prefixes at one setting and a fixed plan, on the lattice a run uses."""

    def __init__(
        self, sample: VoteSample, setting: Setting, release: _Release, *, order: float, queries: int
    ) -> None:
        """β and σ_SS are those that serve the first so many rows best."""
        self._sample, self._setting = sample, setting
        self._mechanism = sample.confident(setting)
        self._table = self._mechanism.cost_table(order)
        self._cells = self._mechanism.cells(sample.score(setting), self._table.grid)
        few = release.distances(candidate_betas(order), _DISTANCES)
        best = release.best(self._table.price(self._tally(queries), few), order)
        self.plan = None if best is None else release.plan(best)
        self._release = release

    def _tally(self, queries: int) -> Tally:
        return Tally.of(self._cells[:queries])

    def quick(self, plan: ReleasePlan, queries: int) -> Filled:
        """Mean plus two standard deviations of what is published, at some distances only."""
        few = self._release.distances(np.array([plan.beta]), _DISTANCES)
        price = self._table.price(self._tally(queries), few)
        smooth = float(price.discounted(plan.beta).max())
        epsilon = plan.value(price.rdp, smooth, SPREADS)
        return Filled(queries, epsilon, plan.overhead, epsilon - plan.overhead)

    def for_all_votes(self, plan: ReleasePlan, queries: int) -> Filled:
        """ε for all votes of the labels and the release."""
        spent = [Spending(self._mechanism, queries, queries)]
        epsilon = data_independent_cost(spent, delta=plan.delta, plan=plan).epsilon
        return Filled(queries, epsilon, 0.0, 0.0)

    def outcome(self, plan: ReleasePlan, queries: int) -> Costed:
        """What a run would say, at all distances and by the very routines of a run."""
        return _as_run(self._sample, self._setting, self._table, self._tally(queries), plan)

    def filling(self, plan: ReleasePlan, target: float, *, start: int) -> list[Costed]:
        """The most rows, nearly, whose sanitized ε meets a target; and by ε for all votes."""
        most = self._sample.queries
        filled = fill_budget(
            lambda queries: self.quick(plan, queries),
            target,
            most=most,
            start=start,
            rounds=_EXACT_ROUNDS,
            slack=_EXACT_SLACK,
        )
        rows = filled.queries
        found: list[Costed] = []
        while filled.epsilon <= target and rows > 0 and not found:
            outcome = self.outcome(plan, rows)
            if outcome.epsilon <= target:
                found.append(outcome)
            else:  # the few distances missed the largest discounted sensitivity by a trifle
                rows -= max(1, rows // 1000)
        # Where ε for all votes is the smaller one, it may allow more rows.
        if rows < most and all(outcome.data_independent <= target for outcome in found):
            more = fill_budget(
                lambda queries: self.for_all_votes(plan, queries),
                target,
                most=most,
                start=rows + 1,
                rounds=_ALL_VOTES_ROUNDS,
                slack=_COARSE_SLACK,
            )
            if more.epsilon <= target:
                found.append(self.outcome(plan, more.queries))
        return found


def priced_release(
    sample: VoteSample, setting: Setting, plan: ReleasePlan, *, queries: int
) -> Costed:
    """What a run over the first so many rows would say of a setting and a release."""
    mechanism = sample.confident(setting)
    table = mechanism.cost_table(plan.order)
    cells = mechanism.cells(sample.score(setting), table.grid)
    return _as_run(sample, setting, table, Tally.of(cells[:queries]), plan)


def _as_run(
    sample: VoteSample, setting: Setting, table: ConfidentTable, tally: Tally, plan: ReleasePlan
) -> Costed:
    queries = int(tally.weights.sum())
    price = table.price(tally, np.arange(distances_for(plan.beta, teachers=sample.teachers)))
    moments, expected = plan.moments(price), sample.yields(setting, queries)
    spent = [Spending(sample.mechanism(setting), queries, queries)]
    public = data_independent_cost(spent, delta=plan.delta, plan=plan).epsilon
    rough = _rough(setting, queries, plan, moments, expected)
    return replace(rough, data_independent=public, exact=True)


class SanitizedPricing:
    """Prices of sanitized releases, with λ, β and σ_SS chosen for each setting."""

    beam, whole, front_ranges, between = 3, 27, 8, False

    def __init__(self, sample: VoteSample, *, delta: float) -> None:
        """Estimates look at 10,000 evenly spaced rows at most."""
        self._sample = sample
        self._release = _Release(delta, sample.teachers)
        self._thinned = sample.thinned(_MOST_ROWS)
        self._scale = sample.queries / self._thinned.queries
        self._rows: dict[tuple[float, float], _Rows] = {}

    def estimate(self, setting: Setting, goal: Goal, near: Costed | None) -> Costed | None:
        """The best release on the coarse lattice: at the order of a neighbour or a likely one."""
        if near is not None and near.plan is not None:
            return self._at(setting, goal, _rung(near.plan.order), near.queries)
        room = 2.0 * math.log(1.0 / self._release.delta)
        if goal.answers is None and goal.target_epsilon is not None:
            order = 1.0 + _ORDER_SHARE * room / goal.target_epsilon
        else:
            # As the public rule begins: near the best order of as many answers in Gaussian DP.
            rows = self._sample.queries
            if goal.answers is not None:
                rows = self._sample.prefix_for(setting, goal.answers) or rows
            answers = max(round(self._sample.yields(setting, rows).answers), 1)
            mu = self._sample.mechanism(setting).gaussian_mu(queries=rows, answers=answers)
            order = min(1.0 + math.sqrt(room) / mu, _MOST_FIRST_ORDER)
        return self._at(setting, goal, _rung(order), self._sample.queries)

    def starts(self, goal: Goal) -> Sequence[Setting]:
        """None: there is no such rule."""
        del goal
        return ()

    def agrees(self, setting: Setting, goal: Goal, queries: int) -> bool:
        """Whether enough of its answers would equal the plurality, without a price."""
        rows: int | None = max(round(queries / self._scale), 1)
        if goal.answers is not None:
            rows = self._thinned.prefix_for(setting, goal.answers / self._scale)
        return rows is None or self._thinned.yields(setting, rows).agreement >= goal.min_agreement

    def polished(self, rough: Costed, goal: Goal, *, strides: tuple[int, ...] = (1,)) -> Costed:
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

    def exact(
        self, rough: Costed, goal: Goal, tick: Callable[[], None] = lambda: None
    ) -> Costed | None:
        """The same order on the lattice a run uses, at parameters rounded as they are printed.

        With a target and no number of answers the rows become the most that the exact price
        allows, nearly.
        """
        del tick
        setting, start = rough.setting, rough.queries
        if goal.answers is not None:
            start = self._sample.prefix_for(setting, goal.answers) or 0
        if rough.plan is None or start == 0:
            return None
        prices = _ExactPrices(
            self._sample, setting, self._release, order=rough.plan.order, queries=start
        )
        plan = prices.plan
        if plan is None:
            return None
        if goal.answers is not None or goal.target_epsilon is None:
            return prices.outcome(plan, start)
        # What is printed is rounded up to the fourth decimal.
        target = math.floor(goal.target_epsilon * 1e4 + 1e-6) / 1e4 - 1e-9
        found = prices.filling(plan, target, start=start)
        return max(found, key=lambda outcome: outcome.rank(goal), default=None)

    def labels_bound(self, outcome: Costed) -> Costed:
        """The outcome with the ε for all votes of its labels alone."""
        mechanism = self._sample.mechanism(outcome.setting)
        spent = [Spending(mechanism, outcome.queries, outcome.queries)]
        cost = data_independent_cost(spent, delta=self._release.delta, plan=None)
        return replace(outcome, labels=cost.epsilon)

    def _at(self, setting: Setting, goal: Goal, rung: int, queries: int) -> Costed | None:
        """The best β and σ_SS at a rung for as many rows as the goal asks for, from a guess."""
        order = _three_digits(1.0 + _RUNG**rung)
        if not _LEAST_ORDER <= order <= _MOST_ORDER or candidate_betas(order).size == 0:
            return None
        thinned, scale = self._thinned, self._scale
        rows = self._rows_at(setting, order)
        table = _quick_table(thinned.confident(setting).cost_table(order, QUICK), rows.argmax)
        prices = _CoarsePrices(self._release, table, rows, scale=scale)
        asked = thinned.queries
        if goal.answers is not None:
            asked = thinned.prefix_for(setting, goal.answers / scale) or asked
        elif goal.target_epsilon is not None:
            asked = fill_budget(
                prices.fill,
                goal.target_epsilon,
                most=asked,
                start=max(round(queries / scale), 1),
                rounds=_COARSE_ROUNDS,
                slack=_COARSE_SLACK,
            ).queries
        prices.fill(asked)
        best = prices.best.get(asked)
        if best is None:
            return None
        return _rough(
            setting,
            max(round(asked * scale), 1),
            self._release.plan(best),
            (best.mean, best.sd),
            thinned.yields(setting, asked).scaled(scale),
        )

    def _rows_at(self, setting: Setting, order: float) -> _Rows:
        key = (setting.sigma2, order)
        known = self._rows.get(key)
        if known is None:
            mechanism = self._thinned.confident(setting)
            table = mechanism.cost_table(order, QUICK)
            cells = mechanism.cells(self._thinned.score(setting), table.grid)
            flat, place = np.unique(
                cells[:, 0] * table.grid.size + cells[:, 1], return_inverse=True
            )
            distinct = np.stack(np.divmod(flat, table.grid.size), axis=1)
            known = self._rows[key] = _Rows(table.argmax, distinct, place)
        return known


def _rough(
    setting: Setting,
    queries: int,
    plan: ReleasePlan,
    moments: tuple[float, float],
    expected: Yield,
) -> Costed:
    return Costed(
        setting=setting,
        queries=queries,
        max_answers=None,
        plan=plan,
        mean=moments[0],
        sd=moments[1],
        data_independent=math.inf,
        labels=math.inf,
        expected=expected,
        exact=False,
    )


def _rung(order: float) -> int:
    """The rung nearest to an order."""
    return round(math.log(max(order, _LEAST_ORDER) - 1.0) / math.log(_RUNG))


def _three_digits(value: float) -> float:
    return float(f"{value:.3g}")
