"""How far the work is: a bar for whoever looks, at a terminal or in a notebook."""

import contextlib
import os
import pty
import re
import sys
import types

import pytest

import pate_cli as pate
from pate_cli.core.progress import progress

VOTES = [[40, 3, 2]] * 30


def test_nobody_looks_and_nothing_is_said(capsys):
    with progress("tuning", 3) as advance:
        advance(3)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_a_terminal_sees_numbers_and_their_end_whatever_its_width(columns, monkeypatch):
    ours, theirs = pty.openpty()
    with monkeypatch.context() as patch, os.fdopen(theirs, "w", buffering=1) as screen:
        patch.setenv("TERM", "xterm-256color")
        patch.setenv("COLUMNS", str(columns))
        patch.setattr(sys, "stderr", screen)
        with progress("aggregating") as advance:
            advance(699_050)
            advance(1, 1_200_000)
        pate.aggregate(VOTES, "gnmax", layout="counts", seed=1, progress=True)
    parts = []
    with contextlib.suppress(OSError):  # at the end, since the other side is closed
        while part := os.read(ours, 1 << 16):  # a terminal hands over what has arrived
            parts.append(part)
    os.close(ours)
    shown = b"".join(parts).decode()
    pieces = re.split(r"[\r\n]", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown))
    assert max(map(len, pieces)) <= columns
    assert "699051/1200000" in shown
    assert "30/30" in shown
    assert "?" not in "".join(pieces)


def test_a_notebook_sees_a_bar_that_is_wiped_in_the_end(monkeypatch):
    """`progress=True` draws it by IPython's own display; no kernel, no bar."""
    drawn = []

    class Shown:
        update = drawn.append

    def display(text, *, display_id):
        assert display_id
        assert text == ""
        return Shown

    shell = types.SimpleNamespace(kernel=object())
    outer, inner = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    outer.get_ipython, inner.HTML, inner.display = lambda: shell, str, display
    monkeypatch.setitem(sys.modules, "IPython", outer)
    monkeypatch.setitem(sys.modules, "IPython.display", inner)
    asked = {"layout": "counts", "seed": 1, "progress": True}
    pate.aggregate(VOTES, "gnmax", **asked)
    assert drawn[0] == '<progress value="0" max="30"></progress> aggregate 0/30'
    assert '<progress value="30" max="30"></progress> aggregate 30/30' in drawn
    assert drawn[-1] == ""
    drawn.clear()
    del shell.kernel
    pate.aggregate(VOTES, "gnmax", **asked)
    assert drawn == []
