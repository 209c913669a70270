"""Reports of every kind, from small runs of the library; each is made once, and not to be changed.

A report is kept beside its labels, None for what `release` says of earlier ones. All but one say
that they are private, though their noise comes from seeds.
"""

import contextlib
import dataclasses
import functools
import tempfile
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa

import pate_cli as pate
from pate_cli.core.noise import Noise, RunKey
from pate_cli.core.words import Adjacency
from pate_cli.disclosure.cost import Cost
from pate_cli.disclosure.guarantee import report_of

SHAPE = {"teachers": 60, "classes": 3}
CONFIDENT = {"threshold": 40.0, "sigma1": 30.0, "sigma2": 8.0}
TARGET = {"mechanism": "gnmax", "sigma2": 12.0, "target_epsilon": 2.0, "max_queries": 40}


@functools.cache
def votes():
    """Histograms, [40, 3]."""
    counts = np.random.default_rng(5).multinomial(60, (0.8, 0.15, 0.05), size=40)
    counts.setflags(write=False)
    return counts


def guesses():
    """One for all of these but two."""
    return np.append(votes()[:-2].argmax(axis=1), [-1, -1])


def _run(mechanism="confident", **settings):
    parameters = CONFIDENT if mechanism == "confident" else {}
    done = pate.aggregate(
        votes(), mechanism, **{**SHAPE, "seed": 7, "max_answers": 30, **parameters, **settings}
    )
    return done.report, done.labels


def _test(*, refuse, **settings):
    """A run whose coin is given."""
    with patch.object(Noise, "comes_up", lambda self, log_chance: refuse):
        try:
            return _run(**{"bound": "two-tail", **settings, **TARGET})
        except pate.RefusedError as error:
            return error.report, None


def _interactive():
    student = np.tile((0.2, 0.5, 0.3), (40, 1))
    return _run(pate.InteractiveGNMax(60, 3, predictions=student, confidence=0.4, **CONFIDENT))


@functools.cache
def _ledger(first, last):
    told = {"release": "upper", "order": 6.0, "beta": 0.05, "sigma_release": 8.0}
    asked = {"keep_ledger": True, "seed": first + 1, **SHAPE, **told}
    return pate.aggregate(votes()[first:last], "gnmax", **asked).ledger


def _of_ledgers(ledgers, **settings):
    """Ledgers that lie in no record, but nobody drew anything else from them."""
    report = pate.release(ledgers, **settings).report
    if settings.get("record") is False:
        return report
    return report_of(dataclasses.replace(report.facts, recorded=True))


def _release(*rounds, again=0, **settings):
    ledgers = [_ledger(*bounds) for bounds in rounds]
    with tempfile.TemporaryDirectory() as folder:
        if again:
            settings["record"] = Path(folder, "record")
        for draw in range(again):
            pate.release(
                ledgers, release="upper", record=settings["record"], again=draw > 0, seed=draw
            )
        return _of_ledgers(ledgers, again=again > 0, seed=9, **settings), None


def _kept(**settings):
    """The last of three runs in a record: rows by their worst case, a refusal, and this one."""
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder, "record")
        _run(seed=1, record=record)
        _test(refuse=True, seed=2, record=record)
        return _run("gnmax", seed=3, record=record, **settings)


def _account(*external):
    """All of an account: runs of every kind, and what others stated."""
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder, "record")
        _run(seed=1, record=record)
        _test(refuse=True, seed=2, record=record)
        _test(refuse=False, seed=3, record=record)
        _run("stability", seed=4, max_answers=None, record=record)
        pate.release(_ledger(0, 40), release="upper", record=record, seed=5)
        return pate.release(record, external=external).report, None


def _released_priors(*weights):
    """Rounds of priors of these weights, 0 for none."""
    ledgers = []
    for place, weight in enumerate(weights):
        told = {"release": "none", "order": 6.0, "seed": place, "keep_ledger": True, **SHAPE}
        if weight:
            told |= {"prior": np.zeros(20, dtype=np.int64), "prior_weight": weight}
        ledgers.append(pate.aggregate(votes()[20 * place :][:20], "gnmax", **told).ledger)
    return _of_ledgers(ledgers, release="none", order=6.0, seed=9), None


def _opened(source, *, mechanism="gnmax", **reading):
    parameters = CONFIDENT if mechanism == "confident" else {}
    with pate.open_votes(source, **reading) as opened:
        done = pate.aggregate(opened, mechanism, seed=4, **parameters)
    return done.report, done.labels


def _labels_of_teachers():
    return np.random.default_rng(6).choice(3, size=(20, 60), p=(0.8, 0.15, 0.05))


def _long():
    """One teacher is left out of every query."""
    queries, teachers = np.divmod(np.arange(40 * 59), 59)
    columns = {"query_id": queries, "teacher_id": teachers, "label": teachers % 3}
    return pa.table(columns)


def _several():
    answers = np.random.default_rng(2).random((12, 60, 3)) < (0.9, 0.2, 0.5)
    told = {"layout": "multilabel", "teachers": 60}
    return _opened(answers.astype(np.int8), mechanism="confident", **told)


def _groups(mechanism):
    names, weights, k = ("a",) * 20 + ("b",) * 40, (2,) * 20 + (1,) * 40, (1,) * 20 + (2,) * 40
    groups = pate.TeacherGroups(names, weights=weights, teachers_per_record=k)
    told = {"layout": "labels", "groups": groups, **SHAPE}
    return _opened(_labels_of_teachers(), mechanism=mechanism, **told)


KINDS = {
    "seeded": _run,
    "confident": _run,
    "gnmax": lambda: _run("gnmax"),
    "lnmax": lambda: _run("lnmax"),
    "stability": lambda: _run("stability", max_answers=None),
    "sparse-vector": lambda: _run("sparse-vector", max_answers=None),
    "interactive": _interactive,
    "upper": lambda: _run("gnmax", release="upper"),
    "paper": lambda: _run("gnmax", analysis="paper"),
    "passed": lambda: _test(refuse=False),
    "refused": lambda: _test(refuse=True),
    "sharp": lambda: _test(refuse=False, bound="conditional"),
    "met": lambda: _run(target_epsilon=300.0, max_queries=40),
    "two per record": lambda: _run("gnmax", teachers_per_record=2),
    "classes read off": lambda: _opened(_labels_of_teachers(), layout="labels", teachers=60),
    "queries read off": lambda: _opened(_long(), layout="long", **SHAPE),
    "names": lambda: _opened(votes(), label_names="ant,bee,cow"),
    "groups": lambda: _groups("confident"),
    "groups, stability": lambda: _groups("stability"),
    "prior": lambda: _run("gnmax", prior=guesses(), prior_weight=12),
    "prior, confident": lambda: _run(prior=guesses(), prior_weight=12, release="upper"),
    "prior, passed": lambda: _test(refuse=False, prior=guesses(), prior_weight=12),
    "several labels": _several,
    "a round": lambda: _release((0, 40), release="none"),
    "rounds": lambda: _release((0, 15), (15, 40), release="upper"),
    "draws": lambda: _release((0, 15), (15, 40), again=2, release="upper"),
    "priors": lambda: _released_priors(12, 7),
    "no record": lambda: _release((0, 40), record=False, release="upper"),
    "kept": _kept,
    "kept, upper": lambda: _kept(release="upper"),
    "account": lambda: _account(
        pate.Stated(epsilon=0.1, delta=1e-7, adjacency=Adjacency.ADD_OR_REMOVE_ONE),
        pate.Stated(
            orders=np.array([2.0, 8.0]), rdp=np.array([0.1, 0.4]), adjacency=Adjacency.REPLACE_ONE
        ),
    ),
}


NO_PROMISE = ("classes read off", "queries read off", "no record", "paper", "seeded")


@contextlib.contextmanager
def costs_once():
    """The same question to the accountant is asked once, however often a report is checked."""
    real, known = Cost.of_curves.func, {}

    def found(cost):
        key = repr(cost)
        if key not in known:
            known[key] = real(cost)
        return known[key]

    with patch.object(Cost, "of_curves", property(found)):
        yield


def called_private():
    """Noise from a seed that says it is private."""
    return patch.object(RunKey, "private", property(lambda _self: True))


@functools.cache
def made(kind):
    """(report, labels) of this kind."""
    if kind == "seeded":
        return KINDS[kind]()
    with called_private():
        return KINDS[kind]()


@functools.cache
def total(*parts):
    """A round and its draw beside external parts."""
    with called_private():
        return _of_ledgers(_ledger(0, 40), release="none", external=parts, order=6.0)
