"""What is offered against the same run through the engine, and rounds against one another."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pate_cli.core.noise import RunKey
from pate_cli.core.words import Bound, ReleaseKind
from pate_cli.disclosure.door import release
from pate_cli.disclosure.facts import report_of
from pate_cli.disclosure.profile import VoteProfile, states_for
from pate_cli.disclosure.target import LIKELY, TargetPlan
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.planning.target_on_votes import pass_probability
from pate_cli.reproduction.offered import offered
from pate_cli.reproduction.vote_folder import Asked, FileVotes
from runs import CountsRows, aggregated
from slices import some

PARAMETERS = {"threshold": 96.0, "sigma1": 72.0, "sigma2": 20.0}


@pytest.fixture
def asked(draw):
    def build(*, queries=150, seed=1, scores=None):
        counts = draw(teachers=120, classes=5, queries=queries, seed=seed)
        votes = FileVotes("votes.npy", counts, 120, None, None)
        return Asked(votes, PARAMETERS, scores)

    return build


class Fixed:
    """A source of noise whose every draw is the same."""

    private = False

    def __init__(self, value):
        self.value = value

    def normal(self, shape):
        return np.full(shape, self.value)

    def fine_normal(self):
        return self.value


def test_what_is_offered_is_what_aggregate_publishes(asked, no_search):
    """At N = 0 a run publishes the mean, at N = 1 a standard deviation more, rounded up."""
    plain = asked()
    counts = plain.votes.counts
    figures = offered([plain], delta=1e-5, quick=True)
    mechanism = ConfidentGNMax(teachers=120, classes=5, **PARAMETERS)
    upper = figures.upper
    undrawn = replace(upper.plan, kind=ReleaseKind.NONE)  # a ledger nothing was drawn from yet
    done = aggregated(
        CountsRows(counts),
        mechanism,
        undrawn,
        max_answers=len(counts),
        key=RunKey.from_seed(1),
    )
    drawn = [release(done.ledger, upper.plan, Fixed(n)) for n in (0.0, 1.0)]
    at = [report_of(facts).sanitized.epsilon for facts in drawn]
    assert upper.mean <= at[0] < upper.mean + 1.01e-4
    assert upper.mean + upper.sd <= at[1] < upper.mean + upper.sd + 1.01e-4
    public = done.report.data_independent.labels_epsilon
    assert figures.worst.epsilon == pytest.approx(public, abs=1.01e-4)
    assert upper.plan.kind is ReleaseKind.UPPER
    assert upper.mean - upper.before > 3 * upper.sd


@pytest.mark.parametrize("classes", some([2, 3], 2))
def test_targets_are_the_least_that_are_likely_to_pass(draw, classes):
    counts = draw(teachers=20, classes=classes, queries=30)
    parameters = {"threshold": 16.0, "sigma1": 12.0, "sigma2": 4.0}
    votes = FileVotes("votes.npy", counts, 20, None, None)
    figures = offered([Asked(votes, parameters, None)], delta=1e-5)
    mechanism = ConfidentGNMax(teachers=20, classes=classes, **parameters)
    assert list(figures.targets) == [Bound.TWO_TAIL, Bound.CONDITIONAL]
    two_tail, conditional = figures.targets.values()
    assert conditional < two_tail < figures.worst.epsilon
    for bound, target in figures.targets.items():
        profile = VoteProfile(states_for(bound, mechanism, highest_order=100.0))
        profile.add(mechanism, counts)

        def chance(epsilon, profile=profile):
            plan = TargetPlan.of(epsilon, delta=1e-5, refusal_epsilon=epsilon)
            return pass_probability(profile, mechanism, plan, rows=30)

        assert chance(target) >= LIKELY > chance(0.997 * target)


def test_the_slow_bound_is_tried_where_a_run_takes_it_by_itself(draw, monkeypatch, no_search):
    counts = draw(teachers=20, classes=3, queries=30)
    parameters = {"threshold": 16.0, "sigma1": 12.0, "sigma2": 4.0}
    asked = Asked(FileVotes("votes.npy", counts, 20, None, None), parameters, None)
    seen = []

    def never(bound, mechanism, *, rows, orders):
        seen.append((bound, rows, mechanism.classes))
        assert orders.size
        return Bound.TWO_TAIL

    monkeypatch.setattr("pate_cli.reproduction.offered.settled_bound", never)
    assert list(offered([asked], delta=1e-5).targets) == [Bound.TWO_TAIL]
    assert seen == [(Bound.AUTO, 30, 3)]


def test_two_rounds_are_charged_once_each(asked, no_search):
    first, second = asked(), asked(seed=2)
    both = offered([first, second], delta=1e-5, quick=True)
    apart = [offered([each], delta=1e-5, quick=True).upper.mean for each in (first, second)]
    assert max(apart) < both.upper.mean < sum(apart)
    # What the second round asks depends on labels of the first: no test comes before all of it.
    assert both.targets == {}
    # The two rounds are the one run of all their rows.
    counts = np.concatenate([first.votes.counts, second.votes.counts])
    whole = Asked(FileVotes("votes.npy", counts, 120, None, None), PARAMETERS, None)
    together = offered([whole], delta=1e-5, quick=True)
    assert both.upper.plan == together.upper.plan
    assert both.upper.mean == pytest.approx(together.upper.mean, rel=1e-9)
    assert both.upper.smooth == pytest.approx(together.upper.smooth, rel=1e-9)
    assert both.worst.epsilon == pytest.approx(together.worst.epsilon, rel=1e-9)


def test_a_student_who_agrees_makes_the_round_cheaper(asked, no_search):
    """The check then sees scores far below T, so hardly anything is answered or revealed."""
    plain = asked(queries=100)
    share = plain.votes.counts / 120
    told = asked(queries=100, scores=(plain.votes.counts - 120 * share).max(axis=1))
    assert (
        offered([told], delta=1e-5, quick=True).upper.before
        < offered([plain], delta=1e-5, quick=True).upper.before
    )
