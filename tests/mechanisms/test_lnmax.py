"""LNMax: the law of its labels, its cost and sensitivities on whole graphs, its price for all."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from scipy.stats import binom, norm

from pate_cli.accounting.composition import optimal_composition
from pate_cli.accounting.conversion import best_order, gaussian_epsilon
from pate_cli.accounting.laplace.noisy_max import laplace_scores
from pate_cli.accounting.laplace.randomised_response import laplace_max_rdp, randomised_response_rdp
from pate_cli.accounting.score_grid import COARSE, FINE
from pate_cli.errors import ParameterError
from pate_cli.mechanisms import scored_from_parameters
from pate_cli.mechanisms.gnmax import GNMax
from pate_cli.mechanisms.lnmax import LNMax
from pate_cli.noise import Noise
from pate_cli.release.worst_case import Spending, data_independent_cost

# (mechanism, λ, β)
CASES = [
    (LNMax(8, 4, laplace_scale=1.5), 2.0, 0.02),
    (LNMax(10, 2, laplace_scale=3.0), 5.0, 0.05),
    (LNMax(10, 2, laplace_scale=0.5), 3.0, 0.1),
    (LNMax(10, 3, laplace_scale=0.6), 2.5, 0.1),
    (LNMax(6, 4, laplace_scale=0.8), 3.0, 0.02),
    (LNMax(20, 3, laplace_scale=1.0), 14.0, 0.03),
]


def name(case):
    return f"{case[0].teachers}x{case[0].classes}-b{case[0].laplace_scale:g}-order{case[1]:g}"


def laplace_law(counts, scale):
    """Pr[argmax of counts + Lap(b) is i], between kinks in multiple precision."""
    n = [mpmath.mpf(int(v)) / mpmath.mpf(scale) for v in counts]
    edges = [min(n) - 50, *sorted(set(n)), max(n) + 1, max(n) + 6, max(n) + 50]

    def cdf(x):
        return mpmath.exp(x) / 2 if x < 0 else 1 - mpmath.exp(-x) / 2

    def one(i):
        def integrand(t):
            rest = mpmath.fprod(cdf(t - v) for j, v in enumerate(n) if j != i)
            return mpmath.exp(-abs(t - n[i])) / 2 * rest

        return mpmath.quad(integrand, edges)

    return np.array([float(one(i)) for i in range(len(n))])


def test_labels_follow_the_exact_law():
    """One run in a million fails: 5 histograms × 3 classes × both tails × 2 sources of noise."""
    histograms = [[14, 4, 2], [0, 10, 10], [7, 7, 6], [1, 19, 0], [20, 0, 0]]
    alarm, mechanism = 1e-6 / (len(histograms) * 3 * 2 * 2), LNMax(20, 3, laplace_scale=4.0)
    for noise, draws in ((Noise.from_seed(7), 60_000), (Noise.from_entropy(), 20_000)):
        for counts in histograms:
            chances = laplace_law(counts, 4.0)
            assert chances.sum() == pytest.approx(1.0, abs=1e-12)
            labels = mechanism.label(np.tile(np.array(counts), (draws, 1)), noise)
            seen = np.bincount(labels, minlength=3)
            assert np.all(binom.cdf(seen, draws, chances) > alarm)
            assert np.all(binom.sf(seen - 1, draws, chances) > alarm)


def test_batches_do_not_change_seeded_labels():
    counts = np.random.default_rng(2).multinomial(20, [0.5, 0.3, 0.2], size=50)
    mechanism, noise = LNMax(20, 3, laplace_scale=4.0), Noise.from_seed(5)
    parts = [mechanism.label(counts[i : i + 7], noise) for i in range(0, 50, 7)]
    whole = mechanism.label(counts, Noise.from_seed(5))
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    assert whole.dtype == np.int32


@pytest.fixture(params=CASES, ids=name)
def case(request, all_histograms, single_curves):
    mechanism, order, beta = request.param

    class Case:
        graph = all_histograms(mechanism.teachers, mechanism.classes)
        surface = mechanism.cost_table(order)
        cells = mechanism.cells(mechanism.score(graph.histograms), surface)
        cost = surface.cost(cells)
        curves, ceiling = single_curves(surface, cells, mechanism.teachers + 1)

    result = Case()
    result.mechanism, result.order, result.beta = mechanism, order, beta
    return result


def test_neighbours_are_within_reach_and_the_cost_within_its_sensitivity(case):
    here, there = case.graph.edges.T
    scores = case.mechanism.score(case.graph.histograms)[:, 0]
    assert np.abs(scores[here] - scores[there]).max() <= case.mechanism.lipschitz[0]
    assert np.abs(case.cells[here, 1] - case.cells[there, 1]).max() <= case.surface.grid.stride
    change = np.abs(case.cost[here] - case.cost[there])
    assert change.max() > 1e-3 * case.cost.max()
    largest = np.zeros(len(case.cost))
    np.maximum.at(largest, here, change)
    distances = case.graph.distances
    for d in range(case.mechanism.teachers + 1):
        worst = np.where(distances <= d, largest[None, :], 0.0).max(axis=1)
        assert np.all(worst <= case.curves[:, d])
    assert case.curves.max() <= case.ceiling * (1.0 + 1e-12)


@pytest.mark.parametrize("distances", [1, 3, None])
def test_smooth_sensitivity_of_neighbours_is_within_a_factor(case, distances):
    distances = case.mechanism.teachers if distances is None else distances
    discount = np.exp(-case.beta * np.arange(distances))
    values = np.maximum(
        (case.curves[:, :distances] * discount).max(axis=1),
        case.ceiling * math.exp(-case.beta * distances),
    )
    here, there = case.graph.edges.T
    assert (values[here] / values[there]).max() <= math.exp(case.beta) * (1.0 + 1e-9)


def test_the_cost_on_the_lattice_is_the_bound_rounded_up(case):
    scores = case.mechanism.score(case.graph.histograms)
    orders = np.array([case.order])
    scale = case.mechanism.laplace_scale
    lattice = case.mechanism.rdp(scores, orders)[0]
    np.testing.assert_array_equal(lattice, case.cost)
    if case.mechanism.classes > 2:
        worst = case.mechanism.worst_rdp(queries=1, answers=1, orders=orders)[0]
        smooth = np.minimum(laplace_max_rdp(scores[:, 0], scale=scale, orders=orders)[0], worst)
        assert np.all(lattice >= smooth * (1.0 - 1e-12))
        clear = smooth > 1e-12
        assert np.all(lattice[clear] <= smooth[clear] * math.exp(2.0 * FINE.step))
    coarse = case.mechanism.cost_table(case.order, COARSE)
    rounded = coarse.cost(case.mechanism.cells(scores, coarse))
    assert np.all(rounded >= case.cost * math.exp(-2.0 * FINE.step))


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


def test_two_classes_cost_less_than_the_general_bound():
    mechanism, orders = LNMax(250, 2, laplace_scale=20.0), np.array([8.0])
    score = mechanism.score(np.array([[200, 50], [140, 110]]))
    general = laplace_max_rdp(score[:, 0], scale=20.0, orders=orders)
    assert np.all(mechanism.rdp(score, orders) < 0.9 * general)


@pytest.mark.parametrize(
    ("answers", "mechanism", "method"),
    [
        (100, LNMax(250, 10, laplace_scale=20.0), "renyi"),
        (1000, LNMax(250, 10, laplace_scale=20.0), "renyi"),
        (2, LNMax(250, 10, laplace_scale=5000.0), "pure-dp"),
        (100, LNMax(250, 10, laplace_scale=20.0, teachers_per_record=2), "gaussian-dp"),
        (1, LNMax(250, 10, laplace_scale=20.0, teachers_per_record=2), "pure-dp"),
    ],
)
def test_the_price_for_all_votes_is_the_smallest_of_three_routes(answers, mechanism, method):
    """Exact outputs win where one vote is moved; exact composition where they say little."""
    delta = 1e-5
    cost = data_independent_cost([Spending(mechanism, answers, answers)], delta=delta, plan=None)
    assert cost.method == method
    assert (cost.order is None) == (method != "renyi")
    epsilon = mechanism.pure_epsilon
    pure = optimal_composition(answers, epsilon=epsilon, delta=0.0, total_delta=delta).epsilon
    orders = 1.0 + np.geomspace(0.02, 1000.0, 60)
    renyi = best_order(
        mechanism.worst_rdp(queries=answers, answers=answers, orders=orders),
        orders=orders,
        delta=delta,
    ).epsilon
    mu = mechanism.gaussian_mu(queries=answers, answers=answers)
    gaussian = gaussian_epsilon(mu=mu, delta=delta)
    assert cost.epsilon == pytest.approx(min(pure, renyi, gaussian), rel=2e-2)
    assert cost.epsilon <= pure
    assert cost.epsilon <= answers * epsilon


def test_rounds_of_different_pure_mechanisms_and_of_gaussian_ones_compose():
    one, other = LNMax(50, 3, laplace_scale=0.5), LNMax(50, 3, laplace_scale=50.0)
    both = data_independent_cost(
        [Spending(one, 1, 1), Spending(other, 1, 1)], delta=1e-9, plan=None
    )
    assert both.epsilon <= 4.0 + 0.04
    mixed = data_independent_cost(
        [Spending(other, 10, 10), Spending(GNMax(50, 2, sigma2=5.0), 2, 2)],
        delta=1e-6,
        plan=None,
    )
    assert mixed.method in ("renyi", "gaussian-dp")
    nothing = data_independent_cost([Spending(other, 5, 0)], delta=1e-6, plan=None)
    assert nothing.epsilon == 0.0


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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"laplace_scale": 0.0}, "laplace_scale must be positive and finite, got 0.0"),
        ({"laplace_scale": math.nan}, "laplace_scale must be positive and finite, got nan"),
        ({"teachers": 0}, "teachers must be at least 1, got 0"),
        ({"classes": 1}, "classes must be at least 2, got 1"),
        (
            {"teachers_per_record": 21},
            "teachers_per_record=21 is more than the 20 teachers",
        ),
    ],
)
def test_parameters_out_of_range(change, message):
    with pytest.raises(ParameterError) as caught:
        LNMax(**({"teachers": 20, "classes": 3, "laplace_scale": 1.0} | change))
    assert str(caught.value) == message


def test_a_mechanism_is_built_again_from_its_parameters():
    mechanism = LNMax(50, 3, laplace_scale=8.0)
    assert mechanism.parameters()["name"] == "lnmax"
    assert scored_from_parameters(mechanism.parameters()) == mechanism
