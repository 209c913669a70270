"""A run that promises practically nothing is refused, in a pipe and at a terminal alike."""

from __future__ import annotations

import os
import pty
import subprocess

DEAR = ["--mechanism", "gnmax", "--sigma2", 2]


def test_a_person_at_a_terminal_is_refused_and_not_asked(command, votes, leftovers):
    ours, theirs = pty.openpty()
    ran = subprocess.run(
        command("aggregate", votes, *DEAR),
        stdin=theirs,
        stderr=theirs,
        stdout=subprocess.PIPE,
        env={**os.environ, "TERM": "dumb"},
        check=False,
        timeout=60,
    )
    os.close(theirs)
    said = os.read(ours, 65536).decode()
    os.close(ours)
    assert (ran.returncode, ran.stdout) == (5, b"")
    assert "To run it anyway, give --max-epsilon" in said.splitlines()[-1]
    assert leftovers() == []
    assert not votes.with_name("votes.npy.spent.json").exists()
