"""The verbs that read a report from outside: verify and explain."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike, fspath
from typing import Any

from pate_cli.core.errors import UsageError
from pate_cli.disclosure.explain import Explanation, explanation_of
from pate_cli.disclosure.record import SpendRecord
from pate_cli.disclosure.report import report_in
from pate_cli.disclosure.verification import Verification, checks_of
from pate_cli.files.addresses import has_no_name, public_name


def verified(asked: Mapping[str, Any]) -> Verification:
    """Return all checks of a report; `asked` as `signatures.verify` has it."""
    labels, prior, record = asked["labels"], asked["prior"], asked["record"]
    priors = [] if prior is None else prior if isinstance(prior, list | tuple) else [prior]
    for file in (labels, *priors):
        if isinstance(file, str | PathLike) and has_no_name(fspath(file)):
            raise UsageError(
                f"{public_name(file)}: is a pipe, and what goes with a report is read more than "
                "once; give a file"
            )
    found = report_in(asked["report"])
    known = SpendRecord.read(record) if isinstance(record, str | PathLike) else record
    compared: dict[str, Any] = {"record": known, "labels": labels, "priors": priors}
    checks = checks_of(found, **compared, library=asked["with_dp_accounting"])
    return Verification(found.epsilon, found.delta, tuple(checks))


def explained(asked: Mapping[str, Any]) -> Explanation:
    """Return a report in plain sentences; `asked` as `signatures.explain` has it."""
    found = report_in(asked["report"])
    return explanation_of(found, list(checks_of(found)))
