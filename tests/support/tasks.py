"""Work for other processes; importable there."""

from __future__ import annotations

import fcntl
import os
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from pate_cli.core.errors import VoteError
from pate_cli.run import engine


def squared(number):
    """The square and the process that found it; the first ones take longest."""
    time.sleep(0.02 * max(0, 5 - number))
    return number * number, os.getpid()


def refused(number):
    if number == 3:
        raise VoteError("row 3 is no vote")
    return number


def thread_beside(entries):
    """Whether work beside a block is left to the block's own thread, though there are cores."""
    engine.cores = lambda: 2
    with engine.beside(threading.current_thread, entries=entries) as found:
        return found() is threading.current_thread()


@dataclass(frozen=True)
class Dying:
    """Squares, but the process is killed at one item, so many times; `folder` counts them."""

    folder: Path
    item: int
    times: int

    def __call__(self, number):
        if number == self.item and len(list(self.folder.iterdir())) < self.times:
            (self.folder / str(os.getpid())).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return number * number


@dataclass(frozen=True)
class Holding:
    """Keeps a file of its own locked for as long as the process lives."""

    folder: Path

    def __call__(self, number):
        with (self.folder / str(os.getpid())).open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write("locked")
            file.flush()
            time.sleep(600)
        return number


def where(_mechanism, _batch):
    """A look at nothing: the process it is in."""
    return os.getpid()
