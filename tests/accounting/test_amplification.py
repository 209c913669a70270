"""The ε of one training record of a privately trained teacher: golden numbers, exact laws."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pate_cli.accounting.amplification import pair_delta, record_delta, record_epsilon
from pate_cli.core.errors import ParameterError
from slices import tries

DELTA = 1e-5
# (ε, ε0): ε' and δ' of the single point, then the least ε' at δ' = 1e-5 for δ0 of 0 and of 1e-5.
GOLDEN = {
    (1.0, 1.0): (0.433781, 3.16060e-6, 0.433770, 0.433775),
    (2.0, 1.0): (0.735326, 1.70003e-6, 0.735313, 0.735323),
    (10.0, 1.0): (0.999893, None, 0.999880, 0.999893),
    (22.7, 1.0): (1.000000, None, 0.999986, 1.000000),
    (2.0, 4.0): (1.875548, 8.64665e-6, 1.875546, 1.875547),
    (0.5, 0.1): (0.024473, 3.81899e-7, 0.024454, 0.024458),
}


@pytest.mark.parametrize(("point", "wanted"), GOLDEN.items(), ids=str)
def test_golden_numbers(point, wanted):
    (epsilon, teacher), (one_point, below, best, with_delta) = point, wanted
    exact = math.log((1.0 + math.exp(teacher + epsilon)) / (math.exp(teacher) + math.exp(epsilon)))
    assert exact == pytest.approx(one_point, abs=5e-7)
    if below is not None:
        found = record_delta(exact, epsilon=epsilon, delta=DELTA, teacher_epsilon=teacher)
        assert found == pytest.approx(below, rel=1e-5)
    given_ = {"epsilon": epsilon, "delta": DELTA, "teacher_epsilon": teacher}
    assert record_epsilon(**given_) == pytest.approx(best, abs=1.1e-6)
    assert record_epsilon(**given_, teacher_delta=1e-5) == pytest.approx(with_delta, abs=1.1e-6)


def divergence(one, other, ratio):
    """sup over S of one[S] − ratio·other[S]."""
    return float(np.maximum(one - ratio * other, 0.0).sum())


def worst_pair(epsilon, delta):
    """Laws on four outcomes that are (ε, δ)-close and no closer."""
    likely = (1.0 - delta) / (1.0 + math.exp(-epsilon))
    law = np.array([delta, likely, 1.0 - delta - likely, 0.0])
    return law, law[::-1]


@pytest.mark.parametrize(("epsilon", "teacher", "teacher_delta"), [
    (1.0, 1.0, 0.0), (2.0, 0.7, 1e-3), (0.3, 3.0, 0.01), (3.0, 3.0, 0.0), (0.5, 0.1, 1e-6),
])  # fmt: skip
def test_it_is_reached_by_randomised_response_between_a_worst_pair(epsilon, teacher, teacher_delta):
    """A teacher's vote is one of two vectors, and the release a worst pair between them."""
    delta = 1e-2
    release = np.stack(worst_pair(epsilon, delta))
    votes = [np.array([law[0] + law[1], law[2] + law[3]]) for law in worst_pair(teacher, 0.0)]
    one, other = (law @ release for law in votes)
    for at in np.linspace(0.0, epsilon, 40).tolist():
        bound = record_delta(at, epsilon=epsilon, delta=delta, teacher_epsilon=teacher)
        found = divergence(one, other, math.exp(at))
        assert found <= bound + 1e-12
        assert found == pytest.approx(bound, rel=1e-9, abs=1e-12)
    # With δ0 a vote may give the record away; that is within the bound, too.
    away = [np.concatenate([law[:3], law[3:]]) for law in worst_pair(teacher, teacher_delta)]
    votes = [np.array([law[0] + law[1], law[2] + law[3]]) for law in away]
    one, other = (law @ release for law in votes)
    for at in np.linspace(0.0, epsilon, 20).tolist():
        told = {"teacher_epsilon": teacher, "teacher_delta": teacher_delta}
        bound = record_delta(at, epsilon=epsilon, delta=delta, **told)
        assert divergence(one, other, math.exp(at)) <= bound + 1e-12


@settings(max_examples=tries(150), deadline=None)
@given(seed=st.integers(0, 2**32 - 1), votes=st.integers(2, 5), outcomes=st.integers(2, 5))
def test_no_teacher_and_no_release_exceed_it(seed, votes, outcomes):
    """Made-up laws, with the exact profiles of both in the place of their bounds."""
    random = np.random.default_rng(seed)
    training = random.dirichlet(np.ones(votes) * 0.7, size=2)
    release = random.dirichlet(np.ones(outcomes) * 0.7, size=votes)
    one, other = training @ release
    for at in (0.0, 0.1, 0.5, 1.5):
        ratio = math.exp(at)
        reached = divergence(*training, ratio)
        if reached == 0.0:
            assert divergence(one, other, ratio) <= 1e-12
            continue
        moved = 1.0 + (ratio - 1.0) / reached
        most = max(divergence(a, b, moved) for a in release for b in release)
        assert divergence(one, other, ratio) <= reached * most + 1e-12


def test_two_releases_of_the_same_votes_are_composed_and_then_amplified_once():
    teacher, epsilon = 0.5, 2.0
    votes = np.stack([law[[1, 2]] for law in worst_pair(teacher, 0.0)])
    once = np.stack([law[[1, 2]] for law in worst_pair(epsilon, 0.0)])
    one, other = votes @ np.stack([np.outer(law, law).ravel() for law in once])
    together = record_epsilon(epsilon=2.0 * epsilon, delta=1e-12, teacher_epsilon=teacher)
    assert float(np.max(np.log(one / other))) == pytest.approx(together, abs=1e-6)


@given(
    epsilon=st.floats(0.0, 800.0),
    teacher=st.floats(0.0, 50.0),
    delta=st.sampled_from([1e-12, 1e-5, 0.1]),
    share=st.sampled_from([0.0, 1e-3, 1.0]),
)
def test_it_is_below_both_and_grows_with_either(epsilon, teacher, delta, share):
    told = {"delta": delta, "teacher_delta": share * delta}
    found = record_epsilon(epsilon=epsilon, teacher_epsilon=teacher, **told)
    assert 0.0 <= found <= epsilon
    assert found <= teacher + 1e-5
    more = record_epsilon(epsilon=epsilon + 0.1, teacher_epsilon=teacher + 0.1, **told)
    assert more >= found - 1e-9


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 8.0, 40.0])
@pytest.mark.parametrize("delta", [1e-15, 1e-5])
def test_round_off_goes_towards_more_loss(epsilon, delta):
    with mpmath.workdps(60):
        for teacher in (0.05, 1.0, 5.0):
            at = mpmath.mpf(record_epsilon(epsilon=epsilon, delta=delta, teacher_epsilon=teacher))
            a, e = mpmath.exp(at), mpmath.mpf(epsilon)
            p = max(mpmath.exp(teacher) - a, 0) / (1 + mpmath.exp(teacher))
            if p == 0:
                continue
            x = mpmath.log(1 + (a - 1) / p)
            d = mpmath.mpf(delta)
            m = d if x >= e else d + (1 - d) * (mpmath.exp(e) - mpmath.exp(x)) / (1 + mpmath.exp(e))
            assert p * m <= d


def test_profile_of_a_pair():
    assert pair_delta(2.0, epsilon=1.0, delta=0.1) == 0.1
    assert pair_delta(math.inf, epsilon=1.0, delta=0.1) == 0.1
    one, other = worst_pair(1.0, 0.1)
    assert pair_delta(0.3, epsilon=1.0, delta=0.1) == pytest.approx(
        divergence(one, other, math.exp(0.3))
    )


@pytest.mark.parametrize(
    "told",
    [{"epsilon": -1.0}, {"delta": 0.0}, {"teacher_epsilon": -1.0}, {"teacher_delta": 1.0}],
    ids=str,
)
def test_numbers_out_of_range_are_refused(told):
    with pytest.raises(ParameterError):
        record_epsilon(**{"epsilon": 1.0, "delta": DELTA, "teacher_epsilon": 1.0, **told})
