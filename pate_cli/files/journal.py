"""Lines behind a sealed document, in the same file: appended one after the other, on disk at once.

What is done line by line cannot wait for the document to be written again. Each line carries a sum
of its own; the file is locked while it grows, and no one else then replaces it. A line without an
end was being written when its process died, before anything was made of it: it counts for nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Final, Self

from pate_cli.core.errors import LedgerError, OutputError
from pate_cli.files.addresses import public_name
from pate_cli.files.delivery import sync_folder
from pate_cli.files.outputs import cause
from pate_cli.files.sealed_json import content_of

_BEGINS: Final = b'{"line":'
_FIRST: Final = re.compile(b"^" + re.escape(_BEGINS), re.MULTILINE)
_SUM: Final = re.compile(rb',"sum":"([0-9a-f]{8})"\}\Z')
_ANY_SUM: Final = re.compile(rb',"sum":"[0-9a-f]{8}"\}')
_UNLOCKED: Final = "is in use by a session; end that first, or wait for it"


def parts_of(content: bytes) -> tuple[bytes, bytes]:
    """The document of a file, and the lines behind it."""
    first = _FIRST.search(content)
    at = _unbegun(content) if first is None else first.start()
    return content[:at], content[at:]


def _unbegun(content: bytes) -> int:
    """Where a first line starts of which hardly anything got to disk; zeros, on some systems."""
    last = content.rfind(b"\n") + 1
    return last if last and _BEGINS.startswith(content[last:].rstrip(b"\0")) else len(content)


def content_with_lines(path: str | PathLike[str]) -> bytes:
    """All of a file: lines have no end that other files have."""
    content = content_of(path)
    first = _FIRST.search(content)
    if first is None:
        return content
    with open(path, "rb") as file:  # noqa: PTH123 - a line cut off would count for nothing
        return file.read()


def lines_of(tail: bytes) -> Iterator[dict[str, Any]]:
    """What the lines say, whole ones only; LedgerError for one that is not as it was written."""
    *whole, rest = tail.rstrip(b"\0").split(b"\n")
    if _ANY_SUM.search(rest):  # all of it is there but its end
        whole.append(rest)
    for number, line in enumerate(whole, 1):
        told = _read(line)
        if told is None or told.pop("line", None) != number:
            raise LedgerError(
                f"line {number} behind the record is damaged or missing; restore a copy that has "
                "all of them"
            )
        yield told


def _read(line: bytes) -> dict[str, Any] | None:
    seal = _SUM.search(line)
    if seal is None or int(seal[1], 16) != zlib.crc32(line[: seal.start()]):
        return None
    try:
        told = json.loads(line)
    except ValueError:
        return None
    del told["sum"]
    return dict(told)


def _line(number: int, told: Mapping[str, Any]) -> bytes:
    text = json.dumps({"line": number, **told}, separators=(",", ":"), allow_nan=False)
    content = text.removesuffix("}").encode()
    return content + f',"sum":"{zlib.crc32(content):08x}"}}\n'.encode()


class Journal:
    """A file that grows by lines, and is locked until it is closed.

    After a failure nothing can be appended: what is on disk is then not known.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        """Lock the file, which is there.

        Raises:
            OutputError: it cannot be opened for writing, or somebody else holds it.
        """
        self._path, self._name = path, public_name(str(path))
        self._owner, self._file = os.getpid(), -1
        try:
            self._file = os.open(path, os.O_RDWR | getattr(os, "O_CLOEXEC", 0))
        except OSError as error:
            raise OutputError(f"{cause(self._name, error)}; nothing was asked") from None
        self._whole = True
        try:
            self._take()
            self._start()
        except BaseException:
            self.close()
            raise

    def __del__(self) -> None:
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def document(self) -> bytes:
        """The document in front of the lines."""
        return self._document

    @property
    def told(self) -> list[dict[str, Any]]:
        """The lines that were there when it was opened."""
        return self._told

    def append(self, lines: Sequence[Mapping[str, Any]]) -> None:
        """Put lines on disk, all at once.

        Raises:
            OutputError: they are not, or nobody knows; nothing more can be appended then.
        """
        if not self._whole:
            raise OutputError(f"{self._name} could not be written before; open it again")
        self._look()
        data = b"".join(_line(self._lines + at, told) for at, told in enumerate(lines, 1))
        self._whole = False
        try:
            _write_all(self._file, data, self._end)
            os.fsync(self._file)
        except OSError as error:
            # What is half-written is taken back if it can be; else it ends without an end.
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, self._end)
                os.fsync(self._file)
            raise OutputError(f"{cause(self._name, error)}; nothing was answered") from None
        self._lines += len(lines)
        self._end += len(data)
        self._whole = True

    def close(self) -> None:
        """Let go of the file; a process that was forked lets go of its copy alone."""
        if self._file >= 0:
            if self._owner == os.getpid():
                _unlock(self._file)
            os.close(self._file)
            self._file = -1
            self._whole = False

    def _look(self) -> None:
        """OutputError where another file, or none, has taken its place: nobody would see more."""
        with contextlib.suppress(OSError):
            if os.path.samestat(Path(self._path).stat(), os.fstat(self._file)):
                return
        raise OutputError(
            f"{self._name} was replaced or removed meanwhile; nothing was answered. Put it back "
            "and open it again"
        )

    def _take(self) -> None:
        if not _lock(self._file):
            raise OutputError(f"{self._name} {_UNLOCKED}")

    def _start(self) -> None:
        """Read what is there, and cut off a line that was not finished.

        What is left may be of a process that was killed before it was on disk, and is answered by
        from now on: so it goes there first, and so does the name of the file. The lines are written
        again, for a sync that failed may have taken them for written, and another would not tell.
        """
        found = b"".join(iter(lambda: os.read(self._file, 1 << 20), b""))
        content = found.rstrip(b"\0")  # what some systems leave where nothing got to disk
        document, tail = parts_of(content)
        self._document, self._told = document, list(lines_of(tail))
        self._lines = len(self._told)
        rest = len(tail) - (tail.rfind(b"\n") + 1)
        unended = bool(_ANY_SUM.search(tail[len(tail) - rest :]))
        kept = len(content) if unended or not rest else len(content) - rest
        # So may a document that was edited by hand lack its end.
        add = b"\n" if unended or not (tail or document.endswith(b"\n")) else b""
        self._end = kept + len(add)
        try:
            if kept < len(found):
                os.ftruncate(self._file, kept)
            _write_all(self._file, content[len(document) : kept] + add, len(document))
            os.fsync(self._file)
            sync_folder(Path(os.path.realpath(self._path)).parent)
        except OSError as error:
            raise OutputError(f"{cause(self._name, error)}; nothing was asked") from None


def refuse_held(path: str | PathLike[str]) -> None:
    """OutputError where somebody appends to a file, which must not be replaced meanwhile."""
    try:
        opened = os.open(path, os.O_RDONLY)
    except OSError:  # not there, or not to be read: others say so
        return
    try:
        if not _lock(opened):
            raise OutputError(f"{public_name(str(path))} {_UNLOCKED}")
    finally:
        os.close(opened)


def _lock(opened: int) -> bool:
    """Whether it is ours now, until it is closed; a system without such locks has no say."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _unlock(opened: int) -> None:
    """Also for copies that forked processes have."""
    with contextlib.suppress(ImportError, OSError):
        import fcntl

        fcntl.flock(opened, fcntl.LOCK_UN)


def _write_all(opened: int, data: bytes, at: int) -> None:
    os.lseek(opened, at, os.SEEK_SET)
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(opened, rest) :]
