"""The verb that says a report in plain words, after it has checked what it says."""

from __future__ import annotations

from os import PathLike

from pate_cli.disclosure.explain import Explanation, explanation_of
from pate_cli.disclosure.reader import read_report
from pate_cli.disclosure.report import Report
from pate_cli.disclosure.verification import checks_of


def explain(report: Report | str | PathLike[str]) -> Explanation:
    """Say what a report promises, to whom and on what conditions, in plain sentences.

    Use it before a report is published, or to understand somebody else's. It computes every number
    again first: of a report that does not hold it says that, and nothing else.

        >>> done = pate.aggregate("sample_votes/demo.parquet", max_queries=300)
        >>> [section.title for section in pate.explain(done.report).sections][:3]
        ['What is promised', 'What was done', 'Who is protected']
        >>> pate.explain(done.report).save("page.html")  # to be read, printed and signed

    Args:
        report: as `aggregate` or `release` made it, or its file, by path or address; "-" is
            standard input.

    Raises:
        ReportError: no report in the file, or one that takes too long to compute again.
    """
    if not isinstance(report, Report):
        report = read_report(report)
    return explanation_of(report, list(checks_of(report)))
