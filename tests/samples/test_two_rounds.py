"""Confident, a student, Interactive: the composed report is what adding up by hand gives."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import pate_cli as pate
from pate_cli.core.noise import RunKey
from pate_cli.core.words import ReleaseKind
from pate_cli.mechanisms import scored_from_parameters
from pate_cli.planning.sanitized import choose_plan

SEED = 5


@pytest.fixture
def rounds(script, tmp_path):
    return script("two_rounds").both_rounds(tmp_path, seed=SEED), tmp_path


def _padded(ledger, distances):
    curve = ledger["sensitivity"][0]
    return np.array(curve + ledger["ceiling"] * (distances - len(curve)))


def test_both_rounds(rounds, script):
    found, folder = rounds
    first, second = (json.loads((folder / f"round{k}.ledger").read_text()) for k in (1, 2))
    assert first["orders"] == second["orders"] == [4.0]
    assert not first["releasable"]

    distances = max(len(one["sensitivity"][0]) for one in (first, second))
    curve = _padded(first, distances) + _padded(second, distances)
    rdp = first["rdp"][0] + second["rdp"][0]
    ceiling = first["ceiling"][0] + second["ceiling"][0]
    each = [(one["rounds"][0]["mechanism"], one["rounds"][0]["queries"]) for one in (first, second)]
    each.sort(key=lambda one: one[0]["name"])
    plan = choose_plan(
        ReleaseKind.UPPER,
        [(scored_from_parameters(mechanism), queries) for mechanism, queries in each],
        delta=1e-5,
        order=4.0,
    )
    smooth = max(
        float(np.max(np.exp(-plan.beta * np.arange(distances)) * curve)),
        math.exp(-plan.beta * distances) * ceiling,
    )
    draw = float(RunKey.of(SEED).aside("release").normal(1)[0])
    value = rdp + smooth * (plan.shift + plan.sigma * draw) + plan.overhead
    ledgers = [folder / f"round{k}.ledger" for k in (1, 2)]
    drawn = pate.release(ledgers, release="upper", seed=SEED, record=False).report
    # What is published is rounded up to four decimals.
    assert value <= drawn.sanitized <= value + 1e-4 + 1e-12
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
