"""Composition against brute force over every outcome, high precision, and other theorems."""

import itertools
import math
import re

import mpmath
import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, SelfComposedDpEvent
from dp_accounting.rdp import RdpAccountant
from dp_accounting.rdp.rdp_privacy_accountant import DEFAULT_RDP_ORDERS
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from divergences import hockey_stick, worst_pair
from pate_cli.accounting.composition import (
    ORDERS,
    Bounded,
    Curves,
    Gaussian,
    Textbook,
    best_composition,
    epsilon_together,
    optimal_composition,
    smallest_delta,
    textbook,
)
from pate_cli.accounting.conversion import gaussian_delta, gaussian_epsilon
from pate_cli.core.errors import ParameterError, UnreachableError
from slices import some, tries


def product_of_worst_pairs(k, epsilon, delta):
    """All 4^k outcomes of k worst-case (ε0, δ0) mechanisms on the two databases."""
    one, other = worst_pair(epsilon, delta)
    p, q = np.ones(1), np.ones(1)
    for _ in range(k):
        p, q = np.outer(p, one).ravel(), np.outer(q, other).ravel()
    return p, q


@pytest.mark.parametrize("k", [1, 2, 3, 6])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.05])
@pytest.mark.parametrize("beyond", [1e-4, 0.03, 0.3])
def test_optimal_is_where_brute_force_says(k, epsilon, delta, beyond):
    total = smallest_delta(k, delta=delta) + beyond
    p, q = product_of_worst_pairs(k, epsilon, delta)
    found = optimal_composition(k, epsilon=epsilon, delta=delta, total_delta=total).epsilon
    assert hockey_stick(p, q, found) <= total * (1.0 + 1e-12)
    if found > 0.0:
        assert hockey_stick(p, q, found * (1.0 - 1e-6)) > total


@pytest.mark.parametrize(
    ("k", "epsilon", "totals"),
    [(1_000_000, 1e-3, [0.5, 3.0, 7.0]), (100_000, 0.01, [1.0, 9.0, 25.0]), (50, 4.0, [150.0])],
)
def test_epsilon_of_very_many_responses(k, epsilon, totals):
    low = 1.0 / (1.0 + math.exp(epsilon))
    for total in totals:
        last = math.ceil((k - total / epsilon) / 2.0) - 1
        exact = binom.cdf(last, k, low) - math.exp(total) * binom.cdf(last, k, 1.0 - low)
        found = optimal_composition(k, epsilon=epsilon, delta=0.0, total_delta=exact)
        assert found.epsilon == pytest.approx(total, rel=1e-6)


@pytest.mark.parametrize(
    ("k", "epsilon", "delta", "total"),
    some(
        [
            (640, 0.1, 1e-9, 1e-5),
            (20, 1.4, 2.5e-7, 1e-5),
            (3000, 0.01, 0.0, 1e-10),
            (9, 40.0, 0, 0.2),
        ],
        2,
    ),
)
def test_never_below_the_optimum_in_high_precision(k, epsilon, delta, total):
    mpmath.mp.dps = 50
    e0, d0 = mpmath.mpf(epsilon), mpmath.mpf(delta)
    low = 1 / (1 + mpmath.exp(e0))
    chance = [mpmath.binomial(k, j) * low**j * (1 - low) ** (k - j) for j in range(k + 1)]

    def whole(epsilon_):
        inside = mpmath.fsum(
            c * -mpmath.expm1(epsilon_ - (k - 2 * j) * e0)
            for j, c in enumerate(chance)
            if (k - 2 * j) * e0 > epsilon_
        )
        return 1 - (1 - d0) ** k * (1 - inside)

    found = best_composition(k, epsilon=epsilon, delta=delta, total_delta=total)
    assert found.delta == total
    assert whole(mpmath.mpf(found.epsilon)) <= mpmath.mpf(total)
    assert whole(mpmath.mpf(found.epsilon) * (1 - mpmath.mpf(10) ** -6)) > mpmath.mpf(total)


def test_edges():
    nothing = best_composition(9, epsilon=0.0, delta=0.0, total_delta=1e-9)
    assert nothing.epsilon == 0.0
    assert optimal_composition(4, epsilon=0.01, delta=0.0, total_delta=0.5).epsilon == 0.0
    # δ all spent on what the steps give away: only the pure parts' sum is left.
    smallest = smallest_delta(50, delta=1e-6)
    assert smallest == pytest.approx(-math.expm1(50 * math.log1p(-1e-6)), rel=1e-11)
    assert best_composition(50, epsilon=0.2, delta=1e-6, total_delta=smallest).epsilon == (
        pytest.approx(10.0, rel=1e-4)
    )
    huge = best_composition(10**6, epsilon=1e305, delta=0.0, total_delta=1e-5)
    assert huge.epsilon == math.inf


@pytest.mark.parametrize(("k", "delta"), [(1000, 1.2345e-8), (7, 3e-4), (2, 0.4), (10**6, 1e-160)])
def test_a_delta_out_of_reach_names_one_within(k, delta):
    smallest = smallest_delta(k, delta=delta)
    with pytest.raises(UnreachableError) as refusal:
        best_composition(k, epsilon=0.1, delta=delta, total_delta=0.9 * smallest)
    text = str(refusal.value)
    assert text.startswith(f"a total delta of {0.9 * smallest:g} is too small ")
    assert f"too small for {k} steps that each have delta {delta:g}: it must be at" in text
    named = float(re.search(r"at least (\S+)$", text).group(1))
    assert smallest <= named <= smallest * 1.002
    found = best_composition(k, epsilon=0.1, delta=delta, total_delta=named)
    assert 0.0 < found.epsilon <= 0.1 * k * (1.0 + 1e-12)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"k": 0}, "k must be a whole number of at least 1, got 0"),
        ({"k": 2.0}, "k must be a whole number of at least 1, got 2.0"),
        ({"epsilon": -1.0}, "epsilon must be at least 0 and finite, got -1.0"),
        ({"epsilon": math.nan}, "epsilon must be at least 0 and finite, got nan"),
        ({"delta": 1.0}, "the delta of each step must be at least 0 and below 1, got 1.0"),
        ({"delta": math.nan}, "the delta of each step must be at least 0 and below 1, got nan"),
        ({"total_delta": 0.0}, "delta must be between 0 and 1, both excluded, got 0.0"),
    ],
)
def test_parameters_out_of_range(arguments, text):
    values = {"k": 2, "epsilon": 1.0, "delta": 0.0, "total_delta": 0.1} | arguments
    with pytest.raises(ParameterError) as refusal:
        best_composition(values.pop("k"), **values)
    assert str(refusal.value) == text


CURVE_ORDERS = 1.0 + np.geomspace(0.02, 1024.0, 60)
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
    curves = Curves(CURVE_ORDERS, CURVE_ORDERS * mu**2 / 2.0, mu=mu)
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
    curves = Curves(CURVE_ORDERS, CURVE_ORDERS * rho)
    found = epsilon_together(np.array(stated), curves, delta=1e-5)
    assert found <= sum(stated) + curves.epsilon(delta=1e-5) + 1e-7
    exact = Curves(CURVE_ORDERS, CURVE_ORDERS * rho, mu=math.sqrt(2.0 * rho))
    assert found >= epsilon_together(np.array(stated), exact, delta=1e-5) - 1e-9
    assert found >= epsilon_together(np.array(stated), None, delta=1e-5) - 1e-9


def test_a_curve_alone_is_converted_as_ever():
    curves, c = Curves(CURVE_ORDERS, CURVE_ORDERS * 0.01), CURVE_ORDERS - 1.0
    conversion = np.log(c / CURVE_ORDERS) - (np.log(1e-5) + np.log(CURVE_ORDERS)) / c
    known = np.min(CURVE_ORDERS * 0.01 + conversion)
    assert curves.epsilon(delta=1e-5) == pytest.approx(known, rel=1e-9)
    assert epsilon_together(NONE, curves, delta=1e-5) == pytest.approx(known, rel=1e-6)
    curves = Curves(CURVE_ORDERS, CURVE_ORDERS * 0.01, mu=math.sqrt(0.02))
    known = gaussian_epsilon(mu=math.sqrt(0.02), delta=1e-5)
    assert epsilon_together(NONE, curves, delta=1e-5) == pytest.approx(known, rel=1e-6)


def test_orders_at_which_nothing_is_known_are_left_out():
    whole = Curves(CURVE_ORDERS, CURVE_ORDERS * 0.01)
    partly = Curves(CURVE_ORDERS, np.where(CURVE_ORDERS < 9.0, CURVE_ORDERS * 0.01, np.inf))
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
def test_a_stated_epsilon_out_of_range_is_refused(stated):
    with pytest.raises(ParameterError, match="epsilon in `stated`"):
        epsilon_together(np.array(stated), None, delta=1e-5)


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
