"""Expected files out of an archive nobody has vouched for: tar, zip or a lone file, gzipped or not.

Nothing in the archive decides where bytes go: each expected file is written under its own name
into a folder of ours, and what an honest archive has no use for (links, devices, paths that climb
out, two files of one name, endless content) makes the whole archive refused.
"""

from __future__ import annotations

import gzip
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol

from pate_cli.errors import OutputError, VoteError

__all__ = ["Limits", "copy_bounded", "unpack"]

_BLOCK = 1 << 20
_GZIP = b"\x1f\x8b"
_ZIP = b"PK"
_TAR_AT, _TAR = 257, b"ustar"


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


@dataclass(frozen=True)
class Limits:
    """How much is accepted; far above the authors' archive, far below a full disk.

    Attributes:
        download: bytes of the archive.
        unpacked: bytes of everything in it.
        members: entries in it.
        seconds: how long the download may take.
        silence: seconds without a byte after which the server is given up.
    """

    download: int = 128 << 20
    unpacked: int = 256 << 20
    members: int = 10_000
    seconds: float = 1800.0
    silence: float = 30.0


def unpack(archive: Path, into: Path, *, names: Collection[str], limits: Limits) -> None:
    """Write those of the expected files that the archive holds to `into`, under their names.

    A lone file, in no tar or zip, is written as `into`/lone: its name cannot be trusted.

    Args:
        archive: the archive.
        into: an empty folder nobody else writes to.
        names: expected file names; everything else in the archive is passed over.
        limits: how much is accepted.

    Raises:
        VoteError: damaged, truncated, too large, or holds what no honest archive would.
        OutputError: `into` cannot be written.
    """
    with _damage_is_an_error():
        plain = archive
        if _starts(archive).startswith(_GZIP):
            plain = into / ".plain"
            with gzip.open(archive) as stream:
                copy_bounded(stream, plain, limits.unpacked, what="the archive unpacks to")
        start = _starts(plain)
        if start.startswith(_ZIP):
            _unpack_zip(plain, into, names, limits)
        elif start[_TAR_AT:].startswith(_TAR):
            _unpack_tar(plain, into, names, limits)
        elif plain is archive:
            raise VoteError("the archive is neither tar, zip nor gzip")
        else:
            plain.rename(into / "lone")
        (into / ".plain").unlink(missing_ok=True)


def copy_bounded(source: _Readable, target: Path, most: int, *, what: str) -> int:
    """Copy a stream into a new file and return its size.

    Raises:
        VoteError: more than `most` bytes; `what` begins the message.
        OutputError: the file cannot be written.
    """
    size = 0
    with _disk(target), target.open("xb") as file:
        while True:
            try:
                block = source.read(_BLOCK)
            except (OSError, EOFError, zlib.error) as error:
                # Wrapped, so that it is not taken for a failure of the disk.
                raise VoteError(f"the archive is damaged or truncated: {error}") from error
            if not block:
                break
            size += len(block)
            if size > most:
                raise VoteError(f"{what} more than {most >> 20} MiB; refused")
            file.write(block)
    return size


def _unpack_tar(plain: Path, into: Path, names: Collection[str], limits: Limits) -> None:
    left = limits.unpacked
    with tarfile.open(plain, "r:") as tar:
        for number, member in enumerate(tar):
            _check_count(number, limits)
            name = _safe_name(member.name)
            if member.isdir():
                continue
            if not member.isreg() or member.issparse():
                raise VoteError(f"the archive holds a link or device ({name!r}); refused")
            left -= member.size
            if member.size < 0 or left < 0:
                raise VoteError(_too_large(limits))
            stream = tar.extractfile(member) if name in names else None
            if stream is not None:
                _place(stream, into / name, member.size)


def _unpack_zip(plain: Path, into: Path, names: Collection[str], limits: Limits) -> None:
    left = limits.unpacked
    with zipfile.ZipFile(plain) as archive:
        for number, member in enumerate(archive.infolist()):
            _check_count(number, limits)
            name = _safe_name(member.filename)
            if member.is_dir():
                continue
            kind = stat.S_IFMT(member.external_attr >> 16)
            if kind not in (0, stat.S_IFREG):
                raise VoteError(f"the archive holds a link or device ({name!r}); refused")
            if member.flag_bits & 1:
                raise VoteError(f"the archive holds an encrypted file ({name!r}); refused")
            left -= member.file_size
            if left < 0:
                raise VoteError(_too_large(limits))
            if name in names:
                with archive.open(member) as stream:
                    _place(stream, into / name, member.file_size)


def _place(stream: _Readable, target: Path, size: int) -> None:
    if target.exists():
        raise VoteError(f"the archive holds {target.name} twice; refused")
    if copy_bounded(stream, target, size, what=f"{target.name} unpacks to") != size:
        raise VoteError(f"the archive is damaged or truncated: {target.name} is too short")


def _safe_name(path: str) -> str:
    """The last piece of a member's path; VoteError when the path leads out of the archive."""
    pure = PurePosixPath(path)
    odd = pure.is_absolute() or ".." in pure.parts or "\\" in path or ":" in path or "\0" in path
    if odd:
        raise VoteError(f"the archive holds a path that leads out of it ({path!r}); refused")
    return pure.name


def _check_count(number: int, limits: Limits) -> None:
    if number >= limits.members:
        raise VoteError(f"the archive holds more than {limits.members} entries; refused")


def _too_large(limits: Limits) -> str:
    return f"the archive unpacks to more than {limits.unpacked >> 20} MiB; refused"


def _starts(file: Path) -> bytes:
    with file.open("rb") as stream:
        return stream.read(_TAR_AT + len(_TAR))


@contextmanager
def _disk(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutputError(f"{target.parent}: cannot be written: {error.strerror}") from error


@contextmanager
def _damage_is_an_error() -> Iterator[None]:
    """What the standard library raises on damaged archives, as one line."""
    try:
        yield
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise VoteError(f"the archive is damaged or truncated: {error}") from error
    except (NotImplementedError, UnicodeDecodeError, ValueError, OverflowError) as error:
        raise VoteError(f"the archive is damaged or of an unknown kind: {error}") from error
