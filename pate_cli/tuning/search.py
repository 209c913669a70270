"""The search: climb from a few settings on a coarse price, then price the best exactly.

Settings spread evenly over the grid are priced on the accountant's coarse lattice, each with the
rows that the goal asks for and with λ, β and σ_SS chosen for it. From the best of them the search
climbs to the best setting around, one step on every axis at a time, until none is better. The best
settings on the way are priced on the lattice that a run uses, at the parameters that are printed.
So the winner's figures are exact, it meets the goal, and it is the best of the finalists. That no
other point of the grid is better is proven only for grids that are priced as a whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from pate_cli.core.errors import UnreachableError
from pate_cli.core.words import Bound, MechanismName, ReleaseKind
from pate_cli.planning.sample import VoteSample
from pate_cli.planning.setting import Setting
from pate_cli.tuning.capped import CappedPricing
from pate_cli.tuning.goal import Goal
from pate_cli.tuning.price import Costed, Pricing
from pate_cli.tuning.result import Tuned, cost_shares
from pate_cli.tuning.sanitized import SanitizedPricing
from pate_cli.tuning.settings import Grid, Place
from pate_cli.tuning.tested import TestedPricing

FINALISTS = 3
# Of grids that are not priced whole, so many values per axis at first.
_FIRST_PER_AXIS = 3
# Steps along a ladder of orders when little is known of the best one.
_FIRST_STRIDES, _STRIDES_AT_TARGET = (4, 2), (2,)
_MOST_POINTS = 250
# A coarse price is a little above the exact one: what just misses a target gets a chance.
_LENIENCE = 0.06
_TRIED_FOR_FLOOR = 2
# How often the steps of a grid are halved around the best, settings priced for each time at most,
# and how many steps σ2 may take at once to stay where enough answers agree.
_HALVINGS, _CLOSER_POINTS, _RIDGE_STEPS = 3, 100, 3
# Settings priced around what the rule would take, at either size of step.
_FROM_RULE = 90
# An order of a dear exact price takes as long as so many estimates; of so many it is told.
_STEPS_PER_ORDER, _MOST_ORDERS = 50, 24
# The Pareto front: numbers of answers, how far they range, and settings priced for each at most.
_LEVELS, _LEVEL_SPAN, _LEVEL_POINTS = 5, 300.0, 60
# Beyond it an ε says nothing.
_LARGEST_EPSILON = 20.0
# How much agreement counts beside the number of answers, as an exponent.
_TASTES = (0.0, 1.0, 30.0)

Progress = Callable[[int], None]


class _Climb:
    """Settings priced coarsely for one goal."""

    def __init__(
        self, grid: Grid, pricing: Pricing, goal: Goal, *, most: int, progress: Progress
    ) -> None:
        self.grid, self._pricing, self.goal = grid, pricing, goal
        self._most, self._progress = most, progress
        self.points: dict[Place, Costed] = {}
        self._seen: set[Place] = set()
        self._explored: set[Place] = set()
        self._strides = _STRIDES_AT_TARGET if goal.fills_budget else _FIRST_STRIDES

    @property
    def ranked(self) -> list[Costed]:
        """What was priced, best first."""
        return sorted(self.points.values(), key=self._rank, reverse=True)

    def spread(self, *, thorough: bool = True) -> None:
        """Price all of a small grid; of a larger one some, and climb from the best of each σ1.

        A search that is not thorough climbs once, and does not look around what it passed.
        With two classes the best σ1 is either far below the margin of the votes or far above.
        """
        small = self.grid.size <= self._pricing.whole
        last: Costed | None = None
        for place in self.grid.places(None if small else _FIRST_PER_AXIS):
            self._price(place, last, strides=self._strides)
            last = self.points.get(place, last)
        if not small:
            starts: dict[int, Place] = {}
            for place in sorted(self.points, key=self._promise_at):
                starts[place[1]] = place
            best_first = sorted(starts.values(), key=self._promise_at, reverse=True)
            for place in best_first if thorough else best_first[:1]:
                self.up_from(place)
            if thorough:
                self._explore()

    def up_from(self, here: Place, *, axes_only: bool = False) -> None:
        """Climb from a place to the best around it, or one axis away, until there is no better."""
        self._price(here, None, strides=self._strides)
        while here in self.points and here not in self._explored:
            here = max([here, *self._around(here, axes_only=axes_only)], key=self._promise_at)

    def _explore(self) -> None:
        """Look around the most promising and the best few until nothing better turns up."""
        for merit in (self._promise_at, self._rank_at):
            while len(self._seen) < self._most:
                best = sorted(self.points, key=merit, reverse=True)[: self._pricing.beam]
                new = [place for place in best if place not in self._explored]
                if not new:
                    break
                self._around(new[0])

    def ridge_from(self, here: Place) -> Place:
        """Climb by single steps, and along the ridge where just enough of the answers agree.

        Returns:
            Where it ends.
        """
        self._price(here, None, strides=self._strides)
        while here in self.points and here not in self._explored:
            self._explored.add(here)
            rows = self.points[here].queries
            near = {*self.grid.around(here, axes_only=True), *self._along_ridge(here, rows)}
            for place in sorted(near):
                self._price(place, self.points[here])
            priced = [place for place in sorted(near) if place in self.points]
            here = max([here, *priced], key=self._promise_at)
        return here

    def _along_ridge(self, here: Place, queries: int) -> list[Place]:
        """What is around in T and σ1, each with the largest σ2 near at which enough agree."""
        found = []
        for threshold, sigma1, sigma2 in self.grid.around(here):
            if sigma2 != here[2]:
                continue
            for up in range(_RIDGE_STEPS, -_RIDGE_STEPS - 1, -1):
                place = (threshold, sigma1, sigma2 + up)
                if 0 <= place[2] < self.grid.shape[2] and self._pricing.agrees(
                    self.grid.at(place), self.goal, queries
                ):
                    found.append(place)
                    break
        return found

    def _around(self, here: Place, *, axes_only: bool = False) -> list[Place]:
        """Price what is around a place, which gets its best order first in a thorough climb."""
        self._explored.add(here)
        if not axes_only:
            self.points[here] = self._pricing.polished(self.points[here], self.goal)
        rows = self.points[here].queries
        around = set(self.grid.around(here, axes_only=axes_only))
        around |= {self._agreeing(place, rows) for place in around}
        for place in sorted(around):
            self._price(place, self.points[here])
        return [place for place in sorted(around) if place in self.points]

    def _agreeing(self, place: Place, queries: int) -> Place:
        """The place, or the next larger threshold at which enough of the answers agree.

        The best settings often lie where that constraint just holds, on a ridge that no single
        step on every axis need follow.
        """
        if place[0] < 0:
            return place
        for threshold in range(place[0], self.grid.shape[0]):
            higher = (threshold, place[1], place[2])
            if self._pricing.agrees(self.grid.at(higher), self.goal, queries):
                return higher
        return place

    def top(self) -> Place | None:
        """The best place so far."""
        return max(self.points, key=self._rank_at, default=None)

    def _price(self, place: Place, near: Costed | None, *, strides: tuple[int, ...] = ()) -> None:
        if place in self._seen or len(self._seen) >= self._most:
            return
        found = self._pricing.estimate(self.grid.at(place), self.goal, near)
        if found is not None:
            self.points[place] = self._pricing.polished(found, self.goal, strides=strides)
        self._seen.add(place)
        self._progress(1)

    def _rank(self, outcome: Costed) -> tuple[float, ...]:
        return outcome.rank(self.goal)

    def _promise_at(self, place: Place) -> float:
        outcome = self.points[place]
        return self.goal.promise(outcome.epsilon, outcome.expected)

    def _rank_at(self, place: Place) -> tuple[float, ...]:
        return self._rank(self.points[place])


class Search:
    """One search; after an interruption of `run`, `best_so_far` still answers."""

    def __init__(self, sample: VoteSample, grid: Grid, goal: Goal) -> None:
        """All three are taken as they are; the histograms stay in memory."""
        self._sample, self._goal = sample, goal
        self._grid = replace(grid, prior_weight=sample.prior_weight)
        self._pricing: Pricing = (
            CappedPricing(sample, delta=goal.delta)
            if goal.release is ReleaseKind.NONE
            else TestedPricing(sample, delta=goal.delta, bound=goal.bound)
            if goal.release is ReleaseKind.TARGET
            else SanitizedPricing(sample, delta=goal.delta)
        )
        self._climbs: list[_Climb] = []
        self._exact: list[Costed] = []
        self._ranked: list[Costed] = []
        self._orders_told = 0
        self.floor: float | None = None
        """The least ε for as many answers as are wanted, or for one, once it was looked for."""

    @property
    def steps(self) -> int:
        """How often `run` calls its progress, at most."""
        steps = 2 * self._points + 2 * FINALISTS + 2 * _LEVELS * _LEVEL_POINTS
        if self._pricing.between:
            steps += _HALVINGS * _CLOSER_POINTS
        if self._goal.bound is not Bound.TWO_TAIL:
            steps += _MOST_ORDERS * _STEPS_PER_ORDER
        return steps

    @property
    def _points(self) -> int:
        """How many settings are priced for the goal at most."""
        whole = self._grid.size <= self._pricing.whole
        return self._grid.size if whole else _MOST_POINTS

    def run(self, progress: Progress = lambda _done: None, *, extras: bool = True) -> Tuned:
        """Search the whole grid.

        Args:
            progress: called with 1 after every step.
            extras: also find the Pareto front, and with a target the floor.

        Raises:
            UnreachableError: no setting meets the goal; the message says what is the least or most
                that can be had.
        """
        goal = self._goal
        if goal.open and self._grid.size > 1:
            cheapest = self._cheapest(goal, progress)
            return self._tuned(None, self._front(progress), _least(cheapest))
        self.look(progress)
        found = self.settled(progress) or self.cheapest(progress)
        return self.with_extras(found, progress) if extras else found

    def look(self, progress: Progress = lambda _done: None) -> None:
        """Price settings of the whole grid coarsely, and around the best what is between.

        A budget that is to be filled is searched from what the public rule would take for these
        very votes, which is near the best.
        """
        starts = self._pricing.starts(self._goal) if all(self._grid.free) else ()
        if starts:
            self.look_near(starts, progress, halvings=1, most=_FROM_RULE)
            near = [] if self.best is None else [self.best.setting]
            self.look_near(near, progress, halvings=_HALVINGS, most=_FROM_RULE)
            return
        climb = self._climb(self._goal, progress)
        climb.spread()
        self._ranked = self._between(climb, progress)

    def look_near(
        self,
        starts: Iterable[Setting],
        progress: Progress = lambda _done: None,
        *,
        halvings: int = 0,
        most: int = _CLOSER_POINTS,
    ) -> None:
        """Price coarsely what a climb passes from a few settings, on a grid halved so often."""
        grid = self._grid
        for _ in range(halvings if self._pricing.between and any(grid.free) else 0):
            grid = grid.finer()
        climb = self._climb(self._goal, progress, grid=grid, most=most)
        for start in starts:
            here = grid.nearest(start)
            if halvings:
                climb.ridge_from(here)
            else:
                climb.up_from(here, axes_only=True)
        mine = [climb for climb in self._climbs if climb.goal == self._goal]
        self._ranked = self._best_first(mine)

    @property
    def best(self) -> Costed | None:
        """What was priced coarsely and serves the goal best, or comes closest."""
        return self._ranked[0] if self._ranked else None

    def closest(self) -> Costed | None:
        """The same where nothing meets the goal; exactly for as many answers as are wanted."""
        goal = self._goal
        if self.best is None or goal.answers is None:
            return self.best
        lax = replace(goal, target_epsilon=None)
        return self._pricing.exact(self._pricing.polished(self.best, lax), lax) or self.best

    def settled(self, progress: Progress = lambda _done: None) -> Tuned | None:
        """The winner at its exact price; None if none of what was looked at meets the goal."""
        self._exact = self._finalists(self._ranked, self._goal, progress)
        return self._tuned(self._winner(), (), self.floor) if self._exact else None

    def cheapest(self, progress: Progress = lambda _done: None) -> Tuned:
        """What meets the goal after all, found on the way to the floor.

        Raises:
            UnreachableError: nothing does.
        """
        self._add_cheapest(progress, thorough=True)
        if not self._exact:
            raise UnreachableError(self._why_not(self.floor))
        return self._tuned(self._winner(), (), self.floor)

    def with_extras(self, found: Tuned, progress: Progress = lambda _done: None) -> Tuned:
        """What `run` found without them, with the Pareto front and the floor.

        Where they show a setting that serves the goal better, it wins.
        """
        goal = self._goal
        if goal.open:
            return found
        if self.floor is None and goal.target_epsilon is not None:
            self._add_cheapest(progress, thorough=goal.answers is not None)
        front = self._front(progress)
        if not any(outcome.slow for outcome in self._exact):
            self._exact += self._priced(self._better(front), goal, progress, enough=1)
        winner = self._winner()
        # A coarse price that its exact one did not bear out has no place beside the winner.
        beyond = {id(outcome) for outcome in self._better(front)}
        rest = [outcome for outcome in front if id(outcome) not in beyond]
        front = _ascending(_unbeaten([winner, *rest]))
        floor = min(winner.epsilon, *(() if self.floor is None else (self.floor,)), math.inf)
        return self._tuned(winner, front, floor)

    def _better(self, outcomes: Iterable[Costed]) -> list[Costed]:
        """Those that would serve the goal at least as well as the winner, best first."""
        best = max(outcome.rank(self._goal) for outcome in self._exact)
        better = [outcome for outcome in outcomes if outcome.rank(self._goal) >= best]
        return sorted(better, key=lambda outcome: outcome.rank(self._goal), reverse=True)

    def _add_cheapest(self, progress: Progress, *, thorough: bool) -> None:
        """Find the floor; ε for all votes may meet a target that the sanitized one does not."""
        cheapest = self._cheapest(self._goal, progress, thorough=thorough)
        self.floor = _least(cheapest)
        self._exact += [outcome for outcome in cheapest if outcome.meets(self._goal)]

    def best_so_far(self) -> Tuned | None:
        """The best setting seen before an interruption, priced exactly; None if there is none."""
        if not self._climbs:
            return None
        if self._goal.open and self._grid.size > 1:
            pareto = self._shown()
            return self._tuned(None, pareto, None, complete=False) if pareto else None
        if not self._exact:
            mine = [climb for climb in self._climbs if climb.goal == self._goal]
            self._exact = self._priced(self._best_first(mine), self._goal, enough=1)
        if not self._exact:
            return None
        return self._tuned(self._winner(), (), None, complete=False)

    def _tuned(
        self,
        winner: Costed | None,
        pareto: tuple[Costed, ...],
        floor: float | None,
        *,
        complete: bool = True,
    ) -> Tuned:
        shares = None if winner is None else cost_shares(winner, self._sample)
        return Tuned(self._goal, self._grid, winner, shares, pareto, floor, complete)

    def _winner(self) -> Costed:
        best = max(self._exact, key=lambda outcome: outcome.rank(self._goal))
        return self._pricing.labels_bound(best)

    def _climb(
        self,
        goal: Goal,
        progress: Progress,
        *,
        grid: Grid | None = None,
        most: int | None = None,
    ) -> _Climb:
        climb = _Climb(
            grid or self._grid, self._pricing, goal, most=most or self._points, progress=progress
        )
        self._climbs.append(climb)
        return climb

    def _between(self, climb: _Climb, progress: Progress) -> list[Costed]:
        """What was priced, best first, and what is found from the best by ever smaller steps."""
        best: dict[MechanismName, Setting] = {}
        for outcome in reversed(climb.ranked):
            best[outcome.setting.name] = outcome.setting
        grid, climbs = self._grid, [climb]
        for _ in range(_HALVINGS if self._pricing.between and any(grid.free) else 0):
            grid = grid.finer()
            closer = self._climb(self._goal, progress, grid=grid, most=_CLOSER_POINTS)
            for name, start in best.items():
                here = closer.ridge_from(grid.place_of(start))
                best[name] = grid.at(here)
            climbs.append(closer)
        return self._best_first(climbs)

    def _best_first(self, climbs: Iterable[_Climb]) -> list[Costed]:
        """What several climbs for the goal priced."""
        found = [outcome for climb in climbs for outcome in climb.points.values()]
        return sorted(found, key=lambda outcome: outcome.rank(self._goal), reverse=True)

    def _finalists(self, ranked: list[Costed], goal: Goal, progress: Progress) -> list[Costed]:
        """Exact prices of the best, a few at a time until some meet the goal."""
        near = [
            rough for rough in ranked if goal.missed_by(rough.epsilon, rough.expected) < _LENIENCE
        ]
        together = 1 if goal.release is ReleaseKind.TARGET else FINALISTS
        for start in range(0, len(near), together):
            found = []
            for rough in near[start : start + together]:
                outcome = self._exactly(rough, goal, progress)
                if outcome is not None and outcome.meets(goal):
                    found.append(outcome)
                progress(1)
            if found:
                return found
        return []

    def _exactly(self, rough: Costed, goal: Goal, progress: Progress) -> Costed | None:
        """Its exact price, telling of every order where that takes long, as long as it may."""

        def tick() -> None:
            if rough.slow and self._orders_told < _MOST_ORDERS:
                self._orders_told += 1
                progress(_STEPS_PER_ORDER)

        return self._pricing.exact(self._pricing.polished(rough, goal), goal, tick)

    def _priced(
        self,
        ranked: Iterable[Costed],
        goal: Goal,
        progress: Progress = lambda _done: None,
        *,
        enough: int,
    ) -> list[Costed]:
        """Exact prices of the first that meet a goal, as many as are enough, or of a dear one."""
        found: list[Costed] = []
        for rough in ranked:
            missed = goal.missed_by(rough.epsilon, rough.expected)
            if missed >= _LENIENCE or len(found) >= (1 if rough.slow else enough):
                break
            outcome = self._exactly(rough, goal, progress)
            if outcome is not None and outcome.meets(goal):
                found.append(outcome)
        return found

    def _cheapest(self, goal: Goal, progress: Progress, *, thorough: bool = True) -> list[Costed]:
        """A few settings of least ε for as many answers as are wanted, or for one."""
        cheap = replace(goal, target_epsilon=None, answers=goal.least_answers)
        climb = self._climb(cheap, progress)
        climb.spread(thorough=thorough)
        ranked = climb.ranked
        if self._goal.answers is None:
            # What one answer would cost is no result: there the quick bound serves as well.
            ranked = [replace(outcome, bound=Bound.TWO_TAIL) for outcome in ranked]
        return self._priced(ranked, cheap, progress, enough=_TRIED_FOR_FLOOR)

    def _why_not(self, floor: float | None) -> str:
        goal = self._goal
        wanted = "" if goal.answers is None else f" for {goal.answers:g} answers"
        if floor is None and goal.min_agreement > 0.0:
            lax = replace(goal, min_agreement=0.0)
            lowest = _least(self._cheapest(lax, lambda _done: None))
            if lowest is not None:
                return (
                    f"no setting has {goal.min_agreement:.0%} of its answers equal to the "
                    f"plurality{wanted}; lower `min_agreement` (without it epsilon "
                    f"{lowest:.4f} can be reached), or try smaller `sigma2` or larger `threshold`"
                )
        if floor is None:
            return (
                f"no setting gives {goal.answers or 1:g} expected answers: "
                f"{self._sample.queries} queries give {self._most_answers():.1f} at most; "
                "ask more queries or lower `threshold`"
            )
        return (
            f"epsilon {goal.target_epsilon:g} is out of reach: the least is {floor:.4f}"
            f"{wanted or ' for a single expected answer'}; larger `sigma1` or `sigma2`, "
            "fewer answers, a larger `delta`, a smaller `min_agreement` or more teachers lower it"
        )

    def _most_answers(self) -> float:
        """Expected answers of the most generous threshold test, or without one."""
        if self._grid.untested:
            return float(self._sample.queries)
        thresholds, sigmas, _ = self._grid.shape
        tests = (self._grid.at((t, s, 0)) for t in range(thresholds) for s in range(sigmas))
        return max(float(self._sample.answer_chance(test).sum()) for test in tests)

    def _front(self, progress: Progress) -> tuple[Costed, ...]:
        """The Pareto front of what was priced, after climbs to the least ε of several numbers of
        answers and two floors of agreement."""
        goal = self._goal
        most = self._most_answers()
        levels = np.geomspace(max(most / _LEVEL_SPAN, min(1.0, most)), most, _LEVELS)
        for agreement in (goal.min_agreement, 1.0 - (1.0 - goal.min_agreement) / 4.0):
            here = [climb.top() for climb in self._climbs if climb.grid is self._grid][-1]
            for answers in levels.tolist():
                cheap = replace(goal, target_epsilon=None, answers=answers, min_agreement=agreement)
                climb = self._climb(cheap, progress, most=_LEVEL_POINTS)
                if here is not None:
                    climb.up_from(here, axes_only=True)
                here = climb.top() or here
        return self._shown()

    def _shown(self) -> tuple[Costed, ...]:
        """The front of everything that was priced, thinned over the range of ε."""
        goal = self._goal
        priced = [
            outcome
            for climb in self._climbs
            for outcome in climb.points.values()
            if outcome.epsilon <= _LARGEST_EPSILON
            and outcome.expected.answers >= 1.0
            and outcome.expected.agreement >= goal.min_agreement
        ]
        shown = _thinned(_unbeaten(priced), self._pricing.front_ranges)
        if goal.release is ReleaseKind.NONE:
            free = replace(goal, target_epsilon=None, answers=None)
            exact = [self._pricing.exact(outcome, free) for outcome in shown]
            shown = _unbeaten([outcome for outcome in exact if outcome is not None])
        return _ascending(shown)


def _least(outcomes: list[Costed]) -> float | None:
    return min((outcome.epsilon for outcome in outcomes), default=None)


def _ascending(outcomes: list[Costed]) -> tuple[Costed, ...]:
    return tuple(sorted(outcomes, key=lambda outcome: (outcome.epsilon, outcome.expected.answers)))


def _merits(outcomes: list[Costed]) -> np.ndarray:
    """(−ε, answers, agreement) of each."""
    return np.array(
        [
            (-outcome.epsilon, outcome.expected.answers, outcome.expected.agreement)
            for outcome in outcomes
        ]
    ).reshape(-1, 3)


def _unbeaten(outcomes: list[Costed]) -> list[Costed]:
    """Those that no other one beats in answers, agreement and ε at once, equals once."""
    merits, first = np.unique(_merits(outcomes), axis=0, return_index=True)
    beaten = [
        bool(np.any(np.all(merits >= merit, axis=1) & np.any(merits > merit, axis=1)))
        for merit in merits
    ]
    return [outcomes[i] for i, lost in zip(first.tolist(), beaten, strict=True) if not lost]


def _thinned(outcomes: list[Costed], ranges: int) -> list[Costed]:
    """In each of several ranges of ε the best by each weight of agreement against answers."""
    if not outcomes:
        return []
    merits = _merits(outcomes)
    epsilon = np.maximum(-merits[:, 0], 1e-6)
    edges = np.geomspace(epsilon.min(), epsilon.max() * (1.0 + 1e-9), ranges + 1)
    place = np.clip(np.searchsorted(edges, epsilon, "right") - 1, 0, ranges - 1)
    kept: set[int] = set()
    for at in range(ranges):
        here = np.flatnonzero(place == at)
        if here.size:
            kept |= {
                int(here[np.argmax(merits[here, 1] * merits[here, 2] ** taste)])
                for taste in _TASTES
            }
    return [outcomes[i] for i in sorted(kept)]
