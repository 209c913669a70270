"""The textbook's numbers: closed forms, another library, and the right side of the truth."""

import math

import mpmath
import pytest
from dp_accounting import GaussianDpEvent, SelfComposedDpEvent
from dp_accounting.rdp import RdpAccountant
from dp_accounting.rdp.rdp_privacy_accountant import DEFAULT_RDP_ORDERS

from pate_cli.accounting.composition import ORDERS, Bounded, Gaussian, Textbook, textbook
from pate_cli.accounting.conversion import gaussian_epsilon
from pate_cli.core.errors import ParameterError

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
    found = textbook(steps, delta=delta)
    assert found.rdp_epsilon == pytest.approx(accountant.get_epsilon(delta), rel=1e-9)
    mu = math.sqrt(sum(step.count / step.noise_multiplier**2 for step in steps))
    assert found.exact_epsilon == pytest.approx(gaussian_epsilon(mu=mu, delta=delta), rel=1e-9)
    assert found.exact_epsilon <= found.rdp_epsilon


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


def test_deltas_that_leave_nothing():
    assert textbook([Bounded(10, 0.1, 1e-6)], delta=1e-6) == Textbook()
    spent = textbook([Bounded(1, 0.1, 0.0)], delta=1e-300)
    assert spent.basic_epsilon == pytest.approx(0.1)
    assert spent.advanced_epsilon > spent.basic_epsilon


@pytest.mark.parametrize("step", [Gaussian(1, 1e-200), Bounded(10, 1e308)])
def test_a_loss_beyond_all_numbers_is_none(step):
    assert textbook([step], delta=1e-5) == Textbook()


@pytest.mark.parametrize("step", [Gaussian(10**12, 1e-3), Gaussian(1, 1e200), Bounded(1, 1e300)])
def test_extreme_steps_have_finite_numbers_or_none(step):
    numbers = [each for each in vars(textbook([step], delta=1e-9)).values() if each is not None]
    assert numbers
    assert all(math.isfinite(each) and each >= 0.0 for each in numbers)


def test_steps_of_both_kinds_have_no_theorem_unless_one_kind_costs_nothing():
    assert textbook([Gaussian(1, 1.0), Bounded(1, 0.1)], delta=1e-5) == Textbook()
    alone = textbook([Gaussian(1, 1.0)], delta=1e-5)
    assert textbook([Gaussian(1, 1.0), Bounded(0, 0.1)], delta=1e-5) == alone


@pytest.mark.parametrize("steps", [[], [Gaussian(0, 1.0)], [Bounded(0, 1.0, 0.5)]])
def test_nothing_costs_nothing(steps):
    assert textbook(steps, delta=1e-5) == Textbook(0.0, 0.0)


def test_a_delta_out_of_range_is_refused():
    with pytest.raises(ParameterError):
        textbook([], delta=0.0)
