"""`pate_cli.tuning.settings` and `.goal`: grids, values as they are typed, and constraints."""

from __future__ import annotations

import itertools
import math

import pytest

from pate_cli.core.errors import ParameterError, UsageError
from pate_cli.core.words import Objective
from pate_cli.tuning import Goal, Grid, Setting, Yield
from pate_cli.tuning.settings import parse_values


def test_values_as_they_are_typed():
    def votes(text):
        return [value.votes(250) for value in parse_values("sigma1", text)]

    assert votes("3,1.5,20%") == [3.0, 1.5, 50.0]
    assert votes("100:200:5") == [100.0, 125.0, 150.0, 175.0, 200.0]
    assert votes("20%:40%:3") == [50.0, 75.0, 100.0]
    assert parse_values("sigma1", None) is None
    wrong = ("", "a", "1:2", "1:2:0", "1:2:x", "1,,2", "1,inf", "nan", "20%:40:3", "1:inf:2")
    for text in (*wrong, "0.5", "0.5:2:3"):
        with pytest.raises(UsageError, match="`sigma1` "):
            parse_values("sigma1", text)


def test_a_grid_is_sorted_and_checked():
    grid = Grid((3.0, 1.0, 3.0), (1.0,), (2.0,))
    assert (grid.thresholds, grid.shape, grid.size) == ((1.0, 3.0), (2, 1, 1), 2)
    assert grid.at((1, 0, 0)) == Setting(3.0, 1.0, 2.0)
    with pytest.raises(ParameterError, match="got 0"):
        Grid((1.0,), (0.0,), (2.0,))
    with pytest.raises(ParameterError, match="at least one value"):
        Grid((), (1.0,), (2.0,))
    with pytest.raises(ParameterError, match="threshold must be finite"):
        Grid((math.inf,), (1.0,), (2.0,))
    with pytest.raises(ParameterError, match="points"):
        Grid(*[tuple(range(1, 102))] * 3)


def test_the_default_grid_is_in_proportion_to_the_teachers():
    small, large = Grid.for_teachers(100), Grid.for_teachers(1000, sigmas1=(7.0,))
    assert large.thresholds == tuple(10.0 * value for value in small.thresholds)
    assert large.sigmas1 == (7.0,)


def test_places_of_a_grid():
    grid = Grid((1.0, 2.0, 3.0), (1.0,), tuple(float(value) for value in range(1, 10)))
    assert len(set(grid.places())) == grid.size == 27
    # Of nine values three, from the middle of each third.
    assert {place[2] for place in grid.places(3)} == {1, 4, 7}
    for place in itertools.product(range(3), range(1), range(9)):
        near = {other for other in grid.places() if max(map(_gap, place, other)) == 1}
        assert set(grid.around(place)) == near


def test_settings_without_a_test_are_a_row_of_their_own():
    grid = Grid((1.0, 2.0), (1.0,), (4.0, 6.0, 9.0), untested=True)
    assert len(set(grid.places())) == len(grid.places()) == grid.size == 9
    alone = [place for place in grid.places() if grid.at(place).threshold is None]
    assert [grid.at(place) for place in alone] == [Setting(None, None, s) for s in grid.sigmas2]
    # No step leads to a test, or from one to none.
    assert {near for place in alone for near in grid.around(place)} == set(alone)
    rest = set(grid.places()) - set(alone)
    assert all(set(grid.around(place)) <= rest for place in rest)
    assert all(grid.place_of(grid.at(place)) == place for place in grid.places())
    with pytest.raises(ParameterError, match="both its threshold and its sigma1"):
        Setting(None, 3.0, 4.0)
    # Whoever names a threshold wants the test.
    assert Grid.for_teachers(50, untested=True).untested
    assert not Grid.for_teachers(50, thresholds=(30.0,), untested=True).untested
    assert not Grid.for_teachers(50, sigmas1=(30.0,), untested=True).untested


def test_a_finer_grid_has_the_values_halfway_of_free_axes():
    grid = Grid((1.0, 2.0), (4.0, 9.0), (4.0, 9.0), free=(True, True, False))
    finer = grid.finer()
    assert finer == Grid((1.0, 1.5, 2.0), (4.0, 6.0, 9.0), (4.0, 9.0), free=(True, True, False))
    for place in grid.places():
        assert finer.at(finer.place_of(grid.at(place))) == grid.at(place)
    large = Grid(tuple(range(1, 1001)), tuple(range(1, 501)), (4.0,), free=(True, True, False))
    assert large.finer() is large


def _gap(first, second):
    return abs(first - second)


def test_a_goal_ranks_constraints_before_values():
    good, more, flipped = Yield(50.0, 48.0, None), Yield(60.0, 57.0, None), Yield(70.0, 50.0, None)
    goal = Goal(target_epsilon=2.0)
    assert goal.missed_by(2.0, good) == 0.0
    assert goal.rank(1.9, more) > goal.rank(1.0, good) > goal.rank(2.1, more)
    assert goal.missed_by(1.0, flipped) > 0.0
    assert goal.missed_by(math.inf, good) == math.inf
    agreeing = Goal(target_epsilon=2.0, objective=Objective.AGREEMENT, min_agreement=0.0)
    assert agreeing.rank(1.0, more) > agreeing.rank(1.0, flipped) > agreeing.rank(1.0, good)
    cheap = Goal(answers=50.0)
    assert cheap.rank(1.0, good) > cheap.rank(1.1, more) > cheap.rank(0.5, Yield(49.0, 49.0, None))
    both = Goal(target_epsilon=2.0, answers=50.0)
    assert both.rank(1.9, good) > both.rank(1.0, more)
    # Of two that answer equally many, the one with the smaller ε.
    assert goal.rank(1.0, good) > goal.rank(1.5, good)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"min_agreement": 1.5}, "min_agreement must be between 0 and 1, got 1.5"),
        ({"target_epsilon": math.nan}, "target_epsilon"),
        ({"answers": -1.0}, "answers must be positive"),
        ({"delta": 0.0}, "delta"),
    ],
)
def test_a_goal_out_of_range(wrong, message):
    with pytest.raises(ParameterError, match=message):
        Goal(**wrong)
