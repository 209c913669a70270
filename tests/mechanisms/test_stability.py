"""Distances against brute force over every histogram; leaks, compositions and defaults."""

import mpmath
import numpy as np
import pytest

from graphs import every_histogram, votes_apart
from pate_cli.accounting.composition import best_composition
from pate_cli.core.errors import ParameterError
from pate_cli.core.words import MechanismName
from pate_cli.mechanisms import MechanismChoice
from pate_cli.mechanisms.sparse_vector import SparseVector
from pate_cli.mechanisms.stability import Stability, distance_to_instability
from refusals import refusal
from slices import some


@pytest.mark.parametrize(("teachers", "classes"), [(11, 2), (12, 2), (8, 3), (9, 3), (6, 4)])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_distance_is_the_fewest_records_to_a_tie_or_a_flip_less_one(teachers, classes, k):
    every = every_histogram(teachers, classes)
    tied = (every == every.max(axis=1)[:, None]).sum(axis=1) > 1
    leads = np.where(tied, -1, np.argmax(every, axis=1))
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


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 7.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.3, 0.5])
def test_a_query_at_distance_zero_leaks_what_is_said(epsilon, delta):
    given = {"query_epsilon": epsilon, "query_delta": delta}
    stable, sparse = Stability(9, 2, **given), SparseVector(9, 2, refusals=1, **given)
    assert stable.threshold == pytest.approx(np.log(1.0 / delta) / epsilon, rel=1e-14)
    assert stable.leak == pytest.approx(delta / 2.0, rel=1e-12)
    assert sparse.leak == pytest.approx(delta, rel=1e-12)


@pytest.mark.parametrize("delta", some([0.5, 0.2, 1e-3, 1e-9], 2))
def test_tail_of_two_laplace_variables(delta):
    """Pr[Lap(2b) > T + Lap(b)] by integrating over the threshold's noise."""
    mechanism = SparseVector(9, 2, query_epsilon=0.4, query_delta=delta, refusals=1)
    mpmath.mp.dps = 30
    b, threshold = mpmath.mpf(5), mpmath.mpf(mechanism.threshold)

    def above(x):
        tail = mpmath.exp(-abs(x) / (2 * b)) / 2
        return tail if x >= 0 else 1 - tail

    chance = mpmath.quad(
        lambda r: mpmath.exp(-abs(r) / b) / (2 * b) * above(threshold + r),
        sorted({-mpmath.inf, -threshold - 20, -threshold, mpmath.mpf(0), mpmath.inf}),
    )
    assert mechanism.leak == pytest.approx(float(chance), rel=1e-10)


def built(given, name=MechanismName.STABILITY, *, k=1, teachers=250):
    choice = MechanismChoice(name, given, teachers_per_record=k)
    return choice.build(teachers=teachers, classes=10, queries=640, delta=1e-5)


def test_privacy_composes_the_leak():
    mechanism = Stability(250, 10, query_epsilon=0.1, query_delta=1e-8)
    found = mechanism.privacy(640, 1e-5)
    assert found == best_composition(640, epsilon=0.1, delta=mechanism.leak, total_delta=1e-5)
    assert found.delta == 1e-5
    assert mechanism.privacy(641, 1e-5).epsilon > found.epsilon
    # The usual (ε, δ) a query would not have reached this total at all.
    usual = Stability(250, 10, query_epsilon=0.1, query_delta=2e-5 / 640)
    assert usual.privacy(640, 1e-5).epsilon > found.epsilon


@pytest.mark.parametrize(("k", "half"), [(1, 62.0), (3, 20.5)])
@pytest.mark.parametrize("delta", [1e-9, 1e-3])
def test_defaults_put_the_threshold_at_half_of_the_farthest_distance(delta, k, half):
    for name, more in (
        (MechanismName.STABILITY, {}),
        (MechanismName.SPARSE_VECTOR, {"refusals": 5}),
    ):
        mechanism = built({"query_delta": delta, **more}, name, k=k)
        assert mechanism.query_delta == delta
        assert mechanism.teachers_per_record == k
        assert mechanism.threshold == pytest.approx(half)


def test_defaults_leave_half_of_delta_and_obey_what_is_given():
    mechanism = built({})
    assert mechanism.query_delta == 1e-5 / 640
    assert 640 * mechanism.leak == pytest.approx(0.5e-5)
    assert mechanism.privacy(640, 1e-5).epsilon < np.inf
    assert built({"query_epsilon": 0.7}).query_epsilon == 0.7


def test_refusals():
    def refused(*given, **more):
        return refusal(ParameterError, built, *given, **more)

    sparse = MechanismName.SPARSE_VECTOR
    between = "query delta must be between 0 and 1, both excluded, got 1.0"
    assert refused({"query_delta": 1.0}) == between
    above = "query delta must be above 0 and at most 0.5, got 0.6"
    assert refused({"query_delta": 0.6, "refusals": 1}, sparse) == above
    few = "4 teachers are too few: stability and sparse-vector need at least 5 teachers"
    assert refused({}, teachers=4, k=2) == few
