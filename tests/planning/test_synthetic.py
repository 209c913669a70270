"""Made-up ensembles: shapes, moments, refusals."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pate_cli.core.errors import ParameterError
from pate_cli.planning.synthetic import SyntheticEnsemble, from_recipe
from refusals import refusal
from slices import tries


@given(
    st.builds(
        SyntheticEnsemble,
        teachers=st.integers(1, 60),
        classes=st.integers(2, 12),
        queries=st.integers(1, 40),
        agreement=st.floats(0.001, 0.999),
        spread=st.floats(0.0, 0.999),
        confusion=st.floats(1e-6, 1e3),
        imbalance=st.floats(0.0, 50.0),
    ),
    st.integers(0, 2**40),
)
@settings(max_examples=tries(150))
def test_every_recipe_gives_histograms(ensemble, seed):
    counts, truth = ensemble.draw(seed)
    assert counts.shape == (ensemble.queries, ensemble.classes)
    assert counts.dtype == np.int64
    assert np.all(counts >= 0)
    assert np.all(counts.sum(axis=1) == ensemble.teachers)
    assert truth.shape == (ensemble.queries,)
    assert np.all((truth >= 0) & (truth < ensemble.classes))
    for again, first in zip(ensemble.draw(seed), (counts, truth), strict=True):
        np.testing.assert_array_equal(again, first)


def test_small_confusion_weights_concentrate_wrong_votes():
    def largest_wrong_share(confusion):
        counts, truth = SyntheticEnsemble(500, 6, 2000, 0.5, 0.0, confusion).draw(1)
        counts[np.arange(2000), truth] = 0
        return (counts.max(axis=1) / counts.sum(axis=1)).mean()

    assert largest_wrong_share(0.01) > 0.95
    assert largest_wrong_share(100.0) < 0.3


def test_imbalance_follows_a_power_law():
    _, truth = SyntheticEnsemble(1, 4, 100_000, imbalance=1.0).draw(2)
    wanted = np.array([1.0, 1 / 2, 1 / 3, 1 / 4])
    found = np.bincount(truth, minlength=4) / len(truth)
    np.testing.assert_allclose(found, wanted / wanted.sum(), atol=0.01)


SIZES = "a synthetic ensemble needs teachers >= 1, classes >= 2 and queries >= 1, got 10, 3 and 5"


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("teachers", [0], SIZES.replace("got 10", "got {}")),
        ("classes", [1], SIZES.replace("10, 3", "10, {}")),
        ("queries", [0], SIZES.replace("and 5", "and {}")),
        ("agreement", [0.0, 1.0, math.nan], "agreement must be between 0 and 1, got {}"),
        ("spread", [-0.1, 1.0, math.nan], "spread must be at least 0 and below 1, got {}"),
        ("confusion", [0.0], "`confusion` must be positive and finite, got {}"),
        ("imbalance", [-1.0, math.inf], "`imbalance` must be at least 0 and finite, got {}"),
    ],
)
def test_recipes_out_of_range(name, values, message):
    for value in values:
        given = {"teachers": 10, "classes": 3, "queries": 5, name: value}
        assert refusal(ParameterError, SyntheticEnsemble, **given) == message.format(value)


def test_made_up_votes_say_their_recipe():
    text = "teachers=40,classes=4,queries=60,agreement=0.9,seed=3"
    counts, guesses, recipe = from_recipe(f"{text},prior=0.5")
    assert (counts.shape, guesses.shape, recipe["teachers"]) == ((60, 4), (60,), 40)
    assert (recipe["agreement"], recipe["prior"], recipe["seed"]) == (0.9, 0.5, 3)
    same, none, _ = from_recipe(text)
    assert none is None
    assert np.array_equal(same, counts)
