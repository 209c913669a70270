"""Gaussian DP: δ(ε) against multiple precision, and its inverse from above."""

from __future__ import annotations

import math

import mpmath as mp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pate_cli.accounting.conversion import gaussian_delta, gaussian_epsilon
from slices import tries


def exact_delta(mu, epsilon):
    with mp.workdps(60):
        m, e = mp.mpf(mu), mp.mpf(epsilon)
        return mp.ncdf(-e / m + m / 2) - mp.exp(e) * mp.ncdf(-e / m - m / 2)


@settings(max_examples=tries(200))
@given(mu=st.floats(0.01, 12.0), steps=st.floats(-1.0, 12.0))
def test_delta_with_many_digits(mu, steps):
    epsilon = max(0.0, mu * (mu / 2.0 + steps))  # so that −ε/μ + μ/2 = −steps
    found = gaussian_delta(mu=mu, epsilon=epsilon)
    exact = exact_delta(mu, epsilon)
    assert exact <= found <= exact * (1 + mp.mpf("1e-9")) + mp.mpf("1e-300")


@settings(max_examples=tries(100))
@given(mu=st.floats(0.005, 20.0), log_delta=st.floats(-60.0, -0.01))
def test_epsilon_inverts_delta_from_above(mu, log_delta):
    delta = math.exp(log_delta)
    epsilon = gaussian_epsilon(mu=mu, delta=delta)
    assert epsilon >= 0.0
    assert gaussian_delta(mu=mu, epsilon=epsilon) <= delta
    assert float(exact_delta(mu, epsilon)) <= delta * (1.0 + 1e-9)
    if epsilon > 0.0:
        assert float(exact_delta(mu, epsilon * (1.0 - 1e-9))) >= delta * (1.0 - 1e-6)
    else:
        assert float(exact_delta(mu, 0.0)) <= delta * (1.0 + 1e-12)


def test_extremes_stay_finite():
    assert gaussian_epsilon(mu=100.0, delta=1e-300) == pytest.approx(
        5000.0 + 37.0 * 100.0, rel=0.01
    )
    assert gaussian_delta(mu=0.01, epsilon=50.0) == 0.0
    assert gaussian_delta(mu=50.0, epsilon=0.0) == pytest.approx(1.0, abs=1e-15)
