"""Costs as they add up, accuracy over a range of noise, and the true labels behind it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from beside import true_labels
from pate_cli.core.errors import VoteError
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.mechanisms.gnmax import GNMax
from pate_cli.mechanisms.lnmax import LNMax
from pate_cli.mechanisms.synthetic import SyntheticEnsemble
from pate_cli.pricing import accuracy as label_accuracy
from pate_cli.pricing.accuracy import measure_accuracy
from pate_cli.pricing.cost import TIGHT_ORDERS, measure_cost
from pate_cli.pricing.growth import measure_growth
from runs import CountsRows, cut
from slices import some

COUNTS, LABELS = SyntheticEnsemble(teachers=60, classes=4, queries=90).draw(1)
MECHANISMS = [
    LNMax(60, 4, laplace_scale=8.0),
    GNMax(60, 4, sigma2=10.0),
    ConfidentGNMax(60, 4, threshold=50.0, sigma1=20.0, sigma2=10.0),
]


@pytest.mark.parametrize("mechanism", some(MECHANISMS, 2), ids=lambda one: one.name)
def test_growth_ends_at_the_cost_of_the_file_however_it_is_cut(mechanism):
    whole = measure_growth(CountsRows(COUNTS), mechanism, delta=1e-5)
    parts = measure_growth(cut(COUNTS, [1, 89]), mechanism, delta=1e-5)
    np.testing.assert_allclose(parts.epsilon, whole.epsilon, rtol=1e-12)
    np.testing.assert_allclose(parts.answers, whole.answers, rtol=1e-12)
    cost = measure_cost(CountsRows(COUNTS), mechanism, orders=TIGHT_ORDERS, delta=1e-5)
    assert whole.epsilon[-1] == pytest.approx(cost.epsilon, rel=1e-12)
    assert whole.answers[-1] == pytest.approx(cost.expected_answers, rel=1e-12)
    assert np.all(np.diff(whole.epsilon) >= 0.0)
    some = measure_cost(CountsRows(COUNTS[:30]), mechanism, orders=TIGHT_ORDERS, delta=1e-5)
    assert whole.epsilon[29] == pytest.approx(some.epsilon, rel=1e-12)


def test_accuracy_of_two_classes_is_a_normal_probability(monkeypatch):
    shares = (0.05, 0.3)
    monkeypatch.setattr(label_accuracy, "NOISE_SHARES", shares)
    counts = np.tile([34, 26], (2000, 1))
    truth = true_labels(np.zeros(2000, dtype=np.int64))
    points = measure_accuracy(CountsRows(counts), truth, teachers=60, classes=2, delta=1e-5)
    assert [one.deviation for one in points[::2]] == [60 * share for share in shares]
    for one in points:
        if one.mechanism == "gnmax":
            assert one.parameter == one.deviation
            # The difference of two noises has standard deviation √2 σ.
            wanted = 0.5 * math.erfc(-8.0 / (2.0 * one.deviation))
            assert one.accuracy == pytest.approx(wanted, abs=5 * 0.5 / math.sqrt(40_000))
        else:
            assert one.parameter == pytest.approx(one.deviation / math.sqrt(2.0))
            gap = 8.0 / one.parameter
            wanted = 1.0 - (2.0 + gap) / (4.0 * math.exp(gap))
            assert one.accuracy == pytest.approx(wanted, abs=5 * 0.5 / math.sqrt(40_000))


def test_more_noise_costs_less(monkeypatch):
    monkeypatch.setattr(label_accuracy, "NOISE_SHARES", (0.2, 0.5))
    counts, labels = SyntheticEnsemble(teachers=60, classes=2, queries=15).draw(1)
    points = measure_accuracy(
        CountsRows(counts), true_labels(labels), teachers=60, classes=2, delta=1e-5
    )
    for name in ("lnmax", "gnmax"):
        epsilon = [one.epsilon for one in points if one.mechanism == name]
        assert all(more > less for more, less in itertools.pairwise(epsilon))


def test_unknown_labels_do_not_count(monkeypatch):
    monkeypatch.setattr(label_accuracy, "NOISE_SHARES", (0.02,))
    counts = np.tile([60, 0], (50, 1))
    half = np.where(np.arange(50) < 25, 0, -1)
    points = measure_accuracy(
        CountsRows(counts), true_labels(half), teachers=60, classes=2, delta=1e-5
    )
    assert points[0].accuracy == 1.0
    with pytest.raises(VoteError) as caught:
        measure_accuracy(
            CountsRows(counts), true_labels(np.full(50, -1)), teachers=60, classes=2, delta=1e-5
        )
    assert str(caught.value) == "no query of the votes has a true label"
