"""Files that are read whole or hashed, by path or by address, with errors that name the file."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from os import PathLike, fspath
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from pate_cli.core.errors import LedgerError, PateError, VoteError
from pate_cli.files.addresses import filesystem_of, is_address, public_name, reachable
from pate_cli.files.inputs import note

LARGEST: Final = 1 << 28
"""Bytes of a document at most; whoever reads one more can tell a device that never ends."""


@contextlib.contextmanager
def reading(
    path: str | PathLike[str], what: str, error: type[PateError] = LedgerError
) -> Iterator[IO[bytes]]:
    """Open a file to read, by path or by address.

    Args:
        path: where it is.
        what: the file in words, for `inputs.note`.
        error: what is raised where it cannot be opened or read; a refusal of this class that
            leaves the block gets the name of the file.

    Raises:
        UsageError: it is an output of the command, too.
    """
    name = fspath(path)
    if not is_address(name):
        with named(path, error):
            if "\0" in name:
                raise error("is no name of a file")
            note(what, path)
            with Path(path).open("rb") as file:
                yield file
        return
    with reachable(public_name(name), error):
        system, place = filesystem_of(name)
        note(what, place, system=system)
        with system.open_input_file(place) as file:
            yield file


@contextlib.contextmanager
def named(path: str | PathLike[str], error: type[PateError] = LedgerError) -> Iterator[None]:
    """Give errors in reading a file this class, and the name of the file."""
    name = public_name(path)
    try:
        yield
    except OSError as failed:
        raise error(f"cannot read {name}: {failed.strerror}") from None
    except error as refused:
        raise error(f"{name}: {refused}") from None


class Digest(NamedTuple):
    """The hash of a file, by which a report knows its labels, and a run the guesses it was given.

    Attributes:
        sha256: 64 hexadecimal digits.
        size: in bytes.
    """

    sha256: str
    size: int

    @classmethod
    def of(cls, file: Any) -> Digest:
        """Hash an open file, which is at its beginning."""
        return cls(hashlib.file_digest(file, "sha256").hexdigest(), file.tell())


def digest_of(path: str | PathLike[str]) -> Digest:
    """Return the hash of a file on disk or on a store; VoteError where it cannot be read."""
    with reading(path, "the labels that are checked", VoteError) as file:
        return Digest.of(file)
