"""What a run promises follows from public numbers, and next to nothing is promised by name only."""

import numpy as np
import pytest

import pate_cli as pate
from pate_cli.core.errors import CeilingError, UnreachableError, UsageError
from pate_cli.core.words import CEILING
from slices import some

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
    with pytest.raises(UnreachableError, match="it cannot have a release test"):
        pate.aggregate(VOTES, "stability", target_epsilon=0.9 * worst, **asked)
    done = pate.aggregate(VOTES, "stability", target_epsilon=1.1 * worst, **asked).report
    assert (done.epsilon, done.passed) == (worst, None)


def test_labels_with_a_target_keep_no_ledger():
    for asked in ({"keep_ledger": True}, {"release": "none"}, {"release": "upper"}):
        with pytest.raises(UsageError, match="cannot be used with `target_epsilon`"):
            pate.aggregate(VOTES, target_epsilon=2.0, **asked, **GIVEN)


TWENTY = np.tile([30, 6, 4], (20, 1))
DEAR = {"mechanism": "gnmax", "sigma2": 2.0, "layout": "counts"}
WAYS = {
    "worst case": {},
    "none": {"release": "none"},
    "ledger": {"release": "none", "keep_ledger": True, "order": 4.0},
    "no ledger": {"release": "none", "order": 4.0},
    "paper": {"release": "none", "analysis": "paper", "mechanism": "confident"},
    "composed": {"mechanism": "sparse-vector", "sigma2": None, "refusals": 4, "query_epsilon": 6.0},
}


@pytest.mark.parametrize("way", some(WAYS, 2))
def test_a_run_above_is_refused_before_anything_is_drawn_or_entered(way, tmp_path, monkeypatch):
    asked = {**DEAR, **WAYS[way], "record": tmp_path / "spent.json"}
    price = pate.quote(TWENTY, **{k: v for k, v in asked.items() if k != "keep_ledger"}).epsilon
    assert price > CEILING
    with monkeypatch.context() as patch:
        patch.setattr("pate_cli.core.noise.RunKey.of", lambda _: pytest.fail("a key was drawn"))
        with pytest.raises(CeilingError) as caught:
            pate.aggregate(TWENTY, into=tmp_path / "labels.csv", **asked)
    assert list(tmp_path.iterdir()) == []
    error = caught.value
    assert isinstance(error, UnreachableError)
    assert error.exit_code == 5
    assert price <= error.epsilon <= price * 1.00001
    told = f"{error.epsilon:g}"
    assert f"could cost epsilon {told} at delta 1e-05" in str(error)
    for way_out in ("`max_queries`", "more noise", "`target_epsilon`", f"`max_epsilon` {told}"):
        assert way_out in str(error)
    done = pate.aggregate(TWENTY, **asked, max_epsilon=error.epsilon)
    assert done.report.epsilon <= error.epsilon
    assert (tmp_path / "spent.json").exists()


@pytest.mark.parametrize("asked", [{"seed": 1}, {"release": "upper"}], ids=str)
def test_tests_and_sanitized_runs_are_exempt(asked):
    assert pate.quote(TWENTY, **DEAR).epsilon > CEILING
    report = pate.aggregate(TWENTY, **DEAR, **asked).report
    assert report.private is ("seed" not in asked)
    assert report.data_independent.epsilon > CEILING


@pytest.mark.parametrize("target", [12.0, 1000.0])
def test_a_target_above_has_to_be_asked_for_by_name_as_well(target, tmp_path):
    asked = {**DEAR, "target_epsilon": target, "record": tmp_path / "spent.json"}
    asked["bound"] = "two-tail"
    whole = pate.quote(TWENTY, **DEAR).epsilon
    assert 12.0 < whole < 1000.0
    with pytest.raises(CeilingError, match="state a smaller `target_epsilon`") as caught:
        pate.aggregate(TWENTY, **asked, into=tmp_path / "labels.csv")
    assert list(tmp_path.iterdir()) == []
    named = caught.value.epsilon
    assert named == pytest.approx(min(target, whole), rel=1e-5)
    needs = f"The run itself needs --max-epsilon {named:g}."
    assert needs in pate.quote(TWENTY, **asked).warnings
    with pytest.raises(UnreachableError, match="above `max_epsilon` 11"):
        pate.aggregate(TWENTY, **asked, max_epsilon=11.0)
    done = pate.aggregate(TWENTY, **asked, max_epsilon=named)
    assert CEILING < done.report.epsilon <= named


def test_a_price_is_told_whatever_it_is():
    quote = pate.quote(TWENTY, **DEAR)
    with pytest.raises(CeilingError) as caught:
        pate.aggregate(TWENTY, **DEAR)
    named = caught.value.epsilon
    worth, needs = quote.warnings
    assert worth.startswith("This epsilon promises practically nothing")
    assert needs == (f"The run itself needs --max-epsilon {named:g}.")
    assert len(pate.quote(TWENTY, **DEAR, max_epsilon=named).warnings) == 1
    assert len(pate.quote(TWENTY, **DEAR, release="upper").warnings) == 1
    assert pate.quote(TWENTY, **DEAR, max_queries=1).warnings == ()
