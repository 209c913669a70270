"""The threshold test, alone and before an argmax: costs with many digits, published sums."""

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from checks_alone import threshold_rdp
from divergences import exact_test
from pate_cli.accounting.gaussian.noisy_max import worst_scores
from pate_cli.accounting.gaussian.two_classes import two_class_rdp
from pate_cli.accounting.gaussian.two_tails import two_tail_rdp
from pate_cli.accounting.threshold import cell_moments, chain_rdp, pass_moments, worst_threshold_rdp
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.mechanisms.gnmax import GNMax
from slices import tries


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
    (0.7, 3.0), (1.0, 12.0), (4.0, 2.0), (30.0, 40.0), (0.06, 60.0)
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


def confident_rdp(v, argmax_rdp, *, threshold, sigma, order):
    """ρ at scores v and costs of the argmax, broadcast."""
    moments = pass_moments(v, threshold=threshold, sigma=sigma, order=order)
    return chain_rdp(moments, argmax_rdp, cap=order / (2.0 * sigma**2))


@settings(max_examples=tries(200))
@given(
    v=st.floats(-20.0, 300.0),
    argmax_rdp=st.one_of(st.just(0.0), st.floats(0.0, 20.0)),
    threshold=st.floats(-10.0, 300.0),
    sigma=st.floats(2.0, 200.0),
    order=st.floats(1.05, 60.0),
)
@example(v=200.0, argmax_rdp=15.0, threshold=190.0, sigma=40.0, order=60.0)  # e^885
def test_the_chain_rule_with_many_digits(v, argmax_rdp, threshold, sigma, order):
    """Labels that cost nothing leave the coin: the worst of both neighbours and directions."""
    where = {"threshold": threshold, "sigma": sigma, "order": order}
    found = float(confident_rdp(np.array(v), np.array(argmax_rdp), **where))
    true = max(
        float(exact_test(one, two, **where, digits=150, gain=argmax_rdp))
        for other in (v - 1.0, v + 1.0)
        for one, two in ((v, other), (other, v))
    )
    # v ± 1 as float64 and as an exact number differ by an ulp of v.
    assert found == pytest.approx(true, rel=1e-8, abs=1e-100)
    assert found <= order / (2.0 * sigma**2) + argmax_rdp


@pytest.fixture(scope="module")
def mnist():
    return ConfidentGNMax(teachers=250, classes=10, threshold=200.0, sigma1=150.0, sigma2=40.0)


def test_sums_over_the_published_votes(mnist, mnist_histograms, tight):
    assert mnist_histograms.shape == (640, 10)
    for case in tight["totals"]:
        orders = np.array([case["order"]])
        # Without the lattice, the very figures.
        z = mnist.score(mnist_histograms)[:, 1]
        exact = two_tail_rdp(z, sigma=40.0, orders=orders)
        assert float(exact.sum()) == pytest.approx(case["sum_F"], rel=1e-5)
        v = mnist_histograms.max(axis=1).astype(float)
        cost = confident_rdp(v, exact[0], threshold=200.0, sigma=150.0, order=case["order"])
        assert float(cost.sum()) == pytest.approx(case["sum_rho"], rel=1e-5)
        # What is charged is nowhere above what any votes cost, and a little more on the lattice.
        second = GNMax(teachers=250, classes=10, sigma2=40.0)
        capped = np.minimum(exact[0], second.worst_answer(orders)[0])
        argmax = float(second.rdp(second.score(mnist_histograms), orders).sum())
        assert capped.sum() <= argmax <= capped.sum() * 1.002 < 0.95 * case["sum_F"]
        cost = confident_rdp(v, capped, threshold=200.0, sigma=150.0, order=case["order"])
        total = float(mnist.rdp(mnist.score(mnist_histograms), orders).sum())
        assert cost.sum() <= total <= cost.sum() * 1.002
