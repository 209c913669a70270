"""What votes would cost: steps, orders and queries add up; MNIST costs what the paper says."""

import math

import numpy as np
import pytest

import pate_cli as pate
from beside import a_student
from pate_cli.accounting.sensitivity import distances_for, smooth_sensitivity
from pate_cli.core.words import ReleaseKind
from pate_cli.disclosure.settings import ReleasePlan
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.mechanisms.gnmax import GNMax
from pate_cli.mechanisms.interactive import InteractiveGNMax
from pate_cli.mechanisms.lnmax import LNMax
from pate_cli.paper.analysis import PublishedAnalysis
from pate_cli.paper.costs import TABLE_ORDERS
from pate_cli.planning.cost import TIGHT, TIGHT_ORDERS, measure_cost, queries_at
from pate_cli.planning.sensitivity import price_votes
from runs import CountsRows, charged
from slices import some

COUNTS = np.random.default_rng(3).multinomial(20, [0.6, 0.3, 0.1], size=70)
SHARES = np.random.default_rng(4).dirichlet([1.0, 1.0, 1.0], size=70)
CONFIDENT = ConfidentGNMax(20, 3, threshold=12.0, sigma1=6.0, sigma2=3.0)
GNMAX, LNMAX = GNMax(20, 3, sigma2=3.0), LNMax(20, 3, laplace_scale=2.0)
STUDENT = InteractiveGNMax(
    20, 3, threshold=5.0, sigma1=6.0, sigma2=3.0, predictions=a_student(SHARES)
)
MNIST = ConfidentGNMax(250, 10, threshold=200.0, sigma1=150.0, sigma2=40.0)
ORDERS = np.array([1.5, 4.0, 9.0])
PUBLISHED = PublishedAnalysis()


def measured(mechanism, counts=COUNTS, *, orders=ORDERS, analysis=TIGHT):
    rows, orders = CountsRows(counts), np.asarray(orders)
    return measure_cost(rows, mechanism, orders=orders, delta=1e-5, analysis=analysis)


@pytest.mark.parametrize("analysis", some([TIGHT, PUBLISHED], 2), ids=lambda one: one.name)
@pytest.mark.parametrize("mechanism", [CONFIDENT, STUDENT, GNMAX, LNMAX], ids=lambda one: one.name)
def test_steps_orders_and_queries_add_up(mechanism, analysis):
    steps = analysis.steps(mechanism, COUNTS, ORDERS)
    total, answer = sum(steps.values()), mechanism.answer_chance(COUNTS)
    assert total.shape == (3, 70)
    assert all(np.all(step >= 0.0) for step in steps.values())
    two_steps = mechanism.name in ("confident", "interactive")
    assert list(steps) == ["threshold"] * two_steps + ["argmax"]
    whole = measured(mechanism, analysis=analysis)
    np.testing.assert_allclose(whole.rdp, total.sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(sum(whole.steps.values()), whole.rdp, rtol=1e-12)
    if analysis is TIGHT:
        own = mechanism.rdp(mechanism.score(COUNTS), ORDERS).sum(axis=1)
        np.testing.assert_allclose(whole.rdp, own, rtol=1e-12)
        conversion = np.log1p(-1 / ORDERS) - (math.log(1e-5) + np.log(ORDERS)) / (ORDERS - 1)
        assert whole.by_orders.min() == pytest.approx((own + conversion).min(), rel=1e-12)
    best = int(np.flatnonzero(whole.orders == whole.order)[0])
    rows = queries_at(analysis, CountsRows(COUNTS), mechanism, order=whole.order)
    np.testing.assert_allclose(rows["cost"], total[best], rtol=1e-12)
    parts = [values for name, values in rows.items() if name.startswith("cost_")]
    np.testing.assert_allclose(sum(parts), rows["cost"], rtol=1e-12)
    np.testing.assert_array_equal(rows["plurality"], COUNTS.max(axis=1))
    np.testing.assert_array_equal(rows["answer_probability"], answer)
    np.testing.assert_array_equal(rows["query_id"], np.arange(70))
    assert whole.queries["cost"].sum() == pytest.approx(whole.rdp[best], rel=1e-12)
    assert whole.expected_answers == pytest.approx(answer.sum() if two_steps else 70, rel=1e-12)


@pytest.mark.parametrize(
    ("orders", "edge"),
    [([2.0], False), ([3.0, 4.0], True), ([1.5, 2.0], True), ([1.2, 2.5, 90.0], False)],
)
def test_the_edge_of_the_orders_is_told(orders, edge):
    found, worst = (measured(CONFIDENT, orders=tried) for tried in (orders, [50.0, 60.0]))
    assert found.order_at_edge is edge
    assert found.order in orders
    assert worst.epsilon == worst.worst_case.epsilon
    assert not worst.order_at_edge  # the worst case is told, which no order would better


@pytest.mark.parametrize("analysis", [TIGHT, PUBLISHED], ids=lambda one: one.name)
def test_quantiles_and_histogram_describe_every_query_once(analysis):
    found = measured(CONFIDENT, analysis=analysis)
    each, rows = found.queries, found.histogram()
    for level, value in found.quantiles().items():
        assert value == pytest.approx(np.quantile(each["cost"], float(level)), rel=1e-12)
    assert sum(row["queries"] for row in rows) == 70
    assert sum(row["share_of_cost"] for row in rows) == pytest.approx(1.0)
    for row in rows:
        last = row["to"] == 20
        here = (each["plurality"] >= row["from"]) & (each["plurality"] < row["to"] + last)
        assert row["queries"] == here.sum() > 0
        assert row["expected_answers"] == pytest.approx(each["answer_probability"][here].sum())
        assert row["mean_cost"] == pytest.approx(each["cost"][here].mean())


def test_mnist_costs_what_the_paper_says_and_less_under_the_tight_analysis(mnist_histograms):
    """A little above the tight bound itself, as costs are rounded up on a grid."""
    found = measured(MNIST, mnist_histograms, orders=TABLE_ORDERS, analysis=PUBLISHED)
    assert found.order == 14.0
    assert found.epsilon == pytest.approx(1.999, abs=5e-4)
    assert found.expected_answers == pytest.approx(282.72, abs=5e-3)
    golden = {6.0: 0.192837688, 11.0: 0.3864626316, 14.0: 0.5246953356}
    tight = measured(MNIST, mnist_histograms, orders=list(golden))
    for rdp, wanted in zip(tight.rdp.tolist(), golden.values(), strict=True):
        assert wanted * (1.0 - 1e-9) <= rdp <= wanted * 1.002
    every = measured(MNIST, mnist_histograms, orders=TIGHT_ORDERS)
    assert every.epsilon < 1.40
    assert not found.order_at_edge
    assert not every.order_at_edge


@pytest.mark.parametrize("delta", [1e-2, 1e-5, 1e-9])
@pytest.mark.parametrize(
    ("mechanism", "noise"),
    [
        ("gnmax", {"sigma2": 1e4}),
        ("gnmax", {"sigma2": 20.0}),
        ("lnmax", {"laplace_scale": 1e4}),
        ("lnmax", {"laplace_scale": 5.0}),
        ("confident", {"threshold": 40.0, "sigma1": 900.0, "sigma2": 900.0}),
    ],
)
@pytest.mark.parametrize("orders", ["default", "moments", [1.5], [900.0]])
def test_given_votes_never_cost_more_than_the_worst_that_stands_beside_them(
    mechanism, noise, delta, orders
):
    """Whatever orders are tried: the worst case holds for these votes, too."""
    votes = np.array([[50, 50], [30, 20]])
    given = {"layout": "counts", "teachers": 100, "delta": delta, **noise}
    found = pate.cost(votes, mechanism, orders=orders, **given)
    assert found.epsilon <= found.worst_case.epsilon
    assert found.to_dict()["epsilon"] <= found.to_dict()["data_independent"]["epsilon"]
    assert found.epsilon == found.by_orders.min() or not found.order_at_edge


def test_the_published_analysis_is_repeated_as_it_is():
    """What it gives is no bound, and is not made one by another."""
    given = {"layout": "counts", "sigma2": 1e4, "analysis": "paper"}
    found = pate.cost(np.array([[50, 50]]), "gnmax", **given)
    assert found.epsilon == found.by_orders.min()
    assert found.orders.tolist() == list(TABLE_ORDERS)
    moments = pate.cost(np.array([[50, 50]]), "gnmax", **given, orders="moments")
    assert moments.orders.tolist() == list(range(2, 10))


# --- sensitivity by distance ----------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", [CONFIDENT, GNMAX, LNMAX], ids=lambda one: one.name)
@pytest.mark.parametrize("beta", [0.01, 0.05, 2.0])
def test_the_sensitivity_is_what_a_run_would_have_charged(mechanism, beta):
    found, within = price_votes(CountsRows(COUNTS), mechanism, order=4.0, beta=beta)
    ledger = charged(mechanism, COUNTS, [4.0], distances=distances_for(beta, teachers=20))
    assert found.rdp == ledger.rdp[0]
    assert found.ceiling == ledger.ceiling[0] == 70 * mechanism.cost_table(4.0).blocks.max()
    np.testing.assert_array_equal(found.curve, ledger.sensitivity[0])
    assert np.all(np.diff(found.curve) >= 0.0)
    assert np.all(found.curve <= found.ceiling * (1.0 + 1e-12))
    assert found.curve.size == min(20, int(np.ceil(14.0 / beta)))
    smooth = smooth_sensitivity(found.curve, ceiling=found.ceiling, beta=beta)
    assert found.smooth(beta) == pytest.approx(smooth, rel=1e-14)
    assert found.discounted(beta).max() <= smooth
    # The cost within a distance starts at the cost and ends at most at the worst. One vote adds to
    # the cost at most what it moves each query by.
    assert within.shape == found.curve.shape
    assert within[0] == pytest.approx(found.rdp, rel=1e-14)
    assert np.all(np.diff(within) >= 0.0)
    assert np.all(np.diff(within) <= found.curve[:-1] * (1.0 + 1e-9) + 70 * 1e-15)
    every = mechanism.worst_rdp(queries=70, answers=70, orders=np.array([4.0]))[0]
    assert within[-1] <= every * (1.0 + 1e-3) + 1e-9


def test_mnist_has_the_published_smooth_sensitivity(mnist_histograms):
    """0.06169; the paper prints 0.06175 for its own, not monotone, lists of thresholds."""
    plan = ReleasePlan(ReleaseKind.UPPER, delta=1e-5, order=14.0, beta=0.0329, sigma=9.0)
    rows = CountsRows(mnist_histograms)
    found = PUBLISHED.sensitivity(rows, MNIST, plan, queries=640).price
    assert found.smooth(0.0329) == pytest.approx(0.06169, abs=5e-6)
    assert found.discounted(0.0329).max() == pytest.approx(found.smooth(0.0329), rel=1e-12)


def test_a_curve_longer_than_the_costs_within_a_distance_is_shown():
    counts = np.random.default_rng(1).multinomial(600, [0.7, 0.3], size=5)
    found = pate.smooth_sensitivity(counts, "gnmax", layout="counts", sigma2=60.0, beta=0.001)
    (grid,) = [each for each in found.said() if hasattr(each, "rows")]
    assert grid.rows[0][-1] != "-" == grid.rows[-1][-1]
