"""What a command reads, which no output replaces: under whatever name, and whatever is forced.

Readers tell every file they open (`note`); outputs ask before anything is spent, again whenever
another file is opened, and last when they are put in place (`current`). A file is known by its
device and inode and by its path without links, one on a store by its key.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeAlias

Place: TypeAlias = tuple[int, int] | str
"""Device and inode, or a path behind the kind of its filesystem."""


class Inputs:
    """Files that are read, and those who want to know of each."""

    def __init__(self, around: Inputs | None = None) -> None:
        """No file yet; what is read here is read in `around`, too."""
        self._known: dict[Place, str] = {}
        self._guards: list[Callable[[], None]] = []
        self._around = around

    def add(self, places: Iterable[Place], what: str) -> None:
        """One more file, by all its places; `what` it is, in words."""
        places = set(places)
        for place in places:
            self._known.setdefault(place, what)
        if self._around is not None:
            self._around.add(places, what)

    def include(self, other: Inputs) -> None:
        """What was read before, elsewhere; UsageError by a guard that minds."""
        for place, what in other._known.items():
            self.add({place}, what)
        self.check()

    def check(self) -> None:
        """Ask the guards, who may raise."""
        for guard in self._guards:
            guard()
        if self._around is not None:
            self._around.check()

    def closed(self) -> Inputs:
        """What was read, for whoever wants to know later, in whatever process."""
        known = Inputs()
        known._known.update(self._known)
        return known

    def guard(self, check: Callable[[], None]) -> None:
        """Have `check` called whenever files are opened from now on."""
        self._guards.append(check)

    def what(self, places: Iterable[Place]) -> str | None:
        """What is read from any of these places, if anything is."""
        return next((self._known[place] for place in places if place in self._known), None)


_WATCH: ContextVar[Inputs | None] = ContextVar("inputs", default=None)


@contextlib.contextmanager
def watched() -> Iterator[Inputs]:
    """Remember, until the block is left, every file that is read; a block around it does, too."""
    inputs = Inputs(_WATCH.get())
    token = _WATCH.set(inputs)
    try:
        yield inputs
    finally:
        _WATCH.reset(token)


def current() -> Inputs:
    """What has been read in the innermost block of `watched`; nothing outside of one."""
    watch = _WATCH.get()
    return Inputs() if watch is None else watch


def note(what: str, *files: tuple[str | os.PathLike[str], Any]) -> None:
    """Files are read: paths, each with its pyarrow filesystem, or None for one of the system.

    `what` completes "the output is ...".

    Raises:
        UsageError: one of them is an output of the command, too.
    """
    watch = _WATCH.get()
    if watch is None:
        return
    for path, filesystem in files:
        if filesystem is None:
            watch.add(places_of_path(path), what)
        else:
            watch.add({stored_place(filesystem.type_name, os.fspath(path))}, what)
    watch.check()


def note_stream(what: str, stream: Any) -> None:
    """The same of an open file, where one of the system is behind it."""
    watch = current()
    with contextlib.suppress(OSError, ValueError, AttributeError):
        watch.add(places_of_descriptor(stream.fileno()), what)
    watch.check()


def places_of_path(path: str | os.PathLike[str]) -> set[Place]:
    """Where a regular file is, or will be; nothing for a device or a pipe."""
    places: set[Place] = set()
    with contextlib.suppress(OSError):
        found = Path(path).stat()
        if not stat.S_ISREG(found.st_mode):
            return places
        places.add((found.st_dev, found.st_ino))
    with contextlib.suppress(OSError, RuntimeError):
        places.add(f"local {Path(path).resolve()}")
    return places


def places_of_descriptor(descriptor: int) -> set[Place]:
    """The regular file behind a descriptor; nothing for anything else."""
    with contextlib.suppress(OSError):
        found = os.fstat(descriptor)
        if stat.S_ISREG(found.st_mode):
            return {(found.st_dev, found.st_ino)}
    return set()


def stored_place(kind: str, path: str) -> str:
    """The place of a path on a filesystem of a kind."""
    return f"{kind} {path}"
