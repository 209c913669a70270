"""How much a public prior should weigh: its weight searched along with the settings.

The weight B multiplies the grid, so it is not another axis of it. The search begins without the
prior, as it always does. From the best setting there it climbs at every weight, lightest first,
each from where the one before ended; then it looks between weights around the best by ever smaller
steps, along with those of the settings. What is best at coarse prices is then priced exactly, with
the prior and without it, so that the result can say what the prior buys.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace

from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import ParameterError
from pate_cli.mechanisms.amounts import Amount
from pate_cli.planning.sample import VoteSample
from pate_cli.planning.setting import Setting
from pate_cli.tuning.goal import Goal
from pate_cli.tuning.price import Costed
from pate_cli.tuning.result import PriorTried, Tuned
from pate_cli.tuning.search import Search
from pate_cli.tuning.settings import Grid

Progress = Callable[[int], None]

# In units of the number of teachers.
_WEIGHTS = (0.0, 0.08, 0.16, 0.24, 0.32, 0.48, 0.64)
_MOST_WEIGHT = 2**31
# How often the steps between weights are halved around the best, and steps of progress per weight.
_ROUNDS, _STEPS = 3, 100
# Grids of up to so many settings are priced whole at every weight.
_MOST_WHOLE = 27
# Weights whose best settings are priced exactly before the search gives up, at most.
_TRIED = 2


@dataclass(frozen=True)
class PriorWeights:
    """The weights to try, whole votes, ascending.

    Attributes:
        values: B ≥ 0; at least one.
        free: nobody asked for them, so that those between serve as well.
    """

    values: tuple[int, ...]
    free: bool = False

    def __post_init__(self) -> None:
        if not self.values:
            raise ParameterError("`prior_weights` needs at least one value")
        object.__setattr__(self, "values", tuple(sorted(set(self.values))))

    @classmethod
    def for_teachers(
        cls, teachers: int, given: Sequence[Amount | float | str] | None = None
    ) -> PriorWeights:
        """Those given, or a few in proportion to the teachers, none among them.

        Raises:
            ParameterError: no whole number of votes.
        """
        if given is None:
            return cls(tuple(round(share * teachers) for share in _WEIGHTS), free=True)
        return cls(tuple(_whole(value, teachers) for value in given))


def _whole(value: Amount | float | str, teachers: int) -> int:
    given = Amount.of("prior_weights", value)
    votes = given.votes(teachers)
    if given.share:
        votes = float(round(votes))
    if not 0.0 <= votes < _MOST_WEIGHT or votes != int(votes):
        raise ParameterError(
            f"`prior_weights` takes whole numbers of votes, at least 0, got {votes:g}"
        )
    return int(votes)


class PriorSearch:
    """A search over settings and weights for one goal, which has a target or a number of answers.

    After an interruption of `run`, `best_so_far` still answers.
    """

    def __init__(self, sample: VoteSample, grid: Grid, goal: Goal, weights: PriorWeights) -> None:
        """The sample has guesses; it is taken without their votes."""
        self._sample, self._grid, self._goal, self._weights = sample, grid, goal, weights
        self._searches: dict[int, Search] = {}
        self._without: Costed | None = None
        self.floor: float | None = None
        """As of `Search`, with the weight of the winner or of what came closest."""

    @property
    def steps(self) -> int:
        """How often `run` calls its progress, at most."""
        tried = len(self._weights.values) + 2 * _ROUNDS
        return (_TRIED + 1) * self._at(0).steps + tried * _STEPS

    def run(self, progress: Progress = lambda _done: None, *, extras: bool = True) -> Tuned:
        """Search settings and weights.

        Args:
            progress: called with 1 after every step.
            extras: also find the Pareto front at the winner's weight, and with a target the floor.

        Raises:
            UnreachableError: neither with the prior nor without it is the goal met.
        """
        base = self._at(0)
        base.look(progress)
        self._look(progress)
        ranked = sorted(self._weighed, key=self._rank, reverse=True)
        found = []
        for weight in ranked[:_TRIED]:
            tuned = self._searches[weight].settled(progress)
            if tuned is not None:
                found.append(tuned)
                break
        without = base.settled(progress)
        self._without = base.closest() if without is None else without.winner
        if without is not None and 0 in self._weights.values:
            found.insert(0, without)
        if not found:
            closest = self._searches[max(ranked or [0], key=self._rank)]
            try:
                found = [closest.cheapest(progress)]
            finally:
                self.floor = closest.floor
        best = max(found, key=lambda tuned: tuned.winner.rank(self._goal) if tuned.winner else ())
        return self.with_extras(best, progress) if extras else self._with_prior(best)

    def with_extras(self, found: Tuned, progress: Progress = lambda _done: None) -> Tuned:
        """What `run` found without them, with the Pareto front and the floor."""
        if found.winner is None:
            return found
        setting = found.winner.setting
        search = self._searches[setting.prior_weight]
        if setting.prior_weight:
            search.look_near([setting], progress)
        found = search.with_extras(found, progress)
        self.floor = search.floor
        return self._with_prior(found)

    def best_so_far(self) -> Tuned | None:
        """The best setting seen before an interruption, priced exactly; None if there is none."""
        seen = [weight for weight in self._weights.values if weight in self._searches]
        for weight in sorted(seen, key=self._rank, reverse=True):
            found = self._searches[weight].best_so_far()
            if found is not None:
                return self._with_prior(found)
        return None

    @property
    def _weighed(self) -> list[int]:
        """The weights that were looked at, but for none."""
        return [weight for weight in self._searches if weight > 0]

    def _look(self, progress: Progress) -> None:
        """Price settings coarsely at all the weights, and between them around the best."""
        heavier = [weight for weight in self._weights.values if weight > 0]
        last = 0
        for weight in heavier:
            self._look_at(weight, self._starts(last, weight), progress)
            last = weight
        if not heavier or (self._whole and not self._weights.free):
            return
        known = [0, *heavier]
        for halvings in range(1, _ROUNDS + 1):
            best = max(self._weighed, key=self._rank)
            if self._weights.free:
                known = sorted({*known, *_middles(known, best)})
            place = known.index(best)
            starts = self._starts(best, best)
            for weight in known[max(place - 1, 0) : place + 2]:
                if weight > 0:
                    near = starts if weight == best else self._starts(best, weight)
                    self._look_at(weight, near, progress, halvings=halvings)

    def _look_at(
        self, weight: int, starts: list[Setting], progress: Progress, *, halvings: int = 0
    ) -> None:
        """Price all settings at a weight, or where there are too many, some from where to start."""
        search = self._at(weight)
        if not self._whole:
            search.look_near(starts, progress, halvings=halvings)
        elif search.best is None:
            search.look(progress)

    @property
    def _whole(self) -> bool:
        """Whether there are so few settings that all are priced at every weight."""
        return self._grid.size <= _MOST_WHOLE

    def _starts(self, near: int, weight: int) -> list[Setting]:
        """The best setting at one weight to start at another, also with a test as much higher."""
        best = self._searches[near].best
        if best is None:
            return []
        setting = best.setting
        if weight == near or setting.threshold is None:
            return [setting]
        higher = setting.threshold + weight - near
        return [setting, replace(setting, threshold=higher)]

    def _at(self, weight: int) -> Search:
        """The search at one weight."""
        if weight not in self._searches:
            sample = self._sample.under(weight)
            self._searches[weight] = Search(sample, self._grid, self._goal)
        return self._searches[weight]

    def _rank(self, weight: int) -> tuple[float, ...]:
        """How well the best at a weight serves the goal, at coarse prices."""
        best = self._searches[weight].best
        return (-float("inf"),) if best is None else best.rank(self._goal)

    def _with_prior(self, found: Tuned) -> Tuned:
        guesses = self._sample.guesses
        if guesses is None:
            return found
        tried = PriorTried(
            guesses.name, guesses.number, tuple(sorted(self._searches)), self._without
        )
        return replace(found, prior=tried)


def _middles(values: Sequence[int], best: int) -> list[int]:
    """Halfway from the best to its neighbours among ascending values."""
    pairs = [pair for pair in itertools.pairwise(values) if best in pair]
    return [(low + high) // 2 for low, high in pairs]
