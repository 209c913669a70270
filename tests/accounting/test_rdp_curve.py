"""Curves between their orders and for two steps, against mechanisms whose divergence is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pate_cli.accounting.conversion import RdpCurve
from pate_cli.accounting.laplace.score_cost import randomised_response_rdp
from pate_cli.core.errors import ParameterError

rdp_accountant = pytest.importorskip("dp_accounting.rdp.rdp_privacy_accountant")


def gaussian(orders, *, mu=1.0):
    return orders * mu**2 / 2.0


def laplace(orders, *, scale=2.0):
    """Mironov 2017, Table II."""
    up = np.log(orders / (2.0 * orders - 1.0)) + (orders - 1.0) / scale
    down = np.log((orders - 1.0) / (2.0 * orders - 1.0)) - orders / scale
    return np.logaddexp(up, down) / (orders - 1.0)


def response(orders, *, epsilon=3.0):
    return randomised_response_rdp(epsilon=epsilon, orders=orders)


def subsampled(orders, *, q=0.01, sigma=1.1, steps=1000):
    """DP-SGD's, by dp-accounting."""
    found = rdp_accountant._compute_rdp_poisson_subsampled_gaussian(
        q=q, noise_multiplier=sigma, orders=list(orders)
    )
    return steps * np.array(found)


KNOWN = [gaussian, laplace, response, subsampled]
DENSE = 1.0 + np.geomspace(0.05, 63.0, 120)
TRUTH = {known: known(DENSE) for known in KNOWN}


@pytest.mark.parametrize("known", KNOWN)
@given(data=st.data())
def test_nothing_between_orders_is_below_the_truth(known, data):
    given_at = data.draw(st.sets(st.integers(0, DENSE.size - 1), min_size=1, max_size=12))
    at = sorted(given_at)
    # Bounds that are not sharp, and need not rise.
    slack = data.draw(st.lists(st.floats(1.0, 3.0), min_size=len(at), max_size=len(at)))
    curve = RdpCurve(DENSE[at], TRUTH[known][at] * slack)
    found = curve.at(DENSE)
    assert np.all(found >= TRUTH[known] * (1.0 - 1e-9))
    assert np.all(np.isinf(found) == (curve.highest < DENSE))
    # Never above the value at any later order.
    later = [np.min(curve.rdp[at_or_after:]) for at_or_after in range(len(at))]
    place = np.searchsorted(curve.orders, DENSE[np.isfinite(found)])
    assert np.all(found[np.isfinite(found)] <= np.array(later)[place] * (1.0 + 1e-9))


def test_given_orders_keep_their_values_and_a_line_is_exact():
    orders = np.array([1.5, 2.0, 4.0, 16.0, 64.0])
    curve = RdpCurve(orders, laplace(orders))
    np.testing.assert_allclose(curve.at(orders), laplace(orders), rtol=2e-12)
    flat = RdpCurve(np.array([3.0, 9.0]), np.array([0.25, 0.25]))
    np.testing.assert_allclose(flat.at(np.array([1.01, 2.0, 5.0, 9.0])), 0.25, rtol=2e-12)
    # A later bound that is lower holds before, too.
    falling = RdpCurve(np.array([2.0, 4.0]), np.array([3.0, 1.0]))
    np.testing.assert_allclose(falling.at(np.array([1.1, 2.0, 4.0])), 1.0, rtol=2e-12)


def test_two_steps_of_a_gaussian_cost_what_twice_the_shift_does():
    orders = 1.0 + np.geomspace(0.01, 200.0, 2000)
    curve = RdpCurve(orders, gaussian(orders))
    wanted = np.array([1.05, 1.5, 2.0, 8.0, 32.0, 99.0])
    found = curve.of_two(wanted)
    np.testing.assert_allclose(found, gaussian(wanted, mu=2.0), rtol=2e-3)
    assert np.all(found >= gaussian(wanted, mu=2.0) * (1.0 - 1e-12))


@given(
    at=st.sets(st.integers(0, DENSE.size - 1), min_size=1, max_size=12),
    mu=st.floats(0.05, 5.0),
    epsilon=st.floats(0.01, 8.0),
)
def test_two_steps_cost_no_less_than_their_worst(at, mu, epsilon):
    """Shifts add up; randomised response twice over is a mechanism of twice its ε, or less."""
    orders = DENSE[sorted(at)]
    curve = RdpCurve(orders, gaussian(orders, mu=mu))
    found = curve.of_two(DENSE)
    assert np.all(found >= gaussian(DENSE, mu=2.0 * mu) * (1.0 - 1e-9))
    assert np.all(np.isfinite(found) <= (curve.highest_of_two * (1.0 + 1e-9) >= DENSE))
    # P = (p, 1 − p, 0), M = (1 − p, p, 0), Q = M with its odds multiplied once more.
    log_odds = np.array([epsilon / 2.0, -epsilon / 2.0, -1.5 * epsilon])
    chances = 1.0 / (1.0 + np.exp(-log_odds))
    pair = [np.array([chance, 1.0 - chance]) for chance in chances]
    steps = np.maximum.reduce(
        [divergence(a, b, orders) for a, b in [(pair[0], pair[1]), (pair[1], pair[2])]]
        + [divergence(b, a, orders) for a, b in [(pair[0], pair[1]), (pair[1], pair[2])]]
    )
    whole = divergence(pair[0], pair[2], DENSE)
    assert np.all(RdpCurve(orders, steps).of_two(DENSE) >= whole * (1.0 - 1e-9))


def divergence(p, q, orders):
    powers = orders[:, None] * np.log(p) + (1.0 - orders[:, None]) * np.log(q)
    return np.maximum(np.logaddexp.reduce(powers, axis=1) / (orders - 1.0), 0.0)


@pytest.mark.parametrize(
    ("orders", "rdp"),
    [
        ([], []),
        ([2.0, 2.0], [1.0, 1.0]),
        ([4.0, 2.0], [1.0, 1.0]),
        ([1.0, 2.0], [1.0, 1.0]),
        ([2.0, np.inf], [1.0, 1.0]),
        ([2.0, np.nan], [1.0, 1.0]),
        ([2.0, 1e300], [1.0, 1.0]),
        ([2.0, 4.0], [1.0]),
        ([2.0, 4.0], [1.0, -1e-9]),
        ([2.0, 4.0], [1.0, np.nan]),
        ([2.0, 4.0], [1.0, np.inf]),
        ([2.0, 4.0], [1.0, 1e200]),
    ],
)
def test_what_is_no_curve_is_refused(orders, rdp):
    with pytest.raises(ParameterError):
        RdpCurve(np.array(orders), np.array(rdp))
