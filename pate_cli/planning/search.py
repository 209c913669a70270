"""Settings of a run, bisection for one number, and a pattern search for the best settings.

The search starts from several settings and continues from the best of them. The search evaluates
all settings that differ from the current settings by one step in one or two parameters, and repeats
a good step. The search moves to the best of the evaluated settings. If no new settings are better,
the search halves its steps. The caller gives a function `look`, which evaluates settings for the
goal of the caller. After an interruption, `Search.best` is the best candidate so far. `line_of`
writes settings as a `pate aggregate` line.
"""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Final, Self, TypeAlias

from pate_cli.core.errors import UnreachableError
from pate_cli.core.words import MechanismName
from pate_cli.mechanisms.base import Mechanism, ScoredMechanism
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.mechanisms.gnmax import GNMax


def three_digits(value: float) -> float:
    """Return a number rounded to three significant digits, so that a command line stays short."""
    return float(f"{value:.3g}")


@dataclass(frozen=True)
class Tuning:
    """Threshold, noise and prior weight of a run of Confident-GNMax or GNMax, in votes.

    Attributes:
        threshold: T, with which Confident-GNMax compares the noisy largest count; None for GNMax,
            which answers every query.
        sigma1: standard deviation of the noise on the largest count that is compared with T; None
            for GNMax.
        sigma2: standard deviation of the noise on each count of the argmax.
        prior_weight: how many votes a public prior casts on each query; 0 without a prior.
    """

    threshold: float | None
    sigma1: float | None
    sigma2: float
    prior_weight: int = 0

    @classmethod
    def of(cls, mechanism: Mechanism) -> Self | None:
        """Return the settings of Confident-GNMax or GNMax; None for other mechanisms."""
        if type(mechanism) not in (ConfidentGNMax, GNMax):
            return None
        given: dict[str, Any] = {
            each.name: getattr(mechanism, each.name, None) for each in fields(cls)
        }
        return cls(**given)

    @classmethod
    def settled(cls, mechanism: Mechanism) -> Self:
        """Return the settings of Confident-GNMax or GNMax; raise TypeError for other mechanisms."""
        found = cls.of(mechanism)
        if found is None:
            raise TypeError(
                "pate finds settings for the mechanisms confident and gnmax only, not for "
                f"{mechanism.name}; use confident or gnmax"
            )
        return found

    @property
    def mechanism_name(self) -> MechanismName:
        """Return the name of the mechanism on the command line."""
        return MechanismName.GNMAX if self.threshold is None else MechanismName.CONFIDENT

    @property
    def parameters(self) -> dict[str, float]:
        """Return threshold, sigma1 and sigma2 by name; parameters that are None are left out."""
        values = {"threshold": self.threshold, "sigma1": self.sigma1, "sigma2": self.sigma2}
        return {name: value for name, value in values.items() if value is not None}

    def times(self, **factors: float) -> Self:
        """Return settings with parameters multiplied by `factors`, rounded to three digits."""
        values = self.parameters
        moved: dict[str, Any] = {
            name: three_digits(values[name] * by) for name, by in factors.items() if name in values
        }
        return replace(self, **moved)

    def scaled(self, by: float) -> Self:
        """Return settings in which the threshold and all noise are multiplied by one number."""
        return self.times(**dict.fromkeys(self.parameters, by))

    def mechanism(self, *, teachers: int, classes: int, **shared: Any) -> ConfidentGNMax | GNMax:
        """Return the mechanism of a run with these settings.

        Args:
            teachers: τ, the number of votes on a query.
            classes: m, the number of classes.
            shared: `teachers_per_record` and `votes_together`, if one record changes several votes.
        """
        given: dict[str, Any] = {**self.parameters, **shared, "prior_weight": self.prior_weight}
        kind = GNMax if self.threshold is None else ConfidentGNMax
        return kind(teachers, classes, **given)


def keywords_of(
    mechanism: ScoredMechanism, *, queries: int, delta: float, **more: Any
) -> dict[str, Any]:
    """Return the keywords with which `aggregate` runs a mechanism over some queries.

    Amounts below one vote are texts such as `0.5votes`, because `aggregate` reads a number below 1
    as a share of the teachers. The keywords `groups` and `prior`, which name files, are left out.

    Args:
        mechanism: Confident-GNMax or GNMax.
        queries: the value of `max_queries`.
        delta: δ of the run.
        more: further keywords of `aggregate` and their values, which are added to the result.
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
    """Return a `pate aggregate` command line with the given options.

    Args:
        votes: the file of votes.
        words: options that stand before the keywords, such as `--prior PRIOR`.
        keywords: for each parameter of `aggregate`, such as `max_queries`, its value. Numbers are
            printed with all their digits.
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
    """Return the smallest number that meets a condition, found by bisection.

    If a number meets the condition, all larger numbers must meet it, too.

    Args:
        holds: returns whether a number meets the condition.
        start: the first number to try. At first, the search doubles or halves the number that it
            tries.
        within: the smallest and the largest number to try. If even the smallest number meets the
            condition, it is the result.
        precision: the relative precision of the result.

    Raises:
        UnreachableError: the largest number does not meet the condition.
    """
    low, high = within
    above = min(max(start, low), high)
    while not holds(above):
        if above >= high:
            raise UnreachableError(
                f"the search tried noise or epsilon up to {high:g}, and none reaches the goal; "
                "raise `target_epsilon`, or lower `answers`"
            )
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
    """Return the largest number of rows that meets a condition, at most `available`; 0 if none.

    The result may be smaller than the exact number, by .2% at most. The condition must be
    such that if a number of rows does not meet it, no larger number meets it.

    Args:
        passes: returns whether a number of rows meets the condition.
        available: the largest number of rows to try.
        start: an estimate of the result, which makes the search quicker.
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
"""The factor by which the first step of a search changes each parameter."""

# First settings, as shares of the votes: T, σ1 and σ2 of Confident-GNMax, or σ2 of GNMax alone.
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
# The first weights of a prior, and the first step of a weight, as shares of the votes.
_WEIGHTS, _WEIGHT_STEP, _WEIGHT = (0.0, 0.2, 0.5), 0.1, "prior_weight"
# The largest weight of a prior, as a multiple of the votes. With more weight, a prior would decide
# nearly every label alone.
_MOST_WEIGHT = 4
# A search goes to new settings only if their merit, a logarithm, is larger by more than this.
_LEAST_GAIN = 1e-5


def middle_of(levels: Iterable[float]) -> float:
    """Return the middle level; a level is the mean probability that a teacher is right."""
    ordered = sorted(set(levels))
    return ordered[len(ordered) // 2]


LEAST_CHANCE: Final = 0.9
"""A run counts as likely to pass if its pass probability at middle agreement is at least this."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """Settings that were evaluated, with their best number of rows.

    A candidate that was evaluated on private votes is SECRET.

    Attributes:
        mechanism: the aggregator with its settings.
        merit: how good the settings are for the goal; larger is better. The merit is the logarithm
            of expected answers, or minus the logarithm of ε, with penalties.
        rows: how many queries to ask.
        holds: whether the settings reach the smallest agreement or pass probability that the goal
            requires. If `holds` is False, a penalty lowers `merit`.
        chance: the approximate probability that a run passes its release test, on votes with the
            middle level of agreement (`middle_of`).
        by_level: about how many answers are expected, for each level of agreement among made-up
            teachers. A level of agreement is the mean probability that a teacher is right. For the
            votes of a file, `by_level` is empty.
    """

    mechanism: ScoredMechanism
    merit: float
    rows: int
    holds: bool = True
    chance: float = 1.0
    by_level: Mapping[float, float] = field(default_factory=dict)

    @cached_property
    def settings(self) -> Tuning:
        """Return the settings of Confident-GNMax or GNMax; raise TypeError for other mechanisms."""
        return Tuning.settled(self.mechanism)

    @property
    def rank(self) -> tuple[bool, float]:
        """Return a sort key: first whether the settings meet all requirements, then their merit."""
        return self.holds, self.merit

    @property
    def likely(self) -> bool:
        """Return whether a run probably passes its release test: with probability 0.9 or more.

        The pass probability is computed on votes with the middle level of agreement (`middle_of`).
        """
        return self.chance >= LEAST_CHANCE

    @property
    def answers(self) -> float:
        """Return about how many answers are expected from votes of the middle agreement level."""
        return self.by_level[middle_of(self.by_level)]


Look: TypeAlias = Callable[[Sequence[Tuning], int | None], list[Candidate]]
"""A function that evaluates settings, given about the best number of rows if that is known."""

Move: TypeAlias = dict[str, float]
"""How many steps to change each parameter."""


class Search:
    """A pattern search for the settings that are best for one goal.

    Attributes:
        seen: every candidate that was evaluated, by its settings.
        ends: the last candidate of each climb, which moves step by step to better settings until
            no step improves them.
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
        """Prepare a search, without evaluating any settings.

        Args:
            look: evaluates settings.
            votes: how many votes a query has, without the votes of a prior.
            given: parameters that the search must not change, with their values in votes.
            weights: whether the search also chooses how many votes a guess of the prior is worth.
            margin: the largest T, as a multiple of all votes on a query, prior included.
            progress: called with the number of settings that were just evaluated.
        """
        self._look, self._votes, self._given = look, votes, dict(given or {})
        self._weights = weights and _WEIGHT not in self._given
        self._margin, self._progress = margin, progress
        self.seen: dict[Tuning, Candidate] = {}
        self.ends: list[Candidate] = []

    @property
    def best(self) -> Candidate:
        """Return the best candidate that was evaluated so far."""
        return max(self.seen.values(), key=lambda each: each.rank)

    def starts(self, name: MechanismName | None = None) -> list[Tuning]:
        """Return the first settings to evaluate, which cover the range of usual settings.

        A parameter that the caller fixed has its fixed value in all settings.

        Args:
            name: `confident` or `gnmax`; None for both mechanisms. If the caller fixed a threshold
                or `sigma1`, None allows only `confident`.
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
        """Improve the best of some settings step by step, and return the best candidate of all.

        The best first settings of Confident-GNMax and the best first settings of GNMax are improved
        before all other settings.

        Args:
            starts: the first settings.
            climbs: how many of the settings to improve by smaller and smaller steps.
            halvings: how often the steps are halved.
            strides: how many of the settings to improve by steps of full size first. If `strides`
                is not 0, smaller steps start only from settings that steps of full size have
                reached.
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
        """Move by smaller and smaller steps to better candidates; return the last candidate."""
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
        """Return candidates for settings; only settings without a candidate are evaluated."""
        missing = [each for each in dict.fromkeys(settings) if each not in self.seen]
        if missing:
            self.seen.update((each.settings, each) for each in self._look(missing, near))
            self._progress(len(missing))
        return [self.seen[each] for each in settings if each in self.seen]

    def _around(self, here: Tuning, share: float, last: Move) -> dict[Tuning, Move]:
        """Return settings that are one step from `here` in one or two parameters, with their moves.

        If the search has just moved (`last`), the settings that a move twice as long reaches are
        also in the result.
        """
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
        """Return the settings that `move` reaches from `here`; a step is `share` of a full step.

        If the move changes the weight of a prior, T changes by as many votes, unless T is given. So
        the number of teachers who must agree stays the same.
        """
        factors = {name: STEPS[name] ** (share * by) for name, by in move.items() if name in STEPS}
        moved = here.times(**factors)
        if _WEIGHT not in move:
            return moved
        step = max(round(_WEIGHT_STEP * share * self._votes), 1)
        weight = here.prior_weight + round(move[_WEIGHT] * step)
        weight = min(max(weight, 0), _MOST_WEIGHT * self._votes)
        threshold = moved.threshold
        if threshold is not None and "threshold" not in self._given:
            threshold = three_digits(max(threshold + weight - here.prior_weight, 1.0))
        return replace(moved, threshold=threshold, prior_weight=weight)
