"""The builders, on few teachers: the same again, and ballots counted rightly."""

import hashlib
import io
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest


@pytest.fixture
def builder(script):
    """A script that needs scikit-learn."""
    pytest.importorskip("sklearn")
    return script


def test_adult_again(builder):
    adult, ensembles = builder("make_adult"), builder("ensembles")
    records = ensembles.load("adult_records.parquet")
    counts, ballots, truth = adult.votes(records, teachers=3, trees=5)
    again, _, _ = adult.votes(records, teachers=3, trees=5)
    np.testing.assert_array_equal(counts, again)
    assert np.all(counts.sum(axis=1) == 3)
    assert 0.7 < (ballots == truth).mean() < 0.9


def test_digit_labels_again(builder, samples):
    labels, digits = builder("make_digit_labels"), builder("make_digits")
    pixels, shown = digits.digits()
    committed = np.load(samples / "digit_labels.npy")
    again = labels.votes(pixels, shown, teachers=5)
    assert (again != committed[:, :5]).mean() < 1e-3
    truth = np.load(samples / "digit_labels_truth.npy")
    np.testing.assert_array_equal(labels.properties(shown)[1200:1580], truth)


def test_digits_again(builder):
    digits, ensembles = builder("make_digits"), builder("ensembles")
    pixels, labels = digits.digits()
    counts, _ = digits.votes(pixels, labels)
    committed = ensembles.load_counts("digits.parquet")
    # Nearest neighbours of small whole numbers: the same anywhere but for ties.
    assert (counts != committed).mean() < 1e-2
    np.testing.assert_array_equal(labels[1200:], ensembles.load("digits_truth.parquet")["label"])


def test_cells_again(builder, samples):
    cells = builder("make_cells")
    features, labels = cells.cells()
    said = cells.ballots(features, labels, teachers=5)
    kept = pq.read_table(samples / "cells.parquet")
    committed = np.stack([kept[f"teacher_{t}"].to_pylist() for t in range(5)], axis=1)
    # Distances of real numbers: other versions may round a tie another way.
    assert (said != committed).mean() < 0.01
    assert set(np.unique(said)) == {*cells.NAMES, cells.UNSURE}


CSV = b""",age,workclass,loan
0,39, State-gov, <=50K
1,50, Private, >50K
2,28, Private, <=50K
"""


def _wheel():
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        archive.writestr("xai/data/census.csv", CSV)
    return sink.getvalue()


def test_a_wheel_with_other_bytes_is_refused(script, monkeypatch):
    adult = script("make_adult")

    def deliver(words, **_):
        assert "--no-deps" in words
        assert words[0] == sys.executable
        (Path(words[words.index("--dest") + 1]) / "xai.whl").write_bytes(_wheel())

    monkeypatch.setattr(subprocess, "run", deliver)
    with pytest.raises(SystemExit, match=r"xai==0\.3\.0 has SHA-256 [0-9a-f]{64}, expected"):
        adult.download()
    monkeypatch.setattr(adult, "WHEEL_SHA256", hashlib.sha256(_wheel()).hexdigest())
    assert adult.download() == CSV
