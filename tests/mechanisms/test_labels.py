"""Labels follow the exact law; classes are interchangeable; batches and caps change no draw."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from pate_cli.labels import NO_LABEL
from pate_cli.mechanisms.base import plurality
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.mechanisms.gnmax import GNMax
from pate_cli.noise import Noise

DRAWS = 60_000
HISTOGRAMS = [[14, 4, 2], [0, 10, 10], [7, 7, 6], [1, 19, 0], [20, 0, 0]]
MECHANISMS = [
    GNMax(20, 3, sigma2=4.0),
    ConfidentGNMax(20, 3, threshold=12.0, sigma1=5.0, sigma2=3.0),
    ConfidentGNMax(20, 3, threshold=18.0, sigma1=2.0, sigma2=8.0),
]
# Tests of one outcome of one histogram in this file: mechanisms × histograms × outcomes × both
# tails × (seeded, permuted, entropy). A right program fails one of them once in a million runs.
COMPARISONS = len(MECHANISMS) * len(HISTOGRAMS) * 4 * 2 * 3
FALSE_ALARM = 1e-6 / COMPARISONS


def assert_follows(labels, chances):
    """Every outcome's count is within the binomial law, −1 first, then the classes."""
    seen = np.bincount(labels - NO_LABEL, minlength=len(chances))
    assert len(seen) == len(chances)
    assert seen.sum() == labels.size
    for count, chance in zip(seen.tolist(), chances.tolist(), strict=True):
        if chance == 0.0:
            assert count == 0
            continue
        assert binom.cdf(count, labels.size, chance) > FALSE_ALARM
        assert binom.sf(count - 1, labels.size, chance) > FALSE_ALARM


def draw(mechanism, counts, noise, times=DRAWS):
    return mechanism.label(np.tile(np.array(counts, dtype=np.int64), (times, 1)), noise)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_seeded_labels_follow_the_exact_law(mechanism, exact_law):
    noise = Noise.from_seed(31)
    for counts in HISTOGRAMS:
        assert_follows(draw(mechanism, counts, noise), exact_law(mechanism, counts))


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_labels_from_entropy_follow_the_exact_law(mechanism, exact_law):
    noise = Noise.from_entropy()
    for counts in HISTOGRAMS:
        assert_follows(draw(mechanism, counts, noise, 20_000), exact_law(mechanism, counts))


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_permuting_the_classes_permutes_the_law(mechanism, exact_law):
    noise, permutation = Noise.from_seed(32), [2, 0, 1]
    for counts in HISTOGRAMS:
        law = exact_law(mechanism, counts)
        permuted = np.append(law[0], law[1:][permutation])
        assert_follows(draw(mechanism, np.array(counts)[permutation], noise), permuted)


class Given:
    """Noise that was written down before."""

    private = False

    def __init__(self, draws):
        self.draws = draws

    def normal(self, shape):
        assert self.draws.shape == shape
        return self.draws


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_permuted_noise_gives_permuted_labels_exactly(mechanism):
    random = np.random.default_rng(1)
    shares = random.dirichlet([0.5, 0.5, 0.5], size=500)
    counts = random.multinomial(20, shares)
    permutation = np.array([1, 2, 0])
    extra = 1 if mechanism.name == "confident" else 0
    draws = random.normal(size=(500, 3 + extra))
    moved = np.concatenate([draws[:, :extra], draws[:, extra:][:, permutation]], axis=1)
    labels = mechanism.label(counts, Given(draws))
    relabelled = mechanism.label(counts[:, permutation], Given(moved))
    back = np.append(permutation, NO_LABEL)[relabelled]
    np.testing.assert_array_equal(back, labels)
    assert len(np.unique(labels)) == 3 + extra


def test_the_threshold_is_on_the_largest_count_and_equality_passes():
    mechanism = ConfidentGNMax(10, 2, threshold=7.0, sigma1=2.0, sigma2=3.0)
    counts = np.array([[3, 7], [3, 7], [6, 4], [6, 4], [10, 0]])
    draws = np.array([[0.0, 0, 0], [-0.01, 0, 0], [0.49, 0, 0], [0.5, 0, 1.0], [-1.5, -2.0, 1.5]])
    assert mechanism.label(counts, Given(draws)).tolist() == [1, -1, -1, 1, 1]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
@pytest.mark.parametrize("batch", [1, 7, 100])
def test_batches_do_not_change_seeded_labels(mechanism, batch):
    counts = np.random.default_rng(2).multinomial(20, [0.5, 0.3, 0.2], size=100)
    whole = mechanism.label(counts, Noise.from_seed(5))
    noise = Noise.from_seed(5)
    parts = [mechanism.label(counts[i : i + batch], noise) for i in range(0, 100, batch)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_plurality_is_the_largest_count():
    assert plurality(np.array([[1, 5, 2], [4, 4, 0], [0, 0, 0]])).tolist() == [5, 4, 0]
