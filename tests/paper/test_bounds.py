"""The published bounds against arbitrary precision, exact probabilities and their own domains."""

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pate_cli.paper.costs import (
    confident_steps,
    data_dependent_rdp,
    gnmax_rdp,
    laplace_rdp,
    threshold_rdp,
    to_epsilon,
)

HISTOGRAMS = st.lists(st.integers(0, 300), min_size=2, max_size=6)
ORDERS = st.sampled_from([1.5, 2.0, 7.5, 14.0, 50.0])
SIGMAS = st.sampled_from([5.0, 20.0, 40.0, 150.0])


def theorem_6(log_q, sigma, order):
    """Theorem 6 and Proposition 10 as printed, in 450 digits (1 − q needs them), or None."""
    with mp.workdps(450):
        q, sigma, order = mp.exp(log_q), mp.mpf(sigma), mp.mpf(order)
        mu2 = sigma * mp.sqrt(mp.log(1 / q))
        mu1 = mu2 + 1
        eps1, eps2 = mu1 / sigma**2, mu2 / sigma**2
        if not (q < 1 and mu1 >= order and mu2 > 1):
            return None
        if q > mp.exp((mu2 - 1) * eps2) / (mu1 / (mu1 - 1) * mu2 / (mu2 - 1)) ** mu2:
            return None
        a = (1 - q) / (1 - (q * mp.exp(eps2)) ** ((mu2 - 1) / mu2))
        b = mp.exp(eps1) / q ** (1 / (mu1 - 1))
        return mp.log((1 - q) * a ** (order - 1) + q * b ** (order - 1)) / (order - 1)


@given(log_q=st.floats(-500, -1e-3), sigma=SIGMAS, order=ORDERS)
def test_theorem_6_in_arbitrary_precision(log_q, sigma, order):
    found = data_dependent_rdp([log_q], sigma=sigma, orders=order)[0, 0]
    expected = theorem_6(log_q, sigma, order)
    if expected is None:
        assert np.isinf(found)
    else:
        assert found == pytest.approx(float(expected), rel=1e-9, abs=1e-300)


@given(counts=HISTOGRAMS, sigma=SIGMAS, order=ORDERS)
def test_data_dependent_never_exceeds_data_independent(counts, sigma, order):
    assert 0 <= gnmax_rdp([counts], sigma, order)[0, 0] <= order / sigma**2
    ceiling = min(2 / sigma, 2 * order / sigma**2)
    assert 0 <= laplace_rdp([counts], sigma, order)[0, 0] <= ceiling * (1 + 1e-15)


@pytest.mark.parametrize("sigma", [1e-300, 1e-100, 1e100, 1e300])
def test_absurd_noise_is_priced_without_a_warning(sigma):
    counts = [[3, 2], [5, 0]]
    assert (gnmax_rdp(counts, sigma, [2.0, 50.0]) >= 0).all()
    assert (laplace_rdp(counts, sigma, [2.0, 50.0]) >= 0).all()
    rdp = threshold_rdp([3.0, 5.0], threshold=3.0, sigma=sigma, orders=2.0)
    assert (rdp >= 0).all()


def test_expected_cost_weighs_the_answer_by_its_probability():
    counts = np.array([[90, 5, 5], [40, 30, 30]])
    scores = counts.max(axis=1)
    noise = {"threshold": 60.0, "sigma1": 20.0, "sigma2": 10.0}
    found = confident_steps(counts, scores, noise, [2.0, 8.0])
    check = threshold_rdp(scores, threshold=60.0, sigma=20.0, orders=[2.0, 8.0])
    np.testing.assert_array_equal(found["threshold"], check)
    chance = np.array([0.5 * math.erfc((60.0 - v) / 20.0 / math.sqrt(2)) for v in scores])
    answer = gnmax_rdp(counts, 10.0, [2.0, 8.0])
    np.testing.assert_allclose(found["argmax"], chance * answer, rtol=1e-12)
    # A student's scores replace the highest count in the check alone.
    student = confident_steps(counts, np.array([-200.0, 40.0]), noise, [2.0, 8.0])
    assert (student["argmax"][:, 0] < found["argmax"][:, 0]).all()
    np.testing.assert_array_equal(student["argmax"][:, 1], found["argmax"][:, 1])


def test_conversion_is_the_classical_one():
    found = to_epsilon([0.5, 1.0], orders=[11.0, 3.0], delta=math.exp(-10))
    np.testing.assert_allclose(found, [0.5 + 10 / 10, 1.0 + 10 / 2], rtol=1e-14)
