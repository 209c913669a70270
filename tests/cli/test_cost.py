"""`pate cost`: JSON for a pipe, tables for a person, a row per query, mechanisms side by side."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pytest

from pate_cli.planning.cost import TIGHT_ORDERS
from slices import some


@pytest.fixture
def priced(pate, votes):
    def run(*words, at=votes):
        result = pate("cost", at, *words)
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)

    return run


MECHANISMS = [[], ["--mechanism", "gnmax"], ["--mechanism", "lnmax"]]
ANALYSES = ["tight", "paper"]


@pytest.mark.parametrize(
    ("words", "analysis"),
    some(product(MECHANISMS, ANALYSES), 5),
    ids=lambda given: given if isinstance(given, str) else given[-1] if given else "confident",
)
def test_every_order_and_step_is_there_and_adds_up(priced, words, analysis):
    found = priced(*words, "--analysis", analysis)
    assert found["releasable"] is False
    assert found["analysis"] == analysis
    assert len(found["orders"]) == len(found["rdp"]) > 5
    if analysis == "tight":
        assert found["orders"] == TIGHT_ORDERS.tolist()
    assert set(found["steps"]) == ({"argmax"} if words else {"threshold", "argmax"})
    for at, rdp in enumerate(found["rdp"]):
        assert sum(step[at] for step in found["steps"].values()) == pytest.approx(rdp, rel=1e-12)
    best = found["orders"].index(found["order"])
    log_delta = np.log(1e-5)
    order, rdp = found["order"], found["rdp"][best]
    conversion = -log_delta / (order - 1)
    if analysis == "tight":
        conversion = np.log1p(-1 / order) - (log_delta + np.log(order)) / (order - 1)
    assert found["epsilon"] == pytest.approx(rdp + conversion, rel=1e-12)
    by_plurality = found["per_query"]["by_plurality"]
    assert sum(row["queries"] for row in by_plurality) == found["queries"] == 60
    assert sum(row["share_of_cost"] for row in by_plurality) == pytest.approx(1.0)


def test_rows_per_query_go_through_the_same_door_as_all_outputs(pate, votes, folder, leftovers):
    old = '"query_id","plurality"\n'
    (folder / "rows.csv").write_text(old)
    result = pate("cost", votes, "--per-query", "rows.csv")
    assert (result.exit_code, result.stdout) == (6, "")
    assert (folder / "rows.csv").read_text() == old
    assert pate("cost", votes, "--per-query", "rows.csv", "--force").exit_code == 0
    assert (folder / "rows.csv").read_text() != old
    assert leftovers() == ["rows.csv"]
    assert pate("cost", votes, "--per-query", "rows.npy").exit_code == 2
    assert pate("cost", votes, "--per-query", "rows.txt").exit_code == 2
    assert leftovers() == ["rows.csv"]
