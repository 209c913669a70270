"""What the numbers of an output mean: the one place that knows how fields are called.

Frozen is what a number means. A field that is renamed, or moves, is renamed here; a number that
changes is a fault.
"""

import csv
import hashlib
import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import feather

_MECHANISM = {
    "mechanism": "mechanism.name",
    "teachers": "mechanism.teachers",
    "classes": "mechanism.classes",
    "threshold": "mechanism.threshold",
    "sigma of the threshold": "mechanism.sigma1",
    "sigma of the argmax": "mechanism.sigma2",
    "Laplace scale": "mechanism.laplace_scale",
    "epsilon of a query": "mechanism.query_epsilon",
    "delta of a query": "mechanism.query_delta",
    "refusals": "mechanism.refusals",
    "confidence": "mechanism.confidence",
    "teachers a record": "mechanism.teachers_per_record",
    "votes of a guess": "mechanism.prior_weight",
}
_WORST = {
    "worst case": "data_independent.epsilon",
    "order of the worst case": "data_independent.order",
    "worst case of the labels": "data_independent.labels_epsilon",
    "textbook by orders": "crosscheck.rdp_epsilon",
    "textbook, exact": "crosscheck.exact_epsilon",
}
_ASKED = {"queries": "queries", "most answers": "max_answers", "delta": "delta"}
_REPORT = {
    "epsilon": "epsilon",
    "kind": "epsilon_kind",
    "private": "private",
    "sound": "sound",
    "answers": "answers",
    **_ASKED,
    **_MECHANISM,
    **_WORST,
    "release": "draw.kind",
    "sanitized": "sanitized",
    "order of the release": "draw.order",
    "beta": "draw.beta",
    "sigma of the release": "draw.sigma",
    "passed": "passed",
    "target": "tested.epsilon",
    "epsilon of a refusal": "tested.refusal_epsilon",
    "bound": "tested.bound",
    "orders of the test": "tested.test_orders",
    "target met by any votes": "met.epsilon",
    "total": "spent.epsilon",
    "delta of the total": "spent.delta",
    "epsilons of the runs": "spent.runs.*.epsilon",
    "groups": "groups.*.epsilon",
    "rounds": "rounds.*.queries",
    "guesses": "guesses",
}
_QUOTE = {
    "epsilon": "epsilon",
    **_ASKED,
    **_MECHANISM,
    **_WORST,
    "target": "target.epsilon",
    "epsilon of a refusal": "target.refusal_epsilon",
    "groups": "groups.*.epsilon",
}
_COST = {
    "epsilon": "epsilon",
    "order": "order",
    "orders": "orders",
    "rdp": "rdp",
    "rdp of the threshold": "steps.threshold",
    "rdp of the argmax": "steps.argmax",
    "expected answers": "expected_answers",
    "cost of a query": "per_query.quantiles",
    **_ASKED,
    **_MECHANISM,
    "worst case": "data_independent.epsilon",
    "order of the worst case": "data_independent.order",
}
_SENSITIVITY = {
    "order": "order",
    "beta": "beta",
    "smooth sensitivity": "smooth_sensitivity",
    "distance": "distance",
    "rdp": "rdp",
    "local sensitivity": "local_sensitivity",
    "cost by distance": "cost_by_distance",
    **_ASKED,
    **_MECHANISM,
}
_SPENT = {
    "total": "epsilon",
    "delta of the total": "delta",
    "sum": "sum_epsilon",
    "budget": "budget",
    "kinds": "runs.*.kind",
    "epsilons": "runs.*.epsilon",
    "deltas": "runs.*.delta",
    "answers": "runs.*.answers",
}
_CURVE = {"orders": "orders", "rdp": "rdp", "adjacency": "adjacency"}
_PLAN = {"found": "found", "target": "target_epsilon", "delta": "delta", "teachers": "teachers"}
_TUNE = {
    "target": "target_epsilon",
    "threshold": "winner.threshold",
    "sigma of the threshold": "winner.sigma1",
    "sigma of the argmax": "winner.sigma2",
    "worst case": "winner.data_independent_epsilon",
    "expected answers": "winner.answers",
}
_ANSWERS = {"id": "id", "label": "label", "remaining": "remaining"}
FIELDS = {
    "report": _REPORT, "quote": _QUOTE, "cost": _COST, "smooth-sensitivity": _SENSITIVITY,
    "spent": _SPENT, "plan": _PLAN, "tune": _TUNE, "curve": _CURVE, "answer": _ANSWERS,
}  # fmt: skip
# Rows of labels that nobody asked the teachers about: how many a file has of them is its own.
_UNASKED = "not asked"
_LONG = 8


def numbers(kind, document):
    """Those of a JSON document of this kind, by meaning; what it does not state is left out."""
    if kind == "report":
        document = document | _of_rounds(document)
    found = {meaning: _at(document, path) for meaning, path in FIELDS[kind].items()}
    return {meaning: _plain(value) for meaning, value in found.items() if value is not None}


def _of_rounds(report):
    """What stands in the rounds of a report, and nowhere else: draws, targets and guesses."""
    rounds = report["rounds"]
    one = rounds[0] if len(rounds) == 1 and not report.get("total") else {}
    draw = report.get("sanitizer") or one.get("sanitizer") or {"kind": "none"}
    target = one.get("target")
    priors = [done["prior"] for done in rounds if done.get("prior")]
    found = {"draw": draw, "met" if report.get("passed") is None else "tested": target}
    return found | ({"guesses": sum(prior["guesses"] for prior in priors)} if priors else {})


def _at(document, path):
    name, _, rest = path.partition(".")
    if name == "*":
        found = [_at(entry, rest) for entry in document]
        if all(isinstance(entry, (int, float)) for entry in found):
            found.sort()  # rounds of ledgers come in the order of their names, which are drawn
        return found if any(entry is not None for entry in found) else None
    if not isinstance(document, dict) or document.get(name) is None:
        return None
    return _at(document[name], rest) if rest else document[name]


def _plain(value):
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        if len(value) <= _LONG:
            return [_plain(entry) for entry in value]
        return {"entries": len(value), "first": _plain(value[0]), "sum": _plain(float(sum(value)))}
    return float(f"{value:.12g}") if isinstance(value, float) else value


def labels(source):
    """What a file or a table of labels says: how many rows, and their hash."""
    rows = source.to_pylist() if isinstance(source, pa.Table) else rows_of(Path(source))
    rows = [row for row in rows if not isinstance(row, dict) or row.get("source") != _UNASKED]
    said = "".join(json.dumps(row, default=str, sort_keys=True) + "\n" for row in map(alike, rows))
    return {"rows": len(rows), "sha256": hashlib.sha256(said.encode()).hexdigest()[:16]}


def alike(row):
    """A row as every format has it: no label is None, and numbers are texts."""
    if not isinstance(row, dict):
        return row
    ids, *others = row  # whatever the column of ids is called
    said = {"id": row[ids], **{name: row[name] for name in others}}
    return {name: None if value in ("", None) else _text(value) for name, value in said.items()}


def _text(value):
    return [_text(entry) for entry in value] if isinstance(value, list) else str(value)


def rows_of(path):
    """The rows of a file of labels, read without any code of ours; of NPY as numbers."""
    if path.suffix == ".npy":
        yield from np.load(path).tolist()
    elif path.suffix == ".parquet":
        yield from pq.read_table(path).to_pylist()
    elif path.suffix == ".arrow":
        yield from feather.read_table(path).to_pylist()
    elif path.suffix == ".csv":
        with path.open(newline="") as file:
            yield from csv.DictReader(file)
    else:
        yield from map(json.loads, path.read_text().splitlines())


def by_query(path):
    """The sums of all columns of numbers in a CSV with a row a query."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    sums = {name: _plain(sum(float(row[name]) for row in rows)) for name in list(rows[0])[1:]}
    return {"rows": len(rows), **sums}


def told(text):
    """Every epsilon and delta that a text in words states."""
    return sorted(set(re.findall(r"(?:epsilon|delta) (?:of |at most )?([0-9.]+(?:e-?\d+)?)", text)))
