"""Branch and bound on functions whose supremum is known."""

from __future__ import annotations

import numpy as np
import pytest

from pate_cli.accounting.divergence import certified_supremum

ORDERS = np.array([2.0, 5.0])


def hills(steepness):
    """Two hills of different height per order, bounded by a Lipschitz constant in the sup norm."""
    centres = np.array([[0.312, -1.7], [2.05, 0.4]])
    heights = np.array([[1.0, 0.9], [0.3, 0.4]])

    def excess(points):
        far = np.abs(points[:, None, :] - centres.T[:, :, None]).max(axis=0)
        return np.max(heights[:, :, None] * np.exp(-far)[None], axis=1)

    def bounds(points, half, wanted):
        values = excess(points)
        return values, np.where(wanted, values * np.exp(steepness * half), np.nan)

    return bounds, np.log1p(heights.max(axis=1)) / (ORDERS - 1.0)


def search(bounds, **changes):
    axis = np.arange(-3.5, 4.0)
    x, y = np.meshgrid(axis, axis)
    centres = np.stack([x.ravel(), y.ravel()])
    arguments = {
        "centres": centres,
        "half": 0.5,
        "wanted": np.ones((2, centres.shape[1]), dtype=bool),
        "orders": ORDERS,
        "floor": np.zeros(2),
        "slack": 1e-4,
        "most_cells": 20_000,
    } | changes
    return certified_supremum(bounds, **arguments)


def test_the_supremum_is_enclosed():
    bounds, true = hills(1.0)
    found = search(bounds)
    assert np.all(found >= true)
    assert np.all(found <= true * (1.0 + 1.01e-4))


@pytest.mark.parametrize("budget", [1, 100, 300, 1000])
def test_when_cells_run_out_the_bound_is_loose_and_still_a_bound(budget):
    bounds, true = hills(1.0)
    found = search(bounds, most_cells=budget)
    assert np.all(found >= true)
    assert np.all(found <= 2.0 * true)
    assert budget > 100 or np.any(found > 1.01 * true)


def test_only_wanted_cells_count_and_the_floor_is_kept():
    bounds, true = hills(1.0)
    none = np.zeros((2, 64), dtype=bool)
    np.testing.assert_array_equal(search(bounds, wanted=none), np.zeros(2))
    high = search(bounds, floor=np.array([0.0, 7.0]))
    assert high[1] == pytest.approx(7.0 * (1.0 + 1e-4))
    assert true[0] <= high[0] <= true[0] * (1.0 + 1.01e-4)


def test_a_cell_without_a_bound_is_never_dropped():
    bounds, true = hills(1.0)

    def sometimes(points, half, wanted):
        values, uppers = bounds(points, half, wanted)
        return values, np.where(half > 0.1, np.nan, uppers)

    found = search(sometimes, most_cells=50_000)
    assert np.all((found >= true) & (found <= true * (1.0 + 1.01e-4)))
    assert np.all(np.isinf(search(sometimes, most_cells=100)))
