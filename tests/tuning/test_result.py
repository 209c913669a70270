"""`pate_cli.tuning.result`: what is printed can be run, and says what was found."""

from __future__ import annotations

import json
import math
import shlex
from dataclasses import replace

import numpy as np
import pytest

from pate_cli.core.errors import ParameterError
from pate_cli.core.words import Bound, ReleaseKind
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.planning.sanitized import choose_plan
from pate_cli.tuning import Goal, Grid, Search, rule_of_thumb

KEYS = [
    "schema_version",
    "releasable",
    "complete",
    "analysis",
    "goal",
    "basis",
    "grid",
    "floor",
    "winner",
    "command",
    "other_ways",
    "pareto",
]


def _options(command):
    """The options of a `pate aggregate` line by name; its file."""
    program, verb, votes, *words = shlex.split(command)
    assert (program, verb) == ("pate", "aggregate")
    return votes, dict(zip(words[::2], words[1::2], strict=True))


@pytest.mark.parametrize("release", [ReleaseKind.UPPER, ReleaseKind.NONE])
def test_a_winner_as_json_and_as_a_line(drawn, release):
    goal = Goal(answers=15.0, delta=1e-4, release=release, min_agreement=0.5)
    tuned = Search(drawn(4), Grid((24.0,), (10.0, 24.0), (6.0,)), goal).run()
    result = replace(
        tuned,
        basis={"votes": "file"},
        public=True,
        votes="my votes.npy",
        words=("--classes", "3"),
    ).to_dict()
    assert list(result) == KEYS
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    assert result["goal"]["delta"] == 1e-4
    assert result["grid"] == {
        "points": 2,
        "thresholds": [24.0],
        "sigmas1": [10.0, 24.0],
        "sigmas2": [6.0],
        "untested": False,
    }
    winner = result["winner"]
    assert winner["expected_answers"] >= 15.0
    assert winner["epsilon"] <= winner["data_independent_epsilon"]
    assert sum(winner["cost_shares"].values()) == pytest.approx(1.0)
    assert min(winner["cost_shares"].values()) > 0.0
    votes, options = _options(result["command"])
    assert (votes, options["--classes"], options["--release"]) == ("my votes.npy", "3", release)
    for flag, name in (
        ("--threshold", "threshold"),
        ("--sigma1", "sigma1"),
        ("--sigma2", "sigma2"),
        ("--max-queries", "queries"),
        ("--max-answers", "max_answers"),
        ("--order", "order"),
        ("--beta", "beta"),
        ("--sigma-release", "sigma_release"),
    ):
        # Every parameter is on the line, to the last bit, and no other.
        said = options.get(flag)
        assert (None if said is None else float(said)) == winner.get(name)
    assert float(options["--delta"]) == 1e-4
    assert ("--order" in options) is (release is not ReleaseKind.NONE)


def test_a_target_without_a_test_as_json_and_as_a_line(drawn):
    goal = Goal(
        answers=15.0, release=ReleaseKind.TARGET, bound=Bound.CONDITIONAL, min_agreement=0.5
    )
    grid = replace(Grid((30.0,), (3.0,), (9.0,)), untested=True)
    tuned = Search(drawn(4, classes=2), grid, goal).run()
    result = replace(tuned, basis={"votes": "file"}).to_dict()
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    winner = result["winner"]
    assert (winner["mechanism"], winner["threshold"], winner["sigma1"]) == ("gnmax", None, None)
    assert (winner["release"], winner["bound"]) == ("target", "conditional")
    assert winner["cost_shares"] == {"selecting": 0.0, "answering": 1.0}
    assert result["goal"]["bound"] == "conditional"
    assert (result["grid"]["points"], result["grid"]["untested"]) == (2, True)
    assert _options(result["command"])[1] == {
        "--mechanism": "gnmax",
        "--sigma2": "9",
        "--max-queries": str(winner["queries"]),
        "--delta": "1e-05",
        "--target-epsilon": str(winner["epsilon"]),
        "--refusal-epsilon": str(winner["refusal_epsilon"]),
        "--bound": "conditional",
    }
    columns = tuned.columns()
    assert np.isnan(columns["threshold"]).any()
    assert (columns["sigma2"] == 9.0).all()
    left_open = replace(tuned, goal=replace(goal, bound=Bound.AUTO))
    assert "--bound" not in str(left_open.command)


def test_without_a_goal_there_is_a_front_and_no_line(drawn):
    grid = Grid((24.0,), (10.0, 24.0), (6.0,))
    tuned = Search(drawn(4, queries=30), grid, Goal(min_agreement=0.5)).run()
    result = tuned.to_dict()
    assert (result["winner"], result["command"], result["releasable"]) == (None, None, False)
    columns = tuned.columns()
    for name in ("epsilon", "expected_answers", "agreement", "sigma2"):
        assert columns[name].tolist() == [point[name] for point in result["pareto"]]
    assert str(len(tuned.pareto)) in tuned.headline()


def test_the_rule_of_thumb():
    mechanism = ConfidentGNMax(
        40, 3, threshold=32.0, sigma1=24.0, sigma2=6.4, teachers_per_record=2
    )
    rules = rule_of_thumb(mechanism=mechanism, queries=60, target_epsilon=4.0, delta=1e-5)
    thumb = rules.by_thumb.plan
    assert thumb is not None
    order = thumb.order
    assert order == pytest.approx(1.0 + 2.0 * math.log(1e5) / 4.0, rel=5e-3)
    assert thumb.beta == pytest.approx(0.25 / order, rel=5e-3)
    public = choose_plan(ReleaseKind.UPPER, mechanism=mechanism, queries=60, delta=1e-5)
    assert rules.public.plan == public
    result = rules.to_dict()
    assert result["releasable"] is True
    assert result["public_rule"]["sigma_release"] == public.sigma
    votes, options = _options(result["command"])
    assert votes == "VOTES"
    assert options["--teachers-per-record"] == "2"
    found = [float(options[flag]) for flag in ("--order", "--beta", "--sigma-release")]
    np.testing.assert_array_equal(found, list(result["rule_of_thumb"].values())[:3])
    # Charged 2 votes a record, far beyond the target, and says so.
    assert result["rule_of_thumb"]["made_up_epsilon"] > 4.0
    assert result["meets_target"] is False
    assert "pate plan --teachers-per-record 2 --teachers 40" in result["plan_command"]
    with pytest.raises(ParameterError, match="target_epsilon"):
        rule_of_thumb(mechanism=mechanism, queries=60, target_epsilon=0.0, delta=1e-5)
