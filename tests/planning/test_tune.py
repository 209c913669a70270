"""The search for settings: what it finds keeps its goal when a run of it is priced anew."""

import numpy as np
import pytest

from pate_cli.core.errors import UnreachableError
from pate_cli.core.words import MechanismName, ReleaseKind
from pate_cli.disclosure.target import TargetPlan
from pate_cli.planning.forecast import forecast
from pate_cli.planning.goal import Goal
from pate_cli.planning.search import Candidate, Search, Tuning
from pate_cli.planning.synthetic import SyntheticEnsemble
from pate_cli.planning.tune import tune
from pate_cli.planning.vote_model import VoteModel

TEST = {"threshold": 40.0, "sigma1": 20.0}  # A search for the noise of answers alone is shorter.
TARGET, NONE, UPPER = ReleaseKind.TARGET, ReleaseKind.NONE, ReleaseKind.UPPER


def votes_of(classes=2, *, teachers=60, queries=120, agreement=0.85, prior=None, k=1):
    counts, truth = SyntheticEnsemble(teachers, classes, queries, agreement).draw(3)
    guesses = None
    if prior is not None:
        wrong = np.random.default_rng(1).random(queries) >= prior
        guesses = (truth + wrong) % classes
    return VoteModel(counts, teachers, teachers_per_record=k, guesses=guesses)


def tuned(votes, *kinds, floor=0.8, given=None, mechanism=None, **goal):
    goals = [Goal(kind, min_agreement=floor, **goal) for kind in kinds]
    return tune(votes, goals, given=given, mechanism=mechanism)


def exact(votes, found, target):
    """The forecast of the very settings that were found, by exact costs."""
    told = found.best.forecast
    return forecast(votes, told.mechanism, target, rows=told.rows)


def test_a_tested_target_gives_what_it_says():
    votes = votes_of(2, teachers=40, queries=60)
    found = tuned(votes, TARGET, epsilon=1.5, given={"threshold": 24.0, "sigma1": 16.0})
    told, priced = found.best.forecast, exact(votes, found, TargetPlan.of(1.5, delta=1e-5))
    assert told.pass_probability[0] == pytest.approx(priced.pass_probability[0], abs=0.02)
    assert told.answers[0] == pytest.approx(priced.answers[0], rel=1e-9)
    assert told.agreement[0] == pytest.approx(priced.agreement[0], abs=1e-9)
    assert told.agreement[0] >= 0.8
    assert told.pass_probability[0] > 0.5


def test_the_least_target_for_answers_gives_them_and_less_does_not():
    votes = votes_of()
    found = tuned(votes, TARGET, answers=40, given=TEST)
    epsilon = found.best.forecast.epsilon
    assert found.best.stated["refusal_epsilon"] == epsilon  # the least ε leaves nothing over
    target = TargetPlan.of(epsilon, delta=1e-5, refusal_epsilon=epsilon)
    assert exact(votes, found, target).expected_answers[0] >= 0.99 * 40
    less = tuned(votes, TARGET, epsilon=0.95 * epsilon, given=TEST)
    assert less.best.forecast.expected_answers[0] < 40


@pytest.mark.parametrize("goal", [{"epsilon": 4.0}, {"answers": 30}])
def test_a_worst_case_holds_whatever_the_votes(goal):
    found = tuned(votes_of(4), NONE, **goal)
    told, cap = found.best.forecast, found.best.stated.get("max_answers")
    assert told.epsilon == told.worst_case <= goal.get("epsilon", 50.0)
    assert told.pass_probability[0] == 1.0
    assert told.answers[0] >= goal.get("answers", 1) * (1 - 1e-9)
    assert cap is None or told.answers[0] <= cap < told.rows


@pytest.mark.parametrize("goal", [{"epsilon": 5.0}, {"answers": 20}])
def test_a_sanitized_epsilon_is_two_deviations_above_its_mean(goal):
    found = tuned(votes_of(2, queries=60), UPPER, mechanism=MechanismName.GNMAX, **goal)
    told, stated = found.best.forecast, found.best.stated
    assert stated["release"] == UPPER
    assert told.epsilon <= min(goal.get("epsilon", 50.0), told.worst_case)
    assert told.answers[0] >= goal.get("answers", 1)
    # What a command prints is what was priced.
    drawn = [stated[name] for name in ("order", "beta", "sigma_release")]
    assert {float(f"{x:.3g}") == x for x in drawn} == {True}


def test_floors_on_agreement_are_kept_and_cost_answers():
    votes = votes_of(4, agreement=0.6)
    low, high = (
        tuned(votes, NONE, epsilon=3.0, floor=floor, given=TEST).best.forecast
        for floor in (0.6, 0.9)
    )
    assert high.agreement[0] >= 0.9
    assert low.answers[0] > high.answers[0]


def test_the_better_release_wins_and_the_others_are_told():
    found = tuned(votes_of(), TARGET, NONE, epsilon=3.0, given={"sigma2": 15.0})
    assert found.best.merit == max(each.merit for each in (found.best, *found.others))
    kinds = [(x.goal.release, x.settings.mechanism_name) for x in (found.best, *found.others)]
    assert len(set(kinds)) == len(kinds)


def test_a_prior_is_weighed():
    votes, goal = (
        votes_of(4, queries=60, agreement=0.6, prior=0.95),
        {"epsilon": 3.0, "floor": 0.85},
    )
    free, without, fixed = (
        tuned(votes, NONE, **goal, given=TEST | weight).best
        for weight in ({}, {"prior_weight": 0}, {"prior_weight": 12})
    )
    assert free.settings.prior_weight > without.settings.prior_weight == 0
    assert fixed.settings.prior_weight == 12
    assert free.forecast.answers[0] >= without.forecast.answers[0]


def test_a_prior_of_probabilities_is_weighed_as_a_run_weighs_it():
    counts = np.array([[6, 3, 1], [2, 2, 6]])
    shares = np.array([[0.5, 0.3, 0.2], [0.0, 0.0, 0.0]])
    votes = VoteModel(counts, 10, guesses=shares).with_prior_weight(5)
    assert votes.counts.tolist() == [[6 + 3, 3 + 1, 1 + 1], [2, 2, 6]]


def test_what_is_given_stays_as_it_is():
    given, goal = (
        {"threshold": 40.0, "sigma1": 30.0, "sigma2": 12.0},
        {"epsilon": 8.0, "floor": 0.5},
    )
    assert tuned(votes_of(), NONE, **goal, given=given).best.settings == Tuning(40.0, 30.0, 12.0)
    found = tuned(votes_of(), NONE, **goal, mechanism=MechanismName.GNMAX)
    assert found.best.settings.threshold is None


def test_several_votes_of_a_record_cost_more():
    one, two = (tuned(votes_of(k=k), TARGET, epsilon=1.0, given=TEST).best.forecast for k in (1, 2))
    assert two.mechanism.teachers_per_record == 2
    assert two.expected_answers[0] < one.expected_answers[0]


def test_what_is_out_of_reach_says_what_comes_closest():
    with pytest.raises(UnreachableError, match=r"no settings give 500 expected answers"):
        tuned(votes_of(), NONE, answers=500)
    hard = votes_of(10, teachers=20, queries=30, agreement=0.3)
    with pytest.raises(UnreachableError, match=r"at least 100% of which equal the plurality"):
        tuned(hard, NONE, epsilon=0.05, floor=1.0)


@pytest.mark.parametrize("after", [1, 200])
def test_an_interruption_leaves_the_best_so_far(monkeypatch, after):
    seen, told = [], []

    def interrupt(looked_at):
        seen.append(looked_at)
        if sum(seen) > after:
            seen[:] = [-(10**6)]
            raise KeyboardInterrupt

    goals = [Goal(kind, epsilon=3.0, min_agreement=0.5) for kind in (NONE, TARGET)]
    found = tune(votes_of(), goals, progress=interrupt, interrupted=lambda: told.append(1))
    assert (found.complete, told) == (False, [1])
    assert found.best.forecast.epsilon <= 3.0
    monkeypatch.setattr(Search, "run", lambda *_, **__: interrupt(10**9))
    seen.clear()
    with pytest.raises(KeyboardInterrupt):
        tune(votes_of(), goals)


def candidate(settings, merit, **more):
    return Candidate(settings.mechanism(teachers=100, classes=2), merit, 1, **more)


def test_the_search_goes_to_the_best_and_meets_floors_first():
    """The best settings of this goal are known: T 60, σ1 30, σ2 10."""
    wanted = {"threshold": 60.0, "sigma1": 30.0, "sigma2": 10.0}

    def look(settings, _near):
        values = [[np.log(wanted[name] / x) for name, x in s.parameters.items()] for s in settings]
        return [
            candidate(s, -np.square(off).sum()) for s, off in zip(settings, values, strict=True)
        ]

    search = Search(look, votes=100)
    best = search.run(search.starts(MechanismName.CONFIDENT), strides=3, halvings=4).settings
    assert best.threshold == pytest.approx(60.0, rel=0.03)
    assert best.sigma2 == pytest.approx(10.0, rel=0.03)
    held = candidate(Tuning(50.0, 30.0, 10.0), -1.0)
    missed = candidate(Tuning(60.0, 30.0, 10.0), 0.0, holds=False)
    search.seen = {each.settings: each for each in (held, missed)}
    assert search.best is held
