"""The threshold test is a coin: its cost with many digits, over whole and real scores."""

import mpmath
import numpy as np
import pytest

from checks_alone import threshold_rdp
from divergences import exact_test
from pate_cli.accounting.gaussian.noisy_max import worst_scores
from pate_cli.accounting.gaussian.two_classes import two_class_rdp
from pate_cli.accounting.threshold import cell_moments, chain_rdp, pass_moments, worst_threshold_rdp
from pate_cli.mechanisms.confident import ConfidentGNMax


def distance(v, other, threshold, sigma, order, digits=60):
    """D_λ between the tests of two scores."""
    where = {"threshold": threshold, "sigma": sigma, "order": order}
    return float(exact_test(v, other, **where, digits=digits))


def test_w1_is_the_largest_cost_of_whole_votes():
    orders = np.array([1.5, 9.5, 40.0])
    for teachers, threshold, sigma in ((20, 12.0, 3.0), (5, 30.0, 2.0)):
        where = {"threshold": threshold, "sigma": sigma}
        found = worst_threshold_rdp(teachers=teachers, orders=orders, **where)
        pairs = [(v, v + step) for v in range(teachers + 1) for step in (-1, 1)]
        for order, cost in zip(orders.tolist(), found, strict=True):
            every = [
                distance(*way, **where, order=order) for a, b in pairs for way in ((a, b), (b, a))
            ]
            assert cost == pytest.approx(max(every), rel=1e-10)
    printed = worst_threshold_rdp(
        teachers=250, threshold=200.0, sigma=150.0, orders=np.array([9.5])
    )
    assert float(printed[0]) == pytest.approx(1.34406e-4, rel=1e-5)


@pytest.mark.parametrize(("sigma", "order"), [
    (0.7, 3.0), (1.0, 12.0), (4.0, 2.0), (30.0, 40.0), (0.02, 60.0)
])  # fmt: skip
@pytest.mark.parametrize("moved", [1, 3])
def test_no_real_score_of_a_cell_costs_more_than_the_cell(sigma, order, moved):
    """All four cases, of the coin and of the weight of an answer; the last ones overflow."""
    told = {"threshold": 8.0, "sigma": sigma, "order": order, "moved": moved}
    low = np.arange(-4.0, 20.0)
    cells = cell_moments(low, width=1.0, **told)
    with np.errstate(over="ignore", invalid="ignore"):
        inside = pass_moments(low[:, None] + np.linspace(0.0, 1.0, 401), **told)
    for bound, true in (
        (cells.excess, inside.excess.max(axis=2)),
        (cells.log_weight, inside.log_weight.max(axis=2)),
    ):
        assert np.all(bound >= true)
        near = np.abs(true) < 1e3
        assert np.all(bound[near] <= true[near] + 0.1 * np.abs(true[near]) + 0.01)


def test_overflow_ends_at_the_cap():
    orders = np.array([50.0, 1000.0])
    found = threshold_rdp(np.array([5.0]), threshold=20.0, sigma=0.5, orders=orders)
    assert np.all(found[:, 0] <= orders / (2.0 * 0.5**2))
    assert np.all(found > 0.0)


def test_a_whole_query_costs_what_its_worst_plurality_allows():
    """v votes decide the test, and how often they can lose."""
    mechanism = ConfidentGNMax(20, 2, threshold=15.0, sigma1=1.5, sigma2=3.0)
    highest = worst_scores(teachers=20, classes=2, sigma=3.0)
    answers = two_class_rdp(highest, sigma=3.0, orders=np.array([4.0]))[0]
    tests = pass_moments(np.arange(21.0), threshold=15.0, sigma=1.5, order=4.0)
    wanted = chain_rdp(tests, answers, cap=4.0 / (2.0 * 1.5**2)).max()
    found = mechanism.query_costs(np.array([4.0])).whole[0]
    assert found == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize(("score", "order"), [(-2.0, 30.0), (-4.0, 12.0), (1.0, 60.0)])
def test_the_cost_rises_with_that_of_the_answer(score, order):
    """A product that overflowed once gave a larger cost than at costlier answers."""
    moments = cell_moments(
        np.array([score]), width=1.0, threshold=1.54, sigma=0.58, order=order, moved=1
    )
    answers = np.concatenate([[0.0], np.geomspace(1e-9, 80.0, 400)])
    found = chain_rdp(moments, answers, cap=order / (2.0 * 0.58**2))
    assert np.all(np.diff(found) >= -1e-12 * found[1:])
    with mpmath.workdps(50):
        for answer, cost in zip(answers[::40].tolist(), found[::40].tolist(), strict=True):
            gain = mpmath.expm1((order - 1) * mpmath.mpf(answer))
            exact = max(
                mpmath.log1p(mpmath.mpf(float(excess[0])) + mpmath.exp(float(weight[0])) * gain)
                for excess, weight in zip(moments.excess, moments.log_weight, strict=True)
            )
            exact = min(exact / (order - 1), order / (2.0 * 0.58**2) + answer)
            assert cost == pytest.approx(float(exact), rel=1e-10, abs=1e-300)


@pytest.mark.parametrize("far", [1e8, 1e12, 1e15])
def test_a_threshold_far_from_all_votes_costs_what_a_nearer_one_costs(far):
    """The derivative of log Φ once was a difference of two numbers of the size of far²."""
    for sign in (1.0, -1.0):
        near, found = (
            cell_moments(np.array([0.0]), width=1.0, threshold=sign * at, sigma=1.0, order=8.0)
            for at in (1e4, far)
        )
        np.testing.assert_allclose(found.excess, near.excess, atol=1e-12)
        np.testing.assert_allclose(np.exp(found.log_weight), np.exp(near.log_weight), atol=1e-12)
