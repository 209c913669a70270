"""The threshold test is a coin: its cost with many digits, over whole and real scores."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checks_alone import threshold_rdp
from divergences import exact_test
from pate_cli.accounting.threshold import pass_moments, worst_threshold_rdp
from slices import tries

CASES = {(-1, "forward"): 0, (-1, "reverse"): 1, (1, "forward"): 2, (1, "reverse"): 3}


def distance(v, other, threshold, sigma, order, digits=60):
    """D_λ between the tests of two scores."""
    where = {"threshold": threshold, "sigma": sigma, "order": order}
    return float(exact_test(v, other, **where, digits=digits))


def per_step(v, threshold, sigma, order):
    moments = pass_moments(np.array(float(v)), threshold=threshold, sigma=sigma, order=order)
    return np.log1p(moments.excess) / (order - 1.0)


def test_golden(tight):
    for case in tight["threshold"]:
        found = per_step(case["v"], case["threshold"], case["sigma"], case["order"])
        for direction in ("forward", "reverse"):
            at = CASES[case["step"], direction]
            assert float(found[at]) == pytest.approx(case[direction], rel=1e-9), case


@settings(max_examples=tries(100))
@given(
    v=st.floats(-20.0, 300.0),
    threshold=st.floats(-10.0, 300.0),
    sigma=st.floats(2.0, 200.0),
    order=st.floats(1.05, 60.0),
)
def test_the_worst_of_four_coins_with_many_digits(v, threshold, sigma, order):
    found = float(
        threshold_rdp(np.array([v]), threshold=threshold, sigma=sigma, orders=np.array([order]))[
            0, 0
        ]
    )
    true = max(
        distance(a, b, threshold, sigma, order, digits=150)
        for other in (v - 1.0, v + 1.0)
        for a, b in ((v, other), (other, v))
    )
    # v ± 1 as float64 and as an exact number differ by an ulp of v.
    assert found == pytest.approx(true, rel=1e-8, abs=1e-100)
    assert found <= order / (2.0 * sigma**2)


def test_w1_is_the_largest_cost_of_whole_votes():
    orders = np.array([1.5, 9.5, 40.0])
    for teachers, threshold, sigma in ((250, 200.0, 150.0), (20, 12.0, 3.0), (5, 30.0, 2.0)):
        found = worst_threshold_rdp(
            teachers=teachers, threshold=threshold, sigma=sigma, orders=orders
        )
        every = [
            max(
                distance(a, b, threshold, sigma, float(order))
                for v in range(teachers + 1)
                for other in (v - 1, v + 1)
                for a, b in ((v, other), (other, v))
            )
            for order in orders
            if teachers < 30
        ] or threshold_rdp(
            np.arange(teachers + 1.0), threshold=threshold, sigma=sigma, orders=orders
        ).max(axis=1)
        np.testing.assert_allclose(found, every, rtol=1e-10)
    printed = worst_threshold_rdp(
        teachers=250, threshold=200.0, sigma=150.0, orders=np.array([9.5])
    )
    assert float(printed[0]) == pytest.approx(1.34406e-4, rel=1e-5)


def test_overflow_ends_at_the_cap():
    orders = np.array([50.0, 1000.0])
    found = threshold_rdp(np.array([5.0]), threshold=20.0, sigma=0.5, orders=orders)
    assert np.all(found[:, 0] <= orders / (2.0 * 0.5**2))
    assert np.all(found > 0.0)
