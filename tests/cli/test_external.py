"""`explain --export-rdp` and `release --external`: curves out, other mechanisms into a total."""

from __future__ import annotations

import json

import numpy as np
import pytest

import pate_cli


@pytest.fixture(autouse=True)
def few_orders(monkeypatch):
    monkeypatch.setattr("pate_cli.disclosure.exchange._ORDERS", (1.1, 4.0, 512.0))


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
