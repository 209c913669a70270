"""Download the authors' vote files: each verified before any is put in place, or none is.

Nothing in the archive decides where bytes go. Regular files are taken by the last piece of their
name, read into memory up to a limit, and written under our own names when their digests are right.
"""

from __future__ import annotations

import gzip
import hashlib
import http.client
import io
import os
import tarfile
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import IO
from urllib.parse import urlsplit

from pate_cli.core.errors import OutputError, PateError, UsageError, VoteError
from pate_cli.core.progress import Advance, unseen
from pate_cli.core.version import __version__
from pate_cli.files.outputs import Outputs
from pate_cli.reproduction.vote_folder import sha256_of


def fetch_votes(
    url: str,
    into: Path,
    *,
    expected: Mapping[str, str],
    progress: Advance = unseen,
    most: int = 128 << 20,
    seconds: float = 1800.0,
    silence: float = 30.0,
) -> tuple[str, ...]:
    """Put the expected files of a tar or zip, gzipped or not, into a folder.

    Those that are there already are left alone; when all are, nothing is downloaded.

    Args:
        url: http, https or file address of the archive.
        into: the folder, made if absent.
        expected: file name → hex sha256.
        progress: told of every KiB that came, and of what is done then.
        most: bytes that are downloaded at most, and unpacked at most.
        seconds: how long the download may take, and with
        silence: how many seconds without a byte.

    Returns:
        The names, all present and verified.

    Raises:
        UsageError: not an http, https or file address.
        VoteError: the archive cannot be fetched, is damaged, or is not the one expected.
        OutputError: the folder cannot be written, or holds another file of an expected name.
    """
    if urlsplit(url).scheme not in ("https", "http", "file"):
        raise UsageError(f"--url must be an http, https or file address, got {url!r}")
    wanted = [name for name, digest in expected.items() if not _have(into / name, digest)]
    if wanted:
        archive = _download(url, most, seconds, silence, progress)
        progress(0, what="unpacking and verifying")
        files = _unpack(archive, wanted, most)
        for name, content in files.items():
            if hashlib.sha256(content).hexdigest() != expected[name]:
                raise VoteError(f"{name} in the archive has another sha256; nothing was kept")
        _place(files, into)
    return tuple(expected)


def _have(file: Path, digest: str) -> bool:
    """Whether the file is there; OutputError when something else is."""
    if not os.path.lexists(file):
        return False
    if not file.is_file() or sha256_of(file) != digest:
        raise OutputError(f"{file} exists and is not the authors' file; move it away first")
    return True


def _download(url: str, most: int, seconds: float, silence: float, progress: Advance) -> bytes:
    deadline, data = time.monotonic() + seconds, bytearray()
    request = urllib.request.Request(  # noqa: S310  the caller checked the scheme
        url, headers={"User-Agent": f"pate-cli/{__version__}"}
    )
    try:
        with urllib.request.urlopen(request, timeout=silence) as response:  # noqa: S310  as above
            while block := response.read1(1 << 18):
                before = len(data) >> 10
                data += block
                if len(data) > most:
                    raise VoteError(f"{url}: larger than {most >> 20} MiB; refused")
                if time.monotonic() > deadline:
                    raise VoteError(f"{url}: not there after {seconds:g} seconds; given up")
                progress((len(data) >> 10) - before)
    except urllib.error.HTTPError as error:
        with error:
            raise VoteError(f"{url}: the server answers {error.code} {error.reason}") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error)
        said = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
        raise VoteError(f"{url}: cannot be fetched: {said}") from error
    return bytes(data)


def _unpack(archive: bytes, names: Collection[str], most: int) -> dict[str, bytes]:
    """The contents of these files, `most` bytes in total; VoteError unless all are there."""
    found: dict[str, bytes] = {}
    try:
        if archive.startswith(b"\x1f\x8b"):
            archive = _bounded(gzip.GzipFile(fileobj=io.BytesIO(archive)), most)
        for name, content in _regular_files(archive):
            if name in names and name not in found:
                found[name] = _bounded(content, most - sum(map(len, found.values())))
    except PateError:
        raise
    except Exception as error:  # the readers have no error in common for damaged archives
        reason = " ".join(str(error).split()) or type(error).__name__
        raise VoteError(f"the archive is damaged, cut short or no tar or zip: {reason}") from error
    missing = [name for name in names if name not in found]
    if missing:
        raise VoteError(f"the archive lacks {', '.join(missing)}; nothing was kept")
    return found


def _regular_files(archive: bytes) -> Iterator[tuple[str, IO[bytes]]]:
    """The last piece of the name, and the content, of every regular file in a tar or zip."""
    if archive.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(archive)) as zipped:
            for entry in zipped.infolist():
                yield PurePosixPath(entry.filename).name, zipped.open(entry)
    else:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as tar:
            for member in tar:
                content = tar.extractfile(member) if member.isreg() else None
                if content is not None:
                    yield PurePosixPath(member.name).name, content


def _bounded(content: IO[bytes] | gzip.GzipFile, most: int) -> bytes:
    data = content.read(most + 1)
    if len(data) > most:
        raise VoteError("the archive unpacks to more bytes than are accepted; refused")
    return data


def _place(files: Mapping[str, bytes], into: Path) -> None:
    """Write all files or none; a folder made for them goes away again when that fails."""
    made = [folder for folder in (into, *into.parents) if not os.path.lexists(folder)]
    try:
        into.mkdir(parents=True, exist_ok=True)
        with Outputs() as out:
            for name, content in files.items():
                out.reserve(into / name)
                out.write(into / name, content)
    except BaseException as error:
        for folder in made:
            with suppress(OSError):
                folder.rmdir()
        if isinstance(error, OSError):
            raise OutputError(f"{into}: cannot be written: {error.strerror}") from error
        raise
