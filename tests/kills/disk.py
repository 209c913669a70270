"""A disk under the lines of a record: it fills up, fails, loses what nobody made it keep.

It stands in the place of `os` in the module that appends. Files are real; what they would hold
after a loss of power is kept apart: any content since the last `fsync` that went well, the newest
one perhaps in part, with zeros or with what was there before in the place of the rest.
"""

from __future__ import annotations

import errno
import os
import random
from pathlib import Path
from typing import Any


class Killed(BaseException):
    """The process is no more: nothing of it may run."""


class Disk:
    """`os` as one file's appending process finds it.

    Attributes:
        record: the file.
        until_kill: the call at which the process dies, counted down; None for none.
        until_fault: likewise one that fails.
    """

    def __init__(self, record: Path, chance: random.Random) -> None:
        self.record = record
        self.until_kill: int | None = None
        self.until_fault: int | None = None
        self.failing = False
        self._chance = chance
        self._file: int | None = None
        self._since: list[bytes] = [b""]

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    # --- what the appending module calls ---------------------------------------------------------

    def open(self, path, flags):
        opened = os.open(path, flags)
        if flags & os.O_RDWR:
            self._look()
        return opened

    def write(self, opened, data):
        kill, fault = self._due()
        size = len(data)
        if kill or fault:
            size = self._cut(0, len(data))
        elif self._chance.random() < 0.1:
            size = self._chance.randint(1, len(data))  # short, and no error
        written = os.write(opened, bytes(data[:size])) if size else 0
        self._since.append(self.record.read_bytes())
        self._end(kill, fault, errno.ENOSPC)
        return written

    def fsync(self, opened):
        kill, fault = self._due()
        done = not fault and (not kill or self._chance.random() < 0.5)
        if done:
            self._since = [self.record.read_bytes()]
        self._end(kill, fault, errno.EIO)

    def ftruncate(self, opened, size):
        kill, fault = self._due()
        if not fault and (not kill or self._chance.random() < 0.5):
            os.ftruncate(opened, size)
            self._since.append(self.record.read_bytes())
        self._end(kill, fault, errno.EIO)

    # --- what happens to it ----------------------------------------------------------------------

    def quiet(self) -> None:
        """Nothing happens any more."""
        self.until_kill = self.until_fault = None
        self.failing = False

    def lose_power(self) -> None:
        """The file is what the disk may hold of it; whoever had it open has died before."""
        self._look()
        *earlier, newest = self._since
        kept = newest
        if earlier:
            kept = self._chance.choice(self._since)
            if self._chance.random() < 0.6:
                start = _alike(earlier[0], newest)
                cut = self._cut(start, len(newest))
                rest = [b"", bytes(len(newest) - cut), earlier[0][cut:]]
                kept = newest[:cut] + self._chance.choice(rest)
        with self.record.open("r+b") as file:
            file.write(kept)
            file.truncate()
        self._since = [kept]

    def _cut(self, start: int, stop: int) -> int:
        """Anywhere, and often where a line has hardly begun."""
        return self._chance.randint(start, min(stop, start + self._chance.choice([9, stop])))

    def _look(self) -> None:
        number = self.record.stat().st_ino
        if number != self._file:  # put in place by a transaction, which made it safe
            self._file, self._since = number, [self.record.read_bytes()]

    def _due(self) -> tuple[bool, bool]:
        kill = fault = False
        if self.until_kill is not None:
            self.until_kill -= 1
            kill = self.until_kill == 0
        if self.until_fault is not None:
            self.until_fault -= 1
            # Once a disk fails it may go on failing, or not.
            fault = self.until_fault == 0 or (self.failing and self._chance.random() < 0.5)
            self.failing |= fault
        return kill, fault

    def _end(self, kill: bool, fault: bool, number: int) -> None:
        if kill:
            raise Killed
        if fault:
            raise OSError(number, os.strerror(number))


def _alike(one: bytes, other: bytes) -> int:
    """How many bytes both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))
