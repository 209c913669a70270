"""SHA-256 of what was written: taken while it is, and again from the file, by us or by a shell.

A folder of parts has one hash for all of them, that of the lines `sha256sum` prints, by name:

    cd labels && LC_ALL=C sha256sum part-* | sha256sum
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import VoteError
from pate_cli.files.addresses import filesystem_of, is_address, listing, public_name, reachable
from pate_cli.files.draft import CHUNK, Draft
from pate_cli.files.inputs import note
from pate_cli.files.part_names import PART

_HASH: Final = "sha256"


@dataclass(frozen=True)
class Digest:
    """The hash of a file, or of a folder of parts.

    Attributes:
        sha256: 64 hexadecimal digits.
        size: bytes, of all parts.
        parts: how many there are; None for a file.
    """

    sha256: str
    size: int
    parts: int | None = None


class Hashed(Draft):
    """A file while it is written; it counts and hashes what it takes."""

    def __init__(self, file: Draft) -> None:
        """Pass what is written on to `file`."""
        super().__init__(file.write)
        self._size, self._hash = 0, hashlib.new(_HASH)

    def write(self, data: Any, /) -> int:
        """Write all of `data`; OSError when that fails."""
        count = super().write(data)
        self._hash.update(data)
        self._size += count
        return count

    @property
    def digest(self) -> Digest:
        """That of what was written so far."""
        return Digest(self._hash.hexdigest(), self._size)


def folder_digest(parts: Iterable[tuple[str, Digest]]) -> Digest:
    """The digest of a folder of these parts, each with its name."""
    known = sorted(parts, key=lambda part: part[0])
    lines = "".join(f"{digest.sha256}  {name}\n" for name, digest in known)
    return Digest(
        hashlib.new(_HASH, lines.encode()).hexdigest(),
        sum(digest.size for _, digest in known),
        len(known),
    )


def digest_of(path: str | os.PathLike[str]) -> Digest:
    """That of a file, or of the parts of a folder, on disk or on a store.

    Raises:
        VoteError: it cannot be read, or is a folder without parts.
    """
    parts = parts_of(path)
    if parts is None:
        return _read(os.fspath(path))
    return folder_digest((_name(part), _read(part)) for part in parts)


def parts_of(path: str | os.PathLike[str]) -> list[str] | None:
    """The parts of a folder in order, as paths or addresses; None for a file.

    Raises:
        VoteError: it cannot be reached, or is a folder without parts.
    """
    name = os.fspath(path)
    if is_address(name):
        with reachable(public_name(name), VoteError):
            filesystem, place = filesystem_of(name)
            if filesystem.get_file_info(place).type.name != "Directory":
                return None
            inside = [entry for entry, _ in listing(filesystem, place)]
        bare, mark, query = name.partition("?")
        found = [f"{bare.rstrip('/')}/{entry}{mark}{query}" for entry in inside]
    elif Path(name).is_dir():
        found = [str(entry) for entry in sorted(Path(name).iterdir())]
    else:
        return None
    parts = [entry for entry in found if PART.fullmatch(_name(entry))]
    if not parts:
        raise VoteError(f"{public_name(name)}: no parts of labels in this folder")
    return parts


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


def _name(path: str) -> str:
    return public_name(path).rpartition("/")[2]


def _read(name: str) -> Digest:
    with opened(name) as file:
        return digest_within(file)


def digest_within(file: Any) -> Digest:
    """That of what a binary file has from where it stands."""
    found, size = hashlib.new(_HASH), 0
    while chunk := file.read(CHUNK):
        found.update(chunk)
        size += len(chunk)
    return Digest(found.hexdigest(), size)
