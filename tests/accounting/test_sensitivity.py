"""Local sensitivity against a naive loop, and the sanitized release against brute force."""

import math
from dataclasses import dataclass

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pate_cli.accounting.score_grid import ScoreGrid
from pate_cli.accounting.sensitivity import (
    gnss_costs,
    gnss_rdp,
    largest_beta,
    largest_order,
    local_sensitivity_blocks,
    sensitivity_curve,
    smooth_sensitivity,
)
from pate_cli.core.errors import ParameterError
from refusals import refusal
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


@pytest.mark.parametrize("step", [0.1, 0.002])
@settings(max_examples=tries(60))
@given(data=st.data())
def test_blocks_round_windows_outwards_and_no_further(step, data):
    """Narrow blocks are joined first, and only rounded outwards."""
    lattice = data.draw(lattices(step=step))
    local = naive_local(lattice)
    distances = range(lattice.rows + lattice.grid.size + 2 if step == 0.1 else 6)
    found = lattice.per_cell(distances)
    for v, k in lattice.all_cells():
        cell = [naive_at(lattice, local, v, k, d, blocks=False) for d in distances]
        assert np.all(found[v, k] >= np.array(cell))
        if step == 0.1:
            block = [naive_at(lattice, local, v, k, d, blocks=True) for d in distances]
            np.testing.assert_allclose(found[v, k], block, rtol=1e-12, atol=3 * TINY)


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


GOLDEN = [
    (0.0329, 6.23, 14, 1.6070558409164),
    (0.0533, 4.88, 7.5, 0.63352783004193),
    (0.0310, 7.92, 15.5, 1.7625577244412),
    (0.0205, 11.9, 20.5, 0.41654994653089),
    (0.009, 26.4, 50, 0.33957143139666),
    (0.008, 38.7, 50, 0.087543162639957),
    (0.1, 3, 4, 0.74366324158868),
    (0.01, 10, 10, 0.062258610194617),
    (0.02, 8, 2, 0.017123253226453),
]


def gaussian_rdp(mean, deviation, other_mean, other_deviation, order):
    """D_λ(N(mean, deviation²) ‖ N(other_mean, other_deviation²)), infinite where it diverges."""
    mixed = order * other_deviation**2 + (1.0 - order) * deviation**2
    with np.errstate(invalid="ignore", divide="ignore"):
        location = order * (mean - other_mean) ** 2 / (2.0 * mixed)
        logs = (1.0 - order) * np.log(deviation) + order * np.log(other_deviation)
        spread = (np.log(mixed) / 2.0 - logs) / (1.0 - order)
        return np.where(mixed > 0.0, location + spread, np.inf)


def brute_force(beta, sigma, order, shift):
    """Over r = SS'/SS, both signs of f − f' up to min(SS, SS'), and both directions."""
    r = np.exp(np.linspace(-beta, beta, 801))[:, None]
    moved = np.minimum(1.0, r) * np.linspace(-1.0, 1.0, 41)[None, :]
    here, there = shift, moved + r * shift
    return max(
        float(gaussian_rdp(here, sigma, there, r * sigma, order).max()),
        float(gaussian_rdp(there, r * sigma, here, sigma, order).max()),
    )


@pytest.mark.parametrize(("beta", "sigma", "order", "true"), GOLDEN)
def test_golden(beta, sigma, order, true):
    found = gnss_rdp(beta=beta, sigma=sigma, order=order)
    assert found == pytest.approx(true, rel=1e-10)
    assert found == pytest.approx(brute_force(beta, sigma, order, 0.0), rel=1e-10)


@settings(max_examples=tries(200))
@given(
    order=st.floats(1.05, 80.0),
    share=st.floats(0.001, 0.97),
    sigma=st.floats(0.5, 60.0),
    kappa=st.one_of(st.just(0.0), st.floats(0.0, 8.0)),
)
def test_the_supremum_exactly(order, share, sigma, kappa):
    beta, shift = share * largest_beta(order), kappa * sigma
    found = gnss_rdp(beta=beta, sigma=sigma, order=order, shift=shift)
    worst = brute_force(beta, sigma, order, shift)
    assert found >= worst * (1.0 - 1e-9)
    assert found <= worst * (1.0 + 1e-7) + 1e-13  # attained at r = e^{−β}
    at_the_end = float(
        gaussian_rdp(
            shift, sigma, shift * math.exp(-beta) - math.exp(-beta), sigma * math.exp(-beta), order
        )
    )
    assert found == pytest.approx(at_the_end, rel=1e-7, abs=1e-13)


def test_many_releases_cost_what_each_does_and_are_infinite_where_it_is_refused():
    betas, sigmas = np.array([0.01, 0.05, 0.06, 0.5]), np.array([3.0, 40.0])
    found = gnss_costs(betas[:, None], sigmas, order=10.0, quantile=1.5)
    for beta, line in zip(betas.tolist(), found, strict=True):
        for sigma, cost in zip(sigmas.tolist(), line.tolist(), strict=True):
            told = {"beta": beta, "sigma": sigma, "order": 10.0, "shift": 1.5 * sigma}
            if beta < 0.0527:  # ½ log(1 + 1/9)
                assert cost == pytest.approx(gnss_rdp(**told), rel=1e-12)
            else:
                assert cost == math.inf
                with pytest.raises(ParameterError, match="infinite privacy cost"):
                    gnss_rdp(**told)


def test_small_beta_keeps_its_digits():
    for beta in (1e-12, 1e-9, 1e-6, 1e-3):
        with mp.workdps(60):
            b, s, lam, k = mp.mpf(beta), mp.mpf(40), mp.mpf(20), mp.mpf(100)
            w = 1 - (lam - 1) * mp.expm1(2 * b)
            mean = lam * (1 + k * mp.expm1(b)) ** 2 / (2 * s**2 * w)
            only_spread = -b - mp.log(w) / (2 * (lam - 1))
            true = float(mean + only_spread)
            spread = float(only_spread)
        found = gnss_rdp(beta=beta, sigma=40.0, order=20.0, shift=100.0)
        assert found == pytest.approx(true, rel=1e-13)
        # With so much noise that only the deviations differ.
        assert gnss_rdp(beta=beta, sigma=1e150, order=20.0) == pytest.approx(spread, rel=1e-6)


@settings(max_examples=tries(100))
@given(order=st.floats(1.01, 1000.0))
def test_the_two_ends_of_the_range_are_inverse(order):
    beta = largest_beta(order)
    assert largest_order(beta) == pytest.approx(order, rel=1e-9)
    assert math.isfinite(gnss_rdp(beta=beta * (1 - 1e-9), sigma=5.0, order=order))
    with pytest.raises(ParameterError, match="infinite privacy cost"):
        gnss_rdp(beta=beta * (1 + 1e-9), sigma=5.0, order=order)
    assert brute_force(beta * (1 + 1e-9), 5.0, order, 0.0) == np.inf


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"beta": 400.0},
            "`beta` 400 at order 9 has infinite privacy cost; `beta` must be below 0.0588915 at "
            "this order, or `order` below 1 at this beta",
        ),
        (
            {"beta": 0.05, "sigma": 6.0, "order": 14.0},
            "`beta` 0.05 at order 14 has infinite privacy cost; "
            "`beta` must be below 0.037054 at this order, or `order` below 10.5083 at this beta",
        ),
        (
            {"sigma": 1e-200},
            "`sigma_release` 1e-200 is so small that its privacy cost is infinite; "
            "give a larger number",
        ),
        (
            {"sigma": 5e-324},
            "`sigma_release` 4.94066e-324 is so small that its privacy cost is infinite; "
            "give a larger number",
        ),
    ],
)
def test_absurd_release_parameters_are_refused_in_words(change, message):
    given = {"beta": 0.01, "sigma": 5.0, "order": 9.0} | change
    assert refusal(ParameterError, gnss_rdp, **given) == message
