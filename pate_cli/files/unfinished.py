"""Temporary files beside an output, and those that a killed run has left.

A file is held by a lock (flock) for as long as its writer needs it. The lock ends with the writer,
however that ends, so that whoever gets it finds a file that belongs to nobody. A lock is believed
only on the system that made the file and only until that restarts, which its name tells: a disk
that is shared may not share its locks.

What was to be replaced keeps a second name until the new file is in place. That name is removed
after a dead run only while the first one is there; otherwise it is all that is left of the file.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
from pathlib import Path
from typing import Final

from pate_cli.core.entropy import random_name

PRIVATE: Final = 0o600
"""The mode of whatever is not in place: a run that is killed has released nothing."""
CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_UNFINISHED: Final = ".pate-unfinished-"
_REPLACED: Final = ".pate-replaced-"
_NAME: Final = re.compile(
    re.escape(_UNFINISHED) + r"(?P<run>[0-9]+-(?P<system>[0-9a-f]{8})-[0-9a-f]{16})\.tmp"
)
_NOWHERE: Final = "00000000"
_LOOK: Final = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def _hidden_names() -> tuple[str, str]:
    """Names of the draft of a file and of the file that it will replace, like no others."""
    run = f"{os.getpid()}-{_system()}-{random_name(8)}"
    return f"{_UNFINISHED}{run}.tmp", f"{_REPLACED}{run}.tmp"


class Claim:
    """The two hidden names beside a file, and the lock on the draft under the first."""

    def __init__(self, target: Path, mode: int) -> None:
        """Nothing is made yet; what is put in place will have `mode` less the umask."""
        self.temporary, self.backup = map(target.with_name, _hidden_names())
        self._mode = mode
        self._granted = PRIVATE
        self._lock: int | None = None

    def try_out(self) -> None:
        """Make a draft that stays empty: only a new file tells whether it can be, and its mode."""
        descriptor = self._made(self._mode)
        try:
            self._granted = stat.S_IMODE(os.fstat(descriptor).st_mode)
        finally:
            os.close(descriptor)

    def create(self) -> int:
        """The draft, empty and open for writing, its owner's alone; held until `clean`."""
        return self._made(PRIVATE)

    def open_up(self) -> None:
        """Give what was the draft, under whatever name, the permissions that it is to have."""
        if self._lock is not None and hasattr(os, "fchmod"):
            with contextlib.suppress(OSError):  # it is in place, and its owner's to open
                os.fchmod(self._lock, self._granted)

    def _made(self, mode: int) -> int:
        while True:
            # The mode holds from the first instant: a draft is never readable, however briefly.
            try:
                descriptor = os.open(self.temporary, CREATE, mode)
            except FileExistsError:  # our own: a disk that failed has not let go of the last one
                self.temporary.unlink(missing_ok=True)
                continue
            try:
                _lock(descriptor, wait=True)
                self._release()
                self._lock = os.dup(descriptor)
                if self.temporary.exists():
                    return descriptor
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)  # it was swept before it was held

    def clean(self) -> None:
        """Remove whatever is there under the two names, the draft last, and let go of it."""
        # A draft that outlives its backup tells the next run whose both were.
        for path in (self.backup, self.temporary):
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
        self._release()

    def _release(self) -> None:
        held, self._lock = self._lock, None
        if held is not None:
            os.close(held)


def sweep(folder: Path) -> None:
    """Remove what dead runs have left in a folder; whatever may be somebody's stays."""
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    system = _system()
    for entry in entries:
        draft = _NAME.fullmatch(entry.name)
        if draft is not None and draft["system"] == system != _NOWHERE:
            with contextlib.suppress(OSError):
                _remove(Path(entry.path), folder / f"{_REPLACED}{draft['run']}.tmp", entries)


def _remove(draft: Path, backup: Path, entries: list[os.DirEntry[str]]) -> None:
    """Remove a draft that nobody holds, and its backup if the same file has another name here."""
    descriptor = os.open(draft, _LOOK)
    try:
        if not _lock(descriptor, wait=False):
            return
        with contextlib.suppress(FileNotFoundError):
            kept = backup.lstat()
            names = [
                entry
                for entry in entries
                if not entry.name.startswith(_REPLACED) and entry.inode() == kept.st_ino
            ]
            # Asked anew, for the list was made before: the other name must be there now.
            if not any(os.path.samestat(Path(entry.path).lstat(), kept) for entry in names):
                return
            backup.unlink()
        draft.unlink()
    finally:
        os.close(descriptor)


def _lock(descriptor: int, *, wait: bool) -> bool:
    """Whether the file is held now; never where there are no locks."""
    try:
        import fcntl
    except ImportError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:  # held by another, or a file system without locks
        return False
    return True


def _system() -> str:
    """A system since it was started, in eight digits; `_NOWHERE` where that cannot be told."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_bytes()
    except OSError:
        return _NOWHERE
    return hashlib.blake2b(boot, digest_size=4).hexdigest()
