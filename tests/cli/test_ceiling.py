"""A run that promises practically nothing is refused, in a pipe and at a terminal alike."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess

DEAR = ["--mechanism", "gnmax", "--sigma2", 2]


def test_a_pipe_is_refused_at_once(pate, refused, votes, leftovers):
    line = refused(pate("aggregate", votes, *DEAR), 5)
    price = re.search(r"would cost epsilon (\S+) at delta 1e-05, whatever the votes", line)[1]
    assert "Lower --max-queries, take more noise, or state a smaller --target-epsilon" in line
    assert line.endswith(f"ask for it by name: --max-epsilon {price}")
    assert leftovers() == []
    assert not votes.with_name("votes.npy.spent.json").exists()
    done = pate("aggregate", votes, *DEAR, "--max-epsilon", price)
    assert done.exit_code == 0
    assert json.loads(done.stdout)["epsilon"] <= float(price)


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
    assert "ask for it by name: --max-epsilon" in said.splitlines()[-1]
    assert leftovers() == []
    assert not votes.with_name("votes.npy.spent.json").exists()
