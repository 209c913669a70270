"""The record on disk: what its lines mean, and that a run is in it before anything is drawn."""

import fcntl
import json
import multiprocessing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pate_cli.core.errors import LedgerError, OutputError, UnreachableError
from pate_cli.disclosure.entry import Entry, RecordPlace
from pate_cli.disclosure.record import KIND, RecordFile, SpendRecord
from pate_cli.disclosure.runs import Budget, Outcome, Run
from pate_cli.disclosure.target import TargetPlan
from pate_cli.files.journal import Journal
from slices import tries
from some_runs import LABELLED, RELEASED, STATED, TRIED

RUNS = (LABELLED, TRIED, RELEASED, STATED)


@pytest.fixture
def place(tmp_path):
    return tmp_path / "r.json"


@given(st.permutations(RUNS), st.integers(0, 4))
@settings(max_examples=tries(20))
def test_runs_come_back_as_they_were_entered(tmp_path_factory, runs, most):
    path = tmp_path_factory.mktemp("record") / "r.json"
    file = RecordFile(path)
    file.enter(*runs[:most])
    assert file.record == SpendRecord.read(path) == SpendRecord(tuple(runs[:most]))


def test_an_outcome_is_noted_once_and_a_run_that_never_was_is_struck_out(place):
    file = RecordFile(place)
    file.enter(TRIED, LABELLED)
    ended = replace(TRIED, outcome=Outcome.REFUSED, total_epsilon=1.2, total_delta=2e-5)
    file.settle(ended)
    file.settle(replace(ended, outcome=Outcome.LABELLED))
    assert SpendRecord.read(place).runs == (ended, LABELLED)
    file.strike(LABELLED)
    assert SpendRecord.read(place).runs == (ended,)
    assert len(place.read_text().splitlines()) == 5


def test_the_lines_are_json_that_anybody_reads(place):
    RecordFile(place).enter(LABELLED)
    first, second = map(json.loads, place.read_text().splitlines())
    assert (first["kind"], first["version"]) == ("pate-spend-record", 1)
    assert second["enter"]["epsilon"] == LABELLED.epsilon


@pytest.mark.parametrize(
    "event",
    [
        {"enter": {"id": "b"}},
        {"enter": {**json.loads('{"id": "b", "kind": "target", "outcome": "void", "time": null}')}},
        {"settle": "nobody", "outcome": "labelled", "answers": 1, "total": [1.0, 1e-5]},
        {"settle": "f00d", "outcome": "void", "answers": 1, "total": [1.0, 1e-5]},
        {"settle": "f00d", "outcome": "labelled", "answers": 1, "total": 3},
        {"strike": "nobody"},
        {"strike": 3},
        {"ask": "f00d", "asks": [{"label": 1}]},
        {"ask": "nobody", "asks": []},
        {"goes_on_in": 1},
        {"surprise": 1},
    ],
)
def test_a_line_that_means_nothing_is_refused(place, event):
    RecordFile(place).enter(TRIED)
    Journal(place, KIND).append(event)
    with pytest.raises(LedgerError, match=r"r\.json is damaged"):
        SpendRecord.read(place)


def test_a_run_is_entered_once(place):
    file = RecordFile(place)
    file.enter(TRIED)
    with pytest.raises(LedgerError, match="line 3"):
        file.enter(TRIED)


def test_a_record_that_is_missing_is_empty(tmp_path):
    assert SpendRecord.read(tmp_path / "none.json") == SpendRecord()


def test_a_file_system_without_locks_is_refused_before_anything_is_entered(place, monkeypatch):
    def none(_opened, _how):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", none)
    entry = Entry(RecordPlace(RecordFile(place)), TRIED, budget=None)
    with pytest.raises(OutputError, match=r"has no locks .*; nothing was spent"):
        entry.enter()
    assert not place.exists()


def test_a_record_that_lost_lines_while_a_run_was_under_way_takes_no_outcome(place):
    entry = Entry(RecordPlace(RecordFile(place)), TRIED, budget=None)
    entry.enter()
    place.write_bytes(b"")
    with pytest.raises(LedgerError, match="lost or changed"):
        entry.settle(Outcome.LABELLED)
    assert place.read_bytes() == b""


def _runs(folder, worker, runs):
    """Enter as many runs of ε .1 as the budget lets in, and end every other one refused."""
    budget = Budget(2.0, 1e-3)
    for number in range(runs):
        settings = replace(TRIED.settings, target=TargetPlan(0.1, 1e-5, 0.05, test_orders=(8.0,)))
        run = Run.of(id=f"{worker} {number}", time=None, settings=settings)
        try:
            entry = Entry(RecordPlace(RecordFile(Path(folder, "r.json"))), run, budget=budget)
            entry.enter()
        except UnreachableError:
            continue
        entry.settle(Outcome.REFUSED if number % 2 else Outcome.LABELLED)


def test_processes_under_one_budget_never_exceed_it_and_use_it_up(tmp_path):
    forked = multiprocessing.get_context("fork")
    everybody = [forked.Process(target=_runs, args=(tmp_path, worker, 4)) for worker in range(12)]
    for process in everybody:
        process.start()
    for process in everybody:
        process.join(60)
    _runs(tmp_path, "last", 20)  # what refusals gave back, once nobody else is under way
    runs = SpendRecord.read(tmp_path / "r.json").runs
    assert all(run.outcome is not Outcome.PENDING for run in runs)
    spent = 0
    for run in runs:  # at every entry there was room for it in full
        assert spent + 100 <= 2000
        spent += 50 if run.outcome is Outcome.REFUSED else 100
    assert spent > 1900


def test_a_run_that_is_resumed_after_it_ended_stands_as_it_was_noted(place):
    for run in (TRIED, LABELLED, TRIED):
        entry = Entry(RecordPlace(RecordFile(place)), run, budget=None)
        entry.enter()
        spent = entry.settle(Outcome.LABELLED, answers=5)
    assert spent.runs == tuple(run.public for run in SpendRecord.read(place).runs)
    assert spent.epsilon > spent.runs[0].total_epsilon
