"""RDP cost of a tally of queries, and how far neighbours could move this cost, for all mechanisms.

A mechanism's cost is a function of a score, and one neighbour moves the score by at most a known
amount. Scores lie on a lattice. The row v is the number of votes for the plurality, or a cell of a
real score, or 0 for mechanisms that do not use it. The column k is a cell of a `ScoreGrid`. If v
and the score are tied to each other, neighbours are sought on a second lattice (`RivalColumns`).

**Within a distance** (`costs_within`): this is the profile of a release test. One vote moves a cell
by at most one row and K columns, and the cost ρ(v, k) is non-decreasing in k. So

  u_d = Σ over queries of max over |v' − v| ≤ d of ρ(v', min(k + dK, last))

bounds the cost at every vote file within d votes. For neighbours D, D' it satisfies u_d(D') ≤
u_{d+1}(D), because the d-window at D' lies in the (d+1)-window at D. These windows consist of
cells, not of blocks.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pate_cli.accounting.few_votes import CostSum, Few, summed, touched
from pate_cli.accounting.score_grid import ScoreGrid
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
    """Return the largest cost of queries in given cells within given distances.

    Args:
        cost_cells: cost_cells(a, b, columns) returns ρ for rows a ≤ v < b and these columns,
            [b − a, columns], nats.
        rows: number of rows of the lattice.
        grid: the columns of the lattice.
        cells: (v, k), [cells, 2].
        distances: d ≥ 0 in ascending order, [distances].

    Returns:
        [distances, cells], nats, non-decreasing in the distance.
    """
    found = np.zeros((distances.size, len(cells)))
    if found.size == 0:
        return found
    # Rows that no window reaches are left out. If a window reaches beyond the end of the lattice,
    # empty rows stand there: a shortened window would not lie in the next window of every
    # neighbour.
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


_EVERY = slice(None)
# The number of costs (cells times distances) that are in memory at once.
_MOST_COSTS = 4_000_000
# Nodes whose cost is computed at once, until the cost has reached its cap.
_NODES = 256


@dataclass(frozen=True, eq=False)
class Tally:
    """The number of queries in each lattice cell, which is all that the accountant keeps. SECRET.

    Tallies form a commutative monoid under `+` with exact integer sums. So the result does not
    depend on batches, workers or their order.

    Attributes:
        cells: distinct (v, k), [occupied, 2], or cells of other numbers, sorted.
        weights: how many queries are in each cell, [occupied].
    """

    cells: Ints
    weights: Ints

    @classmethod
    def empty(cls, numbers: int = 2) -> Tally:
        """Return a tally without queries, whose cells have this many numbers."""
        return cls(np.zeros((0, numbers), dtype=np.int64), np.zeros(0, dtype=np.int64))

    @classmethod
    def of(cls, cells: Ints, weights: Ints | None = None) -> Tally:
        """Count cells, one per query, or with a weight for each."""
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
        """Return the tally, and for each query the place of its cell in the tally, [queries]."""
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
    """A sum of tallies that adds several at a time. SECRET.

    New tallies wait until they hold as many cells as the sum so far.
    """

    def __init__(self) -> None:
        """Begin with no queries."""
        self._parts: list[Tally] = []

    def add(self, tally: Tally) -> None:
        """Add a tally whose cells have as many numbers."""
        self._parts.append(tally)
        first, *waiting = (len(each.cells) for each in self._parts)
        if sum(waiting) >= first:
            self._parts = [Tally.total(self._parts)]

    @property
    def total(self) -> Tally:
        """Return the sum of all tallies that were added."""
        return Tally.total(self._parts or [Tally.empty()])


def _keyed(cells: Ints) -> tuple[Ints, Callable[[Ints], Ints]]:
    """Return a number for each cell, in the order of cells, and a function from numbers to cells.

    Numbers sort faster than cells.
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
    """RDP cost of queries at one order, and its local sensitivity by distance. SECRET.

    Attributes:
        rdp: total RDP cost, nats.
        distances: ascending d ≥ 0, [distances].
        curve: LS_d summed over queries at these distances, nats.
        ceiling: a data-independent bound on LS_d at all larger distances, nats.
    """

    rdp: float
    distances: Ints
    curve: Floats
    ceiling: float

    def smooth(self, beta: float) -> float:
        """Return SS_β, nats; the distances must be 0, 1, …, D0 − 1."""
        return smooth_sensitivity(self.curve, ceiling=self.ceiling, beta=beta)

    def discounted(self, beta: float) -> Floats:
        """Return the discounted local sensitivity e^{−βd} LS_d at each distance, nats.

        SS_β is the maximum of these and of the ceiling's discounted values.
        """
        return self.curve * np.exp(-beta * self.distances)

    def scaled(self, factor: float) -> Price:
        """Return the cost of `factor` times as many queries."""
        return Price(self.rdp * factor, self.distances, self.curve * factor, self.ceiling * factor)

    def __add__(self, other: Price) -> Price:
        """Return the cost of both sets of queries; both have the same distances."""
        return Price(
            self.rdp + other.rdp,
            self.distances,
            self.curve + other.curve,
            self.ceiling + other.ceiling,
        )


class CostTable(ABC):
    """A mechanism's cost on its lattice at one order. It is public, because it depends on no votes.

    Attributes:
        order: the Rényi order λ.
        grid: the columns of scores.
    """

    order: float
    grid: ScoreGrid

    @property
    def lattice(self) -> ScoreGrid:
        """The columns of the lattice; a neighbour moves a query by at most the stride."""
        return self.grid

    def on_lattice(self, cells: Ints) -> Ints:
        """Return the places (row, column) on the lattice of cells (v, k), [cells, 2]."""
        return cells

    @property
    @abstractmethod
    def lattice_rows(self) -> int:
        """The number of rows of the lattice."""

    @property
    @abstractmethod
    def rows_per_block(self) -> int:
        """The number of rows in a block of sensitivities."""

    @abstractmethod
    def rows(self, start: int, stop: int, columns: Ints | slice = _EVERY) -> Floats:
        """Return the cost on the lattice for start ≤ v < stop, [stop − start, columns], nats."""

    @abstractmethod
    def cost(self, cells: Ints) -> Floats:
        """Return the cost of given cells (v, k), [cells], nats."""

    @abstractmethod
    def steps_of(self, rows: Ints, column_rdp: Floats) -> dict[str, Floats]:
        """Return the RDP cost of cells by step of the mechanism, [cells] each.

        `column_rdp` is the cost of the cells' columns, [cells].
        """

    @property
    def sampled(self) -> bool:
        """Return whether sensitivities come from some rows only, so that they are not bounds.

        Such sensitivities serve to choose settings.
        """
        return False

    @cached_property
    def blocks(self) -> Floats:
        """The largest LS_0 in every block of the lattice, nats."""
        return local_sensitivity_blocks(
            self.rows,
            rows=self.lattice_rows,
            grid=self.lattice,
            rows_per_block=self.rows_per_block,
            sampled=self.sampled,
        )

    def price(self, tally: Tally, distances: Ints, few: Few = None) -> Price:
        """Return the RDP cost of the tallied queries, and LS_d at ascending distances.

        If a teacher votes on few queries, both are sums over the largest ones.
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
        """Return the largest RDP cost within each distance of these cells, [distances, cells]."""
        return costs_within(
            self.rows,
            rows=self.lattice_rows,
            grid=self.lattice,
            cells=self.on_lattice(cells),
            distances=distances,
        )

    def profile(self, tally: Tally, distances: Ints, few: Few = None) -> Floats:
        """Return u_d of the tallied queries at ascending distances, [distances], nats. SECRET."""
        total = CostSum(few, distances.size)
        step = max(1, _MOST_COSTS // distances.size)
        for start in range(0, len(tally.cells), step):
            part = slice(start, start + step)
            total.add(self.within(tally.cells[part], distances), tally.weights[part])
        return total.total


def priced_to(cap: Floats, scores: Floats, bounds: Callable[[Floats, Ints], Floats]) -> Floats:
    """Return the cost F at ascending scores, made non-decreasing, [orders, scores], nats.

    Above the first score whose cost reaches the cap, every score costs the cap, and F is not
    computed.

    Args:
        cap: the largest cost of any score, [orders].
        scores: ascending scores, [scores].
        bounds: returns F at some scores, for the orders with the given places.
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
    """A cost F̃ of one score alone: non-decreasing, and rounded up to the nodes of its grid.

    Attributes:
        bound: returns F at scores [scores], nats; a search makes F slightly non-monotone, and the
            running maximum repairs this.
        cap: returns the largest value of `bound`, nats.
    """

    order: float
    grid: ScoreGrid
    bound: Callable[[Floats], Floats]
    cap: Callable[[], float] = lambda: math.inf

    @property
    def lattice_rows(self) -> int:
        """The lattice has one row."""
        return 1

    @property
    def rows_per_block(self) -> int:
        """A block has one row."""
        return 1

    @cached_property
    def values(self) -> Floats:
        """F̃ at every node, [grid.size], nats."""
        cap = np.array([self.cap()])
        return priced_to(cap, self.grid.nodes(), lambda scores, _: self.bound(scores)[None])[0]

    def rows(self, start: int, stop: int, columns: Ints | slice = _EVERY) -> Floats:
        """Return the values, repeated for each row."""
        return np.repeat(self.values[columns][None, :], stop - start, axis=0)

    def cost(self, cells: Ints) -> Floats:
        """Return F̃ at cells (·, k)."""
        return self.values[cells[:, 1]]

    def steps_of(self, rows: Ints, column_rdp: Floats) -> dict[str, Floats]:
        """Return the cost of the only step."""
        return {"argmax": column_rdp}
