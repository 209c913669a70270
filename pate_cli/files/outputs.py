"""All outputs of a command as one transaction: a disk, a store, a pipe and standard output alike.

Every output is begun before anything is spent, so that whatever would keep it from its place is
told in time. Each is written whole before any gets its name: a process that is killed leaves
nothing half-written. Then they appear in the order in which they were reserved, so that a report is
there before its labels; what goes to a stream follows.

A draft on a disk is a file without a name, which vanishes with the process. Only a file system
without such files gets one under a random hidden name, which a killed process may leave.
"""

from __future__ import annotations

import contextlib
import errno
import io
import operator
import os
import secrets
import stat
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import IO, Any, Final, Self

from pate_cli.core.errors import OutputError, PateError, UsageError
from pate_cli.files import protected
from pate_cli.files.addresses import (
    Digest,
    filesystem_of,
    is_address,
    public_name,
    reachable,
    refuse_address,
)
from pate_cli.files.protected import NOTHING, Place, Replaces

_ROOM: Final = 1 << 16
"""Bytes that every output finds room for before anything is spent."""


class Outputs:
    """A transaction of several outputs: leave the block without an error and all appear.

    with Outputs() as out:
        out.reserve("report.json", replaces=REPORT)
        out.reserve("labels.csv", replaces=labels_in(LabelFormat.CSV))
        with out.open("labels.csv") as file:
            ...  # private work, written while it is done
        out.write("report.json", report)

    Nothing that the command reads is ever replaced, nor a file of another kind (`protected`): not
    even with `force`, under another name or through a descriptor.
    """

    def __init__(self, *, force: bool = False) -> None:
        """`force` allows files to be replaced that begin as the new ones do."""
        self._force = force
        self._outputs: dict[str, Output] = {}
        self._inputs = protected.current()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self.publish()
        finally:
            self.discard()

    @property
    def released(self) -> bool:
        """Return whether anything may have left for good."""
        return any(output.left for output in self._outputs.values())

    def discard(self) -> None:
        """Let go of all that has no place yet; leaving the block does so."""
        for output in self._outputs.values():
            output.close()

    def reserve(
        self,
        path: str | os.PathLike[str],
        *,
        mode: int = 0o644,
        replaces: Replaces = NOTHING,
        resumed: bool = False,
    ) -> None:
        """Begin an output, if nothing that can be seen keeps it from its place.

        Args:
            path: a path, `-` for standard output, or the address of a file on a store, which takes
                no output that is its owner's alone.
            mode: permissions less the umask; 0o600 for a secret.
            replaces: which file makes way under `force`; see `protected`.
            resumed: the same run may have put this output there before it was cut short.

        Raises:
            OutputError: a file is there; the folder is missing, not writable or full; a store
                cannot be reached.
            UsageError: two outputs go to one place, the command reads this one, or a file is there
                that no output replaces.
        """
        name = os.fspath(path)
        output = output_at(name, mode)
        if any(output.places & other.places for other in self._outputs.values()):
            raise UsageError(f"two outputs go to the same place, {output.name}; give each its own")
        self._inputs.claim(output.name, output.places)
        output.force, output.replaces, output.resumed = self._force, replaces, resumed
        self._outputs.pop(name, output).close()  # the null device may be named twice
        # Known before it is begun, so that an interruption leaves no file behind.
        self._outputs[name] = output
        with writing(output.name):
            output.begin()

    def try_out(self, sizes: Mapping[str, int] | None = None) -> None:
        """Try all outputs, as the last thing before anything is spent.

        A store is asked to put and delete something, which may leave an empty key there.

        Args:
            sizes: bytes that outputs will have at least, by path, where that is known.

        Raises:
            OutputError: a disk has no room for an output, or a store does not let us put and
                delete.
        """
        for name, output in self._outputs.items():
            with writing(output.name):
                output.try_room(max((sizes or {}).get(name, 0), _ROOM))

    def write(self, path: str | os.PathLike[str], data: bytes) -> None:
        """Give a reserved output its whole content, once; errors as `open`."""
        with self.open(path) as file:
            file.write(data)

    @contextlib.contextmanager
    def open(self, path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
        """Yield a binary file that takes the whole content of a reserved output, once.

        It is on disk when the block is left.

        Raises:
            OutputError: the disk is full or fails.
        """
        output = self._outputs[os.fspath(path)]
        try:
            yield output.draft
        except OSError as error:
            if error.errno not in NO_ROOM:  # whatever makes the content failed
                raise
            with self._telling(output):
                raise
        with self._telling(output):
            output.finish()

    def digest(self, path: str | os.PathLike[str]) -> Digest:
        """Return the hash of an output that is written and has no place yet."""
        draft = self._outputs[os.fspath(path)].draft
        draft.seek(0)
        return Digest.of(draft)

    def publish(self) -> None:
        """Give all outputs that are written their places; leaving the block does so.

        Raises:
            OutputError: one found no place; those before it have theirs.
            UsageError: a file is there by now that no output replaces.
        """
        written = (each for each in self._outputs.values() if each.written)
        for output in sorted(written, key=operator.attrgetter("turn")):
            with self._telling(output):
                output.deliver()
            output.close()

    @contextlib.contextmanager
    def _telling(self, output: Output) -> Iterator[None]:
        """Add what has left to an error of an output; a reader that left a pipe is no error."""
        try:
            with writing(output.name):
                yield
        except PateError as error:
            rest = after([other.name for other in self._outputs.values() if other.left])
            raise type(error)(f"{error}; {rest}") from error


def after(left: Sequence[str]) -> str:
    """Return what a failure has left in place, by name."""
    return f"what went to {', '.join(left)} stays" if left else "nothing was released"


_STANDARD: Final = ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")
_CHUNK: Final = 1 << 20
NO_ROOM: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NO_FOLDER_SYNC: Final = {errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EPERM, errno.EBADF}
NEW: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_NAMELESS: Final = getattr(os, "O_TMPFILE", 0) if Path("/proc/self/fd").is_dir() else 0


class Output(ABC):
    """One output of a command: a draft, and the place that it gets once it is whole.

    Attributes:
        name: the place, as messages show it.
        path: where it is on a disk, without links; None elsewhere.
        turn: files and objects appear first (0), then streams (1).
        draft: the content so far; an empty file before `begin`.
        force: whether a file that lies there makes way for one that begins alike.
        replaces: tells whether a file begins so; see `protected`.
        resumed: whether the same run may have put its output there before.
        written: whether the draft is whole.
        left: whether any of it may have left for good.
    """

    turn = 0
    path: Path | None = None
    force = resumed = written = left = False
    _hidden = ""
    """The hidden name of the draft, or none."""

    def __init__(self, name: str) -> None:
        """Only name the place; nothing is looked at before `begin`."""
        self.name, self.replaces = name, NOTHING
        self.draft: IO[bytes] = io.BytesIO()

    @property
    @abstractmethod
    def places(self) -> set[Place]:
        """Return the place as `protected` knows it, by all its names; none of the null device."""

    @abstractmethod
    def deliver(self) -> None:
        """Give the draft its place; OSError when that fails; `left` says how far it got."""

    def begin(self) -> None:
        """Begin the draft; OutputError or OSError for whatever would keep it from its place."""
        self.draft = tempfile.TemporaryFile(prefix="pate-")  # noqa: SIM115 - `close` lets go of it

    def there(self) -> IO[bytes] | None:
        """Open what lies in the place; None where nothing does."""
        return None

    def refuse_there(self) -> bool:
        """Return whether something lies in the place that makes way for the draft.

        What the same run may have put there before is looked at when the draft is whole.

        Raises:
            OutputError: something lies there, and nobody said `force`.
            UsageError: it is not to be replaced, whoever says `force`.
        """
        file = self.there()
        if file is None:
            return False
        with file:
            if self.resumed and (not self.written or file.read() == b"".join(self.chunks())):
                return True
            file.seek(0)
            what = protected.kept(file, self.replaces, self.path)
        other = "give the output another name"
        if not self.force:
            remedy = other if what else "use `force` to replace it"
            raise OutputError(f"{self.name} exists already; {remedy}")
        if what is not None:
            raise UsageError(f"{self.name} is {what}, so not even `force` replaces it; {other}")
        return True

    def try_room(self, size: int) -> None:
        """Keep room for so many bytes; OSError where there is none."""
        try:
            os.posix_fallocate(self.draft.fileno(), 0, size)
        except AttributeError:  # a system that keeps none
            pass
        except OSError as error:
            if error.errno in NO_ROOM:
                raise

    def finish(self) -> None:
        """End the draft, which is whole; OSError where the disk has not all of it."""
        self.draft.truncate()  # to what was written of the room that was kept
        self.written = True

    def chunks(self) -> Iterator[bytes]:
        """Yield the draft from its beginning."""
        self.draft.seek(0)
        while chunk := self.draft.read(_CHUNK):
            yield chunk

    def close(self) -> None:
        """Let go of the draft, which is nobody's if that fails; what has its place stays."""
        self.written = False
        with contextlib.suppress(OSError):
            self.draft.close()
        if self._hidden:
            with contextlib.suppress(OSError):
                self.remove(self._hidden)
            self._hidden = ""

    def remove(self, hidden: str) -> None:
        """Remove a file under a hidden name."""
        os.unlink(hidden)  # noqa: PTH108 - it is a text, as on a store

    def hide(self, path: str) -> str:
        """Choose a hidden name beside a path, which `close` frees again."""
        folder = path.removesuffix(PurePath(path).name)
        self._hidden = f"{folder}.pate-unfinished-{secrets.token_hex(8)}.tmp"
        return self._hidden

    @contextlib.contextmanager
    def leaving(self) -> Iterator[None]:
        """Take it that the output leaves in this block, unless an OSError says otherwise."""
        before, self.left = self.left, True
        try:
            yield
        except OSError:
            self.left = before
            raise

    def refuse_folder(self, *, there: bool) -> None:
        """Raise OutputError where a folder is there, or the name is that of one."""
        if there or self.name.endswith(("/", os.sep)):
            raise OutputError(f"cannot write {self.name}: it is a folder; name a file in it")


class File(Output):
    """A regular file, which appears under its name when it is whole."""

    path: Path

    def __init__(self, name: str, path: Path, mode: int) -> None:
        """`path` is without links; the file will have `mode` less the umask."""
        super().__init__(name)
        self.path, self._mode = path, mode

    @property
    def places(self) -> set[Place]:
        """Return what lies under the name now, and the name itself."""
        return protected.places_of(self.path)

    def there(self) -> IO[bytes] | None:
        """Open the file that has the name; None where none has."""
        return self.path.open("rb") if self.path.exists() else None

    def begin(self) -> None:
        """Begin the draft in the folder of the file; errors as `Output.begin`."""
        folder = self.path.parent
        self.refuse_folder(there=self.path.is_dir())
        if not folder.is_dir():
            raise OutputError(f"cannot write {self.name}: there is no folder {public_name(folder)}")
        self.refuse_there()
        if _NAMELESS:
            # What else keeps a file from being made keeps the one with a name from it, too.
            with contextlib.suppress(OSError):
                nameless = os.open(folder, _NAMELESS | os.O_RDWR, self._mode)
                self.draft = os.fdopen(nameless, "w+b")
                return
        self.draft = os.fdopen(os.open(self.hide(str(self.path)), NEW, self._mode), "w+b")

    def finish(self) -> None:
        """Put the draft on disk; errors as `Output.finish`."""
        super().finish()
        os.fsync(self.draft.fileno())

    def deliver(self) -> None:
        """Give the draft its name; errors as `Output.deliver`."""
        there = self.refuse_there()
        with self.leaving():
            if not self._hidden:
                descriptor = self.draft.fileno()
                name = self.hide(str(self.path)) if there else self.path
                # With a descriptor, which an absolute path does not use, Python follows the link.
                os.link(f"/proc/self/fd/{descriptor}", name, src_dir_fd=descriptor)
            if self._hidden:
                self.draft.close()  # some systems rename no open file
                Path(self._hidden).replace(self.path)
        sync_folder(self.path.parent)


class Stream(Output):
    """Standard output, a pipe or a device, which gets its content once that is whole."""

    turn = 1

    def __init__(self, path: str) -> None:
        """`path` is opened when the draft is whole; standard output has four names."""
        self._standard, self._path = path in _STANDARD, path
        super().__init__("standard output" if self._standard else path)

    @property
    def places(self) -> set[Place]:
        """Return its name, and the file that standard output may be."""
        if self._standard:
            return {"standard output"} | protected.places_of(1)
        path = os.path.realpath(self._path)
        return set() if path == os.devnull else {f"local {path}"}

    def begin(self) -> None:
        """Begin the draft in the folder for temporary files; errors as `Output.begin`."""
        if self._standard and (sys.stdout is None or sys.stdout.closed):
            # By now its descriptor is something else, or nothing.
            raise OutputError("cannot write standard output: it is closed")
        if not self._standard and not os.access(self._path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        super().begin()

    def deliver(self) -> None:
        """Send the draft; errors as `Output.deliver`."""
        target: int | str = self._path
        if self._standard:
            sys.stdout.flush()
            try:
                target = sys.stdout.fileno()
            except io.UnsupportedOperation:  # an object in memory
                self._send(sys.stdout.buffer)
                return
        # Past Python's buffer: what a full disk refused must not be tried again at exit.
        with open(target, "wb", buffering=0, closefd=not self._standard) as file:
            self._send(file)

    def _send(self, file: Any) -> None:
        for chunk in self.chunks():
            view = memoryview(chunk)
            while view:
                with self.leaving():
                    view = view[file.write(view) :]


class StoredFile(Output):
    """A file on a pyarrow filesystem: an object store or a distributed filesystem.

    A store ends what it is given, whole or not. So the draft is put under a hidden name beside its
    own, which a killed process may leave, and moved in the end. There is no file mode: what is
    secret never goes here.
    """

    def __init__(self, name: str, filesystem: Any, path: str) -> None:
        """`name` is for messages, without what may be credentials."""
        super().__init__(name)
        self._filesystem, self._path = filesystem, path

    def remove(self, hidden: str) -> None:
        """Delete an object."""
        self._filesystem.delete_file(hidden)

    @property
    def places(self) -> set[Place]:
        """Return the key, which is all that a store knows of a file."""
        return protected.stored_place(self._filesystem, self._path)

    def there(self) -> IO[bytes] | None:
        """Open the object that has the key; None where none has."""
        if self._kind() == "NotFound":
            return None
        return io.BufferedReader(self._filesystem.open_input_file(self._path))

    def begin(self) -> None:
        """Look what lies there; errors as `Output.begin`."""
        with reachable(self.name, OutputError):
            self.refuse_folder(there=self._kind() == "Directory")
        self.refuse_there()
        super().begin()

    def try_room(self, size: int) -> None:
        """Put a trial object beside the file and delete it; errors as `Output.try_room`."""
        super().try_room(size)
        self._put([b"pate looks whether it can write here\n"])
        self.remove(self._hidden)

    def finish(self) -> None:
        """Put the draft on the store; errors as `Output.finish`."""
        super().finish()
        self._put(self.chunks())

    def deliver(self) -> None:
        """Give the draft its name; errors as `Output.deliver`."""
        there = self.refuse_there()
        with self.leaving():
            if there:  # not every store moves over what is there
                self.remove(self._path)
            self._filesystem.move(self._hidden, self._path)

    def _kind(self) -> str:
        return str(self._filesystem.get_file_info(self._path).type.name)

    def _put(self, chunks: Iterable[bytes]) -> None:
        """Put an object under a hidden name, which `close` frees again."""
        with self._filesystem.open_output_stream(self.hide(self._path)) as stream:
            for chunk in chunks:
                stream.write(chunk)


def output_at(name: str, mode: int) -> Output:
    """Return what a name stands for.

    Raises:
        OutputError: it is neither a file, a device nor a store that can be reached.
        UsageError: the address of a store for an output that is its owner's alone.
    """
    if not mode & 0o077:
        refuse_address(name)
    shown, path = public_name(name), name
    if is_address(name):
        with reachable(shown, OutputError):
            filesystem, path = filesystem_of(name)
        if filesystem.type_name != "local":
            return StoredFile(shown, filesystem, path)
    if name in _STANDARD:
        return Stream(name)
    if name == "/dev/stderr" and sys.stderr is None:  # its descriptor is by now another file
        raise OutputError(f"cannot write {name}: it is closed")
    try:
        kind = Path(path).stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        kind = stat.S_IFREG
    except OSError as error:
        raise OutputError(f"cannot write {shown}: {error.strerror}") from error
    if stat.S_ISCHR(kind) or stat.S_ISFIFO(kind):
        return Stream(path)
    if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
        raise OutputError(f"cannot write {shown}: it is neither a file, a pipe nor a terminal")
    # Links are followed: the link stays and what it names is replaced, or made.
    return File(shown, Path(path).resolve(), mode)


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


@contextlib.contextmanager
def writing(name: str) -> Iterator[None]:
    """Turn what the system or the store says while `name` is written into an OutputError.

    A reader that left a pipe is no error.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        said = error.strerror or next(iter(str(error).splitlines()), type(error).__name__)
        raise OutputError(f"cannot write {name}: {said}") from error
