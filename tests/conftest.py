"""What tests of several rooms share: golden figures, and the authors' votes where at hand."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

TESTS = Path(__file__).resolve().parent


@pytest.fixture(scope="session")
def golden():
    """Figures printed by the authors' analysis code."""
    return json.loads((TESTS / "golden" / "reference_values.json").read_text())


@pytest.fixture(scope="session")
def tight():
    """Figures of the tight analysis, computed independently."""
    return json.loads((TESTS / "golden" / "tight_values.json").read_text())


@pytest.fixture(scope="session")
def mnist_file():
    """The authors' MNIST votes: a file, or a skipped test."""
    folder = os.environ.get("PATE_VOTES")
    home = Path(folder) if folder else TESTS.parents[1] / "shared" / "votes"
    file = home / "mnist_250_teachers.npy"
    if not file.exists():
        pytest.skip(f"no {file.name}; set PATE_VOTES to the folder of the published votes")
    return file


@pytest.fixture(scope="session")
def mnist_votes(mnist_file):
    """The authors' MNIST votes, [9000, 10]."""
    return np.load(mnist_file, allow_pickle=False)


@pytest.fixture(scope="session")
def mnist_histograms(mnist_votes):
    """The 640 queries of Table 2, [640, 10]."""
    return mnist_votes[:640].astype(np.int64)
