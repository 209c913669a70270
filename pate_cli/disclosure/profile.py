"""RDP cost of labels at a vote file, and at every distance from it. SECRET.

The cost of a query follows from its *state*: a cell of the lattice for the two-tail bound, the
whole histogram for the conditional one. A profile counts the states of all queries and adds up what
they cost at each distance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pate_cli.accounting.cost_table import Tally
from pate_cli.accounting.score_grid import ScoreGrid
from pate_cli.accounting.tested_budget import DISTANCES
from pate_cli.core.arrays import Floats, Histograms, Ints
from pate_cli.core.errors import ParameterError, UsageError
from pate_cli.core.words import Bound
from pate_cli.mechanisms.base import ScoredMechanism, Shares, no_progress

# Costs of single states are kept for other prefixes while they are no more numbers than this.
_MOST_KEPT = 20_000_000
# States whose costs at all distances are held at once.
_CHUNK = 50_000
# Where costs are dear: so many distances, past which a coin hardly moves (.2% in ε against all 64),
# and orders, ten to a decade.
_NEAR = 48
_DECADE = (1.25, 1.6, 2.0, 2.5, 3.15, 4.0, 5.0, 6.3, 8.0, 10.0)
_SERIES = np.outer(10.0 ** np.arange(4), _DECADE).ravel()
# Seconds that are worth a sharper bound to those who did not ask for it.
_PATIENCE = 60.0


@dataclass(frozen=True)
class States:
    """A bound by its states: what of a query decides its cost at every distance. SECRET.

    Attributes:
        mechanism: the aggregator.
        grid: columns of the lattice of the highest order; at lower ones its lowest cells merge.
            None for the conditional bound, whose states are whole histograms.
    """

    mechanism: ScoredMechanism
    grid: ScoreGrid | None = None

    @property
    def bound(self) -> Bound:
        """The bound whose states these are."""
        return Bound.CONDITIONAL if self.grid is None else Bound.TWO_TAIL

    def of(self, mechanism: ScoredMechanism, counts: Histograms) -> Ints:
        """Return states of histograms, [queries, numbers]; `mechanism` is bound to their rows."""
        if self.grid is None:
            return mechanism.vote_states(counts)
        return mechanism.cells_of(counts, self.grid)

    def costs(self, order: float, states: Ints, progress: Shares = no_progress) -> Floats:
        """Return the RDP cost of states at d = 0 … DISTANCES − 1, [distances, states], nats.

        Under the conditional bound every distance has its own cost: with one at the cost of the
        next, (P2) fails between them. Past the distances worth their time it is the worst case.
        """
        mechanism = self.mechanism
        if self.grid is not None:
            progress(1.0)
            table = mechanism.cost_table(order)
            columns = table.grid.merged(states[:, 1], self.grid)
            return table.within(np.column_stack([states[:, 0], columns]), np.arange(DISTANCES))
        worst = mechanism.worst_rdp(queries=1, answers=1, orders=np.array([order]))[0]
        found = np.full((DISTANCES, len(states)), worst)
        near = np.arange(_distances(mechanism))
        costs = mechanism.state_costs(states, order=order, distances=near, progress=progress)
        found[near] = np.minimum(costs, worst)
        return found

    def worth(self, orders: Floats) -> Floats:
        """Return the orders among Λ that are worth the time they take."""
        return coin_orders(self.bound, self.mechanism, orders)


def coin_orders(bound: Bound, mechanism: ScoredMechanism, orders: Floats) -> Floats:
    """Return the orders at which the release test under a bound knows costs, for Λ.

    Where costs are dear these are the three of `_SERIES` around the best one, else all. Three lose
    .1% in ε against all eight, and targets that are close share them.
    """
    if bound is not Bound.CONDITIONAL or not mechanism.slow_states:
        return orders
    best = orders[orders.size // 2]
    middle = int(np.clip(np.abs(np.log(_SERIES / best)).argmin(), 1, _SERIES.size - 2))
    return _SERIES[middle - 1 : middle + 2]


def states_for(bound: Bound, mechanism: ScoredMechanism, *, highest_order: float) -> States:
    """Return the states of a bound that is not left open, for orders up to the highest.

    Raises:
        UsageError: the mechanism has no such bound.
    """
    if bound is Bound.TWO_TAIL:
        return States(mechanism, mechanism.cost_table(highest_order).grid)
    _check_has_states(mechanism)
    return States(mechanism)


def _distances(mechanism: ScoredMechanism) -> int:
    return _NEAR if mechanism.slow_states else DISTANCES


def _check_has_states(mechanism: ScoredMechanism) -> None:
    """UsageError where there is none but the two-tail bound; of any rows a student saw."""
    votes = np.zeros((1, mechanism.classes), dtype=np.int64)
    mechanism.for_reference(votes, 0).vote_states(votes)


def settled_bound(bound: Bound, mechanism: ScoredMechanism, *, rows: int, orders: Floats) -> Bound:
    """Return the bound itself, or the one that `auto` comes to by public numbers alone.

    Args:
        bound: what was asked for.
        mechanism: the aggregator.
        rows: how many are asked.
        orders: Λ.
    """
    if bound is not Bound.AUTO:
        return bound
    try:
        check_states(Bound.CONDITIONAL, mechanism, rows=rows, orders=orders)
    except (ParameterError, UsageError):
        return Bound.TWO_TAIL
    seconds = seconds_for(Bound.CONDITIONAL, mechanism, rows=rows, orders=orders)
    return Bound.CONDITIONAL if seconds <= _PATIENCE else Bound.TWO_TAIL


def check_states(bound: Bound, mechanism: ScoredMechanism, *, rows: int, orders: Floats) -> None:
    """Refuse a bound that some votes of this shape have no memory for, at these orders.

    By public numbers alone, before any vote is seen: if it hung on the votes, an error would tell
    them from their neighbours, and for nothing.

    Raises:
        ParameterError: the bound is out of reach for so many teachers, classes or rows.
        UsageError: the mechanism has no such bound.
    """
    if bound is Bound.TWO_TAIL:
        return
    _check_has_states(mechanism)
    for order in coin_orders(bound, mechanism, orders).tolist():
        mechanism.check_states(min(rows, _CHUNK), order=order, furthest=DISTANCES - 1)


def seconds_for(bound: Bound, mechanism: ScoredMechanism, *, rows: int, orders: Floats) -> float:
    """Return about how many seconds so many distinct histograms take at these orders."""
    if bound is Bound.TWO_TAIL:
        return 0.0
    furthest = _distances(mechanism) - 1
    return sum(
        mechanism.state_seconds(rows, order=order, furthest=furthest)
        for order in coin_orders(bound, mechanism, orders).tolist()
    )


class VoteProfile:
    """Costs of queries by distance, u_d, at any order: of all of them or of the first. SECRET."""

    def __init__(self, states: States, *, in_order: bool = False) -> None:
        """Start with no query; only with `in_order` may the cost of the first ones be asked for."""
        self.states, self._in_order = states, in_order
        self._tally: Tally | None = None
        self._rows: list[Ints] = []
        """Once it has been asked for, the place of each query's state instead of the state."""
        self._kept: dict[float, Floats] = {}

    def add(self, mechanism: ScoredMechanism, counts: Histograms) -> None:
        """Add queries by their histograms, with the mechanism bound to their rows."""
        self.add_rows(self.states.of(mechanism, counts))

    def add_rows(self, states: Ints) -> None:
        """Add queries by their states, in order."""
        if self._in_order:
            self._rows.append(states)
        self.add_tally(Tally.of(states))

    def add_tally(self, tally: Tally) -> None:
        """Add queries that were counted by their states; not with `in_order`."""
        self._tally = tally if self._tally is None else self._tally + tally

    @property
    def queries(self) -> int:
        """Number of queries."""
        return 0 if self._tally is None else self._tally.queries

    def at(
        self, order: float, *, first: int | None = None, progress: Shares = no_progress
    ) -> Floats:
        """Return u_d at one order for d = 0 … DISTANCES − 1, [distances], nats.

        Args:
            order: λ > 1.
            first: of so many of the first queries only.
            progress: called with shares of the work, which add up to 1.
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
            self._kept[order] = self.states.costs(order, states, progress)
            return self._kept[order] @ weights
        for start in range(0, len(states), _CHUNK):
            part = slice(start, start + _CHUNK)
            share = len(states[part]) / len(states)
            found = self.states.costs(
                order,
                states[part],
                lambda done, share=share: progress(share * done),  # type: ignore[misc]
            )
            total += found @ weights[part]
        return total

    def _places(self) -> Ints:
        """Return the state of each query in order, by its place among the distinct ones."""
        if len(self._rows) != 1 or self._rows[0].ndim != 1:
            _, places = np.unique(np.concatenate(self._rows), axis=0, return_inverse=True)
            self._rows = [places.reshape(-1)]
        return self._rows[0]
