"""Confident, a student, Interactive: the composed report costs what both rounds do."""

from __future__ import annotations

import numpy as np
import pytest

import pate_cli as pate

SEED = 5


@pytest.fixture
def rounds(script, tmp_path):
    return script("two_rounds").both_rounds(tmp_path, seed=SEED), tmp_path


def test_both_rounds(rounds, script):
    found, folder = rounds
    ledgers = [folder / f"round{k}.ledger" for k in (1, 2)]
    drawn = pate.release(ledgers, release="upper", seed=SEED, record=False).report
    # The script publishes no draw, which leaves what both rounds cost whatever the votes.
    assert found["epsilon"] == drawn.data_independent.labels_epsilon
    assert found["delta"] == 1e-5
    labels, sources = script("two_rounds").labels_of(folder / "labels2.parquet")
    student = np.load(folder / "student.npy")
    reinforced = sources == "student"
    assert 0 < reinforced.sum() == found["reinforced"]
    np.testing.assert_array_equal(labels[reinforced], student[reinforced].argmax(axis=1))
    assert student[reinforced].max(axis=1).min() > 0.8
    assert (sources == "teachers").sum() == found["answers"][1]
    assert np.all((labels == -1) == (sources == "none"))
    assert student[sources == "none"].max(axis=1).max() <= 0.8
    _, sources1 = script("two_rounds").labels_of(folder / "labels1.parquet")
    assert set(sources1) == {"teachers", "none"}
    # It learns: guessing is right on a tenth.
    assert all(accuracy > 0.7 for accuracy in found["student right"])
