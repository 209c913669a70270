"""`pate_cli.planning.ensembles`: made-up teachers over a range of agreement."""

from __future__ import annotations

import numpy as np
import pytest

from pate_cli.core.arrays import DENSE_CLASSES, SparseCounts, dense
from pate_cli.core.errors import ParameterError, UsageError
from pate_cli.mechanisms.base import plurality
from pate_cli.planning.ensembles import KINDS, Agreement, Ensembles
from pate_cli.planning.sample import VoteSample


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [("0.7", 0.7, 0.7), ("70%", 0.7, 0.7), ("0.6:0.95", 0.6, 0.95), (" 60% : .9", 0.6, 0.9)],
)
def test_ranges_as_people_write_them(text, low, high):
    assert Agreement.parse(text) == Agreement(low, high)


@pytest.mark.parametrize("text", ["", "x", "0.6:", "0.6-0.9", "..", "0.6:0.7:0.8"])
def test_what_is_no_range(text):
    with pytest.raises(UsageError, match="low:high"):
        Agreement.parse(text)


@pytest.mark.parametrize(("low", "high"), [(0.0, 0.5), (0.9, 0.6), (0.5, 1.0), (-1.0, 0.5)])
def test_ranges_that_are_none(low, high):
    with pytest.raises(ParameterError, match="between 0 and 1"):
        Agreement(low, high)


def test_levels_go_from_end_to_end():
    assert Agreement(0.6, 0.95).levels == (0.6, 0.6875, 0.775, 0.8625, 0.95)
    assert Agreement(0.7, 0.7).levels == (0.7,)
    assert Agreement.unknown(2).low > Agreement.unknown(3).low == 0.5


def made_up(**given):
    shape = {"teachers": 60, "classes": 4, "agreement": Agreement(0.5, 0.9)}
    return Ensembles.made_up(**{**shape, **given})


def test_the_same_recipe_is_the_same_votes():
    one, two = made_up(), made_up()
    np.testing.assert_array_equal(one.sample.counts, two.sample.counts)
    assert one.number == 5 * len(KINDS)
    assert one.number * one.each == one.sample.queries


def test_teachers_agree_as_often_as_is_said():
    """Where most teachers are right, the plurality is about the level, on average."""
    found = made_up(teachers=200)
    shares = found.by_ensemble(plurality(found.sample.counts) / 200.0).mean(axis=1)
    for place, (level, kind) in enumerate(zip(found.levels, found.kinds, strict=True)):
        if kind == KINDS[0] and level >= 0.7:
            assert shares[place] == pytest.approx(level, abs=0.08)
            # A tenth of the queries is much harder there.
            assert shares[place + 2] < shares[place] + 0.02
    assert np.all(np.diff(shares[::3]) > 0.0)


def test_votes_of_teachers_that_count_differently_add_up():
    weights = [3, 3, 1, 1, 1, 5]
    found = made_up(teachers=sum(weights), weights=weights, teachers_per_record=5)
    totals = dense(found.sample.counts).sum(axis=1)
    assert set(totals.tolist()) == {sum(weights)}
    assert found.sample.teachers_per_record == 5


def test_a_prior_votes_and_the_teachers_are_still_known():
    found = made_up(prior_weight=12, prior_accuracy=1.0)
    sample = found.sample
    assert sample.most_votes == 72
    assert set(dense(sample.counts).sum(axis=1).tolist()) == {72}
    np.testing.assert_array_equal(
        (np.asarray(sample.counts) - np.asarray(sample.alone)).sum(axis=1), 12
    )


def test_many_classes_are_sparse():
    found = made_up(classes=DENSE_CLASSES + 1, teachers=20)
    assert isinstance(found.sample.counts, SparseCounts)
    assert found.sample.queries == found.number * found.each


def test_votes_that_are_there_are_one_ensemble():
    sample = VoteSample(np.array([[5, 1], [3, 3]]), 6)
    found = Ensembles.of(sample)
    assert (found.number, found.each) == (1, 2)
