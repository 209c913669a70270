"""`pate tune` from outside: what it prints can be run, is marked, and is refused when wrong."""

from __future__ import annotations

import json
import shlex
import signal

import pytest

from pate_cli.cli.terminal import Stopped
from pate_cli.planning.search import Search

ONE = ("--threshold", 26, "--sigma1", 24, "--sigma2", 8)


def run(pate, command, votes, *more, codes=(0,)):
    """The report of a printed line, with VOTES in the place of its votes."""
    program, *words = shlex.split(command)
    assert program == "pate"
    done = pate(*[str(votes) if word == "VOTES" else word for word in words], *more)
    assert done.exit_code in codes, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("goal", "release"),
    [
        (("--target-epsilon", 4), "none"),
        (("--answers", 20), "none"),
        (("--target-epsilon", 8), "upper"),
        (("--target-epsilon", 2), "target"),
    ],
)
def test_every_line_that_it_prints_runs_and_costs_what_it_says(pate, votes, goal, release):
    words = (*goal, "--release", release, "--delta", "1e-4", "--min-agreement", 0.8)
    done = pate("tune", votes, *words, *(ONE if release == "target" else ()))
    assert done.exit_code == 0, done.stderr
    assert "pate: NOT RELEASABLE" in done.stderr
    found = json.loads(done.stdout)
    winner = found["winner"]
    assert (found["releasable"], found["complete"]) == (False, True)
    report = run(pate, found["command"], votes, "--seed", 1, codes=(0, 8))
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


def test_public_and_made_up_votes_make_it_releasable(pate, votes):
    words = ("--answers", 10, "--release", "none", *ONE)
    result = pate("tune", votes, *words, "--public-votes")
    assert json.loads(result.stdout)["releasable"] is True
    assert "NOT RELEASABLE" not in result.stderr
    recipe = "teachers=40,classes=4,queries=60,agreement=0.9,seed=3"
    result = pate("tune", "--synthetic", recipe, *words)
    assert json.loads(result.stdout)["basis"]["votes"] == "synthetic"
    assert json.loads(result.stdout)["releasable"] is True


def test_a_prior_is_weighed_and_its_command_runs(pate, votes, counts, tmp_path):
    prior, guesses = tmp_path / "guesses.npy", counts.argmax(axis=1)
    guesses[::10] = (guesses[::10] + 1) % 4
    guesses[5] = -1
    np.save(prior, guesses)
    words = ("--prior", prior, "--answers", 20, "--release", "none", *ONE)
    found = json.loads(pate("tune", votes, *words, "--prior-weight", "20%").stdout)
    assert found["winner"]["prior_weight"] == 8
    report = run(pate, found["command"], votes, "--seed", 1)
    assert report["mechanism"]["prior_weight"] == 8
    free = json.loads(pate("tune", votes, *words).stdout)
    assert free["winner"]["epsilon"] <= found["winner"]["epsilon"]


def test_what_is_out_of_reach_exits_with_5(pate, refused, votes):
    line = refused(pate("tune", votes, "--release", "none", "--target-epsilon", 0.01, *ONE), 5)
    assert line.startswith("pate: no settings give an answer at epsilon 0.01")
    line = refused(pate("tune", votes, "--answers", 100, "--release", "none", *ONE), 5)
    assert line.startswith("pate: no settings give 100 expected answers")


RECIPE = "teachers=5,classes=3,queries=9"
MADE_UP = ["--target-epsilon", "5", "--synthetic", RECIPE]
WRONG = {
    "nothing": (["--answers", "5"], "give VOTES or --synthetic; before there are votes"),
    "no goal": (["--synthetic", RECIPE], "give one of --target-epsilon and --answers"),
    "public": ([*MADE_UP, "--public-votes"], "--public-votes needs VOTES"),
    "rows": ([*MADE_UP, "--max-queries", "3"], "--max-queries needs VOTES"),
    "layout": ([*MADE_UP, "--layout", "counts"], "--layout needs VOTES"),
    "twice": ([*MADE_UP, "--teachers", "5"], "--teachers needs VOTES"),
    "recipe": ([*MADE_UP[:3], "teachers=5,classes=3"], "--synthetic needs queries"),
    "field": ([*MADE_UP[:3], "teacher=5"], "got 'teacher=5'"),
    "number": ([*MADE_UP[:3], "teachers=x"], "teachers must be a number, got 'x'"),
    "seed": ([*MADE_UP[:3], f"{RECIPE},seed=-1"], "seed must be at least 0"),
    "range": ([*MADE_UP[:3], f"{RECIPE},agreement=2"], "between 0 and 1"),
    "one class": ([*MADE_UP[:3], "teachers=5,classes=1,queries=9"], "class"),
    "other mechanism": ([*MADE_UP, "-m", "lnmax"], "--mechanism must be confident or gnmax"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_flags(pate, refused, case):
    words, expected = WRONG[case]
    assert expected in refused(pate("tune", *words), 2)


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
