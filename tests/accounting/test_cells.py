"""Bounds on cells of scores, for both kinds of noise: against samples within the cells."""

import itertools

import mpmath as mp
import numpy as np
import pytest

from pate_cli.accounting.divergence import excess_moment
from pate_cli.accounting.gaussian import cone_excess, two_classes, worst_vote
from pate_cli.accounting.laplace import score_cost
from pate_cli.accounting.laplace import worst_vote as laplace_worst_vote
from slices import some

# σ, or one vote in units of b, and λ.
GAUSSIAN = [
    (0.3, 1.1), (0.5, 6.0), (1.0, 3.0), (2.0, 20.0), (7.0, 50.0), (40.0, 8.0), (1000.0, 14.0)
]  # fmt: skip
LAPLACE = [
    (1e-6, 2.0), (1e-3, 8.0), (0.02, 50.0), (0.05, 1.05),
    (0.2, 8.0), (1.0, 2.0), (3.0, 20.0), (20.0, 4.0),
]  # fmt: skip
CASES = [
    *(("gaussian", 1.0 / sigma, order) for sigma, order in some(GAUSSIAN, 2)),
    *(("laplace", shift, order) for shift, order in LAPLACE),
]
HALVES = {"gaussian": [1.0, 0.25, 0.05, 0.005], "laplace": [0.5, 0.1, 0.02, 1e-3, 1e-4]}


def moves(noise, axes, shift):
    one = np.sqrt(2.0) if noise == "gaussian" else 2.0
    return np.array([[shift], [-shift]]) if axes == 2 else np.array([[one * shift]])


def outcomes(noise, points):
    """Log probabilities, gradients and, for Gaussian noise, Hessians."""
    if noise == "gaussian":
        return worst_vote._outcomes(points) if len(points) == 2 else two_classes._coin(points[0])
    if len(points) == 2:
        return laplace_worst_vote._outcomes(points)
    return score_cost._coin(points[0])


def bounds(noise, centres, move, half, order):
    told = {"half": half, "order": order}
    before, after = (outcomes(noise, at) for at in (centres, centres + move))
    if noise == "gaussian":
        shift = float(np.linalg.norm(move))
        return cone_excess.cell_bounds(before, after, shift=shift, **told)[1]
    ends = np.minimum(centres, centres + move) - half, np.maximum(centres, centres + move) + half
    smooth = ((ends[0] > 0.0) | (ends[1] < 0.0)).all(axis=0) | (len(centres) == 1)
    shift = float(np.abs(move).sum())
    return score_cost.cell_bounds(before, after, shift=shift, smooth=smooth, **told)[1]


@pytest.mark.parametrize(("noise", "shift", "order"), CASES)
@pytest.mark.parametrize("axes", [1, 2])
def test_no_point_of_a_cell_exceeds_its_bound(noise, axes, shift, order):
    """Random points and corners of random cells, many of them on the kinks of Laplace noise."""
    move = moves(noise, axes, shift)
    for half in HALVES[noise]:
        random = np.random.default_rng(0)
        spread = np.array([half, shift, 3.0, 12.0]) if noise == "laplace" else 4.0 + order * shift
        spread = np.resize(spread, 4)[:, None]
        centres = random.uniform(-spread, spread, size=(axes, 4, 15)).reshape(axes, -1)
        inside = half * np.sign(random.uniform(-1.0, 1.0, size=(axes, 1, 60)))
        inside[:, :, 30:] *= random.uniform(0.0, 1.0, size=(axes, 1, 30))
        points = (centres[:, :, None] + inside).reshape(axes, -1)
        before, after = outcomes(noise, points)[0], outcomes(noise, points + move)[0]
        excess = excess_moment(before, after, order=order).sum(axis=0)
        bound, most = bounds(noise, centres, move, half, order), excess.reshape(60, -1).max(axis=1)
        assert np.all(most <= bound)
    # Small cells of not too rare outcomes are bounded sharply.
    assert np.median(bound / most) < 1.0 + (1e-4 if noise == "gaussian" else 1e-2)


@pytest.mark.parametrize("axes", [1, 2])
@pytest.mark.parametrize("half", [0.003, 0.05, 0.5])
def test_what_is_lost_bends_no_more_than_allowed_on_a_ball(axes, half):
    random = np.random.default_rng(7)
    move, centres = moves("gaussian", axes, 0.1), random.uniform(-5.0, 6.0, size=(axes, 400))
    shift = float(np.linalg.norm(move))
    before, after = outcomes("gaussian", centres), outcomes("gaussian", centres + move)
    ball = cone_excess._ball(before, after, shift=shift, half=half, order=3.0)
    most = np.zeros(2)
    for corner in itertools.product((-1.0, 0.0, 1.0), repeat=axes):
        points = centres + half * np.array(corner)[:, None]
        here, there = outcomes("gaussian", points), outcomes("gaussian", points + move)
        bend = np.moveaxis(here.hessians - there.hessians, 3, 1)
        bend = np.abs(np.linalg.eigvalsh(bend)).max(axis=-1)
        slope = np.linalg.norm(here.gradients - there.gradients, axis=1)
        assert np.all(bend <= ball.bend)
        assert np.all(slope <= ball.slope)
        most = np.maximum(most, [(bend / ball.bend).max(), (slope / ball.slope).max()])
    assert np.all(most > (0.05 if half > 0.1 else 0.4))  # these bounds say something


def test_derivatives_are_those_of_the_logs():
    points = np.random.default_rng(6).uniform(-7.0, 9.0, size=(2, 400))
    here, step = worst_vote._outcomes(points), 1e-5
    for axis in range(2):
        move = np.zeros((2, 1))
        move[axis] = step
        up, down = worst_vote._outcomes(points + move), worst_vote._outcomes(points - move)
        slope = (up.logs - down.logs) / (2 * step)
        bend = (up.gradients - down.gradients) / (2 * step)
        np.testing.assert_allclose(here.gradients[:, axis], slope, rtol=1e-7, atol=1e-8)
        np.testing.assert_allclose(here.hessians[:, :, axis], bend, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("axes", [1, 2])
def test_partial_derivatives_are_right_and_bounded(axes):
    points, step = np.random.default_rng(2).uniform(-6.0, 8.0, size=(axes, 4000)), 1e-4
    points = points[:, (np.abs(points) > 1e-2).all(axis=0)]
    slopes = outcomes("laplace", points)[1]
    assert np.abs(slopes).max() <= 1.0 + 1e-12
    for axis in range(axes):
        move = np.zeros((axes, 1))
        move[axis] = step
        up, down = outcomes("laplace", points + move), outcomes("laplace", points - move)
        np.testing.assert_allclose(slopes[:, axis], (up[0] - down[0]) / (2 * step), atol=1e-7)
        second = (up[1] - down[1]) / (2 * step)
        assert np.abs(second).max() <= 2.0
        assert second[:, axis].max() <= 1e-9
        third = (up[1] - 2.0 * slopes + down[1]) / step**2
        assert np.abs(third).max() <= 8.0


@pytest.mark.parametrize(
    ("x", "y"),
    some([(0.0, 0.0), (2.0, -3.0), (-40.0, 25.0), (-36.4, 55.8), (-30.0, -45.0), (29.6, -34.4)], 2),
)
def test_log_chances_are_right_to_the_allowance(x, y):
    found = worst_vote._outcomes(np.array([[x], [y]])).logs[:, 0]
    with mp.workdps(40):

        def win(a, b):
            centre = max(a, (a + b) / 2, mp.mpf(0))
            slope = a - centre + mp.npdf(centre - b) / mp.ncdf(centre - b)
            reach = mp.sqrt(slope**2 + 160)
            top = mp.npdf(centre - a) * mp.ncdf(centre - b)
            ends = mp.linspace(max(mp.mpf(0), centre + slope - reach), centre + slope + reach, 13)
            part = mp.quad(lambda t: mp.npdf(t - a) * mp.ncdf(t - b) / top, ends)
            return mp.log(part) + mp.log(top)

        a, b = mp.mpf(x), mp.mpf(y)
        true = [win(a, b), win(b, a), mp.log(mp.ncdf(-a)) + mp.log(mp.ncdf(-b))]
        errors = [abs(float(mp.mpf(float(f)) - t)) for f, t in zip(found, true, strict=True)]
    assert max(errors) < 0.1 * cone_excess.LOG_ERROR
