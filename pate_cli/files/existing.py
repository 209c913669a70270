"""Files that `force` may replace: those that begin as the new one does, and are nobody's input.

Votes have the same suffixes as labels, so a name says nothing. An output therefore tells how files
of its kind begin, and only such a file makes way for it. Ledgers, records, checkpoints and votes
that have a record are never replaced.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable
from typing import IO, Any, Final, TypeAlias

from pate_cli.core.errors import OutputError, UsageError
from pate_cli.core.words import LabelFormat

Replaces: TypeAlias = Callable[[IO[bytes]], bool]
"""Tells whether an open file, of at least one byte, begins as the new one will."""

_HEAD: Final = 1 << 16
_KEPT: Final = re.compile(rb'\A\s*\{\s*"kind":\s*"pate-[a-z-]*(ledger|record|checkpoint)"')
_LABELS: Final = (("label", "source"), ("label", "yes", "source"), ("labels", "unanswered"))
# One label a query. Several labels a query are told from votes of teachers by nothing.
_LABELS_IN_NPY: Final = re.compile(
    rb"\A\x93NUMPY\x01\x00..\{'descr': '<i4', 'fortran_order': False, 'shape': \(\d+,\)", re.DOTALL
)
_REPORT: Final = re.compile(rb'\A\{\s*"(schema_version"|kind":\s*"pate-(report|rdp-curve)")')


def nothing(_file: IO[bytes]) -> bool:
    """Replace no file: for outputs that stay until somebody removes them."""
    return False


def beginning(*starts: bytes) -> Replaces:
    """Replace files that begin with one of these bytes, in letters of any case."""
    return lambda file: file.read(64).lower().startswith(tuple(map(bytes.lower, starts)))


PAGE: Final = beginning(b"<!doctype html")
"""Replaces pages."""
PICTURE: Final = beginning(b"%PDF-", b"\x89PNG\r\n", b"<?xml", b"<svg")
"""Replaces pictures, which no votes are."""


def a_report(file: IO[bytes]) -> bool:
    """Replace reports, quotes and their curves."""
    return _REPORT.match(file.read(_HEAD)) is not None


def labels_in(kind: LabelFormat) -> Replaces:
    """Replace labels in a format: the column of ids may have any name, those behind it not."""
    if kind is LabelFormat.NPY:
        return lambda file: _LABELS_IN_NPY.match(file.read(_HEAD)) is not None
    return lambda file: _columns_in(file, kind)[1:] in _LABELS


def columns_in(kind: LabelFormat, *columns: str) -> Replaces:
    """Replace tables in a format that begin with these columns."""
    if kind is LabelFormat.NPY or columns[1:] in _LABELS:
        return labels_in(kind)
    return lambda file: _columns_in(file, kind)[: len(columns)] == columns


def kept(file: IO[bytes], replaces: Replaces) -> str | None:
    """Return what a file is that no output replaces, in words; None if it may be replaced."""
    start = file.read(_HEAD)
    file.seek(0)
    found = _KEPT.match(start)
    if not start or (found is None and replaces(file)):
        return None
    return "no earlier output of this kind" if found is None else f"a {found[1].decode()}"


def refuse(name: str, what: str | None, *, force: bool) -> None:
    """Refuse an output to a file that is there: `what` it is if no output replaces it.

    Raises:
        OutputError: nobody said `force`.
        UsageError: it is not to be replaced, whoever says `force`.
    """
    other = "give the output another name"
    if not force:
        remedy = other if what else "use `force` to replace it"
        raise OutputError(f"{name} exists already; {remedy}")
    if what is not None:
        raise UsageError(f"{name} is {what}, so not even `force` replaces it; {other}")


def repeats(file: IO[bytes], chunks: Iterable[bytes]) -> bool:
    """Return whether a run that was cut short has put the file there before.

    Then it holds the same bytes, or is a report of the same run, which may tell of later runs.
    """
    here = b"".join(chunks)
    there = file.read()
    run = _run_of(here)
    return there == here or (run is not None and run == _run_of(there))


def _run_of(report: bytes) -> Any:
    """Return the name of the run that a report is of; None for any other file."""
    try:
        return json.loads(report).get("run")
    except (ValueError, AttributeError):
        return None


def _columns_in(file: IO[bytes], kind: LabelFormat) -> tuple[str, ...]:
    """Return the names of the columns; none of a file that is not of this format."""
    try:
        if kind is LabelFormat.CSV:
            line = file.readline(_HEAD).decode()
            return tuple(next(csv.reader(io.StringIO(line, newline=""))))
        if kind is LabelFormat.JSONL:
            return tuple(json.loads(file.readline(_HEAD)))
        from pyarrow import ipc, parquet

        if kind is LabelFormat.PARQUET:
            return tuple(parquet.read_schema(file).names)
        return tuple(ipc.open_file(file).schema.names)
    except Exception:  # whatever a library raises of a file of another kind
        return ()
