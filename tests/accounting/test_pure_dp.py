"""Exact composition of pure-DP answers, against the two laws written out."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pate_cli.accounting.pure_dp import pure_delta, pure_epsilon
from pate_cli.errors import ParameterError


@pytest.mark.parametrize(("answers", "each"), [(1, 0.5), (2, 0.1), (5, 1.3), (8, 0.4)])
def test_delta_is_that_of_rounds_of_randomised_response(answers, each):
    likely = 1.0 / (1.0 + math.exp(-each))
    for epsilon in (0.0, 0.05, each, 1.7 * each, answers * each):
        total = 0.0
        for flips in itertools.product((0, 1), repeat=answers):
            rare = sum(flips)
            p = likely ** (answers - rare) * (1.0 - likely) ** rare
            q = likely**rare * (1.0 - likely) ** (answers - rare)
            total += max(0.0, p - math.exp(epsilon) * q)
        found = pure_delta(answers=answers, each=each, epsilon=epsilon)
        assert total * (1.0 - 1e-12) - 1e-15 <= found <= total * (1.0 + 2e-6) + 1e-15


@given(st.integers(1, 3000), st.floats(1e-4, 5.0), st.floats(1e-12, 0.5))
def test_epsilon_is_where_delta_is_reached_and_below_basic_composition(answers, each, delta):
    epsilon = pure_epsilon(answers=answers, each=each, delta=delta)
    assert 0.0 <= epsilon <= answers * each
    assert pure_delta(answers=answers, each=each, epsilon=epsilon) <= delta
    if epsilon > 1e-9:
        below = pure_delta(answers=answers, each=each, epsilon=epsilon * (1.0 - 1e-9))
        assert below > delta * (1.0 - 1e-3)


def test_it_is_no_worse_than_the_advanced_composition_theorem():
    answers, each, delta = 1000, 0.1, 1e-5
    advanced = each * math.sqrt(2.0 * answers * math.log(1.0 / delta)) + answers * each * (
        math.expm1(each)
    )
    assert pure_epsilon(answers=answers, each=each, delta=delta) < advanced


def test_one_answer_at_a_tiny_delta_costs_its_epsilon():
    assert pure_epsilon(answers=1, each=0.3, delta=1e-12) == pytest.approx(0.3, rel=1e-9)
    assert pure_epsilon(answers=1, each=1e-9, delta=1e-3) == 0.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"answers": 0}, "answers must be at least 1, got 0"),
        ({"each": 0.0}, "each must be positive and finite, got 0.0"),
        ({"epsilon": -1.0}, "epsilon must be at least 0 and finite, got -1.0"),
    ],
)
def test_bad_arguments_are_refused(change, message):
    with pytest.raises(ParameterError) as caught:
        pure_delta(**({"answers": 3, "each": 0.1, "epsilon": 0.2} | change))
    assert str(caught.value) == message


def test_large_numbers_stay_finite():
    epsilon = pure_epsilon(answers=1_000_000, each=0.01, delta=1e-8)
    # The central limit: mean k tanh(ε0/2) ε0, standard deviation ε0 √k.
    middle = 1e6 * 0.01 * np.tanh(0.005)
    assert middle + 4.0 * 10.0 < epsilon < middle + 6.0 * 10.0
