"""From JSON back to a report: checked against the schema first, so that every field is sound."""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping
from os import PathLike
from typing import Any, Final

from pate_cli.core.clock import read_time
from pate_cli.core.codec import Refusal, decoded, parsed, picked
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import ReportError, shortened
from pate_cli.disclosure.report import SCHEMA_VERSION, Report
from pate_cli.disclosure.schema import report_schema
from pate_cli.disclosure.schema.validate import faults
from pate_cli.files.addresses import public_name
from pate_cli.files.inputs import note_stream
from pate_cli.files.reading import reading

_LARGEST: Final = 1 << 26
"""Bytes."""
_OURS: Final = "give the file that --report wrote"
_OTHERS: Final = {
    "pate-ledger": "a ledger, which is SECRET; give the public report",
    "pate-spend-record": "a record, which pate spent shows; give a report",
}


@dataclass(frozen=True)
class ReadReport:
    """A report, and the JSON that it was read from."""

    report: Report
    data: Mapping[str, Any]


def read_report(path: str | PathLike[str]) -> ReadReport:
    """The report in a file, by path or address, or with "-" on standard input.

    Raises:
        ReportError: it cannot be read, or as for `parse_report`; the message names the file.
        UsageError: it is an output of the command, too.
    """
    if path == "-":
        return parse_report(_from_pipe(), "standard input")
    with reading(path, "the report", ReportError) as file:
        content = file.read(_LARGEST + 1)
    return parse_report(content, public_name(path))


def _from_pipe() -> bytes:
    if sys.stdin is None or sys.stdin.closed:
        raise ReportError("cannot read standard input: it is closed")
    note_stream("the report", sys.stdin)
    return sys.stdin.buffer.read(_LARGEST + 1)


def parse_report(text: str | bytes, name: str = "the report") -> ReadReport:
    """The report that a JSON text is.

    Args:
        text: its content.
        name: of the file, for messages.

    Raises:
        ReportError: no JSON, of another kind, of a version that is not read, or against the schema.
    """
    head = text[:100] if isinstance(text, str) else text[:100].decode(errors="replace")
    if '"pate-spend-record"' in head:  # whose lines are no JSON together
        raise ReportError(f"{name} is {_OTHERS['pate-spend-record']}")
    foreign = Refusal(ReportError, f"{name} is no report, or a damaged one: ", f"; {_OURS}")
    return ReadReport(*_understood(parsed(text, foreign, most=_LARGEST), name))


def reread(report: Report) -> ReadReport:
    """A report at hand, read as if from its file."""
    return parse_report(report.to_json())


@functools.cache
def _schema() -> dict[str, Any]:
    return report_schema()


def _understood(data: Any, name: str) -> tuple[Report, Mapping[str, Any]]:
    if not isinstance(data, dict):
        raise ReportError(f"{name} is no report: {_OURS}")
    kind = data.get("kind")
    if isinstance(kind, str) and kind in _OTHERS:
        raise ReportError(f"{name} is {_OTHERS[kind]}")
    if data.get("dry_run") is True:
        raise ReportError(f"{name} is a quote of --dry-run, nothing was released; give a report")
    if not isinstance(data.get("releasable"), bool) or "guarantee" not in data:
        raise ReportError(f"{name} is no report: {_OURS}")
    damaged = Refusal(ReportError, f"{name} is damaged: ", "; restore it from a copy")
    if data.get("private") is True and data["releasable"] is False:
        raise damaged.of("it is releasable, or not private")
    version = data.get("schema_version")
    if type(version) is not int or version != SCHEMA_VERSION:
        raise ReportError(
            f"{name} has schema version {shortened(str(version))}, this tool reads "
            f"{SCHEMA_VERSION}; use the version of pate that wrote it"
        )
    fault = next(faults(data, _schema()), None)
    if fault is not None:
        raise damaged.of(fault)
    try:
        if data["time"] is not None:
            read_time(data["time"])
    except ValueError as error:
        raise damaged.of(error) from None
    return decoded(Report, _fields(data), damaged), data


def _fields(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of `Report` that a JSON object states."""
    return {
        **picked(Report, data),
        **data["guarantee"],
        "tool": data["tool"]["version"],
    }
