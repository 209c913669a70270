"""A grid of scores, and the lattice on which a vote moves a Confident query least."""

import functools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphs import Graph
from lattices import COARSE
from pate_cli.accounting.cost_table import costs_within
from pate_cli.accounting.gaussian.noisy_max import (
    SCORE_ERROR,
    score_lipschitz,
    scores,
)
from pate_cli.accounting.gaussian.two_tails import two_tail_rdp
from pate_cli.accounting.score_grid import FINE, ScoreGrid
from pate_cli.accounting.tested_budget import DISTANCES
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.mechanisms.gnmax import GNMax
from pate_cli.mechanisms.interactive import InteractiveGNMax
from slices import some, tries


def range_of(*, teachers, classes, sigma, order):
    return GNMax(teachers, classes, sigma2=sigma).score_range(order)


def grid_of(*, resolution=FINE, **shape):
    lowest, highest = range_of(**shape)
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
    exact = {name: value for name, value in shape.items() if name != "resolution"}
    assert nodes[-1] >= range_of(**exact)[1]


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


def test_noise_of_next_to_nothing_moves_a_score_over_all_cells():
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


EVERY = np.arange(DISTANCES)
# (τ, m, σ): near ties and clear votes, little noise and much, scores that are clamped from below.
SHAPES = [
    (20, 3, 2.0),
    (20, 2, 3.0),
    (250, 10, 40.0),
    (300, 3, 10.0),
    (60, 4, 1.0),
    (60, 30, 6.0),
    (9, 5, 0.7),
    (12, 3, 50.0),
    (40, 200, 3.0),
]
shapes_of_x = pytest.mark.parametrize("shape", some(SHAPES, 2), ids="{0[0]}x{0[1]}-{0[2]:g}".format)


def histograms(random, teachers, classes):
    """Draws of all kinds: from any distribution, of equal counts, with votes missing."""
    kind = random.integers(3)
    if kind == 0:
        return random.multinomial(teachers, random.dirichlet(np.full(classes, 0.3)))
    if kind == 1:
        return random.multinomial(random.integers(teachers + 1), np.full(classes, 1 / classes))
    counts, high = np.zeros(classes, dtype=np.int64), random.integers(1, teachers + 1)
    tied = min(classes, teachers // high)
    counts[:tied] = high
    counts[-1] += min(teachers - tied * high, high - counts[-1])
    return counts


@functools.cache
def pairs(teachers, classes, number=1500):
    """Neighbours: a vote moved, cast or withdrawn, mostly among the first classes; [2, number]."""
    random = np.random.default_rng(teachers + classes)
    here = np.array([histograms(random, teachers, classes) for _ in range(number)])
    there = here.copy()
    for counts in there:
        order = np.argsort(-counts)
        first, second = (
            order[random.integers(min(classes, random.choice([3, classes])))] for _ in range(2)
        )
        kind = random.integers(4)
        if kind != 0 and counts[first] > 0:
            counts[first] -= 1
        if kind != 1 and counts.sum() < teachers:
            counts[second] += 1
    return here, there


@shapes_of_x
def test_what_a_vote_does_to_the_score_hangs_on_what_it_does_to_the_plurality(shape):
    """Up: z falls by L/2 to L. Level: it moves by L/2 at most. Down: it rises by L/2 to L."""
    teachers, classes, sigma = shape
    files = pairs(teachers, classes)
    here, there = (scores(counts, sigma=sigma) for counts in files)
    moved = (there - here) * sigma / np.sqrt(2.0)
    raised = files[1].max(axis=1) - files[0].max(axis=1)
    seen = np.minimum(here, there) > -36.0
    slack = 2.0 * SCORE_ERROR * sigma
    for step, low, high in ((1, -1.0, -0.5), (0, -0.5, 0.5), (-1, 0.5, 1.0)):
        of = moved[seen & (raised == step)]
        assert of.size > 20
        assert low - slack <= of.min()
        assert of.max() <= high + slack
    half = score_lipschitz(2.0 * sigma)
    total = np.abs(there - here + half * raised)[seen]
    assert 0.9 * half * (sigma < 11.0) <= total.max() <= half


def of_shape(shape):
    teachers, classes, sigma = shape
    return ConfidentGNMax(
        teachers, classes, threshold=0.7 * teachers, sigma1=0.4 * teachers, sigma2=sigma
    )


@shapes_of_x
@pytest.mark.parametrize(("order", "resolution"), some([(1.5, COARSE), (9.0, FINE)], 3))
def test_every_distance_of_one_lies_in_the_next_of_its_neighbour(shape, order, resolution):
    """(P2) at all 64 distances, for cells of a deeper grid as well."""
    mechanism = of_shape(shape)
    table, deep = (mechanism.cost_table(each, resolution) for each in (order, 30.0))
    for grid in (table.grid, deep.grid):
        cells = [
            np.stack([each[:, 0], table.grid.merged(each[:, 1], grid)], axis=1)
            for each in (mechanism.cells_of(counts, grid) for counts in pairs(*shape[:2], 300))
        ]
        here, there = (table.on_lattice(each) for each in cells)
        rows, columns = np.abs(here - there).max(axis=0)
        assert rows <= 1
        assert columns <= table.lattice.stride
        one, other = (table.within(each, EVERY) for each in cells)
        for within, beside, each in ((one, other, cells[0]), (other, one, cells[1])):
            assert np.all(within[0] >= table.cost(each) * (1.0 - 1e-12))
            assert np.all(within[:-1] <= beside[1:] * (1.0 + 1e-12))
    # Where it is used, it is never above what v and z move by apart.
    if table.rivals is not None:
        apart = replace(table, rivals=None)
        sharp, wide = (each.within(cells[0], EVERY) for each in (table, apart))
        assert np.all(sharp <= wide * (1.0 + 1e-12))
        assert shape[0] < 250 or sharp.sum() < 0.99 * wide.sum()


def test_where_v_is_no_count_of_the_winner_or_columns_are_too_many_they_move_apart():
    alone = {"threshold": 20.0, "sigma1": 9.0}
    untied = [
        InteractiveGNMax(30, 3, sigma2=5.0, **alone),
        ConfidentGNMax(30, 3, sigma2=5.0, teachers_per_record=2, **alone),
        ConfidentGNMax(30, 3, sigma2=1e-3, **alone),
    ]
    for mechanism in untied:
        table = mechanism.cost_table(3.0)
        assert table.rivals is None
        assert table.lattice == table.grid == mechanism.argmax.cost_table(3.0).grid


@pytest.mark.parametrize(("teachers", "classes", "sigma"), [(8, 3, 1.5), (6, 4, 3.0), (9, 2, 2.0)])
def test_nothing_within_so_many_votes_costs_more(teachers, classes, sigma):
    mechanism = of_shape((teachers, classes, sigma))
    graph = Graph.of(teachers, classes, missing=2)
    for order in (1.5, 4.0, 20.0):
        table = mechanism.cost_table(order)
        cells = mechanism.cells_of(graph.histograms, table.grid)
        cost = table.cost(cells)
        within = table.within(cells, np.arange(teachers + 1))
        for distance, found in enumerate(within):
            near = np.where(graph.distances <= distance, cost[None, :], 0.0).max(axis=1)
            assert np.all(near <= found * (1.0 + 1e-12))
