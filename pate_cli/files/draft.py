"""What is being written and has no name yet: whole at the end, or known to have failed."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol

from pate_cli.core.errors import OutputError

CHUNK: Final = 1 << 20
"""Bytes that are held in memory, at most."""


class ByteSink(Protocol):
    """Whatever bytes can be written to: any binary file object that takes all it is given."""

    def write(self, data: bytes, /) -> object:
        """Write all of `data`."""
        ...


class Draft(io.RawIOBase):
    """A binary file to write to, which takes all it is given or remembers why it did not.

    Whoever writes may wrap or swallow an error of the disk; `failure` keeps it as it was.
    """

    def __init__(self, put: Callable[[memoryview], int]) -> None:
        """`put` writes the beginning of what it is given and returns how many bytes it took."""
        self.failure: OSError | None = None
        self._put = put

    def writable(self) -> bool:
        """Always."""
        return True

    def write(self, data: Any, /) -> int:
        """Write all of `data`; OSError when that fails."""
        if self.closed:
            raise ValueError("write to a closed file")
        view = memoryview(data).cast("B")
        size = len(view)
        try:
            while view:
                view = view[self._put(view) :]
        except OSError as error:
            self.failure = error
            raise
        return size

    def raise_failure(self) -> None:
        """Raise the failure, if there was one: the content is then not what was written."""
        if self.failure is not None:
            raise self.failure


@contextlib.contextmanager
def on_disk(descriptor: int) -> Iterator[Draft]:
    """Take content into an open file and, in the end, to the disk under it; the file is closed."""
    try:
        with Draft(lambda view: os.write(descriptor, view)) as draft:
            yield draft
        draft.raise_failure()
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Held:
    """Content held back: in memory while it is small, then in a file without a name.

    Such a file is its owner's alone and dies with the run.
    """

    def __init__(self) -> None:
        """Hold nothing."""
        import tempfile  # and all that chooses names at random

        self._file = tempfile.SpooledTemporaryFile(CHUNK, prefix="pate-")  # noqa: SIM115 - `close`

    @contextlib.contextmanager
    def staging(self) -> Iterator[Draft]:
        """Take the content; OSError when it cannot be held."""
        try:
            with Draft(self._file.write) as draft:
                yield draft
            draft.raise_failure()
            self._file.flush()  # a full disk is told now, not when the content goes on
        except BaseException:
            self.close()
            raise

    def chunks(self) -> Iterator[bytes]:
        """The content, from its beginning."""
        self._file.seek(0)
        while chunk := self._file.read(CHUNK):
            yield chunk

    def close(self) -> None:
        """Let go of the content."""
        with contextlib.suppress(OSError):  # of what a full disk did not take, and nobody wants
            self._file.close()


@contextlib.contextmanager
def translated_errors(
    staging: AbstractContextManager[Draft], words: Callable[[OSError], str]
) -> Iterator[Draft]:
    """What `staging` yields; its failures are OutputErrors in `words`, those of the block stay."""
    failed: Draft | None = None
    try:
        with staging as draft:
            try:
                yield draft
            except Exception:
                failed = draft
                raise
    except BaseException as error:
        # An error of the block is its own, unless what it wrote to had failed before.
        failure = error if failed is None else failed.failure
        if isinstance(failure, OSError):
            raise OutputError(words(failure)) from error
        raise
