"""Two classes: coins by their score, and whole queries by their votes, against enumeration."""

import mpmath as mp
import numpy as np
import pytest
from scipy.special import log_ndtr

from divergences import exact_coin, renyi, worst_coin
from graphs import Graph
from pate_cli.accounting.gaussian import two_classes
from pate_cli.accounting.gaussian.two_classes import two_class_rdp, two_class_states_rdp
from pate_cli.core.errors import ParameterError
from slices import some


def one(z, sigma, order):
    return float(two_class_rdp(np.array([z]), sigma=sigma, orders=np.array([order]))[0, 0])


def eighty_digits(z, sigma, order):
    """The four divergences of Φ(z) and Φ(z ± μ), the largest."""
    with mp.workdps(80):
        moved = [mp.mpf(z) + sign * mp.sqrt(2) / mp.mpf(sigma) for sign in (-1, 1)]
        pairs = [pair for other in moved for pair in ((z, other), (other, z))]
        return float(max(exact_coin(a, b, order, digits=80) for a, b in pairs))


@pytest.mark.parametrize("z", some([-9.0, -5.0, -2.0, -0.3, 0.0], 2))
@pytest.mark.parametrize(("sigma", "order"), [(40.0, 14.0), (5.0, 3.0), (1.0, 1.2), (100.0, 60.0)])
def test_a_coin_against_eighty_digits(z, sigma, order):
    true = eighty_digits(z, sigma, order)
    assert float(worst_coin(z, np.sqrt(2.0) / sigma, order)) == pytest.approx(true, rel=1e-11)
    # The cost is the supremum over all lower scores as well.
    assert one(z, sigma, order) >= true * (1.0 - 1e-12)


@pytest.mark.parametrize(
    "sigma", some([0.3, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 10.0, 20.0, 40.0, 200.0], 3)
)
def test_the_envelope_is_the_running_supremum(sigma):
    # Two equal humps a vote apart with a dip between: σ = 0.5, λ = 1.1 dips by a quarter.
    z = np.linspace(-45.0, 1.0, 9201)
    for order in (1.1, 1.5, 2.0, 3.0, 5.0, 8.0, 14.0, 30.0, 60.0):
        orders = np.array([order])
        cost = two_class_rdp(z, sigma=sigma, orders=orders)[0]
        exact = worst_coin(np.minimum(z, 0.0), np.sqrt(2.0) / sigma, order)
        running = np.minimum(np.maximum.accumulate(exact), order / sigma**2)
        assert np.all(cost >= running * (1.0 - 1e-12) - 1e-300)  # subnormals have no digits
        assert np.all(np.diff(cost) >= -1e-300)
        # Past float64 the cap stands.
        used = (running > 1e-280) & ((order - 1.0) * running < 700.0)
        assert np.all(cost[used] <= running[used] * 1.005)  # the peak is between two nodes


def test_a_peak_that_is_known_is_taken():
    z, orders = np.linspace(-8.0, 1.0, 300), np.array([1.1, 2.0, 14.0, 1e4])
    for sigma in (0.7, 40.0):
        found = two_class_rdp(z, sigma=sigma, orders=orders)
        again = two_class_rdp(z, sigma=sigma, orders=orders, peaks=found[:, -1])
        assert again.tolist() == found.tolist()
        lower = two_class_rdp(z, sigma=sigma, orders=orders[:3], peaks=0.5 * found[:3, -1])
        assert (lower[:, -1] == 0.5 * found[:3, -1]).all()


def test_caps_and_far_scores():
    orders = np.array([2.0, 50.0])
    cost = two_class_rdp(np.array([-np.inf, -1e6, -37.0, 5.0, np.inf]), sigma=1.0, orders=orders)
    assert np.all(cost <= (orders / 1.0**2)[:, None])
    assert np.all(np.diff(cost, axis=1) >= 0.0)
    assert cost[0, :2].tolist() == [0.0, 0.0]
    assert cost[0, 3] == cost[0, 4] > 1.0
    # Past float64 the cap stands.
    assert one(-1.0, 0.05, 14.0) == pytest.approx(14.0 / 0.05**2, rel=1e-12)


DISTANCES = np.array([0, 1, 2, 5, 9, 30])
# σ2, then T and σ1 of the test or nothing.
QUERIES = [
    (2.0, None, np.inf),
    (1.0, 6.0, 3.0),
    (0.5, 5.5, 1.0),
    (40.0, 7.0, 30.0),
    (3.0, -2.0, 0.5),
]


def law(states, sigma, threshold, sigma_threshold):
    """log probabilities of class 1, class 2 and, with a test, no answer, [states, outcomes]."""
    first = (states[:, 0] - states[:, 1]) / (sigma * np.sqrt(2.0))
    answers = np.stack([log_ndtr(first), log_ndtr(-first)], axis=1)
    if threshold is None:
        return answers
    passes = (states.max(axis=1) - threshold) / sigma_threshold
    return np.column_stack([answers + log_ndtr(passes)[:, None], log_ndtr(-passes)])


def enumerated(graph, order, query):
    """The largest divergence of every state, and its maxima over balls, from their definitions."""
    here, there = graph.edges.T
    log_law = law(graph.histograms, *query)
    cost = renyi(log_law[here], log_law[there], order)
    worst = np.zeros(len(graph.histograms))
    for end in (here, there):
        np.maximum.at(worst, end, cost)
    return np.stack([np.where(graph.distances <= d, worst, 0.0).max(axis=1) for d in DISTANCES])


def tabulated(states, teachers, order, query):
    sigma, threshold, sigma_threshold = query
    return two_class_states_rdp(
        states,
        teachers=teachers,
        sigma=sigma,
        order=order,
        distances=DISTANCES,
        threshold=threshold,
        sigma_threshold=sigma_threshold,
    )


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("order", [1.2, 3.0, 14.0])
def test_every_state_and_ball(query, order):
    graph = Graph.of(9, 2, missing=9)
    found = tabulated(graph.histograms, 9, order, query)
    direct = enumerated(graph, order, query)
    most = order / query[0] ** 2 + (order / (2.0 * query[2] ** 2) if query[2] else 0.0)
    assert np.all(found >= np.minimum(direct, most))
    np.testing.assert_allclose(found, np.minimum(direct, most), rtol=3e-9)


def test_chunks_change_nothing(monkeypatch):
    graph = Graph.of(9, 2, missing=9)
    whole = tabulated(graph.histograms, 9, 3.0, QUERIES[1])
    monkeypatch.setattr(two_classes, "_CHUNK", 30)
    np.testing.assert_array_equal(tabulated(graph.histograms, 9, 3.0, QUERIES[1]), whole)


def test_more_teachers_than_a_table_holds_are_refused():
    with pytest.raises(ParameterError, match="at most 6000"):
        two_class_states_rdp(
            np.array([[3, 3]]), teachers=100_000, sigma=2.0, order=3.0, distances=np.array([0])
        )
