"""`pate_cli.planning.sample`: what labels a setting is expected to give."""

from __future__ import annotations

import numpy as np
import pytest
from pate_cli.tuning import Setting, VoteSample

from pate_cli.core.errors import ParameterError, UsageError, VoteError
from pate_cli.core.noise import RunKey
from pate_cli.planning.sample import capped_mean, made_up_sample, reference_sample
from pate_cli.planning.sanitized import REFERENCE_SEED, reference_ensemble


def test_expected_yields_are_those_of_many_runs(drawn):
    sample = drawn(11, teachers=60, classes=4, queries=40)
    setting, rows, runs = Setting(48.0, 30.0, 12.0), 30, 2000
    expected = sample.yields(setting, rows)
    counts = sample.counts[:rows]
    # Ties aside, the plurality is the first largest class.
    assert ((counts == counts.max(axis=1, keepdims=True)).sum(axis=1) == 1).all()
    noise, mechanism = RunKey.from_seed(0).rows(0, 1), sample.mechanism(setting)
    labels = np.stack([mechanism.label(counts, noise) for _ in range(runs)])
    answered = labels != -1
    agreeing = answered & (labels == counts.argmax(axis=1))
    right = answered & (labels == sample.truth[:rows])
    # A mean of 2,000 sums of 30 coins: by Hoeffding off by 0.4 or more with chance < 2e-9.
    assert expected.answers == pytest.approx(answered.sum() / runs, abs=0.4)
    assert expected.agreeing == pytest.approx(agreeing.sum() / runs, abs=0.4)
    assert expected.correct <= right.sum() / runs + 0.4
    assert expected.agreement == expected.agreeing / expected.answers
    assert expected.accuracy == expected.correct / expected.answers


def test_capped_mean_against_the_exact_law():
    chance = np.random.default_rng(1).uniform(0.1, 0.9, 80)
    law = np.ones(1)
    for p in chance:
        law = np.convolve(law, [1.0 - p, p])
    mean, sd = chance.sum(), np.sqrt((chance * (1.0 - chance)).sum())
    for cap in range(1, 80):
        exact = float(np.minimum(np.arange(81), cap) @ law)
        assert float(capped_mean(mean, sd, np.array(float(cap)))) == pytest.approx(exact, abs=0.06)


def test_a_prefix_is_the_fewest_rows(drawn):
    sample, setting = drawn(1), Setting(32.0, 20.0, 8.0)
    chance = sample.answer_chance(setting)
    rows = sample.prefix_for(setting, 25.0)
    assert chance[:rows].sum() >= 25.0 > chance[: rows - 1].sum()
    assert sample.prefix_for(setting, chance.sum() + 1e-6) is None


def test_a_thinned_sample_stands_for_the_whole(drawn):
    sample, setting = drawn(6, queries=1000), Setting(32.0, 20.0, 8.0)
    thinned = sample.thinned(100)
    assert thinned.queries == 100
    whole = sample.yields(setting, 1000).answers
    assert thinned.yields(setting, 100).scaled(10.0).answers == pytest.approx(whole, rel=0.1)
    assert sample.thinned(1000) is sample


def test_shapes_that_do_not_fit():
    with pytest.raises(ParameterError, match="histograms must be"):
        VoteSample(np.zeros(3, dtype=np.int64), 3)
    with pytest.raises(VoteError, match="2 labels for 3 queries"):
        VoteSample(np.ones((3, 2), dtype=np.int64), 2, truth=np.zeros(2, dtype=np.int64))


def test_the_reference_sample_is_that_of_the_public_rule():
    sample, recipe = reference_sample(teachers=30, classes=4, queries=20, teachers_per_record=2)
    ensemble = reference_ensemble(teachers=30, classes=4, queries=20)
    np.testing.assert_array_equal(sample.counts, ensemble.draw(REFERENCE_SEED)[0])
    assert (sample.teachers, sample.teachers_per_record) == (30, 2)
    assert recipe["seed"] == REFERENCE_SEED
    assert recipe["agreement"] == ensemble.agreement


def test_a_made_up_sample_repeats_with_its_recipe():
    text = "teachers=20,classes=3,queries=9,agreement=0.7,seed=5"
    (first, recipe), (second, _) = made_up_sample(text), made_up_sample(text)
    np.testing.assert_array_equal(first.counts, second.counts)
    assert first.counts.shape == (9, 3)
    assert (first.counts.sum(axis=1) == 20).all()
    assert (recipe["teachers"], recipe["agreement"], recipe["seed"]) == (20, 0.7, 5)
    assert set(recipe) >= {"spread", "confusion", "imbalance"}
    for wrong, message in (
        ("teachers=5,classes=3", "needs queries"),
        ("teacher=5", "got 'teacher=5'"),
        ("teachers=5,teachers=6", "once"),
        ("teachers=x", "teachers must be a number, got 'x'"),
        ("teachers=5,classes=3,queries=9,seed=-1", "seed must be at least 0"),
    ):
        with pytest.raises(UsageError, match=message):
            made_up_sample(wrong)
