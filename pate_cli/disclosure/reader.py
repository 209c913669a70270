"""From JSON back to a report: checked against the schema first, so that every field is sound.

A report of version 3 has no name of its run, time, hash of labels or crosscheck; they are None. Up
to version 4 a target that is met without a test, and what is unsettled, stood in sentences alone.
Up to version 5 no prior voted. Up to version 8 there were pools, sets of labels as classes, and
labels in parts; of a report that tells of none of them only the fields are gone.
"""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Mapping
from os import PathLike
from typing import Any, Final

from pate_cli.core.clock import read_time
from pate_cli.core.codec import Refusal, decoded, parsed, picked
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import ReportError, shortened
from pate_cli.core.gone import without_gone
from pate_cli.core.label_set import LabelSet
from pate_cli.core.words import PublicFact
from pate_cli.disclosure.guarantee import DRAWS
from pate_cli.disclosure.report import SCHEMA_VERSION, SINCE, Report
from pate_cli.disclosure.schema import report_schema
from pate_cli.disclosure.schema.validate import faults
from pate_cli.files.addresses import (
    filesystem_of,
    is_address,
    public_name,
    reachable,
    stored_content,
)
from pate_cli.files.inputs import note, note_stream
from pate_cli.files.sealed_json import content_of, named

_LARGEST: Final = 1 << 26
"""Bytes."""
_OURS: Final = "give the file that --report wrote"
_OLDEST: Final = 3
# What the sentences of versions 3 and 4 said, by what is a field of its own since.
_UNSETTLED: Final = {
    PublicFact.CLASSES.value: "number of classes was read off the votes",
    PublicFact.QUERIES.value: "list of queries was read off the votes",
    DRAWS: "No record of earlier draws from these rounds was kept",
}
_MET: Final = re.compile(r" The target ([0-9][0-9.e+-]{0,19}) is met without a test\.$")
_OTHERS: Final = {
    "pate-ledger": "a ledger, which is SECRET; give the public report",
    "pate-spend-record": "a record, which pate spent shows; give a report",
}


@dataclass(frozen=True)
class ReadReport:
    """A report, and the JSON that it was read from, brought to this version of the schema."""

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
    name = os.fspath(path)
    if is_address(name):
        with reachable(public_name(name), ReportError):
            filesystem, inside = filesystem_of(name)
        note("the report", (inside, filesystem))
        content = stored_content(name, most=_LARGEST, error=ReportError)
    else:
        note("the report", (name, None))
        with named(path, ReportError):
            content = content_of(path, most=_LARGEST, error=ReportError)
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


def report_of(report: Report) -> ReadReport:
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
    if type(version) is not int or not _OLDEST <= version <= SCHEMA_VERSION:
        raise ReportError(
            f"{name} has schema version {shortened(str(version))}, this tool reads {_OLDEST} to "
            f"{SCHEMA_VERSION}; use the version of pate that wrote it, or a newer one"
        )
    if version < SCHEMA_VERSION:
        later = (field for field in SINCE if SINCE[field] > version)
        foreign = next((field for field in later if _has(data, field)), None)
        if foreign is not None:
            raise damaged.of(f"version {version} has no field {foreign!r}")
        known = without_gone(data, ReportError, f"{name} is of version {version}")
        data = _raised(known, version)
    fault = next(faults(data, _schema()), None)
    if fault is not None:
        raise damaged.of(fault)
    try:
        if data["time"] is not None:
            read_time(data["time"])
        if version < SINCE["unsettled"]:
            data = _from_sentences(data)
    except ValueError as error:
        raise damaged.of(error) from None
    return decoded(Report, _fields(data, version), damaged), data


def _has(data: dict[str, Any], field: str) -> bool:
    """Whether it, or a round of it, has such a field."""
    rounds = data.get("rounds")
    inside = rounds if isinstance(rounds, list) else []
    return any(isinstance(one, dict) and field in one for one in (data, *inside))


def _raised(data: dict[str, Any], version: int) -> dict[str, Any]:
    """A report of an earlier version with what it lacks and must have."""
    raised = {**data, "schema_version": SCHEMA_VERSION}
    if version < SINCE["crosscheck"]:
        raised |= {"run": None, "time": None, "labels": None, "crosscheck": None}
    if version < SINCE["total_rdp"] and isinstance(data.get("external"), list):
        raised["external"] = [
            {**part, "total_rdp": None} if isinstance(part, dict) else part
            for part in data["external"]
        ]
    if version < SINCE["stated"] and isinstance(raised.get("external"), list):
        raised["external"] = [
            {**part, "stated": None, "name": None} if isinstance(part, dict) else part
            for part in raised["external"]
        ]
    return raised


def _from_sentences(data: dict[str, Any]) -> dict[str, Any]:
    """What versions 3 and 4 said in sentences alone, in fields of its own."""
    warnings, met = data["warnings"], _MET.search(data["guarantee"]["summary"])
    unsettled = [word for word, said in _UNSETTLED.items() if any(said in one for one in warnings)]
    return {
        **data,
        **({} if met is None else {"met_target": float(met[1])}),
        **({"unsettled": unsettled} if unsettled else {}),
    }


def _fields(data: Mapping[str, Any], version: int) -> dict[str, Any]:
    """What the file says, by the fields of `Report`."""
    found = {
        **picked(Report, data),
        **data["guarantee"],
        "tool": data["tool"]["version"],
        "read_as": version,
    }
    if "labels_per_query" in data:
        found.pop("label_names", None)
        found["label_set"] = picked(LabelSet, data)
    if "earlier_draws" in data:
        found["earlier_draws"] = [
            {"beta": draw["beta"], "sigma": draw["sigma_release"], "shift": draw["shift"]}
            for draw in data["earlier_draws"]
        ]
    return found
