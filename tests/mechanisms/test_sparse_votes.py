"""Histograms of many classes: the law of the best class without votes, and the same costs."""

import numpy as np
import pytest
from scipy.special import log_ndtr
from scipy.stats import binom

from pate_cli.core.arrays import DENSE_CLASSES, SparseCounts
from pate_cli.core.errors import ParameterError
from pate_cli.core.noise import RunKey, normal_from_words, smallest_delta
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.mechanisms.gnmax import GNMax
from pate_cli.mechanisms.stability import Stability
from pate_cli.planning.synthetic import SyntheticEnsemble
from refusals import refusal

# Every check below is of two sides; all of them together raise a false alarm with 1e-6 at most.
FALSE_ALARM = 5e-9
MANY = DENSE_CLASSES + 2_000


def some_votes(classes, *, teachers=60, rows=40, seed=3):
    """From unanimous rows to rows where nobody agrees, votes missing in some."""
    random = np.random.default_rng(seed)
    agreeing = random.random((rows, 1)) ** 0.5
    own = random.integers(classes, size=(rows, 1))
    close = random.integers(classes, size=(rows, 4))[np.arange(rows)[:, None], random.integers(4)]
    votes = np.where(random.random((rows, teachers)) < 0.5, close, own)
    agree = random.random((rows, teachers)) < agreeing
    votes = np.where(agree, votes, random.integers(classes, size=(rows, teachers)))
    votes[random.random((rows, teachers)) < 0.02] = -1
    votes[0] = -1
    votes[1] = votes[1, 0]
    return SparseCounts.of_votes(votes, classes)


def win_chances(counts, classes, sigma):
    """Pr[each class with votes wins] by a fine trapezoid over its own noisy count."""
    t = np.arange(-12.0, 12.0, 1e-3)
    density = np.exp(-(t**2) / 2) / np.sqrt(2 * np.pi)
    chances = []
    for place, count in enumerate(counts):
        others = np.delete(counts, place)
        log_best = sum(log_ndtr(t + (count - other) / sigma) for other in others)
        log_best = log_best + (classes - len(counts)) * log_ndtr(t + count / sigma)
        chances.append(float((density * np.exp(log_best)).sum() * 1e-3))
    return chances


def in_law(seen, draws, chance):
    return binom.cdf(seen, draws, chance) > FALSE_ALARM < binom.sf(seen - 1, draws, chance)


@pytest.mark.parametrize(
    ("counts", "classes", "sigma"),
    [([5, 3, 1], 4, 2.0), ([2, 2], 50, 1.5), ([40, 18], 200_000, 8.0), ([], 1 << 24, 1.0)],
)
def test_winners_follow_the_exact_law(counts, classes, sigma):
    draws = 40_000
    labels = np.sort(np.random.default_rng(9).choice(classes, size=max(len(counts), 1)))
    labels = np.unique(np.append(labels, [0, classes - 1]))[: len(counts)] if counts else [classes]
    one = SparseCounts(np.array([labels]), np.array([counts or [0]]), classes)
    rows = one[np.zeros(draws, dtype=np.int64)]
    mechanism = GNMax(60, classes, sigma2=sigma)
    found = mechanism.label(rows, RunKey.of(classes).rows(0, mechanism.draws))
    assert found.min() >= 0
    assert found.max() < classes
    chances = win_chances(counts, classes, sigma)
    for label, chance in zip(labels, chances, strict=False):
        assert in_law(np.count_nonzero(found == label), draws, chance)
    # Classes without votes win together as often as is left, and are then evenly spread.
    without = np.setdiff1d(np.arange(min(classes, 100_000)), labels)
    zeros = found[~np.isin(found, labels)]
    assert in_law(zeros.size, draws, 1.0 - sum(chances))
    for part in (without[: without.size // 2], without[::3], without[:1], without[-1:]):
        share = part.size / (classes - len(counts))
        assert in_law(np.count_nonzero(np.isin(zeros, part)), zeros.size, share)


def test_the_threshold_looks_at_its_own_draw():
    votes = some_votes(MANY)
    mechanism = ConfidentGNMax(60, MANY, threshold=25.0, sigma1=9.0, sigma2=4.0)
    key = RunKey.of(4)
    found = mechanism.label(votes, key.rows(0, mechanism.draws))
    words = key.rows(0, mechanism.draws).words((len(votes), mechanism.draws))
    passed = votes.counts.max(axis=1) + 9.0 * normal_from_words(words[:, 0]) >= 25.0
    np.testing.assert_array_equal(found >= 0, passed)
    np.testing.assert_array_equal(found[passed], mechanism.argmax.pick(votes, words[:, 1:])[passed])


def test_labels_depend_on_the_votes_and_not_on_their_form():
    votes = some_votes(MANY)
    for mechanism in (
        GNMax(60, MANY, sigma2=6.0),
        ConfidentGNMax(60, MANY, threshold=25.0, sigma1=9.0, sigma2=4.0),
        Stability(60, MANY, query_epsilon=0.5, query_delta=1e-3),
    ):
        whole = mechanism.label(votes, RunKey.of(7).rows(0, mechanism.draws))
        dense = mechanism.label(votes.dense(), RunKey.of(7).rows(0, mechanism.draws))
        np.testing.assert_array_equal(dense, whole)
        # Narrower parts: a row's words do not depend on how many entries others have.
        parts = [
            mechanism.label(
                SparseCounts.of(votes[slice(row, row + 1)].dense()),
                RunKey.of(7).rows(row, mechanism.draws),
            )
            for row in range(0, len(votes), 7)
        ]
        np.testing.assert_array_equal(np.concatenate(parts), whole[::7])


def test_a_row_takes_a_word_a_teacher_however_many_classes_there_are():
    for classes in (MANY, 1 << 24):
        mechanism = ConfidentGNMax(60, classes, threshold=25.0, sigma1=9.0, sigma2=4.0)
        assert mechanism.draws == 63
        assert mechanism.smallest_delta(1000) == smallest_delta(63_000)
    few = ConfidentGNMax(60, DENSE_CLASSES, threshold=25.0, sigma1=9.0, sigma2=4.0)
    assert few.draws == DENSE_CLASSES + 1
    # More entries than votes are no histogram of these teachers.
    text = refusal(
        ParameterError,
        GNMax(2, MANY, sigma2=1.0).label,
        SparseCounts(np.array([[1, 2, 3]]), np.array([[1, 1, 1]]), MANY),
        RunKey.of(1).rows(0, 4),
    )
    assert (
        text == "`counts` has a row with votes for more than 2 classes, but a row has at most 2 "
        "votes; check `counts` and `teachers`"
    )


def test_made_up_votes_of_many_classes_have_the_law_of_few(monkeypatch):
    """The urn against Dirichlet weights: the same moments of every plurality and its rivals."""

    def moments(counts):
        top = np.sort(counts, axis=1)[:, ::-1]
        return np.array([top[:, 0], top[:, 1], top[:, 0] ** 2, (top > 0).sum(axis=1)], dtype=float)

    recipe = SyntheticEnsemble(teachers=12, classes=5, queries=6000, confusion=0.4)
    known, its_truth = recipe.draw(8)
    monkeypatch.setattr("pate_cli.planning.synthetic.DENSE_CLASSES", 4)
    found, truth = recipe.draw(9)
    urn = found.dense()
    np.testing.assert_array_equal(urn.sum(axis=1), 12)
    one, other = moments(urn), moments(known)
    error = np.sqrt((one.var(axis=1) + other.var(axis=1)) / 6000)
    assert (np.abs(one.mean(axis=1) - other.mean(axis=1)) < 6.0 * error).all()
    hits = [np.mean(c[np.arange(6000), t]) for c, t in ((urn, truth), (known, its_truth))]
    assert abs(hits[0] - hits[1]) < 6.0 * 12.0 * np.sqrt(0.5 / 6000)
