"""The stability mechanism against its exact law, on every pair of neighbours of small ensembles."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import binom, laplace

from pate_cli.accounting.composition import best_composition
from pate_cli.accounting.stability import distance_to_instability, farthest_distance
from pate_cli.errors import ParameterError, UnreachableError
from pate_cli.labels import NO_LABEL
from pate_cli.mechanisms.stability import Stability
from pate_cli.noise import Noise

FALSE_ALARM = 1e-8


def chance_of_answer(mechanism, counts):
    distance = distance_to_instability(counts, teachers_per_record=mechanism.reach)
    return laplace.sf(mechanism.threshold - distance, scale=1.0 / mechanism.query_epsilon)


def law(mechanism, counts):
    """Probabilities of no answer and of every class, [histograms, 1 + classes]."""
    answered = chance_of_answer(mechanism, counts)
    table = np.zeros((len(counts), counts.shape[1] + 1))
    table[:, 0] = 1.0 - answered
    table[np.arange(len(counts)), np.argmax(counts, axis=1) + 1] = answered
    return table


@pytest.mark.parametrize(
    ("epsilon", "delta", "reach"), [(0.3, 0.2, 1), (1.0, 0.01, 1), (4.0, 0.6, 1), (1.0, 0.1, 2)]
)
@pytest.mark.parametrize(("teachers", "classes"), [(10, 2), (9, 3), (6, 4)])
def test_every_pair_of_neighbours(all_histograms, teachers, classes, epsilon, delta, reach):
    """sup over events of Pr − e^ε Pr' is at most the leak, and equal to it for some pair."""
    mechanism = Stability(teachers, classes, epsilon, delta, reach)
    graph = all_histograms(teachers, classes)
    first, second = np.nonzero(graph.distances <= reach)
    table = law(mechanism, graph.histograms)
    excess = np.maximum(table[first] - np.exp(epsilon) * table[second], 0.0).sum(axis=1)
    assert mechanism.leak == pytest.approx(delta / 2.0, rel=1e-12)
    assert excess.max() == pytest.approx(mechanism.leak, rel=1e-9)
    same = np.argmax(graph.histograms[first], axis=1) == np.argmax(graph.histograms[second], axis=1)
    assert excess[same].max() < 1e-12


@pytest.mark.parametrize("votes", [[20, 0, 0], [12, 7, 1], [9, 9, 2], [3, 5, 12], [8, 4, 8]])
def test_labels_follow_the_exact_law(votes):
    mechanism = Stability(20, 3, 0.5, 0.2)
    counts = np.tile(np.array(votes, dtype=np.int64), (40_000, 1))
    labels = mechanism.label(counts, Noise.from_seed(4))
    assert labels.dtype == np.int32
    assert set(labels.tolist()) <= {NO_LABEL, int(np.argmax(votes))}
    answered, chance = int((labels != NO_LABEL).sum()), chance_of_answer(mechanism, counts[:1])[0]
    assert binom.cdf(answered, labels.size, chance) > FALSE_ALARM
    assert binom.sf(answered - 1, labels.size, chance) > FALSE_ALARM


@pytest.mark.parametrize("parts", [[0, 1, 500], [0, 123, 124, 400, 500]])
def test_batches_change_nothing(parts):
    counts = np.random.default_rng(0).multinomial(40, [0.5, 0.3, 0.2], size=500)
    mechanism = Stability(40, 3, 0.5, 0.05)
    whole = mechanism.label(counts, Noise.from_seed(9))
    noise = Noise.from_seed(9)
    pieces = [mechanism.label(counts[a:b], noise) for a, b in itertools.pairwise(parts)]
    np.testing.assert_array_equal(whole, np.concatenate(pieces))
    assert 0 < (whole == NO_LABEL).sum() < 500


def test_privacy_composes_the_leak():
    mechanism = Stability(250, 10, 0.1, 1e-8)
    assert mechanism.threshold == pytest.approx(np.log(1e8) / 0.1, rel=1e-14)
    found = mechanism.privacy(640, 1e-5)
    assert found == best_composition(640, epsilon=0.1, delta=mechanism.leak, total_delta=1e-5)
    assert found.delta == 1e-5
    assert mechanism.privacy(641, 1e-5).epsilon > found.epsilon
    # The usual (ε, δ) a query would not have reached this total at all.
    assert Stability(250, 10, 0.1, 2e-5 / 640).privacy(640, 1e-5).epsilon > found.epsilon


@pytest.mark.parametrize("reach", [1, 3])
@pytest.mark.parametrize("delta", [1e-9, 1e-3])
def test_default_epsilon_puts_the_threshold_at_a_third(reach, delta):
    epsilon = Stability.default_query_epsilon(250, query_delta=delta, teachers_per_record=reach)
    mechanism = Stability(250, 10, epsilon, delta, reach)
    assert mechanism.threshold == pytest.approx(
        farthest_distance(250, teachers_per_record=reach) / 3.0
    )
    unanimous = np.array([[250] + [0] * 9])
    # The tail of a unanimous vote, as the docstring has it.
    assert 1.0 - chance_of_answer(mechanism, unanimous)[0] == pytest.approx(
        delta**2 / 2.0, rel=1e-6, abs=1e-15
    )
    half = Stability.default_query_epsilon(
        250, query_delta=delta, teachers_per_record=reach, share=0.5
    )
    assert half == pytest.approx(epsilon * 2.0 / 3.0)


def test_parameters_build_it_again():
    mechanism = Stability(250, 10, 0.1, 1e-8, 2)
    parameters = mechanism.parameters()
    assert parameters.pop("name") == mechanism.name == "stability"
    assert Stability(**parameters) == mechanism


def test_unreachable_delta():
    with pytest.raises(UnreachableError) as refusal:
        Stability(250, 10, 0.1, 1e-6).privacy(640, 1e-5)
    assert str(refusal.value) == (
        "delta 1e-05 is below 3.200e-04, the smallest reachable with 640 steps of delta 5e-07 each"
    )


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"teachers": 0}, "teachers must be at least 1, got 0"),
        ({"classes": 1}, "classes must be at least 2, got 1"),
        ({"query_epsilon": 0.0}, "query epsilon must be positive and finite, got 0.0"),
        ({"query_epsilon": np.nan}, "query epsilon must be positive and finite, got nan"),
        ({"query_delta": 0.0}, "query delta must be above 0 and below 1, got 0.0"),
        ({"reach": 0}, "reach must be a whole number of at least 1, got 0"),
    ],
)
def test_parameters_out_of_range(arguments, text):
    good = {"teachers": 5, "classes": 3, "query_epsilon": 1.0, "query_delta": 0.1}
    with pytest.raises(ParameterError) as refusal:
        Stability(**(good | arguments))
    assert str(refusal.value) == text


def test_privacy_out_of_range():
    mechanism = Stability(5, 3, 1.0, 0.1)
    for queries, delta in ((0, 0.2), (1.0, 0.2), (1, 0.0), (1, 1.0)):
        with pytest.raises(ParameterError):
            mechanism.privacy(queries, delta)
