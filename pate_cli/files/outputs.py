"""All outputs of a command are one transaction, whether they go to a disk, a store or a pipe.

Every output is begun before the run spends any privacy. Because pate begins all outputs early, it
finds most errors in writing outputs before it spends privacy. All outputs are complete before any
of them gets its name, so a process that is killed leaves no incomplete output. Files appear in the
order in which they were reserved, so that a report appears before its labels. Streams such as
standard output get their content after all files.

A draft on a disk is a file without a name, which vanishes with the process. If the file system has
no files without a name, the draft has a random hidden name, and may stay behind if the process is
killed.
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
"""Every output reserves this many bytes of disk before the run spends any privacy."""


class Outputs:
    """A transaction of several outputs, which all appear when the block ends without an error.

    with Outputs() as out:
        out.reserve("report.json", replaces=REPORT)
        out.reserve("labels.csv", replaces=labels_in(LabelFormat.CSV))
        with out.open("labels.csv") as file:
            ...  # Private work is done, and its results are written.
        out.write("report.json", report)

    Even with `force`, an output never replaces a file that the command reads. With `force`, an
    output replaces only empty files and files that the argument `replaces` of `reserve` recognises.
    The module `protected` recognises a file that the command reads by its path without links and by
    its device and inode.
    """

    def __init__(self, *, force: bool = False) -> None:
        """Begin an empty transaction; `force` lets outputs replace some files (see `Outputs`)."""
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
        """Return whether any output may have become visible outside of the command."""
        return any(output.left for output in self._outputs.values())

    def discard(self) -> None:
        """Remove all drafts; the end of the `with` block does this, too."""
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
        """Begin an output, and check whether it can be put in its place.

        Args:
            path: a path, `-` for standard output, or the address of a file on a store. An output
                that only its owner may read (mode 0o600) cannot be on a store.
            mode: the permissions of the file, which the umask reduces; 0o600 for a secret.
            replaces: which existing file `force` may replace; see `protected`.
            resumed: whether this run continues an interrupted run, which may have written this
                output already.

        Raises:
            OutputError: the file exists already; the folder is missing, not writable or full; or a
                store cannot be reached.
            UsageError: two outputs have the same place, the command also reads the file at `path`,
                or not even `force` may replace that file.
        """
        name = os.fspath(path)
        output = output_at(name, mode)
        if any(output.places & other.places for other in self._outputs.values()):
            raise UsageError(
                f"two outputs would be written to the same place, {output.name}; give each "
                "output its own name"
            )
        self._inputs.claim(output.name, output.places)
        output.force, output.replaces, output.resumed = self._force, replaces, resumed
        self._outputs.pop(name, output).close()  # The null device may be named twice.
        # The output is stored before its draft exists, so that an interruption leaves no draft
        # behind.
        self._outputs[name] = output
        with writing(output.name):
            output.begin()

    def try_out(self, sizes: Mapping[str, int] | None = None) -> None:
        """Test whether all outputs can be written, immediately before the run spends any privacy.

        On a store, the test writes and deletes a small object. After this test, some stores keep
        an empty object that stands for the folder of the output.

        Args:
            sizes: the smallest size that an output will have in bytes, by path, if it is known.

        Raises:
            OutputError: a disk has no room for an output, or a store refuses to write or delete an
                object.
        """
        for name, output in self._outputs.items():
            with writing(output.name):
                output.try_room(max((sizes or {}).get(name, 0), _ROOM))

    def write(
        self, path: str | os.PathLike[str], data: bytes, *, earlier: Replaces = NOTHING
    ) -> None:
        """Write all bytes of a reserved output; raise OutputError if the disk is full or fails.

        Args:
            path: the name with which the output was reserved.
            data: the content.
            earlier: returns whether an existing file is what an interrupted run wrote to this
                output; the run that continues it then replaces the file.
        """
        self._outputs[os.fspath(path)].earlier = earlier
        with self.open(path) as file:
            file.write(data)

    @contextlib.contextmanager
    def open(self, path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
        """Yield a binary file; the `with` block writes all bytes of a reserved output to it.

        The content is on disk when the block ends.

        Raises:
            OutputError: the disk is full or fails.
        """
        output = self._outputs[os.fspath(path)]
        try:
            yield output.draft
        except OSError as error:
            if error.errno not in NO_ROOM:  # This error came from other code in the block.
                raise
            with self._telling(output):
                raise
        with self._telling(output):
            output.finish()

    def digest(self, path: str | os.PathLike[str]) -> Digest:
        """Return the hash of an output that is written but not yet published."""
        draft = self._outputs[os.fspath(path)].draft
        draft.seek(0)
        return Digest.of(draft)

    def publish(self) -> None:
        """Put all written outputs in their places; the end of the `with` block does this, too.

        Raises:
            OutputError: an output cannot be put in its place; outputs that are already in place
                stay there.
            UsageError: since `reserve`, a file has appeared that may not be replaced.
        """
        written = (each for each in self._outputs.values() if each.written)
        for output in sorted(written, key=operator.attrgetter("turn")):
            with self._telling(output):
                output.deliver()
            output.close()

    @contextlib.contextmanager
    def _telling(self, output: Output) -> Iterator[None]:
        """Add to the text of an error which outputs are already in place."""
        try:
            with writing(output.name):
                yield
        except PateError as error:
            rest = after([other.name for other in self._outputs.values() if other.left])
            raise type(error)(f"{error}; {rest}") from error


def after(left: Sequence[str]) -> str:
    """Return a phrase about the outputs that stay after a failure."""
    return f"what was written to {', '.join(left)} stays" if left else "nothing was released"


_STANDARD: Final = ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")
_CHUNK: Final = 1 << 20
NO_ROOM: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NO_FOLDER_SYNC: Final = {errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EPERM, errno.EBADF}
NEW: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_NAMELESS: Final = getattr(os, "O_TMPFILE", 0) if Path("/proc/self/fd").is_dir() else 0


class Output(ABC):
    """One output of a command: a draft, and the place that it gets when it is complete.

    Attributes:
        name: the name of the output in messages.
        path: the path of a file on a disk, with links resolved; None for streams and stores.
        turn: when the output appears; files and objects (0) appear before streams (1).
        draft: the content so far; an empty file before `begin`.
        force: whether the output may replace an existing file that `replaces` recognises.
        replaces: returns whether an existing file is of the same kind as the output; see
            `protected`.
        resumed: whether this run continues an interrupted run, which may have written this output.
        earlier: returns whether an existing file is what the interrupted run wrote.
        written: whether the draft of this output is complete.
        left: whether any part of the output may have become visible outside of the command.
    """

    turn = 0
    path: Path | None = None
    force = resumed = written = left = False
    _hidden = ""
    """The hidden name of the draft; empty if it has none."""

    def __init__(self, name: str) -> None:
        """Store the name of the output; nothing else happens before `begin`."""
        self.name, self.replaces, self.earlier = name, NOTHING, NOTHING
        self.draft: IO[bytes] = io.BytesIO()

    @property
    @abstractmethod
    def places(self) -> set[Place]:
        """Return the identifiers of this output (`Place`); an empty set for the null device."""

    @abstractmethod
    def deliver(self) -> None:
        """Put the draft in its place, or raise OSError.

        After an error, `left` says whether any part of the output may have become visible.
        """

    def begin(self) -> None:
        """Begin the draft; raise OutputError or OSError if its place cannot be used."""
        self.draft = tempfile.TemporaryFile(prefix="pate-")  # noqa: SIM115 - `close` closes it

    def there(self) -> IO[bytes] | None:
        """Open the file that this output would replace; return None if there is no such file."""
        return None

    def refuse_there(self) -> bool:
        """Return whether this output would replace a file; raise an error if that file must stay.

        If `resumed` is true, any existing file may be replaced while the draft is incomplete. If
        `resumed` is true and the draft is complete, an existing file may be replaced if it is equal
        to the draft or if `earlier` recognises it.

        Raises:
            OutputError: a file exists, and `force` was not given.
            UsageError: a file exists that not even `force` may replace.
        """
        file = self.there()
        if file is None:
            return False
        with file:
            if self.resumed:
                if not self.written or self.earlier(file):
                    return True
                file.seek(0)
                if file.read() == b"".join(self.chunks()):
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
        """Reserve this many bytes on the disk; raise OSError if there is not enough room."""
        try:
            os.posix_fallocate(self.draft.fileno(), 0, size)
        except AttributeError:  # This system cannot reserve room.
            pass
        except OSError as error:
            if error.errno in NO_ROOM:
                raise

    def finish(self) -> None:
        """Mark the draft as complete; raise OSError if the disk does not have all of it."""
        self.draft.truncate()  # The reserved room may be larger than the content.
        self.written = True

    def chunks(self) -> Iterator[bytes]:
        """Yield the content of the draft in pieces, from its beginning."""
        self.draft.seek(0)
        while chunk := self.draft.read(_CHUNK):
            yield chunk

    def close(self) -> None:
        """Close and remove the draft, and ignore errors; a published file stays."""
        self.written = False
        with contextlib.suppress(OSError):
            self.draft.close()
        if self._hidden:
            with contextlib.suppress(OSError):
                self.remove(self._hidden)
            self._hidden = ""

    def remove(self, hidden: str) -> None:
        """Remove the file with this hidden name."""
        os.unlink(hidden)  # noqa: PTH108 - it is a text, as on a store

    def hide(self, path: str) -> str:
        """Choose a hidden name in the folder of a path; `close` removes a file with this name."""
        folder = path.removesuffix(PurePath(path).name)
        self._hidden = f"{folder}.pate-unfinished-{secrets.token_hex(8)}.tmp"
        return self._hidden

    @contextlib.contextmanager
    def leaving(self) -> Iterator[None]:
        """Set `left` to True, and restore its old value if the `with` block raises an OSError."""
        before, self.left = self.left, True
        try:
            yield
        except OSError:
            self.left = before
            raise

    def refuse_folder(self, *, there: bool) -> None:
        """Raise OutputError if the output is a folder, or if its name ends with a slash."""
        if there or self.name.endswith(("/", os.sep)):
            raise OutputError(f"cannot write {self.name}: it is a folder; name a file in it")


class File(Output):
    """A regular file, which gets its name when it is complete."""

    path: Path

    def __init__(self, name: str, path: Path, mode: int) -> None:
        """Keep the path, with links resolved, and the permissions before the umask reduces them."""
        super().__init__(name)
        self.path, self._mode = path, mode

    @property
    def places(self) -> set[Place]:
        """Return the path of the output, and device and inode of a file that is there now."""
        return protected.places_of(self.path)

    def there(self) -> IO[bytes] | None:
        """Open the file at the path of this output; return None if there is none."""
        return self.path.open("rb") if self.path.exists() else None

    def begin(self) -> None:
        """Begin the draft in the folder of the output; raise an error if this is impossible."""
        folder = self.path.parent
        self.refuse_folder(there=self.path.is_dir())
        if not folder.is_dir():
            raise OutputError(
                f"cannot write {self.name}: there is no folder {public_name(folder)}; create it or "
                "name another one"
            )
        self.refuse_there()
        if _NAMELESS:
            # If this fails for any other reason, the file with a name fails, too.
            with contextlib.suppress(OSError):
                nameless = os.open(folder, _NAMELESS | os.O_RDWR, self._mode)
                self.draft = os.fdopen(nameless, "w+b")
                return
        self.draft = os.fdopen(os.open(self.hide(str(self.path)), NEW, self._mode), "w+b")

    def finish(self) -> None:
        """Mark the draft as complete and force it to disk; raise OSError if the disk fails."""
        super().finish()
        os.fsync(self.draft.fileno())

    def deliver(self) -> None:
        """Give the draft its final name.

        Raise an error if the disk fails, or if an existing file may not be replaced.
        """
        there = self.refuse_there()
        with self.leaving():
            if not self._hidden:
                descriptor = self.draft.fileno()
                name = self.hide(str(self.path)) if there else self.path
                # Python follows the link only if it gets a descriptor of a folder; with an
                # absolute path, the descriptor is not used.
                os.link(f"/proc/self/fd/{descriptor}", name, src_dir_fd=descriptor)
            if self._hidden:
                self.draft.close()  # Some systems cannot rename an open file.
                Path(self._hidden).replace(self.path)
        sync_folder(self.path.parent)


class Stream(Output):
    """Standard output, a pipe or a device, which gets its content when the draft is complete."""

    turn = 1

    def __init__(self, path: str) -> None:
        """Store the path, which is opened when the draft is complete."""
        self._standard, self._path = path in _STANDARD, path
        super().__init__("standard output" if self._standard else path)

    @property
    def places(self) -> set[Place]:
        """Return the stream's name; if standard output is a file, also the file's identifier."""
        if self._standard:
            return {"standard output"} | protected.places_of(1)
        path = os.path.realpath(self._path)
        return set() if path == os.devnull else {f"local {path}"}

    def begin(self) -> None:
        """Begin a draft in the folder for temporary files; raise an error if the stream fails."""
        if self._standard and (sys.stdout is None or sys.stdout.closed):
            # The descriptor of a closed stream may by now belong to another file.
            raise OutputError(
                "cannot write standard output: it is closed; connect a pipe or a file"
            )
        if not self._standard and not os.access(self._path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        super().begin()

    def deliver(self) -> None:
        """Write the draft to the stream; raise OSError if the stream fails."""
        target: int | str = self._path
        if self._standard:
            sys.stdout.flush()
            try:
                target = sys.stdout.fileno()
            except io.UnsupportedOperation:  # Standard output is an object in memory.
                self._send(sys.stdout.buffer)
                return
        # This bypasses Python's buffer, because bytes that a full disk refused would be written
        # again at exit.
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

    A store keeps an object even if only a part of it was written. To leave no incomplete output,
    the draft first gets a hidden name in the same folder, and it gets its final name when it is
    complete. If the process is killed, the draft may stay behind. A store has no file modes, so
    secret files never go there.
    """

    def __init__(self, name: str, filesystem: Any, path: str) -> None:
        """Keep the filesystem and the path; `name` is for messages and has no credentials."""
        super().__init__(name)
        self._filesystem, self._path = filesystem, path

    def remove(self, hidden: str) -> None:
        """Delete the object with this hidden name."""
        self._filesystem.delete_file(hidden)

    @property
    def places(self) -> set[Place]:
        """Return the only identifier of the object: the type of its filesystem and its path."""
        return protected.stored_place(self._filesystem, self._path)

    def there(self) -> IO[bytes] | None:
        """Open the object at the path of this output; return None if there is none."""
        if self._kind() == "NotFound":
            return None
        return io.BufferedReader(self._filesystem.open_input_file(self._path))

    def begin(self) -> None:
        """Begin a draft in the folder for temporary files, after a check of the store.

        If the store cannot be reached, or the path is a folder or has an object that may not be
        replaced, an error is raised.
        """
        with reachable(self.name, OutputError):
            self.refuse_folder(there=self._kind() == "Directory")
        self.refuse_there()
        super().begin()

    def try_room(self, size: int) -> None:
        """Write and delete a test object beside the output; raise OSError if this fails."""
        super().try_room(size)
        self._put([b"pate looks whether it can write here\n"])
        self.remove(self._hidden)

    def finish(self) -> None:
        """Write the draft to the store under a hidden name; raise OSError if this fails."""
        super().finish()
        self._put(self.chunks())

    def deliver(self) -> None:
        """Give the draft its final name.

        Raise an error if the store fails, or if an existing file may not be replaced.
        """
        there = self.refuse_there()
        with self.leaving():
            if there:  # Some stores cannot move an object onto another one.
                self.remove(self._path)
            self._filesystem.move(self._hidden, self._path)

    def _kind(self) -> str:
        return str(self._filesystem.get_file_info(self._path).type.name)

    def _put(self, chunks: Iterable[bytes]) -> None:
        """Write an object with a hidden name, which `close` deletes again."""
        with self._filesystem.open_output_stream(self.hide(self._path)) as stream:
            for chunk in chunks:
                stream.write(chunk)


def output_at(name: str, mode: int) -> Output:
    """Return the output for a name: a file, a stream, or a file on a store.

    Raises:
        OutputError: the name is neither a file, a device nor a store that can be reached.
        UsageError: the name is that of a stream or the address of a store, but only the owner may
            read the output.
    """
    secret = not mode & 0o077
    if secret:
        refuse_address(name)
    shown, path = public_name(name), name
    if is_address(name):
        with reachable(shown, OutputError):
            filesystem, path = filesystem_of(name)
        if filesystem.type_name != "local":
            return StoredFile(shown, filesystem, path)
    if name == "/dev/stderr" and sys.stderr is None:  # Its number may belong to another file.
        raise OutputError(f"cannot write {name}: it is closed; connect a pipe or a file")
    try:
        kind = stat.S_IFIFO if path in _STANDARD else Path(path).stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        kind = stat.S_IFREG
    except OSError as error:
        raise OutputError(f"cannot write {shown}: {error.strerror}") from error
    if stat.S_ISCHR(kind) or stat.S_ISFIFO(kind):
        if secret and (path in _STANDARD or os.path.realpath(path) != os.devnull):
            raise UsageError(
                f"{shown} is no file, but only its owner may read this output; name a file"
            )
        return Stream(path)
    if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
        raise OutputError(
            f"cannot write {shown}: it is neither a file, a pipe nor a terminal; give the output "
            "another name"
        )
    # A link stays, and the file that it names is replaced or made.
    return File(shown, Path(path).resolve(), mode)


def make_folder(folder: Path, mode: int) -> None:
    """Make a folder and its missing parents, so that they survive a loss of power.

    An existing folder is synced, too, because the process that made it may have been killed before
    the folder was on disk.
    """
    above = [each for each in folder.parents if not each.is_dir()]
    folder.mkdir(mode, parents=True, exist_ok=True)
    for made in (*above[::-1], folder):
        sync_folder(made.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a loss of power, if the system can do this."""
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
    """Turn errors of the system or a store into an OutputError that names the output.

    A BrokenPipeError is not changed, because whoever reads from a pipe may stop.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        said = error.strerror or next(iter(str(error).splitlines()), type(error).__name__)
        raise OutputError(f"cannot write {name}: {said}") from error
