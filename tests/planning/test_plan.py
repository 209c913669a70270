"""Plans before the first vote: what was left out is found, and what is printed runs."""

import json
import math
from dataclasses import replace

import pytest

from pate_cli.core.errors import ParameterError, UnreachableError, UsageError
from pate_cli.core.words import MechanismName
from pate_cli.planning.plan import Question, least_epsilon, plan, points
from refusals import refusal

FIFTY = Question(2, 50, 2.0, queries=40)


@pytest.fixture(scope="module")
def planned():
    return plan(FIFTY)


def test_expectations_are_those_of_the_forecast_and_a_command_comes_with_them(planned):
    assert planned.likely
    assert planned.meets_goal
    low, middle, high = planned.by_agreement
    assert low["answers"] <= middle["answers"] <= high["answers"]
    assert planned.answers == middle["answers"] > 10
    assert planned.command.startswith("pate aggregate VOTES --mechanism confident --threshold ")
    assert json.loads(planned.to_json())["found"] == "answers"
    assert "about" in repr(planned)


def test_teachers_and_epsilon_are_found():
    teachers = plan(Question(2, None, 2.0, 20, 40))
    assert teachers.meets_goal
    assert 10 <= teachers.known.teachers <= 60
    epsilon = plan(Question(2, 50, None, 20, 40))
    assert epsilon.meets_goal
    assert 0.3 <= epsilon.known.epsilon <= 2.0


def test_the_least_target_falls_with_teachers_and_not_with_queries():
    found = [least_epsilon(Question(3, number, 1.0)) for number in (10, 30, 100, 1000, 5000)]
    assert found == sorted(found, reverse=True)
    assert found[-1] < 0.01
    for queries in (1, 1000):
        assert least_epsilon(Question(3, 100, 1.0, queries=queries)) == found[2]


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
        ({"classes": 2}, UsageError, "are missing, but a plan can find only one number; give two"),
        ({"classes": 1, "teachers": 9, "epsilon": 1.0}, ParameterError, "`classes` must be at"),
        ({"classes": 2, "teachers": 9, "epsilon": 0.0}, ParameterError, "`target_epsilon`"),
        ({"classes": 2, "teachers": 0, "epsilon": 1.0}, ParameterError, "teachers"),
        (
            {"classes": 2, "teachers": 9, "answers": 9, "queries": 5},
            UsageError,
            "there are only 5 rows",
        ),
    ],
)
def test_bad_questions_are_refused_in_one_line(given, kind, line):
    assert line in refusal(kind, Question, **given)


def test_points_for_a_picture_lie_around_the_plan():
    """Teachers of given weights are as many as they are; others are looked at in five numbers."""
    found = points(plan(replace(FIFTY, weights=(1,) * 50, levels=(0.8,))))
    assert {number for number, _, _ in found} == {50}
    epsilons, answers = [each for _, each, _ in found], [each for _, _, (each,) in found]
    assert (epsilons[0], epsilons[-1]) == (1.0, 4.0)
    assert answers[0] < answers[-1]
