"""Several ways to an ε searched for one goal, one after the other; the best of them wins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import UnreachableError
from pate_cli.tuning.result import Tuned


class OneWay(Protocol):
    """A search for one goal, by one way to an ε: `Search`, or `PriorSearch` with a prior."""

    floor: float | None

    @property
    def steps(self) -> int:
        """How often `run` calls its progress, at most."""
        ...

    def run(self, progress: Callable[[int], None] = ..., *, extras: bool = True) -> Tuned:
        """The best, with the Pareto front and the floor if `extras`; UnreachableError if none."""
        ...

    def with_extras(self, found: Tuned, progress: Callable[[int], None] = ...) -> Tuned:
        """What `run` found without them, with both."""
        ...

    def best_so_far(self) -> Tuned | None:
        """The best seen before an interruption, priced exactly; None if there is none."""
        ...


@dataclass(frozen=True)
class Ways:
    """Searches of the same votes and settings for goals that differ in what is released.

    Attributes:
        searches: at least one; of equals the later one wins.
    """

    searches: Sequence[OneWay]

    @property
    def steps(self) -> int:
        """How often `run` calls its progress, at most."""
        return sum(search.steps for search in self.searches)

    def run(
        self, progress: Callable[[int], None] = lambda _done: None, *, front: bool = False
    ) -> Tuned:
        """The best of what the searches find, with its own front if that is wanted; others beside.

        Raises:
            UnreachableError: none of them meets the goal; said by the one that comes closest.
        """
        found: list[tuple[OneWay, Tuned]] = []
        missed: list[tuple[float, UnreachableError]] = []
        for search in self.searches:
            try:
                found.append((search, search.run(progress, extras=False)))
            except UnreachableError as error:
                floor = float("inf") if search.floor is None else search.floor
                missed.append((floor, error))
        if not found:
            raise min(missed, key=lambda miss: miss[0])[1]
        search, best = max(reversed(found), key=lambda pair: _rank(pair[1]))
        others = [tuned.winner for other, tuned in found if other is not search]
        return replace(
            search.with_extras(best, progress) if front else best,
            others=tuple(winner for winner in others if winner is not None),
        )

    def best_so_far(self) -> Tuned | None:
        """The best setting seen before an interruption, priced exactly; None if there is none."""
        found = [search.best_so_far() for search in self.searches]
        return max((best for best in found if best is not None), key=_rank, default=None)


def _rank(tuned: Tuned) -> tuple[float, ...]:
    """How well a search served its goal; all alike without one."""
    return () if tuned.winner is None else tuned.winner.rank(tuned.goal)
