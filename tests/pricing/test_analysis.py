"""The tight analysis as a whole: each part is the one that is used by itself."""

from __future__ import annotations

import numpy as np

from pate_cli.core.words import Analysis, OrderChoice, ReleaseKind
from pate_cli.disclosure.plan import ReleasePlan
from pate_cli.mechanisms.gnmax import GNMax
from pate_cli.planning.sanitized import best_release
from pate_cli.pricing.analysis import TightAnalysis
from pate_cli.pricing.cost import TIGHT_ORDERS, TightCost
from pate_cli.pricing.sensitivity import price_votes
from pate_cli.run.accounts import TightAccount
from runs import CountsRows

COUNTS = np.random.default_rng(3).multinomial(20, [0.6, 0.3, 0.1], size=70)
MECHANISM = GNMax(20, 3, sigma2=3.0)
TIGHT = TightAnalysis()


def plan_of():
    return ReleasePlan(ReleaseKind.UPPER, delta=1e-5, order=4.0, beta=0.05, sigma=9.0)


def test_its_parts_are_the_tight_ones():
    assert TIGHT.name is TIGHT.cost.name is Analysis.TIGHT
    assert isinstance(TIGHT.cost, TightCost)
    plan = plan_of()
    assert TIGHT.plan(plan) is plan
    assert isinstance(TIGHT.account(MECHANISM, plan), TightAccount)


def test_its_orders_are_its_own_or_those_of_the_moments():
    np.testing.assert_array_equal(TIGHT.orders(OrderChoice.DEFAULT), TIGHT_ORDERS)
    np.testing.assert_array_equal(TIGHT.orders(OrderChoice.MOMENTS), np.arange(2.0, 10.0))


def test_sensitivity_comes_with_the_best_release_and_the_nearest_costs():
    plan, passes = plan_of(), CountsRows(COUNTS)
    found = TIGHT.sensitivity(passes, MECHANISM, plan, queries=70)
    price, within = price_votes(passes, MECHANISM, order=4.0, beta=0.05)
    np.testing.assert_array_equal(found.price.curve, price.curve)
    np.testing.assert_array_equal(found.within, within)
    assert found.best == best_release(price, order=4.0, delta=1e-5)
    assert (found.plan, found.queries, found.conditions) == (plan, 70, ())
    assert found.mechanism == MECHANISM.parameters()
