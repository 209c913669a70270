"""What the scripts show: guesses help, shared clocks help, and two rounds cost what both do."""

import numpy as np
import pytest
from scipy.stats import binom

import pate_cli as pate

SEED = 5


def test_guesses_make_more_labels_right(script):
    prior = script("prior")
    alone, guessed = (prior.right(12.0, weight, seeds=5) for weight in (0, 20))
    # Five runs of a hundred labels: two points either way.
    assert alone == pytest.approx(0.834, abs=0.06)
    assert guessed == pytest.approx(0.908, abs=0.06)
    assert guessed > alone


def test_more_teachers_agree_on_shared_clocks_and_their_token_is_released(script):
    found = script("tokens").point(0.5, asks=40, teachers=64, vocabulary=500)
    assert found.apart == pytest.approx(0.26, abs=0.03)
    # The first of 500 tokens by Zipf's law has 15% of a teacher's chances.
    assert found.alone.share < 0.3
    assert found.shared.share > (1.0 - found.apart) / (1.0 + found.apart)
    assert found.shared.kept > 0.8 > 0.5 > found.alone.kept


def test_tokens_drawn_alone_have_their_probabilities(script):
    law = np.array([0.5, 0.0, 0.3, 0.2])
    laws = np.tile(law, (20_000, 1))
    drawn = script("tokens").drawn_alone(np.random.default_rng(1), laws)
    for seen, chance in zip(np.bincount(drawn, minlength=4), law, strict=True):
        assert binom.cdf(seen, 20_000, chance) > 1e-8 < binom.sf(seen - 1, 20_000, chance)


def test_two_rounds(script, tmp_path):
    """Confident, a student, Interactive: the composed report costs what both rounds do."""
    scripted = script("two_rounds")
    found = scripted.both_rounds(tmp_path, seed=SEED)
    ledgers = [tmp_path / f"round{k}.ledger" for k in (1, 2)]
    drawn = pate.release(ledgers, release="upper", seed=SEED, record=False).report
    # The script publishes no draw, which leaves what both rounds cost whatever the votes.
    assert found["epsilon"] == drawn.data_independent.labels_epsilon
    assert found["delta"] == 1e-5
    labels, sources = scripted.labels_of(tmp_path / "labels2.parquet")
    student = np.load(tmp_path / "student.npy")
    reinforced = sources == "student"
    assert 0 < reinforced.sum() == found["reinforced"]
    np.testing.assert_array_equal(labels[reinforced], student[reinforced].argmax(axis=1))
    assert student[reinforced].max(axis=1).min() > 0.8
    assert (sources == "teachers").sum() == found["answers"][1]
    assert np.all((labels == -1) == (sources == "none"))
    assert student[sources == "none"].max(axis=1).max() <= 0.8
    _, sources1 = scripted.labels_of(tmp_path / "labels1.parquet")
    assert set(sources1) == {"teachers", "none"}
    # It learns: guessing is right on a tenth.
    assert all(accuracy > 0.7 for accuracy in found["student right"])
