"""The tight columns against the same run through the engine, and rounds against one another."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pate_cli.disclosure.door import release
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.noise import Noise
from pate_cli.reproduction.release import tight_figures
from pate_cli.reproduction.vote_folder import Asked, Histograms
from pate_cli.run import TightAccount, run
from pate_cli.votes import VoteBatch
from pate_cli.words import ReleaseKind

PARAMETERS = {"threshold": 96.0, "sigma1": 72.0, "sigma2": 20.0}


@pytest.fixture
def asked(draw):
    def build(*, queries=150, seed=1, scores=None):
        counts = draw(teachers=120, classes=5, queries=queries, seed=seed)
        votes = Histograms("votes.npy", counts, 120, None, None)
        return Asked(votes, PARAMETERS, scores)

    return build


class Fixed:
    """A source of noise whose every draw is the same."""

    private = False

    def __init__(self, value):
        self.value = value

    def normal(self, shape):
        return np.full(shape, self.value)


def test_mean_and_deviation_are_those_of_what_aggregate_publishes(asked):
    """At N = 0 a run publishes the mean, at N = 1 a standard deviation more, rounded up."""
    plain = asked()
    counts = plain.votes.counts
    figures = tight_figures([plain], delta=1e-5)
    mechanism = ConfidentGNMax(teachers=120, classes=5, **PARAMETERS)
    batch = VoteBatch(0, np.arange(len(counts)), counts)
    for found in (figures.upper, figures.unbiased):
        undrawn = replace(found.plan, kind=ReleaseKind.NONE)  # a ledger nothing was drawn from yet
        done = run(
            [batch],
            mechanism,
            TightAccount(mechanism, undrawn),
            queries=len(counts),
            max_answers=len(counts),
            noise=Noise.from_seed(1),
        )
        at = [release(done.ledger, found.plan, Fixed(n)).sanitized.epsilon for n in (0.0, 1.0)]
        assert found.mean <= at[0] < found.mean + 1.01e-4
        assert found.mean + found.sd <= at[1] < found.mean + found.sd + 1.01e-4
        public = done.report.data_independent.labels_epsilon
        assert figures.data_independent.epsilon == pytest.approx(public, abs=1.01e-4)
    assert figures.upper.plan.kind is ReleaseKind.UPPER
    assert figures.upper.mean - figures.upper.before > 3 * figures.upper.sd


def test_two_rounds_are_charged_once_each(asked):
    first, second = asked(), asked(seed=2)
    both = tight_figures([first, second], delta=1e-5)
    apart = [tight_figures([each], delta=1e-5) for each in (first, second)]
    assert both.unbiased.mean < sum(figures.unbiased.mean for figures in apart)
    assert both.unbiased.mean > max(figures.unbiased.mean for figures in apart)
    # The two rounds are the one run of all their rows.
    counts = np.concatenate([first.votes.counts, second.votes.counts])
    whole = Asked(Histograms("votes.npy", counts, 120, None, None), PARAMETERS, None)
    together = tight_figures([whole], delta=1e-5)
    assert both.unbiased.plan == together.unbiased.plan
    assert both.unbiased.mean == pytest.approx(together.unbiased.mean, rel=1e-9)
    assert both.unbiased.smooth == pytest.approx(together.unbiased.smooth, rel=1e-9)
    assert both.data_independent.epsilon == pytest.approx(
        together.data_independent.epsilon, rel=1e-9
    )


def test_a_student_who_agrees_makes_the_round_cheaper(asked):
    """The check then sees scores far below T, so hardly anything is answered or revealed."""
    plain = asked(queries=100)
    share = plain.votes.counts / 120
    told = asked(queries=100, scores=(plain.votes.counts - 120 * share).max(axis=1))
    assert (
        tight_figures([told], delta=1e-5).unbiased.before
        < tight_figures([plain], delta=1e-5).unbiased.before
    )
