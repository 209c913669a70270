"""What a run is to be follows from public numbers alone, before any vote is seen."""

from __future__ import annotations

import numpy as np
import pytest

import pate_cli as pate
from pate_cli.core.errors import UnreachableError, UsageError

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


def test_a_composition_above_its_target_is_refused():
    """It has no release test, so its worst case must be at most the target."""
    asked = {"query_epsilon": 0.1, "query_delta": 1e-8, "max_queries": 40, "layout": "counts"}
    worst = pate.quote(VOTES, "stability", max_epsilon=1e6, **asked).epsilon
    with pytest.raises(UnreachableError, match="without an RDP cost it has no release test"):
        pate.aggregate(VOTES, "stability", target_epsilon=0.9 * worst, **asked)
    done = pate.aggregate(VOTES, "stability", target_epsilon=1.1 * worst, **asked).report
    assert (done.epsilon, done.passed) == (worst, None)


def test_labels_with_a_target_keep_no_ledger():
    for asked in ({"keep_ledger": True}, {"release": "none"}, {"release": "upper"}):
        with pytest.raises(UsageError, match="cannot be used with `target_epsilon`"):
            pate.aggregate(VOTES, target_epsilon=2.0, **asked, **GIVEN)
