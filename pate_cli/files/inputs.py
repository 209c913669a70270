"""Files that a command reads, which no output replaces under any name, whatever is forced.

Readers note every file they open and outputs claim their places; whichever comes second is refused.
A file is known by its device and inode and by its path without links, one on a store by its key.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeAlias

from pate_cli.core.errors import UsageError

Place: TypeAlias = tuple[int, int] | str
"""Device and inode, or a path behind the kind of its filesystem."""


class Inputs:
    """Files that are read, and outputs that must be none of them."""

    def __init__(self) -> None:
        """Begin with no file."""
        self._read: dict[Place, str] = {}
        self._claimed: dict[Place, str] = {}

    def add(self, what: str, places: Iterable[Place]) -> None:
        """Note a file that is read, by all its places; UsageError if it is an output.

        `what` completes "the output is ...".
        """
        for place in places:
            self._read.setdefault(place, what)
            self._check(place)

    def claim(self, name: str, places: Iterable[Place]) -> None:
        """Note an output by all its places; UsageError if it is a file that is read."""
        for place in places:
            self._claimed[place] = name
            self._check(place)

    def include(self, other: Inputs) -> None:
        """Add what was read elsewhere; UsageError if it is an output."""
        for place, what in other._read.items():
            self.add(what, {place})

    def closed(self) -> Inputs:
        """Return what was read, which can be sent to another process."""
        known = Inputs()
        known._read.update(self._read)
        return known

    def _check(self, place: Place) -> None:
        if place in self._read and place in self._claimed:
            raise UsageError(
                f"{self._claimed[place]} is {self._read[place]}; give the output another name"
            )


_INPUTS: ContextVar[Inputs | None] = ContextVar("inputs", default=None)


@contextlib.contextmanager
def watched() -> Iterator[Inputs]:
    """Remember until the block is left every file that is read, as a block around it does."""
    around = _INPUTS.get()
    if around is not None:
        yield around
        return
    inputs = Inputs()
    token = _INPUTS.set(inputs)
    try:
        yield inputs
    finally:
        _INPUTS.reset(token)


def current() -> Inputs:
    """Return the files read in the block of `watched`; none outside of one."""
    return _INPUTS.get() or Inputs()


def note(what: str, *files: str | os.PathLike[str] | int, system: Any = None) -> None:
    """Remember that files are read; `what` completes "the output is ...".

    Args:
        what: the file, in words.
        files: paths or open descriptors.
        system: the pyarrow filesystem of the paths, None for files of this system.

    Raises:
        UsageError: one of them is an output of the command, too.
    """
    for file in files:
        current().add(what, places_of(file) if system is None else stored_place(system, file))


def note_stream(what: str, stream: Any) -> None:
    """Remember that an open file is read, if a file of the system is behind it; see `note`."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        note(what, stream.fileno())


def places_of(file: str | os.PathLike[str] | int) -> set[Place]:
    """Return the places of a regular file that is there or may be; none of a device or a pipe.

    It is named by its path or by an open descriptor.
    """
    places: set[Place] = set()
    with contextlib.suppress(OSError, ValueError):  # a null in the name
        found = os.stat(file)  # noqa: PTH116 - it takes descriptors, too
        if not stat.S_ISREG(found.st_mode):
            return places
        places.add((found.st_dev, found.st_ino))
    if not isinstance(file, int):
        with contextlib.suppress(OSError, RuntimeError, ValueError):
            places.add(f"local {Path(file).resolve()}")
    return places


def stored_place(system: Any, path: object) -> set[Place]:
    """Return the place of a path on a pyarrow filesystem."""
    return {f"{system.type_name} {path}"}
