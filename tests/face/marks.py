"""Marks of tests of the face."""

from __future__ import annotations

import pytest


def not_yet(reason):
    """What is wrong today: a failure that is expected, and told of when it turns."""
    return pytest.mark.xfail(strict=True, reason=reason)
