"""From JSON back to a report, by the annotations of its dataclass; every other file is refused."""

from __future__ import annotations

import sys
from os import PathLike
from typing import Final

from pate_cli.core.errors import ReportError
from pate_cli.disclosure.report import KIND, SCHEMA_VERSION, Report
from pate_cli.files.addresses import public_name, reading
from pate_cli.files.document import Refusal, decoded, parsed, refuse_version
from pate_cli.files.protected import note_stream

_LARGEST: Final = 1 << 26  # bytes
_OURS: Final = "give the file that --report wrote"
_OTHERS: Final = {
    "pate-ledger": "a ledger, which is SECRET; give the public report",
    "pate-spend-record": "a record, which pate spent shows; give a report",
    "dry_run": "a quote of --dry-run, nothing was released; give a report",
}


def read_report(path: str | PathLike[str]) -> Report:
    """Return the report in a file, by path or address, or with "-" on standard input.

    Raises:
        ReportError: it cannot be read, or as for `parse_report`; the message names the file.
        UsageError: it is an output of the command, too.
    """
    if path == "-":
        return parse_report(_from_pipe(), "standard input")
    with reading(path, "the report", ReportError) as file:
        content = file.read(_LARGEST + 1)
    return parse_report(content, public_name(path))


def report_in(given: Report | bytes | str | PathLike[str]) -> Report:
    """Return a report that is given as it is, by its content, or by its file.

    Raises:
        ReportError: no report, or one against the schema.
    """
    if isinstance(given, Report):
        return given
    return parse_report(given) if isinstance(given, bytes) else read_report(given)


def _from_pipe() -> bytes:
    if sys.stdin is None or sys.stdin.closed:
        raise ReportError("cannot read standard input: it is closed")
    note_stream("the report", sys.stdin)
    return sys.stdin.buffer.read(_LARGEST + 1)


def parse_report(text: str | bytes, name: str = "the report") -> Report:
    """Return the report that a JSON text is.

    Args:
        text: its content.
        name: of the file, for messages.

    Raises:
        ReportError: no JSON, of another kind, of a version that is not read, or not as the fields
            of a report must be.
    """
    head = text[:100] if isinstance(text, str) else text[:100].decode(errors="replace")
    for kind, told in _OTHERS.items():  # lines of a record are no JSON together
        if f'"{kind}"' in head:
            raise ReportError(f"{name} is {told}")
    foreign = Refusal(ReportError, f"{name} is no report, or a damaged one: ", f"; {_OURS}")
    data = parsed(text, foreign, most=_LARGEST)
    if not isinstance(data, dict) or data.pop("kind", None) != KIND:
        raise ReportError(f"{name} is no report: {_OURS}")
    version, releasable = data.pop("schema_version", None), data.pop("releasable", None)
    refuse_version(version, SCHEMA_VERSION, name, ReportError)
    damaged = Refusal(ReportError, f"{name} is damaged: ", "; restore it from a copy")
    found = decoded(Report, data, damaged)
    if releasable is not found.releasable:
        raise damaged.of("`releasable` is not what `private` says")
    return found
