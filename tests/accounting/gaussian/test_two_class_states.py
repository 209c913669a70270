"""Whole queries of two classes against direct enumeration of states, neighbours and balls."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_ndtr

from divergences import renyi
from graphs import Graph
from pate_cli.accounting.gaussian import two_classes
from pate_cli.accounting.gaussian.noisy_max import scores
from pate_cli.accounting.gaussian.two_classes import two_class_rdp, two_class_states_rdp
from pate_cli.accounting.threshold import chain_rdp, pass_moments
from pate_cli.core.errors import ParameterError

DISTANCES = np.array([0, 1, 2, 5, 9, 30])
# σ2, then T and σ1 of the test or nothing.
QUERIES = [
    (2.0, None, np.inf),
    (1.0, 6.0, 3.0),
    (0.5, 5.5, 1.0),
    (40.0, 7.0, 30.0),
    (3.0, -2.0, 0.5),
]


def law(states, sigma, threshold, sigma_threshold):
    """log probabilities of class 1, class 2 and, with a test, no answer, [states, outcomes]."""
    first = (states[:, 0] - states[:, 1]) / (sigma * np.sqrt(2.0))
    answers = np.stack([log_ndtr(first), log_ndtr(-first)], axis=1)
    if threshold is None:
        return answers
    passes = (states.max(axis=1) - threshold) / sigma_threshold
    return np.column_stack([answers + log_ndtr(passes)[:, None], log_ndtr(-passes)])


def enumerated(graph, order, query):
    """The largest divergence of every state, and its maxima over balls, from their definitions."""
    here, there = graph.edges.T
    log_law = law(graph.histograms, *query)
    cost = renyi(log_law[here], log_law[there], order)
    worst = np.zeros(len(graph.histograms))
    for end in (here, there):
        np.maximum.at(worst, end, cost)
    return np.stack([np.where(graph.distances <= d, worst, 0.0).max(axis=1) for d in DISTANCES])


def tabulated(states, teachers, order, query):
    sigma, threshold, sigma_threshold = query
    return two_class_states_rdp(
        states,
        teachers=teachers,
        sigma=sigma,
        order=order,
        distances=DISTANCES,
        threshold=threshold,
        sigma_threshold=sigma_threshold,
    )


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("order", [1.2, 3.0, 14.0])
def test_every_state_and_ball(query, order):
    graph = Graph.of(9, 2, missing=9)
    found = tabulated(graph.histograms, 9, order, query)
    direct = enumerated(graph, order, query)
    most = order / query[0] ** 2 + (order / (2.0 * query[2] ** 2) if query[2] else 0.0)
    assert np.all(found >= np.minimum(direct, most))
    np.testing.assert_allclose(found, np.minimum(direct, most), rtol=3e-9)


def test_chunks_change_nothing(monkeypatch):
    graph = Graph.of(9, 2, missing=9)
    whole = tabulated(graph.histograms, 9, 3.0, QUERIES[1])
    monkeypatch.setattr(two_classes, "_CHUNK", 30)
    np.testing.assert_array_equal(tabulated(graph.histograms, 9, 3.0, QUERIES[1]), whole)


def test_a_small_part_of_the_chain_rule_is_saved():
    # The test and the argmax see the same votes; the chain rule takes the worst of either alone.
    states = np.array([[n, 250 - n] for n in range(125, 251, 5)])
    query = {"threshold": 200.0, "sigma": 150.0, "order": 8.0}
    score = scores(states, sigma=40.0)
    argmax = two_class_rdp(score, sigma=40.0, orders=np.array([8.0]))[0]
    chain = chain_rdp(pass_moments(states[:, 0] * 1.0, **query), argmax, cap=8.0 / 45_000.0)
    exact = two_class_states_rdp(
        states,
        teachers=250,
        sigma=40.0,
        order=8.0,
        distances=np.array([0]),
        threshold=200.0,
        sigma_threshold=150.0,
    )[0]
    assert np.all(exact <= chain * (1.0 + 1e-6))
    assert exact.sum() < 0.95 * chain.sum()


def test_more_teachers_than_a_table_holds_are_refused():
    with pytest.raises(ParameterError, match="at most 6000"):
        two_class_states_rdp(
            np.array([[3, 3]]), teachers=100_000, sigma=2.0, order=3.0, distances=np.array([0])
        )
