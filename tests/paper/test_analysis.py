"""The published analysis: its plan, its account of a run, what it refuses."""

import math

import numpy as np
import pytest

from pate_cli.core.errors import ParameterError, UsageError, ValidityError
from pate_cli.core.words import Analysis, ReleaseKind
from pate_cli.disclosure.settings import ReleasePlan
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.mechanisms.gnmax import GNMax
from pate_cli.mechanisms.interactive import InteractiveGNMax
from pate_cli.mechanisms.lnmax import LNMax
from pate_cli.paper.analysis import PublishedAccount, PublishedAnalysis, PublishedPlan
from pate_cli.paper.costs import confident_steps, gnmax_rdp, published_gnss_rdp
from pate_cli.paper.sensitivity import expected_local_sensitivity, gnmax_local_sensitivity
from pate_cli.planning.sanitized import best_release
from refusals import refusal
from runs import CountsRows
from slices import some

COUNTS = np.random.default_rng(3).multinomial(20, [0.6, 0.3, 0.1], size=40)
SHARES = np.random.default_rng(4).dirichlet([1.0, 1.0, 1.0], size=40)
NOISE = {"threshold": 12.0, "sigma1": 6.0, "sigma2": 5.0}
PAPER = PublishedAnalysis()
MECHANISMS = [
    GNMax(20, 3, sigma2=5.0),
    ConfidentGNMax(20, 3, **NOISE),
    InteractiveGNMax(20, 3, **NOISE, predictions=SHARES),
]


def plan_of(order=4.0, kind=ReleaseKind.UPPER, beta=0.02, sigma=9.0):
    return PAPER.plan(ReleasePlan(kind, delta=1e-5, order=order, beta=beta, sigma=sigma))


def price(mechanism, sizes, order=4.0):
    account, first = PublishedAccount(mechanism, plan_of(order)), 0
    for size in sizes:
        bound = mechanism.for_rows(np.arange(first, first + size), first)
        account.add(account.keep(bound, COUNTS[first : first + size]))
        first += size
    return account.price


@pytest.mark.parametrize("order", [2.0, 4.0])
@pytest.mark.parametrize("mechanism", some(MECHANISMS, 2), ids=lambda one: one.name)
def test_batches_add_up_to_the_published_sums(mechanism, order):
    whole, parts = price(mechanism, [40], order), price(mechanism, [1, 22, 17], order)
    assert parts.rdp == pytest.approx(whole.rdp, rel=1e-12)
    np.testing.assert_allclose(parts.curve, whole.curve, rtol=1e-12)
    where = {"order": order, "teachers": 20}
    if mechanism.name == "gnmax":
        cost = gnmax_rdp(COUNTS, 5.0, [order])
        curve = gnmax_local_sensitivity(COUNTS, sigma=5.0, weights=np.ones(40), **where)
    else:
        student = 0.0 if mechanism.name == "confident" else 20 * SHARES
        scores = (COUNTS - student).max(axis=1)
        cost = sum(confident_steps(COUNTS, scores, NOISE, [order]).values())
        curve = expected_local_sensitivity(COUNTS, scores, NOISE, **where)
    assert whole.rdp == pytest.approx(cost.sum(), rel=1e-12)
    np.testing.assert_allclose(whole.curve, curve, rtol=1e-12)
    assert whole.ceiling == whole.curve[-1]
    assert whole.distances.tolist() == list(range(20))


def test_what_the_paper_does_not_cover_is_refused_at_once():
    lnmax, plan = LNMax(20, 3, laplace_scale=2.0), plan_of(2.0)
    assert refusal(UsageError, PublishedAccount, lnmax, plan) == (
        "the published analysis has no smooth sensitivity for lnmax; use `analysis` tight"
    )
    shared = GNMax(20, 3, sigma2=3.0, teachers_per_record=2)
    assert "covers disjoint teachers only" in refusal(UsageError, PublishedAccount, shared, plan)
    assert PAPER.steps(lnmax, COUNTS, np.array([2.0]))["argmax"].shape == (1, 40)
    with pytest.raises(ParameterError, match=r"13\.6986, but got order 14 with beta"):
        plan_of(14.0, beta=0.0365)  # λβ ≥ ½, where the exact cost is finite


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda one: one.name)
def test_conditions_are_checked_before_a_vote_is_seen(mechanism):
    text = refusal(ValidityError, PAPER.account, mechanism, plan_of(9.0))
    assert text.startswith("smooth sensitivity is not valid at order 9: C6")
    assert text.endswith("; try another `order` or `analysis` tight")


def test_a_draw_is_charged_what_it_costs():
    sound = ReleasePlan(ReleaseKind.UPPER, delta=1e-5, order=14.0, beta=0.0329, sigma=6.23)
    plan = PAPER.plan(sound)
    assert plan.analysis == Analysis.PAPER
    claimed = published_gnss_rdp(beta=0.0329, sigma=6.23, order=14.0)
    assert plan.release_rdp == sound.release_rdp > plan.claimed_rdp == claimed
    left = plan.delta - plan.delta_shift
    assert plan.overhead == plan.release_rdp + plan.conversion(left) > claimed
    assert isinstance(plan_of(4.0, ReleaseKind.NONE), PublishedPlan)


def test_sensitivity_comes_with_its_conversion_and_its_conditions():
    mechanism, plan = MECHANISMS[0], plan_of()
    found = PAPER.sensitivity(CountsRows(COUNTS), mechanism, plan, queries=40)
    summed = price(mechanism, [40])
    np.testing.assert_allclose(found.price.curve, summed.curve, rtol=1e-12)
    conversion = math.log(1.0 / (1e-5 - plan.delta_shift)) / 3.0
    wanted = best_release(summed, order=4.0, delta=1e-5, conversion=conversion)
    assert found.best.mean == pytest.approx(wanted.mean, rel=1e-12)
    assert found.plan.analysis is Analysis.PAPER
    assert found.within.size == 0
    (verdict,) = found.conditions
    where = {"sigma": 5.0, "classes": 3, "order": 4.0}
    assert verdict == {**where, "holds": True, "reason": "", "log_q": None}
