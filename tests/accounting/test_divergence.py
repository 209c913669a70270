"""Divergences digit by digit, and suprema that are enclosed by their certificate."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.special import log_ndtr

from pate_cli.accounting.divergence import (
    bernoulli_excess,
    certified_supremum,
    excess_moment,
    renyi_divergence,
)
from slices import tries

log_probability = st.one_of(
    st.floats(-745.0, -1e-9), st.floats(-5000.0, -700.0), st.floats(-1e-3, -1e-12)
)
order = st.one_of(st.floats(1.01, 1.5), st.floats(1.5, 80.0), st.floats(80.0, 1025.0))


def exact_term(log_p, log_q, lam):
    """p (e^{cu} − 1) + c (q − p) with 400 digits."""
    with mp.workdps(400):
        p, q, c = mp.exp(mp.mpf(log_p)), mp.exp(mp.mpf(log_q)), mp.mpf(lam) - 1
        return p * (mp.exp(c * (mp.mpf(log_p) - mp.mpf(log_q))) - 1) + c * (q - p)


@settings(max_examples=tries(400))
@given(log_p=log_probability, log_q=log_probability, lam=order)
@example(log_p=-814.2, log_q=-308.6, lam=1.6)
@example(log_p=-767.5, log_q=-869.6, lam=5.26)
@example(log_p=-1e-12, log_q=-1e-9, lam=14.0)
@example(log_p=-5000.0, log_q=-4999.0, lam=2.0)
def test_every_term_has_its_digits(log_p, log_q, lam):
    found = float(excess_moment(np.array(log_p), np.array(log_q), order=lam))
    true = exact_term(log_p, log_q, lam)
    if true > mp.mpf(10) ** 307:
        assert found > 1e300
        return
    # The terms are functions of u = log p − log q, which float64 knows to about eps·|log p|.
    u = abs(log_p - log_q)
    known = np.spacing(max(-log_p, -log_q, 1e-300)) * 4.0
    relative = 1e-13 + known * (lam + (2.0 / u if u > 0 else 0.0)) + 2e-15 / max(u, 1e-300)
    assert found >= 0.0
    assert abs(found - float(true)) <= relative * float(true) + 1e-250


def test_neighbouring_coins_keep_their_digits_where_logs_lose_them():
    lam, z, moved = 14.0, -5.5, -5.5 + 1e-6
    with mp.workdps(60):
        p, q = (mp.erfc(-mp.mpf(x) / mp.sqrt(2)) / 2 for x in (z, moved))
        power = p**lam * q ** (1 - lam) + (1 - p) ** lam * (1 - q) ** (1 - lam)
        true = float(power - 1)

    def logs(x):
        return log_ndtr(np.array(x)), log_ndtr(np.array(-x))

    here, there = logs(z), logs(moved)
    assert float(bernoulli_excess(here, there, order=lam)) == pytest.approx(true, rel=1e-8)
    naive = sum(np.exp(lam * a - (lam - 1.0) * b) for a, b in zip(here, there, strict=True)) - 1.0
    assert abs(float(naive) / true - 1.0) > 0.1


def test_impossible_outcomes():
    impossible, certain, half = np.array(-np.inf), np.array(0.0), np.log(np.array(0.5))
    assert excess_moment(impossible, impossible, order=3.0) == 0.0
    assert excess_moment(half, impossible, order=3.0) == np.inf
    # P certain of what Q doubts: J = 2^c, so J − 1 = 3 at λ = 3.
    both = bernoulli_excess((certain, impossible), (half, half), order=3.0)
    assert float(both) == pytest.approx(3.0, rel=1e-14)
    assert bernoulli_excess((certain, impossible), (certain, impossible), order=3.0) == 0.0


ORDERS = np.array([2.0, 5.0])


def hills(steepness):
    """Two hills of different height per order, bounded by a Lipschitz constant in the sup norm."""
    centres = np.array([[0.312, -1.7], [2.05, 0.4]])
    heights = np.array([[1.0, 0.9], [0.3, 0.4]])

    def excess(points):
        far = np.abs(points[:, None, :] - centres.T[:, :, None]).max(axis=0)
        return np.max(heights[:, :, None] * np.exp(-far)[None], axis=1)

    def bounds(points, half, wanted):
        values = excess(points)
        return values, np.where(wanted, values * np.exp(steepness * half), np.nan)

    return bounds, np.log1p(heights.max(axis=1)) / (ORDERS - 1.0)


def search(bounds, **changes):
    axis = np.arange(-3.5, 4.0)
    x, y = np.meshgrid(axis, axis)
    centres = np.stack([x.ravel(), y.ravel()])
    arguments = {
        "centres": centres,
        "half": 0.5,
        "wanted": np.ones((2, centres.shape[1]), dtype=bool),
        "orders": ORDERS,
        "floor": np.zeros(2),
        "slack": 1e-4,
        "most_cells": 20_000,
    } | changes
    return certified_supremum(bounds, **arguments)


def test_the_supremum_is_enclosed():
    bounds, true = hills(1.0)
    found = search(bounds)
    assert np.all(found >= true)
    assert np.all(found <= true * (1.0 + 1.01e-4))


@pytest.mark.parametrize("budget", [1, 100, 300, 1000])
def test_when_cells_run_out_the_bound_is_loose_and_still_a_bound(budget):
    bounds, true = hills(1.0)
    found = search(bounds, most_cells=budget)
    assert np.all(found >= true)
    assert np.all(found <= 2.0 * true)
    assert budget > 100 or np.any(found > 1.01 * true)


def test_only_wanted_cells_count_and_the_floor_is_kept():
    bounds, true = hills(1.0)
    none = np.zeros((2, 64), dtype=bool)
    np.testing.assert_array_equal(search(bounds, wanted=none), np.zeros(2))
    high = search(bounds, floor=np.array([0.0, 7.0]))
    assert high[1] == pytest.approx(7.0 * (1.0 + 1e-4))
    assert true[0] <= high[0] <= true[0] * (1.0 + 1.01e-4)


def test_a_cell_without_a_bound_is_never_dropped():
    bounds, true = hills(1.0)

    def sometimes(points, half, wanted):
        values, uppers = bounds(points, half, wanted)
        return values, np.where(half > 0.1, np.nan, uppers)

    found = search(sometimes, most_cells=50_000)
    assert np.all((found >= true) & (found <= true * (1.0 + 1.01e-4)))
    assert np.all(np.isinf(search(sometimes, most_cells=100)))


@given(
    weights=st.lists(st.tuples(st.floats(1e-6, 1.0), st.floats(1e-6, 1.0)), min_size=2, max_size=6),
    lam=st.floats(1.05, 40.0),
)
def test_divergences_against_their_definition(weights, lam):
    p, q = np.array(weights).T
    p, q = p / p.sum(), q / q.sum()
    pairs = list(zip(p, q, strict=True))
    with mp.workdps(50):
        power = sum(mp.mpf(a) ** lam * mp.mpf(b) ** (1 - mp.mpf(lam)) for a, b in pairs)
        # float64 weights do not sum to one exactly; the definition is taken of the normalised.
        power /= mp.fsum(map(mp.mpf, p)) ** lam * mp.fsum(map(mp.mpf, q)) ** (1 - mp.mpf(lam))
        true = float(mp.log(power) / (mp.mpf(lam) - 1))
    found = float(renyi_divergence(np.log(p), np.log(q), order=lam))
    assert found == pytest.approx(true, rel=1e-9, abs=1e-14)
    assert float(renyi_divergence(np.log(p), np.log(p), order=lam)) == 0.0
