"""Costs and sensitivities on whole graphs, as the contract has them, at far more settings.

Little noise and much of it, low orders and high ones, thresholds out of reach on either side.
"""

import numpy as np
import pytest

from divergences import renyi
from graphs import Graph
from mechanisms.test_contract import CASES as CONTRACT
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.mechanisms.gnmax import GNMax
from pate_cli.mechanisms.lnmax import LNMax
from runs import single_curves

CASES = [
    (ConfidentGNMax(8, 4, threshold=5.0, sigma1=2.0, sigma2=1.5), 8.0),
    (ConfidentGNMax(6, 4, threshold=4.2, sigma1=1.5, sigma2=4.0), 3.0),
    (ConfidentGNMax(10, 3, threshold=6.0, sigma1=3.0, sigma2=2.0), 14.0),
    (ConfidentGNMax(10, 2, threshold=8.0, sigma1=6.0, sigma2=1.6), 5.0),
    (ConfidentGNMax(8, 3, threshold=4.0, sigma1=0.9, sigma2=0.8), 3.0),
    (ConfidentGNMax(8, 3, threshold=8.0, sigma1=1.0, sigma2=8.0), 2.0),
    (ConfidentGNMax(5, 4, threshold=-3.0, sigma1=60.0, sigma2=1.0), 1.5),
    (ConfidentGNMax(7, 3, threshold=20.0, sigma1=3.0, sigma2=5.0), 40.0),
    (GNMax(8, 4, sigma2=1.5), 8.0),
    (GNMax(10, 2, sigma2=40.0), 50.0),
    (GNMax(10, 3, sigma2=3.0), 2.5),
    (GNMax(8, 3, sigma2=0.6), 3.0),
    (LNMax(8, 4, laplace_scale=1.5), 2.0),
    (LNMax(10, 2, laplace_scale=0.5), 3.0),
    (LNMax(10, 3, laplace_scale=0.6), 2.5),
    (LNMax(20, 3, laplace_scale=1.0), 14.0),
]


def name(value):
    return f"{value.name}-{value.teachers}x{value.classes}" if hasattr(value, "name") else None


@pytest.mark.parametrize(("mechanism", "order"), CASES, ids=name)
def test_costs_and_sensitivities_cover_every_pair_of_neighbours(mechanism, order):
    """D_λ either way, |Δ cost| within LS_0, and LS_d(D) within LS_{d+1}(D')."""
    graph, table = Graph.of(mechanism.teachers, mechanism.classes), mechanism.cost_table(order)
    cells = mechanism.cells(mechanism.score(graph.histograms), table.grid)
    cost = table.cost(cells)
    curves, ceiling = single_curves(table, cells, mechanism.teachers + 6)
    laws = CONTRACT[mechanism.name].law(mechanism, graph.histograms)
    logs = np.log(laws[:, laws.max(axis=0) > 0.0])  # an argmax alone never refuses
    here, there = graph.edges.T
    exact = renyi(logs[here], logs[there], order)
    assert exact.max() > 1e-4  # the ensemble is not trivial
    bound = np.minimum(cost[here], cost[there])  # both directions, from either side
    np.testing.assert_array_less(exact, bound * (1.0 + 1e-9) + 1e-11)
    assert np.all(np.abs(cost[here] - cost[there]) <= curves[here, 0])
    assert np.all(curves[here, :-1] <= curves[there, 1:] * (1.0 + 1e-9) + 1e-300)
    assert curves.max() <= ceiling * (1.0 + 1e-12)
