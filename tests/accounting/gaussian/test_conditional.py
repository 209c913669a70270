"""The conditional bound against exact laws on whole graphs, direct integrals, and mutants."""

import itertools

import numpy as np
import pytest
from scipy.special import log_ndtr

from divergences import renyi
from graphs import Graph
from laws import best_of_law, gaussian_argmax_law, three_outcome_law
from pate_cli.accounting.gaussian.conditional import (
    Balls,
    ConditionalSize,
    Lattice,
    conditional_rdp,
    lone_vote,
    moved_vote,
)
from pate_cli.accounting.gaussian.worst_vote import worst_argmax_rdp
from pate_cli.core.errors import ParameterError
from slices import some

HISTOGRAMS = [
    [127, 71, 10, 9, 7, 6, 6, 5, 5, 4],
    [130, 120, 0, 0, 0, 0, 0, 0, 0, 0],
    [200, 30, 20, 0, 0, 0, 0, 0, 0, 0],
    [96, 61, 55, 36, 1, 1, 0, 0, 0, 0],
    [25, 25, 25, 25, 25, 25, 25, 25, 25, 25],
]


def cost(histograms, *, teachers, sigma, order, distances=(0,), cap=1e6):
    return conditional_rdp(
        np.array(histograms),
        teachers=teachers,
        sigma=sigma,
        order=order,
        distances=np.array(distances),
        cap=cap,
    )


def expected_moment(counts, a, b, sigma, order, moves=((0.0, 0.0),)):
    """E_C of the largest h over some moves of a and b (votes), for a vote from a to b."""
    rest = np.array([n for i, n in enumerate(counts) if i not in (a, b)]) / sigma
    c, density = best_of_law(rest)
    worst = np.zeros(c.size)
    for one, other in moves:
        x, y = (counts[a] + one) / sigma - c, (counts[b] + other) / sigma - c
        here = three_outcome_law(x, y)
        there = three_outcome_law(x - 1.0 / sigma, y + 1.0 / sigma)
        moments = np.expm1((order - 1.0) * renyi(here.T, there.T, order))
        worst = np.maximum(worst, moments)
    return float(density @ worst)


@pytest.mark.parametrize("order", some([10.0, 14.0], 2))
def test_real_histograms_cost_what_their_integrals_say(order):
    found = cost(HISTOGRAMS, teachers=250, sigma=40.0, order=order)[0]
    for histogram, bound in zip(HISTOGRAMS, found, strict=True):
        pairs = itertools.permutations(range(3), 2)
        worst = max(expected_moment(histogram, a, b, 40.0, order) for a, b in pairs)
        direct = np.log1p(worst) / (order - 1.0)
        assert direct <= bound <= 1.02 * direct
        # And the exact neighbours are a little below.
        moved = np.tile(histogram, (2, 1))
        moved[0, :2] += (-1, 1)
        moved[1, :2] += (1, -1)
        law = gaussian_argmax_law(np.vstack([histogram, moved]), 40.0)
        assert 0.93 * bound <= renyi(law[[0, 0]], law[1:], order).max() <= bound


# τ, m, σ and λ; every state of up to τ votes.
GRAPHS = [
    (8, 3, 0.7, 3.0),
    (8, 3, 1.0, 1.2),
    (7, 3, 2.0, 14.0),
    (6, 3, 4.0, 5.0),
    (5, 4, 1.0, 9.0),
    (5, 4, 2.0, 2.0),
    (5, 4, 4.0, 20.0),
    (4, 4, 30.0, 8.0),
    (3, 5, 0.7, 6.0),
]
DISTANCES = (0, 1, 2, 3)


@pytest.mark.parametrize(("teachers", "classes", "sigma", "order"), some(GRAPHS, 2))
def test_every_neighbour_of_every_state(teachers, classes, sigma, order):
    """Exact costs are at most F'_0(n), and F'_d(n') at most F'_{d+1}(n)."""
    graph = Graph.of(teachers, classes, missing=teachers)
    found = cost(graph.histograms, teachers=teachers, sigma=sigma, order=order, distances=DISTANCES)
    law = gaussian_argmax_law(graph.histograms, sigma)
    here, there = graph.edges.T
    assert np.all(renyi(law[here], law[there], order) <= found[0, here])
    assert np.all(found[:-1, there] <= found[1:, here])


@pytest.mark.parametrize(("sigma", "cells"), [(3.0, 4), (12.0, 1)])
def test_a_lone_vote_stands_two_votes_farther_for_every_vote(sigma, cells):
    """One vote moves n_b − C by two votes at most: one for b, and one from the best other."""
    lattice = Lattice.of(teachers=9, classes=3, sigma=sigma, order=4.0)
    assert lattice.cells == cells
    gives, _ = moved_vote(lattice, order=4.0, shift=1.0 / sigma)
    line = lone_vote(lattice, order=4.0, shift=1.0 / sigma)
    balls = Balls.of(lattice, gives, order=4.0, distances=np.array([0, 1, 3]))
    for row, distance in enumerate((0, 1, 3)):
        reach = 2 * distance * cells
        padded = np.pad(line, reach)
        direct = np.lib.stride_tricks.sliding_window_view(padded, 2 * reach + 1).max(axis=1)
        np.testing.assert_array_equal(balls.lone[row], direct)


def test_shape_order_and_caps():
    rng = np.random.default_rng(3)
    histograms = rng.multinomial(20, [0.6, 0.2, 0.1, 0.1], size=7)
    mixed = np.array([rng.permutation(row) for row in histograms])
    bound = float(worst_argmax_rdp(sigma=4.0, classes=4, orders=np.array([6.0]))[0])
    found = cost(mixed, teachers=20, sigma=4.0, order=6.0, distances=(0, 2, 9, 20), cap=bound)
    assert found.shape == (4, 7)
    assert np.all(np.diff(found, axis=0) >= 0.0)
    assert found.max() <= bound
    np.testing.assert_array_equal(
        found,
        cost(histograms, teachers=20, sigma=4.0, order=6.0, distances=(0, 2, 9, 20), cap=bound),
    )
    # Balls ascend to the worst histogram there is.
    assert np.all(found[-1] >= 0.97 * bound)
    assert cost(mixed[:0], teachers=20, sigma=4.0, order=6.0).shape == (1, 0)
    # Past float64 the cap stands, or λ/σ² where that is smaller.
    assert cost([[3, 2, 1]], teachers=6, sigma=0.1, order=9.0, cap=2e3)[0, 0] == pytest.approx(
        900.0
    )
    assert cost([[3, 2, 1]], teachers=6, sigma=0.1, order=9.0, cap=5.0)[0, 0] == 5.0


def test_a_vote_that_appears_or_goes_missing_is_in_the_maximum():
    """Where there are no votes it costs 4.5% more than any vote that moves."""
    c, density = best_of_law(np.zeros(2))
    laws = {
        votes: np.stack([log_ndtr(votes / 4.0 - c), log_ndtr(c - votes / 4.0)]).T
        for votes in (-1, 0, 1)
    }
    moments = [density @ np.expm1(29.0 * renyi(laws[0], laws[votes], 30.0)) for votes in (-1, 1)]
    direct = np.log1p(max(moments)) / 29.0
    assert direct <= cost([[0, 0, 0]], teachers=4, sigma=4.0, order=30.0)[0, 0] <= 1.03 * direct


def test_memory_is_decided_by_public_numbers():
    shape = {"rows": 1000, "classes": 10, "order": 15.0, "furthest": 63}
    ConditionalSize(teachers=250, sigma=40.0, **shape).check()
    with pytest.raises(ParameterError, match="two-tail"):
        ConditionalSize(teachers=2000, sigma=100.0, **shape).check()
    # No table is made where the cap stands.
    ConditionalSize(teachers=2000, sigma=0.1, **shape).check()
    with pytest.raises(ParameterError, match=r"30 GiB .* 5000 teachers, 3 classes and sigma 800"):
        cost([[3, 2, 1]], teachers=5000, sigma=800.0, order=3.0)


@pytest.mark.parametrize("histogram", [[16] * 16, [60, 40, *[12] * 14], [30] * 6 + [5] * 9])
def test_every_class_of_many_is_among_the_others(histogram):
    found = cost([histogram], teachers=270, sigma=40.0, order=10.0)[0, 0]
    pairs = itertools.permutations((0, 1, 5, len(histogram) - 1), 2)
    worst = max(expected_moment(histogram, a, b, 40.0, 10.0) for a, b in pairs)
    assert np.log1p(worst) / 9.0 <= found <= 1.02 * np.log1p(worst) / 9.0
