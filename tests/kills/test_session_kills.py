"""A slice of `make kills`."""

from __future__ import annotations

import os

from kills import processes

KILLS = int(os.environ.get("PATE_KILLS", "12"))


def test_processes_that_are_killed(tmp_path):
    assert processes.killed_again_and_again(tmp_path, KILLS, seed=3) > 0
