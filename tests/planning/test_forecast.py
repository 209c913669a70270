"""`pate_cli.planning.forecast`: what is said of a run before it spends is what happens to runs."""

import contextlib
import itertools

import numpy as np
import pytest

import pate_cli as pate
from forecasts.table import SETTINGS, SUITE, asked_rows, compare, truth
from pate_cli.core.words import Bound
from pate_cli.disclosure.target import TargetPlan
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.mechanisms.gnmax import GNMax
from pate_cli.mechanisms.lnmax import LNMax
from pate_cli.planning.forecast import (
    forecast,
    public_forecast,
    what_would_pass,
    worst_case_epsilon,
)
from pate_cli.planning.query_costs import pass_probabilities, quick_costs
from pate_cli.planning.search import Tuning
from pate_cli.planning.vote_model import VoteModel, made_up
from slices import EVERY

CONFIDENT, OF_TWO = (
    ConfidentGNMax(60, classes, threshold=48.0, sigma1=30.0, sigma2=12.0) for classes in (4, 2)
)


@pytest.mark.parametrize("setting", SETTINGS if EVERY else SUITE)
def test_forecasts_are_the_frequency_of_passing(setting):
    found = compare(setting, files=300 if EVERY else 100)
    assert abs(found["off"]) <= 0.02 + 3.0 * found["error_of_truth"]


def test_counted_runs_pass_as_often_as_the_truth_of_the_table_says():
    setting, number = SUITE[3], 120
    rows = asked_rows(setting)
    shape = {"layout": "counts", "classes": setting.classes, "teachers": setting.votes}
    asked = {"target_epsilon": setting.epsilon, "delta": setting.delta, "bound": setting.bound}
    asked |= {**shape, "min_pass": 0.0, "max_queries": rows}
    passed = 0
    for seed in range(number):
        with contextlib.suppress(pate.RefusedError):
            pate.aggregate(setting.draw(rows, 5000 + seed), setting.build(), seed=seed, **asked)
            passed += 1
    chance, _ = truth(setting, rows)
    error = np.sqrt(chance * (1.0 - chance) / number)
    assert abs(passed / number - chance) <= 3.0 * error


@pytest.mark.parametrize(
    "mechanism",
    [
        OF_TWO,
        GNMax(60, 4, sigma2=12.0),
        LNMax(60, 4, laplace_scale=10.0),
    ],
    ids=lambda mechanism: mechanism.name,
)
def test_what_would_pass_does(mechanism):
    target, rows = TargetPlan.of(1.0, delta=1e-5), 5000
    assert public_forecast(mechanism, target, rows=rows, rough=True).best_chance < 0.5
    fewer, epsilon = what_would_pass(mechanism, target, rows=rows, least=0.5)
    assert (0 < fewer < rows, epsilon) == (True, 1.0)
    assert public_forecast(mechanism, target, rows=fewer).best_chance >= 0.5


@pytest.mark.parametrize(
    ("teachers", "epsilon", "settings", "rows"),
    [(8, 8.0, Tuning(2.78, 7.2, 3.11), 26), (12, 6.0, Tuning(None, None, 4.32), 22)],
)
def test_runs_whose_rows_all_cost_the_same_are_forecast_by_their_mean(
    teachers, epsilon, settings, rows
):
    """A regression on costs that hardly differ once said 0 where .98 is true."""
    target = TargetPlan.of(epsilon, delta=1e-5)
    for model_rows in (450, 1500):
        votes = made_up(teachers=teachers, classes=2, rows=model_rows)
        found = forecast(votes, votes.mechanism(settings), target, rows=rows)
        assert found.at(found.middle)["least_pass_probability"] >= 0.98


def test_what_no_votes_could_cost_passes_without_a_test():
    mechanism = GNMax(1000, 3, sigma2=4000.0)
    for epsilon, rows in itertools.product((0.01, 0.02, 0.03, 0.05), (1, 50)):
        found = public_forecast(mechanism, TargetPlan.of(epsilon, delta=1e-5), rows=rows)
        surely = worst_case_epsilon(mechanism, rows=rows, delta=1e-5) <= epsilon
        assert found.tested is not surely
        if surely:
            assert (found.pass_probability.min(), found.refusal_epsilon) == (1.0, 0.0)
            assert found.epsilon <= epsilon


def test_worst_and_best_have_names():
    found = public_forecast(OF_TWO, TargetPlan.of(1.0, delta=1e-5), rows=120)
    named = found.named_chances()
    worst, best = named["worst"], named["best"]
    assert found.pass_probability.min() == worst["chance"] < named["mean"] < best["chance"]
    assert worst["agreement"] < best["agreement"]


def test_expected_labels_of_a_file_are_those_of_its_first_rows():
    counts = np.array([[60, 0, 0, 0], [30, 30, 0, 0], [20, 20, 10, 10], [55, 5, 0, 0]])
    votes, target = VoteModel(counts, 60), TargetPlan.of(9.0, delta=1e-5)
    found = forecast(votes, CONFIDENT, target, rows=2)
    assert found.answers[0] == pytest.approx(CONFIDENT.answer_chance(counts)[:2].sum())
    assert forecast(votes, CONFIDENT, target, rows=4, max_answers=1).answers[0] <= 1.0


def test_agreement_is_with_the_teachers_and_not_with_the_prior():
    """A prior that has more votes than the teachers decides, and they do not agree with it."""
    counts = np.array([[40, 20, 0, 0]])
    votes = VoteModel(counts, 60, guesses=np.array([1]))
    mechanism = Tuning(None, None, 3.0, 100).mechanism(teachers=60, classes=4)
    found = forecast(votes, mechanism, TargetPlan.of(9.0, delta=1e-5), rows=1)
    assert found.agreement[0] < 0.01


@pytest.mark.parametrize(
    ("teachers", "classes", "shares"),
    [
        (40, 3, (0.8, 0.6, 0.27)),
        (60, 2, (0.9, 0.7, 0.3)),
        (75, 5, (1.06, 0.7, 0.27)),
        (80, 10, (0.9, 0.5, 0.25)),
        (60, 3, (None, None, 0.27)),
    ],
)
def test_quick_costs_are_those_of_the_accountant_within_a_few_per_cent(teachers, classes, shares):
    """The public rule believes them: in total, from the votes to twelve votes away."""
    settings = Tuning(*(share and share * teachers for share in shares))
    votes = made_up(teachers=teachers, classes=classes, rows=300)
    target = TargetPlan.of(2.0, delta=1e-5, bound=Bound.CONDITIONAL)
    (quick,) = quick_costs(votes, [settings], target, bound=Bound.CONDITIONAL)
    mechanism, middle = votes.mechanism(settings), len(quick.orders) // 2
    order = float(quick.orders[middle])
    found, places = np.unique(mechanism.vote_states(votes.counts), axis=0, return_inverse=True)
    exact = mechanism.state_costs(found, order=order, distances=np.array([0, 1, 2, 4, 7, 11]))
    weights = votes.row_weights.mean(axis=0)
    exact = exact @ np.bincount(places.reshape(-1), weights)
    ratio = exact / (quick.costs[middle, :6] @ weights)
    assert np.all((ratio[1:] > 0.94) & (ratio[1:] < 1.04)), ratio
    worst = mechanism.worst_rdp(queries=1, answers=1, orders=quick.orders) / quick.worst
    assert np.all((worst > 1.0 / 1.4) & (worst < 1.4)), worst


def test_several_costs_together_pass_as_often_as_each_alone():
    votes = made_up(teachers=60, classes=3, rows=200)
    target = TargetPlan.of(1.0, delta=1e-5)
    tried = [Tuning(48.0, 30.0, 12.0), Tuning(None, None, 20.0)]
    costs = quick_costs(votes, tried, target, bound=Bound.CONDITIONAL)
    asked = [(costs[0], np.array([20, 40, 80])), (costs[1], np.array([5, 10]))]
    together = pass_probabilities(target, asked)
    for (each, rows), found in zip(asked, together, strict=True):
        np.testing.assert_allclose(found, each.pass_probability(target, rows), rtol=1e-12)
