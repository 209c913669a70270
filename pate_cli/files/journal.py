"""A journal is a file of JSON lines that only grows; each line has a hash of all lines up to it.

Lines are on disk before `append` returns. A crash may leave the last line incomplete. pate ignores
an incomplete line when it reads a journal, and the next `append` removes this line. A file is
refused if a line was changed, left out, repeated, or taken from another file. A file is also
refused if lines are gone that this process has read.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pate_cli.core.errors import LedgerError, OutputError
from pate_cli.files.addresses import public_name
from pate_cli.files.document import Refusal, parsed
from pate_cli.files.outputs import sync_folder, writing
from pate_cli.files.protected import note

_CHAIN: Final = "chain"


class Journal:
    """The lines of one file, as far as this process has read them.

    A caller must take the lock (`locked`) and call `catch_up` before each call of `append`.

    Attributes:
        path: the file, which may not exist yet.
        name: the name of the file in messages.
        lines: all lines except the header, in order, each as an object.
    """

    def __init__(self, path: str | os.PathLike[str], kind: str) -> None:
        """Read the file if it exists.

        Args:
            path: the file. If `path` is a symbolic link, the journal is the file that it leads to.
            kind: what the journal records, as its first line says, such as "pate-spend-record".

        Raises:
            LedgerError: the file is damaged, is not a regular file, or is no journal of this
                kind.
            UsageError: an output of the command would replace this file, or the name of its folder
                is not UTF-8.
        """
        self.name = public_name(path)
        self.lines: list[dict[str, Any]] = []
        self._header = {"kind": kind, "version": 1}
        self._size, self._last = 0, b""
        self._others = b""  # Lines that other processes appended; they may not be on disk yet.
        self._chains: list[str] = []
        try:
            self.path = Path(os.path.realpath(path))
            public_name(self.path)  # The name of the folder must be UTF-8, too.
            regular = self.path.is_file() or not self.path.exists()
        except (OSError, ValueError):  # The name is too long, or contains a null character.
            raise LedgerError(
                "the name of the record is too long for a file, or contains a null character; give "
                "the path of the record"
            ) from None
        if not regular:
            raise LedgerError(
                f"{self.name} is not a regular file (it may be a folder, a pipe or a device), so "
                "it cannot be the record of what runs cost; give the path of a file"
            )
        self.refresh()
        note("the record of what was spent", self.path)

    @property
    def chain(self) -> str:
        """Return the hash of all lines so far; it is empty if there are no lines."""
        return self._chains[-1] if self._chains else ""

    def chain_at(self, count: int) -> str | None:
        """Return the hash of the header and the first `count` items of `lines`; None if too few."""
        return self._chains[count] if 0 <= count < len(self._chains) else None

    def refresh(self) -> None:
        """Read the lines that were appended since the last call.

        Raises:
            LedgerError: lines that were read before are gone, or new lines are damaged.
        """
        try:
            with self.path.open("rb") as stream:
                stream.seek(self._size - len(self._last))
                content = stream.read()
        except FileNotFoundError:
            content = b""
        except OSError as error:
            raise LedgerError(f"cannot read {self.name}: {error.strerror}") from None
        if not content.startswith(self._last):
            raise LedgerError(
                f"{self.name} lost or changed lines since it was read; nothing was added to it. "
                "Restore the record from a copy, and start the command again"
            )
        self._others += self._taken(content[len(self._last) :])

    def catch_up(self) -> None:
        """Read the lines that other processes appended, and make sure that they are on disk.

        A process may be killed after it appends lines and before they are on disk. `catch_up`
        writes the lines of other processes again, because a sync alone may leave them off the disk:
        after a failed sync, a second sync may succeed without writing anything.

        Raises:
            LedgerError: lines that were read before are gone, or new lines are damaged.
            OutputError: the lines cannot be written.
        """
        self.refresh()
        if self._others:
            self._write(self._others, self._size - len(self._others))

    def append(self, *objects: Mapping[str, Any]) -> None:
        """Append lines to the file: all of them, or none if an error occurs.

        Raises:
            OutputError: the lines cannot be written. `append` tries to remove any part of the new
                lines that is already in the file; this removal may fail.
        """
        if not objects:
            return
        fresh, chain = b"", self.chain
        for each in objects if self._size else (self._header, *objects):
            line, chain = _line(each, chain)
            fresh += line
        self._write(fresh, self._size, cut=True)
        self._taken(fresh)

    def _write(self, content: bytes, at: int, *, cut: bool = False) -> None:
        """Write bytes at a position of the file, and sync them.

        With `cut`, the method first removes all bytes from this position to the end of the file. If
        writing with `cut` fails, the method tries to remove the bytes that it wrote.
        """
        with writing(self.name):
            descriptor = os.open(self.path, os.O_CREAT | os.O_WRONLY, 0o644)
            try:
                if cut:
                    os.ftruncate(descriptor, at)
                os.lseek(descriptor, at, os.SEEK_SET)
                rest = memoryview(content)
                while rest:
                    rest = rest[os.write(descriptor, rest) :]
                os.fsync(descriptor)
                if not at:
                    sync_folder(self.path.parent)
                self._others = b""
            except OSError:
                if cut:
                    with contextlib.suppress(OSError):
                        os.ftruncate(descriptor, at)
                raise
            finally:
                os.close(descriptor)

    def _taken(self, content: bytes) -> bytes:
        """Read whole lines, check that each has the right hash, and return them."""
        first = _line(self._header, "")[0]
        if not self._size and not first.startswith(content[: len(first)].rstrip(b"\0")):
            raise LedgerError(
                f"{self.name} is not a record of what runs cost, or another version of pate wrote "
                "it; give the right file, or use the version of pate that wrote it"
            )
        damaged = Refusal(LedgerError, f"{self.name} is damaged: ", "; restore it from a copy")
        whole = content[: content.rfind(b"\n") + 1]
        for line in whole.splitlines(keepends=True):
            chain = _hash(self.chain, line[:-_TAIL])
            if line[-_TAIL:] != _tail(chain):
                raise damaged.of(
                    f"line {len(self._chains) + 1} was changed, or is not in its place, or lines "
                    "before it are missing"
                )
            found = parsed(line, damaged)
            del found[_CHAIN]
            if self._chains:
                self.lines.append(found)
            self._chains.append(chain)
            self._size, self._last = self._size + len(line), line
        return whole


@contextlib.contextmanager
def locked(records: Sequence[Path]) -> Iterator[None]:
    """Lock the folders of records, so that two runs at once cannot spend the same budget.

    If the operating system has no locks on folders, the function warns the user before a record
    changes.

    Raises:
        OutputError: a folder cannot be locked; some network file systems have no locks.
    """
    try:
        import fcntl
    except ImportError:
        _say_once(
            "this system has no locks on files, so two runs at once may spend the same budget: "
            "start one run after the other"
        )
        yield
        return
    parents = [path.parent for path in records if path.parent.is_dir()]
    folders = {(folder.stat().st_dev, folder.stat().st_ino): folder for folder in parents}
    with contextlib.ExitStack() as held:
        # All runs lock folders in the same order, so that two runs never wait for each other.
        for _, folder in sorted(folders.items()):
            opened = os.open(folder, os.O_RDONLY)
            held.callback(os.close, opened)
            try:
                fcntl.flock(opened, fcntl.LOCK_EX)
            except OSError as error:
                raise OutputError(
                    f"{public_name(folder)}: its file system has no locks ({error.strerror}), but "
                    "a record needs a lock; nothing was spent. Keep the record in another folder, "
                    "with `record` or `ensemble`"
                ) from None
        yield


@functools.cache
def _say_once(line: str) -> None:
    """Warn once per process."""
    warnings.warn(line, stacklevel=2)


def _line(content: Mapping[str, Any], before: str) -> tuple[bytes, str]:
    """Return an object as a line, and the hash at the end of this line."""
    text = json.dumps(content, separators=(",", ":"), allow_nan=False).encode()[:-1]
    chain = _hash(before, text)
    return text + _tail(chain), chain


def _tail(chain: str) -> bytes:
    return f',"{_CHAIN}":"{chain}"}}\n'.encode()


def _hash(before: str, text: bytes) -> str:
    return hashlib.sha256(before.encode() + text).hexdigest()[:32]


_TAIL: Final = len(_tail(_hash("", b"")))
