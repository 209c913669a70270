"""Files that no output replaces, and those that make way for one under `force`.

What a command reads is never replaced, under any name. Readers note every file they open and
outputs claim their places; whichever comes second is refused. A file is known by its device and
inode and by its path without links, one on a store by its key.

Votes have the same suffixes as labels, so a name says nothing. An output therefore tells how files
of its kind begin, and only such a file makes way for it. Ledgers, records and checkpoints are never
replaced.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final, TypeAlias

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
        self.read = {**read, **self.read}  # under the name that each had first
        self._check()

    def claim(self, name: str, places: Iterable[Place]) -> None:
        """Note an output by all its places; UsageError if it is a file that is read."""
        self.claimed |= dict.fromkeys(places, name)
        self._check()

    def _check(self) -> None:
        for place in self.read.keys() & self.claimed.keys():
            raise UsageError(
                f"{self.claimed[place]} is {self.read[place]}; give the output another name"
            )


_INPUTS: ContextVar[Inputs | None] = ContextVar("inputs", default=None)


@contextlib.contextmanager
def watched() -> Iterator[Inputs]:
    """Remember until the block is left every file that is read, as a block around it does."""
    around = _INPUTS.get()
    token = _INPUTS.set(around or Inputs())
    try:
        yield current()
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
    with contextlib.suppress(OSError, ValueError):  # no such file, a null in the name
        if not isinstance(file, int):
            places.add(f"local {os.path.realpath(file)}")
        found = os.stat(file)  # noqa: PTH116 - it takes descriptors, too
        return places | {(found.st_dev, found.st_ino)} if stat.S_ISREG(found.st_mode) else set()
    return places


def stored_place(system: Any, path: object) -> set[Place]:
    """Return the place of a path on a pyarrow filesystem."""
    return {f"{system.type_name} {path}"}


Replaces: TypeAlias = Callable[[IO[bytes]], bool]
"""Tells whether an open file, of at least one byte, begins as the new one will."""

_HEAD: Final = 1 << 16
_KEPT: Final = re.compile(rb'\A\s*\{\s*"kind":\s*"pate-[a-z-]*(ledger|record|checkpoint)"')


def beginning(pattern: bytes) -> Replaces:
    """Replace files that begin with a match of a regular expression, in letters of any case."""
    compiled = re.compile(pattern, re.DOTALL | re.IGNORECASE)
    return lambda file: compiled.match(file.read(_HEAD)) is not None


NOTHING: Final = beginning(rb"(?!)")
"""Replaces no file: for outputs that stay until somebody removes them."""
REGISTRY: Final = beginning(rb'\{\s*"url_slug"')
REPORT: Final = beginning(rb'\{\s*"(schema_version"|kind":\s*"pate-(report|rdp-curve)")')
"""Replaces reports, quotes and their curves."""
PAGE: Final = beginning(rb"<!doctype html")
"""Replaces pages."""
PICTURE: Final = beginning(rb"%PDF-|\x89PNG\r\n|<\?xml|<svg")
"""Replaces pictures, which no votes are."""


def kept(file: IO[bytes], replaces: Replaces, path: Path | None = None) -> str | None:
    """Return what a file is that no output replaces, in words; None if it may be replaced.

    Votes are known by the record beside their `path`, however they begin.
    """
    if os.path.lexists(f"{path}.spent.json"):
        return "votes that have a record"
    start = file.read(_HEAD)
    file.seek(0)
    found = _KEPT.match(start)
    if found is not None:
        return f"a {found[1].decode()}"
    return "no earlier output of this kind" if start and not replaces(file) else None
