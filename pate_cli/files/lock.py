"""One process at a time: what is read from a record and written back must not change in between."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path


@contextlib.contextmanager
def locked(records: Sequence[Path]) -> Iterator[None]:
    """Hold the records' folders, so that two runs at once cannot both find them unspent."""
    try:
        import fcntl
    except ImportError:  # no such locks on this system; the check itself still stands
        yield
        return
    # In one order everywhere, so that two runs never wait for each other.
    folders = {
        (at.st_dev, at.st_ino): path.parent
        for path in records
        if path.parent.is_dir()
        for at in [path.parent.stat()]
    }
    with contextlib.ExitStack() as held:
        for _, folder in sorted(folders.items()):
            opened = os.open(folder, os.O_RDONLY)
            held.callback(os.close, opened)
            fcntl.flock(opened, fcntl.LOCK_EX)
        yield
