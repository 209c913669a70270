"""What `pate` refuses: one line on stderr, the documented exit code, no votes, no files."""

from __future__ import annotations

import io
import json
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


ADMISSIBLE = [
    (["--delta", 0], "--delta must be above 0 and below 1, got 0.0"),
    (["--delta", 1], "--delta must be above 0 and below 1, got 1.0"),
    (["--delta", "nan"], "--delta must be above 0 and below 1, got nan"),
    (["--sigma1", 0], "sigma1 must be positive and finite, got 0.0"),
    (["--sigma1", -3], "sigma1 must be positive and finite, got -3.0"),
    (["--sigma2", "nan"], "sigma2 must be positive and finite, got nan"),
    (["--sigma2", "inf"], "sigma2 must be positive and finite, got inf"),
    (["--threshold", "nan"], "threshold must be finite, got nan"),
    (["--beta", 0], "beta must be positive and finite, got 0.0"),
    (["--beta", -0.1], "beta must be positive and finite, got -0.1"),
    (["--order", 1], "--order must be above 1, got 1.0"),
    (["--order", "inf"], "--order must be above 1, got inf"),
    (["--order", "1e300"], "a Renyi order must be at most 1000000000000000.0, got 1e+300"),
    (["--sigma-release", 0], "sigma_release must be positive and finite, got 0.0"),
    (["--max-queries", 0], "--max-queries must be at least 1, got 0"),
    (["--max-answers", -1], "--max-answers must be at least 1, got -1"),
    (["--classes", 1], "--classes must be between 2 and 16777216, got 1"),
    (["--teachers", 0], "--teachers must be between 1 and 1000000, got 0"),
    (["--seed", -1], "seed must be a whole number >= 0, not -1"),
]


@pytest.mark.parametrize(("words", "message"), ADMISSIBLE)
def test_numbers_out_of_range_name_the_range(pate, refused, votes, leftovers, words, message):
    for dry in ([], ["--dry-run"]):
        assert refused(pate("aggregate", votes, *words, *dry), 2) == f"pate: {message}"
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
                f"{delta:g}: below it what the resolution of floating-point noise adds to delta is "
                "no longer negligible"
            )
    assert leftovers() == []
    assert pate(*words, least, "--dry-run").exit_code == 0
    line = refused(pate(*words, 1e-15, "--max-queries", 20, "--dry-run"), 2)
    assert "for 20 queries over 4 classes" in line


@pytest.mark.parametrize(
    "flag",
    ["--threshold", "--sigma1", "--sigma2", "--laplace-scale"],
)
def test_a_share_without_its_unit_is_refused_with_both_readings(pate, refused, votes, flag):
    mechanism = "lnmax" if flag == "--laplace-scale" else "confident"
    words = ["aggregate", votes, "--mechanism", mechanism, "--dry-run"]
    both = f"{flag} 0.4 is 0.4 votes, or 40% of the teachers? Write 40%, or '0.4 votes'"
    refused(pate(*words, flag, 0.4), 2, both)
    told = json.loads(pate(*words, flag, "40%").stdout)["mechanism"]
    assert told[flag.strip("-").replace("-", "_")] == 16.0
    for verb in ("cost", "smooth-sensitivity"):
        refused(pate(verb, *words[1:4], flag, 0.4), 2, both)


def test_warnings_are_said_and_written(pate, votes):
    result = pate("aggregate", votes, "--mechanism", "gnmax", "--sigma2", "100%")
    (text,) = json.loads(result.stdout)["warnings"]
    assert text.startswith("Labels are noise")
    assert f"pate: warning: {text}\n" in result.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["--sigma1", "0%"],
        ["--mechanism", "lnmax", "--laplace-scale", 0],
        ["--mechanism", "stability", "--query-delta", 1.5],
        ["--mechanism", "sparse-vector", "--refusals", 0],
        ["--teachers-per-record", 0],
        ["--max-epsilon", 0],
        ["--target-epsilon", -1],
        ["--target-epsilon", 1, "--refusal-epsilon", 2],
        ["--target-epsilon", 1, "--budget", 0],
        ["--workers", 0],
    ],
    ids=lambda words: " ".join(map(str, words)),
)
def test_wrong_numbers_are_refused_and_leave_nothing(pate, refused, votes, leftovers, words):
    for dry in ([], ["--dry-run"]):
        refused(pate("aggregate", votes, *words, *dry), 2)
    assert leftovers() == []
