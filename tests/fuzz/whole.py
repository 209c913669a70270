"""Files as they should be, to be damaged. Every number of votes in them begins with MARK."""

import gzip
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.feather

import pate_cli
import record_files
from pate_cli.core.noise import RunKey
from pate_cli.core.words import Adjacency, ReleaseKind
from pate_cli.disclosure.external import Stated
from pate_cli.disclosure.ledger import Ledger, Round
from pate_cli.disclosure.record import SpendRecord
from pate_cli.disclosure.report import Report
from pate_cli.disclosure.runs import Budget, Outcome, Run
from pate_cli.disclosure.settings import ReleasePlan
from pate_cli.disclosure.stopping import stop_rule
from pate_cli.disclosure.target import TargetPlan
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.mechanisms.gnmax import GNMax
from pate_cli.mechanisms.stability import Stability
from some_runs import told
from stored import arrow, lines, npy, parquet, table_in

MARK = 27_118
"""Votes of these files begin so, that a message that shows one is noticed."""

_ROWS = 24
_NAMES = ("cat", "dog", "bird")


def votes() -> np.ndarray[Any, Any]:
    """Histograms [queries, 3] of one total."""
    rng = np.random.default_rng(1)
    found = MARK * 10 + rng.integers(3, 8, size=(_ROWS, 3))
    found[:, 2] = MARK * 30 + 15 - found[:, :2].sum(axis=1)
    return found


def words() -> np.ndarray[Any, Any]:
    """Votes [queries, teachers] in words, some of them no name."""
    rng = np.random.default_rng(2)
    return np.array([*_NAMES, f"q{MARK}"])[rng.integers(0, 4, size=(_ROWS, 6))]


def _ids() -> list[str]:
    return [f"q{row}" for row in range(_ROWS)]


def wide() -> Any:
    found = votes()
    return pa.table({"query_id": _ids(), **{f"class_{c}": found[:, c] for c in range(3)}})


def _listed() -> Any:
    return pa.table({"query_id": _ids(), "counts": votes().tolist()})


def _long() -> Any:
    each = np.arange(60)
    label = np.array([*_NAMES, f"q{MARK}"])[each % 4]
    return pa.table({"query_id": each // 6, "teacher_id": each % 6, "label": label})


def _sparse() -> Any:
    return pa.table({"label": [[0, 2, 5]] * _ROWS, "count": votes().tolist()})


def _texts() -> Any:
    found = words()
    columns = {f"teacher_{t}": found[:, t] for t in range(found.shape[1])}
    return pa.table({"query_id": _ids(), **columns})


def _csv() -> bytes:
    rows = [f"q{row}," + ",".join(map(str, line)) for row, line in enumerate(votes())]
    return "\n".join(["query_id,class_0,class_1,class_2", *rows]).encode()


def _groups() -> Any:
    return pa.table(
        {
            "teacher_id": list(range(6)),
            "group": ["a", "a", "b", "b", "b", "c"],
            "weight": [1, 2, 3, 1, 1, 5],
            "teachers_per_record": [1, 1, 2, 2, 2, 1],
        }
    )


# What runs leave behind. Costs, which are secrets, are all MARK.


_MECHANISM = GNMax(100, 3, sigma2=20.0)
_TIME = "2026-01-02T03:04:05Z"
_UPPER = ReleasePlan(ReleaseKind.UPPER, 1e-5, 8.0, 0.02, 9.0)


@cache
def ledger() -> Ledger:
    asked = told(_MECHANISM, 100, max_answers=50, sanitizer=_UPPER)
    rounds = tuple(Round.of(asked, id=name * 32, answers=40) for name in "ab")
    secret = MARK / 1e5
    return Ledger(
        orders=np.array([4.0, 8.0]),
        rdp=np.array([secret, secret]),
        sensitivity=np.full((2, 3), secret),
        ceiling=np.array([secret, secret]),
        rounds=rounds,
    )


@cache
def record() -> SpendRecord:
    """A run of every kind."""
    stated = Stated(Adjacency.REPLACE_ONE, name="sgd", orders=(2.0, 8.0), rdp=(0.1, 0.4))
    ended: dict[str, Any] = {"outcome": Outcome.LABELLED, "time": _TIME}
    mechanism = ConfidentGNMax(100, 3, threshold=60.0, sigma1=40.0, sigma2=20.0)
    rule = stop_rule(mechanism, epsilon=3.0, delta=1e-5)
    stable = Stability(100, 3, query_epsilon=0.5, query_delta=1e-9)
    runs = (
        Run.of(
            id="9" * 32, answers=50, settings=told(_MECHANISM, 100, max_answers=50),
            round="a" * 32, votes="votes.npy", budget=Budget(9.0), total_epsilon=1.5, **ended,
        ),
        Run.of(
            id="c" * 32, outcome=Outcome.RELEASED, time=None,
            drawn_from=("a" * 32,), draw=ReleasePlan(ReleaseKind.UPPER, 1e-5, 4.0, 0.05, 10.0),
        ),
        Run.of(
            id="d" * 32, time=_TIME,
            settings=told(
                _MECHANISM, 100, delta=1e-6, target=TargetPlan(1.0, 1e-6, 0.1, test_orders=(8.0,))
            ),
        ),
        Run.of(id="e" * 32, answers=9, settings=told(stable, 9, analysis="composition"), **ended),
        Run.of(
            id="f" * 32, answers=7, settings=told(mechanism, 7, rule=rule),
            session="0" * 64, **ended,
        ),
        Run.of(
            id=stated.digest, outcome=Outcome.STATED, time=_TIME, delta=1e-5, external=stated,
        ),
    )  # fmt: skip
    return SpendRecord(runs)


@cache
def report() -> Report:
    """Private by its own account, or nothing of it could be released."""
    told: dict[str, Any] = {"layout": "counts", "sigma2": 40.0, "seed": 1}
    with patch.object(RunKey, "private", property(lambda _: True)):
        found = pate_cli.aggregate(np.tile([[60, 30, 10]], (9, 1)), "gnmax", **told).report
    return replace(found, time=_TIME)


WHOLE: dict[str, Callable[[], bytes]] = {
    "npy": lambda: npy(votes()),
    "npy of words": lambda: npy(words()),
    "npy of scores": lambda: npy(np.full((_ROWS, 5, 3), MARK / 7.0)),
    "npy of labels": lambda: npy(np.random.default_rng(3).integers(0, 2, size=(_ROWS, 5, 3))),
    "npz": lambda: npy(votes(), np.savez),
    "npz, deflated": lambda: npy(votes(), np.savez_compressed),
    "parquet, wide": lambda: parquet(wide()),
    "parquet, plain pages": lambda: parquet(wide(), compression="none", use_dictionary=False),
    "parquet, lists": lambda: parquet(_listed()),
    "parquet, long": lambda: parquet(_long()),
    "parquet, sparse": lambda: parquet(_sparse()),
    "parquet, words": lambda: parquet(_texts()),
    "csv": _csv,
    "jsonl, lists": lambda: table_in(_listed(), "jsonl"),
    "jsonl, objects": lambda: table_in(wide().drop_columns("query_id"), "jsonl"),
    "arrow": lambda: arrow(wide()),
    "arrow, lz4": lambda: arrow(wide(), compression="lz4"),
    "arrow, stream": lambda: arrow(wide(), pa.ipc.new_stream, rows=16),
    "gzip": lambda: gzip.compress(_csv(), mtime=0),
    "zstd": lambda: pa.compress(_csv(), "zstd", asbytes=True),
    "student, npy": lambda: npy(np.full((_ROWS, 4), 0.25)),
    "student, parquet": lambda: parquet(
        pa.table({"query_id": _ids(), **{f"class_{c}": [0.25] * _ROWS for c in range(4)}})
    ),
    "student, csv": lambda: b"a,b\n" + b"0.25,0.75\n" * _ROWS,
    "prior, npy": lambda: npy(np.arange(_ROWS) % 3),
    "prior, parquet": lambda: parquet(pa.table({"query_id": _ids(), "label": _ids()})),
    "prior, jsonl": lambda: lines([{"query_id": name, "label": 1} for name in _ids()[:2]]),
    "queries, npy": lambda: npy(np.arange(_ROWS)),
    "queries, csv": lambda: "\n".join(["query_id", *_ids()]).encode(),
    "groups, parquet": lambda: parquet(_groups()),
    "groups, csv": lambda: b"teacher,group,weight\n0,a,1\n1,a,2\n2,b,1\n",
    "names": lambda: "\n".join((*_NAMES, "fish")).encode(),
    "ledger": lambda: ledger().to_json().encode(),
    "record": lambda: record_files.content(record()),
    "report": lambda: report().to_json().encode(),
}
"""Every kind of file, by the name of its case."""


@cache
def whole(kind: str) -> bytes:
    """One of them, made once."""
    return WHOLE[kind]()
