"""The stability mechanism: its composition and its defaults; the contract has its exact law."""

import numpy as np
import pytest

from pate_cli.accounting.composition import best_composition
from pate_cli.accounting.stability import farthest_distance
from pate_cli.core.words import MechanismName
from pate_cli.mechanisms import MechanismChoice
from pate_cli.mechanisms.stability import Stability


def built(given, name=MechanismName.STABILITY, *, k=1):
    choice = MechanismChoice(name, given, teachers_per_record=k)
    return choice.build(teachers=250, classes=10, queries=640, delta=1e-5)


def test_privacy_composes_the_leak():
    mechanism = Stability(250, 10, query_epsilon=0.1, query_delta=1e-8)
    assert mechanism.threshold == pytest.approx(np.log(1e8) / 0.1, rel=1e-14)
    found = mechanism.privacy(640, 1e-5)
    assert found == best_composition(640, epsilon=0.1, delta=mechanism.leak, total_delta=1e-5)
    assert found.delta == 1e-5
    assert mechanism.privacy(641, 1e-5).epsilon > found.epsilon
    # The usual (ε, δ) a query would not have reached this total at all.
    assert (
        Stability(250, 10, query_epsilon=0.1, query_delta=2e-5 / 640).privacy(640, 1e-5).epsilon
        > found.epsilon
    )


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize(
    ("name", "delta", "more"),
    [
        (MechanismName.STABILITY, 1e-9, {}),
        (MechanismName.STABILITY, 1e-3, {}),
        (MechanismName.SPARSE_VECTOR, 1e-7, {"refusals": 5}),
    ],
)
def test_default_epsilon_puts_the_threshold_at_a_half(name, delta, more, k):
    mechanism = built({"query_delta": delta, **more}, name, k=k)
    assert mechanism.query_delta == delta
    assert mechanism.teachers_per_record == k
    assert mechanism.threshold == pytest.approx(farthest_distance(250, teachers_per_record=k) / 2.0)


def test_defaults_leave_half_of_delta_and_obey_what_is_given():
    mechanism = built({})
    assert mechanism.query_delta == 1e-5 / 640
    assert 640 * mechanism.leak == pytest.approx(0.5e-5)
    assert mechanism.privacy(640, 1e-5).epsilon < np.inf
    given = {"query_epsilon": 0.7}
    assert built(given).query_epsilon == 0.7
