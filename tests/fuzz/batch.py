"""Trials in a process of their own, so that one that ends the process is found and named."""

from __future__ import annotations

import faulthandler
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pate_cli
from fuzz.trial import limited, look

PATIENCE = 60.0
"""Seconds until an input counts as a hang, on however busy a machine."""
COMMAND = ("-m", "fuzz", "batch")
"""What Python is asked to run, before the case and its seeds."""


@dataclass
class Found:
    """What trials of one case showed.

    Attributes:
        trials: how many there were.
        refused: how many of them were refused.
        faults: what was wrong, by seed.
    """

    trials: int = 0
    refused: int = 0
    faults: dict[int, str] = field(default_factory=dict)


def trials(case: str, start: int, stop: int) -> None:
    """Try seeds start..stop-1 and write to stdout, for each, its number and how it went."""
    faulthandler.dump_traceback_later(PATIENCE, exit=True)
    sys.stdout.write(f"{start} ")
    sys.stdout.flush()
    look(case, start)  # imports, and starts threads
    limited()
    for seed in range(start, stop):
        if seed > start:
            sys.stdout.write(f"{seed} ")
            sys.stdout.flush()
        faulthandler.dump_traceback_later(PATIENCE, exit=True)  # instead of the one before
        fault, refused = look(case, seed)
        sys.stdout.write(f"{fault or ('refused' if refused else 'read')}\n")
    faulthandler.cancel_dump_traceback_later()
    sys.stdout.flush()


def run(case: str, start: int, stop: int) -> Found:
    """What these seeds show; the process is started anew after one that ends it."""
    found = Found()
    while start < stop:
        last = start
        for seed, how in _lines(case, start, stop):
            last = seed
            found.trials += 1
            found.refused += how == "refused"
            if how not in ("refused", "read"):
                found.faults[seed] = how
        start = last + 1
    return found


def _lines(case: str, start: int, stop: int) -> Iterator[tuple[int, str]]:
    tests = Path(__file__).resolve().parent.parent
    package = Path(pate_cli.__file__).resolve().parent.parent
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, (package, tests, tests / "support"))),
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        "MALLOC_ARENA_MAX": "2",
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, *COMMAND, case, str(start), str(stop)]
    with (
        tempfile.TemporaryFile("w+") as said,
        tempfile.TemporaryDirectory(prefix="pate-fuzz-") as folder,
        subprocess.Popen(
            command,
            cwd=folder,
            env={**environment, "TMPDIR": folder},
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            errors="replace",
        ) as process,
    ):
        seed = start
        done = True
        for line in process.stdout or ():
            number, _, how = line.rstrip("\n").partition(" ")
            seed, done = int(number), how != ""
            if done:
                yield seed, how
        if process.wait() != 0:
            said.seek(0)
            last = [text for text in said.read().splitlines() if text.strip()][:1]
            yield seed + done, f"the process ended with {process.returncode}: {' '.join(last)}"
