"""The public rule: settings that are likely to pass, by public numbers alone."""

import numpy as np
import pytest

import pate_cli as pate
from pate_cli.core.errors import UnreachableError
from pate_cli.core.words import Bound, MechanismName
from pate_cli.disclosure.target import TargetPlan
from pate_cli.mechanisms.lnmax import LNMax
from pate_cli.planning.forecast import forecast, rows_within, worst_case_epsilon
from pate_cli.planning.rule import SEARCHED_ROWS, choose, public_goal, rows_for
from pate_cli.planning.search import LEAST_CHANCE
from pate_cli.planning.vote_model import like, made_up
from slices import some

CONFIDENT, GNMAX = MechanismName.CONFIDENT, MechanismName.GNMAX


def ruled(teachers, classes, epsilon, delta=1e-5, *, name=CONFIDENT, asked=None, **given):
    target = TargetPlan.of(epsilon, delta=delta)
    votes = made_up(teachers=teachers, classes=classes, rows=SEARCHED_ROWS)
    return choose(public_goal(votes, target, available=2000, asked=asked), name, **given)


@pytest.mark.parametrize(
    ("teachers", "classes", "epsilon", "delta"),
    some(
        [
            (8, 2, 8.0, 1e-5),
            (25, 3, 2.0, 1e-5),
            (60, 2, 1.5, 1e-9),
            (100, 2, 1.0, 1e-5),
            (250, 2, 0.6, 1e-5),
            (1000, 2, 0.3, 1e-6),
            (40, 10, 4.0, 1e-5),
            (250, 40, 2.0, 1e-5),
        ],
        4,
    ),
)
def test_what_it_picks_passes_nine_times_in_ten_in_the_middle(teachers, classes, epsilon, delta):
    found = ruled(teachers, classes, epsilon, delta)
    assert vars(found) == vars(ruled(teachers, classes, epsilon, delta))  # always the same
    assert found.rows > 0
    assert found.likely
    target = TargetPlan.of(epsilon, delta=delta)
    votes = made_up(teachers=teachers, classes=classes, rows=1500)
    expected = forecast(votes, found.mechanism, target, rows=found.rows, rough=True)
    assert expected.at(expected.middle)["pass_probability"] >= LEAST_CHANCE
    # Nobody has more votes than there are teachers.
    assert (found.settings.threshold or 0.0) <= 1.1 * teachers


def test_where_not_even_one_row_is_likely_it_says_so():
    given = {"threshold": 4.0, "sigma1": 0.2, "sigma2": 0.2}
    assert not ruled(5, 2, 0.5, given=given).likely


def test_a_target_that_no_test_can_keep_is_met_by_noise():
    found = ruled(1000, 3, 0.02, name=GNMAX)
    assert not TargetPlan.of(0.02, delta=1e-5).reachable
    assert found.settings.threshold is None
    assert found.likely
    assert worst_case_epsilon(found.mechanism, rows=found.rows, delta=1e-5) <= 0.02


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("epsilon", (0.02, 0.1, 0.4, 1.0, 4.0)),
        ("teachers", (3, 10, 40, 160)),
        ("asked", (5000, 500, 50, 5, 1)),
    ],
)
def test_more_epsilon_more_teachers_and_fewer_rows_put_nothing_out_of_reach(name, values):
    asked, reached = {"teachers": 60, "epsilon": 1.0, "asked": 40}, []
    for value in values:
        given = {**asked, name: value, "classes": 2}
        reached.append(any(ruled(**given, name=each).likely for each in (CONFIDENT, GNMAX)))
    assert reached == sorted(reached)
    assert reached[-1]


@pytest.mark.parametrize(
    ("teachers", "classes", "epsilon", "queries"),
    some([(30, 2, 1.5, 40), (1000, 3, 0.03, 50), (12, 2, 0.05, 9), (100, 10, 1.0, 300)], 2),
)
def test_a_plan_and_a_run_agree(teachers, classes, epsilon, queries):
    """The run takes the settings that the plan prints, and starts where the plan has a line."""
    planned = pate.plan(teachers=teachers, classes=classes, queries=queries, target_epsilon=epsilon)
    votes = np.zeros((queries, classes), dtype=np.int64)
    votes[:, 0] = teachers
    shape = {"layout": "counts", "teachers": teachers, "classes": classes, "record": False}
    try:
        run = pate.quote(votes, target_epsilon=epsilon, **shape).to_dict()
    except UnreachableError:
        assert planned.frankly
        return
    assert planned.command is not None
    settings = planned.forecast.settings.parameters
    assert {name: run["mechanism"][name] for name in settings} == settings
    assert run["queries"] == planned.settings["max_queries"]


@pytest.mark.parametrize("name", ["threshold", "sigma1", "sigma2"])
def test_what_is_given_stays(name):
    found = ruled(60, 2, 2.0, asked=17, given={name: 21.0})
    assert found.settings.parameters[name] == 21.0
    assert found.rows == 17
    assert found.settings.threshold is not None


@pytest.mark.parametrize("bound", [Bound.TWO_TAIL, Bound.AUTO])
def test_rows_follow_for_mechanisms_with_settings_of_their_own(bound):
    mechanism = LNMax(100, 3, laplace_scale=60.0)
    target = TargetPlan.of(2.0, delta=1e-5, bound=bound)
    votes = like(mechanism, rows=SEARCHED_ROWS)
    found = rows_for(public_goal(votes, target, available=500), mechanism)
    assert max(rows_within(mechanism, target, most=500), 1) <= found.rows <= 500
    assert found.mechanism is mechanism
    assert found.chance >= LEAST_CHANCE
