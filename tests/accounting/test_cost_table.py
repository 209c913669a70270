"""Tallies of cells with any number of columns."""

from __future__ import annotations

import numpy as np
import pytest

from pate_cli.accounting.cost_table import Tally


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
