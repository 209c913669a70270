"""Audits: what an adversary can prove from many runs stays below what is promised.

Each audit draws transcripts on two neighbours; the lower bound on ε that follows (`audit.bounds`)
must not exceed the promise. The same audits run on mechanisms broken on purpose, and there it must.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from audit.bounds import by_outcome, lower_bound
from pate_cli.core.arrays import NO_LABEL
from pate_cli.core.noise import Noise, RunKey
from pate_cli.mechanisms.sparse_vector import SparseVector
from pate_cli.mechanisms.stability import Stability
from slices import some


def lowest_epsilon(one, other, delta):
    """A lower bound on ε at this δ from transcripts given as whole numbers, in both directions.

    At most twenty audits of sound mechanisms: were the seeds drawn at random, less than one run of
    this file in ten million would cry wolf.
    """
    codes = np.unique(np.concatenate([one, other]), return_inverse=True)[1]
    return lower_bound(by_outcome(*np.split(codes, [one.size])), delta=delta)


def drawn(kind, seed):
    """Reproducible noise of a kind of its own."""
    return kind(np.random.Philox(seed).random_raw, private=False)


class Quieter(Noise):
    """Noise of a third of the scale it should have."""

    def laplace(self, shape):
        return super().laplace(shape) / 3.0


class FixedThreshold(Noise):
    """Noise on the queries of a sparse vector, none on its threshold."""

    def laplace(self, shape):
        return super().laplace(shape) * np.array([1.0, 0.0])


@dataclass(frozen=True)
class NoDelta(Stability):
    """A threshold that forgot δ."""

    @property
    def threshold(self):
        return 0.0


@dataclass(frozen=True)
class HalfThreshold(SparseVector):
    """Half of the threshold needed for δ."""

    @property
    def threshold(self):
        return super().threshold / 2.0


def coded(labels, classes):
    """One whole number per row of labels [transcripts, rows]."""
    return ((labels - NO_LABEL) * (classes + 1) ** np.arange(labels.shape[1])).sum(axis=1)


FLIPPED = ([[10, 10]], [[9, 11]])
# At ε = 1 and δ = 0.01 the threshold is 4.6; these are at distances 5 and 6.
MIDDLE = ([[16, 4]], [[17, 3]])
SEVERAL = ([[15, 5], [13, 7], [18, 2], [10, 10]], [[16, 4], [14, 6], [17, 3], [9, 11]])


def audit_stability(mechanism, pair, noise, runs=120_000):
    """Audit against what a sound mechanism promises at hardly more δ than it needs."""
    one, other = (
        coded(
            mechanism.label(np.tile(np.array(votes), (runs, 1)), noise).reshape(runs, len(votes)),
            mechanism.classes,
        )
        for votes in pair
    )
    sound = Stability(
        20, 2, query_epsilon=mechanism.query_epsilon, query_delta=mechanism.query_delta
    )
    promise = sound.privacy(len(pair[0]), len(pair[0]) * sound.leak * 1.01)
    return lowest_epsilon(one, other, promise.delta), promise.epsilon


@pytest.mark.parametrize("pair", [FLIPPED, MIDDLE, SEVERAL], ids=["flipped", "middle", "several"])
@pytest.mark.parametrize("delta", some([0.01, 0.3], 2))
def test_stability_keeps_its_promise(pair, delta):
    found, promised = audit_stability(
        Stability(20, 2, query_epsilon=1.0, query_delta=delta),
        pair,
        RunKey.from_seed(101).rows(0, 1),
    )
    assert found <= promised


def test_the_audit_is_not_blind():
    """It comes within a fifth of what one query costs."""
    found, promised = audit_stability(
        Stability(20, 2, query_epsilon=1.0, query_delta=0.01),
        MIDDLE,
        RunKey.from_seed(102).rows(0, 1),
    )
    assert 0.8 * promised < found <= promised


@pytest.mark.parametrize(
    ("broken", "noise", "pair"),
    [(Stability, Quieter, MIDDLE), (NoDelta, Noise, FLIPPED), (NoDelta, Noise, SEVERAL)],
    ids=["a third of the noise", "no delta", "no delta, several queries"],
)
def test_broken_stability_is_caught(broken, noise, pair):
    found, promised = audit_stability(
        broken(20, 2, query_epsilon=1.0, query_delta=0.01), pair, drawn(noise, 103)
    )
    assert found > promised


def refusals_of(mechanism, distances, noise, runs):
    """The first refusal and the first two, coded, of many runs over rows of these distances.

    A row at distance 0 ends every run: it is refused but with a probability of the order of 1e-7,
    so that one long sequence holds many runs, each beginning an epoch of its own.
    """
    gaps = 2 * (np.append(distances, -1) + 1)
    votes = np.stack([mechanism.teachers + gaps, mechanism.teachers - gaps], axis=1) // 2
    labels = mechanism.label(np.tile(votes, (runs, 1)), noise).reshape(runs, -1)
    refused = labels == NO_LABEL
    assert refused[:, -1].mean() > 0.999
    first = np.argmax(refused, axis=1)
    refused[np.arange(runs), first] = False
    second = np.where(refused.any(axis=1), np.argmax(refused, axis=1), labels.shape[1])
    return first, first * (labels.shape[1] + 1) + second


@dataclass(frozen=True)
class Epochs:
    """`rows` rows so far above the threshold and one so far above, `epochs` times over.

    On the neighbour every distance is one less, but the last of each epoch one more.
    """

    epochs: int
    query_epsilon: float
    rows: int
    above: int
    last: int

    def audit(self, noise, runs=40_000):
        sound = SparseVector(
            300, 2, query_epsilon=self.query_epsilon, query_delta=1e-9, refusals=self.epochs
        )
        shape = np.array([self.above] * self.rows + [self.last]) + round(sound.threshold)
        change = np.array([-1] * self.rows + [1])
        one, other = (
            refusals_of(replace(sound, refusals=10**9), np.tile(d, self.epochs), noise, runs)
            for d in (shape, shape + change)
        )
        promise = sound.privacy(10**6, 1e-5)
        looked_at = self.epochs - 1
        return lowest_epsilon(one[looked_at], other[looked_at], promise.delta), promise.epsilon


ONE_EPOCH = Epochs(1, 3.0, rows=8, above=1, last=0)
TWO_EPOCHS = Epochs(2, 1.0, rows=2, above=1, last=-1)
EPOCHS = {"one": ONE_EPOCH, "two": TWO_EPOCHS}
BROKEN = {
    "a third of the noise": (ONE_EPOCH, Quieter),
    "no threshold noise": (ONE_EPOCH, FixedThreshold),
    "a third of the noise, two epochs": (TWO_EPOCHS, Quieter),
}


@pytest.mark.parametrize("name", some(EPOCHS, 2))
def test_sparse_vector_keeps_its_promise(name):
    found, promised = EPOCHS[name].audit(RunKey.from_seed(104).rows(0, 1))
    assert 0.2 * promised < found <= promised


@pytest.mark.parametrize("name", some(BROKEN, 2))
def test_broken_sparse_vector_is_caught(name):
    epochs, noise = BROKEN[name]
    found, promised = epochs.audit(drawn(noise, 105))
    assert found > promised


TURNED = {"query_epsilon": 1.0, "query_delta": 0.05, "refusals": 2}


def audit_turned(mechanism, runs=6000):
    """Five rows, of which one vote turns the second and the fourth; two refusals, a large δ."""
    rows = (
        [[18, 2], [10, 10], [19, 1], [10, 10], [20, 0]],
        [[17, 3], [9, 11], [18, 2], [9, 11], [19, 1]],
    )
    noise = RunKey.from_seed(106).rows(0, 1)
    one, other = (
        coded(np.stack([mechanism.label(np.array(votes), noise) for _ in range(runs)]), 2)
        for votes in rows
    )
    promise = SparseVector(20, 2, **TURNED).privacy(5, 0.1)
    return lowest_epsilon(one, other, promise.delta), promise.epsilon


def test_turned_rows_cost_what_is_said():
    found, promised = audit_turned(SparseVector(20, 2, **TURNED))
    assert found <= promised


def test_a_threshold_too_low_is_caught():
    found, promised = audit_turned(HalfThreshold(20, 2, **TURNED))
    assert found > promised
