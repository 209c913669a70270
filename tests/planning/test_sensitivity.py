"""Sensitivity by distance and its smooth maximum, tight and as published."""

import numpy as np
import pytest

import pate_cli as pate
from pate_cli.accounting.sensitivity import distances_for, smooth_sensitivity
from pate_cli.core.words import ReleaseKind
from pate_cli.disclosure.settings import ReleasePlan
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.mechanisms.gnmax import GNMax
from pate_cli.mechanisms.lnmax import LNMax
from pate_cli.paper.analysis import PublishedAnalysis
from pate_cli.planning.sanitized import price_votes
from runs import CountsRows, charged

COUNTS = np.random.default_rng(3).multinomial(20, [0.6, 0.3, 0.1], size=70)
TIGHT = [
    ConfidentGNMax(20, 3, threshold=12.0, sigma1=6.0, sigma2=5.0),
    GNMax(20, 3, sigma2=3.0),
    LNMax(20, 3, laplace_scale=2.0),
]


@pytest.mark.parametrize("mechanism", TIGHT, ids=lambda one: one.name)
@pytest.mark.parametrize("beta", [0.01, 0.05, 2.0])
def test_it_is_what_a_run_would_have_charged(mechanism, beta):
    found, _ = price_votes(CountsRows(COUNTS), mechanism, order=4.0, beta=beta)
    distances = distances_for(beta, teachers=20)
    ledger = charged(mechanism, COUNTS, [4.0], distances=distances)
    assert found.rdp == ledger.rdp[0]
    assert found.ceiling == ledger.ceiling[0] == 70 * mechanism.cost_table(4.0).blocks.max()
    np.testing.assert_array_equal(found.curve, ledger.sensitivity[0])
    assert np.all(np.diff(found.curve) >= 0.0)
    assert np.all(found.curve <= found.ceiling * (1.0 + 1e-12))
    assert found.curve.size == min(20, int(np.ceil(14.0 / beta)))
    smooth = smooth_sensitivity(found.curve, ceiling=found.ceiling, beta=beta)
    assert found.smooth(beta) == pytest.approx(smooth, rel=1e-14)
    assert found.discounted(beta).max() <= smooth


@pytest.mark.parametrize("mechanism", TIGHT, ids=lambda one: one.name)
def test_the_cost_within_a_distance_starts_at_the_cost_and_ends_at_most_at_the_worst(mechanism):
    price, within = price_votes(CountsRows(COUNTS), mechanism, order=4.0, beta=0.05)
    assert within.shape == price.curve.shape
    assert within[0] == pytest.approx(price.rdp, rel=1e-14)
    assert np.all(np.diff(within) >= 0.0)
    # One vote adds to the cost at most what it moves each query by.
    assert np.all(np.diff(within) <= price.curve[:-1] * (1.0 + 1e-9) + 70 * 1e-15)
    every = mechanism.worst_rdp(queries=70, answers=70, orders=np.array([4.0]))[0]
    assert within[-1] <= every * (1.0 + 1e-3) + 1e-9


def test_mnist_has_the_published_smooth_sensitivity(mnist_histograms):
    """0.06169; the paper prints 0.06175 for its own, not monotone, lists of thresholds."""
    mechanism = ConfidentGNMax(250, 10, threshold=200.0, sigma1=150.0, sigma2=40.0)
    plan = ReleasePlan(ReleaseKind.UPPER, delta=1e-5, order=14.0, beta=0.0329, sigma=9.0)
    rows = CountsRows(mnist_histograms)
    found = PublishedAnalysis().sensitivity(rows, mechanism, plan, queries=640).price
    assert found.smooth(0.0329) == pytest.approx(0.06169, abs=5e-6)
    assert found.discounted(0.0329).max() == pytest.approx(found.smooth(0.0329), rel=1e-12)


def test_a_curve_longer_than_the_costs_within_a_distance_is_shown():
    counts = np.random.default_rng(1).multinomial(600, [0.7, 0.3], size=5)
    found = pate.smooth_sensitivity(counts, "gnmax", layout="counts", sigma2=60.0, beta=0.001)
    (grid,) = [each for each in found.said() if hasattr(each, "rows")]
    assert grid.rows[0][-1] != "-" == grid.rows[-1][-1]
