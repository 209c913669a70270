"""A slice of `make histories`, and that each bug on purpose is found."""

import os

import pytest

from histories import history, planted

HISTORIES = int(os.environ.get("PATE_HISTORIES", "15"))
AT_ONCE = 200


@pytest.mark.filterwarnings("ignore:.* begins a new record:UserWarning")
@pytest.mark.parametrize("first", range(0, HISTORIES, AT_ONCE))
def test_whatever_happens_what_is_promised_is_kept(first):
    seeds = range(first, min(first + AT_ONCE, HISTORIES))
    faults = {seed: history.fault_of(seed) for seed in seeds}
    assert not {seed: fault for seed, fault in faults.items() if fault is not None}


def test_a_history_is_its_seed():
    def told(seed):
        lines = []
        history.fault_of(seed, lines.append)
        return lines

    assert told(5) == told(5)
    assert told(5) != told(6)


@pytest.mark.parametrize("bug", planted.BUGS)
def test_bugs_on_purpose_are_found(bug):
    """By the history that is known to; where calls have changed since, by another."""
    seeds = (planted.KNOWN[bug], *range(planted.MOST))
    with planted.bug(bug):
        assert any(history.fault_of(seed) for seed in seeds)
