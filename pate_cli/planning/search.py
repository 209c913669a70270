"""One search for every goal: a pattern search over threshold, noise and the weight of a prior.

From the best of several starts it looks at all settings one step away on one axis or on two, goes
to the best of them, and halves its steps where none is better. How good settings are is told by a
`look`, which prices many settings at once; this module knows nothing about goals or privacy. After
an interruption `best` still answers.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from pate_cli.planning.tuning import Tuning, three_digits

STEPS: Final = {"threshold": 1.15, "sigma1": 1.35, "sigma2": 1.2}
"""The factor by which each parameter is changed at first."""

# Starts, as shares of the votes: T, σ1, σ2 of a test, and σ2 alone.
_TESTED: Final = (
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
_WEIGHTS, _WEIGHT_STEP = (0.2, 0.5), 0.1
# A step that gains less, in logarithms, is none.
_LEAST_GAIN = 1e-5


@dataclass(frozen=True)
class Candidate:
    """Settings that were looked at.

    Attributes:
        settings: what was looked at.
        merit: how well they serve the goal; larger is better.
        rows: how many queries to ask.
        holds: whether they meet the floors of the goal, which merit only makes dear to miss.
    """

    settings: Tuning
    merit: float
    rows: int
    holds: bool = True

    @property
    def rank(self) -> tuple[bool, float]:
        """Larger is better: first those that meet the floors."""
        return self.holds, self.merit


Look: TypeAlias = Callable[[Sequence[Tuning], int | None], list[Candidate]]
"""Prices settings; where good rows are known nearby it need not look at others."""


class Search:
    """A pattern search for one goal.

    Attributes:
        seen: every candidate by its settings.
    """

    def __init__(
        self,
        look: Look,
        *,
        votes: int,
        given: Mapping[str, float] | None = None,
        weights: bool = False,
        pairs: bool = True,
        margin: float = 1.1,
        progress: Callable[[int], None] = lambda _done: None,
    ) -> None:
        """Nothing is looked at yet.

        Args:
            look: prices settings.
            votes: how many votes a query has, without those of a prior.
            given: parameters that stay as they are.
            weights: whether the weight of a prior is searched, too.
            pairs: whether two axes are changed at once as well.
            margin: the largest T, in units of the most votes that a query can have.
            progress: called with how many settings were looked at.
        """
        self._look, self._votes, self._given = look, votes, dict(given or {})
        self._weights, self._pairs, self._margin = weights, pairs, margin
        self._progress = progress
        self.seen: dict[Tuning, Candidate] = {}

    @property
    def best(self) -> Candidate:
        """The best candidate so far."""
        return max(self.seen.values(), key=lambda each: each.rank)

    def ranked(self) -> list[Candidate]:
        """All candidates, the best first."""
        return sorted(self.seen.values(), key=lambda each: each.rank, reverse=True)

    def starts(self, *, tested: bool = True, untested: bool = True) -> list[Tuning]:
        """Settings spread over what may be good, in votes; given parameters replace theirs."""
        weights = [0]
        if "prior_weight" in self._given:
            weights = [int(self._given["prior_weight"])]
        elif self._weights:
            weights += [round(share * self._votes) for share in _WEIGHTS]
        untested = untested and not {"threshold", "sigma1"} & set(self._given)
        found = []
        for weight in weights:
            most = self._votes + weight
            shares = (
                *(_TESTED if tested else ()),
                *((None, None, s) for s in _UNTESTED if untested),
            )
            for share in shares:
                values = {
                    name: self._given.get(name, three_digits(part * most))
                    for name, part in zip(("threshold", "sigma1", "sigma2"), share, strict=True)
                    if part is not None
                }
                found.append(
                    Tuning(values.get("threshold"), values.get("sigma1"), values["sigma2"], weight)
                )
        return list(dict.fromkeys(found))

    def run(
        self, starts: Sequence[Tuning], *, climbs: int = 3, halvings: int = 3, strides: int = 0
    ) -> Candidate:
        """Climb from the best starts, with and without a test; the best candidate of all.

        Args:
            starts: where to begin.
            climbs: from how many of them to climb.
            halvings: how often a climb halves its steps.
            strides: from how many starts to climb by whole steps first, to begin from their ends.
        """
        found = self._priced(starts, None)
        ranked = sorted(found, key=lambda each: -each.merit)
        kinds = {each.settings.threshold is None: each for each in reversed(ranked)}
        firsts = sorted(kinds.values(), key=ranked.index)
        ranked = list(dict.fromkeys([*firsts, *ranked]))
        if strides:
            ends = dict.fromkeys(self.climb(start, halvings=0) for start in ranked[:strides])
            ranked = sorted(ends, key=lambda each: each.merit, reverse=True)
        for start in ranked[:climbs]:
            self.climb(start, halvings=halvings)
        return self.best

    def climb(self, here: Candidate, *, halvings: int) -> Candidate:
        """Go to the best around by ever smaller steps."""
        for halving in range(halvings + 1):
            while True:
                around = self._priced(list(self._around(here.settings, 0.5**halving)), here.rows)
                best = max(around, key=lambda each: each.merit, default=here)
                if best.merit <= here.merit + _LEAST_GAIN:
                    break
                here = best
        return here

    def _priced(self, settings: Sequence[Tuning], near: int | None) -> list[Candidate]:
        """Candidates for settings, those that were seen before included."""
        missing = [each for each in dict.fromkeys(settings) if each not in self.seen]
        if missing:
            self.seen.update((each.settings, each) for each in self._look(missing, near))
            self._progress(len(missing))
        return [self.seen[each] for each in settings if each in self.seen]

    def _around(self, here: Tuning, share: float) -> Iterator[Tuning]:
        """Settings one step away on one axis, or on two."""
        moves = [
            (name, STEPS[name] ** sign)
            for name in here.parameters
            if name not in self._given
            for sign in (share, -share)
        ]
        pairs = itertools.combinations(moves, 2) if self._pairs else ()
        for several in (*((move,) for move in moves), *pairs):
            if len({name for name, _ in several}) == len(several):
                moved = here.times(**dict(several))
                if (moved.threshold or 0.0) <= self._margin * (self._votes + here.prior_weight):
                    yield moved
        if not self._weights or "prior_weight" in self._given:
            return
        step = max(round(_WEIGHT_STEP * share * self._votes), 1)
        for weight in (here.prior_weight + step, max(here.prior_weight - step, 0)):
            if weight != here.prior_weight:
                yield replace(here, prior_weight=weight)
                if here.threshold is not None and "threshold" not in self._given:
                    threshold = three_digits(here.threshold + weight - here.prior_weight)
                    yield replace(here, prior_weight=weight, threshold=threshold)
