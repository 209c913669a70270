"""The version of pate and the current time, which pate writes into its files."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime

from pate_cli.core.errors import UsageError, quoted

__version__ = "0.1.0"


def now() -> str:
    """Return the current time as `2018-02-24T00:00:00Z`, or SOURCE_DATE_EPOCH if it is set.

    Raises:
        UsageError: SOURCE_DATE_EPOCH is not a number of seconds since 1970.
    """
    fixed = os.environ.get("SOURCE_DATE_EPOCH")
    try:
        seconds = int(fixed) if fixed else time.time()
        if seconds >= 0:
            return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        pass
    raise UsageError(f"SOURCE_DATE_EPOCH must be whole seconds since 1970, got {quoted(fixed)}")
