"""Names of files (paths, or addresses such as s3://bucket/file), and how pate opens files to read.

pyarrow opens files on object stores and distributed filesystems. pyarrow is imported only for files
on such stores or filesystems, because its import takes a tenth of a second. This module also names
outputs that the user did not name.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Iterator
from itertools import chain
from os import PathLike, fspath
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from pate_cli.core.errors import LedgerError, PateError, UsageError, VoteError, without_credentials
from pate_cli.core.words import LABEL_SUFFIXES, VOTE_SUFFIXES
from pate_cli.files.protected import note

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


def is_address(text: str) -> bool:
    """Return whether `text` is a URI and not a path."""
    return _URI.match(text) is not None


_NO_MODE: Final = "an object store has no file mode, which keeps a secret"


def refuse_address(path: str | os.PathLike[str], why: str = _NO_MODE) -> None:
    """Raise UsageError if `path` is not on disk, but an address such as s3://bucket/file."""
    name = os.fspath(path)
    if is_address(name) and not name.startswith("file:"):
        raise UsageError(f"{public_name(name)} must be on disk: {why}; name a path")


def public_name(path: str | os.PathLike[str]) -> str:
    """Return a path or an address without credentials, so that it may be shown.

    Raises:
        UsageError: the name is not UTF-8; libraries could not open the file, and would report that
            it is damaged.
    """
    name = os.fspath(path)
    if not name.isascii() and name != name.encode(errors="replace").decode():
        raise UsageError(f"{name!a} is not UTF-8, as the name of a file must be; rename the file")
    return without_credentials(name) if ":/" in name else name


def filesystem_of(uri: str) -> tuple[Any, str]:
    """Return the pyarrow filesystem of a URI, and the path on this filesystem."""
    from pyarrow import fs

    filesystem, path = fs.FileSystem.from_uri(uri)
    return filesystem, str(path)


@contextlib.contextmanager
def reachable(name: str, kind: type[PateError]) -> Iterator[None]:
    """Turn an error of pyarrow in the `with` block into a one-line error of class `kind`.

    The original error is not chained to the new one, because its text may contain credentials.
    """
    import pyarrow as pa

    try:
        yield
    except pa.ArrowInvalid:
        raise kind(f"{name}: pyarrow cannot open this address; correct it or give a path") from None
    except FileNotFoundError:
        raise kind(f"{name}: no such file or folder") from None
    except (OSError, pa.ArrowException) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise kind(f"{name}: cannot be reached: {reason}") from None


LARGEST: Final = 1 << 28
"""The largest size of a document in bytes. Readers ask for one more byte, to notice a device that
never ends."""


@contextlib.contextmanager
def reading(
    path: str | PathLike[str], what: str, error: type[PateError] = LedgerError
) -> Iterator[IO[bytes]]:
    """Open a file for reading, by its path or address.

    Args:
        path: the path or address.
        what: what the file is, as an error message would say it, such as "the report".
        error: the class of the error if the file cannot be opened or read. For a path, but not for
            an address, the name of the file is also put before the message of any error of the
            class `error` that the `with` block raises.

    Raises:
        UsageError: an output of the command would replace this file.
    """
    name = fspath(path)
    with reachable(public_name(name), error) if is_address(name) else named(name, error):
        if "\0" in name:
            raise error("the name of a file cannot contain a null character; correct the name")
        system, place = filesystem_of(name) if is_address(name) else (None, name)
        note(what, place, system=system)
        with system.open_input_file(place) if system else Path(place).open("rb") as file:
            yield file


@contextlib.contextmanager
def named(path: str | PathLike[str], error: type[PateError] = LedgerError) -> Iterator[None]:
    """Turn errors in reading a file into the class `error`, and add the name of the file."""
    name = public_name(path)
    try:
        yield
    except OSError as failed:
        raise error(f"cannot read {name}: {failed.strerror}") from None
    except error as refused:
        raise error(f"{name}: {refused}") from None


class Digest(NamedTuple):
    """The hash and size of a file, with which a report identifies its labels and public guesses.

    Attributes:
        sha256: 64 hexadecimal digits.
        size: size in bytes.
    """

    sha256: str
    size: int

    @classmethod
    def of(cls, file: Any) -> Digest:
        """Return the hash and size of an open file, of which nothing was read before."""
        return cls(hashlib.file_digest(file, "sha256").hexdigest(), file.tell())


def digest_of(path: str | PathLike[str]) -> Digest:
    """Return the hash and size of a file; raise VoteError if the file cannot be read."""
    with reading(path, "the labels that are checked", VoteError) as file:
        return Digest.of(file)


_TABLE: Final = "|".join(map(re.escape, (*LABEL_SUFFIXES, *chain(*VOTE_SUFFIXES.values()))))
_KNOWN_SUFFIX: Final = re.compile(rf"({_TABLE})?(\.(gz|zst|bz2))?$", re.IGNORECASE)


def report_beside(labels: str, votes: str) -> str:
    """Return the name of the report for a file of labels, as a path or an address.

    If the labels go to a device or a pipe, the report is named after the votes.
    """
    place, mark, query = labels.partition("?") if is_address(labels) else (labels, "", "")
    if labels != "-" and has_no_name(labels):
        place = ""
    folder, slash, name = place.rpartition("/")
    stem = _KNOWN_SUFFIX.sub("", name).removesuffix(".labels")
    stem = stem if stem.strip(".") else stem_of(votes)
    return f"{folder}{slash}{stem}.report.json{mark}{query}"


def has_no_name(source: str) -> bool:
    """Return whether a source is a pipe or a device, so that no output can be named after it."""
    if source == "-":
        return True
    if is_address(source):
        return False
    place = Path(source)
    with contextlib.suppress(OSError, ValueError):  # The name may be too long, or be no name.
        return place.exists() and not (place.is_file() or place.is_dir())
    return False


def stem_of(source: str) -> str:
    """Return the name of a vote file without suffix, to name outputs; `votes` if it has no name."""
    last = re.split(r"[/\\]", public_name(source).rstrip("/\\"))[-1]
    stem = _KNOWN_SUFFIX.sub("", last)
    nameless = not stem.strip(".-") or re.search(r"[*?\[\]:]", stem)
    return "votes" if nameless else stem
