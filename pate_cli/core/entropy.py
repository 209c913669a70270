"""Random bytes of the operating system: for keys, which are secret, and for names that are not.

Nothing is kept between calls, so that neither forks nor threads can get the same bytes.
"""

from __future__ import annotations

import os

from pate_cli.core.errors import EngineError


def random_bytes(size: int) -> bytes:
    """So many, fit for secrets; EngineError where the system has none to give."""
    try:
        return os.urandom(size)
    except (OSError, NotImplementedError):
        raise EngineError(
            "the operating system gives no random numbers (/dev/urandom or its like), without "
            "which no noise is private; run where it does"
        ) from None


def random_name(size: int) -> str:
    """A name that nothing else has: two hexadecimal digits a byte; EngineError as above."""
    return random_bytes(size).hex()
