"""LNMax: the three routes to a cost for all votes, and extreme noise."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from pate_cli.accounting.composition import optimal_composition
from pate_cli.accounting.conversion import conversion_cost, gaussian_epsilon
from pate_cli.disclosure.cost import Cost, Rows
from pate_cli.mechanisms.lnmax import LNMax
from slices import some


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
    """G_μ ≤ f_ε everywhere for one count, at ε = 1/b."""
    mu = LNMax(10, 3, laplace_scale=scale).gaussian_mu(queries=1, answers=1) / math.sqrt(2.0)
    epsilon, alpha = 1.0 / scale, np.linspace(1e-9, 1.0 - 1e-9, 20_001)
    pure = np.maximum(1.0 - np.exp(epsilon) * alpha, np.exp(-epsilon) * (1.0 - alpha))
    gaussian = norm.cdf(norm.isf(alpha) - mu)
    assert np.all(gaussian <= pure + 1e-12)
    assert np.max(gaussian - pure) > -1e-3


def test_nothing_overflows_at_little_noise_and_high_orders():
    counts = np.array([[20, 0, 0], [10, 10, 0], [7, 7, 6]])
    for scale, order in ((0.01, 100.0), (0.01, 1.001), (1e6, 1000.0), (20.0, 5000.0)):
        mechanism = LNMax(20, 3, laplace_scale=scale)
        cost = mechanism.rdp(mechanism.score(counts), np.array([order]))
        assert np.all((cost >= 0.0) & (cost <= 2.0 / scale * (1.0 + 1e-12)))
        assert np.all(np.diff(cost[0]) >= 0.0)
