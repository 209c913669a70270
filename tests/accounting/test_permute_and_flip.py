"""The loss of permute-and-flip against its expansion in many digits; its score and its range."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pate_cli.accounting.gaussian.noisy_max import SCORE_ERROR
from pate_cli.accounting.permute_and_flip import (
    flip_log_q,
    flip_score_lipschitz,
    flip_score_range,
)
from pate_cli.core.arrays import DENSE_CLASSES
from pate_cli.core.errors import ParameterError
from refusals import refusal
from slices import tries

histograms = st.lists(st.integers(0, 400), min_size=2, max_size=12)


def expanded(counts, scale):
    """log q: the polynomial Π (1 − u e^{−g}) multiplied out and integrated term by term."""
    with mpmath.workdps(120):
        ordered = sorted((mpmath.mpf(int(n)) / mpmath.mpf(scale) for n in counts), reverse=True)
        terms = [mpmath.mpf(1)]
        for odds in (mpmath.exp(n - ordered[0]) for n in ordered[1:]):
            longer = [mpmath.mpf(0), *(-odds * term for term in terms)]
            terms = [a + b for a, b in zip([*terms, mpmath.mpf(0)], longer, strict=True)]
        lost = -sum(term / (power + 1) for power, term in enumerate(terms) if power)
        return float(mpmath.log(lost))


@settings(max_examples=tries(150))
@given(histograms, st.floats(0.05, 200.0))
def test_the_loss_in_many_digits(counts, scale):
    exact = max(expanded(counts, scale), -690.0)
    found = flip_log_q(np.array([counts]), scale=scale)[0]
    assert found == pytest.approx(exact, abs=SCORE_ERROR / 10.0)


@pytest.mark.parametrize("classes", [2, 3, 64, 1000, DENSE_CLASSES])
def test_a_tie_of_all_classes(classes):
    found = flip_log_q(np.full((1, classes), 7), scale=3.0)[0]
    assert found == pytest.approx(np.log1p(-1.0 / classes), abs=SCORE_ERROR / 10.0)


@pytest.mark.parametrize("gap", [1, 40, 600, 3000])
def test_two_classes_have_half_an_exponential_tail(gap):
    found = flip_log_q(np.array([[5000, 5000 - gap]]), scale=6.0)[0]
    assert found == pytest.approx(max(-gap / 6.0 - np.log(2.0), -690.0), abs=SCORE_ERROR / 10.0)


def test_rows_that_repeat_and_many_at_once_are_those_alone():
    counts = np.random.default_rng(5).multinomial(60, np.full(40, 1 / 40), size=4000)
    counts = np.concatenate([counts, counts[:7]])
    together = flip_log_q(counts, scale=4.0)
    np.testing.assert_array_equal(together[-7:], together[:7])
    alone = [flip_log_q(counts[row : row + 1], scale=4.0)[0] for row in (0, 1999, 3999)]
    np.testing.assert_allclose(together[[0, 1999, 3999]], alone, rtol=1e-13)


@settings(max_examples=tries(200))
@given(histograms, st.floats(0.3, 60.0), st.data())
def test_one_vote_moves_the_score_by_two_over_b_at_most(counts, scale, data):
    place = st.integers(0, len(counts) - 1)
    gains, loses = data.draw(place), data.draw(place)
    moved = np.array(counts)
    moved[gains] += 1
    moved[loses] -= moved[loses] > 0
    here, there = flip_log_q(np.array([counts, moved]), scale=scale)
    assert abs(here - there) <= flip_score_lipschitz(scale)


def test_a_lone_class_moved_from_the_top_comes_near_the_bound():
    here, there = flip_log_q(np.array([[30, 10], [29, 11]]), scale=2.0)
    assert there - here == pytest.approx(2.0 / 2.0, abs=1e-9)


def test_the_range_holds_every_score():
    low, high = flip_score_range(teachers=50, classes=4, scale=3.0)
    counts = np.random.default_rng(2).multinomial(50, [0.7, 0.1, 0.1, 0.1], size=500)
    extreme = np.array([[50, 0, 0, 0], [13, 13, 12, 12]])
    scores = flip_log_q(np.concatenate([counts, extreme]), scale=3.0)
    assert low <= scores.min()
    assert scores.max() <= high == np.log(0.75)


def test_refusals():
    message = "exponential scale must be positive and finite, got 0.0"
    assert refusal(ParameterError, flip_log_q, np.ones((2, 2)), scale=0.0) == message
    found = refusal(ParameterError, flip_log_q, np.ones((2, 1)), scale=1.0)
    assert found.startswith("counts must be [queries, classes] with at least 2 classes")
