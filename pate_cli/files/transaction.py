"""Output files as one transaction: everything a run promised appears, or nothing does.

Paths are reserved before any private work, so that a wrong path costs no privacy. Data goes to
temporary files beside their targets, its owner's alone; only leaving the block without an error
puts them in place, and once all are, each gets the permissions that it is to have. What cannot be
taken back comes in this order: devices, pipes and descriptors just before the files, standard
output after them. Signals wait while files are put in place or removed.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Self, TypeAlias

from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import OutputError, PateError, UsageError
from pate_cli.files.destinations import (
    STDOUT,
    File,
    Stream,
    after,
    cause,
    destination,
    sync_folder,
)
from pate_cli.files.draft import Draft, translated_errors
from pate_cli.files.inputs import Inputs, current, places_of_path
from pate_cli.files.stored_file import StoredFile
from pate_cli.files.undisturbed import undisturbed

Data: TypeAlias = bytes | bytearray | memoryview


class Outputs:
    """A transaction over several outputs, used as a context manager.

    with Outputs(force=False) as out:
        out.reserve("ledger.json", mode=0o600)
        out.reserve("labels.parquet")
        with out.open("labels.parquet") as file:
            ...  # private work, written while it is done
        out.write("ledger.json", ledger)

    Files appear in the order in which they were reserved: reserve the record of what is spent
    before what spends it, and a crash in between errs on the side of caution.

    What the command reads is never replaced (`inputs`), nor what is protected here: not even with
    `force`, under another name or through a descriptor.
    """

    def __init__(self, *, force: bool = False) -> None:
        """`force` allows existing files to be replaced."""
        self._force = force
        self._files: dict[str, File | StoredFile] = {}
        self._streams: dict[str, Stream] = {}
        self._targets: set[str] = set()
        self._replaced: set[str] = set()
        self._placed = False
        self._sent: list[Stream] = []
        self._notes: list[Callable[[BaseException], None]] = []
        self._protected = Inputs()
        self._read = current()
        self._read.guard(self._refuse_read)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self._commit()
            else:
                self.discard()
        except BaseException as failure:
            self._note(failure)
            raise
        if error is not None:
            self._note(error)

    def note(self, note: Callable[[BaseException], None]) -> None:
        """Have it add to whatever ends the block from now on, if that is an error."""
        self._notes.append(note)

    def _note(self, error: BaseException) -> None:
        for note in self._notes:
            note(error)

    @property
    def released(self) -> bool:
        """Whether anything has left for good, so that "nothing was released" would be false."""
        return self._placed or any(stream.sent for stream in self._sent)

    def discard(self) -> None:
        """Let go of all that is held back, and remove its temporaries.

        Leaving the block does so, unless an interruption comes in the very instant of leaving it.
        """
        streams = list(self._streams.values())
        self._forget()
        for stream in streams:
            stream.clean()

    def reserve(
        self,
        path: str | os.PathLike[str],
        mode: int = 0o644,
        *,
        replace: bool = False,
        tried: bool = True,
    ) -> None:
        """Promise an output, with the permissions `mode` less the umask if it becomes a file.

        `replace` allows this one to exist, whatever `force` says, as a record that grows must.
        `tried`: whether a store is written to at once, which may leave an empty key there; else
        `try_out` does it.
        `-` is standard output; an address is a file on a store, which takes no output that is its
        owner's alone. OutputError when it exists and `force` is off, is a folder, or lies in a
        folder that is missing or not writable; UsageError when it is reserved already, or secret,
        or read by the same command: then, or when that is opened.
        """
        name = os.fspath(path)
        if not name:
            raise UsageError("an output needs a name; the path is empty")
        output, target = destination(name, mode)
        # Discarding two outputs is no conflict: the null device may be named twice.
        if target in self._targets and target != os.devnull:
            raise UsageError(f"two outputs go to the same place, {output.name}; give each its own")
        self._refuse_read(output)
        # Noted before it is checked: the check makes a file, which an interruption could leave.
        if isinstance(output, Stream):
            self._streams[name] = output
        else:
            self._files[name] = output
        try:
            output.check(force=self._force or replace)
            if tried and isinstance(output, StoredFile):
                output.try_out()
        except OutputError:
            self._files.pop(name, None)
            self._streams.pop(name, None)
            raise
        self._targets.add(target)
        if replace:
            self._replaced.add(output.name)

    def try_out(self) -> None:
        """Write to stores and take that back, where promising could only look.

        OutputError where nothing can be written.
        """
        for file in self._files.values():
            if isinstance(file, StoredFile):
                file.try_out()

    def protect(self, path: str | os.PathLike[str], what: str) -> None:
        """Refuse any output to this file; `what` completes "the output is ...".

        UsageError when it is reserved already.
        """
        self._protected.add(places_of_path(path), what)
        self._refuse_read()

    def write(self, path: str | os.PathLike[str], data: Data) -> None:
        """Give a reserved output its whole content, once; files are on disk when this returns.

        OutputError when the disk is full or fails; the transaction is then undone at once.
        """
        with self.open(path) as file:
            file.write(data)

    @contextlib.contextmanager
    def open(self, path: str | os.PathLike[str]) -> Iterator[Draft]:
        """Give a reserved output its whole content, once, as it comes.

        Yields a binary file to write to; a file is on disk when the block is left.
        OutputError when the disk is full or fails; that and any other error that leaves the block
        undoes the transaction at once.
        """
        name = os.fspath(path)
        output = self._files.get(name) or self._streams.get(name)
        if output is None or (output.written and name != os.devnull):
            state = "was not reserved" if output is None else "was written already"
            raise PateError(f"internal error: output {name} {state}")
        shown = output.name  # an address may hold credentials
        try:
            with translated_errors(
                output.staging(), lambda error: _report(shown, error, [])
            ) as draft:
                yield draft
        except BaseException:
            self.discard()
            raise

    def _commit(self) -> None:
        files = [file for file in self._files.values() if file.written]
        streams = [stream for stream in self._streams.values() if stream.written]
        self._sent = streams
        with self._undone() as at:
            # Files change, and so does what names stand for.
            self._refuse_read()
            for stream in streams:
                if stream.descriptor != STDOUT:
                    at.name = stream.name
                    stream.send()
        try:
            with undisturbed():
                with self._undone(files) as at:
                    for file in files:
                        at.name = file.name
                        self._refuse_read(file)
                        file.place(force=self._force or file.name in self._replaced)
                    on_disk = [file.target.parent for file in files if isinstance(file, File)]
                    for folder in dict.fromkeys(on_disk):
                        at.name = str(folder)
                        sync_folder(folder)
                self._placed = bool(files)
            # Now that nothing is taken back any more: whoever has read it would have it for good.
            for file in files:
                file.open_up()
            self._forget()
            self._finish(files, streams)
        finally:
            self.discard()
            for stream in streams:
                stream.clean()

    @contextlib.contextmanager
    def _undone(self, files: Sequence[File | StoredFile] = ()) -> Iterator[_BeingPlaced]:
        """Take everything back if the block fails, and say what stays; it says where it is."""
        at = _BeingPlaced()
        try:
            yield at
        except BaseException as error:
            left = [file.name for file in files if not file.withdraw()]
            self._placed = bool(left)
            left += [stream.name for stream in self._sent if stream.sent]
            self.discard()
            if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
                raise OutputError(_report(at.name, error, left)) from error
            if isinstance(error, UsageError):
                raise UsageError(f"{error}; {after(left)}") from error
            raise

    def _finish(self, files: list[File | StoredFile], streams: list[Stream]) -> None:
        """Write standard output, now that everything else is in place."""
        for stream in streams:
            if stream.descriptor != STDOUT:
                continue
            try:
                stream.send()
            except BrokenPipeError:
                raise
            except OSError as error:
                left = [file.name for file in files]
                left += [other.name for other in streams if other.sent]
                raise OutputError(_report("standard output", error, left)) from error

    def _refuse_read(self, *outputs: File | StoredFile | Stream) -> None:
        """UsageError for an output that is read by the command, or protected; all by default."""
        for output in outputs or (*self._files.values(), *self._streams.values()):
            places = output.places
            what = self._read.what(places) or self._protected.what(places)
            if what is not None:
                raise UsageError(f"{output.name} is {what}; give the output another name")

    def _forget(self) -> None:
        """Remove temporaries and forget every output; files in place stay in place."""
        with undisturbed():
            for file in self._files.values():
                file.clean()
            self._files.clear()
            self._streams.clear()
            self._targets.clear()


@dataclass
class _BeingPlaced:
    """The output that is being put in place."""

    name: str = ""


def _report(name: str, error: OSError, left: list[str]) -> str:
    return f"{cause(name, error)}; {after(left)}"
