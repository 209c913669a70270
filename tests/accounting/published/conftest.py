"""Figures printed by the authors' analysis code, and the MNIST votes when they are at hand."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def golden():
    return json.loads((ROOT / "tests" / "golden" / "reference_values.json").read_text())


@pytest.fixture(scope="session")
def mnist_votes():
    folder = os.environ.get("PATE_VOTES")
    home = Path(folder) if folder else ROOT.parent / "shared" / "votes"
    file = home / "mnist_250_teachers.npy"
    if not file.exists():
        pytest.skip(f"no {file.name}; set PATE_VOTES to the folder of the published votes")
    return np.load(file, allow_pickle=False)
