"""Rényi and Gaussian DP converted to (ε, δ), and curves between their orders."""

import math
from decimal import Decimal

import mpmath as mp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from divergences import exact_gaussian_delta
from pate_cli.accounting.conversion import (
    conversion_cost,
    gaussian_delta,
    gaussian_epsilon,
    round_up,
    significant_up,
)
from pate_cli.core.errors import ParameterError
from slices import tries


@settings(max_examples=tries(200))
@given(order=st.floats(1.001, 5000.0), log_delta=st.floats(-600.0, -1e-6))
def test_conversion_with_many_digits(order, log_delta):
    delta = math.exp(log_delta)
    with mp.workdps(50):
        lam = mp.mpf(order)
        true = mp.log(1 - 1 / lam) - (mp.log(mp.mpf(delta)) + mp.log(lam)) / (lam - 1)
        scale = abs(mp.log(mp.mpf(delta))) / (lam - 1) + 1
    found = float(conversion_cost(np.array([order]), delta=delta)[0])
    assert abs(found - float(true)) <= 1e-12 * float(scale)


@settings(max_examples=tries(500))
@given(
    value=st.one_of(
        st.floats(0.0, 1e9),
        st.floats(0.0, 1e-3),
        st.integers(0, 10**7).map(lambda n: n / 1e4),
        st.integers(0, 10**7).map(lambda n: math.nextafter(n / 1e4, math.inf)),
        st.integers(1, 10**7).map(lambda n: math.nextafter(n / 1e4, 0.0)),
        st.floats(-10.0, 0.0),
    ),
    digits=st.integers(0, 6),
)
@example(value=0.12340000000001, digits=4)
@example(value=0.0, digits=4)
@example(value=1.9999999999, digits=4)
@example(value=5e-324, digits=4)
def test_rounding_never_goes_down(value, digits):
    rounded = round_up(value, digits=digits)
    assert rounded >= value
    # Less than one unit above, and on the grid of decimals.
    assert Decimal(rounded) - Decimal(value) <= Decimal(10) ** -digits * (1 + Decimal("1e-9"))
    assert rounded == round(rounded, digits)
    assert round_up(rounded, digits=digits) == rounded


@given(value=st.floats(1e-12, 1e6), digits=st.integers(1, 12))
def test_significant_digits_never_go_down(value, digits):
    found = significant_up(value, digits=digits)
    assert value <= found <= value * (1.0 + 10.0 ** (1 - digits) + 1e-15)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_what_cannot_be_rounded(value):
    with pytest.raises(ParameterError, match=f"a finite number can be rounded up, got {value}"):
        round_up(value)


@settings(max_examples=tries(200))
@given(mu=st.floats(0.01, 12.0), steps=st.floats(-1.0, 12.0))
def test_delta_with_many_digits(mu, steps):
    epsilon = max(0.0, mu * (mu / 2.0 + steps))  # so that −ε/μ + μ/2 = −steps
    found = gaussian_delta(mu=mu, epsilon=epsilon)
    exact = exact_gaussian_delta(mu, epsilon)
    assert exact <= found <= exact * (1 + mp.mpf("1e-9")) + mp.mpf("1e-300")


@settings(max_examples=tries(100))
@given(mu=st.floats(0.005, 20.0), log_delta=st.floats(-60.0, -0.01))
def test_epsilon_inverts_delta_from_above(mu, log_delta):
    delta = math.exp(log_delta)
    epsilon = gaussian_epsilon(mu=mu, delta=delta)
    assert epsilon >= 0.0
    assert gaussian_delta(mu=mu, epsilon=epsilon) <= delta
    assert float(exact_gaussian_delta(mu, epsilon)) <= delta * (1.0 + 1e-9)
    if epsilon > 0.0:
        assert float(exact_gaussian_delta(mu, epsilon * (1.0 - 1e-9))) >= delta * (1.0 - 1e-6)
    else:
        assert float(exact_gaussian_delta(mu, 0.0)) <= delta * (1.0 + 1e-12)


def test_extremes_stay_finite():
    assert gaussian_epsilon(mu=100.0, delta=1e-300) == pytest.approx(
        5000.0 + 37.0 * 100.0, rel=0.01
    )
    assert gaussian_delta(mu=0.01, epsilon=50.0) == 0.0
    assert gaussian_delta(mu=50.0, epsilon=0.0) == pytest.approx(1.0, abs=1e-15)
