"""`pate_cli.planning.chances`: quick chances are near those of a run."""

from __future__ import annotations

import numpy as np
import pytest

from pate_cli.accounting.score_grid import COARSE
from pate_cli.accounting.tested_budget import DISTANCES
from pate_cli.core.words import Bound
from pate_cli.disclosure.profile import VoteProfile, lattice_states, states_for
from pate_cli.disclosure.target import TargetPlan
from pate_cli.mechanisms.lnmax import LNMax
from pate_cli.planning.chances import MadeUpCosts, at_every_distance
from pate_cli.planning.ensembles import Agreement, Ensembles
from pate_cli.planning.setting import Setting

PLAN = TargetPlan.of(2.0, delta=1e-5)


@pytest.fixture(scope="module")
def two():
    return Ensembles.made_up(teachers=60, classes=2, agreement=Agreement(0.7, 0.9))


def test_straight_lines_between_distances():
    costs = np.array([[1.0, 3.0, 7.0]])[..., None]
    found = at_every_distance(costs, np.array([0.0, 2.0, 6.0]))[0, :, 0]
    np.testing.assert_allclose(found[:8], [1, 2, 3, 4, 5, 6, 7, 7])
    assert found.size == DISTANCES


def test_chances_of_pairs_are_near_those_of_the_bound(two):
    """The coin of a run over the same stretches, by the bound that a run uses."""
    setting = Setting(42.0, 24.0, 14.0)
    mechanism = two.sample.mechanism(setting)
    (costs,) = MadeUpCosts.by_pairs(two, [setting], PLAN, bound=Bound.CONDITIONAL)
    rows = np.array([40, 80])
    found = costs.chances(PLAN, rows)
    ceiling = mechanism.worst_rdp(queries=1, answers=1, orders=PLAN.orders)
    states = states_for(Bound.CONDITIONAL, mechanism, highest_order=float(PLAN.orders[-1]))
    for place in (0, 7, 14):
        counts = two.sample.counts[place * two.each : (place + 1) * two.each]
        for column, number in enumerate(rows.tolist()):
            half = two.each // 2
            starts = (0, half) if 2 * number <= two.each else (0,)
            chances = []
            for start in starts:
                profile = VoteProfile(states)
                profile.add(mechanism, counts[start : start + number])
                chances.append(PLAN.coin(profile.at, number * ceiling).chance)
            # Quick costs are a little above those of the bound, and so chances below.
            assert found[place, column] <= np.mean(chances) + 0.03
            assert found[place, column] >= np.mean(chances) - 0.25


def test_chances_on_the_lattice_are_those_of_a_profile(two):
    mechanism = LNMax(60, 2, laplace_scale=8.0)
    costs = MadeUpCosts.by_lattice(two, mechanism, PLAN)
    number = 60  # of each ensemble the lattice looks at so many
    orders = PLAN.decisive_orders
    ceiling = mechanism.worst_rdp(queries=number, answers=number, orders=orders)
    found = costs.chances(PLAN, np.array([number]))[:, 0]
    states = lattice_states(mechanism, highest_order=float(orders[-1]), resolution=COARSE)
    for place in (0, 9):
        profile = VoteProfile(states)
        first = place * two.each
        profile.add(mechanism, two.sample.counts[first : first + number])
        chance = PLAN.coin(profile.at, ceiling, orders=orders).chance
        # Between a few distances costs are on straight lines.
        assert found[place] == pytest.approx(chance, abs=0.02)


def test_fewer_rows_pass_more_often_and_few_enough_always(two):
    setting = Setting(42.0, 24.0, 14.0)
    (costs,) = MadeUpCosts.by_pairs(two, [setting], PLAN, bound=Bound.CONDITIONAL)
    found = costs.chances(PLAN, np.array([1, 20, 160, 2000, 100_000]))
    assert np.all(found[:, 0] == 1.0)
    assert np.all(np.diff(found.mean(axis=0)) <= 0.0)
    assert np.all(found[:, -1] < 1e-3)


def test_a_record_of_several_votes_costs_as_one_among_fewer_teachers():
    few, many = (
        Ensembles.made_up(
            teachers=30 * k, classes=2, agreement=Agreement(0.8, 0.8), teachers_per_record=k
        )
        for k in (1, 4)
    )
    costs = [
        MadeUpCosts.by_pairs(each, [_scaled(k)], PLAN, bound=Bound.TWO_TAIL)[0]
        for each, k in ((few, 1), (many, 4))
    ]
    one, four = (each.costs[1, 0].mean() for each in costs)
    assert four / one == pytest.approx(2.2 / 1.4, rel=0.35)


def _scaled(k):
    return Setting(24.0 * k, 9.0 * k, 6.0 * k)
