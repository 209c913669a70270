"""A file of JSON lines that only grows, each with a hash of itself and all those before it.

What was appended is on disk before `append` returns. A line that was cut short by a crash was never
told to anybody: it is ignored, and the next writer cuts it off. Any other content that does not
follow from the first line is refused: a line changed, left out, repeated or taken from another
file; and so is a file that lost lines which this process has seen.
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

    Appending takes a lock that the caller holds (`locked`), and `catch_up` under it.

    Attributes:
        path: the file, which may not be there yet.
        name: what messages call it.
        lines: all lines but the header, in order, each an object.
    """

    def __init__(self, path: str | os.PathLike[str], kind: str) -> None:
        """Read the file, if it is there.

        Args:
            path: links are followed, so that every name of the file is one journal.
            kind: the word in its first line.

        Raises:
            LedgerError: damaged, of another kind, or no regular file.
            UsageError: it is an output of the command.
        """
        self.name = public_name(path)
        self.lines: list[dict[str, Any]] = []
        self._header = {"kind": kind, "version": 1}
        self._size, self._last = 0, b""
        self._others = b""  # lines that this process has not seen to be on disk
        self._chains: list[str] = []
        try:
            self.path = Path(os.path.realpath(path))
            regular = self.path.is_file() or not self.path.exists()
        except (OSError, ValueError):  # too long; a null
            raise LedgerError("the record has a name that no file can have") from None
        if not regular:
            raise LedgerError(f"{self.name} is no regular file, so it cannot keep a record")
        self.refresh()
        note("the record of what was spent", self.path)

    @property
    def chain(self) -> str:
        """Hash of all lines, which the next one is bound to; empty before the first."""
        return self._chains[-1] if self._chains else ""

    def chain_at(self, count: int) -> str | None:
        """Return that hash as it was after so many lines, None where there are not so many."""
        return self._chains[count] if 0 <= count < len(self._chains) else None

    def refresh(self) -> None:
        """Read what was appended since.

        Raises:
            LedgerError: what was read before is gone, or what follows is damaged.
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
                f"{self.name} lost or changed lines since it was read; nothing is added to it. "
                "Restore the record, and begin again"
            )
        self._others += self._taken(content[len(self._last) :])

    def catch_up(self) -> None:
        """Read what was appended since, and make sure that it is on disk.

        Whoever wrote it may have been killed before it was. It is written again, as a sync that
        failed may have taken it for written, and another sync would not tell.

        Raises:
            LedgerError: as `refresh`.
            OutputError: it cannot be written.
        """
        self.refresh()
        if self._others:
            self._write(self._others, self._size - len(self._others))

    def append(self, *objects: Mapping[str, Any]) -> None:
        """Add lines, all or none of them.

        Raises:
            OutputError: they cannot be written. They are cut off again, unless that fails, too.
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
        """Write it there and see that it is on disk; `cut` what stands there, and what failed."""
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
        """Read whole lines, each of which must follow from the one before, and return them."""
        first = _line(self._header, "")[0]
        if not self._size and not first.startswith(content[: len(first)].rstrip(b"\0")):
            raise LedgerError(f"{self.name} is no record, or one of another version")
        damaged = Refusal(LedgerError, f"{self.name} is damaged: ", "; restore it from a copy")
        whole = content[: content.rfind(b"\n") + 1]
        for line in whole.splitlines(keepends=True):
            chain = _hash(self.chain, line[:-_TAIL])
            if line[-_TAIL:] != _tail(chain):
                raise damaged.of(f"line {len(self._chains) + 1} does not follow from those before")
            found = parsed(line, damaged)
            del found[_CHAIN]
            if self._chains:
                self.lines.append(found)
            self._chains.append(chain)
            self._size, self._last = self._size + len(line), line
        return whole


@contextlib.contextmanager
def locked(records: Sequence[Path]) -> Iterator[None]:
    """Hold the records' folders, so that two runs at once cannot both find them unspent.

    Where a system has no such locks, one line says so, before anything is added to a record.

    Raises:
        OutputError: a folder cannot be held, as on some network file systems.
    """
    try:
        import fcntl
    except ImportError:
        _say_once(
            "this system has no locks on files, by which runs take turns at a record: start "
            "one run after the other, or both may spend what is left"
        )
        yield
        return
    parents = [path.parent for path in records if path.parent.is_dir()]
    folders = {(folder.stat().st_dev, folder.stat().st_ino): folder for folder in parents}
    with contextlib.ExitStack() as held:
        # In one order everywhere, so that two runs never wait for each other.
        for _, folder in sorted(folders.items()):
            opened = os.open(folder, os.O_RDONLY)
            held.callback(os.close, opened)
            try:
                fcntl.flock(opened, fcntl.LOCK_EX)
            except OSError as error:
                raise OutputError(
                    f"{public_name(folder)}: its file system has no locks ({error.strerror}), by "
                    "which runs take turns at a record; nothing was spent. Keep the record in "
                    "another folder, with `record` or `ensemble`"
                ) from None
        yield


@functools.cache
def _say_once(line: str) -> None:
    """Warn of something that does not change while this process lives."""
    warnings.warn(line, stacklevel=2)


def _line(content: Mapping[str, Any], before: str) -> tuple[bytes, str]:
    """Return an object as a line, and the hash that it ends with."""
    text = json.dumps(content, separators=(",", ":"), allow_nan=False).encode()[:-1]
    chain = _hash(before, text)
    return text + _tail(chain), chain


def _tail(chain: str) -> bytes:
    return f',"{_CHAIN}":"{chain}"}}\n'.encode()


def _hash(before: str, text: bytes) -> str:
    return hashlib.sha256(before.encode() + text).hexdigest()[:32]


_TAIL: Final = len(_tail(_hash("", b"")))
