"""Tallies, nodes of a table, and costs within a distance against plain loops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pate_cli.accounting import cost_table
from pate_cli.accounting.cost_table import ScoreTable, Tally, TallySum, costs_within
from pate_cli.accounting.score_grid import ScoreGrid
from pate_cli.mechanisms.gnmax import GNMax


@pytest.mark.parametrize("columns", [1, 2, 61, 64, 65, 200, 1_000])
@pytest.mark.parametrize("entries", [1, 2, 1_000])
def test_cells_are_counted_however_many_columns_there_are(columns, entries):
    random = np.random.default_rng(columns)
    cells = np.full((50, columns), 7, dtype=np.int64)
    # A few that differ: keys fit in a number for some of these shapes, and do not for others.
    cells[:, -4:] -= random.integers(0, entries, size=cells[:, -4:].shape)
    tally = Tally.of(cells)
    distinct, weights = np.unique(cells, axis=0, return_counts=True)
    np.testing.assert_array_equal(tally.cells, distinct)
    np.testing.assert_array_equal(tally.weights, weights)
    again, places = Tally.with_places(cells)
    np.testing.assert_array_equal(again.cells[places], cells)
    np.testing.assert_array_equal((tally + again).weights, 2 * weights)


@given(st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), max_size=9), max_size=9))
def test_sums_of_tallies_do_not_depend_on_how_queries_were_divided(parts):
    total, seen, added = TallySum(), [], Tally.of(np.array([[9, 9], [9, 9]]), np.array([2**40, 3]))
    for part in parts:
        one = Tally.of(np.array(part, dtype=np.int64).reshape(-1, 2))
        total.add(one)
        added = one + added
        seen += part
        if len(part) % 3 == 0:  # looked at between, too
            assert total.total.queries == len(seen)
    wanted = {cell: seen.count(cell) for cell in sorted(seen)}
    for found, cells in ((total.total, wanted), (added, wanted | {(9, 9): 2**40 + 3})):
        assert list(map(tuple, found.cells.tolist())) == list(cells)
        assert found.weights.tolist() == list(cells.values())


@pytest.mark.parametrize("height", [-9.0, -0.3, 0.0, 0.7, 9.0])
def test_nodes_past_the_cap_cost_it_unseen(height):
    grid = ScoreGrid(step=0.01, stride=4, block=1, first=-400, size=800)
    seen = []

    def bound(scores):
        seen.append(scores.size)
        wobble = 1e-3 * np.sin(1e5 * scores)  # dips where the cost rises by less
        return np.minimum(np.exp(scores) + wobble, np.exp(height))

    whole = ScoreTable(10.0, grid, bound).values
    assert sum(seen) == grid.size
    np.testing.assert_array_equal(whole, np.maximum.accumulate(bound(grid.nodes())))
    seen.clear()
    capped = ScoreTable(10.0, grid, bound, cap=lambda: float(np.exp(height))).values
    np.testing.assert_array_equal(capped, whole)
    assert sum(seen) < grid.size or height > 0.0


@given(
    rows=st.integers(1, 9),
    size=st.integers(1, 12),
    stride=st.integers(1, 3),
    seed=st.integers(0, 10_000),
    chunk=st.sampled_from([1, 40, 10**6]),
    queries=st.sampled_from([7, 0]),
)
def test_plain_loops(rows, size, stride, seed, chunk, queries):
    random = np.random.default_rng(seed)
    cost = np.sort(random.random((rows, size)), axis=1)
    cells = np.column_stack([random.integers(0, each, queries) for each in (rows, size)])
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
    assert found.shape == (distances.size, queries)
    for d, line in zip(distances, found, strict=True):
        for (v, k), value in zip(cells, line, strict=True):
            column = min(k + d * stride, size - 1)
            assert value == cost[max(v - d, 0) : v + d + 1, column].max()


def test_queries_add_up(monkeypatch):
    """Cost, sensitivity, its ceiling and the profile are sums over queries, also equal ones."""
    mechanism, distances = GNMax(20, 3, sigma2=4.0), np.arange(7)
    table = mechanism.cost_table(5.0)
    counts = np.array([[20, 0, 0], [9, 8, 3], [9, 8, 3], [9, 8, 3], [12, 5, 3], [7, 7, 6]])
    each = [Tally.of(cell[None]) for cell in mechanism.cells_of(counts, table.grid)]
    whole = Tally.total(each)
    assert (whole.queries, len(whole.cells)) == (6, 4)
    alone = [table.price(one, distances) for one in each]
    found, twice = table.price(whole, distances), Tally.total([whole, whole])
    doubled = [found + found, found.scaled(2.0), table.price(twice, distances)]
    for name in ("rdp", "curve", "ceiling"):
        wanted = sum(getattr(one, name) for one in alone)
        np.testing.assert_allclose(getattr(found, name), wanted, rtol=1e-9)
        for price in doubled:
            np.testing.assert_allclose(getattr(price, name), 2.0 * wanted, rtol=1e-9)
    lines = sum(table.within(one.cells, distances)[:, 0] for one in each)
    monkeypatch.setattr(cost_table, "_MOST_COSTS", 2 * distances.size)
    np.testing.assert_allclose(table.profile(whole, distances), lines, rtol=1e-12)
