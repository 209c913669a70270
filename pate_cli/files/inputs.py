"""Files that a command reads, which no output replaces under any name, whatever is forced.

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
        """Begin with no file; what is added here is added to `around`, too."""
        self._known: dict[Place, str] = {}
        self._guards: list[Callable[[], None]] = []
        self._around = around

    def add(self, places: Iterable[Place], what: str) -> None:
        """Add a file, by all its places; `what` it is, in words."""
        places = set(places)
        for place in places:
            self._known.setdefault(place, what)
        if self._around is not None:
            self._around.add(places, what)

    def include(self, other: Inputs) -> None:
        """Add what was read elsewhere; UsageError by a guard that minds."""
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
        """Return a copy without guards, which can be sent to another process."""
        known = Inputs()
        known._known.update(self._known)
        return known

    def guard(self, check: Callable[[], None]) -> None:
        """Have `check` called whenever files are opened from now on."""
        self._guards.append(check)

    def what(self, places: Iterable[Place]) -> str | None:
        """Return in words which file is read from one of these places; None if none is."""
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
    """Return the files read in the innermost block of `watched`; none outside of one."""
    watch = _WATCH.get()
    return Inputs() if watch is None else watch


def note(what: str, *files: tuple[str | os.PathLike[str], Any]) -> None:
    """Remember that files are read.

    Each is a path and its pyarrow filesystem, None for a file of the system; `what` completes
    "the output is ...".

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
    """Remember that an open file is read, if a file of the system is behind it; see `note`."""
    watch = current()
    with contextlib.suppress(OSError, ValueError, AttributeError):
        watch.add(places_of_descriptor(stream.fileno()), what)
    watch.check()


def places_of_path(path: str | os.PathLike[str]) -> set[Place]:
    """Return the places of a regular file that is there or may be; none of a device or a pipe."""
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
    """Return the place of the regular file behind a descriptor; none of anything else."""
    with contextlib.suppress(OSError):
        found = os.fstat(descriptor)
        if stat.S_ISREG(found.st_mode):
            return {(found.st_dev, found.st_ino)}
    return set()


def stored_place(kind: str, path: str) -> str:
    """Return the place of a path on a filesystem of a kind."""
    return f"{kind} {path}"
