"""A slice of `make kills`, and that it finds what is planted."""

from __future__ import annotations

import contextlib
import os
import re

import pytest

from kills import histories, processes
from pate_cli.core.errors import OutputError
from pate_cli.files import journal
from pate_cli.files.journal import Journal
from pate_cli.verbs.session import Session

KILLS = int(os.environ.get("PATE_KILLS", "12"))


def test_a_slice_of_histories():
    faults = {seed: histories.fault_of(seed) for seed in range(120)}
    assert not {seed: fault for seed, fault in faults.items() if fault is not None}


def test_processes_that_are_killed(tmp_path):
    assert processes.killed_again_and_again(tmp_path, KILLS, seed=3) > 0


def test_a_history_is_its_seed(tmp_path):
    def told(seed, folder):
        folder.mkdir()
        history = histories.History(seed, folder)
        history.run()
        return history.happened, history.left, history.path.read_bytes()

    assert told(5, tmp_path / "a") == told(5, tmp_path / "b")


# Bugs on purpose: what is told of the first of some hundred histories that shows one.


def noted_before(self, asks, drawn):
    """What was asked is put on disk when the next is, after its answer left."""
    lines = [self._line(ask, label) for ask, label in zip(asks, drawn, strict=True)]
    late, self._late = getattr(self, "_late", []), lines
    if self._journal is not None and late:
        self._journal.append(late)
    for line in lines:
        self._asks.add(line)
        self._note(line.get("id"), line["label"])


def everything_is_new(self, asks):
    return list(range(len(asks)))


def torn_lines_stay(self):
    known, journal.os.ftruncate = journal.os.ftruncate, lambda *_: None
    try:
        start(self)
    finally:
        journal.os.ftruncate = known
    self._end = os.fstat(self._file).st_size


def only_written(self, lines):
    data = b"".join(journal._line(self._lines + at, told) for at, told in enumerate(lines, 1))
    with contextlib.suppress(OSError):
        journal._write_all(self._file, data, self._end)
    self._lines += len(lines)
    self._end += len(data)


def failures_are_passed_over(self, lines):
    with contextlib.suppress(OutputError):
        append(self, lines)


def read_without_making_safe(self):
    """What a killed process wrote is answered by before it is on disk."""
    known, journal.os.fsync = journal.os.fsync, lambda _: None
    try:
        start(self)
    finally:
        journal.os.fsync = known


def first_line_is_whole(content):
    first = journal._FIRST.search(content)
    at = len(content) if first is None else first.start()
    return content[:at], content[at:]


def forgets(self, name, label):
    """Ids are not known to the sitting that asked them."""
    note(self, None, label)


start, append, note = Journal._start, Journal.append, Session._note

PLANTED = {
    "the debit after the answer": (Session, "_pay", noted_before, "left|lines|and by"),
    "a known id drawn again": (Session, "_fresh", everything_is_new, "and by|twice|again"),
    "ids forgotten": (Session, "_note", forgets, "again|and by|twice"),
    "torn lines stay": (Journal, "_start", torn_lines_stay, "cannot be read|opened again"),
    "not made safe": (Journal, "append", only_written, "left|read|opened|and by"),
    "failures passed over": (Journal, "append", failures_are_passed_over, "left|lines|and by"),
    "known before it is safe": (Journal, "_start", read_without_making_safe, "left|and by"),
    "a torn first line": (journal, "parts_of", first_line_is_whole, "cannot be read|opened"),
    "no lock": (journal, "_lock", lambda opened: True, "at once|replaced"),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_planted_bugs_are_found(bug, monkeypatch):
    place, name, planted, told = PLANTED[bug]
    monkeypatch.setattr(place, name, planted)
    found = (histories.fault_of(seed) for seed in range(400))
    fault = next((fault for fault in found if fault is not None), None)
    assert fault is not None
    assert re.search(told, fault)
