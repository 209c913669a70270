"""Reports of every kind of promise, each with what its holder and its readers have."""

import contextlib
import functools
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import pate_cli as pate
from pate_cli.core.noise import Noise
from pate_cli.disclosure.entry import RecordPlace
from pate_cli.disclosure.record import RecordFile, SpendRecord

CLASSES = 3
NOISE = {"confident": {"threshold": 40.0, "sigma1": 30.0, "sigma2": 8.0}, "gnmax": {"sigma2": 12.0}}
TESTED = {"mechanism": "gnmax", "sigma2": 12.0, "target_epsilon": 2.0, "bound": "two-tail"}
GROUPS = ("city",) * 20 + ("country",) * 40


@dataclass(frozen=True)
class Case:
    """A report and what goes with it.

    Attributes:
        data: the report as JSON gave it.
        labels: its labels in Parquet, None where it has none.
        record: the record that its holder keeps, as it is by then.
        guesses: those of its prior.
    """

    data: dict[str, Any]
    labels: bytes | None
    record: SpendRecord | None
    guesses: Any = None


def votes(rows=30, each=None):
    """What each of 60 teachers said on all rows, or on the first `each`, [rows, teachers]."""
    said = np.random.default_rng(3).choice(CLASSES, size=(rows, 60), p=(0.8, 0.15, 0.05))
    return np.where(np.arange(rows)[:, None] < (each or rows), said, -1)


@contextlib.contextmanager
def _test_comes_out(passes):
    with patch.object(Noise, "comes_up", lambda _self, _log_chance: not passes):
        yield


def _run(folder, mechanism="confident", rows=30, **asked):
    """A run in the record of the folder, whose labels go to Parquet there."""
    name = mechanism if "mechanism" not in asked else asked.pop("mechanism")
    known = {"layout": "labels", "teachers": 60, "classes": CLASSES, "record": folder / "record"}
    settings = {**known, **NOISE.get(name, {}), **asked}
    place = folder / "labels.parquet"
    place.unlink(missing_ok=True)
    (folder / "labels.report.json").unlink(missing_ok=True)
    each = asked.get("votes_per_teacher")
    done = pate.aggregate(votes(rows, each), name, into=place, **settings)
    return done.report, place.read_bytes()


def _before(folder, **asked):
    """Runs of an earlier day: one by its worst case, one that failed its release test."""
    _run(folder, max_answers=20, **asked)
    with _test_comes_out(False), contextlib.suppress(pate.RefusedError):
        _run(folder, **TESTED, **asked)


def worst_case(folder):
    """Labels by their worst case, of teachers whose training was private, and two runs before."""
    private = {"teacher_epsilon": 1.0, "teacher_delta": 1e-6}
    _before(folder, **private)
    return _run(folder, max_answers=25, label_names=("ant", "bee", "cow"), **private)


def disjoint_ensembles(folder):
    """A month's labels, beside those of two months that shared nobody with it, or perhaps did."""

    def place(name, *others):
        file = RecordFile(folder / "record")
        return RecordPlace(file, ensemble=name, disjoint_from=others)

    _run(folder, max_answers=20, record=place("2026-09"))
    _run(folder, max_answers=25, record=place("2026-10"))
    return _run(folder, max_answers=15, record=place("2026-11", "2026-09"))


def target(folder):
    """Labels that passed the release test of a target."""
    _before(folder)
    with _test_comes_out(True):
        return _run(folder, **TESTED)


def refusal(folder):
    """Labels that did not pass."""
    _before(folder)
    with _test_comes_out(False):
        try:
            _run(folder, **TESTED)
        except pate.RefusedError as error:
            return error.report, None
    raise AssertionError("the labels passed")


def upper(folder):
    """Labels beside a sanitized epsilon of votes of which few count."""
    _before(folder)
    asked = {"release": "upper", "order": 6.0, "beta": 0.05, "sigma_release": 8.0}
    return _run(folder, "gnmax", **asked, votes_per_teacher=20, assigned=True)


def prior_and_groups(folder):
    """Teachers who count differently, and a public prior."""
    each = pate.TeacherGroups(
        GROUPS, weights=(2,) * 20 + (1,) * 40, teachers_per_record=(1,) * 20 + (2,) * 40
    )
    asked = {"groups": each, "prior": guesses(), "prior_weight": 9}
    _run(folder, max_answers=20, **asked)
    return _run(folder, max_answers=25, **asked)


def guesses():
    """One for every row but two."""
    found = votes()[:, 0].copy()
    found[:2] = -1
    return found


def session(folder):
    """Queries that came one by one, to teachers who vote on few of them."""
    _before(folder)
    given = {"teachers": 60, "classes": CLASSES, "mechanism": "confident", **NOISE["confident"]}
    given["votes_per_teacher"] = 9
    with pate.Session(**given, target_epsilon=4.0, record=folder / "record") as opened:
        for row in votes(12):
            opened.ask(np.bincount(row, minlength=CLASSES).tolist())
        place = folder / "session.parquet"
        opened.labels.save(place)
        return opened.report().with_labels(place), place.read_bytes()


def release_of_several(folder):
    """Two rounds of ledgers, a draw, and what another mechanism cost."""
    asked = {"release": "none", "order": 6.0, "keep_ledger": True}
    known = {"layout": "labels", "teachers": 60, "classes": CLASSES, "record": folder / "record"}
    ledgers = [
        pate.aggregate(votes(rows), "gnmax", sigma2=12.0, **known, **asked).ledger
        for rows in (10, 20)
    ]
    other = pate.Stated(epsilon=0.3, delta=1e-6, adjacency="add-or-remove-one", covers="a model")
    done = pate.release(
        ledgers, external=[other], release="upper", beta=0.05, sigma_release=9.0,
        record=folder / "record",
    )  # fmt: skip
    return done.report, None


KINDS = {
    "worst case": worst_case,
    "disjoint ensembles": disjoint_ensembles,
    "target": target,
    "refusal": refusal,
    "upper": upper,
    "prior and groups": prior_and_groups,
    "session": session,
    "release of several": release_of_several,
}


@functools.cache
def case(kind):
    with tempfile.TemporaryDirectory() as name:
        report, labels = KINDS[kind](Path(name))
        record = SpendRecord.read(Path(name, "record"))
    prior = guesses() if kind == "prior and groups" else None
    return Case(json.loads(report.to_json()), labels, record, prior)
