"""The record of releases: what it remembers, and that damage never reads as nothing spent."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pate_cli.errors import LedgerError
from pate_cli.ledger import Draw, Ledger, PastRelease, Round, SpendRecord
from pate_cli.release.plan import ReleasePlan
from pate_cli.words import ReleaseKind

MECHANISM = {"name": "gnmax", "teachers": 20, "classes": 3, "sigma2": 4.0, "teachers_per_record": 1}
UPPER = ReleasePlan(ReleaseKind.UPPER, delta=1e-5, order=4.0, beta=0.05, sigma=9.0)
NONE = ReleasePlan(ReleaseKind.NONE, delta=1e-5, order=4.0, beta=0.05, sigma=9.0)


def ledger(*names):
    one = np.array([0.5])
    return Ledger(
        analysis="tight",
        delta=1e-5,
        orders=np.array([4.0]),
        rdp=one,
        sensitivity=one[None],
        ceiling=one,
        rounds=tuple(Round(name, MECHANISM, 10, 10, 5) for name in names),
    )


def test_any_common_round_counts_and_none_else():
    record = SpendRecord().after(ledger("a", "b"), UPPER).after(ledger("c"), UPPER)
    assert [past.rounds for past in record.releases] == [("a", "b"), ("c",)]
    assert [past.rounds for past in record.touching(ledger("b", "x"))] == [("a", "b")]
    assert [past.rounds for past in record.touching(ledger("b", "c"))] == [("a", "b"), ("c",)]
    assert record.touching(ledger("x")) == ()
    assert record.releases[0].draw == UPPER.draw


def test_releasing_without_a_draw_spends_nothing():
    record = SpendRecord()
    assert record.after(ledger("a"), NONE) is record


@given(
    st.lists(
        st.tuples(
            st.lists(st.text(max_size=4), min_size=1, max_size=3),
            st.floats(1e-6, 3.0),
            st.floats(1e-3, 1e6),
            st.floats(0.0, 1e3),
        ),
        max_size=4,
    )
)
@settings(deadline=None)
def test_a_record_comes_back_from_its_file(releases):
    record = SpendRecord(
        tuple(PastRelease(tuple(names), Draw(*numbers)) for names, *numbers in releases)
    )
    assert SpendRecord.from_json(record.to_json()) == record
    assert SpendRecord.from_json(record.to_json().encode()) == record


RECORD = SpendRecord().after(ledger("a"), UPPER)


def refusal(text):
    with pytest.raises(LedgerError) as caught:
        SpendRecord.from_json(text)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    "text", ["", "{", RECORD.to_json()[:-9], "\xff", b"\xff\xfe", "[" * 100_000]
)
def test_a_truncated_record_is_refused(text):
    assert refusal(text) == "not a record of releases, or a truncated one"


@pytest.mark.parametrize("text", ["{}", "[]", "null", '"x"', '{"kind": "pate-ledger"}'])
def test_foreign_json_is_refused(text):
    assert refusal(text) == "not a record of releases: give the file that --spend wrote"


def test_a_newer_record_is_refused():
    data = json.loads(RECORD.to_json()) | {"schema_version": 2}
    assert refusal(json.dumps(data)) == (
        "the record has schema version 2, this tool reads 1; use a newer version of pate"
    )


def changed(**fields):
    data = json.loads(RECORD.to_json())
    data["releases"][0] |= fields
    return json.dumps(data)


@pytest.mark.parametrize(
    "fields",
    [
        {"beta": -1.0},
        {"beta": float("nan")},
        {"sigma_release": 0.0},
        {"sigma_release": "x"},
        {"sigma_release": None},
        {"shift": -0.1},
        {"shift": float("inf")},
        {"rounds": None},
        {"rounds": 3},
        {"rounds": "ab"},
        {"rounds": [1]},
        {"rounds": []},
        {"beta": True},
        {"beta": "0.05"},
    ],
    ids=str,
)
def test_damaged_fields_are_refused(fields):
    assert refusal(changed(**fields)) == "the record of releases is damaged"


@pytest.mark.parametrize("field", ["rounds", "beta", "sigma_release", "shift"])
def test_missing_fields_are_refused(field):
    data = json.loads(RECORD.to_json())
    del data["releases"][0][field]
    assert refusal(json.dumps(data)) == "the record of releases is damaged"


@pytest.mark.parametrize("releases", [None, 3, {}, {"a": 1}, ["x"], [None], "text"], ids=str)
def test_a_damaged_list_of_releases_is_refused(releases):
    data = json.loads(RECORD.to_json()) | {"releases": releases}
    assert refusal(json.dumps(data)) == "the record of releases is damaged"


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_random_damage_gives_a_record_or_one_line(data):
    text = RECORD.to_json()
    at = data.draw(st.integers(0, len(text) - 1))
    put = data.draw(st.text(alphabet='0123456789.,-eE[]{}":anNIy ', max_size=4))
    try:
        SpendRecord.from_json(text[:at] + put + text[at + data.draw(st.integers(0, 5)) :])
    except LedgerError as error:
        assert "\n" not in str(error)  # noqa: PT017 - either outcome is right
