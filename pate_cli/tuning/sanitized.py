"""Second and third pass of a search for sanitized releases: first coarse, then as a run would."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from pate_cli.accounting.score_grid import COARSE, FINE, Resolution
from pate_cli.accounting.sensitivity import sensitivity_curve, smooth_sensitivity
from pate_cli.arrays import Floats
from pate_cli.mechanisms import Tally
from pate_cli.mechanisms.base import Surface, surface_blocks
from pate_cli.pricing.sensitivity import measure_sensitivity
from pate_cli.release.best import BestRelease, best_release, candidate_betas
from pate_cli.release.plan import ReleasePlan
from pate_cli.release.rule import distances_for
from pate_cli.release.worst_case import Spending, data_independent_cost
from pate_cli.tuning.electorate import Electorate
from pate_cli.tuning.goal import Goal
from pate_cli.tuning.grid import Setting
from pate_cli.tuning.outcome import Outcome
from pate_cli.tuning.shortlist import Candidate
from pate_cli.tuning.survey import SPREADS
from pate_cli.words import Analysis

__all__ = ["price_coarsely", "price_exactly", "with_label_bound"]


# Orders are tried on a ladder of λ − 1.
_RUNG = 1.12
_LEAST_ORDER, _MOST_ORDER = 1.05, 2000.0
_DISTANCES = 40
_ROUNDS = 3
_EXACT_ROUNDS = 6
_SLACK = 0.002


@dataclass(frozen=True, eq=False)
class _Priced:
    """A setting's rows on the accountant's lattice at one order, for any prefix."""

    electorate: Electorate
    setting: Setting
    goal: Goal
    order: float
    resolution: Resolution

    @cached_property
    def _surface(self) -> Surface:
        return self.electorate.mechanism(self.setting).surface(self.order, self.resolution)

    @cached_property
    def _blocks(self) -> Floats:
        return surface_blocks(self._surface)

    @cached_property
    def _cells(self) -> NDArray[np.int64]:
        one = self.electorate
        score = np.column_stack([one.plurality.astype(np.float64), one.scores(self.setting)])
        return one.mechanism(self.setting).cells(score, self._surface)

    def totals(self, queries: int, distances: NDArray[np.int64]) -> tuple[float, Floats]:
        """(Σ ρ, Σ LS_d) over the first rows, nats."""
        surface = self._surface
        tally = Tally.of(self._cells[:queries])
        curve = sensitivity_curve(
            self._blocks,
            cells=tally.cells,
            weights=tally.weights,
            grid=surface.grid,
            vote_block=surface.vote_block,
            distances=distances,
        )
        return float(surface.cost(tally.cells) @ tally.weights), curve

    def best(self, queries: int) -> BestRelease | None:
        """The best β and σ_SS for the first rows."""
        betas = candidate_betas(self.order)
        if betas.size == 0:
            return None
        teachers = self.electorate.teachers
        farthest = distances_for(float(betas.min()), teachers=teachers)
        if self.resolution is FINE:
            distances = np.arange(farthest)
        else:
            spread = np.geomspace(1.0, farthest + 1.0, _DISTANCES)
            distances = np.unique(spread.astype(np.int64)) - 1
        rdp, curve = self.totals(queries, distances)
        return best_release(
            self.goal.release,
            rdp=rdp,
            curve=curve,
            distances=distances,
            order=self.order,
            delta=self.goal.delta,
        )

    def published(self, plan: ReleasePlan, queries: int) -> tuple[float, float]:
        """(mean, sd) of what the plan publishes about the first rows, as a release computes it."""
        distances = np.arange(distances_for(plan.beta, teachers=self.electorate.teachers))
        rdp, curve = self.totals(queries, distances)
        ceiling = float(self._blocks.max()) * queries
        smooth = smooth_sensitivity(curve, ceiling=ceiling, beta=plan.beta)
        return rdp + smooth * plan.shift + plan.overhead, smooth * plan.sigma


def price_coarsely(electorate: Electorate, candidate: Candidate, goal: Goal) -> Outcome | None:
    """Choose λ, β, σ_SS and the number of rows on the coarse lattice."""
    ladder = _Ladder(electorate, candidate.setting, goal)
    rung, queries = ladder.nearest(candidate.order), min(candidate.queries, electorate.queries)
    if goal.answers is not None:
        wanted = electorate.prefix_for(candidate.setting, goal.answers)
        if wanted is None:
            return None
        queries = wanted
        if electorate.yields(candidate.setting, queries).agreement < goal.min_agreement:
            return None
    rung, best = ladder.descend(rung, queries)
    if goal.answers is None and goal.target_epsilon is not None:
        for _ in range(_ROUNDS):
            if best is None:
                return None
            reached = _rows_for(
                partial(ladder.value, rung),
                goal.target_epsilon,
                most=electorate.queries,
                start=queries,
                rounds=_ROUNDS,
            )
            if reached is None:
                return None
            moved, queries = abs(reached - queries) > 0.02 * queries, reached
            if not moved:
                break
            rung, best = ladder.descend(rung, queries)
        best = ladder.best(rung, queries)
    if best is None:
        return None
    plan = _rounded(best, goal)
    return _outcome(electorate, candidate.setting, queries, plan, (best.mean, best.sd), exact=False)


def price_exactly(electorate: Electorate, rough: Outcome, goal: Goal) -> Outcome | None:
    """The same on the lattice a run uses, at parameters rounded as they are printed.

    With a target and no number of answers the number of rows becomes the most that the exact price
    allows, within 0.2%. The result is priced once more by the routines of a run, from the
    histograms on.
    """
    if rough.plan is None:
        return None
    setting, queries = rough.setting, rough.queries
    order = rough.plan.order
    priced = _Priced(electorate, setting, goal, order, FINE)
    best = priced.best(queries)
    if best is None:
        return None
    plan = _rounded(best, goal)

    def value(rows: int) -> float:
        mean, sd = priced.published(plan, rows)
        return mean + SPREADS * sd

    if goal.answers is None and goal.target_epsilon is not None:
        # What is printed is rounded up to the fourth decimal.
        target = math.floor(goal.target_epsilon * 1e4 + 1e-6) / 1e4 - 1e-9
        reached = _rows_for(
            value, target, most=electorate.queries, start=queries, rounds=_EXACT_ROUNDS
        )
        if reached is None:
            return None
        queries = reached
    mechanism = electorate.mechanism(setting)
    found = measure_sensitivity(
        [(mechanism, electorate.counts[:queries])],
        mechanism,
        order=plan.order,
        beta=plan.beta,
        analysis=Analysis.TIGHT,
    )
    smooth = found.smooth(plan.beta)
    published = (found.rdp + smooth * plan.shift + plan.overhead, smooth * plan.sigma)
    return _outcome(electorate, setting, queries, plan, published, exact=True)


def _outcome(
    electorate: Electorate,
    setting: Setting,
    queries: int,
    plan: ReleasePlan,
    published: tuple[float, float],
    *,
    exact: bool,
) -> Outcome:
    everything = math.inf
    if exact:
        spent = [Spending(electorate.mechanism(setting), queries, queries)]
        everything = data_independent_cost(spent, delta=plan.delta, plan=plan).epsilon
    return Outcome(
        setting=setting,
        queries=queries,
        max_answers=None,
        plan=plan,
        mean=published[0],
        sd=published[1],
        data_independent=everything,
        labels=math.inf,
        expected=electorate.yields(setting, queries),
        exact=exact,
    )


def with_label_bound(electorate: Electorate, outcome: Outcome, *, delta: float) -> Outcome:
    """The outcome with the ε for all votes of its labels alone, if it lacks that."""
    if math.isfinite(outcome.labels):
        return outcome
    spent = [Spending(electorate.mechanism(outcome.setting), outcome.queries, outcome.queries)]
    cost = data_independent_cost(spent, delta=delta, plan=None)
    return replace(outcome, labels=cost.epsilon)


class _Ladder:
    """The best release at every rung of a ladder of orders, on the coarse lattice."""

    def __init__(self, electorate: Electorate, setting: Setting, goal: Goal) -> None:
        self._electorate, self._setting, self._goal = electorate, setting, goal
        self._priced: dict[int, _Priced] = {}
        self._known: dict[tuple[int, int], BestRelease | None] = {}

    def nearest(self, order: float) -> int:
        """The rung nearest to an order."""
        return round(math.log(max(order, _LEAST_ORDER) - 1.0) / math.log(_RUNG))

    def best(self, rung: int, queries: int) -> BestRelease | None:
        """The best β and σ_SS at a rung; None beyond the ladder's ends."""
        key = (rung, queries)
        if key not in self._known:
            order = _three_digits(1.0 + _RUNG**rung)
            if not _LEAST_ORDER <= order <= _MOST_ORDER:
                return None
            if rung not in self._priced:
                self._priced[rung] = _Priced(
                    self._electorate, self._setting, self._goal, order, COARSE
                )
            self._known[key] = self._priced[rung].best(queries)
        return self._known[key]

    def value(self, rung: int, queries: int) -> float:
        """What would be published."""
        found = self.best(rung, queries)
        return math.inf if found is None else found.value

    def descend(self, rung: int, queries: int) -> tuple[int, BestRelease | None]:
        """Walk while the published ε falls, two rungs at a time and then one."""
        for stride in (2, 1):
            here = self.value(rung, queries)
            for step in (stride, -stride):
                while (there := self.value(rung + step, queries)) < here:
                    rung, here = rung + step, there
        return rung, self.best(rung, queries)


def _rows_for(
    value: Callable[[int], float], target: float, *, most: int, start: int, rounds: int
) -> int | None:
    """Nearly the most rows whose ε, which grows with them, stays at or below a target."""
    low, high = 0, most + 1
    at_low = at_high = math.nan
    rows = max(1, min(start, most))
    for turn in range(2 * rounds):
        found = value(rows)
        if found <= target:
            low, at_low = rows, found
        else:
            high, at_high = rows, found
        if high - low <= max(1, int(_SLACK * low)) or (turn >= rounds and low > 0):
            break
        if math.isnan(at_low) or math.isnan(at_high):
            # ε is nearly a constant plus a multiple of the rows; without two points guess.
            rows = math.ceil(rows * 1.3) if math.isnan(at_high) else int(rows * 0.75)
            if math.isnan(at_high) and found > 0.0 and target > found:
                rows = max(rows, int(low * min(target / found, 2.0)))
        else:
            share = (target - at_low) / (at_high - at_low) if math.isfinite(at_high) else 0.5
            rows = low + round((high - low) * min(max(share, 0.02), 0.98))
        rows = min(max(rows, low + 1), high - 1)
    return low or None


def _rounded(best: BestRelease, goal: Goal) -> ReleasePlan:
    return ReleasePlan(
        kind=goal.release,
        delta=goal.delta,
        order=_three_digits(best.order),
        beta=_three_digits(best.beta),
        sigma=_three_digits(best.sigma),
    )


def _three_digits(value: float) -> float:
    return float(f"{value:.3g}")
