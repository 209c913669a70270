"""Plans before the first vote: what was left out is found, and what is printed runs."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import pate_cli as pate
from pate_cli.core.errors import ParameterError, UnreachableError, UsageError
from pate_cli.core.words import MechanismName
from pate_cli.planning.plan import Question, least_epsilon, plan, points
from refusals import refusal

FIFTY = Question(2, 50, 2.0, queries=40)


def test_expectations_are_those_of_the_forecast_and_a_command_comes_with_them():
    planned = plan(FIFTY)
    assert planned.meets_goal
    low, middle, high = planned.by_agreement
    assert low["answers"] <= middle["answers"] <= high["answers"]
    assert planned.answers == middle["answers"] > 10
    assert planned.command.startswith("pate aggregate VOTES --mechanism confident --threshold ")
    assert json.loads(planned.to_json())["found"] == "answers"
    assert "about" in repr(planned)


@pytest.mark.parametrize(("name", "low", "high"), [("teachers", 10, 60), ("epsilon", 0.3, 2.0)])
def test_teachers_and_epsilon_are_found(name, low, high):
    found = plan(replace(FIFTY, answers=20, **{name: None}))
    assert found.meets_goal
    assert low <= getattr(found.known, name) <= high


def test_the_least_target_falls_with_teachers_and_not_with_queries():
    found = [least_epsilon(Question(3, number, 1.0)) for number in (10, 100, 5000)]
    assert found == sorted(found, reverse=True)
    assert found[-1] < 0.01
    for queries in (1, 1000):
        assert least_epsilon(Question(3, 100, 1.0, queries=queries)) == found[1]


@pytest.mark.parametrize("teachers", [30, 300])
def test_at_the_least_target_there_is_an_answer(teachers):
    least = math.ceil(1000 * least_epsilon(Question(2, teachers, 1.0))) / 1000
    found = plan(Question(2, teachers, 1.01 * least, queries=1, mechanism=MechanismName.GNMAX))
    assert found.likely
    assert found.forecast.rows == 1


def test_out_of_reach():
    line = refusal(UnreachableError, plan, Question(2, 3, None, 2000, 2000))
    assert line == "even epsilon 50 cannot give 2000 answers"


@pytest.mark.parametrize(
    ("given", "kind", "line"),
    [
        (
            {"teachers": None, "epsilon": None},
            UsageError,
            "are missing, but a plan can find only one number; give two",
        ),
        ({"classes": 1}, ParameterError, "`classes` must be at"),
        ({"epsilon": 0.0}, ParameterError, "`target_epsilon`"),
        ({"teachers": 0}, ParameterError, "teachers"),
        ({"answers": 41}, UsageError, "there are only 40 rows"),
    ],
)
def test_bad_questions_are_refused_in_one_line(given, kind, line):
    assert line in refusal(kind, replace, FIFTY, **given)


def test_points_for_a_picture_lie_around_the_plan():
    """Teachers of given weights are as many as they are; others are looked at in five numbers."""
    found = points(plan(replace(FIFTY, weights=(1,) * 50, levels=(0.8,))))
    assert {number for number, _, _ in found} == {50}
    epsilons, answers = [each for _, each, _ in found], [each for _, _, (each,) in found]
    assert (epsilons[0], epsilons[-1]) == (1.0, 4.0)
    assert answers[0] < answers[-1]


# --- voters who vote on few queries ---------------------------------------------------------------

ASKED = {"classes": 10, "target_epsilon": 1.0, "mechanism": "gnmax"}
TOO_FEW = "teachers are too few for labels that are mostly right"


def voters(**asked):
    return pate.plan(**{**ASKED, **asked})


def test_the_same_votes_are_of_no_use_on_many_queries_and_of_use_on_few():
    thousand = {"teachers": 1000, "votes_per_teacher": 20}
    thin, thick = (voters(**thousand, queries=queries) for queries in (4000, 200))
    for found, votes, right in ((thin, 5, 0.133), (thick, 100, 0.972)):
        assert found.votes_per_query == votes
        assert found.labels_right["0.8"] == pytest.approx(right, abs=0.01)
    assert thin.epsilon == thick.epsilon <= 1.0
    told = dict(thin.said()[1].rows)
    assert told["enough for"].startswith(f"{thin.enough_for} queries")
    assert told["rule of thumb"].startswith(f"{thin.rule_of_thumb} votes on a query")
    alone = voters(**thousand)
    assert alone.queries == thin.enough_for == alone.enough_for
    assert alone.labels_right["0.8"] >= 0.95


@pytest.mark.parametrize(("votes", "epsilon"), [(5, 2.0), (40, 0.5), (100, 3.0)])
def test_the_rule_of_thumb(votes, epsilon):
    found = voters(teachers=5000, votes_per_teacher=votes, target_epsilon=epsilon)
    needed = 5000 * votes / found.enough_for
    assert found.rule_of_thumb == math.ceil(22.0 * math.sqrt(votes) / found.epsilon)
    assert 0.8 <= found.rule_of_thumb / needed <= 1.25


def test_labels_are_right_as_often_as_it_says():
    found = voters(teachers=60, votes_per_teacher=30, queries=40, target_epsilon=3.0, classes=4)
    random = np.random.default_rng(5)
    right = random.random((20_000, found.votes_per_query)) < 0.8
    votes = np.where(right, 0, random.integers(1, 4, right.shape))
    counts = np.stack([(votes == label).sum(axis=1) for label in range(4)], axis=1)
    labels = np.argmax(counts + found.sigma2 * random.normal(size=counts.shape), axis=1)
    assert found.labels_right["0.8"] == pytest.approx(np.mean(labels == 0), abs=0.02)


@pytest.mark.parametrize(
    ("teachers", "votes", "target"),
    [(20, 20, 1.0), (100, 2, 1e-9), (100, 2, 5e-324), (1000, 2**31, 1.0)],
)
def test_too_few_voters_are_told_so(teachers, votes, target):
    """With 2^31 votes, an array with an entry for every possible vote would take over 100 GB."""
    asked = {"teachers": teachers, "votes_per_teacher": votes, "target_epsilon": target}
    assert refusal(UnreachableError, voters, **asked).startswith(f"{teachers} {TOO_FEW}")


def test_any_number_of_votes_takes_no_memory_in_a_session():
    given = {"teachers": 300, "classes": 3, "mechanism": "gnmax", "sigma2": 20.0, "record": False}
    with pate.Session(**given, votes_per_teacher=2**31, target_epsilon=1.0) as session:
        assert 10 < session.remaining < 100


@pytest.mark.parametrize(("target", "told"), [(1e-9, "epsilon 0 "), (0.0003, "epsilon 0.0003 ")])
def test_a_small_epsilon_is_not_rounded_to_zeros(target, told):
    """With so much noise that no event differs by more than delta, epsilon is 0 and not nearly."""
    found = voters(teachers=1000, votes_per_teacher=20, queries=50, target_epsilon=target)
    assert told in found.headline()
    assert found.epsilon <= target


@pytest.mark.parametrize(("assigned", "teachers"), [(False, 60), (True, 10)])
def test_its_command_costs_what_it_says(assigned, teachers):
    told = {"teachers": 60, "votes_per_teacher": 3, "classes": 3, "assigned": assigned}
    found = voters(**told, queries=20)
    asked = {**told, "teachers": teachers, "sigma2": found.sigma2}
    quote = pate.quote(np.full((20, 60), -1), "gnmax", layout="labels", **asked)
    assert quote.epsilon == found.epsilon
    assert f"--sigma2 {found.sigma2:g}" in found.command
    assert f"--teachers {teachers} " in found.command
    assert ("--assigned" in found.command) == assigned


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"target_epsilon": None}, "needs `classes`, `teachers` and `target_epsilon`"),
        ({"mechanism": "confident"}, "needs `mechanism` gnmax"),
        ({"answers": 5}, "give either `votes_per_teacher` or `answers`"),
        ({"teacher_epsilon": 1.0}, "contradict each other"),
    ],
)
def test_what_is_not_planned_for_voters_is_refused(asked, told):
    given = {"teachers": 100, "votes_per_teacher": 5, **asked}
    assert told in refusal(UsageError, voters, **given)
