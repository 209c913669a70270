"""Composition against brute force over every outcome, high precision, and the other theorems."""

import math
import re

import mpmath
import numpy as np
import pytest
from scipy.stats import binom

from divergences import hockey_stick, worst_pair
from pate_cli.accounting.composition import best_composition, optimal_composition, smallest_delta
from pate_cli.core.errors import ParameterError, UnreachableError
from slices import some


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
