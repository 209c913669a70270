"""Tallies of cells with any number of columns, and costs that reach their cap."""

from __future__ import annotations

import numpy as np
import pytest

from pate_cli.accounting.cost_table import ScoreTable, Tally
from pate_cli.accounting.score_grid import ScoreGrid


@pytest.mark.parametrize("columns", [1, 2, 61, 64, 65, 200, 1_000])
@pytest.mark.parametrize("entries", [1, 2, 1_000])
def test_cells_are_counted_however_many_columns_there_are(columns, entries):
    random = np.random.default_rng(columns)
    cells = np.full((50, columns), 7, dtype=np.int64)
    # A few that differ: keys fit in a number for some of these shapes, and do not for others.
    cells[:, -4:] -= random.integers(0, entries, size=cells[:, -4:].shape)
    tally = Tally.of(cells)
    distinct, weights = np.unique(cells, axis=0, return_counts=True)
    np.testing.assert_array_equal(tally.cells, distinct)
    np.testing.assert_array_equal(tally.weights, weights)
    again, places = Tally.with_places(cells)
    np.testing.assert_array_equal(again.cells[places], cells)
    np.testing.assert_array_equal((tally + again).weights, 2 * weights)


@pytest.mark.parametrize("height", [-9.0, -0.3, 0.0, 0.7, 9.0])
def test_nodes_past_the_cap_cost_it_unseen(height):
    grid = ScoreGrid(step=0.01, stride=4, block=1, first=-400, size=800)
    seen = []

    def bound(scores):
        seen.append(scores.size)
        wobble = 1e-7 * np.sin(1e5 * scores)
        return np.minimum(np.exp(scores) + wobble, np.exp(height))

    whole = ScoreTable(10.0, grid, bound).values
    assert sum(seen) == grid.size
    np.testing.assert_array_equal(whole, np.maximum.accumulate(bound(grid.nodes())))
    seen.clear()
    capped = ScoreTable(10.0, grid, bound, cap=lambda: float(np.exp(height))).values
    np.testing.assert_array_equal(capped, whole)
    assert sum(seen) < grid.size or height > 0.0
