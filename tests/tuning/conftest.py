"""Small made-up ensembles and grids, so that a search takes well under a second."""

from __future__ import annotations

import pytest

from pate_cli.mechanisms.synthetic import SyntheticEnsemble
from pate_cli.tuning import Grid, VoteSample


@pytest.fixture
def drawn():
    """A sample by its seed: 40 teachers, 3 classes and 80 queries unless said otherwise."""

    def draw(seed, *, teachers=40, classes=3, queries=80, agreement=0.85):
        ensemble = SyntheticEnsemble(
            teachers=teachers, classes=classes, queries=queries, agreement=agreement
        )
        counts, truth = ensemble.draw(seed)
        return VoteSample(counts, teachers, truth=truth)

    return draw


@pytest.fixture
def grid():
    """Eight settings for 40 teachers."""
    return Grid((24.0, 36.0), (10.0, 24.0), (5.0, 8.0))
