"""The lattice of places and what a cell of it bounds, against quadrature and against the proof."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_ndtr

from divergences import renyi
from laws import three_outcome_law
from pate_cli.accounting.gaussian import conditional
from pate_cli.accounting.gaussian.conditional import (
    NEGLECTED,
    Lattice,
    every_touch,
    lone_vote,
    moved_vote,
    rounded_up,
)
from slices import tries


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
