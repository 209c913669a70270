"""Files of votes, and temporary copies of those that cannot be read from anywhere, again and again.

Copies have mode 0600, lie in a folder of mode 0700 where temporary files do, and are removed when
the votes are closed; those of a run that was killed go when the next one makes some.
Whatever a packed file grows to, memory is bounded, and its size limited by the disk alone: there
is no limit on how many times larger it is than what it came in, for votes do pack a thousand times
smaller. A disk that fills ends the reading with a VoteError, and the copies are removed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from pate_cli.errors import VoteError, shortened
from pate_cli.files.owner import is_gone, owned_name
from pate_cli.files.undisturbed import undisturbed
from pate_cli.files.unfinished import CREATE
from pate_cli.votes.sources.formats import Format, refuse_closed

__all__ = ["Copies", "Part", "begun_with"]

_CHUNK = 1 << 20
_PREFIX = "pate-votes-"
# What zipfile raises over damage, a password, or a compression it does not know.
_DAMAGED = (
    EOFError,
    LookupError,
    MemoryError,
    NotImplementedError,
    RuntimeError,
    UnicodeError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_ROOM = "make room, or set TMPDIR to a folder that has some"
_CODECS = {Format.GZIP: "gzip", Format.ZSTD: "zstd", Format.BZIP2: "bz2"}


@dataclass(frozen=True)
class Part:
    """One file: a local path, or a path on a pyarrow filesystem; `name` is for messages."""

    name: str
    path: str
    filesystem: Any = None


class Copies:
    """The temporary files of one source; they live until `stack` is closed."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self._folder: Path | None = None
        self._made = 0
        stack.callback(self._remove)

    def new(self, name: str) -> Path:
        """An empty file that only its owner can read, for a copy of `name`."""
        with self.making(name):
            if self._folder is None:
                self._folder = Path(tempfile.gettempdir(), f"{_PREFIX}{owned_name()}")
                self._folder.mkdir(0o700)
                _sweep_beside(self._folder)
            self._made += 1
            path = self._folder / str(self._made)
            # The mode holds from the first instant: nobody reads it half-way.
            os.close(os.open(path, CREATE, 0o600))
        return path

    def drop(self, path: str) -> None:
        """Remove a file before the others, if it is a copy."""
        if self._folder is not None and Path(path).parent == self._folder:
            with contextlib.suppress(OSError):
                Path(path).unlink()

    def spooled(self, stream: Any, name: str, begun: bytes = b"") -> Path:
        """Copy all of a stream after what was read of it; errors of reading it are told by name."""
        path = self.new(name)
        with contextlib.ExitStack() as stack:
            with self.making(name):
                file = stack.enter_context(path.open("wb"))
                file.write(begun)
            while chunk := _read(stream, name):
                with self.making(name):
                    file.write(chunk)
            with self.making(name):
                file.flush()
        return path

    def unpacked(self, stream: IO[bytes] | Any, kind: Format, name: str) -> Path:
        """Copy what a compressed stream holds.

        Raises:
            VoteError: it is truncated or damaged.
        """
        import pyarrow as pa

        try:
            opened = pa.CompressedInputStream(stream, _CODECS[kind])
        except (pa.ArrowException, OSError) as error:
            raise _torn(name, kind) from error
        path = self.new(name)
        with contextlib.ExitStack() as stack:
            stack.callback(_quietly_closed, opened)
            with self.making(name):
                file = stack.enter_context(path.open("wb"))
            while True:
                try:
                    # read() would lose the memory of a chunk that turns out damaged.
                    chunk = opened.read_buffer(_CHUNK)
                except (pa.ArrowException, OSError) as error:
                    raise _torn(name, kind) from error
                if not chunk.size:
                    break
                with self.making(name):
                    file.write(chunk)
            with self.making(name):
                file.flush()
        return path

    def only_array(self, path: str, name: str) -> Path:
        """Copy the one array of an NPZ file.

        Raises:
            VoteError: it is damaged, holds a pickle, several arrays, or something else.
        """
        copy = self.new(name)
        try:
            with zipfile.ZipFile(path) as archive:
                inside = [entry for entry in archive.infolist() if not entry.is_dir()]
                if any(entry.filename.endswith("data.pkl") for entry in inside):
                    refuse_closed(name, torch=True)
                if not inside or any(not entry.filename.endswith(".npy") for entry in inside):
                    raise VoteError(
                        f"{name}: is an archive and no NPZ file; unpack it and give the file in it"
                    )
                if len(inside) > 1:
                    names = ", ".join(
                        shortened(repr(entry.filename[:-4])[1:-1]) for entry in inside[:4]
                    )
                    more = ", ..." if len(inside) > 4 else ""
                    raise VoteError(
                        f"{name}: holds {len(inside)} arrays ({names}{more}); save the votes alone"
                    )
                with archive.open(inside[0]) as member, contextlib.ExitStack() as held:
                    with self.making(name):
                        file = held.enter_context(copy.open("wb"))
                    while chunk := member.read(_CHUNK):
                        with self.making(name):
                            file.write(chunk)
                    with self.making(name):
                        file.flush()
        except _DAMAGED as error:
            raise VoteError(f"{name}: the NPZ file is truncated or damaged") from error
        except OSError as error:
            raise VoteError(f"{name}: cannot be read: {error.strerror}") from error
        return copy

    @contextlib.contextmanager
    def making(self, name: str) -> Iterator[None]:
        """Turn an error of the disk that takes a copy into one line."""
        try:
            yield
        except OSError as error:
            reason = error.strerror or type(error).__name__
            if error.errno in _NO_ROOM:  # in the words of the system, whoever raised it
                reason = f"{os.strerror(error.errno)}; {_ROOM}"
            raise VoteError(f"{name}: cannot be copied to a temporary file: {reason}") from error

    def _remove(self) -> None:
        if self._folder is not None:
            with undisturbed():
                shutil.rmtree(self._folder, ignore_errors=True)


def _sweep_beside(folder: Path) -> None:
    """Remove what runs of the same user have left that were killed."""
    with contextlib.suppress(OSError), os.scandir(folder.parent) as entries:
        user = folder.stat().st_uid
        for entry in entries:
            name = entry.name.removeprefix(_PREFIX)
            if name == entry.name or not is_gone(name):
                continue
            found = entry.stat(follow_symlinks=False)
            if stat.S_ISDIR(found.st_mode) and found.st_uid == user:
                shutil.rmtree(entry.path, ignore_errors=True)


def begun_with(stream: Any, size: int, name: str) -> bytes:
    """The first `size` bytes of a stream, or all it has; a pipe may give fewer at a time."""
    begun = b""
    while len(begun) < size and (more := _read(stream, name, size - len(begun))):
        begun += more
    return begun


def _read(stream: Any, name: str, size: int = _CHUNK) -> bytes:
    try:
        return bytes(stream.read(size))
    except OSError as error:
        reason = error.strerror or (str(error).splitlines() or [type(error).__name__])[0]
        raise VoteError(f"{name}: cannot be copied to a temporary file: {reason}") from error


def _torn(name: str, kind: Format) -> VoteError:
    return VoteError(f"{name}: the {kind.value} file is truncated or damaged")


def _quietly_closed(stream: Any) -> None:
    with contextlib.suppress(OSError):
        stream.close()
