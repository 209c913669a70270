"""One process at a time: what is read from a record and written back must not change in between."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from pate_cli.core.errors import OutputError
from pate_cli.files.addresses import public_name


@contextlib.contextmanager
def locked(records: Sequence[Path]) -> Iterator[None]:
    """Hold the records' folders, so that two runs at once cannot both find them unspent.

    Raises:
        OutputError: a folder cannot be held, as on some network file systems.
    """
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
            try:
                fcntl.flock(opened, fcntl.LOCK_EX)
            except OSError as error:
                raise OutputError(
                    f"{public_name(folder)}: its file system has no locks ({error.strerror}), by "
                    "which runs take turns at a record; nothing was spent. Keep the record in "
                    "another folder, with `record` or `ensemble`"
                ) from None
        yield
