"""What shared clocks are worth on made-up models: more teachers agree."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom


@pytest.fixture
def small(script):
    tokens = script("tokens")
    return tokens, tokens.point(0.5, asks=40, teachers=64, vocabulary=500)


def test_more_teachers_agree_and_their_token_is_released(small):
    _, found = small
    assert found.apart == pytest.approx(0.26, abs=0.03)
    # The first of 500 tokens by Zipf's law has 15% of a teacher's chances.
    assert found.alone.share < 0.3
    assert found.shared.share > (1.0 - found.apart) / (1.0 + found.apart)
    assert found.shared.kept > 0.8 > 0.5 > found.alone.kept


def test_tokens_drawn_alone_have_their_probabilities(script):
    tokens = script("tokens")
    law = np.array([0.5, 0.0, 0.3, 0.2])
    drawn = tokens.drawn_alone(np.random.default_rng(1), np.tile(law, (20_000, 1)))
    for seen, chance in zip(np.bincount(drawn, minlength=4), law, strict=True):
        assert binom.cdf(seen, 20_000, chance) > 1e-8 < binom.sf(seen - 1, 20_000, chance)
