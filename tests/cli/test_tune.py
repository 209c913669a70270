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
        (("--answers", 20), "none"),
        (("--target-epsilon", 8), "upper"),
        (("--target-epsilon", 2), "target"),
    ],
)
def test_every_line_that_it_prints_runs_and_costs_what_it_says(pate, votes, goal, release):
    words = (*goal, "--release", release, "--delta", "1e-4", "--min-agreement", 0.8)
    done = pate("tune", votes, *words, *(ONE if release != "none" else ()))
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
