"""Download the authors' vote files: verified before anything is put in place, or nothing is."""

from __future__ import annotations

import contextlib
import http.client
import os
import shutil
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from pate_cli import __version__
from pate_cli.errors import OutputError, UsageError, VoteError
from pate_cli.reproduction.outcome import Progress
from pate_cli.reproduction.unpack import Limits, unpack
from pate_cli.reproduction.vote_folder import sha256_of

__all__ = ["fetch_votes"]

_SCHEMES = ("https", "http", "file")
_BLOCK = 1 << 18


def fetch_votes(
    url: str,
    into: Path,
    *,
    expected: Mapping[str, str],
    progress: Progress,
    limits: Limits | None = None,
) -> tuple[str, ...]:
    """Fetch an archive and put its expected files into a folder, all of them or none.

    Files that are already there with the right content are left alone; when all are, nothing is
    downloaded.

    Args:
        url: http, https or file address of the archive.
        into: the folder, made if absent.
        expected: file name → hex sha256. Other files in the archive are passed over.
        progress: called with a few words now and then.
        limits: how much is accepted.

    Returns:
        The names, all present and verified.

    Raises:
        UsageError: another kind of address.
        VoteError: the archive cannot be fetched, is damaged, or is not the one expected.
        OutputError: the folder cannot be written, or holds another file of an expected name.
    """
    if urlsplit(url).scheme not in _SCHEMES:
        raise UsageError(f"--url must be an http, https or file address, got {url!r}")
    limits = limits or Limits()
    wanted = [name for name in expected if not _have(into / name, expected[name])]
    if not wanted:
        return tuple(expected)
    with _new_folder(into), _writable(into), _scratch(into) as scratch:
        archive = scratch / "archive"
        _download(url, archive, limits, progress)
        progress("unpacking and verifying")
        found = scratch / "found"
        found.mkdir()
        unpack(archive, found, names=expected.keys(), limits=limits)
        _name_lone_file(found, expected)
        _verify(found, expected)
        _move(found, into, wanted)
    return tuple(expected)


def _have(file: Path, digest: str) -> bool:
    """Whether the file is there; OutputError when something else is."""
    if not os.path.lexists(file):
        return False
    if not file.is_file() or sha256_of(file) != digest:
        raise OutputError(f"{file} exists and is not the authors' file; move it away first")
    return True


@contextlib.contextmanager
def _new_folder(folder: Path) -> Iterator[None]:
    """Make the folder; if what follows fails, take away what was made."""
    made = []
    try:
        for one in (folder, *folder.parents):
            if os.path.lexists(one):
                break
            made.append(one)
        with _writable(folder):
            folder.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for one in made:
            with contextlib.suppress(OSError):
                one.rmdir()
        raise


@contextlib.contextmanager
def _scratch(folder: Path) -> Iterator[Path]:
    """A private folder inside `folder`, on the same disk, gone in the end."""
    scratch = Path(tempfile.mkdtemp(prefix=".votes-", dir=folder))
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


@contextlib.contextmanager
def _writable(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutputError(f"{folder}: cannot be written: {error.strerror or error}") from error


def _download(url: str, target: Path, limits: Limits, progress: Progress) -> None:
    deadline = time.monotonic() + limits.seconds
    with _reaching(url):
        response = _open(url, limits.silence)
    with contextlib.closing(response), target.open("xb") as file:
        announced = _announced(response)
        if announced is not None and announced > limits.download:
            raise VoteError(f"{url}: larger than {limits.download >> 20} MiB; refused")
        size = 0
        while True:
            with _reaching(url):
                block = response.read(_BLOCK)
            if not block:
                break
            size += len(block)
            if size > limits.download:
                raise VoteError(f"{url}: larger than {limits.download >> 20} MiB; refused")
            if time.monotonic() > deadline:
                raise VoteError(f"{url}: not there after {limits.seconds:g} seconds; given up")
            file.write(block)
            progress(f"downloaded {size >> 10} KiB")
    if announced is not None and size != announced:
        raise VoteError(f"{url}: the download broke off at {size} of {announced} bytes; try again")


def _open(url: str, silence: float) -> Any:
    request = urllib.request.Request(  # noqa: S310  the scheme was checked by the caller
        url, headers={"User-Agent": f"pate-cli/{__version__}"}
    )
    return urllib.request.urlopen(request, timeout=silence)  # noqa: S310  as above


def _announced(response: IO[bytes]) -> int | None:
    headers = getattr(response, "headers", None)
    length = None if headers is None else headers.get("Content-Length")
    return int(length) if length is not None and length.isdigit() else None


@contextlib.contextmanager
def _reaching(url: str) -> Iterator[None]:
    """What may go wrong on the way, as one line that says what to do."""
    try:
        yield
    except urllib.error.HTTPError as error:
        with error:
            raise VoteError(f"{url}: the server answers {error.code} {error.reason}") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error)
        said = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
        raise VoteError(f"{url}: cannot be fetched: {said}") from error


def _name_lone_file(found: Path, expected: Mapping[str, str]) -> None:
    """A file that came without a trustworthy name is known by its digest."""
    lone = found / "lone"
    if not lone.exists():
        return
    digest = sha256_of(lone)
    for name, known in expected.items():
        if known == digest:
            lone.rename(found / name)
            return
    raise VoteError("the archive holds one file, and it is none of those expected")


def _verify(found: Path, expected: Mapping[str, str]) -> None:
    missing = [name for name in expected if not (found / name).is_file()]
    if missing:
        raise VoteError(f"the archive lacks {', '.join(missing)}; nothing was kept")
    for name, digest in expected.items():
        if sha256_of(found / name) != digest:
            raise VoteError(f"{name} in the archive has another sha256; nothing was kept")


def _move(found: Path, into: Path, names: list[str]) -> None:
    """Put files in place one rename each; on failure take back those that were."""
    placed: list[Path] = []
    try:
        for name in names:
            with (found / name).open("rb") as stream:
                os.fsync(stream.fileno())
            (found / name).replace(into / name)
            placed.append(into / name)
    except BaseException:
        for file in placed:
            file.unlink(missing_ok=True)
        raise
