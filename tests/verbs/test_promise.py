"""What a run is to be follows from public numbers alone, before any vote is seen."""

from __future__ import annotations

import numpy as np
import pytest

import pate_cli as pate

VOTES = np.tile([90, 6, 4], (400, 1))
GIVEN = {"layout": "counts", "record": "r.json", "bound": "two-tail"}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    "said",
    [
        {"max_queries": 20},
        {"max_answers": 5},
        {"sigma2": 40.0},
        {"release": "none"},
        {"mechanism": "lnmax"},
        {"keep_ledger": True},
    ],
)
def test_whoever_says_more_than_a_budget_gets_what_was_said(said):
    asked = {"max_epsilon": 1e6, "budget": 1e5, "budget_delta": 0.1} | GIVEN | said
    assert pate.quote(VOTES, **asked).settings.target is None


def test_a_ledger_by_name_of_a_file_takes_no_target_from_a_budget():
    """Tested labels have no ledger, and the run was asked for one."""
    into = pate.Destination("l.csv", ledger="kept.ledger")
    done = pate.aggregate(VOTES, into=into, budget=1e5, budget_delta=0.1, max_epsilon=1e6, **GIVEN)
    assert done.report.target is None
    assert done.ledger is not None
