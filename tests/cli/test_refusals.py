"""What `pate` refuses: one line on stderr, the documented exit code, no votes, no files."""

from __future__ import annotations

import io
import pickle

import numpy as np
import pytest


def _changed(counts, row, column, value, dtype=None):
    out = counts.astype(dtype or counts.dtype)
    out[row, column] = value
    return out


BAD_ROWS = {
    "another total": (lambda c: _changed(c, 17, 2, 7777777), "whose total differs from the 40"),
    "negative": (lambda c: _changed(c, 17, 2, -7777777), "has a negative number"),
    "NaN": (lambda c: _changed(c, 17, 2, np.nan, float), "has NaN or infinity"),
    "infinite": (lambda c: _changed(c, 17, 2, np.inf, float), "has NaN or infinity"),
    "fraction": (lambda c: _changed(c, 17, 2, 777.7777, float), "has a fractional number"),
    "absurd": (lambda c: _changed(c, 17, 2, 7777777777), "has a number above 2147483647"),
    "no votes": (lambda c: _changed(c, 17, slice(None), 0), "has no votes at all"),
}


@pytest.mark.parametrize("case", BAD_ROWS)
def test_a_bad_row_is_named_and_its_votes_are_not(pate, refused, votes, counts, leftovers, case):
    change, words = BAD_ROWS[case]
    bad = change(counts)
    np.save(votes, bad)
    result = pate("aggregate", votes, "--layout", "counts", "--report", "r.json")
    line = refused(result, 3)
    assert "row 17" in line
    assert words in line
    assert "777" not in result.stderr
    assert leftovers() == []


def _pickled() -> bytes:
    file = io.BytesIO()
    np.save(file, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    return file.getvalue()


BAD_FILES = {
    "empty": (b"", "is empty"),
    "text": (b"query,votes\n0,1\n", "does not look like votes"),
    "pickle": (pickle.dumps([1, 2]), "is a Python pickle"),
    "pickled array": (_pickled(), "Python objects"),
    "truncated Parquet": (b"PAR1abcd", ""),
    "truncated NPY": (b"\x93NUMPY\x01\x00", ""),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_file_that_is_no_vote_file(pate, refused, votes, leftovers, case):
    content, words = BAD_FILES[case]
    votes.write_bytes(content)
    line = refused(pate("aggregate", votes), 3)
    assert line.startswith(f"pate: {votes}")
    assert words in line
    assert leftovers() == []


# 10 * (60 * 5 * cell + 10^4 * 2^-64) * (1 + e^10), rounded up to two digits.
LEAST = {
    "confident": 1.3e-10,
    "gnmax": 1.3e-10,
    "lnmax": 1.3e-10,
    "stability": 1.3e-10,
    # cells of 2^-53
    "sparse-vector": 7.5e-9,
}
# So little noise that the labels cost more than 10.
NOISY = {"confident": ["--sigma2", 1], "gnmax": ["--sigma2", 1]}


@pytest.mark.parametrize("name", LEAST)
def test_a_delta_that_floating_point_noise_would_show_in(pate, refused, votes, leftovers, name):
    least = LEAST[name]
    words = ["aggregate", votes, "--mechanism", name, *NOISY.get(name, []), "--delta"]
    for delta in (1e-15, 0.99 * least):
        for more in ([], ["--dry-run"]):
            line = refused(pate(*words, delta, *more), 2)
            assert line == (
                f"pate: --delta must be at least {least:g} for 60 queries over 4 classes, got "
                f"{delta:g}: noise in floating-point numbers adds to delta, which matters below "
                "this value"
            )
    assert leftovers() == []
    assert pate(*words, least, "--dry-run").exit_code == 0
    line = refused(pate(*words, 1e-15, "--max-queries", 20, "--dry-run"), 2)
    assert "for 20 queries over 4 classes" in line
