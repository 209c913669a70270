"""Files that no output may replace, and files that an output may replace with `force`.

An output never replaces a file that the command reads, whatever name the file is given by. Readers
note every file that they open, and outputs claim the files that they will write. If a command reads
a file and also has this file as an output, `protected` raises an error. A file is identified by its
device and inode and by its path without links. A file on a store is identified by the type of its
filesystem and its path.

Votes and labels have the same suffixes, so a suffix does not show what a file is. Therefore every
caller of `Outputs.reserve` gives a function that looks into a file and says whether the new output
may replace this file: a report, for example, may replace an earlier report. An empty file may be
replaced, too. Outputs never replace ledgers, records and checkpoints.
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
"""What identifies a file: device and inode, or the kind of its filesystem and its path."""


@dataclass
class Inputs:
    """The files that a command reads, and its outputs, which must be different files.

    Attributes:
        read: for each identifier (`Place`) of a file that is read, what this file is, in words that
            complete "the output is ...".
        claimed: for each identifier (`Place`) of an output, the name of the output.
    """

    read: dict[Place, str] = field(default_factory=dict)
    claimed: dict[Place, str] = field(default_factory=dict)

    def add(self, read: Mapping[Place, str]) -> None:
        """Note files that are read; raise UsageError if one of them is an output."""
        self.read = {**read, **self.read}  # If a file is noted twice, its first description stays.
        self._check()

    def claim(self, name: str, places: Iterable[Place]) -> None:
        """Note an output and its identifiers; raise UsageError if the command also reads it."""
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
    """Note all files read in this `with` block; `watched` blocks inside it share its `Inputs`."""
    around = _INPUTS.get()
    token = _INPUTS.set(around or Inputs())
    try:
        yield current()
    finally:
        _INPUTS.reset(token)


def current() -> Inputs:
    """Return the `Inputs` of the current `watched` block; outside of a block, a new `Inputs`."""
    return _INPUTS.get() or Inputs()


def note(what: str, *files: str | os.PathLike[str] | int, system: Any = None) -> None:
    """Remember files that the command reads.

    Args:
        what: what the files are, in words that complete "the output is ...".
        files: paths or open descriptors.
        system: the pyarrow filesystem of the paths; None for local files.

    Raises:
        UsageError: one of the files is also an output of the command.
    """
    for file in files:
        places = places_of(file) if system is None else stored_place(system, file)
        current().add(dict.fromkeys(places, what))


def note_stream(what: str, stream: Any) -> None:
    """Remember that a stream is read, if it is a file of this system; see `note`."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        note(what, stream.fileno())


def places_of(file: str | os.PathLike[str] | int) -> set[Place]:
    """Return path, device and inode of a regular file; only the path if the file is missing.

    The file is given by its path or by an open descriptor. For a file that is not regular, such as
    a pipe, return an empty set.
    """
    places: set[Place] = set()
    with contextlib.suppress(OSError, ValueError):  # The file is missing, or its name is invalid.
        if not isinstance(file, int):
            places.add(f"local {os.path.realpath(file)}")
        found = os.stat(file)  # noqa: PTH116 - a descriptor is allowed, too
        return places | {(found.st_dev, found.st_ino)} if stat.S_ISREG(found.st_mode) else set()
    return places


def stored_place(system: Any, path: object) -> set[Place]:
    """Return the identifier of a file on a pyarrow filesystem, as a set with one member."""
    return {f"{system.type_name} {path}"}


Replaces: TypeAlias = Callable[[IO[bytes]], bool]
"""A function that returns whether an open file, of at least one byte, begins like the new file."""

_HEAD: Final = 1 << 16
_KEPT: Final = re.compile(rb'\A\s*\{\s*"kind":\s*"pate-[a-z-]*(ledger|record|checkpoint)"')


def beginning(pattern: bytes) -> Replaces:
    """Return a function that says whether a file begins with `pattern`, in upper or lower case."""
    compiled = re.compile(pattern, re.DOTALL | re.IGNORECASE)
    return lambda file: compiled.match(file.read(_HEAD)) is not None


NOTHING: Final = beginning(rb"(?!)")
"""For outputs that replace no file, and stay until somebody removes them."""
REGISTRY: Final = beginning(rb'\{\s*"url_slug"')
REPORT: Final = beginning(rb'\{\s*"(schema_version"|kind":\s*"pate-(report|rdp-curve)")')
"""For outputs that only replace reports, quotes and exported curves."""
PAGE: Final = beginning(rb"<!doctype html")
"""For outputs that only replace HTML pages."""
PICTURE: Final = beginning(rb"%PDF-|\x89PNG\r\n|<\?xml|<svg")
"""For outputs that only replace pictures; votes never begin like a picture."""


def kept(file: IO[bytes], replaces: Replaces, path: Path | None = None) -> str | None:
    """Return why an output may not replace a file, in words; None if it may.

    If a record (a file with the same name and .spent.json added) is beside `path`, then `path` is
    a file of votes, so it is never replaced.
    """
    if os.path.lexists(f"{path}.spent.json"):
        return "votes that have a record"
    start = file.read(_HEAD)
    file.seek(0)
    found = _KEPT.match(start)
    if found is not None:
        return f"a {found[1].decode()}"
    return (
        "not recognised as an earlier output of this kind" if start and not replaces(file) else None
    )
