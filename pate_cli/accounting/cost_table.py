"""The RDP cost of queries, and how far a neighbour could change this cost, for all mechanisms.

The RDP cost of a query is a function of its score, and a neighbour moves the score by at most a
known amount. Scores are rounded to the cells (v, k) of a lattice. Usually the row v is the number
of votes for the plurality. If the tested score is a real number, v is the index of the cell that
contains this score. For mechanisms whose cost does not depend on v, v is 0. The column k is the
index of a cell of a `ScoreGrid`. In Confident-GNMax, one vote can change v and k together. Where
possible, Confident-GNMax places queries on a second lattice, which describes more exactly how far
one vote moves a query (`RivalColumns`).

**The cost within a distance** (`costs_within`) is the largest RDP cost in all cells that a query
can reach if at most d votes on it change. For each distance d, a release test uses u_d, the sum
over queries of the cost within distance d. One vote moves a query by at most one row and K columns,
and the cost ρ(v, k) is non-decreasing in k. So

  u_d = Σ over queries of max over |v' − v| ≤ d of ρ(v', min(k + dK, last))

is an upper bound on the total RDP cost of the queries at every vote file that differs by at most d
votes per query. Neighbours D, D' satisfy u_d(D') ≤ u_{d+1}(D), because the cells within distance d
of D' are within distance d + 1 of D. `costs_within` computes the exact maximum of ρ over all cells
within distance d. (`sensitivity` uses maxima over whole blocks of cells, which are faster to
compute but may be larger.)
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pate_cli.accounting.few_votes import CostSum, Few, summed, touched
from pate_cli.accounting.score_grid import EVERY, ScoreGrid
from pate_cli.accounting.sensitivity import (
    local_sensitivity_blocks,
    sensitivity_curve,
    smooth_sensitivity,
    widened,
)
from pate_cli.core.arrays import Floats, Ints, each_once

_CHUNK_CELLS = 2_000_000

CostCells = Callable[[int, int, Ints], Floats]


def costs_within(
    cost_cells: CostCells, *, rows: int, grid: ScoreGrid, cells: Ints, distances: Ints
) -> Floats:
    """Return the largest cost in the cells that d votes can reach from each given cell.

    Args:
        cost_cells: cost_cells(a, b, columns) returns ρ for rows a ≤ v < b and the given
            columns, [b − a, columns], nats.
        rows: number of rows of the lattice.
        grid: the grid of scores; each interval of scores is a column of the lattice.
        cells: the cell (v, k) of each query, [cells, 2].
        distances: d ≥ 0 in ascending order, [distances].

    Returns:
        [distances, cells], nats, non-decreasing in the distance.
    """
    found = np.zeros((distances.size, len(cells)))
    if found.size == 0:
        return found
    # Rows that no window reaches are left out. If a window reaches beyond the end of the lattice,
    # empty rows are added: a window that is cut off would not be part of the next larger window of
    # every neighbour.
    reach = int(distances[-1])
    lowest, highest = int(cells[:, 0].min()) - reach, int(cells[:, 0].max()) + reach + 1
    low, high = max(lowest, 0), min(highest, rows)
    padding = ((low - lowest, highest - high), (0, 0))
    row = cells[:, 0] - lowest
    columns = np.minimum(cells[:, 1] + grid.stride * distances[:, None], grid.size - 1)
    every = each_once(columns)
    place = np.searchsorted(every, columns)
    chunk = max(1, _CHUNK_CELLS // (highest - lowest))
    for start in range(0, every.size, chunk):
        window = np.pad(cost_cells(low, high, every[start : start + chunk]), padding)
        within = (place >= start) & (place < start + chunk)
        width = 1  # window[j] is the maximum over rows j … j + width − 1
        for index in np.flatnonzero(within.any(axis=1)).tolist():
            distance = int(distances[index])
            width = widened(window, width, 2 * distance + 1)
            chosen = np.flatnonzero(within[index])
            column = place[index, chosen] - start
            # Two overlapping windows cover the rows from row − d to row + d.
            first = row[chosen] - distance
            second = row[chosen] + distance + 1 - width
            found[index, chosen] = np.maximum(window[first, column], window[second, column])
    return np.maximum.accumulate(found, axis=0)


# The number of costs (cells times distances) that are in memory at once.
_MOST_COSTS = 4_000_000
# How many nodes have their cost computed at once, until the cost has reached its cap.
_NODES = 256


@dataclass(frozen=True, eq=False)
class Tally:
    """The number of queries in each cell of scores, which is all that the accountant needs. SECRET.

    Tallies are added with `+`, and their counts are whole numbers. So the sum of tallies does not
    depend on how queries were divided into batches or among workers, or on the order of tallies.

    Attributes:
        cells: the distinct cells with queries, sorted, [occupied, 2] for cells (v, k); a cell may
            also consist of more than two numbers.
        weights: how many queries are in each cell, [occupied].
    """

    cells: Ints
    weights: Ints

    @classmethod
    def empty(cls, numbers: int = 2) -> Tally:
        """Return a tally without queries, whose cells consist of this many numbers."""
        return cls(np.zeros((0, numbers), dtype=np.int64), np.zeros(0, dtype=np.int64))

    @classmethod
    def of(cls, cells: Ints, weights: Ints | None = None) -> Tally:
        """Count the queries in each cell; a query counts once, or as often as its weight says."""
        if not len(cells):
            return cls(cells, np.zeros(0, dtype=np.int64))
        keys, cells_of = _keyed(cells)
        if weights is None:
            distinct, total = np.unique(keys, return_counts=True)
        else:
            order = np.argsort(keys, kind="stable")
            ordered = keys[order]
            starts = np.flatnonzero(np.diff(ordered, prepend=ordered[0] - 1))
            distinct, total = ordered[starts], np.add.reduceat(weights[order], starts)
        return cls(cells_of(distinct), total)

    @classmethod
    def with_places(cls, cells: Ints) -> tuple[Tally, Ints]:
        """Count the queries in each cell; also return the index of each query's cell, [queries]."""
        if not len(cells):
            return cls.of(cells), np.zeros(0, dtype=np.int64)
        keys, cells_of = _keyed(cells)
        distinct, places, total = np.unique(keys, return_inverse=True, return_counts=True)
        return cls(cells_of(distinct), total), places.reshape(-1)

    @classmethod
    def total(cls, parts: Sequence[Tally]) -> Tally:
        """Return the sum of one or more tallies."""
        return cls.of(
            np.concatenate([part.cells for part in parts]),
            np.concatenate([part.weights for part in parts]),
        )

    def __add__(self, other: Tally) -> Tally:
        return Tally.total([self, other])

    @property
    def queries(self) -> int:
        """The number of queries that were counted."""
        return int(self.weights.sum())


class TallySum:
    """A sum of many tallies, which is faster than adding them one by one. SECRET.

    New tallies wait until they have, together, as many cells as the sum; then they are added to it.
    """

    def __init__(self) -> None:
        """Start a sum without queries."""
        self._parts: list[Tally] = []

    def add(self, tally: Tally) -> None:
        """Add a tally; the arrays `cells` of all tallies must have equally many columns."""
        self._parts.append(tally)
        first, *waiting = (len(each.cells) for each in self._parts)
        if sum(waiting) >= first:
            self._parts = [Tally.total(self._parts)]

    @property
    def total(self) -> Tally:
        """Return the sum of all tallies that were added."""
        return Tally.total(self._parts or [Tally.empty()])


def _keyed(cells: Ints) -> tuple[Ints, Callable[[Ints], Ints]]:
    """Return an integer for each cell, and a function that converts the integers back to cells.

    The integers sort in the same order as the cells, and are sorted faster.
    """
    low = cells.min(axis=0)
    sizes = cells.max(axis=0) - low + 1
    if math.prod(sizes.tolist()) < np.iinfo(np.int64).max:
        # `np.ravel_multi_index` takes at most 64 columns, and there may be one column per class.
        steps = np.cumprod([1, *sizes[:0:-1]])[::-1]
        return (cells - low) @ steps, lambda found: found[:, None] // steps % sizes + low
    distinct, places = np.unique(cells, axis=0, return_inverse=True)
    return places.reshape(-1), lambda found: distinct[found]


@dataclass(frozen=True, eq=False)
class Price:
    """The RDP cost of queries at one order, and its local sensitivity by distance. SECRET.

    Attributes:
        rdp: total RDP cost, nats.
        distances: ascending d ≥ 0, [distances].
        curve: the local sensitivity LS_d at each distance, summed over queries, nats.
        ceiling: a data-independent bound on LS_d at every distance d, nats.
    """

    rdp: float
    distances: Ints
    curve: Floats
    ceiling: float

    def smooth(self, beta: float) -> float:
        """Return the smooth sensitivity SS_β, nats; `distances` must be 0, 1, 2, … without gaps."""
        return smooth_sensitivity(self.curve, ceiling=self.ceiling, beta=beta)

    def discounted(self, beta: float) -> Floats:
        """Return the discounted local sensitivity e^{−βd} LS_d at each distance, nats.

        The smooth sensitivity SS_β is the maximum of two numbers: the largest e^{−βd} LS_d over the
        listed distances d, and the largest e^{−βd} times the ceiling over all larger distances d.
        """
        return self.curve * np.exp(-beta * self.distances)

    def scaled(self, factor: float) -> Price:
        """Return the cost of `factor` times as many queries."""
        return Price(self.rdp * factor, self.distances, self.curve * factor, self.ceiling * factor)

    def __add__(self, other: Price) -> Price:
        """Return the cost of two sets of queries together; their `distances` must be equal."""
        return Price(
            self.rdp + other.rdp,
            self.distances,
            self.curve + other.curve,
            self.ceiling + other.ceiling,
        )


class CostTable(ABC):
    """The cost of a mechanism in every cell of its lattice of scores, at one order; public.

    A table depends on no votes.

    Attributes:
        order: the Rényi order λ.
        grid: the grid of scores, which are the columns of the table.
    """

    order: float
    grid: ScoreGrid

    @property
    def lattice(self) -> ScoreGrid:
        """The columns of the lattice; one vote changes a column index by at most `stride`."""
        return self.grid

    def on_lattice(self, cells: Ints) -> Ints:
        """Convert cells (v, k) of scores to cells (v, column) of `lattice`, [cells, 2].

        One vote changes the column of a query on `lattice` by at most `lattice.stride`.
        """
        return cells

    @property
    def lattice_rows(self) -> int:
        """The number of rows of the lattice; 1 if the cost depends on the column alone."""
        return 1

    @property
    def rows_per_block(self) -> int:
        """The number of rows in each block of cells; sensitivities are maxima over blocks."""
        return 1

    @abstractmethod
    def rows(self, start: int, stop: int, columns: Ints | slice = EVERY) -> Floats:
        """Return the cost in rows start ≤ v < stop of a lattice, [stop − start, columns], nats."""

    @abstractmethod
    def cost(self, cells: Ints) -> Floats:
        """Return the cost of given cells (v, k), [cells], nats."""

    @abstractmethod
    def steps_of(self, rows: Ints, column_rdp: Floats) -> dict[str, Floats]:
        """Return the RDP cost of cells for each step of the mechanism, [cells] each.

        `column_rdp` is the RDP cost of the argmax in the column of each cell, [cells].
        """

    @property
    def sampled(self) -> bool:
        """Return whether sensitivities are computed in some rows only, and so are no upper bounds.

        Sensitivities that are no bounds are only used to choose settings.
        """
        return False

    @cached_property
    def blocks(self) -> Floats:
        """The largest local sensitivity LS_0 (at distance 0) of the cells in each block, nats."""
        return local_sensitivity_blocks(
            self.rows,
            rows=self.lattice_rows,
            grid=self.lattice,
            rows_per_block=self.rows_per_block,
            sampled=self.sampled,
        )

    def price(self, tally: Tally, distances: Ints, few: Few = None) -> Price:
        """Return the RDP cost of the queries in a tally, and its local sensitivity by distance.

        Let K be how many queries one teacher can change. If each teacher votes on few queries, the
        cost is the sum over the K costliest queries, and the local sensitivity is the sum over the
        K most sensitive queries.
        """
        return Price(
            rdp=float(summed(few, self.cost(tally.cells), tally.weights)),
            distances=distances,
            curve=sensitivity_curve(
                self.blocks,
                cells=self.on_lattice(tally.cells),
                weights=tally.weights,
                grid=self.lattice,
                rows_per_block=self.rows_per_block,
                distances=distances,
                few=few,
            ),
            ceiling=float(self.blocks.max()) * touched(few, tally.queries, 0)[0],
        )

    def within(self, cells: Ints, distances: Ints) -> Floats:
        """Return the largest cost of a query if up to d votes on it change, [distances, cells]."""
        return costs_within(
            self.rows,
            rows=self.lattice_rows,
            grid=self.lattice,
            cells=self.on_lattice(cells),
            distances=distances,
        )

    def profile(self, tally: Tally, distances: Ints, few: Few = None) -> Floats:
        """Return the total cost if up to d votes per query change, [distances], nats; SECRET."""
        total = CostSum(few, distances.size)
        step = max(1, _MOST_COSTS // distances.size)
        for start in range(0, len(tally.cells), step):
            part = slice(start, start + step)
            total.add(self.within(tally.cells[part], distances), tally.weights[part])
        return total.total


def priced_to(cap: Floats, scores: Floats, bounds: Callable[[Floats, Ints], Floats]) -> Floats:
    """Return the cost F at ascending scores, made non-decreasing, [orders, scores], nats.

    Once the cost has reached the cap, every higher score costs the cap, and F is not computed
    there.

    Args:
        cap: the largest cost of any score, [orders].
        scores: ascending scores, [scores].
        bounds: returns F at some scores, for the orders with the given indices.
    """
    costs = np.repeat(cap[:, None], scores.size, axis=1)
    left = np.arange(cap.size)
    for start in range(0, scores.size, _NODES):
        part = slice(start, start + _NODES)
        costs[left, part] = bounds(scores[part], left)
        left = left[costs[left, part].max(axis=1) < cap[left]]
        if left.size == 0:
            break
    return np.maximum.accumulate(costs, axis=1)


@dataclass(frozen=True, eq=False)
class ScoreTable(CostTable):
    """The cost F̃ of a single score, non-decreasing, and rounded up to the nodes of a grid.

    Attributes:
        bound: returns the cost F at scores, [scores], nats. F may decrease slightly, because a
            search computes it; a running maximum makes F̃ non-decreasing.
        cap: returns the largest cost of any score, nats.
    """

    order: float
    grid: ScoreGrid
    bound: Callable[[Floats], Floats]
    cap: Callable[[], float] = lambda: math.inf

    @cached_property
    def values(self) -> Floats:
        """The cost F̃ at every node of the grid, [grid.size], nats."""
        cap = np.array([self.cap()])
        return priced_to(cap, self.grid.nodes(), lambda scores, _: self.bound(scores)[None])[0]

    def rows(self, start: int, stop: int, columns: Ints | slice = EVERY) -> Floats:
        """Return the costs of columns, repeated for each row, [stop − start, columns], nats."""
        return np.repeat(self.values[columns][None, :], stop - start, axis=0)

    def cost(self, cells: Ints) -> Floats:
        """Return the cost F̃ in the column k of each cell (v, k), [cells], nats."""
        return self.values[cells[:, 1]]

    def steps_of(self, rows: Ints, column_rdp: Floats) -> dict[str, Floats]:
        """Return the RDP cost of the mechanism's only step, the argmax."""
        return {"argmax": column_rdp}
