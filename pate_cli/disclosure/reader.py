"""From JSON back to a report: checked against the schema first, so that every field is sound.

A report of version 3 has no name of its run, time, hash of labels or crosscheck; they are None. Up
to version 4 a target that is met without a test, and what is unsettled, stood in sentences alone.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from os import PathLike
from pathlib import Path
from typing import Any, Final

from pate_cli.core.clock import TIME_FORMAT
from pate_cli.core.errors import LedgerError, ParameterError, ReportError, VoteError, shortened
from pate_cli.core.label_set import LabelSet
from pate_cli.core.words import LabelFormat, PublicFact
from pate_cli.disclosure.guarantee import DRAWS
from pate_cli.disclosure.ledger import Draw
from pate_cli.disclosure.report import (
    SCHEMA_VERSION,
    SINCE,
    Crosscheck,
    DataIndependent,
    GroupGuarantee,
    LabelFile,
    Report,
    Sanitized,
    Spent,
    Statement,
    Tested,
)
from pate_cli.disclosure.schema import report_schema
from pate_cli.disclosure.schema.validate import faults
from pate_cli.files.sealed_json import finite, said_once

_LARGEST: Final = 1 << 26
"""Bytes."""
_LARGEST_NUMBER: Final = 1 << 63
_OLDEST: Final = 3
# What the sentences of versions 3 and 4 said, by what is a field of its own since.
_UNSETTLED: Final = {
    PublicFact.CLASSES.value: "number of classes was read off the votes",
    PublicFact.QUERIES.value: "list of queries was read off the votes",
    DRAWS: "No record of earlier draws from these rounds was kept",
}
_MET: Final = re.compile(r" The target ([0-9][0-9.e+-]{0,19}) is met without a test\.$")
_SECRETS: Final = {"pate-ledger": "a ledger", "pate-spend-record": "a record of releases"}


@dataclass(frozen=True)
class ReadReport:
    """A report, and the JSON that it was read from, brought to this version of the schema."""

    report: Report
    data: Mapping[str, Any]


def read_report(path: str | PathLike[str]) -> ReadReport:
    """The report in a file, or with "-" on standard input.

    Raises:
        ReportError: it cannot be read, or as for `parse_report`; the message names the file.
    """
    if path == "-":
        return parse_report(_from_pipe(), "standard input")
    try:
        with Path(path).open("rb") as file:
            return parse_report(file.read(_LARGEST + 1), str(path))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ReportError(f"cannot read {path}: {reason}") from None


def _from_pipe() -> bytes:
    if sys.stdin is None or sys.stdin.closed:
        raise ReportError("cannot read standard input: it is closed")
    return sys.stdin.buffer.read(_LARGEST + 1)


def parse_report(text: str | bytes, name: str = "the report") -> ReadReport:
    """The report that a JSON text is.

    Args:
        text: its content.
        name: of the file, for messages.

    Raises:
        ReportError: no JSON, of another kind, of a version that is not read, or against the schema.
    """
    if len(text) > _LARGEST:
        raise ReportError(f"{name} is no report: none is so long")
    try:
        data = json.loads(
            text,
            parse_float=finite,
            parse_int=_whole,
            parse_constant=finite,
            object_pairs_hook=said_once,
        )
        json.dumps(data, ensure_ascii=False).encode()  # no half of a surrogate pair
    except (ValueError, RecursionError, LedgerError):
        raise ReportError(f"{name} is no report: it is not valid JSON, or a part of it") from None
    return ReadReport(*_understood(data, name))


def report_of(report: Report) -> ReadReport:
    """A report at hand, read as if from its file."""
    return parse_report(report.to_json())


def _understood(data: Any, name: str) -> tuple[Report, Mapping[str, Any]]:
    if not isinstance(data, dict):
        raise ReportError(f"{name} is no report: give the file that --report wrote")
    kind = data.get("kind")
    if isinstance(kind, str) and kind in _SECRETS:
        raise ReportError(f"{name} is {_SECRETS[kind]}, which is SECRET; give the public report")
    if data.get("dry_run") is True:
        raise ReportError(f"{name} is a quote of --dry-run, nothing was released; give a report")
    if data.get("releasable") is not True or "guarantee" not in data:
        raise ReportError(f"{name} is no report: give the file that --report wrote")
    version = data.get("schema_version")
    if type(version) is not int or not _OLDEST <= version <= SCHEMA_VERSION:
        raise ReportError(
            f"{name} has schema version {shortened(str(version))}, this tool reads {_OLDEST} to "
            f"{SCHEMA_VERSION}; use the version of pate that wrote it, or a newer one"
        )
    if version < SCHEMA_VERSION:
        foreign = next((field for field in SINCE if SINCE[field] > version and field in data), None)
        if foreign is not None:
            raise ReportError(f"{name} is damaged: version {version} has no field {foreign!r}")
        data = _raised(data, version)
    fault = next(faults(data, report_schema()), None)
    if fault is not None:
        raise ReportError(f"{name} is damaged: {fault}")
    try:
        if data["time"] is not None:
            datetime.strptime(data["time"], TIME_FORMAT)
        if version < SINCE["unsettled"]:
            data = _told(data)
        return _report(data, version), data
    except (ValueError, TypeError, KeyError, ParameterError, VoteError) as error:
        raise ReportError(f"{name} is damaged: {error}") from None


def _raised(data: dict[str, Any], version: int) -> dict[str, Any]:
    """A report of an earlier version with what it lacks and must have."""
    raised = {**data, "schema_version": SCHEMA_VERSION}
    if version < SINCE["crosscheck"]:
        raised |= {"run": None, "time": None, "labels": None, "crosscheck": None}
    if isinstance(data.get("external"), list):
        raised["external"] = [
            {**part, "total_rdp": None} if isinstance(part, dict) else part
            for part in data["external"]
        ]
    return raised


def _told(data: dict[str, Any]) -> dict[str, Any]:
    """What versions 3 and 4 said in sentences alone, in fields of its own."""
    warnings, met = data["warnings"], _MET.search(data["guarantee"]["summary"])
    unsettled = [word for word, said in _UNSETTLED.items() if any(said in one for one in warnings)]
    return {
        **data,
        **({} if met is None else {"met_target": finite(met[1])}),
        **({"unsettled": unsettled} if unsettled else {}),
    }


def _report(data: Mapping[str, Any], version: int) -> Report:
    guarantee, tested, spent = data["guarantee"], data["tested"], data["spent"]
    crosscheck, labels = data["crosscheck"], data["labels"]
    several = LabelSet.from_facts(data) if "labels_per_query" in data else None
    names = None if several is not None else data.get("label_names")
    earlier = tuple(
        Draw(beta=draw["beta"], sigma=draw["sigma_release"], shift=draw["shift"])
        for draw in data.get("earlier_draws", [])
    )
    same = (
        "epsilon", "epsilon_kind", "delta", "private", "sound", "analysis", "mechanism",
        "queries", "answers", "max_answers", "run", "time",
    )  # fmt: skip
    return Report(
        **{name: data[name] for name in same},
        sanitized=Sanitized(**data["sanitized"]),
        data_independent=DataIndependent(**data["data_independent"]),
        summary=guarantee["summary"],
        adjacency=guarantee["adjacency"],
        covers=guarantee["covers"],
        statements=tuple(Statement(**one) for one in guarantee["statements"]),
        rounds=tuple(data["rounds"]),
        warnings=tuple(data["warnings"]),
        tested=None if tested is None else Tested(**{**tested, "orders": tuple(tested["orders"])}),
        spent=None if spent is None else Spent(**spent),
        label_set=several,
        label_names=None if names is None else tuple(names),
        groups=tuple(GroupGuarantee(**group) for group in data.get("groups", [])),
        earlier_draws=earlier,
        external=tuple(data.get("external", [])),
        met_target=data.get("met_target"),
        unsettled=tuple(data.get("unsettled", [])),
        crosscheck=None
        if crosscheck is None
        else Crosscheck(**{**crosscheck, "steps": tuple(crosscheck["steps"])}),
        labels=None
        if labels is None
        else LabelFile(**{**labels, "format": LabelFormat(labels["format"])}),
        tool=data["tool"]["version"],
        read_as=version,
    )


def _whole(text: str) -> int:
    number = int(text)
    if abs(number) > _LARGEST_NUMBER:
        raise ValueError("no number of a report")
    return number
