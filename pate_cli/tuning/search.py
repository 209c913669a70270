"""The search: survey every setting, price the best coarsely, the best of those exactly.

The survey ranks all settings by estimates that are within a few percent of the truth on the
ensembles tried. The most promising are priced on the accountant's coarse lattice, with λ, β, σ_SS
and the number of rows chosen for each; the best of those on the lattice a run uses, at the
parameters that are printed. So the winner's figures are exact, it meets the goal, and it is the
best of the finalists. That no other point of the grid is better is not proven, except on grids of
no more points than finalists.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from pate_cli.errors import UnreachableError
from pate_cli.tuning.capped import price_capped, priced_at
from pate_cli.tuning.electorate import Electorate
from pate_cli.tuning.goal import Goal
from pate_cli.tuning.grid import Grid
from pate_cli.tuning.outcome import Outcome
from pate_cli.tuning.sanitized import price_coarsely, price_exactly, with_label_bound
from pate_cli.tuning.shortlist import Candidate, candidates, front
from pate_cli.tuning.survey import Survey, in_parallel, survey
from pate_cli.words import ReleaseKind

__all__ = ["FINALISTS", "Search", "Tuned"]

_T = TypeVar("_T")

_SHORTLIST, _CAPPED_SHORTLIST = 24, 10
FINALISTS = 5
_FRONT, _CAPPED_FRONT = 24, 12
_TRIED_FOR_FLOOR = 2


@dataclass(frozen=True)
class Tuned:
    """What a search found. SECRET if the votes are.

    Attributes:
        winner: the best finalist; None without a goal, unless the grid has a single point.
        pareto: settings that no other one beats in answers, agreement and ε at once, ascending
            in ε, on the coarse lattice where a release is drawn.
        floor: the least ε that the grid reaches for as many answers as are wanted, or for one.
        points: settings in the grid.
        complete: False after an interruption: the best so far.
    """

    winner: Outcome | None
    pareto: tuple[Outcome, ...]
    floor: float | None
    points: int
    complete: bool


class Search:
    """One search; after an interruption of `run`, `best_so_far` still answers."""

    def __init__(self, electorate: Electorate, grid: Grid, goal: Goal) -> None:
        """All three are taken as they are; the histograms stay in memory."""
        self._electorate, self._grid, self._goal = electorate, grid, goal
        self._survey: Survey | None = None
        self._rough: list[Outcome] = []
        self._exact: list[Outcome] = []

    @property
    def steps(self) -> int:
        """How often `run` calls its progress, at most."""
        return len(self._grid.sigmas2) + _SHORTLIST + FINALISTS + _FRONT

    def run(
        self, progress: Callable[[int], None] = lambda _done: None, *, extras: bool = True
    ) -> Tuned:
        """Search the whole grid.

        Args:
            progress: called with 1 after every step.
            extras: also find the Pareto front, and with a target the floor.

        Raises:
            UnreachableError: no setting meets the goal; the message says what is the least or most
                that can be had.
        """
        for found in survey(self._electorate, self._grid, self._goal, progress=progress):
            self._survey = found
        front = self._front(progress) if extras and self._goal.open else ()
        if self._goal.open and self._grid.size > 1:
            return Tuned(None, front, self._floor(), self._grid.size, True)
        self._price(self._listed(), progress)
        if not self._exact:
            # ε for all votes may meet a target that the sanitized one does not.
            at_least = self._cheapest()
            self._exact = [one for one in at_least if math.isfinite(one.score(self._goal))]
        if not self._exact:
            raise UnreachableError(self._why_not())
        winner = self._winner()
        # Without a target the winner is the least ε itself.
        floor = winner.epsilon
        if self._goal.target_epsilon is not None and extras:
            floor = min(floor, self._floor() or floor)
        if extras and not self._goal.open:
            front = self._front(progress)
        return Tuned(winner, front, floor, self._grid.size, True)

    def best_so_far(self) -> Tuned | None:
        """The best setting seen before an interruption, priced exactly; None if there is none."""
        if self._survey is None:
            return None
        if self._goal.open and self._grid.size > 1:
            pareto = self._front(lambda _done: None)
            return Tuned(None, pareto, None, self._grid.size, False) if pareto else None
        if not self._exact:
            self._exact = self._priced(self._listed(), self._goal, enough=1)
        if not self._exact:
            return None
        return Tuned(self._winner(), (), None, self._grid.size, False)

    def _winner(self) -> Outcome:
        best = max(self._exact, key=lambda one: (one.score(self._goal), -one.epsilon))
        return with_label_bound(self._electorate, best, delta=self._goal.delta)

    def _listed(self) -> list[Candidate]:
        if self._survey is None:
            return []
        # Estimates may be a few percent too high: what just misses the target gets a chance.
        goal = self._goal
        if goal.target_epsilon is not None and goal.answers is not None:
            goal = replace(goal, target_epsilon=1.05 * goal.target_epsilon)
        most = _CAPPED_SHORTLIST if goal.release is ReleaseKind.NONE else _SHORTLIST
        return candidates(self._survey, self._grid, goal, most=most)

    def _price(self, listed: list[Candidate], progress: Callable[[int], None]) -> None:
        """Coarse prices of the shortlist, then exact ones of the finalists."""
        goal, capped = self._goal, self._goal.release is ReleaseKind.NONE

        def coarse(one: Candidate) -> None:
            if (found := price_coarsely(self._electorate, one, goal)) is not None:
                self._rough.append(found)

        def exact(one: Outcome) -> None:
            found = price_exactly(self._electorate, one, goal)
            if found is not None and math.isfinite(found.score(goal)):
                self._exact.append(found)

        def by_cap(one: Candidate) -> None:
            found = price_capped(self._electorate, one, goal)
            if found is not None and math.isfinite(found.score(goal)):
                self._exact.append(found)

        if capped:
            _each(by_cap, listed, progress)
            return
        _each(coarse, listed, progress)
        # A coarse price is a little above the exact one, and what is priced exactly may win still.
        lenient = goal
        if goal.target_epsilon is not None:
            lenient = replace(goal, target_epsilon=1.05 * goal.target_epsilon)
        ranked = sorted(self._rough, key=lambda one: one.score(lenient), reverse=True)
        for start in range(0, len(ranked), FINALISTS):
            _each(exact, ranked[start : start + FINALISTS], progress)
            if self._exact:
                break

    def _priced(self, listed: list[Candidate], goal: Goal, *, enough: int) -> list[Outcome]:
        """Exact prices of the first candidates that meet a goal, as many as are enough."""
        found = []
        for one in listed:
            if goal.release is ReleaseKind.NONE:
                outcome = price_capped(self._electorate, one, goal)
            else:
                rough = price_coarsely(self._electorate, one, goal)
                outcome = None if rough is None else price_exactly(self._electorate, rough, goal)
            if outcome is not None and math.isfinite(outcome.score(goal)):
                found.append(outcome)
            if len(found) >= enough:
                break
        return found

    def _cheapest(self) -> list[Outcome]:
        """A few settings of least ε for as many answers as are wanted, or for one."""
        if self._survey is None:
            return []
        goal = replace(self._goal, target_epsilon=None, answers=self._goal.least_answers)
        listed = candidates(self._survey, self._grid, goal, most=_SHORTLIST)
        return self._priced(listed, goal, enough=_TRIED_FOR_FLOOR)

    def _floor(self) -> float | None:
        """The least ε for as many answers as are wanted, or for one."""
        return min((one.epsilon for one in self._cheapest()), default=None)

    def _why_not(self) -> str:
        goal = self._goal
        if goal.min_agreement > 0.0:
            lax = Search(self._electorate, self._grid, replace(goal, min_agreement=0.0))
            lax._survey = self._survey
            if self._floor() is None and (floor := lax._floor()) is not None:
                return (
                    f"no setting has {goal.min_agreement:.0%} of its answers equal to the "
                    f"plurality{self._wanted()}; lower --min-agreement (without it epsilon "
                    f"{floor:.4f} can be reached), or try smaller --sigma2 or larger --threshold"
                )
        floor = self._floor()
        if floor is None:
            most = 0.0 if self._survey is None else float(self._survey.answers.max())
            return (
                f"no setting gives {goal.answers or 1:g} expected answers: "
                f"{self._electorate.queries} queries give {most:.1f} at most; "
                "ask more queries or lower --threshold"
            )
        return (
            f"epsilon {goal.target_epsilon:g} is out of reach: the least is {floor:.4f}"
            f"{self._wanted() or ' for a single expected answer'}; larger --sigma1 or --sigma2, "
            "fewer queries or answers, a larger --delta or more teachers lower it"
        )

    def _wanted(self) -> str:
        return "" if self._goal.answers is None else f" for {self._goal.answers:g} answers"

    def _front(self, progress: Callable[[int], None]) -> tuple[Outcome, ...]:
        """The Pareto front of the survey, priced again; what turns out to be beaten is left out."""
        if self._survey is None:
            return ()
        goal = replace(self._goal, target_epsilon=None, answers=None)
        found: list[Outcome] = []

        def price(one: tuple[Candidate, int]) -> None:
            candidate, cap = one
            if goal.release is ReleaseKind.NONE:
                found.append(
                    priced_at(self._electorate, candidate.setting, goal, candidate.queries, cap)
                )
            elif (outcome := price_coarsely(self._electorate, candidate, goal)) is not None:
                found.append(outcome)

        most = _CAPPED_FRONT if goal.release is ReleaseKind.NONE else _FRONT
        _each(price, front(self._survey, self._grid, self._goal, most=most), progress)
        kept = [one for one in found if not any(_beats(other, one) for other in found)]
        return tuple(sorted(kept, key=lambda one: (one.epsilon, one.expected.answers)))


def _beats(one: Outcome, other: Outcome) -> bool:
    first = (-one.epsilon, one.expected.answers, one.expected.agreement)
    second = (-other.epsilon, other.expected.answers, other.expected.agreement)
    return first != second and all(a >= b for a, b in zip(first, second, strict=True))


def _each(work: Callable[[_T], None], items: list[_T], progress: Callable[[int], None]) -> None:
    for _ in in_parallel([partial(work, item) for item in items]):
        progress(1)
