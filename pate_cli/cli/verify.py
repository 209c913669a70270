"""`pate verify`: every number of a report again, and the labels it came with."""

from __future__ import annotations

from typing import Any

from pate_cli.cli.command import command
from pate_cli.cli.view import View
from pate_cli.core.errors import MismatchError, UncheckedError
from pate_cli.verbs import signatures as verbs


@command(verbs.verify)
def verify(asked: dict[str, Any], view: View, *, strict: bool = False) -> None:
    """Check a report: its schema, its numbers, the hash of its labels. Needs no votes.

    Whoever gets labels and report can do it. A line a check: ok, FAILED, not checkable from
    outside, or not checked because it was not given; then the verdict with the report's own
    epsilon. Exit code 0 if everything that can be checked holds, 10 if anything failed, with
    --strict 11 if anything is left.

      pate verify labels.report.json labels.csv
    """
    found = verbs.verify(**asked)
    if not view.quiet:
        view.show(found)
    if not found.holds:
        raise MismatchError(found.headline())
    if strict and found.unchecked:
        raise UncheckedError(found.remark())
