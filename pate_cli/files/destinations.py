"""The places an output can go: a file beside its temporary, or a stream written where it is.

`transaction.Outputs` composes these. All kinds answer `check` before any private work and take
their content while `staging`; then a `File`, or a `StoredFile` on an object store, is placed (and
can be withdrawn), a `Stream` is sent.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
import stat
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from pate_cli.core.errors import OutputError
from pate_cli.files.addresses import (
    filesystem_of,
    is_address,
    public_name,
    reachable,
    refuse_address,
)
from pate_cli.files.draft import Draft, Held, on_disk
from pate_cli.files.inputs import Place, places_of_descriptor, places_of_path
from pate_cli.files.stored_file import StoredFile
from pate_cli.files.unfinished import CREATE, PRIVATE, Claim, sweep

STDOUT: Final = 1
_STDERR: Final = 2
_STANDARD: Final = {"-": STDOUT, "/dev/stdout": STDOUT, "/dev/stderr": _STDERR}
_NO_LINKS: Final = {
    errno.EPERM,
    errno.EACCES,
    errno.ENOTSUP,
    errno.EOPNOTSUPP,
    errno.ENOSYS,
    errno.EMLINK,
    errno.EINVAL,  # Windows, of a disk without links
}
_NO_FOLDER_SYNC: Final = {errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EPERM, errno.EBADF}
_DESCRIPTOR: Final = re.compile(r"(?:/dev|/proc/self)/fd/([0-9]{1,9})")


def cause(name: str, error: OSError) -> str:
    """Why `name` cannot be written, in the words of the operating system."""
    if isinstance(error, FileExistsError):
        return f"cannot write {name}: it appeared during the run; use `force` to replace it"
    return f"cannot write {name}: {error.strerror or error}"


def after(left: Sequence[str]) -> str:
    """What a failure has left in place, by name."""
    return f"what went to {', '.join(left)} stays" if left else "nothing was released"


class Stream:
    """A device, pipe or open descriptor: content is held back, then written where it is."""

    def __init__(self, name: str, descriptor: int | None) -> None:
        self.name = name
        self.descriptor = descriptor
        self.sent = False  # whether a byte of it may have left
        self._held: Held | None = None

    @property
    def written(self) -> bool:
        """Whether the content was staged."""
        return self._held is not None

    @property
    def places(self) -> set[Place]:
        """The file behind it, if there is one."""
        return set() if self.descriptor is None else places_of_descriptor(self.descriptor)

    def check(self, *, force: bool) -> None:
        """Refuse what cannot be written; nothing is replaced here, so `force` has no say."""
        try:
            if self.descriptor is None:
                if not os.access(self.name, os.W_OK):
                    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            elif self.descriptor != STDOUT:
                os.fstat(self.descriptor)
        except OSError as error:
            raise OutputError(cause(self.name, error)) from error
        # What Python was not given, by now is something else, or nothing.
        for descriptor, name, stream in (
            (STDOUT, "standard output", sys.stdout),
            (_STDERR, self.name, sys.stderr),
        ):
            if self.descriptor == descriptor and (stream is None or stream.closed):
                raise OutputError(f"cannot write {name}: it is closed")

    @contextlib.contextmanager
    def staging(self) -> Iterator[Draft]:
        """Take the content and hold it back until `send`."""
        self.clean()
        held = Held()
        with held.staging() as draft:
            yield draft
        self._held = held

    def clean(self) -> None:
        """Let go of the content."""
        if self._held is not None:
            self._held.close()

    def send(self) -> None:
        """Write the content; `sent` tells afterwards whether any of it may have left."""
        if self.descriptor == STDOUT:
            self._send_to_stdout()
        elif self.descriptor is not None:
            self._send_to(self.descriptor)
        else:
            descriptor = os.open(self.name, os.O_WRONLY | getattr(os, "O_NOCTTY", 0))
            try:
                self._send_to(descriptor)
            finally:
                os.close(descriptor)

    def _send_to_stdout(self) -> None:
        sys.stdout.flush()  # whatever was printed before comes before
        try:
            descriptor = sys.stdout.fileno()
        except io.UnsupportedOperation:  # standard output was replaced by an object in memory
            self.sent = True
            for chunk in self._held.chunks() if self._held else ():
                sys.stdout.buffer.write(chunk)
            sys.stdout.flush()
        else:
            # Past Python's buffer: what a full disk refused must not be tried again at exit.
            self._send_to(descriptor)

    def _send_to(self, descriptor: int) -> None:
        for chunk in self._held.chunks() if self._held else ():
            view = memoryview(chunk)
            while view:
                before, self.sent = self.sent, True
                try:
                    count = os.write(descriptor, view)
                except OSError:
                    self.sent = before
                    raise
                view = view[count:]


class File:
    """A regular file: staged in a temporary beside it, then put in place under its name."""

    def __init__(self, name: str, target: Path, mode: int) -> None:
        self.name = name
        self.target = target
        # Named before they exist, so that no interruption can orphan them, and in the same folder,
        # so that they are on the same file system.
        self._claim = Claim(target, mode)
        self._temporary, self._backup = self._claim.temporary, self._claim.backup
        self._identity: tuple[int, int] | None = None
        self._placed = False
        self._irreplaceable = False  # an old file goes, and no link to it could be kept

    @property
    def written(self) -> bool:
        """Whether the content was staged."""
        return self._identity is not None

    @property
    def places(self) -> set[Place]:
        """What is there under the name now, and the name itself."""
        return places_of_path(self.target)

    def check(self, *, force: bool) -> None:
        """Refuse now, before any private work, whatever would fail later."""
        folder = self.target.parent
        shown = public_name(folder)
        if self.target.is_dir() or self.name.endswith(("/", os.sep)):
            raise OutputError(f"cannot write {self.name}: it is a folder; name a file in it")
        if not folder.is_dir():
            raise OutputError(f"cannot write {self.name}: there is no folder {shown}")
        if self.target.exists() and not force:
            raise OutputError(f"{self.name} exists already; use `force` to replace it")
        try:
            # Permissions, read-only mounts and quotas are asked in the only way that tells.
            self._claim.try_out()
        except OSError as error:
            reason = f"no file can be made in {shown} ({error.strerror})"
            raise OutputError(f"cannot write {self.name}: {reason}") from error
        finally:
            self.clean()
        sweep(folder)

    @contextlib.contextmanager
    def staging(self) -> Iterator[Draft]:
        """Take the content into the temporary file and, in the end, to the disk under it."""
        descriptor = self._claim.create()
        with on_disk(descriptor) as draft:
            found = os.fstat(descriptor)
            yield draft
        self._identity = (found.st_dev, found.st_ino)

    def place(self, *, force: bool) -> None:
        """Give the content its name; a file that has it goes if `force`, else FileExistsError."""
        if force:
            try:
                self._backup.hardlink_to(self.target)
            except OSError:
                self._irreplaceable = self.target.exists()
            self._temporary.replace(self.target)
        else:
            self._place_new()
        self._placed = True

    def _place_new(self) -> None:
        """Give the file its name only if nothing has that name: renaming would overwrite."""
        try:
            self.target.hardlink_to(self._temporary)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            # No links on this file system: claim the name with an empty file, then rename.
            os.close(os.open(self.target, CREATE, PRIVATE))
            try:
                self._temporary.replace(self.target)
            except BaseException:
                self.target.unlink(missing_ok=True)
                raise
        else:
            self._temporary.unlink()

    def open_up(self) -> None:
        """Let others read what is in place, as far as they may: until then it is its owner's."""
        self._claim.open_up()

    def withdraw(self) -> bool:
        """Undo `place`, done or half done; whether nothing of this run is left under the name."""
        try:
            found = self.target.lstat()
            if (found.st_dev, found.st_ino) != self._identity:
                return not self._placed
            if self._irreplaceable:
                return False
            if self._backup.exists():
                self._backup.replace(self.target)
            else:
                self.target.unlink()
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return True

    def clean(self) -> None:
        """Remove the temporary and the link to the replaced file, if they are there."""
        self._claim.clean()


def destination(name: str, mode: int) -> tuple[File | StoredFile | Stream, str]:
    """What `name` stands for, and a key that is equal for two names of the same place.

    Raises:
        UsageError: the address of a store for an output that is its owner's alone.
    """
    if not mode & 0o077:
        refuse_address(name)
    shown = public_name(name)
    if is_address(name):
        with reachable(shown, OutputError):
            filesystem, path = filesystem_of(name)
        if filesystem.type_name != "local":
            return StoredFile(shown, filesystem, path), f"{filesystem.type_name} {path}"
        return File(shown, Path(path).resolve(), mode), str(Path(path).resolve())
    match = _DESCRIPTOR.fullmatch(name)
    if name in _STANDARD or match:
        descriptor = int(match[1]) if match else _STANDARD[name]
        return Stream(name, descriptor), f"descriptor {descriptor}"
    try:
        kind = Path(name).stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        kind = stat.S_IFREG
    except OSError as error:
        raise OutputError(cause(shown, error)) from error
    # Links are followed: the link stays and what it names is replaced, or made.
    target = Path(name).resolve()
    if stat.S_ISCHR(kind) or stat.S_ISFIFO(kind):
        return Stream(name, None), str(target)
    if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
        raise OutputError(f"cannot write {shown}: it is neither a file, a pipe nor a terminal")
    return File(shown, target, mode), str(target)


def make_folder(folder: Path, mode: int) -> None:
    """Make it, and what is missing above it, so that it survives a power cut with what it holds.

    Also where it is there: whoever made it may have been killed before that was on disk.
    """
    above = [each for each in folder.parents if not each.is_dir()]
    folder.mkdir(mode, parents=True, exist_ok=True)
    for made in (*above[::-1], folder):
        sync_folder(made.parent)


def sync_folder(folder: Path) -> None:
    """Make renames in `folder` survive a power cut, where the system has a way to."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in _NO_FOLDER_SYNC:
            raise
