"""LNMax: its cost on the lattice, shared records, and the three routes to a price for all votes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from graphs import every_histogram
from lattices import COARSE
from pate_cli.accounting.composition import optimal_composition
from pate_cli.accounting.conversion import conversion_cost, gaussian_epsilon
from pate_cli.accounting.laplace.noisy_max import laplace_scores
from pate_cli.accounting.laplace.score_cost import laplace_max_rdp, randomised_response_rdp
from pate_cli.accounting.score_grid import FINE
from pate_cli.disclosure.cost import Cost, Rows
from pate_cli.mechanisms import scored_from_parameters
from pate_cli.mechanisms.lnmax import LNMax
from slices import some


@pytest.mark.parametrize(
    ("mechanism", "order"),
    [
        (LNMax(8, 4, laplace_scale=1.5), 2.0),
        (LNMax(10, 2, laplace_scale=3.0), 5.0),
        (LNMax(10, 2, laplace_scale=0.5), 3.0),
        (LNMax(10, 3, laplace_scale=0.6), 2.5),
        (LNMax(6, 4, laplace_scale=0.8), 3.0),
        (LNMax(20, 3, laplace_scale=1.0), 14.0),
    ],
    ids=str,
)
def test_the_cost_on_the_lattice_is_the_bound_rounded_up(mechanism, order):
    scores = mechanism.score(every_histogram(mechanism.teachers, mechanism.classes))
    orders, scale = np.array([order]), mechanism.laplace_scale
    lattice = mechanism.rdp(scores, orders)[0]
    table = mechanism.cost_table(order)
    np.testing.assert_array_equal(lattice, table.cost(mechanism.cells(scores, table.grid)))
    if mechanism.classes > 2:
        worst = mechanism.worst_rdp(queries=1, answers=1, orders=orders)[0]
        smooth = np.minimum(laplace_max_rdp(scores[:, 0], scale=scale, orders=orders)[0], worst)
        assert np.all(lattice >= smooth * (1.0 - 1e-12))
        clear = smooth > 1e-12
        assert np.all(lattice[clear] <= smooth[clear] * math.exp(2.0 * FINE.step))
    coarse = mechanism.cost_table(order, COARSE)
    rounded = coarse.cost(mechanism.cells(scores, coarse.grid))
    assert np.all(rounded >= lattice * math.exp(-2.0 * FINE.step))


def test_more_votes_in_one_record_cost_as_much_as_less_noise():
    """k teachers a record: exactly k steps on small graphs, and the parameters keep it."""
    mechanism = LNMax(12, 3, laplace_scale=3.0, teachers_per_record=2)
    assert scored_from_parameters(mechanism.parameters()) == mechanism
    assert mechanism.pure_epsilon == pytest.approx(4.0 / 3.0)
    orders = np.array([4.0])
    score = mechanism.score(np.array([[9, 2, 1], [5, 4, 3]]))
    np.testing.assert_array_equal(score[:, 0], laplace_scores([[9, 2, 1], [5, 4, 3]], scale=3.0))
    once = LNMax(12, 3, laplace_scale=3.0).rdp(score, orders)
    assert np.all(mechanism.rdp(score, orders) > 2.0 * once)
    halved = laplace_max_rdp(score[:, 0], scale=1.5, orders=orders)
    np.testing.assert_allclose(mechanism.rdp(score, orders), halved, rtol=6e-3)
    worst = mechanism.worst_rdp(queries=3, answers=2, orders=orders)
    np.testing.assert_allclose(worst, 2 * randomised_response_rdp(epsilon=4 / 3, orders=orders))


@pytest.mark.parametrize(
    ("answers", "mechanism", "method"),
    some(
        [
            (100, LNMax(250, 10, laplace_scale=20.0), "renyi"),
            (1000, LNMax(250, 10, laplace_scale=20.0), "renyi"),
            (2, LNMax(250, 10, laplace_scale=5000.0), "pure-dp"),
            (100, LNMax(250, 10, laplace_scale=20.0, teachers_per_record=2), "gaussian-dp"),
            (1, LNMax(250, 10, laplace_scale=20.0, teachers_per_record=2), "pure-dp"),
        ],
        3,
    ),
)
def test_the_price_for_all_votes_is_the_smallest_of_three_routes(answers, mechanism, method):
    """Exact outputs win where one vote is moved; exact composition where they say little."""
    delta = 1e-5
    cost = Cost(delta, (Rows(mechanism, answers, answers),)).of_curves
    assert cost.method == method
    assert (cost.order is None) == (method != "renyi")
    epsilon = mechanism.pure_epsilon
    pure = optimal_composition(answers, epsilon=epsilon, delta=0.0, total_delta=delta).epsilon
    orders = 1.0 + np.geomspace(0.5, 100.0, 24)
    rdp = mechanism.worst_rdp(queries=answers, answers=answers, orders=orders)
    renyi = (rdp + conversion_cost(orders, delta=delta)).min()
    mu = mechanism.gaussian_mu(queries=answers, answers=answers)
    gaussian = gaussian_epsilon(mu=mu, delta=delta)
    assert cost.epsilon == pytest.approx(min(pure, renyi, gaussian), rel=2e-2)
    assert cost.epsilon <= pure
    assert cost.epsilon <= answers * epsilon


@pytest.mark.parametrize("scale", [0.1, 1.0, 20.0])
def test_the_gaussian_route_is_below_the_trade_off_of_pure_dp(scale):
    """G_μ ≤ f_ε everywhere for one count, at ε = 1/b, and μ²/ε grows with ε."""
    mu = LNMax(10, 3, laplace_scale=scale).gaussian_mu(queries=1, answers=1) / math.sqrt(2.0)
    epsilon, alpha = 1.0 / scale, np.linspace(1e-9, 1.0 - 1e-9, 20_001)
    pure = np.maximum(1.0 - np.exp(epsilon) * alpha, np.exp(-epsilon) * (1.0 - alpha))
    gaussian = norm.cdf(norm.isf(alpha) - mu)
    assert np.all(gaussian <= pure + 1e-12)
    assert np.max(gaussian - pure) > -1e-3
    scales = np.geomspace(0.02, 200.0, 300)
    rates = [
        LNMax(10, 3, laplace_scale=b).gaussian_mu(queries=1, answers=1) ** 2 * b
        for b in scales.tolist()
    ]
    assert np.all(np.diff(rates) < 0.0)


def test_nothing_overflows_at_little_noise_and_high_orders():
    counts = np.array([[20, 0, 0], [10, 10, 0], [7, 7, 6]])
    for scale, order in ((0.01, 100.0), (0.01, 1.001), (1e6, 1000.0), (20.0, 5000.0)):
        mechanism = LNMax(20, 3, laplace_scale=scale)
        cost = mechanism.rdp(mechanism.score(counts), np.array([order]))
        assert np.all((cost >= 0.0) & (cost <= 2.0 / scale * (1.0 + 1e-12)))
        assert np.all(np.diff(cost[0]) >= 0.0)
