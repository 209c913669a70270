"""A slice of `make histories`, and that each bug on purpose is found."""

from __future__ import annotations

import json

import pytest

from histories import history, planted
from histories.planted import BUGS, KNOWN
from slices import some


def test_a_slice_of_histories():
    faults = {seed: history.fault_of(seed) for seed in some(range(30), 2)}
    assert not {seed: fault for seed, fault in faults.items() if fault is not None}


def test_a_history_is_its_seed():
    def told(seed):
        lines = []
        history.fault_of(seed, lines.append)
        return lines

    assert told(5) == told(5)
    assert told(5) != told(6)


@pytest.mark.parametrize("bug", BUGS)
def test_bugs_on_purpose_are_found(bug):
    """By the history that is known to; where calls have changed since, by another."""
    seeds = (json.loads(KNOWN.read_text())[bug], *range(planted.MOST))
    with planted.bug(bug):
        assert any(history.fault_of(seed) for seed in seeds)
