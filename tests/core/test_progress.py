"""How far the work is: lines by the minute, and numbers that know their end."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import sys
import threading

import pytest

from pate_cli.core import progress as module
from pate_cli.core.progress import by_the_minute, progress


class Minutes:
    """A clock whose minutes pass when a test says so."""

    def __init__(self, monkeypatch):
        self._due, self._told = threading.Semaphore(0), threading.Semaphore(0)
        self._first = True
        monkeypatch.setattr(module, "_passed", self._passed)

    def _passed(self, ended):
        if not self._first:
            self._told.release()
        self._first = False
        while not ended.is_set():
            if self._due.acquire(timeout=0.01):
                return False
        return True

    def one_more(self):
        self._due.release()
        assert self._told.acquire(timeout=10)


@pytest.fixture
def minutes(monkeypatch):
    return Minutes(monkeypatch)


@pytest.fixture
def lines(capsys):
    return lambda: capsys.readouterr().err.splitlines()


def test_a_line_a_minute_off_a_terminal(minutes, lines):
    with by_the_minute("pate"):
        assert lines() == []
        minutes.one_more()
        with progress("reading, MB", None) as advance:
            minutes.one_more()
            advance(7)
            minutes.one_more()
            advance(0, 20)
            minutes.one_more()
        with progress("tuning", None) as advance:
            advance(30, 40, what="refining")
            minutes.one_more()
        minutes.one_more()
    assert lines() == [
        "pate: at work; 1 min so far",
        "pate: reading, MB; 2 min so far",
        "pate: reading, MB, 7; 3 min so far",
        "pate: reading, MB, 7 of 20; 4 min so far",
        "pate: refining, 30 of 40; 5 min so far",
        "pate: at work; 6 min so far",
    ]


def test_quiet_starts_nothing(lines, monkeypatch):
    monkeypatch.setattr(module, "_passed", lambda _ended: pytest.fail("somebody waits"))
    before = threading.active_count()
    with by_the_minute("pate", quiet=True), progress("tuning", 3, quiet=True) as advance:
        advance(1)
        assert threading.active_count() == before
    assert lines() == []


def test_a_short_run_says_nothing_and_does_not_wait(lines):
    with by_the_minute("pate"), progress("tuning", 3) as advance:
        advance(3)
    assert lines() == []


def test_a_stderr_that_is_gone_stops_nothing(minutes, monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    with by_the_minute("pate"):
        minutes.one_more()


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_a_terminal_sees_numbers_and_their_end_whatever_its_width(columns, monkeypatch):
    ours, theirs = pty.openpty()
    with monkeypatch.context() as patch, os.fdopen(theirs, "w", buffering=1) as screen:
        patch.setenv("TERM", "xterm-256color")
        patch.setenv("COLUMNS", str(columns))
        patch.setattr(sys, "stderr", screen)
        with by_the_minute("pate"), progress("aggregating", None) as advance:
            advance(699_050)
            advance(1, 1_200_000)
    parts = []
    with contextlib.suppress(OSError):  # at the end, since the other side is closed
        while part := os.read(ours, 1 << 16):  # a terminal hands over what has arrived
            parts.append(part)
    os.close(ours)
    shown = b"".join(parts).decode()
    pieces = re.split(r"[\r\n]", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown))
    assert max(map(len, pieces)) <= columns
    assert "699051/1200000" in shown
    assert "?" not in "".join(pieces)
