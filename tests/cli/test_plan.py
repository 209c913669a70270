"""`pate plan` from outside: before the first vote, and all of it public."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace

import numpy as np
import pytest

from forecasts.table import SETTINGS
from pate_cli.planning.search import Tuning, keywords_of, line_of
from pate_cli.planning.synthetic import SyntheticEnsemble
from slices import EVERY

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


# Of one teacher a record without a prior, which the line itself describes.
LINES = [
    place
    for place, each in enumerate(SETTINGS)
    if each == replace(each, prior=0.0, per_record=1, sizes=(1,), cap=None, mechanism="")
]
CHEAP = (4, 14, 29, 39, 46)


@pytest.mark.parametrize("place", [place for place in LINES if EVERY or place in CHEAP])
def test_lines_for_the_table_of_forecasts_run(pate, folder, place):
    """Amounts are read back as they were meant, whatever their size and the number of teachers."""
    setting, rows = SETTINGS[place], 4
    mechanism = setting.build()
    np.save(folder / "votes.npy", setting.draw(rows, 5))
    settings = Tuning.settled(mechanism)
    words = ["--layout", "counts", "--no-record", "--dry-run"]
    target = setting.target
    asked = {"target_epsilon": target.epsilon, "refusal_epsilon": target.refusal_epsilon}
    keywords = keywords_of(mechanism, queries=rows, delta=target.delta, **asked)
    line = line_of("votes.npy", words, keywords)
    done = pate(*shlex.split(line)[1:])
    assert done.exit_code == 0, done.stderr
    read = json.loads(done.stdout)["mechanism"]
    assert {name: read[name] for name in settings.parameters} == settings.parameters
