"""Every histogram of small ensembles, every neighbour: cost, local and smooth sensitivity."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr

from divergences import renyi
from graphs import Graph
from laws import answers_law, gaussian_argmax_law, laplace_argmax_law
from pate_cli.accounting.cost_table import ScoreTable
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.mechanisms.gnmax import GNMax
from pate_cli.mechanisms.lnmax import LNMax
from runs import single_curves

# (mechanism, λ, β). The first is the one at which a maximum that stops at τ is not smooth.
CONFIDENT = [
    (ConfidentGNMax(8, 4, threshold=5.0, sigma1=2.0, sigma2=1.5), 8.0, 0.02),
    (ConfidentGNMax(6, 2, threshold=4.2, sigma1=1.5, sigma2=4.0), 3.0, 0.1),
    (ConfidentGNMax(6, 4, threshold=4.2, sigma1=1.5, sigma2=4.0), 3.0, 0.1),
    (ConfidentGNMax(10, 3, threshold=6.0, sigma1=3.0, sigma2=2.0), 14.0, 0.02),
    (ConfidentGNMax(10, 2, threshold=8.0, sigma1=6.0, sigma2=1.6), 5.0, 0.05),
    (ConfidentGNMax(8, 3, threshold=4.0, sigma1=0.9, sigma2=0.8), 3.0, 0.02),
    (ConfidentGNMax(8, 3, threshold=8.0, sigma1=1.0, sigma2=8.0), 2.0, 0.2),
    (ConfidentGNMax(6, 4, threshold=4.0, sigma1=3.0, sigma2=20.0), 8.0, 0.02),
    (ConfidentGNMax(5, 4, threshold=-3.0, sigma1=60.0, sigma2=1.0), 1.5, 0.3),
    (ConfidentGNMax(7, 3, threshold=20.0, sigma1=3.0, sigma2=5.0), 40.0, 0.005),
]
ARGMAX = [
    (GNMax(8, 4, sigma2=1.5), 8.0, 0.02),
    (GNMax(10, 2, sigma2=3.0), 5.0, 0.05),
    (GNMax(10, 2, sigma2=40.0), 50.0, 0.004),
    (GNMax(10, 3, sigma2=3.0), 2.5, 0.1),
    (GNMax(6, 4, sigma2=20.0), 8.0, 0.02),
    (GNMax(8, 3, sigma2=0.6), 3.0, 0.08),
]
LAPLACE = [
    (LNMax(8, 4, laplace_scale=1.5), 2.0, 0.02),
    (LNMax(10, 2, laplace_scale=3.0), 5.0, 0.05),
    (LNMax(10, 2, laplace_scale=0.5), 3.0, 0.1),
    (LNMax(10, 3, laplace_scale=0.6), 2.5, 0.1),
    (LNMax(6, 4, laplace_scale=0.8), 3.0, 0.02),
    (LNMax(20, 3, laplace_scale=1.0), 14.0, 0.03),
]
ALL = CONFIDENT + ARGMAX + LAPLACE


def name(case):
    return f"{case[0].name}-{case[0].teachers}x{case[0].classes}-order{case[1]:g}"


@dataclass(frozen=True)
class Ensemble:
    """A mechanism on all histograms of its teachers, with a Rényi order and a smoothness."""

    mechanism: Any
    order: float
    beta: float

    @cached_property
    def graph(self):
        return Graph.of(self.mechanism.teachers, self.mechanism.classes)

    @cached_property
    def scores(self):
        return self.mechanism.score(self.graph.histograms)

    @cached_property
    def table(self):
        return self.mechanism.cost_table(self.order)

    @cached_property
    def cells(self):
        return self.mechanism.cells(self.scores, self.table.grid)

    @cached_property
    def lattice_cells(self):
        return self.table.on_lattice(self.cells)

    @cached_property
    def cost(self):
        return self.table.cost(self.cells)

    @cached_property
    def curves_and_ceiling(self):
        return single_curves(self.table, self.cells, self.mechanism.teachers + 6)

    @property
    def curves(self):
        return self.curves_and_ceiling[0]

    @property
    def ceiling(self):
        return self.curves_and_ceiling[1]

    @cached_property
    def largest_changes(self):
        """max over neighbours of |Δ cost| per histogram."""
        here, there = self.graph.edges.T
        changes = np.zeros(len(self.cost))
        np.maximum.at(changes, here, np.abs(self.cost[here] - self.cost[there]))
        return changes


@pytest.fixture(scope="module", params=ALL, ids=name)
def case(request):
    return Ensemble(*request.param)


def test_one_vote_after_d_others_changes_it_by_at_most_the_sensitivity_at_d(case):
    changes, distances = case.largest_changes, case.graph.distances
    for d in range(case.mechanism.teachers + 1):
        worst = np.where(distances <= d, changes[None, :], 0.0).max(axis=1)
        assert np.all(worst <= case.curves[:, d])
        assert case.curves[:, d].max() <= case.ceiling * (1.0 + 1e-12)


def law_of(mechanism, counts):
    answered = np.ones(len(counts))
    if mechanism.name == "lnmax":
        chances = laplace_argmax_law(counts, mechanism.laplace_scale)
    else:
        chances = gaussian_argmax_law(counts, mechanism.sigma2)
    if mechanism.name == "confident":
        answered = ndtr((counts.max(axis=1) - mechanism.threshold) / mechanism.sigma1)
    return answers_law(answered, np.exp(chances))


def test_the_cost_covers_the_exact_divergence_of_every_pair(case):
    laws = law_of(case.mechanism, case.graph.histograms)
    np.testing.assert_allclose(laws.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    here, there = case.graph.edges.T
    logs = np.log(laws[:, laws.max(axis=0) > 0.0])  # an argmax alone never refuses
    exact = renyi(logs[here], logs[there], case.order)
    assert exact.max() > 1e-4  # the ensemble is not trivial
    bound = np.minimum(case.cost[here], case.cost[there])  # both directions, from either side
    np.testing.assert_array_less(exact, bound * (1.0 + 1e-9) + 1e-11)


def smooth(curves, ceiling, *, beta, distances):
    """SS_β of files given as curves [files, distances] and their common ceiling."""
    within = np.minimum(curves[:, :distances], ceiling)
    discounted = within * np.exp(-beta * np.arange(distances))
    return np.maximum(discounted.max(axis=1), ceiling * math.exp(-beta * distances))


@pytest.mark.parametrize("distances", [1, 3, None])
def test_smooth_sensitivity_of_neighbours_is_within_a_factor(case, distances):
    distances = case.mechanism.teachers if distances is None else distances
    here, there = case.graph.edges.T
    values = smooth(case.curves, case.ceiling, beta=case.beta, distances=distances)
    assert (values[here] / values[there]).max() <= math.exp(case.beta) * (1.0 + 1e-9)


def test_a_teacher_that_changes_its_vote_on_every_query_at_once(case):
    random = np.random.default_rng(11)
    queries, files = 5, 4000
    edges = case.graph.edges[random.integers(len(case.graph.edges), size=(files, queries))]
    # Some votes stay, and in half of the files all queries are copies of one and the same edge.
    edges[: files // 2] = edges[: files // 2, :1]
    stays = random.random((files, queries)) < 0.2
    edges[stays, 1] = edges[stays, 0]
    cost, curves = case.cost[edges].sum(axis=1), case.curves[edges].sum(axis=1)
    ceiling = queries * case.ceiling
    assert np.all(np.abs(cost[:, 0] - cost[:, 1]) <= curves[:, :, 0].min(axis=1) * (1.0 + 1e-12))
    distances = case.mechanism.teachers
    values = [
        smooth(curves[:, side], ceiling, beta=case.beta, distances=distances) for side in (0, 1)
    ]
    ratio = np.maximum(values[0] / values[1], values[1] / values[0])
    assert ratio.max() <= math.exp(case.beta) * (1.0 + 1e-9)
    np.testing.assert_array_less(
        curves[:, 0, :-1], curves[:, 1, 1:] * (1.0 + 1e-9) + 1e-300
    )  # LS_d(D) ≤ LS_{d+1}(D')


def test_stopping_early_fails_on_the_lattice_too_and_the_ceiling_mends_it():
    # What votes cost levels off at its supremum; a cost that goes on growing does not.
    mechanism, order, beta = GNMax(6, 4, sigma2=20.0), 8.0, 0.02
    graph = Graph.of(6, 4)
    table = ScoreTable(order, mechanism.cost_table(order).grid, lambda z: np.exp(4.0 * z))
    cells = mechanism.cells(mechanism.score(graph.histograms), table.grid)
    curves, ceiling = single_curves(table, cells, 7)
    here, there = graph.edges.T
    stopped = (curves[:, :2] * np.exp(-beta * np.arange(2))).max(axis=1)
    assert (stopped[here] / stopped[there]).max() > 1.1 > math.exp(beta)
    values = smooth(curves, ceiling, beta=beta, distances=6)
    assert (values[here] / values[there]).max() <= math.exp(beta) * (1.0 + 1e-9)
