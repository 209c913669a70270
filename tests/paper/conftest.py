"""Vote files and the command of the room."""

import numpy as np
import pytest

from pate_cli.paper.__main__ import main
from pate_cli.planning.synthetic import SyntheticEnsemble


@pytest.fixture
def draw():
    def histograms(*, teachers, classes, queries, agreement=0.9, seed=1):
        ensemble = SyntheticEnsemble(
            teachers=teachers, classes=classes, queries=queries, agreement=agreement
        )
        return ensemble.draw(seed)[0]

    return histograms


@pytest.fixture
def run(capsys):
    """Run the module's main; returns (exit code, stdout, stderr)."""

    def call(*arguments):
        code = main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


@pytest.fixture
def save():
    def write(folder, name, array):
        folder.mkdir(exist_ok=True)
        np.save(folder / name, array)
        return folder / name

    return write
