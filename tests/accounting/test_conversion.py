"""Rényi and Gaussian DP converted to (ε, δ), curves between their orders, ε of one record."""

import math
from decimal import Decimal

import mpmath as mp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from divergences import exact_gaussian_delta, hockey_stick, worst_pair
from pate_cli.accounting.conversion import (
    RdpCurve,
    conversion_cost,
    gaussian_delta,
    gaussian_epsilon,
    record_epsilon,
    release_epsilon,
    round_up,
    significant_up,
)
from pate_cli.accounting.laplace.score_cost import randomised_response_rdp
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


def gaussian(orders, *, mu=1.0):
    return orders * mu**2 / 2.0


def laplace(orders, *, scale=2.0):
    """Mironov 2017, Table II."""
    up = np.log(orders / (2.0 * orders - 1.0)) + (orders - 1.0) / scale
    down = np.log((orders - 1.0) / (2.0 * orders - 1.0)) - orders / scale
    return np.logaddexp(up, down) / (orders - 1.0)


def response(orders, *, epsilon=3.0):
    return randomised_response_rdp(epsilon=epsilon, orders=orders)


def seldom(orders, *, chance=1e-3, epsilon=8.0):
    """A public coin says whether there is a response of large ε: the curve has a knee."""
    moment = np.expm1((orders - 1.0) * response(orders, epsilon=epsilon))
    return np.log1p(chance * moment) / (orders - 1.0)


KNOWN = [gaussian, laplace, response, seldom]
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


def test_what_is_no_curve_is_refused():
    wrong_orders = [(2.0, 2.0), (4.0, 2.0), (1.0, 2.0), (2.0, np.inf), (2.0, np.nan), (2.0, 1e300)]
    wrong_costs = [(1.0,), (1.0, -1e-9), (1.0, np.nan), (1.0, np.inf), (1.0, 1e200)]
    cases = [((), ()), *((orders, (1.0, 1.0)) for orders in wrong_orders)]
    for orders, rdp in [*cases, *(((2.0, 4.0), rdp) for rdp in wrong_costs)]:
        with pytest.raises(ParameterError):
            RdpCurve(np.array(orders), np.array(rdp))


DELTA = 1e-5
# (ε, ε0): ε' of this point; the least ε' at δ = 1e-5 of any proof, for δ0 of 0 and of 1e-5.
RECORDS = {
    (1.0, 1.0): (0.433781, 0.433770, 0.433775),
    (2.0, 1.0): (0.735326, 0.735313, 0.735323),
    (10.0, 1.0): (0.999893, 0.999880, 0.999893),
    (22.7, 1.0): (1.000000, 0.999986, 1.000000),
    (2.0, 4.0): (1.875548, 1.875546, 1.875547),
    (0.5, 0.1): (0.024473, 0.024454, 0.024458),
}


@pytest.mark.parametrize(("point", "wanted"), RECORDS.items(), ids=str)
def test_golden_numbers(point, wanted):
    (epsilon, teacher), (exact, best, with_delta) = point, wanted
    told = {"epsilon": epsilon, "delta": DELTA, "teacher_epsilon": teacher}
    assert record_epsilon(**told, teacher_delta=0.0) <= exact + 5e-7
    assert best - 1e-6 <= record_epsilon(**told) <= best + 2.5e-5
    assert with_delta - 1e-6 <= record_epsilon(**told, teacher_delta=1e-5) <= with_delta + 2.5e-5
    formula = math.log((1 + math.exp(teacher + epsilon)) / (math.exp(teacher) + math.exp(epsilon)))
    tiny = record_epsilon(epsilon=epsilon, delta=1e-300, teacher_epsilon=teacher)
    assert tiny == pytest.approx(formula, rel=1e-11)


def test_the_largest_release_that_a_record_can_bear():
    told = {"delta": DELTA, "teacher_epsilon": 1.0}
    most = release_epsilon(0.5, **told)
    assert record_epsilon(epsilon=most, **told) == pytest.approx(0.5, rel=1e-9)
    assert record_epsilon(epsilon=most * 1.001, **told) > 0.5
    assert release_epsilon(1.0, **told) == math.inf  # what one teacher's training bears by itself


@pytest.mark.parametrize("release_delta", [1e-9, 1e-2])
@pytest.mark.parametrize("teacher_delta", [0.0, 1e-10, 1e-3, 0.05])
@pytest.mark.parametrize("epsilons", [(1.0, 1.0), (2.0, 0.7), (0.3, 3.0), (3.0, 3.0), (0.5, 0.1)])
def test_it_covers_the_worst_training_before_the_worst_release(
    epsilons, teacher_delta, release_delta
):
    """Of four vote vectors, two stand on each side of the release, one of them a giveaway."""
    epsilon, teacher = epsilons
    told = {"epsilon": epsilon, "delta": release_delta, "teacher_epsilon": teacher}
    found = record_epsilon(**told, teacher_delta=teacher_delta)
    one, other = worst_pair(epsilon, release_delta)
    release = np.stack([one, one, other, other])
    here, there = (law @ release for law in worst_pair(teacher, teacher_delta))
    assert hockey_stick(here, there, found) <= release_delta * (1.0 + 1e-9) + 1e-15
    if teacher_delta == 0.0:  # and no less would do, but for what δ leaves
        assert hockey_stick(here, there, 0.99 * found) > 1e-4 * found


@settings(max_examples=tries(150), deadline=None)
@given(seed=st.integers(0, 2**32 - 1), votes=st.integers(2, 5), outcomes=st.integers(2, 5))
def test_no_training_and_no_event_exceed_the_theorem(seed, votes, outcomes):
    """Made-up laws with their exact divergences, event by event."""
    random = np.random.default_rng(seed)
    training = random.dirichlet(np.ones(votes) * 0.7, size=2)
    release = random.dirichlet(np.ones(outcomes) * 0.7, size=votes)
    one, other = training @ release
    events = (np.arange(2**outcomes)[:, None] >> np.arange(outcomes)) % 2
    for at in (0.0, 0.1, 0.5, 1.5):
        ratio = math.exp(at)
        reached = hockey_stick(*training, at)
        gain = events @ (one - ratio * other)
        if reached == 0.0:
            assert gain.max() <= 1e-12
            continue
        each = release @ events.T
        most = each.max(axis=0) - (1.0 + (ratio - 1.0) / reached) * each.min(axis=0)
        assert np.all(gain <= reached * most + 1e-12)


def test_two_releases_of_the_same_votes_are_composed_and_then_amplified_once():
    teacher, epsilon = 0.5, 2.0
    votes = np.stack([law[[1, 2]] for law in worst_pair(teacher, 0.0)])
    once = np.stack([law[[1, 2]] for law in worst_pair(epsilon, 0.0)])
    one, other = votes @ np.stack([np.outer(law, law).ravel() for law in once])
    together = record_epsilon(epsilon=2.0 * epsilon, delta=1e-12, teacher_epsilon=teacher)
    assert float(np.max(np.log(one / other))) == pytest.approx(together, abs=1e-6)


@given(
    epsilon=st.floats(0.0, 800.0),
    teacher=st.floats(0.0, 50.0),
    delta=st.sampled_from([1e-12, 1e-5, 0.1]),
    share=st.sampled_from([0.0, 1e-3, 1.0]),
)
def test_it_is_below_both_and_grows_with_either(epsilon, teacher, delta, share):
    told = {"delta": delta, "teacher_delta": share * delta}
    found = record_epsilon(epsilon=epsilon, teacher_epsilon=teacher, **told)
    assert 0.0 <= found <= epsilon
    assert found <= teacher * (1.0 + 1e-9) + 1e-12
    more = record_epsilon(epsilon=epsilon + 0.1, teacher_epsilon=teacher + 0.1, **told)
    assert more >= found - 1e-9


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 8.0, 40.0, 70.0, 800.0, 2000.0])
@pytest.mark.parametrize("delta", [1e-15, 1e-5])
def test_round_off_goes_towards_more_loss(epsilon, delta):
    with mp.workdps(60):
        for teacher, away in ((0.05, 0.0), (1.0, 1e-9), (1.0, 2e-5), (5.0, 0.01)):
            told = {"epsilon": epsilon, "delta": delta, "teacher_epsilon": teacher}
            a = mp.exp(mp.mpf(record_epsilon(**told, teacher_delta=away)))
            top = mp.exp(teacher)
            p = mp.mpf(away) + (1 - mp.mpf(away)) * max(top - a, 0) / (1 + top)
            assert p <= delta or mp.log(1 + (a - 1) / p) >= epsilon


@pytest.mark.parametrize(
    "told",
    [{"epsilon": -1.0}, {"delta": 0.0}, {"teacher_epsilon": -1.0}, {"teacher_delta": 1.0}],
    ids=str,
)
def test_numbers_out_of_range_are_refused(told):
    with pytest.raises(ParameterError):
        record_epsilon(**{"epsilon": 1.0, "delta": DELTA, "teacher_epsilon": 1.0, **told})
