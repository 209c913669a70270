"""Fixtures for the tests of outputs: kinds of file systems, and transactions that must fail."""

import os
import subprocess
import sys

import pytest

from pate_cli.files import outputs
from pate_cli.files.outputs import Outputs


@pytest.fixture
def umask():
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


@pytest.fixture
def no_tmpfile(monkeypatch):
    """A file system that has no files without a name."""
    monkeypatch.setattr(outputs, "_NAMELESS", 0)


@pytest.fixture(params=["nameless", "hidden"])
def drafts(request):
    """Both kinds of drafts, one after the other: every file system has one of them."""
    if request.param == "hidden":
        request.getfixturevalue("no_tmpfile")
    return request.param


@pytest.fixture
def fails():
    """Run `body(out)` as a transaction that must end in `kind`: the words, and the transaction."""

    def run(kind, body, *, force=False):
        def transact():
            with out:
                body(out)

        out = Outputs(force=force)
        with pytest.raises(kind) as caught:
            transact()
        return str(caught.value), out

    return run


@pytest.fixture
def run_child():
    """Run the lines of a transaction in a process of its own; its error goes to stderr."""

    def run(body, **rest):
        program = (
            "import os, sys\n"
            "from pate_cli.core.errors import PateError\n"
            "from pate_cli.files.outputs import Outputs\n"
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
