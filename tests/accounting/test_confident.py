"""A whole Confident query against its exact output law; sums over the published votes."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from divergences import exact_test
from pate_cli.accounting.gaussian.two_tails import two_tail_rdp
from pate_cli.accounting.threshold import chain_rdp, pass_moments
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.mechanisms.gnmax import GNMax
from slices import tries


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
