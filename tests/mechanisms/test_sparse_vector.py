"""The sparse-vector mechanism against a row-by-row twin and the exact law of whole epochs."""

import itertools

import numpy as np
import pytest

from divergences import hockey_stick
from laws import epoch_law
from pate_cli.accounting.composition import best_composition
from pate_cli.core.arrays import NO_LABEL
from pate_cli.core.noise import COARSE_CELL, RunKey
from pate_cli.mechanisms import sparse_vector
from pate_cli.mechanisms.sparse_vector import SparseVector
from pate_cli.mechanisms.stability import distance_to_instability
from slices import some


def sparse(teachers, classes, epsilon, delta, refusals, **more):
    parameters = {"query_epsilon": epsilon, "query_delta": delta, "refusals": refusals}
    return SparseVector(teachers, classes, **parameters, **more)


def row_by_row(mechanism, counts, noise):
    """The same mechanism, one row at a time."""
    b, refused, threshold, labels = 2.0 / mechanism.query_epsilon, 0, None, []
    for votes in counts:
        own, fresh = noise.laplace(2)
        if refused == mechanism.refusals:
            labels.append(NO_LABEL)
            continue
        threshold = mechanism.threshold + b * fresh if threshold is None else threshold
        distance = distance_to_instability(
            votes[None], teachers_per_record=mechanism.teachers_per_record
        )[0]
        if distance + 2.0 * b * own > threshold:
            labels.append(int(np.argmax(votes)))
        else:
            labels.append(NO_LABEL)
            refused, threshold = refused + 1, None
    return np.array(labels), refused


def some_counts(rows, *, agreement=0.6, teachers=60, seed=0):
    rest = (1.0 - agreement) / 2.0
    return np.random.default_rng(seed).multinomial(teachers, [agreement, rest, rest], size=rows)


@pytest.mark.parametrize("refusals", some([1, 7, 200, 5000], 3))
@pytest.mark.parametrize("agreement", [0.4, 0.6, 0.95])
@pytest.mark.parametrize("k", [1, 2])
def test_the_same_labels_as_row_by_row(refusals, agreement, k):
    mechanism = sparse(60, 3, 2.0, 0.02, refusals, teachers_per_record=k)
    counts = some_counts(1500, agreement=agreement)
    labeller = mechanism.start()
    labels = labeller.label(counts, RunKey.of(5).rows(0, 1))
    expected, refused = row_by_row(mechanism, counts, RunKey.of(5).rows(0, 1))
    np.testing.assert_array_equal(labels, expected)
    assert labels.dtype == np.int32
    assert labeller.refused == refused
    assert labeller.stopped == (refused == refusals)
    assert "threshold" not in repr(labeller)
    labeller, noise, rest = mechanism.start(), RunKey.of(5).rows(0, 1), RunKey.of(5).rows(0, 1)
    pieces = [labeller.label(part, noise) for part in np.split(counts, [0, 1, 700, 700, 1499])]
    np.testing.assert_array_equal(np.concatenate(pieces), labels)
    rest.laplace((1500, 2))
    assert noise.laplace(1) == rest.laplace(1)  # A row draws two numbers, also after the end.


def test_the_first_row_at_most_the_threshold_is_found_wherever_it_stands():
    for start, place in itertools.product((0, 5), range(5, 700)):
        noisy = np.where(np.arange(800) == place, 0.0, 1.0)
        assert sparse_vector._first_at_most(noisy, start, 0.0) == place


# One row under two neighbours: its two distances and whether its plurality is turned.
ROWS = [(0, 0, True), *((d, e, False) for d in range(4) for e in range(4) if abs(d - e) <= 1)]


@pytest.mark.parametrize(
    ("epsilon", "delta"), some([(1.0, 0.1), (3.0, 0.02), (0.5, 0.5), (20.0, 0.001), (8.0, 1e-6)], 2)
)
def test_every_epoch_of_three_rows(epsilon, delta):
    """sup over events of Pr − e^{ε0} Pr' is at most the leak, and equal to it for some epoch."""
    mechanism = sparse(8, 3, epsilon, delta, 1)
    epochs = np.array(list(itertools.product(ROWS, repeat=3)))
    one, other = (epoch_law(mechanism, epochs[:, :, side]) for side in (0, 1))
    np.testing.assert_allclose(one.sum(axis=1), 1.0, rtol=1e-12)
    turned_before = np.cumsum(epochs[:, :, 2], axis=1) > 0
    shown = np.column_stack([np.zeros(len(epochs), dtype=bool), turned_before])
    other = np.where(shown, 0.0, other)
    excess = hockey_stick(one, other, epsilon)
    assert mechanism.leak == pytest.approx(delta, rel=1e-12)
    assert excess.max() == pytest.approx(mechanism.leak, rel=1e-9)
    assert excess[~turned_before[:, -1]].max() < 1e-12


@pytest.mark.parametrize(("epsilon", "delta"), some([(1.0, 0.1), (3.0, 0.02), (0.5, 0.4)], 2))
def test_every_run_of_three_rows_and_two_refusals(epsilon, delta):
    """The exact law of whole runs keeps the promise made for them, and δ has no room to spare."""
    mechanism = sparse(8, 3, epsilon, delta, 2)
    runs = np.array(list(itertools.product(ROWS, repeat=3)))
    total = 1.0 - (1.0 - delta) ** 2 + np.array([1e-9, 0.05])
    grown = np.exp([mechanism.privacy(3, each).epsilon for each in total])
    laws = [[epoch_law(mechanism, runs[:, row:, side]) for row in range(3)] for side in (0, 1)]
    excess = np.zeros((2, len(runs)))
    for first in range(4):
        for second in range(max(3 - first, 1)):
            chances = [law[0][:, first] for law in laws]
            answered = list(range(first))
            if first < 2:
                chances = [
                    c * law[first + 1][:, second] for c, law in zip(chances, laws, strict=True)
                ]
                answered += range(first + 1, first + 1 + second)
            turned = runs[:, answered, 2].any(axis=1)
            one, other = chances[0], np.where(turned, 0.0, chances[1])
            excess += np.maximum(one - grown[:, None] * other, 0.0)
    assert np.all(excess.max(axis=1) <= total * (1.0 + 1e-9))
    assert np.all(excess.max(axis=1) >= (1.0 - (1.0 - delta) ** 2) * (1.0 - 1e-9))


def test_privacy_is_that_of_the_epochs():
    mechanism = sparse(250, 10, 0.3, 1e-7, 20)
    found = mechanism.privacy(10_000, 1e-5)
    assert found == best_composition(20, epsilon=0.3, delta=mechanism.leak, total_delta=1e-5)
    assert mechanism.privacy(10**9, 1e-5) == found
    assert mechanism.privacy(3, 1e-5) == best_composition(
        3, epsilon=0.3, delta=mechanism.leak, total_delta=1e-5
    )


@pytest.mark.parametrize(("teachers", "coarser"), [(250, False), (100_000, True)])
def test_the_smallest_delta_pays_for_thresholds_that_many_rows_meet(teachers, coarser):
    """Short intervals of Q thresholds and r rows add Q r 2^-66 (1 + tau/b) to delta."""
    run = SparseVector(teachers, 3, query_epsilon=1.0, query_delta=1e-6, refusals=10)
    added = 10 * 1000 * 2.0**-66 * (1.0 + teachers / run.scale)
    assert run.smallest_delta(1000, epsilon=10.0) >= 10.0 * added * (1.0 + np.exp(10.0))
    assert (run.noise_cell > COARSE_CELL) == coarser
