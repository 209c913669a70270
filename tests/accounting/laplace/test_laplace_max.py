"""The exact losing probability of a Laplace argmax, against exact expansions; its score."""

import itertools
from collections import Counter

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphs import neighbours_of
from pate_cli.accounting.gaussian.noisy_max import SCORE_ERROR
from pate_cli.accounting.laplace.noisy_max import (
    LOWEST_SCORE,
    laplace_log_q,
    laplace_quantile,
    laplace_score_lipschitz,
    laplace_score_range,
    laplace_scores,
)
from pate_cli.core.errors import ParameterError
from slices import tries


def expanded_log_q(counts, scale, digits):
    """log q by expanding every piece between kinks into a sum of c·e^{kt}, integrated exactly."""
    with mpmath.workdps(digits):
        n = [mpmath.mpf(int(v)) / mpmath.mpf(scale) for v in counts]
        edges = [-mpmath.inf, *sorted(set(n)), mpmath.inf]
        total, winner = mpmath.mpf(0), n.index(max(n))
        losers = [i for i in range(len(n)) if i != winner]
        copies, one_of = Counter(n[i] for i in losers), {n[i]: i for i in losers}
        for low, high in itertools.pairwise(edges):
            for value, i in one_of.items():
                sums = {0: mpmath.mpf(1)}
                for j, v in enumerate(n):
                    rising, falling = {1: mpmath.exp(-v) / 2}, {-1: mpmath.exp(v) / 2}
                    if high <= v:
                        factor = rising
                    else:
                        factor = falling if j == i else {0: mpmath.mpf(1), -1: -falling[-1]}
                    product = {}
                    for (a, x), (b, y) in itertools.product(sums.items(), factor.items()):
                        product[a + b] = product.get(a + b, 0) + x * y
                    sums = product
                for k, c in sums.items():
                    c *= copies[value]
                    if k == 0:
                        total += c * (high - low) if c else 0
                    else:
                        ends = [
                            mpmath.mpf(0) if mpmath.isinf(t) else mpmath.exp(k * t)
                            for t in (low, high)
                        ]
                        total += c * (ends[1] - ends[0]) / k
        return float(mpmath.log(total))


CASES = [
    ([200, 30, 20, 0, 0, 0, 0, 0, 0, 0], 20.0),
    ([250, 0, 0, 0, 0, 0, 0, 0, 0, 0], 20.0),
    ([130, 120, 0, 0, 0, 0, 0, 0], 20.0),
    ([5, 5, 5], 1.0),
    ([0, 0, 0], 3.0),
    ([3, 2, 1, 0], 0.3),
    ([10, 9, 9, 9, 9, 9, 0], 0.2),
    ([0, 2, 300], 0.5),
    ([700, 10, 5], 1.0),
    ([1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1], 5.0),
    ([30, 29, 5, 5, 5, 0, 0, 0, 0], 2.0),
    ([90, 50, 7, 7, 1], 1.0),
    ([60, *[0] * 149], 20.0),
    ([200, *[0] * 149], 20.0),
]


@pytest.mark.parametrize(("counts", "scale"), CASES)
def test_log_q_is_exact_down_to_1e_300(counts, scale):
    wanted = expanded_log_q(counts, scale, 900 if max(counts) / scale > 100 else 120)
    assert laplace_log_q(np.array([counts]), scale=scale)[0] == pytest.approx(wanted, abs=1e-12)


@settings(max_examples=tries(40))
@given(
    st.lists(st.integers(0, 60), min_size=2, max_size=7),
    st.floats(np.log(0.4), np.log(40.0)).map(np.exp),
)
def test_log_q_of_any_small_histogram(counts, scale):
    wanted = expanded_log_q(counts, scale, 450)
    assert laplace_log_q(np.array([counts]), scale=scale)[0] == pytest.approx(wanted, abs=1e-11)


@pytest.mark.parametrize("classes", [3, 10, 150, 1000])
def test_all_classes_tied(classes):
    counts = np.full((1, classes), 7)
    assert laplace_log_q(counts, scale=3.0)[0] == pytest.approx(
        np.log1p(-1.0 / classes), rel=1e-9, abs=0
    )
    assert laplace_scores(counts, scale=3.0)[0] == pytest.approx(
        np.log(classes / 2.0), abs=SCORE_ERROR
    )


@pytest.mark.parametrize("log_q", [-690.0, -30.0, -0.7, -0.69, -0.3, -1e-3, -1e-12])
def test_the_quantile_inverts_the_distribution_function(log_q):
    score = float(laplace_quantile(np.array(log_q)))
    with mpmath.workdps(50):
        x = mpmath.mpf(score)
        back = mpmath.exp(x) / 2 if x <= 0 else 1 - mpmath.exp(-x) / 2
        assert float(mpmath.log(back)) == pytest.approx(log_q, rel=1e-12)


def test_one_vote_moves_the_score_by_at_most_two_over_b():
    random = np.random.default_rng(6)
    largest = 0.0
    for _ in range(150):
        classes, teachers = int(random.integers(2, 7)), int(random.integers(1, 40))
        counts = random.multinomial(teachers, random.dirichlet(np.full(classes, 0.6)))
        scale = float(np.exp(random.uniform(np.log(0.3), np.log(30.0))))
        around = np.vstack([counts[None], neighbours_of(counts)])
        scores = laplace_scores(around, scale=scale)
        moved = np.abs(scores[1:] - scores[0]).max() * scale / 2.0
        assert moved <= 1.0 + 1e-9
        assert moved * 2.0 / scale <= laplace_score_lipschitz(scale)
        low, high = laplace_score_range(teachers=teachers + 1, classes=classes, scale=scale)
        assert np.all((scores >= max(low, LOWEST_SCORE)) & (scores <= high))
        largest = max(largest, float(moved))
    assert largest > 0.95


def test_a_score_just_above_the_floor_is_kept():
    """With many runners-up q is far above what one of them alone would give."""
    counts = np.array([[60, *[20] * 40]])
    score = laplace_scores(counts, scale=2.0)
    np.testing.assert_array_equal(laplace_scores(counts, scale=2.0, floor=score[0] - 1e-6), score)


def test_scores_below_the_floor_are_clamped():
    counts = np.array([[300, 0, 0], [40, 30, 1], [300, 0, 0]])
    scores = laplace_scores(counts, scale=1.0, floor=-50.0)
    assert scores.tolist()[::2] == [-50.0, -50.0]
    assert scores[1] == laplace_scores(counts, scale=1.0)[1] > -50.0
    assert laplace_scores(np.array([[5000, 0, 0]]), scale=1.0)[0] == LOWEST_SCORE
    assert laplace_scores(np.array([[5000, 0]]), scale=1.0)[0] == LOWEST_SCORE


@pytest.mark.parametrize("shape", [(3,), (2, 1), (1, 2, 3)])
def test_bad_counts_are_refused_by_their_shape(shape):
    with pytest.raises(ParameterError) as caught:
        laplace_log_q(np.zeros(shape), scale=1.0)
    assert str(caught.value) == (
        f"counts must be [queries, classes] with at least 2 classes, got shape {shape}"
    )
