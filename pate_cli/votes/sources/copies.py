"""Files of votes, and temporary copies of those that cannot be read from anywhere, again and again.

Copies have mode 0600, lie in a folder of mode 0700 where temporary files do, and are removed when
the votes are closed; those of a run that was killed go when the next one makes some.
Whatever a packed file grows to, memory is bounded. Beyond LARGE it may be MOST_TIMES as large as
what it came in, and is cut where the rows that are asked end. A disk that fills ends the reading
with a VoteError before it is full, and the copies are removed.
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
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import VoteError, shortened
from pate_cli.files.owner import is_gone, owned_name
from pate_cli.files.undisturbed import undisturbed
from pate_cli.files.unfinished import CREATE
from pate_cli.votes.sources.formats import (
    Format,
    damaged,
    refuse_closed,
    refuse_workbook,
)
from pate_cli.votes.sources.text import RowCounter

LARGE = 1 << 30
"""Bytes up to which a copy may grow whatever it came in, and however little room is left."""
MOST_TIMES = 1000
"""How many times as large as what it came in a larger copy may be."""
RESERVE = 1 << 30
"""Bytes that a large copy leaves free on its disk."""
LONG_ENOUGH = 1 << 26
"""Bytes of text that are copied before a limit on rows cuts it."""

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
# What the archives of Excel and of OpenDocument have in them.
_OF_WORKBOOKS = ("xl/workbook.xml", "xl/workbook.bin", "content.xml")
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_ROOM = "make room, or set TMPDIR to a folder that has some"
_CODECS = {Format.GZIP: "gzip", Format.ZSTD: "zstd", Format.BZIP2: "bz2"}


@dataclass(frozen=True)
class CopyOptions:
    """What whoever opens votes needs of them, and sees while they are copied.

    Attributes:
        rows: how many queries will be read at most, if that is known.
        progress: called with 1 for each megabyte that was copied or read.
        expect: called with how many more there will be, once that is known.
    """

    rows: int | None = None
    progress: Callable[[int], None] = lambda _done: None
    expect: Callable[[int], None] = lambda _more: None


class Copies:
    """The temporary files of one source; they live until `stack` is closed."""

    def __init__(self, stack: contextlib.ExitStack, options: CopyOptions) -> None:
        self._folder: Path | None = None
        self._made = 0
        self._options = options
        self._reported = self._done = 0
        stack.callback(self._remove)

    @property
    def rows(self) -> int | None:
        """See CopyOptions."""
        return self._options.rows

    def passed(self, size: int) -> None:
        """So many bytes more were copied or read."""
        self._done += size
        while self._reported < self._done >> 20:
            self._reported += 1
            self._options.progress(1)

    def expect(self, size: int) -> None:
        """So many bytes more will be copied or read."""
        self._options.expect(((self._done + size) >> 20) - self._reported)

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

        def chunks() -> Iterator[bytes]:
            yield begun
            while chunk := _read(stream, name):
                yield chunk

        return self._filled(chunks(), name)

    def unpacked(self, stream: IO[bytes] | Any, kind: Format, name: str, stored: int) -> Path:
        """Copy what a compressed stream holds; `stored` as in `_filled`.

        Raises:
            VoteError: it is truncated or damaged, or grows beyond measure.
        """
        import pyarrow as pa

        def chunks() -> Iterator[Any]:
            while True:
                try:
                    # read() would lose the memory of a chunk that turns out damaged.
                    chunk = opened.read_buffer(_CHUNK)
                except (pa.ArrowException, OSError) as error:
                    raise damaged(name, kind, error) from error
                if not chunk.size:
                    return
                yield chunk

        try:
            opened = pa.CompressedInputStream(stream, _CODECS[kind])
        except (pa.ArrowException, OSError) as error:
            raise damaged(name, kind, error) from error
        with contextlib.ExitStack() as stack:
            stack.callback(_quietly_closed, opened)
            return self._filled(self._needed(chunks(), name), name, stored)

    def rewritten(self, chunks: Iterator[bytes], name: str) -> Path:
        """Copy a text in another form."""
        return self._filled(chunks, name)

    def beginning(self, path: str, name: str) -> Path | None:
        """Copy as much of a long text as holds the rows that are asked; None where all does."""
        if self.rows is None or Path(path).stat().st_size <= LONG_ENOUGH:
            return None
        with Path(path).open("rb") as file:
            if RowCounter.of(file.read(_CHUNK), name) is None:
                return None
            file.seek(0)
            return self._filled(self._needed(iter(lambda: file.read(_CHUNK), b""), name), name)

    def _needed(self, chunks: Iterator[Any], name: str) -> Iterator[Any]:
        """Chunks of a file, of a text only those that hold the rows that are asked."""
        rows: RowCounter | None = None
        size = 0
        for chunk in chunks:
            if not size and self.rows is not None:
                rows = RowCounter.of(chunk, name)
            size += len(chunk)
            if rows is not None and self.rows is not None:
                end = rows.end(chunk, self.rows)
                if end is not None and size > LONG_ENOUGH:
                    yield memoryview(chunk)[:end]
                    return
            yield chunk

    def _filled(self, chunks: Iterator[Any], name: str, stored: int | None = None) -> Path:
        """A new file of these chunks; `stored`: bytes of what they were packed in, if they were."""
        path = self.new(name)
        size = 0
        with contextlib.ExitStack() as stack:
            with self.making(name):
                file = stack.enter_context(path.open("wb"))
            for chunk in chunks:
                with self.making(name):
                    file.write(chunk)
                size += len(chunk)
                self.passed(len(chunk))
                if size > LARGE:
                    _refuse_growth(size, stored, name)
                    with self.making(name):
                        leave_room(path)
            with self.making(name):
                file.flush()
        return path

    def only_array(self, path: str, name: str, stored: int) -> Path:
        """Copy the one array of an NPZ file; `stored` as in `unpacked`.

        Raises:
            VoteError: it is damaged, holds a pickle, several arrays, or something else, or grows
                beyond measure.
        """
        try:
            with zipfile.ZipFile(path) as archive:
                inside = [entry for entry in archive.infolist() if not entry.is_dir()]
                if any(entry.filename.endswith("data.pkl") for entry in inside):
                    refuse_closed(name, torch=True)
                if any(entry.filename in _OF_WORKBOOKS for entry in inside):
                    refuse_workbook(name)
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
                with archive.open(inside[0]) as member:
                    return self._filled(iter(lambda: member.read(_CHUNK), b""), name, stored)
        except _DAMAGED as error:
            raise VoteError(f"{name}: the NPZ file is truncated or damaged") from error
        except OSError as error:
            raise VoteError(f"{name}: cannot be read: {error.strerror}") from error

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


def _refuse_growth(size: int, stored: int | None, name: str) -> None:
    if stored is not None and size > MOST_TIMES * stored:
        raise VoteError(
            f"{name}: unpacks to more than {LARGE >> 30} GB and {MOST_TIMES} times its size; if it "
            "is meant to, unpack it and give what is in it"
        )


def leave_room(path: Path) -> None:
    """OSError where less than RESERVE is left on the disk of a file."""
    found = os.statvfs(path)
    if found.f_bavail * found.f_frsize < RESERVE:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _quietly_closed(stream: Any) -> None:
    with contextlib.suppress(OSError):
        stream.close()
