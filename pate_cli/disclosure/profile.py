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

    def profile(self, tally: Tally, order: float, progress: Shares = no_progress) -> Floats:
        """Return u_d of queries that were counted by their states, [DISTANCES], nats.

        Args:
            tally: the queries.
            order: λ > 1.
            progress: called with shares of the work, which add up to 1.
        """
        total = np.zeros(DISTANCES)
        for start in range(0, len(tally.cells), _CHUNK):
            part = slice(start, start + _CHUNK)
            share = len(tally.cells[part]) / len(tally.cells)
            found = self.costs(
                order,
                tally.cells[part],
                lambda done, share=share: progress(share * done),  # type: ignore[misc]
            )
            total += found @ tally.weights[part]
        return total


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
    """Return the states of a bound that is not left open, for orders up to the highest."""
    two_tail = bound is Bound.TWO_TAIL
    return States(mechanism, mechanism.cost_table(highest_order).grid if two_tail else None)


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
    furthest = _distances(mechanism) - 1
    seconds = sum(
        mechanism.state_seconds(rows, order=order, furthest=furthest)
        for order in coin_orders(Bound.CONDITIONAL, mechanism, orders).tolist()
    )
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
    # Of any rows a student saw: they are refused where there is none but the two-tail bound.
    votes = np.zeros((1, mechanism.classes), dtype=np.int64)
    mechanism.for_reference(votes, 0).vote_states(votes)
    for order in coin_orders(bound, mechanism, orders).tolist():
        mechanism.check_states(min(rows, _CHUNK), order=order, furthest=DISTANCES - 1)


def _distances(mechanism: ScoredMechanism) -> int:
    return _NEAR if mechanism.slow_states else DISTANCES
