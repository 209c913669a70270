"""The textbook's numbers: closed forms, another library, and the right side of the truth."""

import math

import mpmath
import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, SelfComposedDpEvent
from dp_accounting.rdp import RdpAccountant
from dp_accounting.rdp.rdp_privacy_accountant import DEFAULT_RDP_ORDERS
from hypothesis import given, settings
from hypothesis import strategies as st

from pate_cli.accounting.composition import (
    ORDERS,
    Bounded,
    Gaussian,
    Textbook,
    optimal_composition,
    textbook,
)
from pate_cli.core.errors import ParameterError
from slices import tries

RARELY = settings(max_examples=tries(50))
SEVERAL = {
    "one": [Gaussian(1, 1.3)],
    "a run": [Gaussian(640, 150.0), Gaussian(283, 40.0 / math.sqrt(2.0))],
    "much": [Gaussian(20_000, 30.0)],
    "little": [Gaussian(10, 1e4)],
}


def composed(accountant, steps):
    for step in steps:
        event = GaussianDpEvent(step.noise_multiplier)
        accountant.compose(SelfComposedDpEvent(event, step.count))
    return accountant


def test_the_orders_are_those_of_the_library():
    assert pytest.approx(DEFAULT_RDP_ORDERS, rel=1e-12) == ORDERS


@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-10])
@pytest.mark.parametrize("steps", SEVERAL.values(), ids=SEVERAL)
def test_renyi_composition_is_that_of_the_library(steps, delta):
    accountant = composed(RdpAccountant(), steps)
    assert textbook(steps, delta=delta).rdp_epsilon == pytest.approx(
        accountant.get_epsilon(delta), rel=1e-9
    )


def gaussian_delta(mu, epsilon):
    """Balle and Wang 2018, Theorem 8, in 60 digits."""
    with mpmath.workdps(60):
        mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
        return mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(
            -mu / 2 - epsilon / mu
        )


@RARELY
@given(
    st.lists(st.tuples(st.integers(0, 10**6), st.floats(0.05, 1e4)), min_size=1, max_size=3),
    st.floats(1e-12, 0.1),
)
def test_gaussian_numbers_are_bounds_and_the_exact_one_is_tight(pairs, delta):
    steps = [Gaussian(*pair) for pair in pairs]
    mu = mpmath.sqrt(sum(count / mpmath.mpf(noise) ** 2 for count, noise in pairs))
    found = textbook(steps, delta=delta)
    if mu == 0:
        assert found == Textbook(0.0, 0.0)
        return
    assert gaussian_delta(mu, found.exact_epsilon) <= delta
    assert gaussian_delta(mu, found.rdp_epsilon) <= delta
    assert found.exact_epsilon <= found.rdp_epsilon
    if found.exact_epsilon > 1e-6:
        assert gaussian_delta(mu, found.exact_epsilon * (1.0 - 1e-6)) > delta


def test_bounded_steps_in_closed_form():
    steps = [Bounded(50, 0.1, 1e-8), Bounded(20, 0.03)]
    found = textbook(steps, delta=1e-5)
    with mpmath.workdps(40):
        spare = mpmath.mpf(10) ** -5 - 50 * mpmath.mpf(10) ** -8
        squares = 50 * mpmath.mpf("0.1") ** 2 + 20 * mpmath.mpf("0.03") ** 2
        drift = 5 * mpmath.expm1(mpmath.mpf("0.1")) + mpmath.mpf("0.6") * mpmath.expm1(
            mpmath.mpf("0.03")
        )
        wanted = mpmath.sqrt(2 * mpmath.log(1 / spare) * squares) + drift
    assert found.basic_epsilon == pytest.approx(5.6, rel=1e-11)
    assert found.basic_epsilon >= 5.6
    assert found.advanced_epsilon == pytest.approx(float(wanted), rel=1e-11)
    assert found.advanced_epsilon >= wanted
    assert (found.rdp_epsilon, found.exact_epsilon) == (None, None)


@RARELY
@given(st.integers(1, 60), st.floats(1e-2, 3.0), st.sampled_from([0.0, 1e-9]), st.floats(1e-6, 0.1))
def test_the_textbook_is_above_the_optimum_for_equal_steps(count, epsilon, leak, delta):
    found = textbook([Bounded(count, epsilon, leak)], delta=delta)
    least = optimal_composition(count, epsilon=epsilon, delta=leak, total_delta=delta)
    numbers = [
        value for value in (found.basic_epsilon, found.advanced_epsilon) if value is not None
    ]
    assert least.epsilon <= min(numbers) * (1.0 + 1e-9)


def test_deltas_that_leave_nothing():
    assert textbook([Bounded(10, 0.1, 1e-6)], delta=1e-6) == Textbook()
    spent = textbook([Bounded(1, 0.1, 0.0)], delta=1e-300)
    assert spent.basic_epsilon == pytest.approx(0.1)
    assert spent.advanced_epsilon > spent.basic_epsilon


@pytest.mark.parametrize("step", [Gaussian(1, 1e-200), Bounded(10, 1e308)])
def test_a_loss_beyond_all_numbers_is_none(step):
    assert textbook([step], delta=1e-5) == Textbook()


def test_steps_of_both_kinds_have_no_theorem_unless_one_kind_costs_nothing():
    assert textbook([Gaussian(1, 1.0), Bounded(1, 0.1)], delta=1e-5) == Textbook()
    alone = textbook([Gaussian(1, 1.0)], delta=1e-5)
    assert textbook([Gaussian(1, 1.0), Bounded(0, 0.1)], delta=1e-5) == alone


@pytest.mark.parametrize("steps", [[], [Gaussian(0, 1.0)], [Bounded(0, 1.0, 0.5)]])
def test_nothing_costs_nothing(steps):
    assert textbook(steps, delta=1e-5) == Textbook(0.0, 0.0)


@pytest.mark.parametrize(
    "steps",
    [
        [Gaussian(1, 1e-6)],
        [Gaussian(10**12, 1e-3)],
        [Gaussian(1, 1e150)],
        [Gaussian(1, 1e200)],
        [Gaussian(np.int64(3), 1e9)],
        [Bounded(1, 1e300)],
        [Bounded(10**9, 800.0)],
        [Bounded(10**12, 1e-12, 1e-30)],
    ],
)
def test_extreme_steps_have_finite_numbers_or_none(steps):
    found = textbook(steps, delta=1e-9)
    numbers = [found.rdp_epsilon, found.exact_epsilon, found.basic_epsilon, found.advanced_epsilon]
    assert any(number is not None for number in numbers)
    for number in numbers:
        assert number is None or (math.isfinite(number) and number >= 0.0)


def test_a_delta_out_of_range_is_refused():
    with pytest.raises(ParameterError):
        textbook([], delta=0.0)
