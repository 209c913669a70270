"""Folders of votes: the authors' when at hand, and small made-up ones."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from pate_cli.reproduction.__main__ import main
from pate_cli.synthetic import SyntheticEnsemble

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def authors():
    """Folder with the authors' MNIST votes, and none of the others' for sure."""
    folder = os.environ.get("PATE_VOTES")
    home = Path(folder) if folder else ROOT.parent / "shared" / "votes"
    if not (home / "mnist_250_teachers.npy").exists():
        pytest.skip("no mnist_250_teachers.npy; set PATE_VOTES to the folder of the votes")
    return home


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
        code = main([str(one) for one in arguments])
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
