"""A folder of parts as an output: written by several processes, complete only with its marker.

Parts are hidden until the commit, which puts them in place and writes `_SUCCESS`. Where a folder
can be renamed, both happen at once; an object store has no such thing, and there the marker comes
last. Readers that skip names beginning with `_` or `.` never see what is not committed.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol

from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import OutputError, ParameterError, PateError, UsageError
from pate_cli.files.addresses import filesystem_of, is_address, public_name, reachable
from pate_cli.files.destinations import cause
from pate_cli.files.digest import Digest, Hashed, digest_within, folder_digest
from pate_cli.files.draft import Draft, translated_errors
from pate_cli.files.inputs import Inputs, Place, current
from pate_cli.files.local_folder import LocalFolder
from pate_cli.files.part_names import PART
from pate_cli.files.stored_folder import StoredFolder

_MOST_PARTS: Final = 100_000  # five digits, so that the order of names is that of numbers
_RUN: Final = re.compile(r"[0-9a-z]{1,64}")
_NOTHING: Final = Inputs()


@dataclass(frozen=True)
class Part:
    """What a commit expects of a part: name, rows, bytes and SHA-256 in hexadecimal."""

    name: str
    rows: int
    size: int
    digest: str

    def __post_init__(self) -> None:
        if not PART.fullmatch(self.name) or min(self.rows, self.size) < 0:
            raise ParameterError(f"{self.name!r} of {self.rows} rows is no part of a folder")


class PartFile(Hashed):
    """A part while it is written."""

    def __init__(self, name: str, draft: Draft) -> None:
        """Pass what is written on to `draft`."""
        super().__init__(draft)
        self._name = name

    def part(self, *, rows: int) -> Part:
        """What was written, for the commit; `rows` is how many rows that was."""
        return Part(self._name, rows, self.digest.size, self.digest.sha256)


def digest_of_parts(parts: Iterable[Part]) -> Digest:
    """That of a folder of these parts."""
    return folder_digest((part.name, Digest(part.digest, part.size)) for part in parts)


class _Place(Protocol):
    """A folder and what is staged for it."""

    @property
    def root(self) -> str: ...

    @property
    def places(self) -> set[Place]: ...

    def check(self, *, force: bool) -> None: ...

    def try_out(self) -> None: ...

    def staging(self, run: str, name: str) -> AbstractContextManager[Draft]: ...

    def staged(self, run: str) -> dict[str, int]: ...

    def opened(self, run: str, name: str) -> AbstractContextManager[Any]: ...

    def place(self, run: str, names: list[str], marker: bytes, *, force: bool) -> None: ...

    def abort(self, run: str) -> None: ...


@dataclass(frozen=True)
class PartFolder:
    """A folder of parts, by path or by an address that pyarrow knows; it travels to workers.

    folder = PartFolder("s3://bucket/labels")
    folder.check(force=False)  # before anything is read
    folder.try_out()  # before any private work
    with folder.open_part(run, 0, ".parquet") as file:  # in any process, on any host
        ...
    part = file.part(rows=1000)
    folder.commit(run, [part])  # or folder.abort(run)

    `run` names one attempt to write the folder: digits and small letters, another for each run.
    """

    address: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "address", os.fspath(self.address))
        if not self.address:
            raise UsageError("an output needs a name; the path is empty")

    def __reduce__(self) -> tuple[type[PartFolder], tuple[str]]:
        # A worker may have another working directory.
        path = self.address if is_address(self.address) else os.path.abspath(self.address)  # noqa: PTH100 - links stay
        return PartFolder, (path,)

    @property
    def name(self) -> str:
        """The address without what may be credentials, for messages."""
        return public_name(self.address)

    def check(self, *, force: bool = False) -> None:
        """Refuse now, before any private work, whatever would fail later.

        OutputError when the folder holds anything (with `force`: anything but parts and their
        marker, which are replaced), is none, lies in a folder that is missing, cannot be written
        or cannot be reached; UsageError when anything in it is read by the same command, now or
        when that is opened.
        """
        place = self._place()
        self._refuse_read(place)
        place.check(force=force)
        current().guard(lambda: self._refuse_read(place))

    def try_out(self) -> None:
        """Write to it and take that back, where `check` could only look.

        Once it is known what is read, and before anything is paid for: a store may keep an empty
        key. OutputError when nothing can be written.
        """
        self._place().try_out()

    @contextlib.contextmanager
    def open_part(self, run: str, number: int, suffix: str) -> Iterator[PartFile]:
        """Write part `number` of a run under a name that ends in `suffix`.

        Yields a binary file to write to. The part is staged when the block is left without an
        error; a part that is written again, by another process or at the same time, is replaced.
        OutputError when the disk is full or fails, or the store does; ParameterError when the
        name would not be one of a part.
        """
        name = f"part-{number:05d}{suffix}"
        if not 0 <= number < _MOST_PARTS or not PART.fullmatch(name):
            raise ParameterError(f"{name} is no name of a part; number them from 0 to 99999")
        where = f"{self.name.rstrip('/')}/{name}"
        staging = self._place().staging(_checked(run), name)
        with (
            translated_errors(staging, lambda error: cause(where, error)) as draft,
            PartFile(name, draft) as file,
        ):
            yield file

    def refuse_read(self, *others: Inputs) -> None:
        """UsageError when anything in it is read by the same command, or is among `others`."""
        self._refuse_read(self._place(), *others)

    def staged(self, run: str) -> dict[str, int]:
        """Names of the parts that a run has staged, with their sizes in bytes.

        OutputError when the store cannot be reached.
        """
        return self._place().staged(_checked(run))

    def holds(self, run: str, part: Part) -> bool:
        """Whether a run has staged a part, every byte of it, which is read again for that.

        Not where it cannot be read: it can be written again.
        """
        try:
            with self._place().opened(_checked(run), part.name) as file:
                found = digest_within(file)
        except (OSError, OutputError):
            return False
        return (found.size, found.sha256) == (part.size, part.digest)

    def commit(
        self,
        run: str,
        parts: Iterable[Part],
        *,
        force: bool = False,
        read: Inputs = _NOTHING,
    ) -> None:
        """Put the parts of a run in place, then the marker that says so; all or nothing.

        `force` as in `check`; `read`: what it may not hold, either. OutputError when a part is
        missing or not of its size, when the folder was filled meanwhile, or when it cannot be
        written; PateError when a part was staged that is not among `parts`; UsageError as in
        `refuse_read`.
        """
        place = self._place()
        listed = sorted(parts, key=lambda part: part.name)
        staged = self.staged(run)
        for part in listed:
            if staged.get(part.name) != part.size:
                state = "is missing" if part.name not in staged else "is not whole"
                raise OutputError(f"cannot write {self.name}: {part.name} {state}; run again")
        self._refuse_read(place, read)
        if len(listed) != len(staged):
            raise PateError(f"internal error: {len(staged)} parts staged and {len(listed)} listed")
        place.place(run, [part.name for part in listed], _marker(listed), force=force)

    def abort(self, run: str) -> None:
        """Remove what a run has staged, if there is anything; what was committed stays.

        OutputError when the store cannot be reached: what was staged is then still there.
        """
        self._place().abort(_checked(run))

    def _refuse_read(self, place: _Place, *others: Inputs) -> None:
        for read in (current(), *others):
            what = read.within(place.root) or read.what(place.places)
            if what is not None:
                raise UsageError(f"{self.name} holds a file that is {what}; name another folder")

    def _place(self) -> _Place:
        if not is_address(self.address):
            return LocalFolder(self.address)
        with reachable(self.name, OutputError):
            filesystem, path = filesystem_of(self.address)
        if filesystem.type_name == "local":
            return LocalFolder(path)
        return StoredFolder(self.name, filesystem, path.rstrip("/"))


def _checked(run: str) -> str:
    if not _RUN.fullmatch(run):
        raise ParameterError(f"a run is named by digits and small letters, not {run!r}")
    return run


def _marker(parts: list[Part]) -> bytes:
    """The content of `_SUCCESS`: the same parts give the same bytes, whenever and wherever."""
    facts = {
        "rows": sum(part.rows for part in parts),
        "parts": [
            {"name": part.name, "rows": part.rows, "bytes": part.size, "sha256": part.digest}
            for part in parts
        ],
    }
    return json.dumps(facts, indent=2).encode() + b"\n"
