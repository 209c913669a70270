"""The conditional bound: places and cells, exact laws on whole graphs, direct integrals."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_ndtr

from divergences import renyi
from graphs import Graph
from laws import best_of_law, expected_moment, gaussian_argmax_law, three_outcome_law
from pate_cli.accounting.gaussian import conditional
from pate_cli.accounting.gaussian.conditional import (
    NEGLECTED,
    Balls,
    ConditionalSize,
    Lattice,
    conditional_rdp,
    every_touch,
    lone_vote,
    moved_vote,
    rounded_up,
)
from pate_cli.accounting.gaussian.worst_vote import worst_argmax_rdp
from pate_cli.core.errors import ParameterError
from slices import some, tries

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


def moment(p, q, order):
    return np.expm1((order - 1.0) * renyi(p.T, q.T, order))


@settings(max_examples=tries(150))
@given(
    st.floats(-7.0, 7.0),
    st.floats(-7.0, 7.0),
    st.sampled_from(
        [(0.7, 0.1), (1.0, 0.1), (2.0, 0.5), (4.0, 0.25), (16.0, 0.0625), (40.0, 0.025)]
    ),
    st.sampled_from([1.1, 2.0, 5.0, 14.0]),
)
def test_nothing_within_a_cell_exceeds_its_bound(x, y, noise, order):
    sigma, unit = noise
    along = unit * np.linspace(0.0, 1.0, 17)
    here = three_outcome_law(x + along, y + along)
    there = three_outcome_law(x - 1.0 / sigma + along, y + 1.0 / sigma + along)
    for p, q in ((here, there), (there, here)):
        inside = moment(p, q, order)
        ends = p[:, [0, -1]], q[:, [0, -1]]
        (over,) = conditional._over_cells(*ends, order=order, unit=unit, shift=1.0 / sigma)
        assert inside.max() <= over
        if sigma >= 16.0:
            # And by little: relative to the cell, or where h is small to the largest h there is.
            most = order * (order - 1.0) / sigma**2
            assert over <= max(inside[0], inside[-1]) * 1.02 + 1e-4 * most


@settings(max_examples=tries(300))
@given(
    st.lists(
        st.tuples(
            st.floats(-6.0, 0.0), st.floats(-3.0, 3.0), st.floats(-2.0, 2.0), st.floats(-2.0, 2.0)
        ),
        min_size=1,
        max_size=3,
    ),
    st.sampled_from([1.2, 2.0, 6.0]),
    st.sampled_from([0.3, 1.0]),
)
def test_every_term_of_the_proof_is_charged(lines, order, unit):
    """Straight lines of log q and of r = log p/q, r off by the most that it bends, either way.

    Steps 2 to 4 of the proof hold for any lines, so each is seen, where for Gaussian ones a factor
    of the first would hide that another is left out.
    """
    shift = 1.0
    start, slope, gain, rise = np.array(lines).T
    at = np.linspace(0.0, 1.0, 201)
    log_q = start[:, None] + slope[:, None] * at
    r = gain[:, None] + rise[:, None] * at
    bend = np.sqrt(24.0) * shift * unit**2 / 8.0
    worst = max(
        (np.exp(log_q) * (np.expm1(order * (r + e)) - order * np.expm1(r + e))).sum(axis=0).max()
        for e in (-bend, bend)
    )
    ends = log_q[:, [0, -1]]
    (over,) = conditional._over_cells(
        ends + r[:, [0, -1]], ends, order=order, unit=unit, shift=shift
    )
    assert worst * np.exp(unit**2 / 4.0) <= over * (1.0 + 1e-12)


@pytest.mark.parametrize(("sigma", "order"), [(0.7, 9.0), (1.0, 20.0), (4.0, 40.0), (40.0, 60.0)])
@pytest.mark.parametrize("classes", [3, 4, 12])
def test_what_lies_outside_the_lattice_is_neglected(sigma, order, classes):
    lattice = Lattice.of(teachers=20, classes=classes, sigma=sigma, order=order)
    largest = order * (order - 1.0) / sigma**2
    above = np.log(classes) + log_ndtr(-lattice.above * lattice.unit)
    below = (classes - 2) * log_ndtr(-lattice.below * lattice.unit)
    for tail in (above, below):
        assert tail + largest <= np.log(NEGLECTED) + 1e-9
    # And not by far more than the step to whole cells.
    less = np.log(classes) + log_ndtr(-(lattice.above - 1) * lattice.unit)
    assert less + largest > np.log(NEGLECTED)


@pytest.mark.parametrize(("sigma", "order"), [(2.0, 5.0), (12.0, 3.0)])
def test_tables_are_by_gap_and_place(sigma, order):
    lattice = Lattice.of(teachers=6, classes=4, sigma=sigma, order=order)
    gives, takes = moved_vote(lattice, order=order, shift=1.0 / sigma)
    assert gives.shape == takes.shape == (2 * lattice.gap + 1, lattice.places)
    rng = np.random.default_rng(1)
    gap = rng.integers(-lattice.gap, lattice.gap + 1, 40)
    place = rng.integers(lattice.lowest, lattice.lowest + lattice.places, 40)
    keep = (np.abs(place) < 5 / lattice.unit) & (np.abs(place - gap) < 5 / lattice.unit)
    gap, place = gap[keep], place[keep]
    assert len(gap) > 5
    x, y = place * lattice.unit, (place - gap) * lattice.unit
    here = three_outcome_law(x, y)
    for table, moved in ((gives, 1.0 / sigma), (takes, -1.0 / sigma)):
        exact = moment(here, three_outcome_law(x - moved, y + moved), order)
        found = table[gap + lattice.gap, place - lattice.lowest]
        assert np.all(exact <= found)
        # The next place is in the cell, too.
        end = three_outcome_law(x + lattice.unit, y + lattice.unit)
        other = three_outcome_law(x + lattice.unit - moved, y + lattice.unit + moved)
        np.testing.assert_allclose(
            found, np.maximum(exact, moment(end, other, order)), rtol=0.1, atol=1e-9
        )


def test_a_lone_vote_is_a_coin_either_way():
    lattice = Lattice.of(teachers=6, classes=3, sigma=3.0, order=4.0)
    line = lone_vote(lattice, order=4.0, shift=1.0 / 3.0)
    x = (np.arange(lattice.places) + lattice.lowest) * lattice.unit
    near = np.abs(x) < 3.0
    coins = [np.stack([log_ndtr(z), log_ndtr(-z)]) for z in (x, x - 1.0 / 3.0, x + 1.0 / 3.0)]
    exact = np.maximum(moment(coins[0], coins[1], 4.0), moment(coins[0], coins[2], 4.0))
    assert np.all(exact[near] <= line[near])
    assert np.all(line[near][:-1] <= 1.2 * np.maximum(exact[near][:-1], exact[near][1:]))


def test_narrow_numbers_are_never_less():
    table = np.array([0.0, 1e-60, 1e-40, 0.1, 1.0, 1e20])
    narrow = rounded_up(table)
    assert narrow.dtype == np.float32
    assert np.all(narrow.astype(np.float64) >= table)
    np.testing.assert_allclose(narrow[3:], table[3:], rtol=3e-7)
    assert rounded_up(np.array([1.0, 1e39])).dtype == np.float64


@given(st.lists(st.integers(0, 3), min_size=3, max_size=6))
def test_every_pair_and_every_class_is_a_case_once_for_equal_counts(votes):
    counts = sorted(votes, reverse=True)

    def told(touched):
        return [tuple(case) for case in np.column_stack([touched.counts, touched.rivals]).tolist()]

    def cases(size):
        for ranks in itertools.combinations(range(len(counts)), size):
            others = (count for rank, count in enumerate(counts) if rank not in ranks)
            yield (*(counts[rank] for rank in ranks), max(others))

    row = np.array([counts])
    leaders, pairs, single = map(told, every_touch(row))
    assert {*leaders, *pairs} == set(cases(2))
    assert sorted(single) == sorted(set(cases(1)))
