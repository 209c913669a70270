"""The published charges: sums over queries of what the paper says of each, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from pate_cli import published
from pate_cli.core.errors import ParameterError, UsageError, ValidityError
from pate_cli.core.words import Analysis, ReleaseKind
from pate_cli.disclosure.plan import ReleasePlan
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.mechanisms.gnmax import GNMax
from pate_cli.mechanisms.interactive import InteractiveGNMax
from pate_cli.mechanisms.lnmax import LNMax
from pate_cli.published.account import (
    PublishedAccount,
    PublishedPlan,
    require_disjoint_teachers,
    require_published_sensitivity,
)
from refusals import refusal
from slices import some

COUNTS = np.random.default_rng(3).multinomial(20, [0.6, 0.3, 0.1], size=40)
SHARES = np.random.default_rng(4).dirichlet([1.0, 1.0, 1.0], size=40)
ORDERS = [2.0, 4.0]
PARAMETERS = {"threshold": 12.0, "sigma1": 6.0, "sigma2": 5.0}


def plan_of(order, kind=ReleaseKind.UPPER):
    return PublishedPlan(kind, delta=1e-5, order=order, beta=0.02, sigma=9.0)


def account(mechanism, sizes, order):
    found, first = PublishedAccount(mechanism, plan_of(order)), 0
    for size in sizes:
        rows = np.arange(first, first + size)
        bound = mechanism.for_rows(rows, first)
        found.add(found.keep(bound, COUNTS[first : first + size]))
        first += size
    return found


MECHANISMS = [
    GNMax(20, 3, sigma2=5.0),
    ConfidentGNMax(20, 3, **PARAMETERS),
    InteractiveGNMax(20, 3, **PARAMETERS, predictions=SHARES),
]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("mechanism", some(MECHANISMS, 2), ids=lambda one: one.name)
def test_batches_add_up_to_the_published_sums(mechanism, order):
    whole, parts = account(mechanism, [40], order), account(mechanism, [1, 22, 17], order)
    assert (whole.queries, parts.queries) == (40, 40)
    np.testing.assert_allclose(parts.rdp, whole.rdp, rtol=1e-12)
    np.testing.assert_allclose(parts.sensitivity, whole.sensitivity, rtol=1e-12)
    assert whole.sensitivity.shape == (1, 20)
    if mechanism.name == "gnmax":
        cost = published.gnmax_rdp(COUNTS, 5.0, [order])
        curve = published.gnmax_local_sensitivity(COUNTS, sigma=5.0, order=order, teachers=20)
    else:
        scores = mechanism.test_score(COUNTS)
        if mechanism.name == "confident":
            np.testing.assert_array_equal(scores, COUNTS.max(axis=1))
        cost = published.confident_expected_cost(
            COUNTS, **PARAMETERS, orders=[order], scores=scores
        )
        curve = published.expected_local_sensitivity(
            COUNTS, **PARAMETERS, order=order, teachers=20, scores=scores
        )
    np.testing.assert_allclose(whole.rdp, cost.sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(whole.sensitivity[0], curve, rtol=1e-12)
    price = whole.price
    assert (price.rdp, price.ceiling) == (whole.rdp[0], whole.sensitivity[0, -1])
    np.testing.assert_array_equal(price.curve, whole.sensitivity[0])


@pytest.mark.parametrize("order", ORDERS)
def test_a_student_changes_the_published_cost(order):
    asked, corrected = (account(one, [40], order).rdp for one in MECHANISMS[1:])
    assert np.all(corrected < asked)


def test_what_the_paper_does_not_cover_is_refused_at_once():
    lnmax, plan = LNMax(20, 3, laplace_scale=2.0), plan_of(2.0)
    assert refusal(UsageError, PublishedAccount, lnmax, plan) == (
        "the published analysis has no smooth sensitivity for lnmax; use `analysis` tight"
    )
    shared = GNMax(20, 3, sigma2=3.0, teachers_per_record=2)
    assert "knows disjoint teachers only" in refusal(UsageError, PublishedAccount, shared, plan)
    require_disjoint_teachers(lnmax)
    with pytest.raises(ParameterError):
        plan_of(1.0)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda one: one.name)
def test_conditions_are_checked_at_every_order(mechanism):
    require_published_sensitivity(mechanism, np.array(ORDERS))
    orders = np.array([2.0, 40.0])
    text = refusal(ValidityError, require_published_sensitivity, mechanism, orders)
    assert text.startswith(
        "smooth sensitivity is not valid at order 40 with sigma 5 and 3 classes: "
    )
    with pytest.raises(ValidityError):
        PublishedAccount(mechanism, plan_of(9.0))


def test_a_draw_is_charged_what_it_costs_and_not_what_the_paper_claims():
    plan = plan_of(14.0)
    assert plan.claimed_rdp == published.gnss_rdp(beta=0.02, sigma=9.0, order=14.0)
    left = plan.delta - plan.delta_shift
    assert plan.overhead == plan.release_rdp + plan.conversion(left) > plan.claimed_rdp


def test_nothing_drawn_by_a_published_plan_is_sound():
    sound = ReleasePlan(ReleaseKind.UPPER, delta=1e-5, order=14.0, beta=0.0329, sigma=6.23)
    plan = PublishedPlan.of(sound)
    assert (plan.analysis, plan.sound) == (Analysis.PAPER, False)
    assert plan.release_rdp == sound.release_rdp > plan.claimed_rdp
    assert [caveat.split(" ", 3)[:3] for caveat in plan.caveats] == [
        ["The", "published", "analysis"],
        ["The", "published", "theorem"],
    ]
    quiet = plan_of(4.0, ReleaseKind.NONE)
    assert (quiet.sound, quiet.caveats) == (True, ())
