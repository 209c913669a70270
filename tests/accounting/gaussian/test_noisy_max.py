"""Scores against golden figures and multiple precision; their Lipschitz constant by brute force."""

import math
from collections import Counter

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtri_exp

from graphs import every_histogram, neighbours_of
from pate_cli.accounting.gaussian import noisy_max
from pate_cli.accounting.gaussian.noisy_max import (
    LOWEST_SCORE,
    SCORE_ERROR,
    score_lipschitz,
    score_range,
    scores,
    worst_scores,
)
from pate_cli.core.arrays import DENSE_CLASSES, SparseCounts
from slices import some, tries


def one(counts, sigma, **options):
    return float(scores(np.array([counts]), sigma=sigma, **options)[0])


def test_golden(tight):
    for case in tight["gnmax_score"]:
        assert one(case["counts"], case["sigma"]) == pytest.approx(case["z"], abs=1e-9), case


def score_by_digits(counts, classes, sigma):
    """Φ⁻¹(q) by a trapezoid in 25 digits over the winner's or the losers' integrand."""
    with mp.workdps(25):

        def log_cdf(x):
            tail = mp.erfc(abs(x) / mp.sqrt(2)) / 2
            return mp.log1p(-tail) if x > 0 else mp.log(tail)

        ordered = sorted(counts, reverse=True)
        gaps = Counter(mp.mpf(ordered[0] - n) / sigma for n in ordered[1:])
        gaps[mp.mpf(ordered[0]) / sigma] += classes - len(ordered)
        win = lose = mp.mpf(0)
        for node in range(int(-24 * (float(min(gaps)) / 2 + 7)), 24 * 13):
            t = mp.mpf(node) / 24
            logs = {g: log_cdf(t + g) for g in gaps}
            own = log_cdf(t)
            stay = mp.exp(own + sum(k * logs[g] for g, k in gaps.items()))
            win += stay * mp.npdf(t) / mp.exp(own) / 24
            lose += stay * sum(k * mp.npdf(t + g) / mp.exp(logs[g]) for g, k in gaps.items()) / 24
        assert abs(win + lose - 1) < 1e-13
        z = ndtri_exp(float(mp.log(min(lose, win))))
        return float(z if lose < win else -z)


@pytest.mark.parametrize(
    ("counts", "classes", "sigma"),
    some(
        [
            ((60, 0, 0, 0, 0), 5, 2.0),  # gaps of 30 σ
            ((100, 0, 0, 0, 0), 5, 2.0),  # of 50 σ
            ((120, 0, 0), 3, 2.0),  # of 60 σ: below the usual floor
            ((90, 10, 5, 0), 4, 1.5),  # several wide gaps
            ((46, 45, 0), 3, 0.9),
            ((3, 2, 2, 1), 4, 0.1),
            ((7, 6, 5, 5, 5, 1), 6, 3.0),
            # Many classes near the top, as many as a mechanism may have without sparse counts.
            ((30,) * 150 + (28,) * 50, 200, 20.0),
            ((30,) * 400 + (28,) * 600, 1000, 20.0),
            ((30,) * 7000 + (20,) * 3000, DENSE_CLASSES, 20.0),
            ((30,) * 4999 + (10,) * 5001, DENSE_CLASSES, 20.0),
            ((30,) * 9999 + (10,), DENSE_CLASSES, 20.0),
            # Classes without votes.
            ((250,), 1 << 24, 40.0),
            ((250,), 200_000, 70.0),
            ((125, 125), 1_000_000, 100.0),
            ((100, 60, 40, 30, 10, 5, 5), 20_000, 40.0),
            ((30, *[1] * 220), 1 << 24, 300.0),
            ((40, *[39] * 5, 2), 11_000, 9.0),
            ((1,) * 50_000, 1_000_000, 2.0),
        ],
        2,
    ),
)
def test_scores_against_multiple_precision(counts, classes, sigma):
    votes = np.array([counts])
    if classes > len(counts):
        votes = SparseCounts(np.arange(len(counts))[None], votes, classes)
    found = float(scores(votes, sigma=sigma, floor=-60.0)[0])
    wanted = score_by_digits(counts, classes, sigma)
    assert found == pytest.approx(wanted, abs=SCORE_ERROR / 3.0)


@settings(max_examples=tries(40), deadline=None)
@given(
    counts=st.lists(st.integers(0, 30), min_size=2, max_size=9),
    more=st.integers(0, 400),
    sigma=st.floats(0.5, 60.0),
    floor=st.sampled_from([LOWEST_SCORE, -3.0]),
)
def test_scores_of_sparse_histograms_are_those_of_dense_ones(counts, more, sigma, floor):
    rows = np.array([counts, counts[::-1], [0] * len(counts)])
    dense = np.pad(rows, ((0, 0), (0, more)))
    np.testing.assert_allclose(
        scores(SparseCounts.of(dense), sigma=sigma, floor=floor),
        scores(dense, sigma=sigma, floor=floor),
        rtol=1e-12,
        atol=1e-12,
    )


def test_one_vote_moves_no_score_further_than_the_lipschitz_constant(small_cases):
    furthest = 0.0
    for counts, sigma, _ in small_cases:
        around = neighbours_of(counts)
        around = around[around.sum(axis=1) > 0]
        z = scores(np.vstack([counts, around]), sigma=sigma, floor=-60.0)
        moved = np.abs(z[1:] - z[0]).max()
        assert moved <= score_lipschitz(sigma)
        furthest = max(furthest, moved / score_lipschitz(sigma))
    assert furthest > 0.999  # two classes attain it


@settings(max_examples=tries(150))
@given(
    counts=st.lists(st.integers(0, 80), min_size=2, max_size=7),
    sigma=st.floats(0.5, 60.0),
    data=st.data(),
)
def test_scores_do_not_depend_on_order_of_classes_or_rows(counts, sigma, data):
    shuffled = data.draw(st.permutations(counts))
    other = [max(counts)] + [0] * (len(counts) - 1)
    together = scores(np.array([other, shuffled, counts]), sigma=sigma)
    assert together[1] == together[2]
    assert together[2] == pytest.approx(one(counts, sigma), abs=SCORE_ERROR)
    # A common shift of all counts changes nothing.
    assert one([n + 9 for n in counts], sigma) == one(counts, sigma)
    low, high = score_range(teachers=max(sum(counts), 1), classes=len(counts), sigma=sigma)
    assert max(low, LOWEST_SCORE) <= together[2] <= high


def test_clamping():
    assert one([100_000, 0, 0], 1.0) == LOWEST_SCORE
    assert one([100_000, 0], 1.0) == LOWEST_SCORE
    assert one([50, 0, 0], 2.0, floor=-10.0) == -10.0
    assert one([50, 49, 0], 2.0, floor=-10.0) == one([50, 49, 0], 2.0)
    many = [20, *[0] * 300]  # each loser alone is below the floor, all together are not
    assert -4.0 < one(many, 3.0) == one(many, 3.0, floor=-4.0)
    assert scores(np.zeros((0, 4), dtype=np.int64), sigma=2.0).shape == (0,)


@pytest.mark.parametrize(("teachers", "classes"), [(12, 2), (9, 3), (7, 5), (4, 7), (2, 5)])
@pytest.mark.parametrize("sigma", [0.2, 0.6, 1.7, 30.0])
def test_no_histogram_scores_above_what_its_plurality_allows(teachers, classes, sigma):
    counts = every_histogram(teachers, classes, missing=teachers)
    most = worst_scores(teachers=teachers, classes=classes, sigma=sigma)
    assert most.shape == (teachers + 1,)
    assert np.all(np.diff(most) <= 0.0)
    found, v = scores(counts, sigma=sigma), counts.max(axis=1)
    assert np.all(found <= most[v])
    if classes == 2:
        # Nearly a tie, as nearly as that plurality allows with no vote missing.
        full = counts.sum(axis=1) == teachers
        assert np.all(most[v[full]] - found[full] <= 3.0 * SCORE_ERROR)
    top = v == teachers
    assert teachers < 3 or np.all(most[v[top]] - found[top] < 0.5)


def near_and_far(classes, teachers, rng):
    """Ties of some classes, a leader before them, and random votes, from even to one-sided."""
    rows = []
    for tied in sorted({1, 2, classes - 1, classes, *rng.integers(1, classes + 1, 5).tolist()}):
        for gap in np.unique(np.geomspace(1, teachers, 25).astype(int)):
            row = np.full(classes, teachers - gap)
            row[:tied] = teachers
            rows.append(row)
            lead = np.full(classes, teachers - gap)
            lead[tied:] = rng.integers(0, teachers - gap + 1)
            lead[0] = teachers
            rows.append(lead)
    for concentration in (0.05, 0.2, 1.0, 5.0, 100.0):
        shares = rng.dirichlet(np.full(classes, concentration), 80)
        rows.extend(rng.multinomial(teachers, share) for share in shares)
    return np.array(rows)


@pytest.mark.parametrize("classes", some([3, 10, 101, 4, 20, 50, 75], 3))
@pytest.mark.parametrize(
    ("teachers", "sigma"),
    some([(1000, 40.0), (1000, 1000.0), (20_000, 3000.0), (1000, 100.0), (1000, 300.0)], 2),
)
def test_rough_scores_are_within_a_fifth_of_their_error(monkeypatch, classes, teachers, sigma):
    monkeypatch.setattr(noisy_max, "_FEW_ROWS", 0)
    counts = near_and_far(classes, teachers, np.random.default_rng(classes))
    exact = scores(counts, sigma=sigma, floor=-12.0)
    coarse = {"sigma": sigma, "floor": -12.0, "step": 0.7}
    rough = scores(counts, **coarse)
    assert np.mean(rough != exact) > 0.5
    assert np.abs(rough - exact).max() < noisy_max.ROUGH_ERROR / 5.0
    # Nodes are chosen for rows that lie side by side; each has enough of its own, too.
    for row in range(0, len(counts), 7):
        assert abs(scores(counts[row : row + 1], **coarse)[0] - exact[row]) < (
            noisy_max.ROUGH_ERROR / 5.0
        )


@pytest.mark.parametrize("off", [-1.0, 1.0])
def test_a_score_is_in_the_same_cell_however_far_off_a_rough_one_is(monkeypatch, off):
    counts = np.random.default_rng(5).multinomial(250, [0.3, 0.25, 0.2, 0.15, 0.1], size=9_000)
    exact = scores(counts, sigma=40.0, floor=-9.0)
    known = dict(zip(map(tuple, noisy_max.loser_gaps(counts).tolist()), exact, strict=True))

    def rough(losers, reach, sigma):
        found = np.array([known[tuple(gaps)] for gaps in losers.gaps.tolist()])
        return found + off * noisy_max.ROUGH_ERROR

    monkeypatch.setattr(noisy_max, "_rough", rough)
    for through in exact[:20] + SCORE_ERROR + 1e-10 * off:
        step = abs(through) / math.floor(abs(through) / 0.0025)
        found = scores(counts, sigma=40.0, floor=-9.0, step=step)
        assert np.mean(found != exact) > 0.9
        np.testing.assert_array_equal(*(np.ceil((z + SCORE_ERROR) / step) for z in (found, exact)))


@pytest.mark.parametrize(
    ("classes", "floor", "step"),
    [(102, -9.0, 0.0025), (10, -12.5, 0.0025), (10, -9.0, 0.0009), (10, -9.0, 0.0)],
)
def test_scores_are_rough_only_where_that_is_known_to_be_enough(classes, floor, step):
    counts = np.random.default_rng(6).multinomial(250, [1.0 / classes] * classes, size=2_500)
    np.testing.assert_array_equal(
        scores(counts, sigma=40.0, floor=floor, step=step), scores(counts, sigma=40.0, floor=floor)
    )
    assert np.any(
        scores(counts[:, :10], sigma=40.0, floor=-9.0, step=0.0025)
        != scores(counts[:, :10], sigma=40.0, floor=-9.0)
    )
