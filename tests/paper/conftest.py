"""Vote files and the command of the room."""

import numpy as np
import pytest

from pate_cli.paper.__main__ import main
from pate_cli.planning.synthetic import SyntheticEnsemble


@pytest.fixture
def save():
    """Write an array, or votes that are drawn as told, in a folder."""

    def write(folder, name, array=None, *, seed=1, agreement=0.9, **recipe):
        folder.mkdir(exist_ok=True)
        if array is None:
            array, _ = SyntheticEnsemble(agreement=agreement, **recipe).draw(seed)
        np.save(folder / name, array)
        return array

    return write


@pytest.fixture
def run(capsys):
    """Run the module's main; returns (exit code, stdout, stderr)."""

    def call(*arguments):
        code = main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call
