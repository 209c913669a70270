"""The check's local sensitivity against brute force over scores."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pate_cli.paper.threshold import threshold_local_sensitivity, threshold_rdp
from slices import tries


def cost(scores, settings_):
    return threshold_rdp(
        scores,
        threshold=settings_["threshold"],
        sigma=settings_["sigma"],
        orders=settings_["order"],
    )[0]


@settings(max_examples=tries(40))
@given(
    scores=st.lists(st.integers(0, 40), min_size=1, max_size=5),
    threshold=st.sampled_from([-3.0, 12.5, 20.0, 31.7, 55.0]),
    sigma=st.sampled_from([1.5, 4.0, 9.0]),
    order=st.sampled_from([1.5, 4.0, 12.0]),
)
def test_whole_scores_by_brute_force(scores, threshold, sigma, order):
    teachers = 40
    where = {"threshold": threshold, "sigma": sigma, "order": order}
    f = cost(np.arange(teachers + 1.0), where)
    expected = np.zeros(teachers)
    for v in scores:
        for d in range(teachers):
            low, high = max(v - d, 0), min(v + d, teachers)
            expected[d] += max(
                abs(f[u] - f[w])
                for u in range(low, high + 1)
                for w in (u - 1, u + 1)
                if 0 <= w <= teachers
            )
    found = threshold_local_sensitivity(scores, teachers=teachers, **where)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-18)


@pytest.mark.parametrize("score", [11.3, -2.25, 24.0001, 8.5])
def test_real_scores_cover_every_real_neighbour_closely(score):
    teachers = 30
    where = {"threshold": 14.2, "sigma": 3.0, "order": 5.0}
    found = threshold_local_sensitivity([score], teachers=teachers, **where)
    fine = 0.01
    for d in (0, 1, 2, 5, 11, 29):
        centre = score + np.arange(-d, d + fine / 2, fine)
        change = max(
            np.abs(cost(centre, where) - cost(centre + shift, where)).max()
            for shift in (-1.0, -0.7, -0.3, 0.4, 0.8, 1.0)
        )
        assert found[d] >= change * (1 - 1e-12)
    top = threshold_local_sensitivity([score], teachers=300, **where)[-1]
    grid = np.arange(0, 40, 0.001)
    sharp = np.abs(cost(grid, where) - cost(grid + 1.0, where)).max()
    assert sharp <= top <= 1.06 * sharp
