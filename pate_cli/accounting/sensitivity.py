"""Local sensitivity at a distance, and smooth sensitivity, of a cost on a lattice of scores.

One routine for every mechanism. A query's score is a cell (v, k) of a lattice: v votes for the
plurality (one vote moves it by at most 1 row) and k on a `ScoreGrid` (by at most K columns). With
a cost ρ(v, k) non-decreasing in k,

  LS_0(v, k) = max over |v' − v| ≤ 1 of max(ρ(v', k + K) − ρ(v, k), ρ(v, k) − ρ(v', k − K)),
  LS_d(v, k) = max of LS_0 over |v' − v| ≤ d, |k' − k| ≤ dK,

and the sum over queries obeys LS_d(D) ≤ LS_{d+1}(D') for neighbours D, D' whose every query moves
by at most one vote, since the d-window at one lies inside the (d+1)-window at the other. Hence
SS_β = max_d e^{−βd} LS_d is β-smooth (Nissim, Raskhodnikova and Smith 2007; Theorem 24 of the
paper for the sum). No histogram is rebuilt and none of the paper's conditions C1–C8 is needed.

Windows are maxima over whole blocks of cells, rounded outwards, which keeps that inclusion. For
d ≥ D0 (public) the sum is replaced by rows × max LS_0, which no vote can change: stopping the
maximum at some d instead is *not* smooth, since score windows go on growing past it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np

from pate_cli.accounting.score_grid import ScoreGrid
from pate_cli.core.arrays import Floats, Ints
from pate_cli.core.checks import check_positive
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import ParameterError

CostRows = Callable[[int, int], Floats]

# As many at once as a processor keeps near, a third faster than more; but two rows beside each
# chunk are computed as well, so that it has some rows as long as memory allows.
_NEAR_CELLS, _CHUNK_ROWS, _MOST_CELLS = 50_000, 32, 1_000_000
# Differences of costs near 1e-2 carry this much round-off; added so that LS_0 stays above it.
_ROUND_OFF = 1e-15
# e^{−14} makes the vote-independent bound beyond D0 negligible.
_DISCOUNT = 14.0
_MOST_DISTANCES = 4096
# The least width of a block of scores that sensitivities at a distance are maxima over.
_BLOCK = 0.01


def distances_for(beta: float, *, teachers: int) -> int:
    """D0: how many distances are kept, e^{−β D0} ≤ 1e-6 or all teachers. Public."""
    # The quotient may be infinite.
    return max(1, min(teachers, math.ceil(min(_DISCOUNT / beta, _MOST_DISTANCES))))


def sparse_distances(beta: float, *, teachers: int, most: int) -> Ints:
    """About so many of the distances 0 … D0, on a geometric scale: enough for a choice."""
    farthest = distances_for(beta, teachers=teachers)
    ascending = np.geomspace(1.0, farthest + 1.0, most).astype(np.int64)
    return ascending[np.diff(ascending, prepend=0) > 0] - 1


def local_sensitivity_blocks(
    cost_rows: CostRows,
    *,
    rows: int,
    grid: ScoreGrid,
    rows_per_block: int,
    sampled: bool = False,
) -> Floats:
    """The largest LS_0 in every block of the lattice.

    Args:
        cost_rows: cost_rows(a, b) returns ρ for rows a ≤ v < b, [b − a, grid.size], nats,
            non-decreasing along the second axis.
        rows: number of rows of the lattice (1 when the mechanism does not look at v).
        grid: the columns.
        rows_per_block: rows per block, ≥ 1.
        sampled: look at the middle row of each block only; no bound then, but enough for a choice.

    Returns:
        [ceil(rows / rows_per_block), grid.size / grid.block], nats.
    """
    columns = np.arange(grid.size)
    up = np.minimum(columns + grid.stride, grid.size - 1)
    down = np.maximum(columns - grid.stride, 0)
    chunk = max(_NEAR_CELLS // grid.size, min(_CHUNK_ROWS, _MOST_CELLS // grid.size))
    chunk = max(chunk // rows_per_block, 1) * rows_per_block
    stretches = [(start, min(start + chunk, rows)) for start in range(0, rows, chunk)]
    if sampled:
        middles = [
            min(start + rows_per_block // 2, rows - 1) for start in range(0, rows, rows_per_block)
        ]
        stretches = [(middle, middle + 1) for middle in middles]
    parts = []
    for start, stop in stretches:
        low, high = max(start - 1, 0), min(stop + 1, rows)
        cost = cost_rows(low, high)
        if np.any(np.diff(cost, axis=1) < 0.0):
            raise ParameterError("the cost of a query must be non-decreasing in its score")
        ceiling, bottom = (
            _neighbour_rows(cost[:, up], np.maximum),
            _neighbour_rows(cost[:, down], np.minimum),
        )
        inner = slice(start - low, start - low + (stop - start))
        here = cost[inner]
        local = np.maximum(ceiling[inner] - here, here - bottom[inner]) + _ROUND_OFF
        by_column = local.reshape(local.shape[0], -1, grid.block).max(axis=2)
        parts.append(
            np.maximum.reduceat(by_column, np.arange(0, stop - start, rows_per_block), axis=0)
        )
    return np.concatenate(parts)


def _neighbour_rows(values: Floats, extreme: np.ufunc) -> Floats:
    """Elementwise extreme of each row with the rows above and below it."""
    result = values.copy()
    extreme(result[1:], values[:-1], out=result[1:])
    extreme(result[:-1], values[1:], out=result[:-1])
    return result


@dataclass(frozen=True)
class _Axis:
    """One direction of the lattice in blocks, where windows that grow with the distance are read.

    Empty blocks stand before the first, since windows may begin there.

    Attributes:
        places: position of each cell, empty blocks counted, [cells].
        size: positions in a block.
        pace: positions that one vote moves.
        padding: empty blocks.
    """

    places: Ints
    size: int
    pace: int
    padding: int

    @classmethod
    def of(cls, positions: Ints, *, size: int, pace: int, blocks: int, farthest: int) -> _Axis:
        padding = min(farthest * pace // size, blocks) + 1
        return cls(positions + padding * size, size, pace, padding)

    def narrowest(self, distance: int) -> int:
        """Blocks that every window at this distance has at least; none has two more."""
        return 2 * distance * self.pace // self.size + 1

    def reads(self, distance: int, width: int, length: int) -> list[Ints]:
        """Where maxima over `width` blocks are read that cover each cell's window, [cells].

        The width is more than half of the narrowest, so that two of them cover every window.
        """
        reach = distance * self.pace
        first = np.maximum((self.places - reach) // self.size, 0)
        if self.size == 1 and width == self.narrowest(distance):
            return [first]
        last = (self.places + reach) // self.size
        return [first, np.minimum(np.maximum(last - width + 1, 0), length - 1)]


def _widened(window: Floats, width: int, most: int) -> int:
    """Double the width of maxima, window[j] over blocks j … j + width − 1, in place; at most most.

    Returns:
        The width reached, more than half of `most` unless one window covers the whole axis.
    """
    while 2 * width <= most and width < window.shape[0]:
        np.maximum(window[:-width], window[width:], out=window[:-width])
        width *= 2
    return width


def sensitivity_curve(
    blocks: Floats,
    *,
    cells: Ints,
    weights: Ints,
    grid: ScoreGrid,
    rows_per_block: int,
    distances: Ints,
) -> Floats:
    """Σ over queries of LS_d at the given distances.

    Args:
        blocks: what `local_sensitivity_blocks` returned.
        cells: distinct occupied cells (v, k), [occupied, 2].
        weights: queries in each of them, [occupied].
        grid: the columns of the lattice.
        rows_per_block: rows per block.
        distances: d ≥ 0 in ascending order, [distances]; 0, 1, …, D0 − 1 for smooth sensitivity.

    Returns:
        [distances], nats, non-decreasing.

    Raises:
        ParameterError: distances that are empty, negative or not ascending.
    """
    if distances.size == 0 or distances[0] < 0 or np.any(np.diff(distances) <= 0):
        raise ParameterError("distances must be ascending whole numbers from 0 on")
    ceiling = float(blocks.max()) * float(weights.sum())
    curve = np.full(distances.size, ceiling)
    if weights.size == 0:
        return curve
    # Where one vote moves a score by less than a block should be wide, blocks are put together.
    together = max(1, math.floor(_BLOCK / (grid.step * grid.block)))
    joined = -(-blocks.shape[1] // together)
    ends = ((0, 0), (0, joined * together - blocks.shape[1]))
    table = np.pad(blocks, ends).reshape(len(blocks), joined, together).max(axis=2)
    farthest = int(distances[-1])
    row = _Axis.of(
        cells[:, 0], size=rows_per_block, pace=1, blocks=table.shape[0], farthest=farthest
    )
    column = _Axis.of(
        cells[:, 1] // grid.block,
        size=together,
        pace=grid.stride // grid.block,
        blocks=joined,
        farthest=farthest,
    )
    window = np.pad(table, ((row.padding, 0), (column.padding, 0)))
    high = wide = 1
    for index, distance in enumerate(distances.tolist()):
        high = _widened(window, high, row.narrowest(distance))
        wide = _widened(window.T, wide, column.narrowest(distance))
        local = np.zeros(weights.size)
        for at, across in itertools.product(
            row.reads(distance, high, window.shape[0]),
            column.reads(distance, wide, window.shape[1]),
        ):
            np.maximum(local, window[at, across], out=local)
        curve[index] = float(local @ weights)
        if curve[index] >= ceiling * (1.0 - 1e-12):
            curve[index:] = ceiling
            break
    return curve


def smooth_sensitivity(curve: Floats, *, ceiling: float, beta: float) -> float:
    """SS_β = max(max_{d < D0} e^{−βd} LS_d, e^{−βD0}·ceiling).

    Args:
        curve: LS_d for d = 0, …, D0 − 1 (nats), the sum over all queries.
        ceiling: the vote-independent bound on LS_d for every d (nats).
        beta: smoothness β > 0 per vote.

    Returns:
        Nats, > 0 unless nothing was asked.

    Raises:
        ParameterError: β not positive and finite.
    """
    beta = check_positive("beta", beta)
    within = np.append(np.minimum(curve, ceiling), ceiling)
    return float(np.max(within * np.exp(-beta * np.arange(within.size))))
