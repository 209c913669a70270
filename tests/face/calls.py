"""The calls in Python that are frozen, by what they show.

A call is a function of the folder of inputs and of an empty one, and gives numbers by meaning, and
the hash of labels.
"""

import json
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
SAFE = {"mechanism": "confident", "threshold": 70.0, "sigma1": 40.0, "sigma2": 20.0}
CHEAP = {**GNMAX, **TEST}
CALLS = {}


def call(title, **given):
    """Keep a function as a call of this name."""

    def keep(function):
        CALLS[title] = partial(function, **given)
        return function

    return keep


def run(votes, **asked):
    """A run of `aggregate`: report and labels."""
    done = pate.aggregate(votes, **asked)
    return {
        "report": meaning.numbers("report", done.report.to_dict()),
        "labels": meaning.labels(done.labels.to_arrow()),
    }


@call("gnmax: worst case")
def _worst(place, folder):
    return run(inputs.COUNTS, **GNMAX, **TEST)


@call("interactive: price")
def _price(place, folder):
    given = {"threshold": 70.0, "sigma1": 40.0, "sigma2": 20.0, "confidence": 0.8}
    mechanism = pate.InteractiveGNMax(100, inputs.CLASSES, predictions=inputs.STUDENT, **given)
    return meaning.numbers("quote", pate.quote(inputs.COUNTS, mechanism, max_queries=30).to_dict())


@call("a target that is refused")
def _refused(place, folder):
    asked = {"target_epsilon": 1.0, "refusal_epsilon": 0.4, "max_queries": 60, "sigma2": 12.0}
    try:
        pate.aggregate(inputs.COUNTS, "gnmax", **TEST, **asked, bound="two-tail")
    except pate.RefusedError as error:
        return meaning.numbers("report", error.report.to_dict()) | {"exit code": error.exit_code}
    raise AssertionError("the coin came out for the labels")


@call("mechanism as an object: confident")
def _confident(place, folder):
    given = pate.ConfidentGNMax(teachers=100, classes=4, threshold=70.0, sigma1=40.0, sigma2=20.0)
    return run(inputs.COUNTS, mechanism=given, **TEST)


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


@call("tokens: votes that follow from a shared draw")
def _tokens(place, folder):
    stream = np.random.RandomState(3)
    models = stream.dirichlet(np.ones(6), size=40)
    return {"votes": pate.coordinated_choice(models, seed=2026, position=1).tolist()}
