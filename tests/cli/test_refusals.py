"""What `pate` refuses: one line on stderr, the documented exit code, no votes, no files."""

from __future__ import annotations

import pytest

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
