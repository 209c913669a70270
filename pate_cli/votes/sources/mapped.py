"""Arrays in memory that are files in truth: np.memmap, np.load with `mmap_mode`, and views of them.

Whoever looks at what has shrunk under a mapping is ended by the system (SIGBUS). So the system
itself is told to look: bytes handed to it to be written arrive as a copy, or not at all.
"""

from __future__ import annotations

import contextlib
import mmap
import os
from collections.abc import Iterator
from dataclasses import field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pate_cli.core.dataclass import dataclass
from pate_cli.votes.sources.unchanged import changed

_AT_ONCE: Final = 1 << 16
_SPAN: Final = 1 << 20
"""So many bytes are copied together where entries do not lie side by side."""


@dataclass(frozen=True, eq=False)
class Mapped:
    """A file that is mapped, and its size when it was found."""

    mapping: mmap.mmap = field(repr=False)
    size: int

    @classmethod
    def under(cls, array: NDArray[Any]) -> Mapped | None:
        """The file that an array lies in; None for one that lies in memory."""
        base: Any = array
        # Of views, whose bases may be something else of numpy's, and of buffers.
        while (below := getattr(base, "base", getattr(base, "obj", None))) is not None:
            base = below
        # Without `readv` this is no system where a file shrinks under a mapping.
        if not isinstance(base, mmap.mmap) or not hasattr(os, "readv"):
            return None
        size = _size(base)
        return None if size is None else cls(base, size)

    def copied(self, part: NDArray[Any], name: str) -> NDArray[Any]:
        """The entries of a part of the array; VoteError where the file is shorter by now."""
        found = np.empty(part.shape, part.dtype)
        try:
            with _pipe() as ends:
                self._copy(part, found, ends)
        except OSError:  # there are no such bytes any more
            changed(name)
        if _size(self.mapping) != self.size:
            changed(name)  # the rest of a page beyond its end is zeros
        return found

    def _copy(self, part: NDArray[Any], found: NDArray[Any], ends: tuple[int, int]) -> None:
        if not part.size:
            return
        reach = [(sides - 1) * step for sides, step in zip(part.shape, part.strides, strict=True)]
        span = sum(map(abs, reach)) + part.itemsize
        if span > max(part.nbytes, _SPAN):
            wide = int(np.argmax(np.abs(reach)))
            half = (slice(None),) * wide
            middle = part.shape[wide] // 2
            for side in (slice(middle), slice(middle, None)):
                self._copy(part[(*half, side)], found[(*half, side)], ends)
            return
        start = sum(at for at in reach if at < 0)
        everything = np.frombuffer(self.mapping, np.uint8)
        first = _address(part) + start - _address(everything)
        bytes_ = np.empty(span, np.uint8)
        _through(ends, everything[first : first + span].data, bytes_.data)
        found[...] = np.ndarray(part.shape, part.dtype, bytes_.data, -start, part.strides)


def in_memory(values: NDArray[Any], name: str) -> NDArray[Any]:
    """The same, copied where it lies in a file; VoteError where that is shorter by now."""
    mapped = Mapped.under(values)
    return values if mapped is None else mapped.copied(values, name)


def _size(mapping: mmap.mmap) -> int | None:
    """That of the file now; None where there is none behind it."""
    try:
        return mapping.size()
    except (OSError, ValueError):
        return None


def _address(array: NDArray[Any]) -> int:
    return int(array.__array_interface__["data"][0])


@contextlib.contextmanager
def _pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    try:
        os.set_blocking(ends[1], False)  # it takes no more than it holds
        yield ends
    finally:
        for end in ends:
            os.close(end)


def _through(ends: tuple[int, int], view: memoryview, found: memoryview) -> None:
    """Copy bytes by way of a pipe; OSError where there are none."""
    reading, writing = ends
    while view:
        count = os.write(writing, view[:_AT_ONCE])
        view = view[count:]
        while count:
            arrived = os.readv(reading, [found[:count]])
            found, count = found[arrived:], count - arrived
