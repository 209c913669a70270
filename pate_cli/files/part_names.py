"""The names in a folder of parts, and whether all that it holds may be replaced."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from pate_cli.core.errors import OutputError

MARKER: Final = "_SUCCESS"
PART: Final = re.compile(r"part-[0-9]{5}\.[a-z0-9]{1,16}")


def refuse_filled(name: str, present: Iterable[str], *, force: bool) -> None:
    """OutputError when a folder holds something; with `force`, something other than parts.

    The names of folders in it end in a slash: none of them is a part.
    """
    names = sorted(present)
    if names and not force:
        raise OutputError(f"{name} exists already and is not empty; use `force` to replace it")
    foreign = [entry for entry in names if entry != MARKER and not PART.fullmatch(entry)]
    if foreign:
        raise OutputError(
            f"{name} holds {foreign[0]!r}, which is no part and would be lost; name another folder"
        )
