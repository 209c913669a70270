"""`pate_cli.planning.solve`: what was left out of a question."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from pate_cli.core.errors import ParameterError, UnreachableError, UsageError
from pate_cli.mechanisms.amounts import Amount
from pate_cli.planning import solve as solving
from pate_cli.planning.ensembles import Agreement
from pate_cli.planning.question import Question
from pate_cli.planning.solve import POINTS, points, solve
from slices import EVERY, some, whole

SMALL = {"classes": 3, "queries": 60, "range": Agreement(0.8, 0.8)}


@pytest.fixture(scope="module")
def answers():
    return solve(Question(teachers=50, epsilon=2.0, **SMALL))


def test_answers_for_a_budget(answers):
    assert answers.question.unknown == "answers"
    assert answers.levels == (0.8,)
    assert 15 <= answers.answers <= answers.queries <= 60
    assert answers.frankly() is None
    assert answers.releasable
    assert not answers.secret
    said = json.loads(answers.to_json())
    assert said["answers"] == round(answers.answers, 1)
    assert said["settings"]["queries"] == answers.queries
    assert "--target-epsilon 2 " in said["command"]
    assert answers.columns()["answers"].shape == (1,)
    assert "50 teachers" in answers.headline()


def test_teachers_for_a_goal(answers):
    goal = math.floor(answers.answers)
    found = solve(Question(epsilon=2.0, answers=goal, **SMALL))
    assert found.meets_goal
    assert found.answers >= goal
    assert 35 <= found.known.teachers <= 60
    assert set(found.needed) == {0.8}


def test_epsilon_for_a_goal(answers):
    goal = math.floor(answers.answers)
    found = solve(Question(teachers=50, answers=goal, **SMALL))
    assert found.meets_goal
    assert 1.4 <= found.known.epsilon <= 2.3


def test_teachers_that_agree_less_need_to_be_more():
    found = solve(
        Question(classes=3, queries=60, epsilon=2.0, answers=25, range=Agreement(0.6, 0.95))
    )
    low, middle, high = found.needed.values()
    assert low >= middle >= high
    assert middle == found.known.teachers


def test_all_three_are_looked_at_together(answers):
    found = solve(Question(teachers=50, epsilon=2.0, answers=55, **SMALL))
    assert not found.meets_goal
    assert found.frankly().startswith("50 teachers carry ")
    assert ", not 55" in found.frankly()


def test_where_it_is_hopeless_it_says_so():
    found = solve(Question(classes=10, teachers=15, epsilon=1.0, queries=500))
    more, carried = found.more
    assert found.answers < 10
    assert carried > 4 * found.answers
    assert f"15 teachers carry {math.floor(found.answers)} answers" in found.frankly()
    assert found.frankly().endswith(f"{more} would carry {math.floor(carried)}")


def test_whole_queries_of_several_labels():
    found = solve(Question(classes=2, labels=14, teachers=100, epsilon=3.0, queries=50))
    assert found.queries <= 50
    assert found.chosen.queries <= 50 * 14
    assert f"--max-queries {found.queries} " in found.command


def test_teachers_with_weights_and_a_prior():
    weights = (2,) * 10 + (1,) * 60
    found = solve(
        Question(
            classes=3,
            teachers=sum(weights),
            weights=weights,
            teachers_per_record=2,
            epsilon=3.0,
            queries=100,
            prior_weight=Amount(0.2, share=True),
        )
    )
    assert found.chosen.setting.prior_weight == 16
    assert "--groups GROUPS" in found.command
    assert "--prior PRIOR --prior-weight 16" in found.command
    assert "70 teachers of 80 votes" in found.headline()


def test_no_number_of_teachers_answers_them_all(monkeypatch):
    if not EVERY:
        monkeypatch.setitem(solving._RANGE, "teachers", (3.0, 1600.0))
    with pytest.raises(UnreachableError, match="60 answers are out of reach"):
        solve(Question(classes=3, queries=60, answers=60, epsilon=0.5))


@pytest.mark.parametrize(
    ("given", "error", "line"),
    [
        ({"epsilon": 1.0}, UsageError, "`teachers` and `answers` are left out"),
        ({"teachers": 5}, UsageError, "`target_epsilon` and `answers` are left out"),
        ({"teachers": 5, "epsilon": -1.0}, ParameterError, "target_epsilon"),
        ({"teachers": 0, "epsilon": 1.0}, ParameterError, "`teachers` must be at least 1"),
        ({"teachers": 5, "epsilon": 1.0, "classes": 1}, ParameterError, "`classes`"),
        ({"teachers": 5, "epsilon": 1.0, "labels": 3}, UsageError, "several `labels`"),
        ({"teachers": 5, "epsilon": 1.0, "queries": 5, "answers": 6}, UsageError, "6 answers"),
        ({"teachers": 5, "epsilon": 1.0, "delta": 2.0}, ParameterError, "delta"),
        ({"teachers": 5, "epsilon": 1.0, "prior_accuracy": 2.0}, ParameterError, "accuracy"),
    ],
)
def test_questions_that_are_none(given, error, line):
    with pytest.raises(error, match=line):
        Question(**{"classes": 3, **given})


@whole
def test_points_of_a_picture():
    answers = solve(Question(teachers=50, epsilon=2.0, **(SMALL | {"classes": 2})))
    told = []
    found = points(answers, told.append)
    assert len(found) == len(told) == POINTS
    own = [point for point in found if point.teachers == 50]
    carried = np.array([point.answers[0] for point in sorted(own, key=lambda each: each.epsilon)])
    assert np.all(np.diff(carried) > -1.0)
    assert carried[-1] > 4 * carried[0]


@pytest.mark.parametrize("teachers", some([1, 3, 7, 20_000], 2))
def test_any_number_of_teachers(teachers):
    found = solve(Question(classes=2, teachers=teachers, epsilon=5.0, queries=5))
    assert 1 <= found.queries <= 5
    assert np.isfinite(found.answers)


def test_a_target_out_of_reach_is_no_plan():
    """Very many rows times the chance that nobody gets below would be answers, too."""
    with pytest.raises(UnreachableError, match="out of reach"):
        solve(Question(classes=10, teachers=250, epsilon=0.01))
