"""The record: it knows every run once, its lines, and that a run is in it before it draws."""

import fcntl
import hashlib
import multiprocessing
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pate_cli import GNMax, Ledger
from pate_cli.core.errors import LedgerError, OutputError, UnreachableError
from pate_cli.disclosure.entry import Entry, RecordPlace
from pate_cli.disclosure.record import KIND, RecordFile, SpendRecord, asked_so_far
from pate_cli.disclosure.runs import Budget, Outcome, Run
from pate_cli.disclosure.target import TargetPlan
from pate_cli.files.document import encoded
from pate_cli.files.journal import Journal
from pate_cli.votes.facts import PriorFacts
from runs import round_of
from slices import tries
from some_runs import LABELLED, RELEASED, STATED, TRIED

MECHANISM = GNMax(20, 3, sigma2=4.0)
RECORD = SpendRecord((LABELLED, TRIED, RELEASED, STATED))


def ledger(*names):
    one = np.array([0.5])
    return Ledger(
        orders=np.array([4.0]),
        rdp=one,
        sensitivity=one[None],
        ceiling=one,
        rounds=tuple(round_of(MECHANISM, queries=10, answers=5, name=name) for name in names),
    )


def test_any_common_round_counts_and_none_else():
    touched = [run.id for run in RECORD.touching(ledger("round a", "b"))]
    assert touched == ["d"]
    assert RECORD.touching(ledger("x")) == ()


def test_rounds_of_a_ledger_are_the_runs_that_are_known_by_their_rounds():
    known = RECORD | SpendRecord.of(ledger("round a", "b"))
    assert [run.id for run in known.runs[:-1]] == ["a", "f00d", "d", "x"]
    assert known.runs[-1].round == "b"
    assert known.runs[-1].id != "b"  # which is for the holder of the ledger alone
    assert known.runs[-1].epsilon > 0.0
    assert (known | SpendRecord.of(ledger("b"))) == known
    # A ledger knows its rounds, a report its runs, and the record both.
    alone = SpendRecord.of(ledger("round a"))
    assert (RECORD | alone).runs == RECORD.runs
    assert len((alone | RECORD).runs) == 4
    published = SpendRecord((LABELLED.public,))
    assert (RECORD | published).runs == RECORD.runs


def test_what_a_round_of_a_ledger_drew_is_charged_in_a_record():
    kept = ledger("a")
    drawn = replace(kept.rounds[0], sanitizer=replace(RELEASED.draw, delta=kept.delta))
    (plain,), (run,) = (
        SpendRecord.of(replace(kept, rounds=(done,))).runs for done in (kept.rounds[0], drawn)
    )
    assert run.settings.sanitizer == drawn.sanitizer
    assert run.cost.draws == drawn.sanitizer.draws
    assert run.epsilon > plain.epsilon


def test_the_guesses_of_a_session_are_counted_and_have_a_hash():
    mechanism = GNMax(20, 3, sigma2=4.0, prior_weight=5)
    settings = round_of(mechanism, queries=0, prior=PriorFacts(5, 0, "0" * 64))
    asks = [{"label": 0, "prior": 1}, {"label": None}, {"label": 2, "prior": 0}]
    done = asked_so_far(settings, asks)
    assert (done.queries, done.max_answers, done.answers) == (3, 3, 2)
    assert done.prior == PriorFacts(5, 2, hashlib.sha256(b"1 1\n3 0\n").hexdigest())


def test_records_together_count_a_run_once_and_the_later_word_on_it():
    ended = replace(TRIED, outcome=Outcome.REFUSED)
    one, other = SpendRecord((TRIED,)), SpendRecord((ended, LABELLED))
    assert (one | other).runs == (ended, LABELLED)
    assert (other | one) == other
    assert one | SpendRecord() == one == SpendRecord() | one


def test_a_run_stands_in_it_once():
    with pytest.raises(LedgerError, match="twice"):
        SpendRecord((TRIED, TRIED))


def test_runs_count_their_target_unless_they_were_refused():
    assert TRIED.counted == 1.5
    assert replace(TRIED, outcome=Outcome.LABELLED).counted == 1.5
    assert replace(TRIED, outcome=Outcome.REFUSED).counted == 0.75


@pytest.fixture
def place(tmp_path):
    return tmp_path / "r.json"


@given(st.permutations(RECORD.runs), st.integers(0, 4))
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


@pytest.mark.parametrize(
    "event",
    [
        {"enter": encoded(TRIED)},
        {"enter": {"id": "b"}},
        {"enter": {"id": "b", "kind": "target", "outcome": "void", "time": None}},
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


def test_a_record_that_is_missing_is_empty(tmp_path):
    assert SpendRecord.read(tmp_path / "none.json") == SpendRecord()


def test_a_file_system_without_locks_is_refused_before_anything_is_entered(place, monkeypatch):
    monkeypatch.setattr(fcntl, "flock", Mock(side_effect=OSError(37, "No locks available")))
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
    everybody = [forked.Process(target=_runs, args=(tmp_path, worker, 8)) for worker in range(6)]
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
