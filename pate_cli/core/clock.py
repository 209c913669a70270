"""The time that a file carries: UTC, whole seconds, and fixed where files are to be reproduced."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Final

from pate_cli.core.errors import UsageError, quoted

_FORMAT: Final = "%Y-%m-%dT%H:%M:%SZ"


def now() -> str:
    """The time as `2018-02-24T00:00:00Z`, that of SOURCE_DATE_EPOCH where it is set.

    Raises:
        UsageError: SOURCE_DATE_EPOCH is no number of seconds since 1970.
    """
    fixed = os.environ.get("SOURCE_DATE_EPOCH")
    if not fixed:
        return datetime.now(UTC).strftime(_FORMAT)
    try:
        return datetime.fromtimestamp(_seconds(fixed), UTC).strftime(_FORMAT)
    except (ValueError, OverflowError, OSError):
        raise UsageError(
            f"SOURCE_DATE_EPOCH must be whole seconds since 1970, got {quoted(fixed)}"
        ) from None


def read_time(text: str) -> datetime:
    """The time that `now` wrote so.

    Raises:
        ValueError: it writes none like this.
    """
    # `strptime` would do, after importing what knows the months in all languages.
    found = datetime.fromisoformat(text)
    if found.strftime(_FORMAT) != text:
        raise ValueError(f"{quoted(text)} is no time such as 2018-02-24T00:00:00Z")
    return found


def _seconds(text: str) -> int:
    seconds = int(text)
    if seconds < 0:  # years of three digits would be written as such
        raise ValueError
    return seconds
