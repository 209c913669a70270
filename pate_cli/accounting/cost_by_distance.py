"""What queries could cost at any votes within a distance: the profile of a tested budget.

A query's score is a cell (v, k) of a lattice (see `sensitivity`): one vote moves it by at most one
row and K columns, and its cost ρ(v, k) is non-decreasing in k. So

  u_d = Σ over queries of max over |v' − v| ≤ d of ρ(v', min(k + dK, last))

bounds the cost at every vote file within d votes, and u_d(D') ≤ u_{d+1}(D) one vote apart, since
the window at D' lies in the next one at D. Windows are of cells, not of blocks.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pate_cli.accounting.score_grid import ScoreGrid
from pate_cli.core.arrays import Floats, Ints

_CHUNK_CELLS = 2_000_000

CostCells = Callable[[int, int, Ints], Floats]


def costs_within(
    cost_cells: CostCells, *, rows: int, grid: ScoreGrid, cells: Ints, distances: Ints
) -> Floats:
    """The most that queries in given cells could cost within given distances.

    Args:
        cost_cells: cost_cells(a, b, columns) returns ρ for rows a ≤ v < b and these columns,
            [b − a, columns], nats.
        rows: number of rows of the lattice.
        grid: its columns.
        cells: (v, k), [cells, 2].
        distances: d ≥ 0 in ascending order, [distances].

    Returns:
        [distances, cells], nats, non-decreasing in the distance.
    """
    found = np.zeros((distances.size, len(cells)))
    if found.size == 0:
        return found
    # Rows that no window reaches are left out. Where a window goes over the end of the lattice,
    # empty rows stand there: cut short, it would not lie in the next one of every neighbour.
    reach = int(distances[-1])
    lowest, highest = int(cells[:, 0].min()) - reach, int(cells[:, 0].max()) + reach + 1
    low, high = max(lowest, 0), min(highest, rows)
    padding = ((low - lowest, highest - high), (0, 0))
    row = cells[:, 0] - lowest
    columns = np.minimum(cells[:, 1] + grid.stride * distances[:, None], grid.size - 1)
    every = np.unique(columns)
    place = np.searchsorted(every, columns)
    chunk = max(1, _CHUNK_CELLS // (highest - lowest))
    for start in range(0, every.size, chunk):
        window = np.pad(cost_cells(low, high, every[start : start + chunk]), padding)
        within = (place >= start) & (place < start + chunk)
        width = 1  # window[j] is the maximum over rows j … j + width − 1
        for index in np.flatnonzero(within.any(axis=1)).tolist():
            distance = int(distances[index])
            while 2 * width <= 2 * distance + 1:
                window[:-width] = np.maximum(window[:-width], window[width:])
                width *= 2
            chosen = np.flatnonzero(within[index])
            column = place[index, chosen] - start
            # Two overlapping stretches cover the rows from row − d to row + d.
            first = row[chosen] - distance
            second = row[chosen] + distance + 1 - width
            found[index, chosen] = np.maximum(window[first, column], window[second, column])
    return np.maximum.accumulate(found, axis=0)
