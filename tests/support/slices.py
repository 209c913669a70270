"""Cases of which the suite takes some, and `make test-all` every one."""

import os

import pytest

EVERY = bool(os.environ.get("PATE_EVERY"))
whole = pytest.mark.skipif(not EVERY, reason="make test-all")


def some(cases, nth):
    """Every so manyth of them, the first one included; all where all are wanted."""
    cases = list(cases)
    return cases if EVERY else cases[::nth]


def chosen(cases, names):
    """Those of these names; all where all are wanted."""
    missing = set(names) - set(cases)
    assert not missing, missing
    return list(cases) if EVERY else [name for name in cases if name in names]


def tries(most):
    """So many examples of a property at most: a third, all where all are wanted."""
    return most if EVERY else -(-most // 3)
