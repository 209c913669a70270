"""Dear prices, looked up: pure functions of few arguments, which every history asks again."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def known() -> Iterator[None]:
    """Until the block is left."""
    yield
