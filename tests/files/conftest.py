"""Fixtures for the tests of outputs."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pate_cli.files.transaction import Outputs


@pytest.fixture
def umask():
    """Set the umask for one test."""
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


@pytest.fixture
def no_links(monkeypatch):
    """A file system without hard links."""

    def refuse(self, target):
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(Path, "hardlink_to", refuse)


@pytest.fixture
def fails():
    """Run `body(out)` as a transaction that must end in `kind`: the error and the transaction."""

    def run(kind, body, *, force=False):
        def transact():
            with out:
                body(out)

        out = Outputs(force=force)
        with pytest.raises(kind) as caught:
            transact()
        return caught.value, out

    return run


@pytest.fixture
def run_child():
    """Run the lines of a transaction in a process of its own; its error goes to stderr."""

    def run(body, **rest):
        program = (
            "import os, sys\n"
            "from pathlib import Path\n"
            "from pate_cli.core.errors import PateError\n"
            "from pate_cli.files.transaction import Outputs\n"
            "out = Outputs()\n"
            "try:\n"
            "    with out:\n"
            + "".join(f"        {line}\n" for line in body)
            + "except PateError as e:\n"
            "    sys.exit(f'{out.released} {e}')\n"
            "except BrokenPipeError:\n"
            "    sys.exit(f'{out.released} broken pipe')\n"
        )
        return subprocess.run(
            [sys.executable, "-c", program], check=False, stderr=subprocess.PIPE, text=True, **rest
        )

    return run
