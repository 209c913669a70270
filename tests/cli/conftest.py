"""Small vote files, and two ways to run `pate`: in this process, and as a process of its own."""

import contextlib
import os
import pty
import re
import subprocess
import sys
import threading

import numpy as np
import pytest
from typer.testing import CliRunner

from pate_cli.cli.app import app
from pate_cli.planning.synthetic import SyntheticEnsemble


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty folder to run in; temporary files of the program go beside it."""
    (tmp_path / "tmp").mkdir()
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    for name in ("PATE_DEBUG", "NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "here"


def _drawn(seed=3, **other):
    return SyntheticEnsemble(**{"teachers": 40, "classes": 4, "queries": 60} | other).draw(seed)[0]


@pytest.fixture
def counts():
    return _drawn()


def _saved(path, counts):
    np.save(path, counts)
    return path


@pytest.fixture
def votes(tmp_path, counts):
    """An NPY file outside the folder that the program runs in."""
    return _saved(tmp_path / "votes.npy", counts)


@pytest.fixture
def two_classes(tmp_path):
    """Votes of two classes, of which the dear bound of a target costs little."""
    return _saved(tmp_path / "two.npy", _drawn(classes=2))


@pytest.fixture
def many(tmp_path):
    """Votes whose labels do not fit into the buffer of a pipe."""
    return _saved(tmp_path / "many.npy", _drawn(4, queries=6000))


@pytest.fixture
def pate():
    """Run `pate` in this process: exit_code, which may be told, stdout and stderr of the result."""

    def run(*words, code=None, **rest):
        line = [str(word) for word in words]
        done = CliRunner().invoke(app, line, prog_name="pate", **rest)
        assert code in (None, done.exit_code), done.output
        return done

    return run


@pytest.fixture
def refused():
    """Check that a run was refused: its exit code, nothing on stdout, and one line, returned.

    A note on what the votes are may come before it: what is wrong with a row is seen while reading.
    """

    def check(result, code, message=None):
        assert (result.exit_code, result.stdout) == (code, ""), result.stderr
        *notes, line = result.stderr.splitlines()
        assert line.startswith("pate: ")
        assert len(notes) <= 1
        assert all(re.match("pate: (.* queries x |made-up votes|no votes)", note) for note in notes)
        assert message is None or line == f"pate: {message}"
        return line

    return check


@pytest.fixture
def patched():
    """Start `pate` in a process of its own after running some lines of Python in it."""

    def start(lines, *words, **rest):
        program = f"{lines}\nfrom pate_cli.__main__ import main\nmain()\n"
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | rest
        return subprocess.Popen([sys.executable, "-c", program, *map(str, words)], **options)

    return start


@pytest.fixture
def command():
    """The words that start `pate` as a process of its own."""
    return lambda *words: [sys.executable, "-m", "pate_cli", *map(str, words)]


@pytest.fixture
def leftovers(folder):
    """Every file in the folder and among the temporaries, hidden ones too."""

    def names():
        found = [*folder.iterdir(), *(folder.parent / "tmp").iterdir()]
        return sorted(path.name for path in found)

    return names


@pytest.fixture
def terminal(monkeypatch):
    """Run `pate` in this process with stdout or stderr, by name, a terminal: all that it shows."""

    def run(stream, *words, **environment):
        ours, theirs = pty.openpty()
        seen = []

        def drain():
            with contextlib.suppress(OSError):  # how Linux says that the other end is closed
                while data := os.read(ours, 4096):
                    seen.append(data)

        reader = threading.Thread(target=drain)
        reader.start()
        with monkeypatch.context() as patch, os.fdopen(theirs, "w", buffering=1) as screen:
            for name, value in ({"TERM": "xterm-256color", "COLUMNS": "110"} | environment).items():
                patch.setenv(name, value)
            patch.setattr(sys, stream, screen)
            with pytest.raises(SystemExit) as done:
                app([str(word) for word in words], prog_name="pate")
        reader.join()
        os.close(ours)
        assert done.value.code == 0, seen
        return b"".join(seen)

    return run


@pytest.fixture
def screen(terminal):
    """What `pate` writes to a stdout that is a terminal, control codes removed."""

    def run(*words):
        return re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", terminal("stdout", *words).decode())

    return run
