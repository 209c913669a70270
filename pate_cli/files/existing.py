"""Files that `force` may replace: those that begin as the new one does, and are nobody's input.

Votes have the same suffixes as labels, so a name says nothing. An output therefore tells how files
of its kind begin, and only such a file makes way for it. Ledgers, records and checkpoints are never
replaced.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Final, TypeAlias

from pate_cli.core.words import LabelFormat
from pate_cli.files.tables import column_names

Replaces: TypeAlias = Callable[[IO[bytes]], bool]
"""Tells whether an open file, of at least one byte, begins as the new one will."""

_HEAD: Final = 1 << 16
_KEPT: Final = re.compile(rb'\A\s*\{\s*"kind":\s*"pate-[a-z-]*(ledger|record|checkpoint)"')


def beginning(pattern: bytes) -> Replaces:
    """Replace files that begin with a match of a regular expression, in letters of any case."""
    compiled = re.compile(pattern, re.DOTALL | re.IGNORECASE)
    return lambda file: compiled.match(file.read(_HEAD)) is not None


NOTHING: Final = beginning(rb"(?!)")
"""Replaces no file: for outputs that stay until somebody removes them."""
REPORT: Final = beginning(rb'\{\s*"(schema_version"|kind":\s*"pate-(report|rdp-curve)")')
"""Replaces reports, quotes and their curves."""
PAGE: Final = beginning(rb"<!doctype html")
"""Replaces pages."""
PICTURE: Final = beginning(rb"%PDF-|\x89PNG\r\n|<\?xml|<svg")
"""Replaces pictures, which no votes are."""


def columns_in(kind: LabelFormat, *columns: str) -> Replaces:
    """Replace tables in a format that begin with these columns."""
    return lambda file: column_names(file, kind)[: len(columns)] == columns


def kept(file: IO[bytes], replaces: Replaces, path: Path | None = None) -> str | None:
    """Return what a file is that no output replaces, in words; None if it may be replaced.

    Votes are known by the record beside their `path`, however they begin.
    """
    if os.path.lexists(f"{path}.spent.json"):
        return "votes that have a record"
    start = file.read(_HEAD)
    file.seek(0)
    found = _KEPT.match(start)
    if found is not None:
        return f"a {found[1].decode()}"
    return "no earlier output of this kind" if start and not replaces(file) else None


def repeats(here: bytes, there: bytes) -> bool:
    """Return whether a run that was cut short has put the content `there` before.

    Then it is the same content, or a report of the same run, which may tell of later runs.
    """
    run = _run_of(here)
    return there == here or (run is not None and run == _run_of(there))


def _run_of(report: bytes) -> Any:
    """Return the name of the run that a report is of; None for any other file."""
    try:
        return json.loads(report).get("run")
    except (ValueError, AttributeError):
        return None
