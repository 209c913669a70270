"""The verb that says a report in plain words, after it has checked what it says."""

from __future__ import annotations

from os import PathLike

from pate_cli.disclosure.checks import Evidence, checks_of
from pate_cli.disclosure.explain import Explanation, explanation_of
from pate_cli.disclosure.reader import read_report
from pate_cli.disclosure.report import Report


def explanation(report: Report | str | PathLike[str]) -> Explanation:
    """Return what a report says in plain words; see `signatures.explain`."""
    if not isinstance(report, Report):
        report = read_report(report)
    return explanation_of(report, list(checks_of(Evidence(report))))
