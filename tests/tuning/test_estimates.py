"""`pate_cli.tuning.estimates`: settings share tables, and cost what each costs alone."""

from __future__ import annotations

import numpy as np
import pytest

from pate_cli.accounting.score_grid import COARSE
from pate_cli.disclosure.profile import VoteProfile, lattice_states
from pate_cli.disclosure.target import TargetPlan
from pate_cli.tuning import Setting
from pate_cli.tuning.estimates import LatticeEstimates

SETTINGS = (
    Setting(30.0, 20.0, 6.0),
    Setting(None, None, 6.0),
    Setting(24.0, 9.0, 6.0),
    Setting(24.0, 9.0, 10.0),
)


@pytest.mark.parametrize("classes", [2, 4])
def test_estimates_on_the_lattice_are_those_of_a_coarse_profile(drawn, classes):
    sample = drawn(3, classes=classes, queries=50)
    estimates = LatticeEstimates(sample, scale=1.0)
    for setting in SETTINGS:
        mechanism = sample.mechanism(setting)
        prices = estimates.prices(setting, estimates.ladder)
        for order in (3.0, 10.0):
            profile = VoteProfile(lattice_states(mechanism, highest_order=48.0, resolution=COARSE))
            profile.add(mechanism, sample.counts[:30])
            found = prices.profile(order, 30)
            np.testing.assert_allclose(found, profile.at(order)[: found.size], rtol=1e-9)
            assert found.size >= 40
        # As many rows again, of a sample of every other row.
        twice = LatticeEstimates(sample, scale=2.0).prices(setting, estimates.ladder)
        np.testing.assert_allclose(
            twice.cost(np.array([3.0]), 60), 2.0 * prices.cost(np.array([3.0]), 30), rtol=1e-12
        )


def test_few_orders_near_those_of_a_run(drawn):
    estimates = LatticeEstimates(drawn(3), scale=1.0)
    plan = TargetPlan.of(1.5, delta=1e-5)
    assert set(estimates.orders(plan, settled=True)) < set(plan.orders)
    assert set(estimates.orders(plan, settled=False)) <= set(estimates.ladder)
