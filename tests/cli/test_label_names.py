"""Names of classes on the command line: in, out, and beside the votes."""

from __future__ import annotations

import json

import numpy as np
import pytest


@pytest.fixture
def numbers():
    """Labels [queries, teachers] on which the teachers agree."""
    rng = np.random.default_rng(4)
    truth = np.arange(60) % 4
    wrong = rng.random((60, 40)) < 0.1
    return np.where(wrong, rng.integers(0, 4, size=(60, 40)), truth[:, np.newaxis])


def test_the_trap_of_a_file_turned_round(pate, tmp_path, refused, numbers):
    """As many teachers as there are queries: their votes would seem to cost next to nothing."""
    np.save(tmp_path / "turned.npy", numbers.T)
    words = ["--layout", "labels", "--classes", 4, "--dry-run"]
    line = refused(pate("aggregate", tmp_path / "turned.npy", *words), 3)
    assert "as labels it has 60 teachers and 40 queries" in line
    assert "--teachers" in line
    told = json.loads(pate("aggregate", tmp_path / "turned.npy", *words, "--teachers", 60).stdout)
    words[1] = "labels-by-teacher"
    right = json.loads(pate("aggregate", tmp_path / "turned.npy", *words).stdout)
    assert (told["queries"], right["queries"]) == (40, 60)
