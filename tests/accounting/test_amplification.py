"""The ε of one training record of a privately trained teacher: golden numbers, exact laws."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from divergences import hockey_stick, worst_pair
from pate_cli.accounting.conversion import record_epsilon, release_epsilon
from pate_cli.core.errors import ParameterError
from slices import tries

DELTA = 1e-5
# (ε, ε0): ε' of this point; the least ε' at δ = 1e-5 of any proof, for δ0 of 0 and of 1e-5.
GOLDEN = {
    (1.0, 1.0): (0.433781, 0.433770, 0.433775),
    (2.0, 1.0): (0.735326, 0.735313, 0.735323),
    (10.0, 1.0): (0.999893, 0.999880, 0.999893),
    (22.7, 1.0): (1.000000, 0.999986, 1.000000),
    (2.0, 4.0): (1.875548, 1.875546, 1.875547),
    (0.5, 0.1): (0.024473, 0.024454, 0.024458),
}


@pytest.mark.parametrize(("point", "wanted"), GOLDEN.items(), ids=str)
def test_golden_numbers(point, wanted):
    (epsilon, teacher), (exact, best, with_delta) = point, wanted
    told = {"epsilon": epsilon, "delta": DELTA, "teacher_epsilon": teacher}
    assert record_epsilon(**told, teacher_delta=0.0) <= exact + 5e-7
    assert best - 1e-6 <= record_epsilon(**told) <= best + 2.5e-5
    assert with_delta - 1e-6 <= record_epsilon(**told, teacher_delta=1e-5) <= with_delta + 2.5e-5
    formula = math.log((1 + math.exp(teacher + epsilon)) / (math.exp(teacher) + math.exp(epsilon)))
    tiny = record_epsilon(epsilon=epsilon, delta=1e-300, teacher_epsilon=teacher)
    assert tiny == pytest.approx(formula, rel=1e-11)


def test_the_largest_release_that_a_record_can_bear():
    told = {"delta": DELTA, "teacher_epsilon": 1.0}
    most = release_epsilon(0.5, **told)
    assert record_epsilon(epsilon=most, **told) == pytest.approx(0.5, rel=1e-9)
    assert record_epsilon(epsilon=most * 1.001, **told) > 0.5
    assert release_epsilon(1.0, **told) == math.inf  # what one teacher's training bears by itself


@pytest.mark.parametrize("release_delta", [1e-9, 1e-2])
@pytest.mark.parametrize("teacher_delta", [0.0, 1e-10, 1e-3, 0.05])
@pytest.mark.parametrize("epsilons", [(1.0, 1.0), (2.0, 0.7), (0.3, 3.0), (3.0, 3.0), (0.5, 0.1)])
def test_it_covers_the_worst_training_before_the_worst_release(
    epsilons, teacher_delta, release_delta
):
    """Of four vote vectors, two stand on each side of the release, one of them a giveaway."""
    epsilon, teacher = epsilons
    told = {"epsilon": epsilon, "delta": release_delta, "teacher_epsilon": teacher}
    found = record_epsilon(**told, teacher_delta=teacher_delta)
    one, other = worst_pair(epsilon, release_delta)
    release = np.stack([one, one, other, other])
    here, there = (law @ release for law in worst_pair(teacher, teacher_delta))
    assert hockey_stick(here, there, found) <= release_delta * (1.0 + 1e-9) + 1e-15
    if teacher_delta == 0.0:  # and no less would do, but for what δ leaves
        assert hockey_stick(here, there, 0.99 * found) > 1e-4 * found


@settings(max_examples=tries(150), deadline=None)
@given(seed=st.integers(0, 2**32 - 1), votes=st.integers(2, 5), outcomes=st.integers(2, 5))
def test_no_training_and_no_event_exceed_the_theorem(seed, votes, outcomes):
    """Made-up laws with their exact divergences, event by event."""
    random = np.random.default_rng(seed)
    training = random.dirichlet(np.ones(votes) * 0.7, size=2)
    release = random.dirichlet(np.ones(outcomes) * 0.7, size=votes)
    one, other = training @ release
    events = (np.arange(2**outcomes)[:, None] >> np.arange(outcomes)) % 2
    for at in (0.0, 0.1, 0.5, 1.5):
        ratio = math.exp(at)
        reached = hockey_stick(*training, at)
        gain = events @ (one - ratio * other)
        if reached == 0.0:
            assert gain.max() <= 1e-12
            continue
        each = release @ events.T
        most = each.max(axis=0) - (1.0 + (ratio - 1.0) / reached) * each.min(axis=0)
        assert np.all(gain <= reached * most + 1e-12)


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
    assert found <= teacher * (1.0 + 1e-9) + 1e-12
    more = record_epsilon(epsilon=epsilon + 0.1, teacher_epsilon=teacher + 0.1, **told)
    assert more >= found - 1e-9


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 8.0, 40.0, 70.0, 800.0, 2000.0])
@pytest.mark.parametrize("delta", [1e-15, 1e-5])
def test_round_off_goes_towards_more_loss(epsilon, delta):
    with mpmath.workdps(60):
        for teacher, away in ((0.05, 0.0), (1.0, 1e-9), (1.0, 2e-5), (5.0, 0.01)):
            told = {"epsilon": epsilon, "delta": delta, "teacher_epsilon": teacher}
            a = mpmath.exp(mpmath.mpf(record_epsilon(**told, teacher_delta=away)))
            top = mpmath.exp(teacher)
            p = mpmath.mpf(away) + (1 - mpmath.mpf(away)) * max(top - a, 0) / (1 + top)
            assert p <= delta or mpmath.log(1 + (a - 1) / p) >= epsilon


@pytest.mark.parametrize(
    "told",
    [{"epsilon": -1.0}, {"delta": 0.0}, {"teacher_epsilon": -1.0}, {"teacher_delta": 1.0}],
    ids=str,
)
def test_numbers_out_of_range_are_refused(told):
    with pytest.raises(ParameterError):
        record_epsilon(**{"epsilon": 1.0, "delta": DELTA, "teacher_epsilon": 1.0, **told})
