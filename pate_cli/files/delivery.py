"""The places an output can go on this machine: a file, or a stream written where it is.

Every output holds its draft in a file without a name, which vanishes with the process. Only a file
system without such files gets one under a random hidden name, which a killed process may leave.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Final

from pate_cli.core.entropy import random_name
from pate_cli.core.errors import OutputError, UsageError
from pate_cli.files.addresses import public_name
from pate_cli.files.existing import Replaces, kept, nothing, refuse, repeats
from pate_cli.files.inputs import Place, places_of_descriptor, places_of_path

STDOUT: Final = 1
_STDERR: Final = 2
_CHUNK: Final = 1 << 20
_NO_ROOM: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NO_FOLDER_SYNC: Final = {errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EPERM, errno.EBADF}
_NEW: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_NAMELESS: Final = getattr(os, "O_TMPFILE", 0) if Path("/proc/self/fd").is_dir() else 0


class Output(ABC):
    """One output of a command: a draft, and the place that it gets once it is whole.

    Attributes:
        name: the place, as messages show it.
        key: equal for two names of the same place.
        force: whether a file that lies there makes way for one that begins alike.
        replaces: tells whether a file begins so; see `existing`.
        resumed: whether the same run may have put its output there before.
        written: whether the draft is whole.
        left: whether any of it may have left for good.
    """

    def __init__(self, name: str, key: str) -> None:
        """Only name the place; nothing is looked at before `open`."""
        self.name, self.key = name, key
        self.force = self.resumed = self.written = self.left = False
        self.replaces: Replaces = nothing
        self._descriptor = -1
        self._size = self._room = 0

    @property
    @abstractmethod
    def places(self) -> set[Place]:
        """Return the place as `inputs` knows it."""

    @abstractmethod
    def open(self) -> None:
        """Begin the draft; OutputError or OSError for whatever would keep it from its place."""

    @abstractmethod
    def deliver(self) -> None:
        """Give the draft its place; OSError when that fails; `left` says how far it got."""

    def try_room(self, size: int) -> None:
        """Keep room for so many bytes; OSError where there is none."""
        if not hasattr(os, "posix_fallocate"):
            return
        try:
            os.posix_fallocate(self._descriptor, 0, size)
            self._room = size
        except OSError as error:
            if error.errno in _NO_ROOM:
                raise

    def take(self, data: memoryview) -> int:
        """Add to the draft and return how many bytes it took."""
        count = os.write(self._descriptor, data)
        self._size += count
        return count

    def finish(self) -> None:
        """End the draft, which is whole; OSError where the disk has not all of it."""
        if self._room > self._size:
            os.ftruncate(self._descriptor, self._size)

    def close(self) -> None:
        """Let go of the draft; what has its place stays."""
        self.written = False
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def _hold(self) -> None:
        """Begin the draft in the folder for temporary files, until it goes on from there."""
        with tempfile.TemporaryFile(prefix="pate-") as file:
            self._descriptor = os.dup(file.fileno())

    def chunks(self) -> Iterator[bytes]:
        """Yield the draft from its beginning."""
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        while chunk := os.read(self._descriptor, _CHUNK):
            yield chunk


class KeptOutput(Output):
    """An output in a place that keeps what it is given, and may have been given something."""

    @abstractmethod
    def _there(self) -> AbstractContextManager[IO[bytes]]:
        """Open what lies in the place."""

    def _kept(self) -> str | None:
        """Return what lies there if no output replaces it."""
        with self._there() as file:
            return kept(file, self.replaces)

    def _refuse_there(self) -> None:
        """Refuse what lies there before anything is spent; a run that goes on looks later."""
        if not self.resumed:
            refuse(self.name, self._kept(), force=self.force)

    def _replace_there(self) -> None:
        """Refuse to replace what lies there, unless it is of this run or may be replaced."""
        with self._there() as file:
            if self.resumed and repeats(file, self.chunks()):
                return
        if not self.force:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        refuse(self.name, self._kept(), force=True)


class File(KeptOutput):
    """A regular file, which appears under its name when it is whole."""

    def __init__(self, name: str, path: Path, mode: int) -> None:
        """`path` is without links; the file will have `mode` less the umask."""
        super().__init__(name, str(path))
        self._path, self._mode = path, mode
        self._hidden: Path | None = None

    @property
    def places(self) -> set[Place]:
        """Return what lies under the name now, and the name itself."""
        return places_of_path(self._path)

    def open(self) -> None:
        """Begin the draft in the folder of the file; errors as `Output.open`."""
        folder = self._path.parent
        if self._path.is_dir() or self.name.endswith(("/", os.sep)):
            raise OutputError(f"cannot write {self.name}: it is a folder; name a file in it")
        if not folder.is_dir():
            raise OutputError(f"cannot write {self.name}: there is no folder {public_name(folder)}")
        if self._path.exists():
            self._refuse_there()
        try:
            self._descriptor = self._begun(folder)
        except OSError as error:
            raise OutputError(
                f"cannot write {self.name}: no file can be made in {public_name(folder)} "
                f"({error.strerror})"
            ) from error

    def finish(self) -> None:
        """Put the draft on disk; errors as `Output.finish`."""
        super().finish()
        os.fsync(self._descriptor)

    def deliver(self) -> None:
        """Give the draft its name; errors as `Output.deliver`."""
        self.left = True
        try:
            there = os.path.lexists(self._path)
            if there:
                self._replace_there()
            if self._hidden is None and not there:
                self._link(self._path)
            else:
                hidden = self._hidden or self._link(self._hide())
                super().close()  # some systems rename no open file
                hidden.replace(self._path)
        except (OSError, UsageError):
            self.left = False
            raise
        sync_folder(self._path.parent)

    def close(self) -> None:
        """Let go of the draft; errors are passed over, as what lies there is nobody's."""
        super().close()
        if self._hidden is not None:
            with contextlib.suppress(OSError):
                self._hidden.unlink(missing_ok=True)

    def _begun(self, folder: Path) -> int:
        if _NAMELESS:
            # What else keeps a file from being made keeps the one with a name from it, too.
            with contextlib.suppress(OSError):
                return os.open(folder, _NAMELESS | os.O_RDWR, self._mode)
        return os.open(self._hide(), _NEW, self._mode)

    def _hide(self) -> Path:
        """Choose a hidden name beside the file, which `close` frees again."""
        self._hidden = self._path.with_name(f".pate-unfinished-{random_name(8)}.tmp")
        return self._hidden

    def _link(self, name: Path) -> Path:
        # With a descriptor, which an absolute path does not use, Python follows the link in /proc.
        os.link(f"/proc/self/fd/{self._descriptor}", name, src_dir_fd=self._descriptor)
        return name

    def _there(self) -> IO[bytes]:
        return self._path.open("rb")

    def _kept(self) -> str | None:
        """Return what lies there if no output replaces it."""
        if os.path.lexists(f"{self._path}.spent.json"):
            return "votes that have a record"
        return super()._kept()


class Stream(Output):
    """A device, pipe or open descriptor, which gets its content once that is whole."""

    def __init__(self, name: str, key: str, descriptor: int | None = None) -> None:
        """`descriptor` is open already; None for what `name` opens."""
        super().__init__("standard output" if descriptor == STDOUT else name, key)
        self._path = name
        self.descriptor = descriptor

    @property
    def places(self) -> set[Place]:
        """Return the file behind it, if there is one."""
        return set() if self.descriptor is None else places_of_descriptor(self.descriptor)

    def open(self) -> None:
        """Begin the draft in the folder for temporary files; errors as `Output.open`."""
        if self.descriptor is None:
            if not os.access(self._path, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        elif self.descriptor != STDOUT:
            os.fstat(self.descriptor)
        # What Python was not given, by now is something else, or nothing.
        for descriptor, stream in ((STDOUT, sys.stdout), (_STDERR, sys.stderr)):
            if self.descriptor == descriptor and (stream is None or stream.closed):
                raise OutputError(f"cannot write {self.name}: it is closed")
        self._hold()

    def deliver(self) -> None:
        """Write the content where it goes; errors as `Output.deliver`."""
        if self.descriptor == STDOUT:
            sys.stdout.flush()  # whatever was printed before comes before
            try:
                # Past Python's buffer: what a full disk refused must not be tried again at exit.
                self._send_to(sys.stdout.fileno())
            except io.UnsupportedOperation:  # an object in memory
                self.left = True
                for chunk in self.chunks():
                    sys.stdout.buffer.write(chunk)
                sys.stdout.flush()
        elif self.descriptor is not None:
            self._send_to(self.descriptor)
        else:
            descriptor = os.open(self._path, os.O_WRONLY | getattr(os, "O_NOCTTY", 0))
            try:
                self._send_to(descriptor)
            finally:
                os.close(descriptor)

    def _send_to(self, descriptor: int) -> None:
        for chunk in self.chunks():
            view = memoryview(chunk)
            while view:
                before, self.left = self.left, True
                try:
                    count = os.write(descriptor, view)
                except OSError:
                    self.left = before
                    raise
                view = view[count:]


def make_folder(folder: Path, mode: int) -> None:
    """Make a folder, and what is missing above it, so that it survives a loss of power.

    Also where it is there: whoever made it may have been killed before that was on disk.
    """
    above = [each for each in folder.parents if not each.is_dir()]
    folder.mkdir(mode, parents=True, exist_ok=True)
    for made in (*above[::-1], folder):
        sync_folder(made.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a loss of power, where the system has a way to."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in _NO_FOLDER_SYNC:
            raise
