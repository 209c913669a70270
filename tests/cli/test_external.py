"""`explain --export-rdp` and `release --external`: curves out, other mechanisms into a total."""

from __future__ import annotations

import json

import jsonschema
import numpy as np
import pytest

import pate_cli
from pate_cli.disclosure.record import SpendRecord
from pate_cli.disclosure.report import report_schema
from pate_cli.disclosure.runs import RunKind

PAIR = {"epsilon": 0.5, "delta": 1e-6, "adjacency": "replace-one", "covers": "a histogram"}
CURVE = {"orders": [2, 4, 8], "rdp": [0.1, 0.2, 0.4], "adjacency": "add-or-remove-one"}


@pytest.fixture(autouse=True)
def few_orders(monkeypatch):
    monkeypatch.setattr("pate_cli.disclosure.exchange._ORDERS", (1.1, 4.0, 512.0))


@pytest.fixture
def ledger(pate, votes, folder):
    words = ["--order", 4, "--release", "none", "--ledger", "ledger", "--report", "first.json"]
    assert pate("aggregate", votes, *words).exit_code == 0
    (folder / "pair.json").write_text(json.dumps(PAIR))
    (folder / "curve.json").write_text(json.dumps(CURVE))
    return "ledger"


def test_a_curve_is_that_of_the_report(pate, votes, folder):
    assert pate("aggregate", votes, "--report", "report.json").exit_code == 0
    done = pate("explain", "report.json", "--export-rdp", "curve.json")
    assert (done.exit_code, done.stdout) == (0, "")
    found = json.loads((folder / "curve.json").read_text())
    assert (found["orders"][0], found["orders"][-1]) == (1.1, 512.0)
    few = pate_cli.rdp_curve(folder / "report.json", orders=[4.0])
    assert few.rdp[0] == found["rdp"][found["orders"].index(4.0)]
    piped = pate("explain", "report.json", "--export-rdp", "-")
    assert json.loads(piped.stdout) == found


NO_CURVE = {
    "a seed": ["--seed", 1],
    "a target": ["--target-epsilon", 1, "--min-pass", 0],
    "a composition": ["--mechanism", "stability", "--max-epsilon", 1000],
    "classes that were read off": ["--max-epsilon", 100],
}


@pytest.mark.parametrize("why", NO_CURVE)
def test_a_report_that_promises_no_curve_gives_none(pate, votes, refused, folder, why):
    if why.startswith("classes"):
        np.save(folder / "labels.npy", np.arange(120).reshape(30, 4) % 3)
        votes = "labels.npy"
    layout = ["--layout", "labels"] if why.startswith("classes") else []
    done = pate("aggregate", votes, *NO_CURVE[why], *layout, "--report", "report.json")
    assert done.exit_code in (0, 8), done.stderr
    refused(pate("explain", "report.json", "--export-rdp", "curve.json"), 2)
    assert not (folder / "curve.json").exists()


def test_everything_on_the_same_records_is_one_total(pate, ledger, votes, folder):
    files = ["--external", "pair.json", "--external", "curve.json"]
    draw = ["--release", "upper"]
    result = pate("release", ledger, *files, *draw)
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    jsonschema.validate(found, report_schema())
    assert found["delta"] == 1.1e-5
    assert "at delta 1.1e-05" in result.stderr
    assert found["external"] == [PAIR | {"name": "pair.json"}, CURVE | {"name": "curve.json"}]
    # The record tells of them, too; the draw cannot be had again.
    record = SpendRecord.read(votes.with_name("votes.npy.spent.json"))
    kinds = [run.kind for run in record.runs]
    external = [RunKind.EXTERNAL] * 2
    assert sorted(kinds) == sorted([RunKind.WORST_CASE, RunKind.RELEASE, *external])
    assert found["spent"]["epsilon"] <= found["spent"]["sum_epsilon"]
    assert pate("release", ledger, *draw).exit_code == 7
    done = pate("release", ledger, *draw, "--again", "--report", "again.json")
    assert done.exit_code == 0, done.stderr
    again = json.loads((folder / "again.json").read_text())
    jsonschema.validate(again, report_schema())
    (earlier,) = again["earlier_draws"]
    assert earlier["beta"] == found["sanitizer"]["beta"]
    assert "1 earlier release" in pate_cli.rdp_curve("again.json").covers
