"""Work for other processes; importable there."""

import fcntl
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from pate_cli.core.errors import VoteError


def squared(number):
    """The square and the process that found it; the first ones take longest."""
    time.sleep(0.02 * max(0, 5 - number))
    return number * number, os.getpid()


def refused(number):
    if number == 3:
        raise VoteError("row 3 is no vote")
    return number


@dataclass(frozen=True)
class Dying:
    """Squares, but the process is killed at one item, once; `folder` tells of it."""

    folder: Path
    item: int

    def __call__(self, number):
        if number == self.item and not list(self.folder.iterdir()):
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
