"""The scripts in sample_votes/, imported as they are run: with their own folder first."""

import importlib
from pathlib import Path

import pytest

SAMPLES = Path(__file__).resolve().parents[2] / "sample_votes"


@pytest.fixture
def samples():
    """The folder of the sample votes."""
    return SAMPLES


@pytest.fixture
def readme():
    return (SAMPLES / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def script(monkeypatch):
    """Import a script of sample_votes/ by its name."""
    monkeypatch.syspath_prepend(str(SAMPLES))
    return importlib.import_module
