"""Costs within a distance against plain loops, on lattices with ends and odd shapes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pate_cli.accounting import cost_table
from pate_cli.accounting.cost_table import costs_within
from pate_cli.accounting.score_grid import ScoreGrid


@given(
    rows=st.integers(1, 9),
    size=st.integers(1, 12),
    stride=st.integers(1, 3),
    seed=st.integers(0, 10_000),
    chunk=st.sampled_from([1, 40, 10**6]),
)
def test_plain_loops(rows: int, size: int, stride: int, seed: int, chunk: int) -> None:
    random = np.random.default_rng(seed)
    cost = np.sort(random.random((rows, size)), axis=1)
    cells = np.column_stack([random.integers(0, rows, 7), random.integers(0, size, 7)])
    grid = ScoreGrid(step=1.0, stride=stride, block=1, first=0, size=size)
    distances = np.unique(random.integers(0, 14, 5))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cost_table, "_CHUNK_CELLS", chunk)
        found = costs_within(
            lambda a, b, columns: cost[a:b, columns],
            rows=rows,
            grid=grid,
            cells=cells,
            distances=distances,
        )
    for d, line in zip(distances, found, strict=True):
        for (v, k), value in zip(cells, line, strict=True):
            column = min(k + d * stride, size - 1)
            assert value == cost[max(v - d, 0) : v + d + 1, column].max()


def test_nothing_asked() -> None:
    grid = ScoreGrid(step=1.0, stride=1, block=1, first=0, size=3)
    nothing = np.zeros((0, 2), dtype=np.int64)
    found = costs_within(
        lambda a, b, columns: np.zeros((b - a, columns.size)),
        rows=4,
        grid=grid,
        cells=nothing,
        distances=np.arange(3),
    )
    assert found.shape == (3, 0)
