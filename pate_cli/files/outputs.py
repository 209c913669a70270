"""All outputs of a command as one transaction: a disk, a store, a pipe and standard output alike.

Every output is begun before anything is spent, so that whatever would keep it from its place is
told in time. Each is written whole before any gets its name: a process that is killed leaves
nothing half-written. Then they appear in the order in which they were reserved, so that a report is
there before its labels; what goes to a stream follows, standard output last.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Final, Self

from pate_cli.core.errors import OutputError, PateError, UsageError
from pate_cli.files.existing import NOTHING, Replaces
from pate_cli.files.inputs import current
from pate_cli.files.places import NO_ROOM, Output, cause, output_at, writing
from pate_cli.files.reading import Digest

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

    Nothing that the command reads is ever replaced (`inputs`), nor a file of another kind
    (`existing`): not even with `force`, under another name or through a descriptor.
    """

    def __init__(self, *, force: bool = False) -> None:
        """`force` allows files to be replaced that begin as the new ones do."""
        self._force = force
        self._outputs: dict[str, Output] = {}
        self._inputs = current()

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
            replaces: which file makes way under `force`; see `existing`.
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
        try:
            with writing(output.name):
                output.begin()
        except BaseException:
            self._outputs.pop(name).close()
            raise

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

        It is on disk when the block is left. Any error that leaves the block undoes the
        transaction at once.

        Raises:
            OutputError: the disk is full or fails.
        """
        output = self._outputs[os.fspath(path)]
        if output.draft.closed:
            raise OutputError(f"cannot write {output.name}: an output failed before")
        try:
            try:
                yield output.draft
            except OSError as error:  # which may be one of whatever makes the content
                if error.errno not in NO_ROOM:
                    raise
                raise self._failure(output, error) from error
            with self._telling(output):
                output.finish()
        except BaseException:
            self.discard()
            raise

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
        due = sorted(written, key=_turn)
        # All are claimed again, as files change, and so does what names stand for.
        for output in due:
            with self._telling(output):
                self._inputs.claim(output.name, output.places)
        for output in due:
            with self._telling(output):
                output.deliver()
            output.close()

    @contextlib.contextmanager
    def _telling(self, output: Output) -> Iterator[None]:
        """Add what has left to an error of an output; a reader that left a pipe is no error."""
        try:
            yield
        except BrokenPipeError:
            raise
        except (OSError, PateError) as error:
            raise self._failure(output, error) from error

    def _failure(self, output: Output, error: OSError | PateError) -> PateError:
        """Return an error that says what has left."""
        rest = after([other.name for other in self._outputs.values() if other.left])
        if isinstance(error, PateError):
            return type(error)(f"{error}; {rest}")
        return OutputError(f"{cause(output.name, error)}; {rest}")


def _turn(output: Output) -> int:
    """Return when an output appears: before or after others."""
    return output.turn


def after(left: Sequence[str]) -> str:
    """Return what a failure has left in place, by name."""
    return f"what went to {', '.join(left)} stays" if left else "nothing was released"
