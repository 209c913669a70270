"""Every histogram of small ensembles, every neighbour: cost, local and smooth sensitivity."""

from __future__ import annotations

import math

import numpy as np
import pytest
from pate_cli.accounting.confident import confident_rdp
from scipy.special import logsumexp

from pate_cli.accounting.gaussian.two_tails import two_tail_rdp
from pate_cli.accounting.score_grid import COARSE, ScoreGrid
from pate_cli.accounting.sensitivity import local_sensitivity_blocks
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.mechanisms.gnmax import ArgmaxSurface, GNMax

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
ALL = CONFIDENT + ARGMAX


def name(case):
    return f"{case[0].name}-{case[0].teachers}x{case[0].classes}-order{case[1]:g}"


@pytest.fixture(params=ALL, ids=name)
def case(request, all_histograms, single_curves):
    mechanism, order, beta = request.param

    class Case:
        graph = all_histograms(mechanism.teachers, mechanism.classes)
        surface = mechanism.cost_table(order)
        cells = mechanism.cells(mechanism.score(graph.histograms), surface)
        cost = surface.cost(cells)
        curves, ceiling = single_curves(surface, cells, mechanism.teachers + 6)

    result = Case()
    result.mechanism, result.order, result.beta = mechanism, order, beta
    return result


def largest_changes(case):
    """max over neighbours of |Δ cost| per histogram."""
    here, there = case.graph.edges.T
    changes = np.zeros(len(case.cost))
    np.maximum.at(changes, here, np.abs(case.cost[here] - case.cost[there]))
    return changes


def test_one_vote_changes_the_cost_by_at_most_the_local_sensitivity(case):
    assert np.all(largest_changes(case) <= case.curves[:, 0])


def test_one_vote_after_d_others_changes_it_by_at_most_the_sensitivity_at_d(case):
    changes, distances = largest_changes(case), case.graph.distances
    for d in range(case.mechanism.teachers + 1):
        worst = np.where(distances <= d, changes[None, :], 0.0).max(axis=1)
        assert np.all(worst <= case.curves[:, d])
        assert case.curves[:, d].max() <= case.ceiling * (1.0 + 1e-12)


def test_the_score_of_neighbours_is_within_its_lipschitz_constants(case):
    here, there = case.graph.edges.T
    scores = case.mechanism.score(case.graph.histograms)
    assert scores.shape == (len(case.graph.histograms), len(case.mechanism.lipschitz))
    moved = np.abs(scores[here] - scores[there]).max(axis=0)
    assert np.all(moved <= np.array(case.mechanism.lipschitz))
    assert np.abs(case.cells[here, 0] - case.cells[there, 0]).max() <= 1
    assert np.abs(case.cells[here, 1] - case.cells[there, 1]).max() <= case.surface.grid.stride


def test_the_cost_covers_the_exact_divergence_of_every_pair(case, exact_law):
    laws = np.array([exact_law(case.mechanism, h) for h in case.graph.histograms.tolist()])
    np.testing.assert_allclose(laws.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    here, there = case.graph.edges.T
    logs = np.log(laws[:, laws.max(axis=0) > 0.0])  # GNMax never refuses
    terms = case.order * logs[here] + (1.0 - case.order) * logs[there]
    exact = logsumexp(terms, axis=1) / (case.order - 1.0)
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


def test_the_cost_by_score_is_the_cost_on_the_lattice(case):
    scores = case.mechanism.score(case.graph.histograms)
    by_score = case.mechanism.rdp(scores, np.array([case.order, 2.0]))
    assert by_score.shape == (2, len(scores))
    # `rdp` evaluates only the nodes in use, so the table may be higher by the search's slack.
    np.testing.assert_allclose(by_score[0], case.cost, rtol=3e-6)
    rows = case.surface.rows(0, case.surface.votes)
    assert rows.shape == (case.surface.votes, case.surface.grid.size)
    np.testing.assert_allclose(rows[tuple(case.cells.T)], case.cost, rtol=1e-13)


def test_a_maximum_that_stops_at_the_number_of_teachers_is_not_smooth():
    """Windows without ends: scores and plurality counts go on past all reachable histograms."""
    mechanism, order, beta = CONFIDENT[0]
    teachers, per_vote = mechanism.teachers, 8
    step = mechanism.lipschitz[1] / per_vote

    def curve(histogram):
        z = mechanism.score(np.array([histogram]))[0, 1]
        far = (teachers + 1) * per_vote
        columns = np.arange(-far, far + 1)
        rows = np.arange(max(histogram) - teachers - 1, max(histogram) + teachers + 2)
        nodes = (math.ceil(z / step) + columns) * step
        inner = np.maximum.accumulate(
            two_tail_rdp(nodes, sigma=mechanism.sigma2, orders=np.array([order]))[0]
        )
        cost = confident_rdp(
            rows[:, None].astype(float),
            inner[None, :],
            threshold=mechanism.threshold,
            sigma=mechanism.sigma1,
            order=order,
        )
        middle, local = cost[1:-1, per_vote:-per_vote], 0.0
        for row in (0, 1, 2):
            near = cost[row : row + middle.shape[0]]
            local = np.maximum(local, near[:, 2 * per_vote :] - middle)
            local = np.maximum(local, middle - near[:, : -2 * per_vote])
        v, k = teachers, teachers * per_vote
        return np.array(
            [
                local[v - d : v + d + 1, k - d * per_vote : k + d * per_vote + 1].max()
                for d in range(teachers + 1)
            ]
        )

    def stopping(histogram):
        return np.max(curve(histogram) * np.exp(-beta * np.arange(teachers + 1)))

    assert stopping([0, 0, 3, 5]) / stopping([0, 0, 4, 4]) == pytest.approx(1.387, abs=1e-3)
    assert math.exp(beta) == pytest.approx(1.0202, abs=1e-4)


def test_stopping_early_fails_on_the_lattice_too_and_the_ceiling_mends_it(
    all_histograms, single_curves
):
    mechanism, order, beta = GNMax(6, 4, sigma2=20.0), 8.0, 0.02
    graph = all_histograms(6, 4)
    surface = mechanism.cost_table(order)
    cells = mechanism.cells(mechanism.score(graph.histograms), surface)
    curves, ceiling = single_curves(surface, cells, 7)
    here, there = graph.edges.T
    stopped = (curves * np.exp(-beta * np.arange(7))).max(axis=1)
    assert (stopped[here] / stopped[there]).max() > 1.1 > math.exp(beta)
    values = smooth(curves, ceiling, beta=beta, distances=6)
    assert (values[here] / values[there]).max() <= math.exp(beta) * (1.0 + 1e-9)


def test_an_exact_cost_with_a_gridded_sensitivity_would_understate():
    """Between nodes the exact cost moves more than any gap of the table; the table's own does not.

    Found where F is steepest: scores just above a node are rounded a whole step up, so their
    window loses the steep part below.
    """
    mechanism, order = GNMax(40, 3, sigma2=1.6), 12.0
    fine = mechanism.cost_table(order).grid
    lipschitz = fine.step * fine.reach
    reach = 4
    step = lipschitz / reach
    grid = ScoreGrid(step=step, teachers_per_record=reach, block=1, first=-120, size=140)
    surface = ArgmaxSurface(order=order, classes=3, sigma=1.6, grid=grid)
    local = local_sensitivity_blocks(surface.rows, votes=1, grid=grid, rows_per_block=1)[0]
    z = np.linspace(-20.0, 0.0, 4001)
    exact = np.maximum.accumulate(surface.at(z)), np.maximum.accumulate(surface.at(z - lipschitz))
    change = exact[0] - exact[1]
    cells = grid.cells(z)
    assert (change / local[cells]).max() > 1.02
    gridded = surface.table[cells] - surface.table[grid.cells(z - lipschitz * (1.0 - 1e-9))]
    assert np.all(gridded <= local[cells])
    # And the project's own surfaces, at both resolutions, on histograms of neighbours.
    for surface in (mechanism.cost_table(order), mechanism.cost_table(order, COARSE)):
        blocks = local_sensitivity_blocks(
            surface.rows, votes=1, grid=surface.grid, rows_per_block=1
        )
        tops = np.arange(20, 40)
        counts = np.column_stack([tops, 40 - tops, np.zeros_like(tops)])
        moved = counts + np.array([1, -1, 0])
        pair = [mechanism.cells(mechanism.score(one), surface) for one in (counts, moved)]
        gap = np.abs(surface.cost(pair[0]) - surface.cost(pair[1]))
        for cells_of_one in pair:
            assert np.all(gap <= blocks[0, cells_of_one[:, 1] // surface.grid.block])
