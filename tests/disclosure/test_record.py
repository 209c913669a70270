"""The record: it comes back as it was, knows every run once, and damage never reads as nothing."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pate_cli.core.errors import LedgerError
from pate_cli.core.words import Adjacency
from pate_cli.disclosure.external import StatedCost
from pate_cli.disclosure.ledger import Draw, Ledger
from pate_cli.disclosure.record import (
    Outcome,
    RowsAsked,
    Run,
    RunKind,
    SpendRecord,
    record_beside,
)
from pate_cli.disclosure.total import total_of
from pate_cli.mechanisms.gnmax import GNMax
from refusals import refusal
from runs import round_of
from sealing import sealed
from slices import tries

MECHANISM = GNMax(20, 3, sigma2=4.0)
DRAWN = Draw(beta=0.05, sigma=9.0, shift=3.0)
ASKED = RowsAsked(MECHANISM.parameters(), 10, 10, "round a")
LABELLED = Run(
    id="a", kind=RunKind.WORST_CASE, outcome=Outcome.LABELLED, time="2026-01-01T00:00:00Z",
    epsilon=0.7, delta=1e-5, asked=ASKED, answers=5, votes="votes.npy",
)  # fmt: skip
TRIED = Run(
    id="f00d", kind=RunKind.TARGET, outcome=Outcome.PENDING, time=None, epsilon=1.5,
    refusal_epsilon=0.75, delta=1e-5,
)  # fmt: skip
RELEASED = Run(
    id="d", kind=RunKind.RELEASE, outcome=Outcome.RELEASED, time=None, delta=1e-5,
    drawn_from=("round a",), **DRAWN.facts(),
)  # fmt: skip
STATED = Run(
    id="x", kind=RunKind.EXTERNAL, outcome=Outcome.STATED, time=None, epsilon=0.2, delta=0.0,
    external=StatedCost(Adjacency.REPLACE_ONE, name="sgd", epsilon=0.2, delta=0.0),
)  # fmt: skip
RECORD = SpendRecord((LABELLED, TRIED, RELEASED, STATED))


def ledger(*names):
    one = np.array([0.5])
    return Ledger(
        analysis="tight",
        delta=1e-5,
        orders=np.array([4.0]),
        rdp=one,
        sensitivity=one[None],
        ceiling=one,
        rounds=tuple(round_of(MECHANISM, queries=10, answers=5, name=name) for name in names),
    )


def unsealed(data, version):
    content = {name: value for name, value in data.items() if name != "checksum"}
    return json.dumps(content | {"schema_version": version})


def refused(text):
    return refusal(LedgerError, SpendRecord.from_json, text)


def damaged(fault):
    newest = "the newest copy, for an older one forgets what was spent"
    return f"the record is damaged: {fault}; restore it from {newest}"


@given(st.permutations(RECORD.runs), st.integers(0, 4))
@settings(max_examples=tries(20))
def test_a_record_comes_back_from_its_file(runs, most):
    record = SpendRecord(tuple(runs[:most]))
    assert SpendRecord.from_json(record.to_json()) == record
    assert SpendRecord.from_json(record.to_json().encode()) == record


def test_it_says_that_it_may_be_shown():
    assert json.loads(RECORD.to_json())["releasable"] is True
    assert refused(sealed(json.loads(RECORD.to_json()) | {"releasable": False}))


def test_any_common_round_counts_and_none_else():
    touched = [run.id for run in RECORD.touching(ledger("round a", "b"))]
    assert touched == ["d"]
    assert RECORD.touching(ledger("x")) == ()
    assert RECORD.touching(ledger("x"))[:1] == ()


def test_rounds_of_a_ledger_are_the_runs_that_are_known_by_their_rounds():
    known = RECORD.with_rounds(ledger("round a", "b"))
    assert [run.id for run in known.runs[:-1]] == ["a", "f00d", "d", "x"]
    assert known.runs[-1].asked.round == "b"
    assert known.runs[-1].id != "b"  # which is for the holder of the ledger alone
    assert known.runs[-1].epsilon > 0.0
    assert known.with_rounds(ledger("b")) == known
    # A ledger knows its rounds, a report its runs, and the record both.
    alone = SpendRecord().with_rounds(ledger("round a"))
    assert (RECORD | alone).runs == RECORD.runs
    assert len((alone | RECORD).runs) == 4
    published = SpendRecord((LABELLED.public,))
    assert (RECORD | published).runs == RECORD.runs


def test_records_together_count_a_run_once_and_the_later_word_on_it():
    ended = replace(TRIED, outcome=Outcome.REFUSED)
    one, other = SpendRecord((TRIED,)), SpendRecord((ended, LABELLED))
    assert (one | other).runs == (ended, LABELLED)
    assert (other | one) == other
    assert one | SpendRecord() == one == SpendRecord() | one


def test_a_run_stands_in_it_once():
    with pytest.raises(LedgerError, match="twice"):
        SpendRecord((TRIED, TRIED))
    ended = replace(TRIED, outcome=Outcome.LABELLED)
    assert RECORD.with_run(ended).runs[1] == ended
    assert len(RECORD.without(TRIED).runs) == 3


def test_runs_count_their_target_unless_they_were_refused():
    assert TRIED.cost == 1.5
    assert replace(TRIED, outcome=Outcome.LABELLED).cost == 1.5
    assert replace(TRIED, outcome=Outcome.REFUSED).cost == 0.75


POSITIVE = "must be positive and finite, got"


@pytest.mark.parametrize(
    ("place", "damage", "fault"),
    [
        (1, {"epsilon": 0.0}, f"runs.1: epsilon {POSITIVE} 0.0"),
        (1, {"delta": 1.0}, "runs.1: delta must be between 0 and 1, both excluded, got 1.0"),
        (1, {"refusal_epsilon": -0.1}, "runs.1: refusal_epsilon must be at least 0 and finite"),
        (1, {"outcome": "void"}, "runs.1.outcome must be one of pending, labelled"),
        (1, {"outcome": None}, "runs.1.outcome must be one of pending"),
        (1, {"id": 7}, "runs.1.id must be a text"),
        (1, {"epsilon": None}, "run f00d does not say what it cost"),
        (0, {"asked": None}, "run a does not say what it cost"),
        (2, {"beta": -1.0}, "runs.2: beta"),
        (3, {"external": {"adjacency": "replace-one"}}, "it must state either"),
        (0, {"surprise": 1}, "runs.0 has a field 'surprise'"),
    ],
)
def test_a_damaged_run_is_refused(place, damage, fault):
    data = json.loads(RECORD.to_json())
    data["runs"][place] |= damage
    assert fault in refused(sealed(data))


@pytest.mark.parametrize(
    ("path", "value"), [(("runs",), []), (("runs", 1, "epsilon"), 0.1), (("runs", 0, "answers"), 0)]
)
def test_a_record_that_parses_and_is_not_as_written_is_refused(path, value):
    data = json.loads(RECORD.to_json())
    *inside, last = path
    place = data
    for key in inside:
        place = place[key]
    assert place[last] != value
    place[last] = value
    assert refused(json.dumps(data)) == damaged("it is not as pate wrote it")


@given(st.data())
@settings(max_examples=tries(100))
def test_random_damage_is_refused_or_changes_nothing(data):
    """It would let a second draw through."""
    text = RECORD.to_json()
    at = data.draw(st.integers(0, len(text) - 1))
    put = data.draw(st.text(alphabet='0123456789.,-eE[]{}":anNIy ', max_size=4))
    try:
        found = SpendRecord.from_json(text[:at] + put + text[at + data.draw(st.integers(0, 5)) :])
    except LedgerError as error:
        assert "\n" not in str(error)  # noqa: PT017 - either outcome is right
    else:
        assert found.to_json() == text


def test_a_record_is_kept_in_a_file(tmp_path):
    assert "no regular file" in refusal(LedgerError, SpendRecord.read, os.devnull)
    assert "no regular file" in refusal(LedgerError, SpendRecord.read, tmp_path)
    assert SpendRecord.read(tmp_path / "none.json") == SpendRecord()


def test_nothing_is_kept_beside_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    text = refusal(LedgerError, record_beside, tmp_path / "pipe")
    assert "no regular file" in text
    assert record_beside(tmp_path / "a.json") == tmp_path / "a.json.spent.json"
    (tmp_path / "parts").mkdir()
    assert record_beside(tmp_path / "parts") == tmp_path / "parts.spent.json"


@pytest.mark.parametrize("text", ["", "{", RECORD.to_json()[:-9], "\xff", b"\xff\xfe", "[" * 9999])
def test_a_truncated_record_is_refused(text):
    assert refused(text).startswith("not a record, or a damaged one: it is not valid JSON")


@pytest.mark.parametrize("text", ["{}", "[]", "null", '"x"', '{"kind": "pate-ledger"}'])
def test_foreign_json_is_no_record(text):
    assert refused(text) == "not a record: give a file that pate wrote with `spend`"


def test_a_newer_record_is_refused():
    data = json.loads(RECORD.to_json()) | {"schema_version": 7}
    assert "has schema version 7, this tool reads 6" in refused(json.dumps(data))


# --- as earlier versions wrote them --------------------------------------------------------------

PAST = {"id": "d1", "rounds": ["round a"], "beta": 0.05, "sigma_release": 9.0, "shift": 3.0}
ATTEMPT = {
    "id": "t1", "epsilon": 1.5, "delta": 1e-5, "refusal_epsilon": 0.75, "outcome": "refused",
}  # fmt: skip
THIRD = {
    "kind": "pate-spend-record", "schema_version": 3, "releases": [PAST], "attempts": [ATTEMPT],
}  # fmt: skip


def test_attempts_and_releases_of_version_3_are_runs():
    record = SpendRecord.from_json(sealed(THIRD))
    assert [run.kind for run in record.runs] == [RunKind.RELEASE, RunKind.TARGET]
    assert [run.outcome for run in record.runs] == [Outcome.RELEASED, Outcome.REFUSED]
    assert record.touching(ledger("round a")) == record.runs[:1]
    assert record.runs[1].cost == 0.75
    with pytest.raises(LedgerError, match="does not tell of"):
        total_of(record.runs)
    assert total_of(record.with_rounds(ledger("round a")).runs).epsilon > 0.75
    assert "not as pate wrote it" in refused(json.dumps(THIRD | {"checksum": "0" * 64}))


def test_records_of_version_5_are_read_where_nothing_in_them_is_gone():
    data = json.loads(RECORD.to_json()) | {"schema_version": 5}
    assert SpendRecord.from_json(sealed(data)) == RECORD
    asked = next(run["asked"] for run in data["runs"] if run.get("asked"))
    asked["pool"] = {"clusters": 3, "queries": 9, "sha256": "0" * 64}
    assert refused(sealed(data)) == (
        "the record is of another version: it tells of 'pool', which is gone; use the version of "
        "pate that wrote it"
    )


def test_records_from_before_there_were_targets_or_names_are_read():
    first = {"kind": "pate-spend-record", "releases": [PAST]}
    assert SpendRecord.from_json(unsealed(first, 1)).runs[0].id == "d1"
    nameless = {name: value for name, value in PAST.items() if name != "id"}
    twice = unsealed(first | {"releases": [nameless, nameless]}, 1)
    once = SpendRecord.from_json(unsealed(first | {"releases": [nameless]}, 1))
    both = SpendRecord.from_json(twice)
    assert len(both.runs) == 2
    assert (once | both).runs == both.runs == (both | once).runs


@pytest.mark.parametrize(
    "damage",
    [
        {"releases": [PAST | {"rounds": []}]}, {"releases": [PAST | {"beta": 0.0}]},
        {"releases": {}}, {"attempts": [ATTEMPT | {"outcome": "labelled"}]},
        {"attempts": [ATTEMPT | {"epsilon": "1"}]}, {"attempts": None}, {"releases": [1]},
    ],
)  # fmt: skip
def test_a_damaged_one_is_refused(damage):
    assert "damaged" in refused(unsealed(THIRD | damage, 2))


def test_a_checksum_is_held_to_whatever_the_version():
    """What says it is older may be what was damaged."""
    data = json.loads(RECORD.to_json())
    for version in (1, 2, 3, 4, 5, 6):
        assert "not as pate wrote it" in refused(
            json.dumps(data | {"schema_version": version, "checksum": "0" * 64})
        )
