"""How far a table is, for a person at a terminal; nothing for anybody else."""

from __future__ import annotations

import os
import pty
import re
import sys
import threading

import pytest

from pate_cli.reproduction.table import Steps


class Told:
    """What a bar would show after each call: steps done, of how many, and of what."""

    def __init__(self):
        self.done, self.of, self.what, self.shown = 0, None, None, []

    def __call__(self, done, of=None, /, *, what=None):
        self.done += done
        self.of, self.what = of or self.of, what or self.what
        self.shown.append((self.done, self.of, self.what))


def test_steps_of_rows_add_up():
    told = Told()
    steps = Steps(told, rows=2, each=3)
    with steps.row("one") as step:
        step("first")
        step("second")
        step("third")
    with steps.row("two") as step:  # whose second and third steps are passed over
        step("first")
    assert told.shown == [
        (0, 6, None),
        (0, 6, "one"),
        (0, 6, "one: first"),
        (1, 6, "one: second"),
        (2, 6, "one: third"),
        (3, 6, "one: third"),
        (3, 6, "two"),
        (3, 6, "two: first"),
        (6, 6, "two: first"),
    ]


def test_rows_that_do_not_run_are_done_all_the_same(tmp_path, draw, save):
    from pate_cli.reproduction.rows import sample_rows
    from pate_cli.reproduction.table2 import table2
    from pate_cli.reproduction.vote_folder import VoteFolder

    save(tmp_path, "small.npy", draw(teachers=12, classes=2, queries=10))
    told = Told()
    rows = sample_rows(["absent.npy", "small.npy"])[1]
    table2(rows, VoteFolder(tmp_path, {}, infer=True), progress=told)
    assert told.done == told.of == 10
    named = [what for _, _, what in told.shown]
    assert "Table 2: absent.npy" in named
    for step in ("labels", "as published", "tested, two-tail", "tested, conditional"):
        assert f"Table 2: small.npy: {step}" in named
    assert named[-1] == "Table 2: small.npy: upper release"


@pytest.mark.parametrize("target", [["table1"], ["table2", "--quick"]], ids=lambda words: words[0])
@pytest.mark.usefixtures("no_search")
def test_a_terminal_sees_the_rows_and_the_end(target, tmp_path, draw, save, run, monkeypatch):
    save(tmp_path, "small_[1].npy", draw(teachers=20, classes=3, queries=60))
    words = [*target, "--samples", tmp_path]
    code, out, err = run(*words)
    assert err == ""
    ours, theirs = pty.openpty()
    seen = []

    def drain():
        try:
            while data := os.read(ours, 4096):
                seen.append(data)
        except OSError:  # how Linux says that the other end is closed
            pass

    reader = threading.Thread(target=drain)
    reader.start()
    with monkeypatch.context() as patch, os.fdopen(theirs, "w", buffering=1) as screen:
        patch.setenv("TERM", "xterm-256color")
        patch.setenv("COLUMNS", "110")
        patch.setattr(sys, "stderr", screen)
        assert run(*words)[:2] == (code, out)
    reader.join()
    os.close(ours)
    shown = b"".join(seen)
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())
    steps = {"table1": 2, "table2": 5}[target[0]]
    assert f"Table {target[0][-1]}: small_[1].npy" in plain
    assert f"{steps}/{steps}" in plain
    assert shown.endswith(b"\x1b[2K") or plain.endswith("\r")  # it is wiped
