"""The lattice of scores: a vote is a whole number of cells; cost and sensitivity share a table."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lattices import COARSE
from pate_cli.accounting.cost_table import costs_within
from pate_cli.accounting.gaussian.noisy_max import (
    SCORE_ERROR,
    argmax_score_range,
    score_lipschitz,
    scores,
)
from pate_cli.accounting.gaussian.two_tails import two_tail_rdp
from pate_cli.accounting.score_grid import FINE, ScoreGrid
from slices import tries


def grid_of(*, resolution=FINE, **shape):
    lowest, highest = argmax_score_range(**shape)
    return ScoreGrid.spanning(
        lowest, highest, lipschitz=score_lipschitz(shape["sigma"]), resolution=resolution
    )


def grid_for(**changed):
    usual = {"teachers": 250, "classes": 10, "sigma": 40.0, "order": 14.0}
    return grid_of(**{**usual, **changed})


shapes = st.fixed_dictionaries(
    {
        "teachers": st.integers(1, 400),
        "classes": st.integers(2, 30),
        "sigma": st.floats(0.5, 300.0),
        "order": st.floats(1.1, 60.0),
        "resolution": st.sampled_from([FINE, COARSE]),
    }
)


@settings(max_examples=tries(100))
@given(shape=shapes)
def test_one_vote_is_a_whole_number_of_cells(shape):
    grid = grid_of(**shape)
    moved = grid.stride * grid.step
    assert grid.stride == grid.size or moved == pytest.approx(
        score_lipschitz(shape["sigma"]), rel=1e-12
    )
    assert grid.stride % grid.block == 0
    assert grid.size % grid.block == 0
    assert grid.step <= shape["resolution"].step * (1 + 1e-12)
    nodes = grid.nodes()
    assert nodes[0] == grid.floor
    np.testing.assert_allclose(np.diff(nodes), grid.step, rtol=1e-6)


@pytest.mark.parametrize("resolution", [FINE, COARSE])
@pytest.mark.parametrize("sigma", [1.0, 7.3, 40.0, 900.0])
def test_half_a_move_is_a_whole_number_of_blocks(sigma, resolution):
    lipschitz = score_lipschitz(sigma)
    grid = ScoreGrid.spanning(-5.0, 1.0, lipschitz=lipschitz, resolution=resolution, parts=2)
    assert grid.stride % (2 * grid.block) == 0
    assert grid.stride * grid.step == pytest.approx(lipschitz, rel=1e-12)
    higher = ScoreGrid.spanning(-3.2, 1.0, lipschitz=lipschitz, resolution=resolution, parts=2)
    assert grid.end(-5.0) == 0
    assert grid.end(-3.2) == higher.first - grid.first


@settings(max_examples=tries(100))
@given(shape=shapes, data=st.data())
def test_neighbours_are_within_a_stride_and_never_rounded_down(shape, data):
    grid = grid_of(**shape)
    counts = np.zeros(shape["classes"], dtype=np.int64)
    for name in data.draw(st.lists(st.integers(0, shape["classes"] - 1), max_size=8)):
        counts[name] += shape["teachers"] // 9
    counts[0] += shape["teachers"] - counts.sum()
    moved = counts.copy()
    source = data.draw(st.sampled_from(np.flatnonzero(counts).tolist()))
    moved[source] -= 1
    moved[data.draw(st.integers(0, shape["classes"] - 1))] += 1
    z = scores(np.stack([counts, moved]), sigma=shape["sigma"])
    cells = grid.cells(z)
    assert abs(int(cells[0]) - int(cells[1])) <= grid.stride
    at = grid.nodes()[cells]
    assert np.all(at >= z + SCORE_ERROR * (1 - 1e-6) - 1e-12)
    inside = z > grid.floor
    assert np.all(at[inside] <= z[inside] + grid.step + 3 * SCORE_ERROR)


@pytest.mark.parametrize("sigma", [0.7, 40.0, 123.4])
@pytest.mark.parametrize("above", [0.02, 0.5, 0.98])
def test_an_error_of_the_score_never_takes_it_to_a_node_below(sigma, above):
    """Exact scores a trifle above a node, computed a trifle below it: the next node is charged."""
    grid = grid_for(sigma=sigma)
    exact = grid.nodes()[:-1] + above * SCORE_ERROR
    for error in (-0.99, -above, 0.0, 0.99):
        charged = grid.cells(exact + error * SCORE_ERROR)
        assert np.all(grid.nodes()[charged] >= exact)
        assert np.all(charged <= np.arange(1, grid.size))


def test_scores_one_vote_apart_are_never_more_than_a_stride_apart():
    for sigma in (0.7, 3.0, 40.0, 123.4):
        grid = grid_for(sigma=sigma)
        inside = np.random.default_rng(1).uniform(grid.floor, 1.0 - grid.step, 200_000)
        nodes = grid.nodes()[:-1]
        # An exact score moves by at most μ, and both computed ones may be half an error off.
        moved = np.sqrt(2.0) / sigma + SCORE_ERROR
        for z in (inside, nodes, nodes - SCORE_ERROR, np.nextafter(nodes, -np.inf)):
            away = grid.cells(z + moved) - grid.cells(z)
            assert away.max() <= grid.stride


def test_clamped_scores_cost_nothing_to_speak_of():
    for sigma, order in ((40.0, 14.0), (2.0, 3.0), (200.0, 60.0), (10.0, 30.0)):
        grid = grid_for(teachers=10_000, sigma=sigma, order=order)
        floor = two_tail_rdp(np.array([grid.floor]), sigma=sigma, orders=np.array([order]))
        assert float(floor[0, 0]) < 1e-13
        assert grid.cells(np.array([-1e6, grid.floor - 1.0])).tolist() == [0, 0]


def test_the_highest_score_has_a_node():
    for classes in (2, 3, 10, 150):
        grid = grid_for(classes=classes)
        z = scores(np.full((1, classes), 5), sigma=40.0)
        assert grid.nodes()[grid.cells(z)[0]] >= z[0]


def test_noise_of_next_to_nothing_moves_a_score_over_all_cells():
    """One vote is then 10^17 cells, and a few hundred of them no 64-bit number."""
    grid = grid_for(sigma=1e-15)
    assert grid.stride <= grid.size
    costs = np.arange(grid.size, dtype=np.float64)
    found = costs_within(
        lambda start, stop, columns: np.tile(costs[columns], (stop - start, 1)),
        rows=1,
        grid=grid,
        cells=np.array([[0, 3]]),
        distances=np.array([0, 1, 255]),
    )
    assert found[:, 0].tolist() == [3.0, grid.size - 1, grid.size - 1]
