"""What public guesses are worth on the digits: they help."""

from __future__ import annotations

import pytest


def test_guesses_make_more_labels_right(script):
    prior = script("prior")
    alone, guessed = (prior.right(12.0, weight, seeds=5) for weight in (0, 20))
    # Five runs of a hundred labels: two points either way.
    assert alone == pytest.approx(0.834, abs=0.06)
    assert guessed == pytest.approx(0.908, abs=0.06)
    assert guessed > alone
