"""Small vote files, and two ways to run `pate`: in this process, and as a process of its own."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.main import get_command
from typer.testing import CliRunner, Result

from pate_cli.cli.app import app
from pate_cli.planning.synthetic import SyntheticEnsemble

TEACHERS, CLASSES, QUERIES = 40, 4, 60


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to run in; temporary files of the program go beside it."""
    (tmp_path / "tmp").mkdir()
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    for name in ("PATE_DEBUG", "NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "here"


@pytest.fixture
def counts() -> NDArray[np.int64]:
    ensemble = SyntheticEnsemble(teachers=TEACHERS, classes=CLASSES, queries=QUERIES)
    return ensemble.draw(3)[0]


@pytest.fixture
def votes(tmp_path: Path, counts: NDArray[np.int64]) -> Path:
    """An NPY file outside the folder that the program runs in."""
    path = tmp_path / "votes.npy"
    np.save(path, counts)
    return path


@pytest.fixture
def two_classes(tmp_path: Path) -> Path:
    """Votes of two classes, of which the dear bound of a target costs little."""
    ensemble = SyntheticEnsemble(teachers=TEACHERS, classes=2, queries=QUERIES)
    path = tmp_path / "two.npy"
    np.save(path, ensemble.draw(3)[0])
    return path


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """Votes whose labels do not fit into the buffer of a pipe."""
    ensemble = SyntheticEnsemble(teachers=TEACHERS, classes=CLASSES, queries=6000)
    path = tmp_path / "many.npy"
    np.save(path, ensemble.draw(4)[0])
    return path


@lru_cache
def _built() -> Any:
    """The commands, which would be put together from their functions for every run."""
    return get_command(app)


@pytest.fixture
def pate(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Run `pate` in this process: exit_code, stdout and stderr of the result."""

    monkeypatch.setattr("typer.testing._get_command", lambda _app: _built())

    def run(*words: object, **rest: Any) -> Result:
        return CliRunner().invoke(app, [str(word) for word in words], prog_name="pate", **rest)

    return run


@pytest.fixture
def refused() -> Callable[..., str]:
    """Check that a run was refused: its exit code, nothing on stdout, and one line, returned.

    A note on what the votes are may come before it: what is wrong with a row is seen while reading.
    """

    def check(result: Result, code: int, message: str | None = None) -> str:
        assert result.exit_code == code, result.stderr
        assert result.stdout == ""
        *notes, line = result.stderr.splitlines()
        assert line.startswith("pate: ")
        assert len(notes) <= 1
        assert all(
            re.match(r"pate: (.* queries x |made-up votes|no votes)", note) for note in notes
        )
        if message is not None:
            assert line == f"pate: {message}"
        return line

    return check


@pytest.fixture
def shell() -> Callable[..., subprocess.CompletedProcess[bytes]]:
    """Run `python -m pate_cli` in a process of its own."""

    def run(*words: object, **rest: Any) -> subprocess.CompletedProcess[bytes]:
        options: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | rest
        return subprocess.run(_command(*words), check=False, timeout=60, **options)

    return run


@pytest.fixture
def patched() -> Callable[..., subprocess.Popen[bytes]]:
    """Start `pate` in a process of its own after running some lines of Python in it."""

    def start(lines: str, *words: object, **rest: Any) -> subprocess.Popen[bytes]:
        program = f"{lines}\nfrom pate_cli.__main__ import main\nmain()\n"
        options: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | rest
        return subprocess.Popen([sys.executable, "-c", program, *map(str, words)], **options)

    return start


@pytest.fixture
def command() -> Callable[..., list[str]]:
    """The words that start `pate` as a process of its own."""
    return _command


def _command(*words: object) -> list[str]:
    return [sys.executable, "-m", "pate_cli", *map(str, words)]


@pytest.fixture
def leftovers(folder: Path) -> Callable[[], list[str]]:
    """Every file in the folder and among the temporaries, hidden ones too."""

    def names() -> list[str]:
        found = [*folder.iterdir(), *(folder.parent / "tmp").iterdir()]
        return sorted(path.name for path in found)

    return names


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[..., bytes]:
    """Run `pate` in this process with stdout or stderr, by name, a terminal: all that it shows."""

    def run(stream: str, *words: object, **environment: str) -> bytes:
        ours, theirs = pty.openpty()
        seen: list[bytes] = []

        def drain() -> None:
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
def screen(terminal: Callable[..., bytes]) -> Callable[..., str]:
    """What `pate` writes to a stdout that is a terminal, control codes removed."""

    def run(*words: object) -> str:
        return re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", terminal("stdout", *words).decode())

    return run
