"""`pate plan` from outside: before the first vote, and all of it public."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace

import numpy as np
import pytest

from forecasts.table import SETTINGS
from pate_cli.core.said import as_html
from pate_cli.planning.search import Tuning, keywords_of, line_of
from pate_cli.planning.synthetic import SyntheticEnsemble
from pate_cli.planning.words import of_plan
from slices import EVERY, some, whole

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


def test_a_person_gets_a_table(pate):
    found = planned(pate, *FIFTY, "--agreement", "0.8")
    shown = as_html(of_plan(found))
    assert "50 teachers, epsilon 2 at delta 1e-05: about " in shown
    assert found["command"] in shown
    assert "the worst pass" in shown


def test_it_is_frank(pate):
    words = ("--teachers", 12, "--classes", 10, "--target-epsilon", 1, "--queries", 300)
    found = planned(pate, *words)
    assert found["frankly"].startswith("epsilon 1 takes so much noise that answers are hardly")
    assert found["frankly"] in as_html(of_plan(found))


TABLE = [
    ("--teachers", 3, "--classes", 2, "--queries", 100, "--target-epsilon", 5),
    ("--teachers", 50, "--classes", 3, "--queries", 40, "--target-epsilon", 2),
    ("--teachers", 250, "--classes", 2, "--queries", 900, "--target-epsilon", 1, "--delta", 1e-9),
    ("--teachers", 1000, "--classes", 5, "--queries", 50, "--target-epsilon", 0.03),
    ("--teachers", 60, "--classes", 2, "--queries", 50, "--target-epsilon", 1, "-m", "gnmax"),
]


@pytest.mark.parametrize("words", some(TABLE, 3), ids=str)
def test_every_line_that_is_printed_runs(pate, folder, words):
    """Those of the plan, and of the other mechanism where that gives more."""
    found = planned(pate, *words)
    classes, teachers, queries = words[3], words[1], words[5]
    ensemble = SyntheticEnsemble(teachers=teachers, classes=classes, queries=queries, agreement=0.8)
    np.save(folder / "votes.npy", ensemble.draw(5)[0])
    lines = [found["command"]]
    if found["other"] is not None:
        lines.append(found["other"].partition(": ")[2])
    for line in lines:
        asked = shlex.split(line.replace("VOTES", "votes.npy"))[1:]
        done = pate(*asked, "--layout", "counts", "--no-record", "--dry-run")
        assert done.exit_code == 0, done.stderr


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


def test_the_picture(pate, folder):
    path = folder / "plan.svg"
    untested = ("--agreement", "0.8", "--mechanism", "gnmax")
    done = pate("plan", *FIFTY, *untested, "--plot", path)
    assert done.exit_code == 0, done.stderr
    assert path.stat().st_mode & 0o777 == 0o644
    assert path.read_text().lstrip().startswith("<?xml")
    assert pate("plan", *FIFTY, "--plot", path).exit_code == 6


@pytest.mark.parametrize(
    ("words", "code", "line"),
    [
        (["--classes", 3], 2, "--teachers and --target-epsilon and --answers are left out"),
        (["--teachers", 9, "--target-epsilon", 1], 2, "give --classes, or --labels"),
        ([*FIFTY, "--agreement", "x"], 2, "--agreement is a share or low:high"),
        ([*FIFTY, "--agreement", "0.9:0.6"], 2, "--agreement must be a share between 0 and 1"),
        ([*FIFTY, "--prior-weight", "9"], 2, "--prior-weight goes with --prior-accuracy"),
        ([*FIFTY, "--mechanism", "lnmax"], 2, "a plan is for confident or gnmax"),
        ([*FIFTY, "--groups", "g.csv"], 2, "--teachers does not go with --groups"),
        pytest.param(
            ["--classes", 3, "--queries", 2000, "--answers", 2000, "--teachers", 3],
            5,
            "2000 answers are out of reach, even with epsilon 50",
            marks=whole,
        ),
    ],
)
def test_what_is_refused(pate, refused, words, code, line):
    assert line in refused(pate("plan", *words), code)
