"""Binary files to write to: whatever takes bytes, and drafts that remember a failure."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, Protocol


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
        """Return True: nothing else can be done with it."""
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
