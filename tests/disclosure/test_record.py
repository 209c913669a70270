"""The record: it knows every run once, by whichever of its names."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest

from pate_cli.core.errors import LedgerError
from pate_cli.disclosure.ledger import Ledger
from pate_cli.disclosure.record import SpendRecord, asked_so_far
from pate_cli.disclosure.runs import Outcome
from pate_cli.mechanisms.gnmax import GNMax
from pate_cli.votes.facts import PriorFacts
from runs import round_of
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
    assert RECORD.touching(ledger("x"))[:1] == ()


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
