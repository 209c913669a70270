"""Pipes to files: both vote formats are read from their end, a pipe has none."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from pate_cli.errors import VoteError

_CHUNK = 1 << 20


@contextlib.contextmanager
def spooled(stream: IO[bytes], name: str) -> Iterator[Path]:
    """Copy `stream` to a temporary file only its owner can read (mode 0600), removed on exit.

    Raises:
        VoteError: when the stream cannot be read or the disk is full.
    """
    with contextlib.ExitStack() as stack:
        try:
            # mkstemp, beneath this, creates the file with mode 0600: nobody reads it half-way.
            file = stack.enter_context(tempfile.NamedTemporaryFile(prefix="pate-votes-"))
            shutil.copyfileobj(stream, file, _CHUNK)
            file.flush()
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise VoteError(f"{name}: cannot be copied to a temporary file: {reason}") from error
        yield Path(file.name)
