"""Bounds on cells of scores: against samples within them, and against bounds made too small."""

import itertools

import mpmath as mp
import numpy as np
import pytest

from pate_cli.accounting.divergence import excess_moment
from pate_cli.accounting.gaussian import cone_excess
from pate_cli.accounting.gaussian.cone_excess import cell_bounds
from pate_cli.accounting.gaussian.two_classes import _coin
from pate_cli.accounting.gaussian.worst_vote import _outcomes
from slices import some

CASES = [(0.3, 1.1), (0.5, 6.0), (1.0, 3.0), (2.0, 20.0), (7.0, 50.0), (40.0, 8.0), (1000.0, 14.0)]
HALVES = [1.0, 0.25, 0.05, 0.005]


def moves(axes, s):
    return np.array([[s], [-s]]) if axes == 2 else np.array([[np.sqrt(2.0) * s]])


def outcomes(centres):
    return _outcomes(centres) if len(centres) == 2 else _coin(centres[0])


def excess(points, move, order):
    before, after = outcomes(points), outcomes(points + move)
    return excess_moment(before.logs, after.logs, order=order).sum(axis=0)


def cells(axes, sigma, order, half):
    """Bounds of random cells, and the largest f at random points and corners of each."""
    random = np.random.default_rng(0)
    move = moves(axes, 1.0 / sigma)
    centres = random.uniform(-4.0 - order / sigma, 4.0 + order / sigma, size=(axes, 40))
    inside = half * np.sign(random.uniform(-1.0, 1.0, size=(axes, 1, 60)))
    inside[:, :, 30:] *= random.uniform(0.0, 1.0, size=(axes, 1, 30))
    points = (centres[:, :, None] + inside).reshape(axes, -1)
    _, bound = cell_bounds(
        outcomes(centres),
        outcomes(centres + move),
        shift=float(np.linalg.norm(move)),
        half=half,
        order=order,
    )
    return bound, excess(points, move, order).reshape(40, 60).max(axis=1)


@pytest.mark.parametrize(("sigma", "order"), some(CASES, 2))
@pytest.mark.parametrize("axes", [1, 2])
def test_no_point_of_a_cell_exceeds_its_bound(axes, sigma, order):
    for half in HALVES:
        bound, most = cells(axes, sigma, order, half)
        assert np.all(most <= bound)
    # Small cells of not too rare outcomes are bounded sharply.
    assert np.median(bound / most) < 1.0 + 1e-4


@pytest.mark.parametrize("axes", [1, 2])
@pytest.mark.parametrize("half", [0.003, 0.05, 0.5])
def test_what_is_lost_bends_no_more_than_allowed_on_a_ball(axes, half):
    random = np.random.default_rng(7)
    move, centres = moves(axes, 0.1), random.uniform(-5.0, 6.0, size=(axes, 400))
    shift = float(np.linalg.norm(move))
    before, after = outcomes(centres), outcomes(centres + move)
    ball = cone_excess._ball(before, after, shift=shift, half=half, order=3.0)
    most = np.zeros(2)
    for corner in itertools.product((-1.0, 0.0, 1.0), repeat=axes):
        points = centres + half * np.array(corner)[:, None]
        here, there = outcomes(points), outcomes(points + move)
        bend = np.moveaxis(here.hessians - there.hessians, 3, 1)
        bend = np.abs(np.linalg.eigvalsh(bend)).max(axis=-1)
        slope = np.linalg.norm(here.gradients - there.gradients, axis=1)
        assert np.all(bend <= ball.bend)
        assert np.all(slope <= ball.slope)
        most = np.maximum(most, [(bend / ball.bend).max(), (slope / ball.slope).max()])
    assert np.all(most > (0.05 if half > 0.1 else 0.4))  # these bounds say something


def test_derivatives_are_those_of_the_logs():
    points = np.random.default_rng(6).uniform(-7.0, 9.0, size=(2, 400))
    here, step = _outcomes(points), 1e-5
    for axis in range(2):
        move = np.zeros((2, 1))
        move[axis] = step
        up, down = _outcomes(points + move), _outcomes(points - move)
        slope = (up.logs - down.logs) / (2 * step)
        bend = (up.gradients - down.gradients) / (2 * step)
        np.testing.assert_allclose(here.gradients[:, axis], slope, rtol=1e-7, atol=1e-8)
        np.testing.assert_allclose(here.hessians[:, :, axis], bend, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    ("x", "y"),
    some([(0.0, 0.0), (2.0, -3.0), (-40.0, 25.0), (-36.4, 55.8), (-30.0, -45.0), (29.6, -34.4)], 2),
)
def test_log_chances_are_right_to_the_allowance(x, y):
    found = _outcomes(np.array([[x], [y]])).logs[:, 0]
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
