"""The published analysis as a whole: its own plan, conversion and conditions throughout."""

from __future__ import annotations

import math
from dataclasses import asdict

import numpy as np
import pytest

from pate_cli import published
from pate_cli.core.errors import UsageError, ValidityError
from pate_cli.core.words import Analysis, OrderChoice, ReleaseKind
from pate_cli.disclosure.plan import ReleasePlan
from pate_cli.mechanisms.gnmax import GNMax
from pate_cli.mechanisms.lnmax import LNMax
from pate_cli.planning.sanitized import best_release
from pate_cli.published.account import PublishedPlan, published_price
from pate_cli.published.analysis import PublishedAnalysis
from refusals import refusal
from runs import CountsRows

COUNTS = np.random.default_rng(3).multinomial(20, [0.6, 0.3, 0.1], size=40)
MECHANISM = GNMax(20, 3, sigma2=5.0)
PAPER = PublishedAnalysis()


def plan_of(order=4.0):
    return ReleasePlan(ReleaseKind.UPPER, delta=1e-5, order=order, beta=0.02, sigma=9.0)


def test_its_parts_are_the_published_ones():
    assert PAPER.name is PAPER.cost.name is Analysis.PAPER
    assert PAPER.plan(plan_of()) == PublishedPlan.of(plan_of())
    assert PAPER.account(MECHANISM, plan_of()).orders.tolist() == [4.0]


def test_its_orders_are_those_of_the_tables_or_of_the_moments():
    assert PAPER.orders(OrderChoice.DEFAULT).tolist() == list(published.TABLE_ORDERS)
    assert PAPER.orders(OrderChoice.MOMENTS).tolist() == list(range(2, 10))


def test_sensitivity_comes_with_its_conversion_and_its_conditions():
    plan, passes = plan_of(), CountsRows(COUNTS)
    found = PAPER.sensitivity(passes, MECHANISM, plan, queries=40)
    price = published_price(passes, MECHANISM, PublishedPlan.of(plan))
    np.testing.assert_array_equal(found.price.curve, price.curve)
    conversion = math.log(1.0 / (1e-5 - plan.delta_shift)) / 3.0
    wanted = best_release(price, order=4.0, delta=1e-5, conversion=conversion)
    assert found.best.mean == pytest.approx(wanted.mean, rel=1e-12)
    assert (found.best.beta, found.best.sigma) == (wanted.beta, wanted.sigma)
    assert found.plan.analysis is Analysis.PAPER
    assert found.within.size == 0
    (verdict,) = found.conditions
    (known,) = published.check_conditions(sigma=5.0, classes=3, orders=[4.0])
    assert verdict == asdict(known)
    assert verdict["holds"]


def test_no_sensitivity_without_its_conditions():
    passes = CountsRows(COUNTS)
    text = refusal(
        ValidityError, PAPER.sensitivity, passes, MECHANISM, plan_of(order=9.0), queries=40
    )
    assert text.startswith("smooth sensitivity is not valid at order 9: ")
    assert text.endswith("; try another `order` or `analysis` tight")
    lnmax = LNMax(20, 3, laplace_scale=2.0)
    text = refusal(UsageError, PAPER.sensitivity, passes, lnmax, plan_of(), queries=40)
    assert "no smooth sensitivity for lnmax" in text
