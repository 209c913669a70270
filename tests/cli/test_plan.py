"""`pate plan` from outside: before the first vote, and all of it public."""

from __future__ import annotations

import json
import shlex

import numpy as np

from pate_cli.planning.synthetic import SyntheticEnsemble

FIFTY = ("--teachers", 50, "--classes", 2, "--queries", 40, "--target-epsilon", 2)
KEYS = {
    "schema_version",
    "releasable",
    "asked",
    "found",
    "teachers",
    "votes",
    "target_epsilon",
    "delta",
    "answers",
    "meets_goal",
    "settings",
    "by_agreement",
    "pass_probability",
    "untested_epsilon",
    "least_epsilon",
    "frankly",
    "command",
    "other",
}


def planned(pate, *words):
    done = pate("plan", *words)
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def test_what_it_prints_runs_and_gives_about_what_it_says(pate, folder):
    found = planned(pate, *FIFTY)
    assert set(found) == KEYS
    assert found["found"] == "answers"
    assert found["releasable"] is True
    ensemble = SyntheticEnsemble(teachers=50, classes=2, queries=40, agreement=0.8)
    np.save(folder / "votes.npy", ensemble.draw(5)[0])
    line = shlex.split(found["command"])
    words = [folder / "votes.npy" if word == "VOTES" else word for word in line[1:]]
    done = pate(*words, "--layout", "counts", "--seed", 3)
    assert done.exit_code == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["epsilon"] <= 2.0
    assert report["queries"] == found["settings"]["queries"]
    low, high = (found["by_agreement"][end]["answers"] for end in (0, -1))
    assert low - 6 <= report["answers"] <= high + 6
