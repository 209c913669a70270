"""What every test of the face shares: the inputs, and `pate` as a shell knows it."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

import numpy as np
import pytest

from face import inputs, runner
from stored import npy

FROZEN = json.loads(Path(__file__).with_name("frozen.json").read_text())


@pytest.fixture(scope="session")
def shown(tmp_path_factory):
    """The folder of all inputs; nothing is written into it."""
    place = tmp_path_factory.mktemp("shown") / "inputs"
    inputs.write_inputs(place)
    return place


@pytest.fixture(scope="session")
def frozen():
    return FROZEN


@pytest.fixture
def here(shown, tmp_path):
    """Run `pate` with these words, in a folder with the inputs that they name and files given here.

    A file is a keyword, `v__csv` for v.csv, and a text, bytes or an array.
    """
    folder = tmp_path / "here"
    folder.mkdir()

    def run(line, stdin=os.devnull, **files):
        line = shlex.split(line) if isinstance(line, str) else line
        for name, content in files.items():
            content = npy(content) if isinstance(content, np.ndarray) else content
            content = content.encode() if isinstance(content, str) else content
            (folder / name.replace("__", ".")).write_bytes(content)
        for word in line:
            if (shown / word).is_file() and not (folder / word).exists():
                (folder / word).write_bytes((shown / word).read_bytes())
        return runner.run(folder, *line, stdin=stdin)

    run.folder = folder
    return run
