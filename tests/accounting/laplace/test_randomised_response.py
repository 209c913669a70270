"""The two-sided cost of a Laplace argmax, against exact laws of small ensembles and mpmath."""

import mpmath
import numpy as np
import pytest

from divergences import renyi
from graphs import neighbours_of
from laws import laplace_argmax_law
from pate_cli.accounting.laplace.noisy_max import laplace_scores
from pate_cli.accounting.laplace.score_cost import (
    gap_of_score,
    laplace_edge_rdp,
    laplace_max_rdp,
    laplace_max_rdp_directions,
    laplace_two_class_rdp,
    randomised_response_rdp,
)
from pate_cli.accounting.laplace.worst_vote import three_way_log_outcomes, worst_laplace_max_rdp
from slices import some

ORDERS = np.array([1.01, 1.5, 3.0, 8.0, 25.0, 100.0])


def test_no_neighbour_exceeds_the_bound_in_either_direction(small_cases):
    closest = 0.0
    orders = ORDERS[1:5]
    for counts, scale, _ in some(small_cases[:60], 5):
        law = laplace_argmax_law(np.vstack([counts, neighbours_of(counts)]), scale)
        score = laplace_scores(counts[None], scale=scale)
        forward, reverse = laplace_max_rdp_directions(score, scale=scale, orders=orders)
        worst = worst_laplace_max_rdp(scale=scale, classes=len(counts), orders=orders)
        cost = np.minimum(np.maximum(forward, reverse)[:, 0], worst)
        if len(counts) == 2:
            exact = laplace_two_class_rdp(score, scale=scale, orders=orders)[:, 0]
            # Exact up to the supremum over lower scores: never above F, never below any neighbour.
            cost = np.minimum(cost, exact)
        for row, order in enumerate(orders):
            there = renyi(law[:1], law[1:], order).max()
            back = renyi(law[1:], law[:1], order).max()
            assert there <= forward[row, 0] * (1.0 + 1e-9) + 1e-13
            assert back <= reverse[row, 0] * (1.0 + 1e-9) + 1e-13
            assert max(there, back) <= cost[row] * (1.0 + 1e-9) + 1e-13
            closest = max(closest, max(there, back) / cost[row])
    assert closest > 0.9  # the bound is not loose everywhere


def exact_bound(score, scale, order):
    """F in both directions by its formula, in multiple precision."""
    psi, lam = mpmath.mpf(score), mpmath.mpf(order)
    q = mpmath.exp(psi) / 2 if psi <= 0 else 1 - mpmath.exp(-psi) / 2
    epsilon = mpmath.mpf(2) / mpmath.mpf(scale)
    ends = 1 / (1 + mpmath.exp(-epsilon)), 1 / (1 + mpmath.exp(epsilon))
    forward = reverse = mpmath.mpf(1)
    for a, b in (ends, ends[::-1]):
        k_a = min(mpmath.mpf(1), q / a)
        k_b = (q - k_a * a) / b
        moved = k_a * b + k_b * a
        up, down = a**lam * b ** (1 - lam), b**lam * a ** (1 - lam)
        there = (1 - q) ** lam * (1 - moved) ** (1 - lam) + k_a * up + k_b * down
        back = (1 - moved) ** lam * (1 - q) ** (1 - lam) + k_a * down + k_b * up
        forward, reverse = max(forward, there), max(reverse, back)
    return mpmath.log(forward) / (lam - 1), mpmath.log(reverse) / (lam - 1)


@pytest.mark.parametrize("scale", some([0.1, 0.5, 2.0, 20.0, 2000.0], 2))
def test_the_bound_is_its_formula_rounded_up_by_1e_9(scale):
    scores = np.array([-600.0, -100.0, -30.0, -5.0, -1.0, -0.1, 0.0, 0.01, 0.05, 0.3, 1.0, 3.0])
    with mpmath.workdps(600):
        for order in (1.01, 1.5, 8.0, 50.0, 400.0):
            sides = laplace_max_rdp_directions(scores, scale=scale, orders=[order])
            for index, score in enumerate(scores.tolist()):
                for side, wanted in zip(sides, exact_bound(score, scale, order), strict=True):
                    assert 0.0 <= side[0, index] / wanted - 1.0 <= 1.2e-9


@pytest.mark.parametrize("scale", [0.3, 2.0, 20.0, 400.0])
def test_it_is_monotone_capped_and_reaches_randomised_response(scale):
    scores = np.linspace(-60.0, 12.0, 4001)
    cost = laplace_max_rdp(scores, scale=scale, orders=ORDERS)
    cap = randomised_response_rdp(epsilon=2.0 / scale, orders=ORDERS)
    assert np.all(np.diff(cost, axis=1) >= -1e-13 * cost[:, 1:])
    assert np.all(cost <= cap[:, None])
    np.testing.assert_allclose(cost[:, -1], cap, rtol=1e-2)
    assert np.all(cap <= 2.0 / scale)
    assert np.all(laplace_max_rdp(-np.inf, scale=scale, orders=ORDERS) == 0.0)


def test_randomised_response_in_closed_form():
    for epsilon in (1e-4, 0.1, 2.0, 40.0):
        with mpmath.workdps(60):
            e = mpmath.mpf(epsilon)
            p0, p1 = 1 / (1 + mpmath.exp(-e)), 1 / (1 + mpmath.exp(e))
            for order in ORDERS:
                lam = mpmath.mpf(order)
                wanted = mpmath.log(p0**lam * p1 ** (1 - lam) + p1**lam * p0 ** (1 - lam))
                found = randomised_response_rdp(epsilon=epsilon, orders=[order])[0]
                assert 0.0 <= found / (wanted / (lam - 1)) - 1.0 <= 1.2e-9 or found == epsilon


@pytest.mark.parametrize(("x", "y"), [(0.3, -0.5), (1, 2), (2, 1), (-1, -2), (-2, 3), (0, 0)])
def test_three_outcomes_in_closed_form(x, y):
    def density(t):
        return mpmath.exp(-abs(t)) / 2

    def cdf(t):
        return mpmath.exp(t) / 2 if t < 0 else 1 - mpmath.exp(-t) / 2

    kinks = sorted({0.0, *(float(k) for k in (x, y) if k > 0)})
    first = mpmath.quad(lambda t: density(t - x) * cdf(t - y), [*kinks, 20, 60])
    second = mpmath.quad(lambda t: density(t - y) * cdf(t - x), [*kinks, 20, 60])
    found = np.exp(three_way_log_outcomes(np.array(float(x)), np.array(float(y))))
    np.testing.assert_allclose(
        found, [float(p) for p in (first, second, cdf(-x) * cdf(-y))], rtol=1e-12
    )
    assert found.sum() == pytest.approx(1.0, abs=1e-14)


def test_worst_votes_of_more_teachers_and_two_classes():
    cap = randomised_response_rdp(epsilon=0.3, orders=ORDERS)
    told = {"scale": 20.0 / 3.0, "orders": ORDERS}
    np.testing.assert_array_equal(worst_laplace_max_rdp(classes=5, **told, several=True), cap)
    two = worst_laplace_max_rdp(classes=2, **told, several=True)
    np.testing.assert_array_equal(two, worst_laplace_max_rdp(classes=2, **told))
    assert np.all(two < cap)


@pytest.mark.parametrize("scale", some([0.2, 1.0, 4.0, 50.0], 2))
def test_the_two_class_cost_is_the_supremum_over_all_wider_gaps(scale):
    shift = 2.0 / scale
    gaps = np.linspace(60.0, 0.0, 12_001)
    for order in ORDERS:
        edges = [
            laplace_edge_rdp(gaps + move, shift=shift, orders=[order])[0] for move in (0, -shift)
        ]
        running = np.maximum.accumulate(np.maximum(*edges))
        score = np.log((2.0 + gaps) / 2.0) - gaps
        bound = laplace_two_class_rdp(score, scale=scale, orders=[order])[0]
        assert np.all(bound >= running * (1.0 - 1e-12))
        seen = running > 1e-13
        assert np.all(bound[seen] <= running[seen] * (1.0 + 2e-2))


def test_the_gap_of_a_score_inverts_it():
    gaps = np.array([0.0, 1e-6, 0.3, 2.0, 40.0, 680.0])
    np.testing.assert_allclose(
        gap_of_score(np.log((2.0 + gaps) / 2.0) - gaps), gaps, rtol=1e-12, atol=1e-14
    )
    assert gap_of_score(0.5) == 0.0


@pytest.mark.parametrize("order", [1.5, 9.0])
def test_the_cost_of_two_coins_is_the_larger_direction(order):
    """At gaps below −shift/2 it is the other direction that is larger."""
    shift = 0.7
    gaps = np.array([-3.0, -0.6, -0.1, 0.4, 2.0])

    def logs(gap):
        rare = (2.0 + np.abs(gap)) / 4.0 * np.exp(-np.abs(gap))
        wins = np.where(gap < 0.0, 1.0 - rare, rare)
        return np.log(np.stack([wins, 1.0 - wins], axis=-1))

    here, there = logs(gaps), logs(gaps + shift)
    directions = np.array([renyi(here, there, order), renyi(there, here, order)])
    assert directions[:, 0].argmax() != directions[:, -1].argmax()
    found = laplace_edge_rdp(gaps, shift=shift, orders=[order])[0]
    np.testing.assert_allclose(found, directions.max(axis=0), rtol=1e-9)
