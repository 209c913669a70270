"""`pate smooth-sensitivity`: the curve, its smooth maximum, verdicts on the conditions."""

from __future__ import annotations

import json

import numpy as np
import pytest

WORDS = ["--order", 4, "--beta", 0.03]
PAPER = ["--analysis", "paper", "--order", 2.5, "--beta", 0.05]


@pytest.fixture
def found(pate, votes):
    def run(*words, at=votes):
        result = pate("smooth-sensitivity", at, *words)
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)

    return run


def assert_consistent(one):
    assert one["releasable"] is False
    curve, beta = np.array(one["local_sensitivity"]), one["beta"]
    assert np.all(np.diff(curve) >= 0.0)
    discounted = curve * np.exp(-beta * np.arange(curve.size))
    np.testing.assert_allclose(one["discounted"], discounted, rtol=1e-14)
    beyond = one["ceiling"] * np.exp(-beta * curve.size)
    assert one["smooth_sensitivity"] == pytest.approx(max(discounted.max(), beyond), rel=1e-12)
    assert one["distance"] == discounted.argmax()
    assert curve.max() <= one["ceiling"] * (1.0 + 1e-12)


@pytest.mark.parametrize(
    "words",
    [
        [],
        WORDS,
        [*WORDS, "--mechanism", "gnmax"],
        [*WORDS, "--mechanism", "lnmax"],
        [*WORDS, "--teachers-per-record", 2],
        PAPER,
        [*PAPER, "--mechanism", "gnmax"],
        ["--order", 3, "--beta", 0.2],
    ],
    ids=lambda words: " ".join(map(str, words)),
)
def test_it_is_the_maximum_of_the_discounted_curve_and_its_ceiling(found, words):
    assert_consistent(found(*words))


@pytest.mark.parametrize("command", ["smooth-sensitivity", "aggregate"])
@pytest.mark.parametrize(
    ("sigma", "order", "which"), [(1.0, 3, "C6"), (3.0, 30, "C6"), (6.4, 14, "C")]
)
def test_conditions_that_fail_are_exit_code_4(
    pate, refused, votes, leftovers, command, sigma, order, which
):
    words = ["--analysis", "paper", "--sigma2", sigma, "--order", order, "--beta", 0.01]
    line = refused(pate(command, votes, *words), 4)
    assert line.startswith(f"pate: smooth sensitivity is not valid at order {order}")
    assert which in line
    assert "log q" in line
    assert leftovers() == []
