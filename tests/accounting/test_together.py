"""ε of stated parts and curves together: against enumeration, closed forms and known theorems."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pate_cli.accounting.composition import Curves, epsilon_together, optimal_composition
from pate_cli.accounting.conversion import gaussian_delta, gaussian_epsilon
from pate_cli.core.errors import ParameterError
from slices import tries

ORDERS = 1.0 + np.geomspace(0.02, 1024.0, 60)
NONE = np.zeros(0)


def enumerated(epsilon, stated, hockey_stick):
    """δ(ε) by all outcomes of all randomised responses."""
    total = 0.0
    for signs in itertools.product((1.0, -1.0), repeat=len(stated)):
        chance = math.prod(
            1.0 / (1.0 + math.exp(-sign * each)) for sign, each in zip(signs, stated, strict=True)
        )
        loss = sum(sign * each for sign, each in zip(signs, stated, strict=True))
        total += chance * hockey_stick(epsilon - loss)
    return total


def nothing_else(x):
    return max(-math.expm1(x), 0.0) if x < 50.0 else 0.0


@pytest.mark.parametrize(("count", "each"), [(1, 0.7), (12, 0.1), (40, 0.1), (300, 0.02)])
def test_equal_parts_compose_optimally(count, each):
    known = optimal_composition(count, epsilon=each, delta=0.0, total_delta=1e-5).epsilon
    found = epsilon_together(np.full(count, each), None, delta=1e-5)
    assert found == pytest.approx(known, rel=1e-6)


@given(
    stated=st.lists(st.sampled_from([0.05, 0.2, 0.21, 0.5, 1.0]), min_size=1, max_size=7),
    delta=st.sampled_from([1e-9, 1e-5, 1e-2]),
)
def test_unequal_parts_are_as_enumerated(stated, delta):
    found = epsilon_together(np.array(stated), None, delta=delta)
    assert enumerated(found, stated, nothing_else) <= delta
    assert found <= sum(stated) + 1e-8
    if found > 1e-6:
        assert enumerated(found * (1.0 - 1e-6), stated, nothing_else) > delta * (1.0 - 1e-3)


@given(
    stated=st.lists(st.sampled_from([0.1, 0.3, 0.8]), min_size=0, max_size=5),
    mu=st.sampled_from([0.05, 0.3, 1.0]),
)
def test_beside_a_gaussian_it_is_exact(stated, mu):
    """(J) is the law of the pair itself, where the curve's hockey-stick is."""
    curves = Curves(ORDERS, ORDERS * mu**2 / 2.0, mu=mu)
    found = epsilon_together(np.array(stated), curves, delta=1e-5)
    exact = lambda x: gaussian_delta(mu=mu, epsilon=x)  # noqa: E731 - shorter than what it is for
    assert enumerated(found, stated, exact) <= 1e-5
    assert enumerated(found * (1.0 - 1e-6), stated, exact) > 1e-5 * (1.0 - 1e-4)


@settings(max_examples=tries(30))
@given(
    stated=st.lists(st.floats(0.0, 2.0), min_size=0, max_size=6),
    rho=st.sampled_from([1e-4, 0.01, 0.2]),
)
def test_between_what_is_known_and_the_sum(stated, rho):
    curves = Curves(ORDERS, ORDERS * rho)
    found = epsilon_together(np.array(stated), curves, delta=1e-5)
    assert found <= sum(stated) + curves.epsilon(delta=1e-5) + 1e-7
    exact = Curves(ORDERS, ORDERS * rho, mu=math.sqrt(2.0 * rho))
    assert found >= epsilon_together(np.array(stated), exact, delta=1e-5) - 1e-9
    assert found >= epsilon_together(np.array(stated), None, delta=1e-5) - 1e-9


def test_a_curve_alone_is_converted_as_ever():
    curves, c = Curves(ORDERS, ORDERS * 0.01), ORDERS - 1.0
    conversion = np.log(c / ORDERS) - (np.log(1e-5) + np.log(ORDERS)) / c
    known = np.min(ORDERS * 0.01 + conversion)
    assert curves.epsilon(delta=1e-5) == pytest.approx(known, rel=1e-9)
    assert epsilon_together(NONE, curves, delta=1e-5) == pytest.approx(known, rel=1e-6)
    curves = Curves(ORDERS, ORDERS * 0.01, mu=math.sqrt(0.02))
    known = gaussian_epsilon(mu=math.sqrt(0.02), delta=1e-5)
    assert epsilon_together(NONE, curves, delta=1e-5) == pytest.approx(known, rel=1e-6)


def test_orders_at_which_nothing_is_known_are_left_out():
    whole = Curves(ORDERS, ORDERS * 0.01)
    partly = Curves(ORDERS, np.where(ORDERS < 9.0, ORDERS * 0.01, np.inf))
    stated = np.array([0.2])
    assert epsilon_together(stated, partly, delta=1e-5) >= epsilon_together(
        stated, whole, delta=1e-5
    )


def test_too_many_different_parts_are_added_flat():
    stated = 0.01 + 1e-4 * np.arange(40)  # 2^40 outcomes
    found = epsilon_together(stated, None, delta=1e-5)
    assert stated.sum() * 0.5 < found <= stated.sum() + 1e-8
    often = epsilon_together(np.repeat(stated, 50), None, delta=1e-5)
    known = optimal_composition(2000, epsilon=stated.min(), delta=0.0, total_delta=1e-5)
    assert often >= known.epsilon  # each of them is at least the smallest


@pytest.mark.parametrize("stated", [[-0.1], [math.inf], [math.nan]])
def test_what_is_out_of_range_is_refused(stated):
    with pytest.raises(ParameterError, match="epsilon in `stated`"):
        epsilon_together(np.array(stated), None, delta=1e-5)
