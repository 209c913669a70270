"""The calls in Python that are frozen, by what they show.

A call is a function of the folder of inputs and of an empty one, and gives what `seen` makes of it:
numbers by meaning, and the hash of labels.
"""

from __future__ import annotations

import json
import os
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

import pate_cli as pate
from face import inputs, meaning

TEST = {"record": False, "seed": 5}
GNMAX = {"mechanism": "gnmax", "sigma2": 30.0}
SHARP = {"mechanism": "gnmax", "sigma2": 12.0}
SAFE = {"mechanism": "confident", "threshold": 70.0, "sigma1": 40.0, "sigma2": 20.0}
CHEAP = {**GNMAX, **TEST}
FACTS = {
    "lnmax": {"mechanism": "lnmax", "laplace_scale": 20.0},
    "gnmax": GNMAX,
    "confident": SAFE,
    "interactive": {
        "mechanism": pate.InteractiveGNMax(
            100, inputs.CLASSES, threshold=70.0, sigma1=40.0, sigma2=20.0, confidence=0.8,
            predictions=inputs.STUDENT,
        )
    },
    "stability": {"mechanism": "stability", "query_epsilon": 0.5, "query_delta": 1e-9},
    "sparse-vector": {
        "mechanism": "sparse-vector", "query_epsilon": 0.4, "query_delta": 1e-9, "refusals": 5,
    },
}  # fmt: skip

CALLS = {}


def call(title, **given):
    """Keep a function as a call of this name."""

    def keep(function):
        CALLS[title] = partial(function, **given)
        return function

    return keep


def seen(name, place, folder):
    """What a call gives, by meaning."""
    return CALLS[name](place, folder)


def run(votes, **asked):
    """A run of `aggregate`: report and labels."""
    done = pate.aggregate(votes, **asked)
    return {
        "report": meaning.numbers("report", done.report.to_dict()),
        "labels": meaning.labels(done.labels.to_arrow()),
    }


# Every mechanism and every kind of release.


for _name, _facts in FACTS.items():

    @call(f"{_name}: worst case", facts=_facts)
    def _worst(place, folder, facts):
        return run(inputs.COUNTS, **facts, **TEST)

    @call(f"{_name}: price", facts=_facts)
    def _price(place, folder, facts):
        found = pate.quote(inputs.COUNTS, **facts, max_queries=30)
        return meaning.numbers("quote", found.to_dict())


@call("open-vocabulary: worst case")
def _open(place, folder):
    return run(place / "words.parquet", mechanism="open-vocabulary", threshold=90, sigma2=8, **TEST)


for _release in ("none", "upper"):

    @call(f"confident: {_release}", release=_release)
    def _released(place, folder, release):
        return run(inputs.CLEAR, **SAFE, **TEST, release=release, max_queries=90)


for _bound in ("conditional", "two-tail"):

    @call(f"gnmax: target, {_bound}", bound=_bound)
    def _target(place, folder, bound):
        asked = {"target_epsilon": 2.0, "max_queries": 40, "bound": bound}
        return run(inputs.COUNTS, **SHARP, **TEST, **asked)


@call("a target that is refused")
def _refused(place, folder):
    asked = {"target_epsilon": 1.0, "refusal_epsilon": 0.4, "max_queries": 60}
    try:
        pate.aggregate(inputs.COUNTS, **SHARP, **TEST, **asked, bound="two-tail")
    except pate.RefusedError as error:
        return meaning.numbers("report", error.report.to_dict()) | {"exit code": error.exit_code}
    raise AssertionError("the coin came out for the labels")


# Everything else a run may be asked.


@call("mechanism as an object: gnmax")
def _object(place, folder):
    return run(inputs.COUNTS, mechanism=pate.GNMax(teachers=100, classes=4, sigma2=30.0), **TEST)


@call("mechanism as an object: confident")
def _confident(place, folder):
    given = pate.ConfidentGNMax(teachers=100, classes=4, threshold=70.0, sigma1=40.0, sigma2=20.0)
    return run(inputs.COUNTS, mechanism=given, **TEST)


@call("a prior of classes")
def _prior(place, folder):
    return run(inputs.COUNTS, **CHEAP, prior=inputs.GUESSES, prior_weight="15 votes")


@call("a prior of probabilities")
def _shares(place, folder):
    return run(inputs.COUNTS, **CHEAP, prior=inputs.STUDENT, prior_weight="15%")


@call("a prior of a file, by id")
def _prior_file(place, folder):
    return run(place / "counts.csv", **CHEAP, prior=place / "prior.parquet", prior_weight=15)


@call("groups that count differently")
def _groups(place, folder):
    groups = pate.TeacherGroups(groups=inputs.WHO, weights=inputs.WEIGHTS.tolist())
    about = {"layout": "labels", "classes": 4, "groups": groups}
    return run(inputs.SAID, **about, **SAFE, **TEST)


@call("records of k teachers")
def _several(place, folder):
    return run(inputs.COUNTS, **CHEAP, teachers_per_record=3)


@call("a cap on answers")
def _cap(place, folder):
    return run(inputs.COUNTS, **SAFE, **TEST, max_answers=12)


@call("several labels")
def _labels(place, folder):
    about = {"layout": "multilabel", "teachers": 100, "max_queries": 15}
    return run(inputs.YES, **about, mechanism="gnmax", sigma2=40, **TEST)


@call("a loud price is refused")
def _dear(place, folder):
    try:
        pate.aggregate(inputs.COUNTS, "gnmax", sigma2=2, record=False)
    except pate.PateError as error:
        return {"exit code": error.exit_code, "epsilon": meaning.told(str(error))}
    raise AssertionError("nobody asked for it by name")


# Every way in: the same votes, so the same labels.

TABLE = inputs.table()
_said = {"layout": "labels", "classes": 4, "teachers": 100}
SAME_BY_ID = {
    "a path": lambda place: (place / "counts.csv", {}),
    "a text": lambda place: (str(place / "counts.parquet"), {}),
    "a folder": lambda place: (place / "parts_csv", {}),
    "a glob": lambda place: (str(place / "parts_arrow" / "part-*.arrow"), {}),
    "packed": lambda place: (place / "counts.csv.gz", {}),
    "a pyarrow table": lambda place: (TABLE, {}),
    "a pyarrow table in pieces": lambda place: (
        pa.concat_tables([TABLE.slice(0, 7), TABLE.slice(7)]), {},
    ),
    "pandas": lambda place: (TABLE.to_pandas(), {}),
    "polars": lambda place: (pl.from_arrow(TABLE), {}),
    "pandas of labels": lambda place: (
        pq.read_table(place / "teachers.parquet").to_pandas(), _said,
    ),
    "polars in long form": lambda place: (
        pl.from_arrow(inputs.long_table()), {"layout": "long", "classes": 4},
    ),
    "a pyarrow table of lists": lambda place: (
        inputs.sparse_table(), {"layout": "sparse", "classes": 4, "teachers": 100},
    ),
}  # fmt: skip
SAME_BY_PLACE = {
    "an array": lambda place: (inputs.COUNTS, {}),
    "an array of floats": lambda place: (inputs.COUNTS.astype(np.float64), {}),
    "an array of the other byte order": lambda place: (inputs.COUNTS.astype(">i4"), {}),
    "an array that is a view": lambda place: (
        np.repeat(inputs.COUNTS, 2, axis=0)[::2], {"layout": "counts"},
    ),
    "a list of rows": lambda place: (inputs.COUNTS.tolist(), {}),
    "labels of teachers": lambda place: (inputs.SAID, _said),
    "labels, teacher by teacher": lambda place: (
        [np.array(row) for row in inputs.SAID.T], _said | {"layout": "labels-by-teacher"},
    ),
    "scores": lambda place: (inputs.SCORES, {"layout": "scores", "teachers": 100}),
    "pandas without ids": lambda place: (pd.DataFrame(inputs.COUNTS), {"layout": "counts"}),
    "an NPY file": lambda place: (place / "counts.npy", {}),
}  # fmt: skip
NAMES = {"label_names": list(inputs.NAMES)}
SAME_IN_WORDS = {
    "columns with names": lambda place: (inputs.table(inputs.NAMES), NAMES),
    "words in pandas": lambda place: (
        pq.read_table(place / "words.parquet").to_pandas(), NAMES | {"layout": "labels"},
    ),
    "words in polars": lambda place: (
        pl.read_parquet(place / "words.parquet"), NAMES | {"layout": "labels"},
    ),
    "words in long form": lambda place: (
        inputs.long_table(words=True), NAMES | {"layout": "long"},
    ),
}  # fmt: skip

for _name, _given in (SAME_BY_ID | SAME_BY_PLACE | SAME_IN_WORDS).items():

    @call(f"in: {_name}", given=_given)
    def _in(place, folder, given):
        votes, about = given(place)
        return run(votes, **CHEAP, **about)


@call("in: words in an array")
def _words(place, folder):
    words = np.array(inputs.NAMES)[inputs.SAID]
    return run(words, **CHEAP, **NAMES, layout="labels", teachers=100)


@call("in: missing votes")
def _gaps(place, folder):
    return run(inputs.GAPS, **CHEAP, **_said)


@call("in: opened once")
def _opened(place, folder):
    with pate.open_votes(place / "counts.parquet") as votes:
        priced = meaning.numbers("quote", pate.quote(votes, **GNMAX).to_dict())
        return run(votes, **CHEAP) | {"price": priced}


# Every way out.

for _kind in ("csv", "parquet", "npy", "jsonl", "arrow"):

    @call(f"out: {_kind}", kind=_kind)
    def _out(place, folder, kind):
        into = folder / f"labels.{kind}"
        pate.aggregate(place / "counts.csv", **CHEAP, into=into)
        report = json.loads((folder / "labels.report.json").read_text())
        return {"labels": meaning.labels(into), "report": meaning.numbers("report", report)}


@call("out: saved later")
def _saved(place, folder):
    done = pate.aggregate(place / "counts.csv", **CHEAP)
    done.labels.save(folder / "labels.csv")
    done.report.with_labels(folder / "labels.csv").save(folder / "r.json")
    report = json.loads((folder / "r.json").read_text())
    return {
        "labels": meaning.labels(folder / "labels.csv"),
        "report": meaning.numbers("report", report),
    }


@call("out: pandas")
def _pandas(place, folder):
    frame = pate.aggregate(place / "counts.csv", **SAFE, **TEST).labels.to_pandas()
    return {"labels": meaning.labels(pa.Table.from_pandas(frame, preserve_index=False))}


# What votes cost, and what several runs cost together.


@call("cost: confident")
def _cost(place, folder):
    return meaning.numbers("cost", pate.cost(inputs.COUNTS, **SAFE).to_dict())


@call("cost: by the paper")
def _paper(place, folder):
    return meaning.numbers("cost", pate.cost(inputs.COUNTS, **SAFE, analysis="paper").to_dict())


@call("cost: with a prior")
def _cost_prior(place, folder):
    found = pate.cost(inputs.COUNTS, **GNMAX, prior=inputs.GUESSES, prior_weight=15)
    return meaning.numbers("cost", found.to_dict())


@call("smooth sensitivity: given order and beta")
def _sensitivity(place, folder):
    found = pate.smooth_sensitivity(inputs.COUNTS, **SAFE, order=12.0, beta=0.02)
    return meaning.numbers("smooth-sensitivity", found.to_dict())


def _ledgers():
    kept = {"order": 8.0, "release": "none", "keep_ledger": True, **TEST}
    first = pate.aggregate(inputs.COUNTS, "gnmax", sigma2=40.0, max_queries=20, **kept)
    second = pate.aggregate(inputs.COUNTS, **SAFE, max_queries=30, **kept)
    return [first.ledger, second.ledger]


@call("release: of ledgers, for all votes")
def _all_votes(place, folder):
    found = pate.release(_ledgers(), release="none", **TEST)
    return meaning.numbers("report", found.report.to_dict())


@call("release: of ledgers, by a draw")
def _draw(place, folder):
    found = pate.release(_ledgers(), release="upper", beta=0.02, sigma_release=9.0, **TEST)
    return meaning.numbers("report", found.report.to_dict())


def _two_runs(folder):
    asked = {"mechanism": "gnmax", "sigma2": 40.0, "record": folder / "year.spent.json"}
    return [pate.aggregate(inputs.COUNTS, **asked, max_queries=rows) for rows in (20, 30)]


@call("record: what two runs cost together")
def _spent(place, folder):
    done = _two_runs(folder)
    bill = pate.spent(folder / "year.spent.json", reports=[one.report for one in done])
    return meaning.numbers("spent", bill.to_dict())


@call("record: released")
def _record(place, folder):
    _two_runs(folder)
    found = pate.release(folder / "year.spent.json", external=[place / "pair.json"])
    return meaning.numbers("report", found.report.to_dict())


@call("record: of an ensemble")
def _ensemble(place, folder):
    os.environ["XDG_STATE_HOME"] = str(folder)
    done = pate.aggregate(inputs.COUNTS, "gnmax", sigma2=40.0, ensemble="clinics")
    spent = meaning.numbers("spent", pate.spent(ensemble="clinics").to_dict())
    return meaning.numbers("report", done.report.to_dict()) | {"record": spent}


@call("curve: of a report")
def _curve(place, folder):
    done = pate.aggregate(inputs.COUNTS, "gnmax", sigma2=40.0, record=False)
    return meaning.numbers("curve", pate.rdp_curve(done.report).to_dict())


@call("verify: labels and report")
def _verify(place, folder):
    pate.aggregate(inputs.COUNTS, "gnmax", sigma2=40.0, record=False, into=folder / "labels.csv")
    found = pate.verify(
        folder / "labels.report.json", folder / "labels.csv", with_dp_accounting=False
    )
    return {"holds": found.holds}


@call("verify: of other labels")
def _verify_other(place, folder):
    pate.aggregate(inputs.COUNTS, "gnmax", sigma2=40.0, record=False, into=folder / "labels.csv")
    (folder / "labels.csv").write_text("query_id,label,source\n0,1,teachers\n")
    found = pate.verify(
        folder / "labels.report.json", folder / "labels.csv", with_dp_accounting=False
    )
    return {"holds": found.holds}


@call("verify: an epsilon that was lowered")
def _verify_lowered(place, folder):
    done = pate.aggregate(inputs.COUNTS, "gnmax", sigma2=40.0, record=False)
    report = done.report.to_dict() | {"epsilon": done.report.epsilon - 0.1}
    (folder / "report.json").write_text(json.dumps(report))
    return {"holds": pate.verify(folder / "report.json", with_dp_accounting=False).holds}


@call("explain")
def _explain(place, folder):
    done = pate.aggregate(inputs.COUNTS, "gnmax", sigma2=40.0, record=False)
    told = " ".join(
        text for section in pate.explain(done.report).sections for text in section.texts
    )
    return {"told": meaning.told(told)}


# Sessions, plans and settings.


@call("session: counts")
def _session(place, folder):
    given = {"teachers": 100, "classes": 4, "mechanism": "gnmax", "sigma2": 40.0}
    with pate.Session(**given, target_epsilon=2.0, **TEST) as session:
        first = session.ask(inputs.COUNTS[0], id="q00")
        again = session.ask(inputs.COUNTS[0], id="q00")
        more = session.ask_all([pate.Ask(inputs.COUNTS[row], id=f"q{row:02d}") for row in (1, 2)])
        report = meaning.numbers("report", session.report().to_dict())
        return {"label": [first, again, *more], "remaining": session.remaining, "report": report}


@call("session: until all is spent")
def _session_spent(place, folder):
    given = {"teachers": 100, "classes": 4, **SAFE}
    asked = []
    try:
        with pate.Session(**given, max_queries=3, **TEST) as session:
            asked.extend(map(session.ask, inputs.COUNTS))
    except pate.BudgetSpent as spent:
        return {"label": asked, "exit code": spent.exit_code, "told": meaning.told(str(spent))}
    raise AssertionError("it never ended")


@call("plan: answers")
def _plan(place, folder):
    found = pate.plan(teachers=100, classes=4, queries=60, target_epsilon=2.0)
    return meaning.numbers("plan", found.to_dict())


@call("tune: given settings")
def _tune(place, folder):
    settings = {"threshold": 70.0, "sigma1": 40.0, "sigma2": 20.0}
    found = pate.tune(inputs.COUNTS, answers=20, release="none", **settings)
    return meaning.numbers("tune", found.to_dict())


@call("tokens: votes that follow from a shared draw")
def _tokens(place, folder):
    stream = np.random.RandomState(3)
    models = stream.dirichlet(np.ones(6), size=40)
    return {"votes": pate.coordinated_choice(models, seed=2026, position=1).tolist()}
