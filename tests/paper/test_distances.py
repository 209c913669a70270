"""Local sensitivities against their pseudocode, every small histogram, and every score."""

import itertools

import numpy as np
import pytest

from pate_cli.paper.costs import gnmax_log_q, gnmax_rdp, threshold_local_sensitivity, threshold_rdp
from pate_cli.paper.release import smooth_sensitivity
from pate_cli.paper.sensitivity import Plateau, check_conditions, gnmax_local_sensitivity
from slices import some


def curve_of(counts, *, weights=None, **where):
    """Local sensitivity by distance; all queries count alike unless there are weights."""
    weights = np.ones(len(counts)) if weights is None else weights
    return gnmax_local_sensitivity(np.array(counts), weights=weights, **where)


def every_curve(histograms, **where):
    """The curve of every query by itself, [queries, teachers]; permuted rows have one."""
    rows, place = np.unique(np.sort(histograms, axis=1), axis=0, return_inverse=True)
    curves = [curve_of([row], **where) for row in rows]
    return np.array(curves)[place.reshape(-1)]


def all_histograms(teachers, classes):
    for cuts in itertools.combinations(range(teachers + classes - 1), classes - 1):
        edges = (-1, *cuts, teachers + classes - 1)
        yield tuple(b - a - 1 for a, b in itertools.pairwise(edges))


@pytest.mark.parametrize(
    ("teachers", "classes", "sigma"),
    some([(12, 3, 2.0), (16, 3, 2.5), (11, 4, 2.0), (30, 2, 5.0)], 2),
)
def test_theorem_20_on_every_histogram(teachers, classes, sigma):
    """Algorithm 4 is max LS̃ over the ball; never below it, whatever happens at its edge."""
    order = 2.0
    assert check_conditions(sigma=sigma, classes=classes, order=order).holds
    shape = Plateau(sigma, classes, order)
    histograms = np.array(list(all_histograms(teachers, classes)))
    height = shape.local_sensitivity(gnmax_log_q(histograms, sigma=sigma))
    distance = np.abs(histograms[:, np.newaxis] - histograms).sum(axis=2) // 2
    within = [np.where(distance <= d, height, 0.0).max(axis=1) for d in range(teachers)]
    ball = np.stack(within, axis=1)
    # Not vacuous: histograms on both sides of the plateau, some with a small LS̃ of their own.
    assert len(np.unique(height.round(12))) > 4
    where = {"sigma": sigma, "order": order, "teachers": teachers}
    curves = every_curve(histograms, **where)
    assert (curves >= ball * (1 - 1e-12)).all()
    # Sharp too, until the losing votes run out and the curve jumps to the plateau.
    losing = histograms.sum(axis=1) - histograms.max(axis=1)
    before = np.arange(teachers) <= losing[:, np.newaxis]
    assert (curves <= ball * (1 + 1e-12))[before].mean() > 0.7
    # And it is smooth: neighbours' bounds are within e^β of each other.
    neighbours = np.argwhere(distance == 1)
    for beta in (0.05, 0.5):
        smooth = (curves * np.exp(-beta * np.arange(teachers))).max(axis=1)
        ratio = smooth[neighbours[:, 0]] / smooth[neighbours[:, 1]]
        assert ratio.max() <= np.exp(beta) * (1 + 1e-9)


@pytest.mark.parametrize("sigma", [2.0, 2.5])
def test_local_sensitivity_covers_every_neighbour(sigma):
    teachers, classes, order = 12, 3, 2.0
    shape = Plateau(sigma, classes, order)
    histograms = np.array(list(all_histograms(teachers, classes)))
    log_q = gnmax_log_q(histograms, sigma=sigma)
    cost = gnmax_rdp(histograms, sigma, order)[0]
    near = np.abs(histograms[:, np.newaxis] - histograms).sum(axis=2) == 2
    change = np.where(near, np.abs(cost[:, np.newaxis] - cost), 0.0).max(axis=1)
    assert (shape.local_sensitivity(log_q) >= change * (1 - 1e-12)).all()
    pairs = np.argwhere(near)
    above = shape.above(log_q)
    below = shape.below(log_q)
    assert (log_q[pairs[:, 1]] <= above[pairs[:, 0]] + 1e-12).all()
    assert (log_q[pairs[:, 1]] >= below[pairs[:, 0]] - 1e-12).all()


def test_weights_and_repeated_rows_add_up():
    rows = np.array([[30, 10, 2], [14, 14, 14], [2, 30, 10], [41, 1, 0], [25, 9, 8]])
    where = {"sigma": 12.0, "order": 3.0, "teachers": 42}
    single = np.array([curve_of([row], **where) for row in rows])
    np.testing.assert_array_equal(single[0], single[2])
    weights = np.array([0.5, 1.0, 0.25, 0.0, 2.0])
    found = curve_of(rows, weights=weights, **where)
    np.testing.assert_allclose(found, weights @ single, rtol=1e-12)
    empty = curve_of(np.zeros((0, 3), dtype=int), **where)
    np.testing.assert_array_equal(empty, np.zeros(42))


def test_theorem_24_needs_the_running_maximum_and_beta_smoothness():
    curve = np.array([1.0, 3.0, 3.0])
    assert smooth_sensitivity(curve, beta=0.1) == pytest.approx(3 * np.exp(-0.1))
    assert smooth_sensitivity(curve, beta=5.0) == 1.0


# The check's own sensitivity, against brute force over scores.


@pytest.mark.parametrize("score", [11.3, -2.25, 24.0001, 8.5])
def test_real_scores_cover_every_real_neighbour_closely(score):
    check = {"threshold": 14.2, "sigma": 3.0}

    def change(scores, shift):
        one, other = (threshold_rdp(x, **check, orders=5.0) for x in (scores, scores + shift))
        return np.abs(one - other).max()

    found = threshold_local_sensitivity([score], teachers=300, **check, order=5.0)
    for d in (0, 1, 2, 5, 11, 29):
        ball = score + np.arange(-d, d + 0.005, 0.01)
        largest = max(change(ball, shift) for shift in (-1.0, -0.7, -0.3, 0.4, 0.8, 1.0))
        assert found[d] >= largest * (1 - 1e-12)
    sharp = change(np.arange(0, 40, 0.001), 1.0)
    assert sharp <= found[-1] <= 1.06 * sharp
