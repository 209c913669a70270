"""Messages of the library in the words of the command line."""

from __future__ import annotations

import re
from typing import Final

from pate_cli.verbs.keywords import ParameterWords, ReadingWords

_PARAMETERS: Final = {*ReadingWords.__annotations__, *ParameterWords.__annotations__}


def in_flags(error: Exception) -> str:
    """What it says, with flags for parameters, which stand in backticks."""

    def flag(found: re.Match[str]) -> str:
        name = found[1]
        return f"--{name.replace('_', '-')}" if name in _PARAMETERS else found[0]

    return re.sub(r"`(\w+)`", flag, str(error))
