"""A small grid, so that a search takes well under a second."""

from __future__ import annotations

import pytest

from pate_cli.tuning import Grid


@pytest.fixture
def grid():
    """Eight settings for 40 teachers."""
    return Grid((24.0, 36.0), (10.0, 24.0), (5.0, 8.0))
