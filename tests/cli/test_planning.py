"""`pate plan` and `pate tune` from outside: what they print can be run and costs what it says."""

import json
import shlex
import signal

import numpy as np
import pytest

from pate_cli.cli.terminal import Stopped
from pate_cli.planning.search import Search
from pate_cli.planning.synthetic import SyntheticEnsemble

ONE = ("--threshold", 26, "--sigma1", 24, "--sigma2", 8)
KEYS = {
    *("schema_version", "releasable", "asked", "found", "teachers", "votes", "target_epsilon"),
    *("delta", "answers", "meets_goal", "settings", "by_agreement", "pass_probability"),
    *("untested_epsilon", "least_epsilon", "frankly", "command", "other"),
}


@pytest.fixture
def run(pate):
    """The report of a printed line, with VOTES in the place of its votes."""

    def ran(command, votes, *more):
        program, *words = shlex.split(command)
        assert program == "pate"
        done = pate(*[votes if word == "VOTES" else word for word in words], *more)
        assert done.exit_code in (0, 8), done.stderr
        return json.loads(done.stdout)

    return ran


def test_a_plan_is_public_and_gives_about_what_it_says(pate, run, votes):
    words = ("--teachers", 50, "--classes", 2, "--queries", 40, "--target-epsilon", 2)
    found = json.loads(pate("plan", *words).stdout)
    assert set(found) == KEYS
    assert (found["found"], found["releasable"]) == ("answers", True)
    ensemble = SyntheticEnsemble(teachers=50, classes=2, queries=40, agreement=0.8)
    np.save(votes, ensemble.draw(5)[0])
    report = run(found["command"], votes, "--layout", "counts", "--seed", 3)
    assert report["epsilon"] <= 2.0
    assert report["queries"] == found["settings"]["queries"]
    low, high = (found["by_agreement"][end]["answers"] for end in (0, -1))
    assert low - 6 <= report["answers"] <= high + 6


@pytest.mark.parametrize(
    ("goal", "release"),
    [
        (("--answers", 20), "none"),
        (("--target-epsilon", 8), "upper"),
        (("--target-epsilon", 2, "--bound", "two-tail"), "target"),
    ],
)
def test_settings_cost_what_is_said_of_them(pate, run, votes, goal, release):
    words = (*goal, "--release", release, "--delta", "1e-4", "--min-agreement", 0.8)
    done = pate("tune", votes, *words, *(ONE if release != "none" else ()), code=0)
    assert "pate: NOT RELEASABLE" in done.stderr
    found = json.loads(done.stdout)
    winner = found["winner"]
    assert (found["releasable"], found["complete"]) == (False, True)
    report = run(found["command"], votes, "--seed", 1)
    assert (report["queries"], report["delta"]) == (winner["queries"], 1e-4)
    assert report["mechanism"]["sigma2"] == winner["sigma2"]
    if release == "none":
        assert report["epsilon"] == winner["epsilon"]
        assert report["max_answers"] == (winner["max_answers"] or winner["queries"])
    if release == "upper":
        plan = report["rounds"][0]["sanitizer"]
        told = {"order": "order", "beta": "beta", "sigma": "sigma_release"}
        assert {name: plan[name] for name in told} == {n: winner[at] for n, at in told.items()}
    if release == "target":
        assert report["rounds"][0]["target"]["epsilon"] == 2


@pytest.mark.parametrize("error", [KeyboardInterrupt(), Stopped(signal.SIGTERM)])
def test_an_interruption_prints_the_best_so_far(pate, votes, monkeypatch, error):
    climb, seen = Search.climb, []

    def interrupted(self, *words, **more):
        seen.append(1)
        if len(seen) == 3:
            raise error
        return climb(self, *words, **more)

    monkeypatch.setattr(Search, "climb", interrupted)
    result = pate("tune", votes, "--answers", 20, "--release", "none")
    assert result.exit_code == 128 + getattr(error, "number", signal.SIGINT)
    found = json.loads(result.stdout)
    assert found["complete"] is False
    assert found["winner"]["expected_answers"] >= 20 * (1 - 1e-9)
    assert "pate: interrupted: this is the best of an incomplete search" in result.stderr


def test_the_picture_of_a_plan_has_its_place_before_the_plan_is_made(pate, tmp_path):
    """Without `--votes-per-teacher`, every picture once ended in an internal failure."""
    words = ("--teachers", 40, "--classes", 2, "--queries", 9, "--target-epsilon", 9)
    words = ("plan", *words, "--plot", tmp_path / "plan.svg")
    assert "has no picture" in pate(*words, "--votes-per-teacher", 9).stderr
    (tmp_path / "plan.svg").write_text("<svg/>")
    done = pate(*words)
    assert (done.exit_code, "plan.svg exists already" in done.stderr) == (6, True)


def test_tune_refuses_a_parameter_of_another_mechanism(pate):
    """The search once had nothing to begin with."""
    words = ("--synthetic", "teachers=50,classes=3,queries=40", "--target-epsilon", 2)
    done = pate("tune", *words, "--mechanism", "gnmax", "--threshold", 40, code=2)
    assert "--threshold cannot be used with --mechanism gnmax, which takes --sigma2" in done.stderr


def test_tune_takes_a_whole_number_of_votes_for_a_guess(pate, votes, tmp_path):
    """The search once rounded the number that was given."""
    np.save(votes, np.array([[30, 10]] * 20))
    np.save(tmp_path / "prior.npy", np.zeros(20, int))
    words = (votes, "--layout", "counts", "--target-epsilon", 2)
    prior = ("--prior", tmp_path / "prior.npy", "--prior-weight", 2.5)
    done = pate("tune", *words, *prior, code=2)
    assert "--prior-weight must be a whole number of votes, at least 0, got 2.5" in done.stderr
