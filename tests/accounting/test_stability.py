"""Distances against brute force over every histogram; thresholds against integrals."""

import mpmath
import numpy as np
import pytest

from graphs import every_histogram, votes_apart
from pate_cli.accounting.stability import (
    distance_to_instability,
    epsilon_for_half,
    farthest_distance,
    sparse_vector_leak,
    sparse_vector_threshold,
    stability_leak,
    stability_threshold,
)
from pate_cli.core.checks import check_delta
from pate_cli.core.errors import ParameterError
from slices import some


def winner(counts):
    """The class strictly ahead, −1 in a tie."""
    first = np.argmax(counts, axis=1)
    ties = (counts == counts.max(axis=1)[:, None]).sum(axis=1)
    return np.where(ties > 1, -1, first)


@pytest.mark.parametrize(("teachers", "classes"), [(11, 2), (12, 2), (8, 3), (9, 3), (6, 4)])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_distance_is_the_fewest_records_to_a_tie_or_a_flip_less_one(teachers, classes, k):
    every = every_histogram(teachers, classes)
    leads = winner(every)
    lost = (leads[:, None] != leads[None]) | (leads[:, None] == -1)
    votes = np.where(lost, votes_apart(every, every), 10**6).min(axis=1)
    records = -(-votes // k)
    np.testing.assert_array_equal(
        distance_to_instability(every, teachers_per_record=k), np.maximum(records - 1, 0)
    )


@pytest.mark.parametrize(("teachers", "classes"), [(13, 2), (7, 3), (5, 4)])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_one_record_moves_the_distance_by_one_and_flips_only_at_zero(teachers, classes, k):
    every = every_histogram(teachers, classes, missing=teachers)
    distance = distance_to_instability(every, teachers_per_record=k)
    first, second = np.nonzero(votes_apart(every, every) <= k)
    assert np.abs(distance[first] - distance[second]).max() == min(distance.max(), 1)
    label = np.argmax(every, axis=1)
    flipped = label[first] != label[second]
    assert flipped.any()
    assert distance[first[flipped]].max() == 0


@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("teachers", [1, 2, 3, 10, 11, 250])
def test_a_unanimous_vote_is_farthest(teachers, k):
    unanimous = np.array([[teachers, 0, 0]])
    assert farthest_distance(teachers, teachers_per_record=k) == distance_to_instability(
        unanimous, teachers_per_record=k
    )


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 7.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.3, 0.5])
def test_a_query_at_distance_zero_leaks_what_is_said(epsilon, delta):
    threshold = stability_threshold(query_epsilon=epsilon, query_delta=delta)
    assert threshold == pytest.approx(np.log(1.0 / delta) / epsilon, rel=1e-14)
    tail = np.exp(-epsilon * threshold) / 2.0  # of Laplace noise of scale 1/ε
    leak = stability_leak(query_epsilon=epsilon, threshold=threshold)
    assert leak == pytest.approx(tail, rel=1e-12)
    assert leak == pytest.approx(delta / 2.0, rel=1e-12)
    threshold = sparse_vector_threshold(query_epsilon=epsilon, query_delta=delta)
    assert sparse_vector_leak(query_epsilon=epsilon, threshold=threshold) == pytest.approx(
        delta, rel=1e-12
    )


@pytest.mark.parametrize("threshold", some([0.0, 0.7, 9.0, 60.0], 2))
@pytest.mark.parametrize("epsilon", [0.4, 2.0])
def test_tail_of_two_laplace_variables(threshold, epsilon):
    """Pr[Lap(2b) > T + Lap(b)] by integrating over the threshold's noise."""
    mpmath.mp.dps = 30
    b = 2 / mpmath.mpf(epsilon)

    def above(x):
        tail = mpmath.exp(-abs(x) / (2 * b)) / 2
        return tail if x >= 0 else 1 - tail

    chance = mpmath.quad(
        lambda r: mpmath.exp(-abs(r) / b) / (2 * b) * above(threshold + r),
        sorted({-mpmath.inf, -threshold - 20, -mpmath.mpf(threshold), mpmath.mpf(0), mpmath.inf}),
    )
    assert sparse_vector_leak(query_epsilon=epsilon, threshold=threshold) == pytest.approx(
        float(chance), rel=1e-10
    )


def test_epsilon_for_half_the_farthest_distance():
    epsilon = epsilon_for_half(6.0, teachers=250, teachers_per_record=1)
    assert 6.0 / epsilon == pytest.approx(0.5 * 124, rel=1e-14)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: stability_threshold(query_epsilon=1.0, query_delta=1.0),
            "query delta must be between 0 and 1, both excluded, got 1.0",
        ),
        (
            lambda: check_delta(float("nan"), "query delta"),
            "query delta must be between 0 and 1, both excluded, got nan",
        ),
        (
            lambda: sparse_vector_threshold(query_epsilon=1.0, query_delta=0.6),
            "query delta must be above 0 and at most 0.5, got 0.6",
        ),
        (
            lambda: epsilon_for_half(1.0, teachers=4, teachers_per_record=2),
            "4 teachers are too few: stability and sparse-vector need at least 5 teachers",
        ),
    ],
)
def test_refusals(call, text):
    with pytest.raises(ParameterError) as refusal:
        call()
    assert str(refusal.value) == text
