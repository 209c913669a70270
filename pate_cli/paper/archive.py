"""Download the authors' vote files: each verified before any is put in place, or none is.

Nothing in the archive decides where bytes go. Regular files are taken by the last piece of their
name, read into memory up to a limit, and written under our own names when their digests are right.
"""

from __future__ import annotations

import hashlib
import http.client
import io
import tarfile
import urllib.request
import zlib
from collections.abc import Collection, Mapping
from pathlib import Path, PurePosixPath

from pate_cli.core.errors import OutputError, VoteError
from pate_cli.files.outputs import Outputs

_SILENCE = 30.0  # seconds without a byte after which a download is given up


def fetch_votes(url: str, into: Path, expected: Mapping[str, str], most: int = 128 << 20) -> None:
    """Put the expected files of a tar, gzipped or not, into a folder.

    Files that are there already are left alone; when all are, nothing is downloaded.

    Args:
        url: http, https or file address of the archive.
        into: the folder, made if absent.
        expected: file name → hex sha256.
        most: bytes that are downloaded at most, and unpacked at most.

    Raises:
        VoteError: the archive cannot be fetched, is damaged, or is not the one expected.
        OutputError: the folder cannot be written, or holds another file of an expected name.
    """
    wanted = [name for name in expected if not (into / name).exists()]
    for name in set(expected) - set(wanted):
        if digest_of((into / name).read_bytes()) != expected[name]:
            raise OutputError(f"{into / name} is not the authors' file; move it away first")
    if not wanted:
        return
    files = _unpacked(_downloaded(url, most), wanted, most)
    for name, content in files.items():
        if digest_of(content) != expected[name]:
            raise VoteError(f"{name} in the archive has another sha256; nothing was kept")
    try:
        into.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{into}: cannot be written: {error.strerror}") from error
    with Outputs() as out:
        for name, content in files.items():
            out.reserve(into / name)
            out.write(into / name, content)


def digest_of(content: bytes) -> str:
    """Hex sha256 of the content of a file."""
    return hashlib.sha256(content).hexdigest()


def _downloaded(url: str, most: int) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=_SILENCE) as response:  # noqa: S310  verified after
            data: bytes = response.read(most + 1)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise VoteError(f"{url}: cannot be fetched: {error}") from error
    if len(data) > most:
        raise VoteError(f"{url}: larger than {most >> 20} MiB; refused")
    return data


def _unpacked(archive: bytes, names: Collection[str], most: int) -> dict[str, bytes]:
    """The contents of these files, `most` bytes in total; VoteError unless all are there."""
    found: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:*") as tar:
            for member in tar:
                name = PurePosixPath(member.name).name
                content = tar.extractfile(member) if member.isreg() else None
                if content is None or name not in names or name in found:
                    continue
                most -= member.size
                if most < 0:
                    raise VoteError("the archive unpacks to more bytes than are accepted; refused")
                found[name] = content.read()
    except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
        raise VoteError(f"the archive is damaged, cut short or no tar: {error}") from error
    missing = [name for name in names if name not in found]
    if missing:
        raise VoteError(f"the archive lacks {', '.join(missing)}; nothing was kept")
    return found
