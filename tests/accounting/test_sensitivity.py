"""Local sensitivity on a lattice against a naive loop over every cell of every window."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pate_cli.accounting import sensitivity
from pate_cli.accounting.score_grid import ScoreGrid
from pate_cli.accounting.sensitivity import (
    local_sensitivity_blocks,
    sensitivity_curve,
    smooth_sensitivity,
)
from pate_cli.errors import ParameterError

# Added to every LS_0 by the code, so that round-off cannot hide a difference of costs.
TINY = 1e-15


@dataclass(frozen=True)
class Lattice:
    cost: np.ndarray
    grid: ScoreGrid
    vote_block: int

    @property
    def votes(self):
        return self.cost.shape[0]

    def blocks(self):
        return local_sensitivity_blocks(
            lambda a, b: self.cost[a:b],
            votes=self.votes,
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
        return [(v, k) for v in range(self.votes) for k in range(self.grid.size)]

    def per_cell(self, distances):
        """LS_d of every cell, [votes, size, distances]."""
        rows = [self.curve([cell], distances) for cell in self.all_cells()]
        return np.array(rows).reshape(self.votes, self.grid.size, -1)


def naive_local(lattice):
    """The largest change of cost under one vote, cell by cell."""
    cost, reach = lattice.cost, lattice.grid.stride
    local = np.zeros_like(cost)
    for v, k in lattice.all_cells():
        for row in range(max(v - 1, 0), min(v + 1, lattice.votes - 1) + 1):
            for column in range(max(k - reach, 0), min(k + reach, lattice.grid.size - 1) + 1):
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
def lattices(draw, *, single_cells=False):
    block = 1 if single_cells else draw(st.integers(1, 3))
    reach = block * draw(st.integers(1, 3))
    size = block * draw(st.integers(1, 6))
    votes = draw(st.integers(1, 9))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    # Rare jumps, so that maxima sit in few cells and a window off by one misses them.
    steps = random.exponential(size=(votes, size)) * (random.random((votes, size)) < 0.3)
    grid = ScoreGrid(step=0.1, teachers_per_record=reach, block=block, first=-3, size=size)
    vote_block = 1 if single_cells else draw(st.integers(1, 4))
    return Lattice(np.cumsum(steps, axis=1), grid, vote_block)


@given(lattices(single_cells=True))
@settings(max_examples=60, deadline=None)
def test_single_cells_are_exact(lattice):
    local = naive_local(lattice)
    distances = range(lattice.votes + lattice.grid.size + 2)
    found = lattice.per_cell(distances)
    for v, k in lattice.all_cells():
        wanted = [naive_at(lattice, local, v, k, d, blocks=False) for d in distances]
        np.testing.assert_allclose(found[v, k], wanted, rtol=1e-12, atol=3 * TINY)


@given(lattices())
@settings(max_examples=60, deadline=None)
def test_blocks_round_windows_outwards_and_no_further(lattice):
    local = naive_local(lattice)
    distances = range(lattice.votes + lattice.grid.size + 2)
    found = lattice.per_cell(distances)
    for v, k in lattice.all_cells():
        cell = [naive_at(lattice, local, v, k, d, blocks=False) for d in distances]
        block = [naive_at(lattice, local, v, k, d, blocks=True) for d in distances]
        assert np.all(found[v, k] >= np.array(cell))
        np.testing.assert_allclose(found[v, k], block, rtol=1e-12, atol=3 * TINY)


@given(lattices())
@settings(max_examples=60, deadline=None)
def test_a_window_lies_inside_the_next_one_of_every_neighbour(lattice):
    reach = lattice.grid.stride
    found = lattice.per_cell(range(8))
    for v, k in lattice.all_cells():
        near = found[
            max(v - 1, 0) : v + 2, max(k - reach, 0) : k + reach + 1, 1:
        ]  # LS_{d+1} of all neighbours
        assert np.all(found[v, k, :-1] <= near * (1.0 + 1e-11))


@given(lattices(), st.sets(st.integers(0, 25), min_size=1), st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_sparse_distances_agree_with_the_dense_curve(lattice, distances, seed):
    random = np.random.default_rng(seed)
    cells = np.unique(
        np.column_stack(
            [random.integers(lattice.votes, size=5), random.integers(lattice.grid.size, size=5)]
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
    assert dense[-1] == pytest.approx(ceiling)  # 25 votes reach across any of these lattices


@given(lattices(), st.integers(1, 40))
@settings(max_examples=40, deadline=None)
def test_results_do_not_depend_on_how_the_lattice_is_cut_into_pieces(lattice, cells):
    whole = lattice.blocks()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sensitivity, "_CHUNK_CELLS", cells)
        np.testing.assert_array_equal(lattice.blocks(), whole)


def test_no_queries_cost_nothing():
    lattice = Lattice(np.array([[0.0, 1.0]]), ScoreGrid(1.0, 1, 1, 0, 2), 1)
    empty = np.zeros((0, 2), dtype=np.int64)
    curve = lattice.curve(empty.reshape(0, 2), range(3), np.zeros(0, dtype=np.int64))
    np.testing.assert_array_equal(curve, np.zeros(3))


def test_a_cost_that_falls_with_the_score_is_refused():
    lattice = Lattice(np.array([[0.0, 1.0, 0.5]]), ScoreGrid(1.0, 1, 1, 0, 3), 1)
    with pytest.raises(ParameterError) as caught:
        lattice.blocks()
    assert str(caught.value) == "the cost of a query must be non-decreasing in its score"


@pytest.mark.parametrize("distances", [[], [-1, 0], [0, 0], [2, 1]])
def test_distances_must_ascend_from_zero(distances):
    lattice = Lattice(np.array([[0.0, 1.0]]), ScoreGrid(1.0, 1, 1, 0, 2), 1)
    with pytest.raises(ParameterError) as caught:
        lattice.curve([[0, 0]], distances)
    assert str(caught.value) == "distances must be ascending whole numbers from 0 on"


@given(
    st.lists(st.floats(0.0, 1e3), max_size=30),
    st.floats(0.0, 1e3),
    st.floats(1e-3, 3.0),
)
def test_smooth_sensitivity_is_the_largest_discounted_value(curve, ceiling, beta):
    found = smooth_sensitivity(np.array(curve), ceiling=ceiling, beta=beta)
    wanted = ceiling * math.exp(-beta * len(curve))
    for distance, value in enumerate(curve):
        wanted = max(wanted, min(value, ceiling) * math.exp(-beta * distance))
    assert found == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("beta", [0.0, -1.0, math.inf, math.nan])
def test_beta_must_be_positive(beta):
    with pytest.raises(ParameterError, match=rf"^beta must be positive and finite, got {beta}$"):
        smooth_sensitivity(np.ones(3), ceiling=1.0, beta=beta)
