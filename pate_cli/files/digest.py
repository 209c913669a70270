"""SHA-256 of what was written: taken while it is, and again from the file."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any, Final

from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import VoteError
from pate_cli.files.addresses import filesystem_of, is_address, public_name, reachable
from pate_cli.files.draft import Draft
from pate_cli.files.inputs import note

_CHUNK: Final = 1 << 20


@dataclass(frozen=True)
class Digest:
    """The hash of a file.

    Attributes:
        sha256: 64 hexadecimal digits.
        size: in bytes.
    """

    sha256: str
    size: int


class Hashed(Draft):
    """A file while it is written; it counts and hashes what it takes."""

    def __init__(self, file: Draft) -> None:
        """Pass what is written on to `file`."""
        super().__init__(file.write)
        self._size, self._hash = 0, hashlib.sha256()

    def write(self, data: Any, /) -> int:
        """Write all of `data`; OSError when that fails."""
        count = super().write(data)
        self._hash.update(data)
        self._size += count
        return count

    @property
    def digest(self) -> Digest:
        """The hash of what was written so far."""
        return Digest(self._hash.hexdigest(), self._size)


def digest_of(path: str | os.PathLike[str]) -> Digest:
    """Hash a file on disk or on a store.

    Raises:
        VoteError: it cannot be read.
    """
    found, size = hashlib.sha256(), 0
    with opened(os.fspath(path)) as file:
        while chunk := file.read(_CHUNK):
            found.update(chunk)
            size += len(chunk)
    return Digest(found.hexdigest(), size)


def opened(name: str) -> Any:
    """A binary file to read, by path or address; VoteError where there is none."""
    if is_address(name):
        with reachable(public_name(name), VoteError):
            filesystem, place = filesystem_of(name)
            return filesystem.open_input_file(place)
    try:
        note("the labels that are checked", (name, None))
        return Path(name).open("rb")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise VoteError(f"cannot read {public_name(name)}: {reason}") from None
