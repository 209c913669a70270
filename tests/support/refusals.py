"""What is refused, and in which words."""

from __future__ import annotations

import pytest


def refusal(error, call, *args, **kwargs):
    """The text with which a call is refused; one line."""
    with pytest.raises(error) as caught:
        call(*args, **kwargs)
    assert "\n" not in str(caught.value)
    return str(caught.value)
