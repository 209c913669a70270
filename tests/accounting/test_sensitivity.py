"""Local sensitivity on a lattice against a naive loop over every cell of every window."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pate_cli.accounting.score_grid import ScoreGrid
from pate_cli.accounting.sensitivity import (
    local_sensitivity_blocks,
    sensitivity_curve,
    smooth_sensitivity,
)
from pate_cli.core.errors import ParameterError
from slices import some, tries

# Added to every LS_0 by the code, so that round-off cannot hide a difference of costs.
TINY = 1e-15


@dataclass(frozen=True)
class Lattice:
    cost: np.ndarray
    grid: ScoreGrid
    rows_per_block: int

    @property
    def rows(self):
        return self.cost.shape[0]

    def blocks(self):
        return local_sensitivity_blocks(
            lambda a, b: self.cost[a:b],
            rows=self.rows,
            grid=self.grid,
            rows_per_block=self.rows_per_block,
        )

    def curve(self, cells, distances, weights=None):
        cells = np.atleast_2d(np.asarray(cells, dtype=np.int64))
        each = np.ones(len(cells), dtype=np.int64) if weights is None else weights
        return sensitivity_curve(
            self.blocks(),
            cells=cells,
            weights=each,
            grid=self.grid,
            rows_per_block=self.rows_per_block,
            distances=np.asarray(distances, dtype=np.int64),
        )

    def all_cells(self):
        return [(v, k) for v in range(self.rows) for k in range(self.grid.size)]

    def per_cell(self, distances):
        """LS_d of every cell, [rows, size, distances]."""
        rows = [self.curve([cell], distances) for cell in self.all_cells()]
        return np.array(rows).reshape(self.rows, self.grid.size, -1)


def naive_local(lattice):
    """The largest change of cost under one vote, cell by cell."""
    cost, stride = lattice.cost, lattice.grid.stride
    local = np.zeros_like(cost)
    for v, k in lattice.all_cells():
        for row in range(max(v - 1, 0), min(v + 1, lattice.rows - 1) + 1):
            for column in range(max(k - stride, 0), min(k + stride, lattice.grid.size - 1) + 1):
                local[v, k] = max(local[v, k], abs(cost[row, column] - cost[v, k]))
    return local


def naive_at(lattice, local, v, k, distance, *, blocks):
    """Its maximum over the window at a distance; over every block it touches when `blocks`."""
    low, high = v - distance, v + distance
    left, right = k - distance * lattice.grid.stride, k + distance * lattice.grid.stride
    if blocks:
        rows, columns = lattice.rows_per_block, lattice.grid.block
        low, high = low // rows * rows, (high // rows + 1) * rows - 1
        left, right = left // columns * columns, (right // columns + 1) * columns - 1
    return local[max(low, 0) : high + 1, max(left, 0) : right + 1].max()


@st.composite
def lattices(draw, step=0.1):
    block = draw(st.integers(1, 3))
    stride = block * draw(st.integers(1, 3))
    size = block * draw(st.integers(1, 6))
    rows = draw(st.integers(1, 9))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    # Rare jumps, so that maxima sit in few cells and a window off by one misses them.
    steps = random.exponential(size=(rows, size)) * (random.random((rows, size)) < 0.3)
    grid = ScoreGrid(step=step, stride=stride, block=block, first=-3, size=size)
    return Lattice(np.cumsum(steps, axis=1), grid, draw(st.integers(1, 4)))


@given(lattices())
@settings(max_examples=tries(60))
def test_blocks_round_windows_outwards_and_no_further(lattice):
    local = naive_local(lattice)
    distances = range(lattice.rows + lattice.grid.size + 2)
    found = lattice.per_cell(distances)
    for v, k in lattice.all_cells():
        cell = [naive_at(lattice, local, v, k, d, blocks=False) for d in distances]
        block = [naive_at(lattice, local, v, k, d, blocks=True) for d in distances]
        assert np.all(found[v, k] >= np.array(cell))
        np.testing.assert_allclose(found[v, k], block, rtol=1e-12, atol=3 * TINY)


@given(lattices(step=0.002))
@settings(max_examples=tries(60))
def test_narrow_blocks_are_joined_outwards(lattice):
    local, distances = naive_local(lattice), range(6)
    found = lattice.per_cell(distances)
    for v, k in lattice.all_cells():
        cell = [naive_at(lattice, local, v, k, d, blocks=False) for d in distances]
        assert np.all(found[v, k] >= np.array(cell))


@given(lattices(), st.sets(st.integers(0, 25), min_size=1), st.integers(0, 2**32 - 1))
@settings(max_examples=tries(60))
def test_sparse_distances_agree_with_the_dense_curve(lattice, distances, seed):
    random = np.random.default_rng(seed)
    cells = np.unique(
        np.column_stack(
            [random.integers(lattice.rows, size=5), random.integers(lattice.grid.size, size=5)]
        ),
        axis=0,
    )
    weights = random.integers(1, 1000, size=len(cells))
    dense = lattice.curve(cells, range(26), weights)
    sparse = lattice.curve(cells, sorted(distances), weights)
    np.testing.assert_allclose(sparse, dense[sorted(distances)], rtol=1e-11)
    assert np.all(np.diff(dense) >= -1e-11 * dense[-1])
    each = [weights[i] * lattice.curve([cell], range(26)) for i, cell in enumerate(cells)]
    np.testing.assert_allclose(dense, np.sum(each, axis=0), rtol=1e-11)
    ceiling = float(lattice.blocks().max()) * weights.sum()
    assert np.all(dense <= ceiling * (1.0 + 1e-12))
    assert dense[-1] == pytest.approx(ceiling)  # 25 votes span any of these lattices


@pytest.mark.parametrize(
    ("rows", "size", "rows_per_block"), some([(9, 300_000, 2), (4, 1_200_000, 1)], 2)
)
def test_a_lattice_too_large_for_one_piece_is_cut_without_a_trace(rows, size, rows_per_block):
    random = np.random.default_rng(rows)
    cost = np.cumsum(random.random((rows, size)) < 0.3, axis=1, dtype=np.float64)
    cost += np.arange(rows)[:, None] ** 2
    lattice = Lattice(cost, ScoreGrid(0.1, stride=6, block=3, first=0, size=size), rows_per_block)
    above = np.concatenate([cost[:, 6:], np.repeat(cost[:, -1:], 6, axis=1)], axis=1)
    below = np.concatenate([np.repeat(cost[:, :1], 6, axis=1), cost[:, :-6]], axis=1)
    local = np.zeros_like(cost)
    for move in (-1, 0, 1):
        here = slice(max(0, -move), rows - max(0, move))
        there = slice(max(0, move), rows - max(0, -move))
        local[here] = np.maximum(local[here], above[there] - cost[here])
        local[here] = np.maximum(local[here], cost[here] - below[there])
    wanted = np.maximum.reduceat(
        local.reshape(rows, -1, 3).max(axis=2), np.arange(0, rows, rows_per_block), axis=0
    )
    np.testing.assert_allclose(lattice.blocks(), wanted, rtol=0.0, atol=2 * TINY)


def test_no_queries_cost_nothing():
    lattice = Lattice(np.array([[0.0, 1.0]]), ScoreGrid(1.0, 1, 1, 0, 2), 1)
    empty = np.zeros((0, 2), dtype=np.int64)
    curve = lattice.curve(empty.reshape(0, 2), range(3), np.zeros(0, dtype=np.int64))
    np.testing.assert_array_equal(curve, np.zeros(3))


def test_a_cost_that_falls_with_the_score_is_refused():
    lattice = Lattice(np.array([[0.0, 1.0, 0.5]]), ScoreGrid(1.0, 1, 1, 0, 3), 1)
    with pytest.raises(ParameterError) as caught:
        lattice.blocks()
    assert str(caught.value) == "`cost_rows` must return costs that never fall as scores rise"


@given(st.lists(st.floats(0.0, 1e3), max_size=30), st.floats(0.0, 1e3), st.floats(1e-3, 3.0))
def test_smooth_sensitivity_is_the_largest_discounted_value(curve, ceiling, beta):
    found = smooth_sensitivity(np.array(curve), ceiling=ceiling, beta=beta)
    wanted = ceiling * math.exp(-beta * len(curve))
    for distance, value in enumerate(curve):
        wanted = max(wanted, min(value, ceiling) * math.exp(-beta * distance))
    assert found == pytest.approx(wanted, rel=1e-12)
