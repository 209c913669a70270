"""Folders of votes: the authors' when at hand, and small made-up ones."""

from __future__ import annotations

import numpy as np
import pytest

from pate_cli.mechanisms.synthetic import SyntheticEnsemble
from pate_cli.reproduction.__main__ import main


@pytest.fixture
def authors(mnist_file):
    """Folder with the authors' MNIST votes, and none of the others' for sure."""
    return mnist_file.parent


@pytest.fixture
def draw():
    """Synthetic histograms [queries, classes]."""

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
def no_search(monkeypatch):
    """No smallest target is searched for, which takes longer than all the rest of a table."""
    monkeypatch.setattr(
        "pate_cli.reproduction.offered.least_target",
        lambda *_votes, always, **_rows: always,
    )


@pytest.fixture
def save():
    def write(folder, name, array):
        folder.mkdir(exist_ok=True)
        np.save(folder / name, array)
        return folder / name

    return write
