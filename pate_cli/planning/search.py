"""The settings that a search may change, bisection for numbers, and one pattern search.

All goals use this pattern search. From the best of several starts it evaluates all settings that
are one step away on one axis or on two, and one step further if the last step was good. It goes to
the best of these settings, and halves its steps if none is better. A function `look` evaluates many
settings at once, so the search knows nothing about goals or privacy. After an interruption `best`
still works. The result can be written as a `pate aggregate` line with the settings.
"""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Final, Self, TypeAlias

from pate_cli.core.errors import UnreachableError
from pate_cli.core.words import MechanismName
from pate_cli.mechanisms.base import Mechanism, ScoredMechanism
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.mechanisms.gnmax import GNMax


def three_digits(value: float) -> float:
    """Return the number rounded to three digits, which a command can print in full."""
    return float(f"{value:.3g}")


@dataclass(frozen=True)
class Tuning:
    """Threshold and noise of one run, in votes; without a threshold every query is answered.

    Attributes:
        threshold: T of the test; None for GNMax, which has no test.
        sigma1: noise of the test; None for GNMax.
        sigma2: noise on each count of the argmax.
        prior_weight: votes that a public prior casts on each query; 0 without one.
    """

    threshold: float | None
    sigma1: float | None
    sigma2: float
    prior_weight: int = 0

    @classmethod
    def of(cls, mechanism: Mechanism) -> Self | None:
        """Return the settings of Confident or GNMax; None for other mechanisms."""
        if type(mechanism) not in (ConfidentGNMax, GNMax):
            return None
        given: dict[str, Any] = {
            each.name: getattr(mechanism, each.name, None) for each in fields(cls)
        }
        return cls(**given)

    @classmethod
    def settled(cls, mechanism: Mechanism) -> Self:
        """Return the settings of Confident or GNMax; raise TypeError for other mechanisms."""
        found = cls.of(mechanism)
        if found is None:
            raise TypeError(f"only confident and gnmax have such settings, not {mechanism.name}")
        return found

    @property
    def mechanism_name(self) -> MechanismName:
        """Return the word for the mechanism on the command line."""
        return MechanismName.GNMAX if self.threshold is None else MechanismName.CONFIDENT

    @property
    def parameters(self) -> dict[str, float]:
        """Return threshold, sigma1 and sigma2 by name, without those that are None."""
        values = {"threshold": self.threshold, "sigma1": self.sigma1, "sigma2": self.sigma2}
        return {name: value for name, value in values.items() if value is not None}

    def times(self, **factors: float) -> Self:
        """Return settings with some parameters multiplied, each rounded to three digits."""
        values = self.parameters
        moved: dict[str, Any] = {
            name: three_digits(values[name] * by) for name, by in factors.items() if name in values
        }
        return replace(self, **moved)

    def scaled(self, by: float) -> Self:
        """Return settings with threshold and noise multiplied by one number."""
        return self.times(**dict.fromkeys(self.parameters, by))

    def weighing(self, weight: int, *, follow: bool) -> Self:
        """Return settings with another weight of the prior.

        Args:
            weight: B, in votes.
            follow: whether T moves by as many votes, so that as many teachers reach it.
        """
        found = replace(self, prior_weight=weight)
        if self.threshold is None or not follow:
            return found
        threshold = three_digits(max(self.threshold + weight - self.prior_weight, 1.0))
        return replace(found, threshold=threshold)

    def mechanism(self, *, teachers: int, classes: int, **shared: Any) -> ConfidentGNMax | GNMax:
        """Return the mechanism that a run with these settings uses.

        Args:
            teachers: τ, votes of a query.
            classes: m.
            shared: `teachers_per_record` and `votes_together`, if a record changes several votes.
        """
        given: dict[str, Any] = {**self.parameters, **shared, "prior_weight": self.prior_weight}
        kind = GNMax if self.threshold is None else ConfidentGNMax
        return kind(teachers, classes, **given)


def keywords_of(
    mechanism: ScoredMechanism, *, queries: int, delta: float, **more: Any
) -> dict[str, Any]:
    """Return the keywords of `aggregate` that run a mechanism over this many queries.

    Amounts below one vote are texts, because `aggregate` would read such numbers as shares. Groups
    and a prior are files, and are left out.

    Args:
        mechanism: Confident or GNMax.
        queries: `max_queries`.
        delta: δ.
        more: further keywords, for example of a target.
    """
    settings = Tuning.settled(mechanism)
    found: dict[str, Any] = {"mechanism": settings.mechanism_name.value}
    for name, value in settings.parameters.items():
        found[name] = value if value >= 1.0 else f"{value:g}votes"
    if settings.prior_weight:
        found["prior_weight"] = settings.prior_weight
    if mechanism.teachers_per_record != 1 and not mechanism.votes_together:
        found["teachers_per_record"] = mechanism.teachers_per_record
    return {**found, "max_queries": queries, "delta": delta, **more}


def line_of(votes: str, words: Sequence[str], keywords: Mapping[str, Any]) -> str:
    """Return the `pate aggregate` line with these keywords of `aggregate`.

    Args:
        votes: the file of votes.
        words: options that come first, such as `--prior PRIOR`.
        keywords: numbers and words by name; numbers are printed so that reading gives them back
            exactly.
    """
    line = ["pate", "aggregate", votes, *words]
    for name, value in keywords.items():
        text = repr(value).removesuffix(".0") if isinstance(value, int | float) else str(value)
        line += [f"--{name.replace('_', '-')}", text]
    return shlex.join(line)


def least(
    holds: Callable[[float], bool],
    *,
    start: float,
    within: tuple[float, float],
    precision: float,
) -> float:
    """Return the smallest number from which a condition holds, to a relative precision.

    Args:
        holds: the condition.
        start: the first number; the search doubles or halves from there.
        within: the range; its lower end is the result if the condition holds even there.
        precision: relative.

    Raises:
        UnreachableError: the condition does not hold at the upper end.
    """
    low, high = within
    above = min(max(start, low), high)
    while not holds(above):
        if above >= high:
            raise UnreachableError(f"no number up to {high:g} is enough")
        low, above = above, min(2.0 * above, high)
    below = max(above / 2.0, low)
    while below > low and holds(below):
        above, below = below, max(below / 2.0, low)
    if below <= low and holds(low):
        return low
    while above > below * (1.0 + precision):
        middle = (below * above) ** 0.5
        below, above = (below, middle) if holds(middle) else (middle, above)
    return above


def most_rows(passes: Callable[[int], bool], *, available: int, start: int = 1) -> int:
    """Return the largest number of rows that pass, at most `available`; 0 if none.

    It assumes that if some rows fail, more rows also fail, and is quick if `start` is about right.
    """
    low, high = 0, available + 1
    step, tried = max(1, start // 50), min(max(start, 1), available)
    while low < tried < high:
        if passes(tried):
            low, tried = tried, min(tried + step, available)
        else:
            high, tried = tried, max(tried - step, 1)
        step *= 2
    while high - low > max(1, low // 500):
        middle = (low + high) // 2
        low, high = (middle, high) if passes(middle) else (low, middle)
    return low


STEPS: Final = {"threshold": 1.15, "sigma1": 1.35, "sigma2": 1.2}
"""The factor of the first step of each parameter."""

# Starts, as shares of the votes: T, σ1 and σ2 with a test, or σ2 alone.
_Shares: TypeAlias = tuple[float | None, float | None, float]
_TESTED: Final[tuple[_Shares, ...]] = (
    (0.4, 0.25, 0.15),
    (0.6, 0.4, 0.2),
    (0.8, 0.4, 0.2),
    (0.8, 0.6, 0.27),
    (1.0, 0.6, 0.2),
    (0.4, 0.9, 0.27),
    (0.4, 0.15, 0.1),
    (0.7, 0.3, 0.08),
    (1.0, 1.2, 0.2),
    (0.3, 0.1, 0.2),
    (0.4, 2.0, 0.6),
)
_UNTESTED: Final = (0.05, 0.1, 0.16, 0.24, 0.36, 0.7)
# First weights of a prior, and the first step between weights, as shares of the votes.
_WEIGHTS, _WEIGHT_STEP, _WEIGHT = (0.0, 0.2, 0.5), 0.1, "prior_weight"
# A prior has at most this multiple of the votes; with more, only its guesses would count.
_MOST_WEIGHT = 4
# A step must gain at least this, in logarithms.
_LEAST_GAIN = 1e-5


LEAST_CHANCE: Final = 0.9
"""A run is likely to pass if it passes with at least this probability at the middle agreement."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """Settings that were evaluated, with their best number of rows. SECRET if the votes are.

    Attributes:
        mechanism: the aggregator with its settings.
        merit: how well they serve the goal, in logarithms; larger is better.
        rows: how many queries to ask.
        holds: whether they meet the floors of the goal; the merit only has a penalty for missing
            them.
        chance: approximate pass probability at the middle level of agreement.
        by_level: approximate expected answers at each level of agreement; empty for a file.
    """

    mechanism: ScoredMechanism
    merit: float
    rows: int
    holds: bool = True
    chance: float = 1.0
    by_level: Mapping[float, float] = field(default_factory=dict)

    @cached_property
    def settings(self) -> Tuning:
        """Return threshold, noise and prior weight; raise TypeError for other mechanisms."""
        return Tuning.settled(self.mechanism)

    @property
    def rank(self) -> tuple[bool, float]:
        """Return a sort key that is larger for better ones; meeting the floors counts first."""
        return self.holds, self.merit

    @property
    def likely(self) -> bool:
        """Return whether runs pass nine times in ten at the middle level of agreement."""
        return self.chance >= LEAST_CHANCE

    @property
    def answers(self) -> float:
        """Return the approximate expected answers at the middle level of agreement."""
        return self.by_level[sorted(self.by_level)[len(self.by_level) // 2]]


Look: TypeAlias = Callable[[Sequence[Tuning], int | None], list[Candidate]]
"""A function that evaluates settings; given a good number of rows, it may only try similar ones."""

Move: TypeAlias = dict[str, float]
"""The number of steps for each parameter."""


class Search:
    """A pattern search for one goal.

    Attributes:
        seen: every candidate by its settings.
        ends: the last candidates of the climbs.
    """

    def __init__(
        self,
        look: Look,
        *,
        votes: int,
        given: Mapping[str, float] | None = None,
        weights: bool = False,
        margin: float = 1.1,
        progress: Callable[[int], None] = lambda _done: None,
    ) -> None:
        """Make a search that has evaluated nothing yet.

        Args:
            look: evaluates settings.
            votes: how many votes a query has, without those of a prior.
            given: parameters that stay as they are.
            weights: whether to search the weight of a prior, too.
            margin: the largest T, in units of the most votes that a query can have.
            progress: called with the number of settings that were evaluated.
        """
        self._look, self._votes, self._given = look, votes, dict(given or {})
        self._weights = weights and _WEIGHT not in self._given
        self._margin, self._progress = margin, progress
        self.seen: dict[Tuning, Candidate] = {}
        self.ends: list[Candidate] = []

    @property
    def best(self) -> Candidate:
        """Return the best candidate so far."""
        return max(self.seen.values(), key=lambda each: each.rank)

    def starts(self, name: MechanismName | None = None) -> list[Tuning]:
        """Return settings spread over the range of good ones; given parameters replace theirs.

        Args:
            name: confident or gnmax; None for both, unless a parameter of the test is given.
        """
        shares: list[_Shares] = [] if name is MechanismName.GNMAX else list(_TESTED)
        needs_test = not {"threshold", "sigma1"}.isdisjoint(self._given)
        if name is not MechanismName.CONFIDENT and not needs_test:
            shares += [(None, None, share) for share in _UNTESTED]
        weights = [int(self._given.get(_WEIGHT, 0))]
        if self._weights:
            weights = [round(share * self._votes) for share in _WEIGHTS]
        found = []
        for weight, share in itertools.product(weights, shares):
            threshold, sigma1, sigma2 = (
                None if part is None else self._given.get(name, three_digits(part * most))
                for most in [self._votes + weight]
                for name, part in zip(STEPS, share, strict=True)
            )
            found.append(Tuning(threshold, sigma1, sigma2 or 0.0, weight))
        return list(dict.fromkeys(found))

    def run(
        self, starts: Sequence[Tuning], *, climbs: int = 3, halvings: int = 3, strides: int = 0
    ) -> Candidate:
        """Climb from the best starts, with and without a test; return the best candidate of all.

        Args:
            starts: the first settings.
            climbs: from how many of them to climb.
            halvings: how often a climb halves its steps.
            strides: from how many starts to climb by whole steps first, to continue from their
                ends.
        """
        ranked = sorted(self._seen(starts, None), key=lambda each: -each.merit)
        kinds = {each.settings.threshold is None: each for each in reversed(ranked)}
        firsts = sorted(kinds.values(), key=ranked.index)
        ranked = list(dict.fromkeys([*firsts, *ranked]))
        if strides:
            ends = dict.fromkeys(self.climb(start, halvings=0) for start in ranked[:strides])
            ranked = sorted(ends, key=lambda each: -each.merit)
        for start in ranked[:climbs]:
            self.ends.append(self.climb(start, halvings=halvings))
        return self.best

    def climb(self, here: Candidate, *, halvings: int) -> Candidate:
        """Go to the best settings around, by smaller and smaller steps."""
        for halving in range(halvings + 1):
            last: Move = {}
            while True:
                around = self._around(here.settings, 0.5**halving, last)
                seen = self._seen(list(around), here.rows)
                best = max(seen, key=lambda each: each.merit, default=here)
                if best.merit <= here.merit + _LEAST_GAIN:
                    break
                here, last = best, around[best.settings]
        return here

    def _seen(self, settings: Sequence[Tuning], near: int | None) -> list[Candidate]:
        """Return candidates for settings, including those that were evaluated before."""
        missing = [each for each in dict.fromkeys(settings) if each not in self.seen]
        if missing:
            self.seen.update((each.settings, each) for each in self._look(missing, near))
            self._progress(len(missing))
        return [self.seen[each] for each in settings if each in self.seen]

    def _around(self, here: Tuning, share: float, last: Move) -> dict[Tuning, Move]:
        """Return settings by the move to them: on one axis, on two, or the last move again."""
        axes = [name for name in here.parameters if name not in self._given]
        axes += [_WEIGHT] * self._weights
        moves: list[Move] = [{axis: sign} for axis in axes for sign in (1.0, -1.0)]
        both = itertools.combinations(moves, 2)
        moves += [one | other for one, other in both if one.keys() != other.keys()]
        found = {self._moved(here, move, share): move for move in moves}
        if last:
            twice = {name: 2.0 * by for name, by in last.items()}
            found.setdefault(self._moved(here, twice, share), last)
        return {
            each: move
            for each, move in found.items()
            if (each.threshold or 0.0) <= self._margin * (self._votes + each.prior_weight)
        }

    def _moved(self, here: Tuning, move: Move, share: float) -> Tuning:
        """Return settings after these steps; T follows the weight of a prior unless it is given."""
        factors = {name: STEPS[name] ** (share * by) for name, by in move.items() if name in STEPS}
        moved = here.times(**factors)
        if _WEIGHT not in move:
            return moved
        step = max(round(_WEIGHT_STEP * share * self._votes), 1)
        weight = here.prior_weight + round(move[_WEIGHT] * step)
        weight = min(max(weight, 0), _MOST_WEIGHT * self._votes)
        return moved.weighing(weight, follow="threshold" not in self._given)
