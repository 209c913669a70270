"""Whether a file is the one that was found: what changes while it is read is neither old nor new.

A file is known by where it lies, its size and when it was written last. Votes that were read before
and after a change would make labels of a file that never was; so readers look again once they have
read, and refuse. Nothing is mapped: what shrinks under a mapping ends the process.
"""

from __future__ import annotations

import contextlib
import functools
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NoReturn, Self

from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import VoteError
from pate_cli.files.addresses import reachable
from pate_cli.files.owner import this_system
from pate_cli.votes.sources.formats import SourceFile


@dataclass(frozen=True)
class Mark:
    """What a file was when it was found; it travels to workers.

    Attributes:
        size: bytes.
        written: when it was last, in nanoseconds; None where a store does not tell.
        place: device and inode; None on a store.
        system: that looked, for other systems have other numbers, and perhaps a copy of the file.
    """

    size: int
    written: int | None
    place: tuple[int, int] | None
    system: str | None

    @classmethod
    def of(cls, found: os.stat_result) -> Self:
        """That of a file of the system."""
        place, system = (found.st_dev, found.st_ino), _system_of(os.getpid())
        return cls(found.st_size, found.st_mtime_ns, place, system)

    @classmethod
    def stored(cls, found: Any) -> Self:
        """That of a file on a store, of which pyarrow says this."""
        return cls(int(found.size or 0), found.mtime_ns, None, None)

    def agrees(self, other: Mark) -> bool:
        """Whether both may be of one file; where systems differ only sizes can tell."""
        elsewhere = self.place is not None and self.system != other.system
        return self.size == other.size if elsewhere else self == other


def mark_of(part: SourceFile) -> Mark:
    """That of what has the name now; OSError where nothing has."""
    if part.filesystem is None:
        return Mark.of(Path(part.path).stat())
    with reachable(part.name, VoteError):
        return Mark.stored(part.filesystem.get_file_info(part.path))


def refuse_changed(part: SourceFile, mark: Mark, descriptor: int | None = None) -> None:
    """VoteError where the file of this name is no longer as it was marked, or the open one is not.

    One that was removed meanwhile is still there for whoever has it open; others will be told.
    """
    if descriptor is not None and not mark.agrees(Mark.of(os.fstat(descriptor))):
        changed(part.name)
    try:
        now = mark_of(part)
    except OSError:
        return
    if not mark.agrees(now):
        changed(part.name)


def changed(name: str) -> NoReturn:
    """VoteError for a file that is another by now."""
    raise VoteError(f"{name}: has changed while it was read; start again")


@dataclass(frozen=True)
class Marked:
    """Files, each with what it was when it was found."""

    files: tuple[tuple[SourceFile, Mark], ...] = ()

    def refuse_changed(self) -> None:
        """VoteError where one of them is another by now."""
        for part, mark in self.files:
            refuse_changed(part, mark)

    @contextlib.contextmanager
    def steady(self) -> Iterator[None]:
        """Refuse what has changed once the block is left; whatever is wrong may be due to that."""
        try:
            yield
        except VoteError:
            self.refuse_changed()
            raise
        self.refuse_changed()


UNMARKED: Final = Marked()
"""No file that could change."""


@contextlib.contextmanager
def steady_stream(stream: Any, name: str) -> Iterator[None]:
    """The same of a stream, if there is a file behind it; a pipe gives each byte once."""
    descriptor = -1
    with contextlib.suppress(OSError, ValueError, AttributeError):
        descriptor = stream.fileno()
    before = os.fstat(descriptor) if descriptor >= 0 else None
    yield
    if before is None or not stat.S_ISREG(before.st_mode):
        return
    if Mark.of(before) != Mark.of(os.fstat(descriptor)):
        changed(name)


@functools.cache
def _system_of(process: int) -> str | None:
    """Where this process is, which is looked up once."""
    del process
    return this_system()
