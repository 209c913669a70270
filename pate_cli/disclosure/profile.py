"""What the labels of a file of votes cost, there and within so many votes of it. SECRET."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pate_cli.accounting.cost_table import Tally
from pate_cli.accounting.score_grid import FINE, Resolution
from pate_cli.accounting.tested_budget import DISTANCES
from pate_cli.arrays import Counts, Floats, Ints
from pate_cli.mechanisms.base import ScoredMechanism
from pate_cli.words import Bound

__all__ = [
    "States",
    "VoteProfile",
    "conditional_states",
    "lattice_states",
    "seconds_for",
    "states_for",
]

# Costs of single states are kept for other prefixes while they are no more numbers than this.
_MOST_KEPT = 20_000_000
# States whose costs at all distances are held at once.
_CHUNK = 50_000
# Every distance costs time; those far off hardly matter one by one.
_SOME_DISTANCES = np.array([*range(10), 11, 13, 15, 17, 20, 23, 27, 32, 38, 45, 54, DISTANCES - 1])


@dataclass(frozen=True)
class States:
    """What of a query decides its cost, and that of queries within so many votes of it.

    Attributes:
        of: states of histograms under the mechanism bound to their rows, [queries, numbers].
        costs: of states at one order for d = 0 … DISTANCES − 1, [distances, states], nats.
    """

    of: Callable[[ScoredMechanism, Counts], Ints]
    costs: Callable[[float, Ints], Floats]


def lattice_states(
    mechanism: ScoredMechanism, *, highest_order: float, resolution: Resolution = FINE
) -> States:
    """Cells of the lattice, for orders up to the highest; at lower ones its lowest cells merge."""
    deepest = mechanism.cost_table(highest_order, resolution)

    def of(bound: ScoredMechanism, counts: Counts) -> Ints:
        return bound.cells(bound.score(counts), deepest)

    def costs(order: float, cells: Ints) -> Floats:
        table = mechanism.cost_table(order, resolution)
        moved = np.column_stack([cells[:, 0], table.grid.merged(cells[:, 1], deepest.grid)])
        return table.within(moved, np.arange(DISTANCES))

    return States(of, costs)


def conditional_states(mechanism: ScoredMechanism) -> States:
    """Whole histograms, and the bound that conditions on the classes no vote touched."""
    # Distances between those computed cost what the next larger one does.
    next_larger = np.searchsorted(_SOME_DISTANCES, np.arange(DISTANCES))

    def of(bound: ScoredMechanism, counts: Counts) -> Ints:
        return bound.vote_states(counts)

    def costs(order: float, states: Ints) -> Floats:
        return mechanism.state_costs(states, order=order, distances=_SOME_DISTANCES)[next_larger]

    return States(of, costs)


def states_for(bound: Bound, mechanism: ScoredMechanism, *, highest_order: float) -> States:
    """States under a bound, for orders up to the highest.

    Raises:
        UsageError: the mechanism has no such bound.
    """
    if bound is Bound.TWO_TAIL:
        return lattice_states(mechanism, highest_order=highest_order)
    mechanism.vote_states(np.zeros((1, mechanism.classes), dtype=np.int64))
    return conditional_states(mechanism)


def seconds_for(bound: Bound, mechanism: ScoredMechanism, *, rows: int, orders: Floats) -> float:
    """About how long the costs of so many distinct histograms take at these orders."""
    if bound is Bound.TWO_TAIL:
        return 0.0
    return sum(
        mechanism.state_seconds(rows, order=order, furthest=DISTANCES - 1)
        for order in orders.tolist()
    )


class VoteProfile:
    """The states of queries, and u_d of all of them, or of the first ones, at any order. SECRET."""

    def __init__(self, states: States, *, in_order: bool = False) -> None:
        """Start with no votes; only with `in_order` may profiles of the first ones be asked for."""
        self._states, self._in_order = states, in_order
        self._tally: Tally | None = None
        self._rows: list[Ints] = []
        """Once it has been asked for, the place of each query's state instead of the state."""
        self._kept: dict[float, Floats] = {}

    def add(self, mechanism: ScoredMechanism, counts: Counts) -> None:
        """More queries, with the mechanism bound to their rows."""
        found = self._states.of(mechanism, counts)
        if self._in_order:
            self._rows.append(found)
        batch = Tally.of(found)
        self._tally = batch if self._tally is None else self._tally + batch

    @property
    def queries(self) -> int:
        """How many queries there are."""
        return 0 if self._tally is None else self._tally.queries

    def at(self, order: float, *, first: int | None = None) -> Floats:
        """u_d at one order for d = 0 … DISTANCES − 1, [distances], nats.

        Args:
            order: λ > 1.
            first: of so many of the first queries only.
        """
        if self._tally is None:
            return np.zeros(DISTANCES)
        states, weights = self._tally.cells, self._tally.weights
        if first is not None and first < self.queries:
            weights = np.bincount(self._places()[:first], minlength=len(states))
        total = np.zeros(DISTANCES)
        if order in self._kept:
            return self._kept[order] @ weights
        if self._in_order and DISTANCES * len(states) <= _MOST_KEPT / (1 + len(self._kept)):
            self._kept[order] = self._states.costs(order, states)
            return self._kept[order] @ weights
        for start in range(0, len(states), _CHUNK):
            part = slice(start, start + _CHUNK)
            total += self._states.costs(order, states[part]) @ weights[part]
        return total

    def _places(self) -> Ints:
        """The state of each query in order, by its place among the distinct ones."""
        if len(self._rows) != 1 or self._rows[0].ndim != 1:
            _, places = np.unique(np.concatenate(self._rows), axis=0, return_inverse=True)
            self._rows = [places.reshape(-1)]
        return self._rows[0]
