"""What votes would cost: steps, orders and queries add up; MNIST costs what the paper says."""

import math

import numpy as np
import pytest

import pate_cli as pate
from beside import a_student
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.mechanisms.gnmax import GNMax
from pate_cli.mechanisms.interactive import InteractiveGNMax
from pate_cli.mechanisms.lnmax import LNMax
from pate_cli.paper.analysis import PUBLISHED
from pate_cli.paper.costs import TABLE_ORDERS
from pate_cli.planning.cost import TIGHT, TIGHT_ORDERS, measure_cost, queries_at
from runs import cut
from slices import some

COUNTS = np.random.default_rng(3).multinomial(20, [0.6, 0.3, 0.1], size=70)
SHARES = np.random.default_rng(4).dirichlet([1.0, 1.0, 1.0], size=70)
CONFIDENT = ConfidentGNMax(20, 3, threshold=12.0, sigma1=6.0, sigma2=3.0)
MECHANISMS = [
    CONFIDENT,
    InteractiveGNMax(20, 3, threshold=5.0, sigma1=6.0, sigma2=3.0, predictions=a_student(SHARES)),
    GNMax(20, 3, sigma2=3.0),
    LNMax(20, 3, laplace_scale=2.0),
]
ORDERS = np.array([1.5, 4.0, 9.0])
PAPER = PUBLISHED


def measured(mechanism, counts=COUNTS, *, size=None, orders=ORDERS, delta=1e-5, analysis=TIGHT):
    passes = cut(counts, len(counts) if size is None else size)
    return measure_cost(passes, mechanism, orders=orders, delta=delta, analysis=analysis)


def by_row(mechanism, *, size=70, order=4.0, analysis=TIGHT):
    return queries_at(analysis, cut(COUNTS, size), mechanism, order=order)


@pytest.mark.parametrize("analysis", some([TIGHT, PAPER], 2), ids=lambda one: one.name)
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda one: one.name)
def test_steps_orders_and_queries_add_up(mechanism, analysis):
    steps = analysis.steps(mechanism, COUNTS, ORDERS)
    total = sum(steps.values())
    answer = mechanism.answer_chance(COUNTS)
    assert total.shape == (3, 70)
    assert all(np.all(step >= 0.0) for step in steps.values())
    two_steps = mechanism.name in ("confident", "interactive")
    assert list(steps) == (["threshold", "argmax"] if two_steps else ["argmax"])
    whole = measured(mechanism, analysis=analysis)
    np.testing.assert_allclose(whole.rdp, total.sum(axis=1), rtol=1e-12)
    if analysis is TIGHT:
        own = mechanism.rdp(mechanism.score(COUNTS), ORDERS).sum(axis=1)
        np.testing.assert_allclose(whole.rdp, own, rtol=1e-12)
        conversion = np.log1p(-1 / ORDERS) - (math.log(1e-5) + np.log(ORDERS)) / (ORDERS - 1)
        assert whole.by_orders.min() == pytest.approx((own + conversion).min(), rel=1e-12)
    np.testing.assert_allclose(sum(whole.steps.values()), whole.rdp, rtol=1e-12)
    best = int(np.flatnonzero(whole.orders == whole.order)[0])
    rows = by_row(mechanism, order=whole.order, analysis=analysis)
    np.testing.assert_allclose(rows["cost"], total[best], rtol=1e-12)
    parts = [values for name, values in rows.items() if name.startswith("cost_")]
    np.testing.assert_allclose(sum(parts), rows["cost"], rtol=1e-12)
    np.testing.assert_array_equal(rows["plurality"], COUNTS.max(axis=1))
    np.testing.assert_array_equal(rows["answer_probability"], answer)
    np.testing.assert_array_equal(rows["query_id"], np.arange(70))
    assert whole.queries["cost"].sum() == pytest.approx(whole.rdp[best], rel=1e-12)
    assert whole.expected_answers == pytest.approx(answer.sum(), rel=1e-12)
    if not two_steps:
        assert whole.expected_answers == 70


@pytest.mark.parametrize(
    ("orders", "edge"),
    [([2.0], False), ([3.0, 4.0], True), ([1.5, 2.0], True), ([1.2, 2.5, 90.0], False)],
)
def test_the_edge_of_the_orders_is_told(orders, edge):
    found = measured(CONFIDENT, orders=np.array(orders))
    assert found.order_at_edge is edge
    worst = measured(CONFIDENT, orders=np.array([50.0, 60.0]))
    assert worst.epsilon == worst.worst_case.epsilon
    assert not worst.order_at_edge  # the worst case is told, which no order would better
    assert found.order in orders


@pytest.mark.parametrize("analysis", [TIGHT, PAPER], ids=lambda one: one.name)
def test_quantiles_and_histogram_describe_every_query_once(analysis):
    found = measured(CONFIDENT, analysis=analysis)
    each = by_row(CONFIDENT, order=found.order, analysis=analysis)
    for level, value in found.quantiles().items():
        assert value == pytest.approx(np.quantile(each["cost"], float(level)), rel=1e-12)
    rows = found.histogram()
    assert sum(row["queries"] for row in rows) == 70
    assert sum(row["share_of_cost"] for row in rows) == pytest.approx(1.0)
    assert sum(row["expected_answers"] for row in rows) == pytest.approx(found.expected_answers)
    total = sum(row["mean_cost"] * row["queries"] for row in rows)
    assert total == pytest.approx(each["cost"].sum())
    for row in rows:
        last = row["to"] == 20
        here = (each["plurality"] >= row["from"]) & (each["plurality"] < row["to"] + last)
        assert row["queries"] == here.sum() > 0
        assert row["expected_answers"] == pytest.approx(each["answer_probability"][here].sum())
        assert row["mean_cost"] == pytest.approx(each["cost"][here].mean())


def test_mnist_costs_what_the_paper_says(mnist_votes):
    mechanism = ConfidentGNMax(250, 10, threshold=200.0, sigma1=150.0, sigma2=40.0)
    counts = mnist_votes[:640].astype(np.int64)
    found = measured(mechanism, counts, orders=np.asarray(TABLE_ORDERS), analysis=PAPER)
    assert found.order == 14.0
    assert found.epsilon == pytest.approx(1.999, abs=5e-4)
    assert found.expected_answers == pytest.approx(282.72, abs=5e-3)
    assert not found.order_at_edge


def test_mnist_costs_less_under_the_tight_analysis(mnist_votes):
    """A little above the bound itself, as costs are rounded up on a grid."""
    mechanism = ConfidentGNMax(250, 10, threshold=200.0, sigma1=150.0, sigma2=40.0)
    counts = mnist_votes[:640].astype(np.int64)
    golden = {6.0: 0.192837688, 11.0: 0.3864626316, 14.0: 0.5246953356}
    found = measured(mechanism, counts, orders=np.array(list(golden)))
    for rdp, wanted in zip(found.rdp.tolist(), golden.values(), strict=True):
        assert wanted * (1.0 - 1e-9) <= rdp <= wanted * 1.002
    everything = measured(mechanism, counts, orders=TIGHT_ORDERS)
    assert everything.epsilon < 1.40
    assert not everything.order_at_edge


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


def test_compared_mechanisms_cost_no_more_than_their_worst_case():
    found = pate.compare(np.array([[50, 50]] * 3), "gnmax", layout="counts", sigma2=1e4)
    assert all(row["epsilon"] <= row["data_independent"] for row in found.rows if row["epsilon"])
