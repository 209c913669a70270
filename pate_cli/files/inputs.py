"""Files that a command reads, which no output replaces under any name, whatever is forced.

Readers note every file they open and outputs claim their places; whichever comes second is refused.
A file is known by its device and inode and by its path without links, one on a store by its key.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from pate_cli.core.errors import UsageError

Place: TypeAlias = tuple[int, int] | str
"""Device and inode, or a path behind the kind of its filesystem."""


@dataclass
class Inputs:
    """Files that are read, and outputs that must be none of them.

    Attributes:
        read: words that complete "the output is ...", by place.
        claimed: names of outputs by place.
    """

    read: dict[Place, str] = field(default_factory=dict)
    claimed: dict[Place, str] = field(default_factory=dict)

    def add(self, read: Mapping[Place, str]) -> None:
        """Note files that are read; UsageError if one is an output."""
        for place, what in read.items():
            self.read.setdefault(place, what)
            self._check(place)

    def claim(self, name: str, places: Iterable[Place]) -> None:
        """Note an output by all its places; UsageError if it is a file that is read."""
        for place in places:
            self.claimed[place] = name
            self._check(place)

    def _check(self, place: Place) -> None:
        if place in self.read and place in self.claimed:
            raise UsageError(
                f"{self.claimed[place]} is {self.read[place]}; give the output another name"
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
        places = places_of(file) if system is None else stored_place(system, file)
        current().add(dict.fromkeys(places, what))


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
