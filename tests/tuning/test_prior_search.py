"""How heavy a prior should be: what a search finds, and what it says the prior buys."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from beside import a_prior
from pate_cli.core.errors import ParameterError, UnreachableError, UsageError
from pate_cli.core.noise import RunKey
from pate_cli.core.words import ReleaseKind
from pate_cli.planning.sample import Guesses, VoteSample, made_up_sample
from pate_cli.tuning import Goal, Grid, PriorSearch, PriorWeights, Search, Setting, Ways
from pate_cli.verbs.tune import tune
from slices import some

RECIPE = "teachers=40,classes=3,queries=80,agreement=0.75"
WEIGHTS = PriorWeights((0, 6, 12))


@pytest.fixture
def guessed():
    return made_up_sample(f"{RECIPE},prior=0.9,seed=1")[0]


def test_made_up_guesses_leave_the_votes_alone_and_are_as_often_right():
    plain, numbers = made_up_sample(RECIPE)
    sample, with_prior = made_up_sample(f"{RECIPE.replace('80', '4000')},prior=0.7,imbalance=1")
    assert with_prior == {**with_prior, "prior": 0.7}
    right = np.mean(sample.guesses.prior.values == sample.truth)
    assert right == pytest.approx(0.7, abs=0.04)  # five standard deviations
    again = made_up_sample(f"{RECIPE},prior=1")[0]
    np.testing.assert_array_equal(again.counts, plain.counts)
    np.testing.assert_array_equal(again.guesses.prior.values, plain.truth)
    assert "prior" not in numbers
    with pytest.raises(ParameterError, match="prior must be between 0 and 1"):
        made_up_sample(f"{RECIPE},prior=2")


def test_what_is_expected_is_agreement_with_the_teachers_alone(guessed):
    sample, setting, runs = guessed.under(12), Setting(30.0, 20.0, 9.0, 12), 3000
    own = guessed.counts.argmax(axis=1)
    assert (sample.counts.argmax(axis=1) != own).any()
    np.testing.assert_array_equal(sample.counts.sum(axis=1), 52)
    single = (guessed.counts == guessed.counts.max(axis=1, keepdims=True)).sum(axis=1) == 1
    assert single.all()
    noise, mechanism = RunKey.from_seed(0).rows(0, 1), sample.mechanism(setting)
    assert mechanism.prior_weight == 12
    labels = np.stack([mechanism.label(sample.counts, noise) for _ in range(runs)])
    expected = sample.yields(setting, 80)
    # A mean of 3,000 sums of 80 coins: off by 0.5 or more with chance < 1e-8.
    assert expected.agreeing == pytest.approx((labels == own).sum() / runs, abs=0.5)
    assert expected.correct <= (labels == sample.truth).sum() / runs + 0.5
    back = sample.under(0)
    assert back.yields(setting, 80) == guessed.yields(setting, 80)


def test_guesses_are_those_of_the_rows_and_a_missing_one_is_none():
    counts = np.array([[5, 1], [2, 4], [3, 3]])
    prior = a_prior(np.array([[0.0, 1.0], [0.75, 0.25]]), ids=[7, 9])
    sample = VoteSample(counts, 6, guesses=Guesses(prior, [(np.array([9, 7]), 0), ([8], 2)], 2))
    np.testing.assert_array_equal(sample.under(4).counts, [[8, 2], [2, 8], [3, 3]])
    assert sample.guesses.number == 2
    assert sample.under(4).thinned(2).alone.tolist() == [[5, 1], [3, 3]]
    with pytest.raises(ParameterError, match="no prior"):
        VoteSample(counts, 6).under(1)


@pytest.mark.parametrize(
    "goal",
    some(
        [
            Goal(target_epsilon=6.0, release=ReleaseKind.NONE, min_agreement=0.8),
            Goal(answers=30.0, min_agreement=0.8),
        ],
        2,
    ),
    ids=lambda goal: goal.release,
)
def test_the_best_is_that_of_a_search_at_every_weight(guessed, goal):
    grid = Grid((30.0,), (24.0,), (5.0, 8.0))
    each = {
        weight: Search(guessed.under(weight), grid, goal).run(extras=False).winner
        for weight in (0, 12)
    }
    found = PriorSearch(guessed, grid, goal, PriorWeights((12, 0))).run(extras=False)
    best = max(each.values(), key=lambda winner: winner.rank(goal))
    assert found.winner.rank(goal) == best.rank(goal)
    assert found.winner.setting.prior_weight > 0
    assert found.prior.without == each[0]
    described = found.to_dict()
    assert described["prior"]["weights"] == [0, 12]
    assert described["prior"]["without"]["meets_goal"] is True
    weight = found.winner.setting.prior_weight
    assert f"--prior PRIOR --prior-weight {weight} --max-queries" in found.command


def test_it_goes_between_weights_and_back_to_none_for_a_bad_prior(guessed, grid):
    goal = Goal(answers=30.0, release=ReleaseKind.NONE, min_agreement=0.8)
    wide = replace(Grid.for_teachers(40), free=(True, True, True))
    found = PriorSearch(guessed, wide, goal, PriorWeights.for_teachers(40)).run(extras=False)
    tried = found.prior.weights
    assert {0, 3, 6, 10, 13, 19, 26} < set(tried)
    bad = np.where(guessed.truth == 0, 1, 0)
    wrong = Guesses(a_prior(bad), [(np.arange(80), 0)], 3)
    sample = replace(guessed, guesses=wrong)
    heavy = PriorWeights((0, 30))
    found = PriorSearch(sample, grid, replace(goal, min_agreement=0.9), heavy).run(extras=False)
    assert found.winner.setting.prior_weight == 0
    assert "--prior" not in found.command


def test_what_nothing_meets_is_unreachable_and_what_only_the_prior_meets_is_not(guessed, grid):
    goal = Goal(answers=30.0, release=ReleaseKind.NONE, min_agreement=0.8)
    with_it = PriorSearch(guessed, grid, goal, WEIGHTS).run(extras=False)
    without = with_it.prior.without
    assert with_it.winner.epsilon < without.epsilon
    between = replace(goal, target_epsilon=(with_it.winner.epsilon + without.epsilon) / 2.0)
    found = PriorSearch(guessed, grid, between, WEIGHTS).run()
    assert found.winner.epsilon <= between.target_epsilon
    assert found.prior.without.exact
    assert found.prior.without.epsilon > between.target_epsilon
    assert found.to_dict()["prior"]["without"]["meets_goal"] is False
    assert {point.setting.prior_weight for point in found.pareto} == {
        found.winner.setting.prior_weight
    }
    search = PriorSearch(guessed, grid, replace(goal, target_epsilon=0.01), WEIGHTS)
    with pytest.raises(UnreachableError, match="out of reach"):
        Ways([search]).run()
    assert search.floor > 0.01


@pytest.mark.parametrize(
    ("given", "message"),
    [([3.5], "whole numbers"), ([-1], "whole numbers"), ([0.2], "0.2 votes, or 20%")],
)
def test_weights_are_whole_votes(given, message):
    with pytest.raises(ParameterError, match=message):
        PriorWeights.for_teachers(40, given)
    assert PriorWeights.for_teachers(40, ["20%", 0, 8]).values == (0, 8)


def test_one_weight_needs_no_goal_and_several_do():
    grid = {"thresholds": [26, 36], "sigmas1": [24], "sigmas2": [8]}
    asked = {"synthetic": f"{RECIPE},prior=0.9", "release": "none", **grid}
    found = tune(prior_weights=[6], **asked)
    assert found.winner is None
    assert {point["prior_weight"] for point in found.to_dict()["pareto"]} == {6}
    with pytest.raises(UsageError, match="needs one of `prior_weights`"):
        tune(**asked)
    with pytest.raises(UsageError, match="goes with `prior`"):
        tune(synthetic=RECIPE, prior_weights=[6], target_epsilon=1)
    with pytest.raises(UsageError, match="`prior` needs VOTES"):
        tune(synthetic=RECIPE, prior=[0, 1], target_epsilon=1)


@pytest.mark.parametrize("calls", [9, 14])
def test_after_an_interruption_the_best_so_far_is_known(guessed, grid, calls):
    goal = Goal(answers=30.0, release=ReleaseKind.NONE, min_agreement=0.8)
    search, told = PriorSearch(guessed, grid, goal, WEIGHTS), 0

    def progress(done):
        nonlocal told
        told += done
        if told >= calls:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search.run(progress)
    found = search.best_so_far()
    assert found.winner.meets(goal)
    assert not found.complete
    assert calls <= search.steps
