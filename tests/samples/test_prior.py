"""What public guesses are worth on the digits: they help, and the picture has every curve."""

from __future__ import annotations

import numpy as np
import pytest


def test_guesses_make_more_labels_right(script):
    prior = script("prior")
    alone, guessed = (prior.right(12.0, weight, seeds=5) for weight in (0, 20))
    # Five runs of a hundred labels: two points either way.
    assert alone == pytest.approx(0.834, abs=0.06)
    assert guessed == pytest.approx(0.908, abs=0.06)
    assert guessed > alone


def test_guesses_count_as_the_default_does(script):
    prior = script("prior")
    given = prior.pate.quote(prior.VOTES, "gnmax", **prior.asked(12.0, 20))
    without = {**prior.asked(12.0, 20), "prior_weight": None}
    assert given.to_dict() == prior.pate.quote(prior.VOTES, "gnmax", **without).to_dict()


def test_the_picture(script):
    pytest.importorskip("matplotlib")
    prior = script("prior")
    points = [prior.Point(sigma=s, epsilon=e, right=r) for s, e, r in [(8, 4, 0.9), (16, 2, 0.8)]]
    axes = prior.picture(dict.fromkeys(prior.WEIGHTS, points))
    assert "secret" not in axes.get_title(loc="left")
    *curves, line = axes.get_lines()
    for curve in curves:
        np.testing.assert_allclose(curve.get_xydata(), [(4, 90), (2, 80)])
    assert set(line.get_ydata()) == {100 * prior.alone()}
