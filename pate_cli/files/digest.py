"""The hash by which a report knows its file of labels, and a run the guesses it was given."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import VoteError
from pate_cli.files.addresses import filesystem_of, is_address, public_name, reachable
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

    @classmethod
    def of(cls, chunks: Iterable[bytes]) -> Digest:
        """Hash content that comes in pieces."""
        found, size = hashlib.sha256(), 0
        for chunk in chunks:
            found.update(chunk)
            size += len(chunk)
        return cls(found.hexdigest(), size)


def digest_of(path: str | os.PathLike[str]) -> Digest:
    """Return the hash of a file on disk or on a store.

    Raises:
        VoteError: it cannot be read.
    """
    with opened(os.fspath(path)) as file:
        return Digest.of(iter(functools.partial(file.read, _CHUNK), b""))


def opened(name: str) -> Any:
    """Open a binary file to read, by path or address; VoteError where there is none."""
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
