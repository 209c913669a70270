"""What every test of the face shares: the inputs, and `pate` as its application runs."""

import json
import os
import shlex
from pathlib import Path

import pytest

from face import inputs, runner
from stored import npy


@pytest.fixture(scope="session")
def shown(tmp_path_factory):
    """The folder of all inputs; nothing is written into it."""
    place = tmp_path_factory.mktemp("shown") / "inputs"
    inputs.write_inputs(place)
    return place


@pytest.fixture(scope="session")
def frozen():
    return json.loads(Path(__file__).with_name("frozen.json").read_text())


@pytest.fixture
def here(shown, tmp_path):
    """Run `pate` with these words, in a folder with the inputs that they name and files given here.

    A file is a keyword, `v__csv` for v.csv, and a text or an array.
    """
    folder = tmp_path / "here"
    folder.mkdir()

    def run(line, stdin=os.devnull, code=None, **files):
        for name, content in files.items():
            content = content.encode() if isinstance(content, str) else npy(content)
            (folder / name.replace("__", ".")).write_bytes(content)
        words = shlex.split(line)
        for word in words:
            if (shown / word).is_file() and not (folder / word).exists():
                (folder / word).write_bytes((shown / word).read_bytes())
        ran = runner.run(folder, *words, stdin=stdin)
        assert code in (None, ran.exit_code), ran.output
        return ran

    run.folder = folder
    return run
