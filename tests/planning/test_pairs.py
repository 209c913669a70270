"""`pate_cli.planning.pairs`: the choice by two counts is near what a run would charge."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.special import ndtr

from pate_cli.accounting.tested_budget import DISTANCES
from pate_cli.core.errors import UsageError
from pate_cli.core.words import Bound
from pate_cli.disclosure.profile import VoteProfile, states_for
from pate_cli.planning import pairs
from pate_cli.planning.sample import VoteSample
from pate_cli.planning.setting import Setting
from pate_cli.tuning.estimates import PairEstimates

ORDERS = np.array([4.0, 9.0])


def _moment(z, moved, order, heads=1.0):
    p, q = ndtr(z), ndtr(moved)
    return heads * p**order * q ** (1.0 - order) + (1.0 - p) ** order * (1.0 - q) ** (1.0 - order)


def _one_move(x, y, setting, order):
    """By the formula: the dearer way of a vote between x and y."""
    root = math.sqrt(2.0) * setting.sigma2
    worst = 0.0
    for a, b in ((x, y), (y, x)):
        found = _moment((a - b) / root, (a - b - 2) / root, order)
        if setting.threshold is not None:
            v, moved = max(a, b), max(a - 1, b + 1)
            tests = ((votes - setting.threshold) / setting.sigma1 for votes in (v, moved))
            found = _moment(*tests, order, heads=found)
        worst = max(worst, math.log(found) / (order - 1.0))
    return worst


@pytest.mark.parametrize("setting", [Setting(None, None, 3.0), Setting(13.0, 6.0, 4.0)])
def test_the_table_is_the_formula_and_its_hexagons_are_all_moves(setting):
    teachers = 20
    # Without votes for the third class the single rival is nearly the second.
    counts = np.array([[18, 2, 0], [20, 0, 0], [14, 6, 0]])
    estimates = PairEstimates(VoteSample(counts, teachers), scale=1.0)
    prices = estimates.prices(setting, ORDERS)
    places = [(x, y) for x in range(21) for y in range(21) if x + y <= teachers]
    for order in ORDERS.tolist():
        table = {place: _one_move(*place, setting, order) for place in places}
        before = np.zeros(DISTANCES)
        for rows, (x, y, _) in enumerate(counts.tolist(), 1):
            found = prices.profile(order, rows) - before
            before = before + found
            for distance in (0, 1, 2, 4, 7):
                within = [
                    cost
                    for (a, b), cost in table.items()
                    if max(abs(a - x), abs(b - y), abs(a + b - x - y)) <= distance
                ]
                assert found[distance] == pytest.approx(1.01 * max(within), rel=1e-4)


def test_two_classes_cost_what_they_cost_a_run(drawn):
    """States of two classes are exact in both, at the distances that a choice looks at."""
    sample = drawn(3, teachers=100, classes=2, queries=60)
    for setting in (Setting(None, None, 8.0), Setting(80.0, 30.0, 12.0)):
        mechanism = sample.mechanism(setting)
        profile = VoteProfile(states_for(Bound.CONDITIONAL, mechanism, highest_order=9.0))
        profile.add(mechanism, sample.counts)
        prices = PairEstimates(sample, scale=1.0).prices(setting, ORDERS)
        for order in ORDERS.tolist():
            found, exact = prices.profile(order, 60), profile.at(order)
            looked_at = [0, 1, 2, 4, 7, 11, 16, 23, 32, 45]
            np.testing.assert_allclose(found[looked_at], exact[looked_at], rtol=2e-3)
            np.testing.assert_allclose(found[:32], exact[:32], rtol=0.05)


def test_more_classes_cost_about_what_they_cost_a_run(drawn):
    sample = drawn(5, teachers=60, classes=4, queries=25)
    counts = sample.counts
    for sigma2, order in itertools.product((5.0, 9.0), ORDERS.tolist()):
        setting = Setting(None, None, sigma2)
        mechanism = sample.mechanism(setting)
        states = states_for(Bound.CONDITIONAL, mechanism, highest_order=9.0)
        exact = mechanism.state_costs(
            states.of(mechanism, counts), order=order, distances=np.array([0, 4, 11])
        ).sum(axis=1)
        prices = PairEstimates(sample, scale=1.0).prices(setting, ORDERS)
        found = prices.profile(order, 25)[[0, 4, 11]]
        np.testing.assert_allclose(found, exact, rtol=0.08)


def test_many_teachers_are_counted_in_steps(drawn, monkeypatch):
    """Counts in steps of four votes, and still single votes and their distances."""
    sample, setting = drawn(2, teachers=400, queries=40), Setting(320.0, 120.0, 40.0)
    found = PairEstimates(sample, scale=1.0).prices(setting, ORDERS).profile(9.0, 40)
    monkeypatch.setattr(pairs, "_MOST_STEPS", 400)
    exact = PairEstimates(sample, scale=1.0).prices(setting, ORDERS).profile(9.0, 40)
    np.testing.assert_allclose(found, exact, rtol=0.02)
    assert exact[40] > 1.2 * exact[0]


def test_a_thinned_sample_stands_for_more_rows(drawn):
    sample = drawn(7, queries=40)
    one, ten = (
        PairEstimates(sample, scale=scale).prices(Setting(30.0, 20.0, 7.0), ORDERS)
        for scale in (1.0, 10.0)
    )
    np.testing.assert_allclose(ten.cost(ORDERS, 200), 10.0 * one.cost(ORDERS, 20), rtol=1e-12)


def test_votes_without_a_conditional_bound(drawn):
    shared = VoteSample(drawn(1).counts, 40, teachers_per_record=2)
    with pytest.raises(UsageError, match="teachers_per_record"):
        PairEstimates(shared, scale=1.0)
