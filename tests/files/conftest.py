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


PROGRAM = """
import sys
from pate_cli.core.errors import PateError
from pate_cli.files.outputs import Outputs
out = Outputs()
try:
    with out:
        for name in sys.argv[1:]:
            out.reserve(name)
            out.write(name, b"x")
except PateError as error:
    sys.exit(f"{out.released} {error}")
except BrokenPipeError:
    sys.exit(f"{out.released} broken pipe")
"""


@pytest.fixture
def run_child():
    """Write outputs of these names in a process of its own; its error goes to stderr."""

    def run(*names, **rest):
        return subprocess.run(
            [sys.executable, "-c", PROGRAM, *names],
            check=False, stderr=subprocess.PIPE, text=True, **rest,
        )  # fmt: skip

    return run
