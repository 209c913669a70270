"""What a session's record may lose, and what must then be refused."""

from __future__ import annotations

import numpy as np
import pytest

import pate_cli as pate
from pate_cli.core.errors import LedgerError, OutputError
from pate_cli.disclosure.session_terms import rule_fault, stop_rule
from pate_cli.files import journal, sealed_json
from pate_cli.files.journal import content_with_lines, parts_of

ASKED = {"teachers": 8, "classes": 2, "mechanism": "gnmax", "sigma2": 9.0, "max_queries": 20}
OTHER = {"layout": "counts", "sigma2": 9.0, "max_epsilon": 100}


def answered(record, ids, votes=(8, 0)):
    with pate.Session(record=record, **ASKED) as session:
        return [session.ask(votes, id=name) for name in ids]


@pytest.mark.parametrize(
    "torn", [b"", b"{", b'{"li', b'{"line"', b'{"line":1', b"\0", b'{"l\0\0\0']
)
def test_a_first_line_that_hardly_began_is_no_damage(torn, tmp_path):
    record = tmp_path / "r.json"
    answered(record, [])
    whole = record.read_bytes()
    record.write_bytes(whole + torn)
    assert parts_of(record.read_bytes()) == (whole, torn)
    assert pate.SpendRecord.read(record).runs
    (label,) = answered(record, ["a"])
    assert answered(record, ["a"], (0, 8)) == [label]
    assert len(record.read_bytes().splitlines()) == len(whole.splitlines()) + 1


@pytest.mark.parametrize("cut", [0, 1, 2, 20])
def test_zeros_stand_for_what_did_not_get_to_disk(cut, tmp_path):
    """A line that is whole but for its end counts; one that is not had answered nobody."""
    record = tmp_path / "r.json"
    labels = answered(record, "ab")
    whole = record.read_bytes()
    record.write_bytes(whole[: len(whole) - cut] + bytes(30))
    asked = 2 if cut < 2 else 1
    assert pate.SpendRecord.read(record).runs[0].asked.queries == asked
    assert answered(record, "ab")[:asked] == labels[:asked]
    assert b"\0" not in record.read_bytes()


@pytest.mark.parametrize("foreign", [b"[", b"1", b'{"lines', b'{"line"x'])
def test_what_is_no_beginning_of_a_line_is_damage(foreign, tmp_path):
    record = tmp_path / "r.json"
    answered(record, [])
    record.write_bytes(record.read_bytes() + foreign)
    with pytest.raises(LedgerError):
        pate.SpendRecord.read(record)


def test_a_copy_that_the_lines_are_not_behind_opens_no_session(tmp_path):
    """A run that has two records makes them one, each with the lines that it had."""
    record, votes = tmp_path / "r.json", tmp_path / "votes.npy"
    np.save(votes, np.array([[5, 3]]))
    pate.aggregate(votes, "gnmax", **OTHER)
    beside = tmp_path / "votes.npy.spent.json"
    answered(record, "abcd")
    pate.aggregate(votes, "gnmax", record=record, **OTHER)
    for path in (record, beside):
        (session,) = (run for run in pate.SpendRecord.read(path).runs if run.session)
        assert (session.asked.queries, session.answers) == (4, 4)
    with pytest.raises(LedgerError, match=r"4 queries were asked .* tell of 0"):
        pate.Session(record=beside, **ASKED)
    answered(record, "abcdef")
    merged = pate.SpendRecord.read(beside) | pate.SpendRecord.read(record)
    assert {run.asked.queries for run in merged.runs if run.session} == {6}


def test_lines_that_went_missing_are_missed(tmp_path):
    record = tmp_path / "r.json"
    answered(record, "ab")
    pate.aggregate(np.array([[5, 3]]), "gnmax", record=record, **OTHER)
    *kept, _last = record.read_bytes().splitlines(keepends=True)
    record.write_bytes(b"".join(kept))
    for read in (pate.SpendRecord.read, lambda path: pate.Session(record=path, **ASKED)):
        with pytest.raises(LedgerError, match=r"2 queries were asked .* tell of 1"):
            read(record)


def test_lines_are_read_however_many_there_are(tmp_path, monkeypatch):
    """A file is read up to some size, which a record may have outgrown."""
    record = tmp_path / "r.json"
    answered(record, range(20))
    limit = len(parts_of(record.read_bytes())[0]) + 1200
    read = sealed_json.content_of
    monkeypatch.setattr(journal, "content_of", lambda path: read(path)[:limit])
    assert content_with_lines(record) == record.read_bytes()
    (session,) = pate.SpendRecord.read(record).runs
    assert session.asked.queries == 20
    pate.aggregate(np.array([[5, 3]]), "gnmax", record=record, **OTHER)
    assert pate.SpendRecord.read(record).runs[0].asked.queries == 20


def test_what_was_answered_is_known_after_a_failure(tmp_path, monkeypatch):
    record = tmp_path / "r.json"
    with pate.Session(record=record, **ASKED) as session:
        label = session.ask([8, 0], id="a")
        with monkeypatch.context() as patch:
            patch.setattr(journal, "_write_all", _full)
            with pytest.raises(OutputError, match="nothing was answered"):
                session.ask([8, 0], id="b")
        assert session.ask([0, 8], id="a") == label
        with pytest.raises(OutputError, match="open it again"):
            session.ask([8, 0], id="b")
        assert session.asked == 1


def _full(*_):
    raise OSError(28, "No space left on device")


def test_what_lies_beyond_is_priced_with_its_noise():
    """δ has to have room for the lattice of all the noise that may be drawn."""
    session = pate.Session(
        teachers=8, classes=2, epsilon=3, delta=0.01, threshold=6, sigma1=4.0, sigma2=3.0,
        record=False,
    )  # fmt: skip
    rule, mechanism = session.rule, session._mechanism
    assert rule.beyond is not None
    assert rule_fault(rule, mechanism) is None

    class Coarse(type(mechanism)):
        def smallest_delta(self, queries, *, epsilon=10.0):
            return 1.0 if queries > rule.asks else super().smallest_delta(queries, epsilon=epsilon)

    coarse = Coarse(**{name: getattr(mechanism, name) for name in _FIELDS})
    assert "delta is too small" in rule_fault(rule, coarse)
    assert stop_rule(coarse, epsilon=3.0, delta=0.01).beyond is None


_FIELDS = ("teachers", "classes", "threshold", "sigma1", "sigma2")


def test_a_record_with_lines_is_released_as_a_record(tmp_path):
    record = tmp_path / "r.json"
    answered(record, "ab")
    released = pate.release(record).report
    assert released.to_json()
