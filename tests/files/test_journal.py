"""Lines behind a document: what is there after every kind of end."""

from __future__ import annotations

import errno
import json
import os
import warnings

import pytest

from pate_cli.core.errors import LedgerError, OutputError
from pate_cli.files.journal import Journal, lines_of, parts_of, refuse_held
from refusals import refusal

DOCUMENT = b'{\n "kind": "pate-spend-record"\n}\n'
LINES = [{"run": "a", "label": 1}, {"run": "a", "id": "q7", "label": None}, {"run": "a", "id": 3}]


@pytest.fixture
def place(tmp_path):
    path = tmp_path / "r.json"
    path.write_bytes(DOCUMENT)
    return path


@pytest.fixture
def whole(place):
    with Journal(place) as journal:
        for line in LINES:
            journal.append([line])
    return place.read_bytes()


def told(content):
    return list(lines_of(parts_of(content)[1]))


def test_what_is_appended_is_read_again(place):
    with Journal(place) as journal:
        journal.append(LINES[:2])
        assert told(place.read_bytes()) == LINES[:2]
        journal.append(LINES[2:])
        journal.append([])
    assert parts_of(place.read_bytes())[0] == DOCUMENT
    assert told(place.read_bytes()) == LINES
    with Journal(place) as journal:
        assert (journal.document, journal.told) == (DOCUMENT, LINES)
        journal.append(LINES)
    assert told(place.read_bytes()) == LINES * 2


def test_wherever_a_write_ends_whole_lines_count_and_the_next_follows_them(place, whole):
    at_once = len(DOCUMENT)
    ends = [at + 1 for at in range(at_once, len(whole)) if whole[at : at + 1] == b"\n"]
    for cut in range(at_once, len(whole) + 1):
        place.write_bytes(whole[:cut])
        kept = sum(end - 1 <= cut for end in ends)
        assert told(whole[:cut]) == LINES[:kept]
        with Journal(place) as journal:
            assert journal.told == LINES[:kept]
            journal.append([{"run": "b"}])
        assert told(place.read_bytes()) == [*LINES[:kept], {"run": "b"}]


def test_zeros_that_a_crash_left_count_for_nothing(place, whole):
    place.write_bytes(whole + b"\0" * 300)
    with Journal(place) as journal:
        assert journal.told == LINES
        journal.append([{"run": "b"}])
    assert told(place.read_bytes()) == [*LINES, {"run": "b"}]


def test_every_flip_of_a_line_is_seen(whole):
    start = len(DOCUMENT) + len(b'{"line":')
    seen = 0
    for at in range(start, len(whole) - 1):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << (at % 7)
        if damaged[at : at + 1] == b"\n" or whole[at : at + 1] == b"\n":
            continue
        text = refusal(LedgerError, told, bytes(damaged))
        seen += text.endswith("is damaged or missing; restore a copy that has all of them")
    assert seen > 130


@pytest.mark.parametrize("end", [b"\x0b", b" ", b"\0x", b"x"])
def test_a_paid_line_is_not_taken_for_an_unfinished_one(whole, end):
    refusal(LedgerError, told, whole[:-1] + end)
    assert told(whole[:-1] + b"\0\0") == told(whole)


def test_a_line_that_is_gone_is_missed(whole):
    *lines, _ = whole[len(DOCUMENT) :].split(b"\n")
    for gone in (0, 1):
        rest = b"".join(line + b"\n" for at, line in enumerate(lines) if at != gone)
        assert f"line {gone + 1} behind" in refusal(LedgerError, told, DOCUMENT + rest)
    twice = DOCUMENT + (lines[0] + b"\n") * 2
    assert "line 2 behind" in refusal(LedgerError, told, twice)


def test_a_document_edited_by_hand_gets_an_end_before_the_first_line(place):
    place.write_bytes(DOCUMENT.rstrip())
    with Journal(place) as journal:
        journal.append(LINES[:1])
    assert place.read_bytes().startswith(DOCUMENT)
    assert told(place.read_bytes()) == LINES[:1]


def test_one_at_a_time(place):
    with Journal(place) as first:
        text = refusal(OutputError, Journal, place)
        assert text == f"{place} is in use by a session; end that first, or wait for it"
        refusal(OutputError, refuse_held, place)
        first.append(LINES[:1])
    refuse_held(place)
    with Journal(place) as second:
        assert second.told == LINES[:1]


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_a_file_that_is_gone_takes_no_more(place, how):
    with Journal(place) as journal:
        journal.append(LINES[:1])
        place.unlink()
        if how == "replaced":
            place.write_bytes(DOCUMENT)
        text = refusal(OutputError, journal.append, LINES[1:])
    assert "was replaced or removed meanwhile; nothing was answered" in text


def test_a_journal_that_nobody_closed_holds_nothing(place):
    Journal(place).append(LINES)
    with Journal(place) as journal:
        assert journal.told == LINES


def test_a_forked_process_neither_holds_nor_lets_go_of_the_file(place):
    with Journal(place) as journal, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads of this process are idle
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(writing)
            journal.close()
            os.read(reading, 1)
            os._exit(0)
        os.close(reading)
        refusal(OutputError, refuse_held, place)
        journal.append(LINES)
    refuse_held(place)  # though the child lives
    os.close(writing)
    os.waitpid(child, 0)


def test_there_is_nothing_to_refuse_where_there_is_no_file(tmp_path):
    refuse_held(tmp_path / "none.json")
    assert "nothing was asked" in refusal(OutputError, Journal, tmp_path / "none.json")


def failing(monkeypatch, name, number=errno.ENOSPC, *, after=0):
    """Let a call of the operating system fail, once some bytes of it are through."""

    def fail(opened, *rest):
        if after:
            os_write(opened, rest[0][:after])
        raise OSError(number, os.strerror(number))

    os_write = os.write
    monkeypatch.setattr(os, name, fail)


@pytest.mark.parametrize("after", [0, 1, 20])
def test_a_full_disk_leaves_what_was_there(place, monkeypatch, after):
    with Journal(place) as journal:
        journal.append(LINES[:1])
        before = place.read_bytes()
        with monkeypatch.context() as broken:
            failing(broken, "write", after=after)
            text = refusal(OutputError, journal.append, LINES[1:])
        assert text == f"cannot write {place}: No space left on device; nothing was answered"
        assert place.read_bytes() == before
        assert "open it again" in refusal(OutputError, journal.append, LINES[1:])
    with Journal(place) as journal:
        journal.append(LINES[1:])
    assert told(place.read_bytes()) == LINES


def test_after_a_disk_that_fails_nothing_is_appended(place, monkeypatch):
    with Journal(place) as journal:
        with monkeypatch.context() as broken:
            failing(broken, "fsync", errno.EIO)
            assert "nothing was answered" in refusal(OutputError, journal.append, LINES)
        refusal(OutputError, journal.append, LINES)
    with Journal(place) as journal:
        assert journal.told == []


def test_lines_are_on_disk_before_append_returns(place, monkeypatch):
    """Every byte that was written was synced after it."""
    calls = []
    for name in ("write", "fsync"):
        real = getattr(os, name)
        monkeypatch.setattr(
            os, name, lambda *given, name=name, real=real: (calls.append(name), real(*given))[1]
        )
    with Journal(place) as journal:
        assert calls == ["fsync", "fsync"]  # what was there before, and its name
        journal.append(LINES)
        assert calls == ["fsync", "fsync", "write", "fsync"]


def test_lines_that_are_there_are_written_again(place, whole, monkeypatch):
    """A sync that failed may have given them up, and another would not bring them back."""
    place.write_bytes(whole)
    written = []
    real = os.write
    monkeypatch.setattr(
        os, "write", lambda opened, data: (written.append(bytes(data)), real(opened, data))[1]
    )
    with Journal(place) as journal:
        assert len(journal.told) == len(LINES)
    assert b"".join(written) == whole[len(DOCUMENT) :]
    assert place.read_bytes() == whole


def test_a_line_is_one_of_json(whole):
    for line in whole[len(DOCUMENT) :].splitlines():
        assert json.loads(line)["sum"]
