"""A report in plain words: what was promised, to whom, on what it rests, and what would end it.

Everything said is read off the public report, so the words may be published with it. They are ours:
what a stranger's report says in sentences is not passed on as a promise.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pate_cli.disclosure.reader import read_report
from pate_cli.disclosure.report import Report
from pate_cli.disclosure.verdict import verdict
from pate_cli.disclosure.wording import worded
from pate_cli.errors import PateError, ReportError, printable
from pate_cli.mechanisms import mechanism_from_parameters
from pate_cli.multilabel import rows_of
from pate_cli.results import Result
from pate_cli.words import MechanismName

__all__ = ["Explanation", "Section", "explain"]

# Beyond it the odds are no number that anybody reads.
_LONGEST_ODDS = 1e6


@dataclass(frozen=True)
class Section:
    """A heading, and what stands under it: paragraphs, or the points of a list; printable."""

    title: str
    texts: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "texts", tuple(map(printable, self.texts)))


@dataclass(frozen=True, repr=False)
class Explanation(Result):
    """What a report says, in words; public as the report is."""

    sections: tuple[Section, ...]

    @property
    def releasable(self) -> bool:
        """Of a public report alone."""
        return True

    def to_dict(self) -> dict[str, Any]:
        """The sections in order."""
        return {"sections": [asdict(section) for section in self.sections]}

    def columns(self) -> dict[str, NDArray[Any]]:
        """A row a text: title, text."""
        rows = [(section.title, text) for section in self.sections for text in section.texts]
        return {
            name: np.array([row[place] for row in rows])
            for place, name in enumerate(("title", "text"))
        }

    def headline(self) -> str:
        """How the promise begins."""
        return next(section.texts[0] for section in self.sections if section.title == "Promised")


def explain(report: Report | str | PathLike[str]) -> Explanation:
    """The report in words.

    Args:
        report: as `aggregate` or `release` made it, or its file; "-" is standard input.

    Raises:
        ReportError: no report in the file, or one of parameters that no run has.
    """
    if not isinstance(report, Report):
        report = read_report(report).report
    report, others = _in_our_words(report)
    named = (
        ("What was done", itertools.chain(_done(report), others)),
        ("Promised", _promised(report)),
        ("To whom", _to_whom(report)),
        ("It rests on", _assumptions(report)),
        ("It would be void if", _void(report)),
        ("To be published", _publishable(report)),
        ("Exactly", _exactly(report)),
        ("Warnings", iter(report.warnings)),
    )
    found = [Section(title, tuple(texts)) for title, texts in named]
    return Explanation(tuple(section for section in found if section.texts))


def _in_our_words(report: Report) -> tuple[Report, tuple[str, ...]]:
    """The report, with what its facts are worth; and what is to be said of its own words."""
    try:
        for done in report.rounds:
            mechanism_from_parameters(done["mechanism"])
        ours = worded(report)
    except PateError as error:
        raise ReportError(f"no run has the parameters of the report: {error}") from None
    if ours == report:
        return ours, ()
    return ours, (
        f"Its own words are of another version, {report.read_as} of the report, or were changed: "
        "these words are not ours. What follows is said anew of its numbers, which pate verify "
        "checks.",
    )


def _claimed(report: Report) -> bool:
    """Whether the headline is a promise at all."""
    return report.private and report.sound


def _done(report: Report) -> Iterator[str]:
    when = "" if report.time is None else f", begun {report.time}"
    name = "" if report.run is None else f" (run {report.run}{when})"
    each = rows_of(report.label_set)
    if report.tested is not None and not report.tested.passed:
        yield f"{report.queries} {each} were tested and none was labelled{name}."
    else:
        several = "" if len(report.rounds) == 1 else f" in {len(report.rounds)} rounds"
        yield f"{report.answers} of {report.queries} {each} were labelled{several}{name}."
    for facts in report.rounds:
        mechanism = facts["mechanism"]
        numbers = ", ".join(
            f"{name} {value:g}"
            for name, value in mechanism.items()
            if isinstance(value, int | float) and name not in ("teachers", "classes")
        )
        yield (
            f"{mechanism['teachers']} teachers voted among {mechanism['classes']} classes; noise "
            f"of the mechanism {mechanism['name']} chose the labels ({numbers})."
        )
    yield f"Written by pate {report.tool}."


def _promised(report: Report) -> Iterator[str]:
    yield report.summary
    if not _claimed(report):
        return
    epsilon, delta = report.epsilon, report.delta
    found = verdict(epsilon, delta)
    yield f"That is {found.word}: {found.meaning}."
    odds = math.exp(min(epsilon, 700.0))
    factor = f"{math.ceil(100 * odds) / 100:,.2f}" if odds < _LONGEST_ODDS else f"{odds:.1e}"
    yield (
        f"In other words: whatever somebody held likely of one teacher's data before, the odds "
        f"change by a factor of at most e^{epsilon:g} = {factor} by all that was released, up to "
        f"a chance of delta = {delta:g} that this fails."
    )
    yield f"It covers {report.covers}."
    if report.epsilon != report.data_independent.epsilon and report.tested is None:
        yield (
            f"Whatever the votes, without looking at them, epsilon is at most "
            f"{report.data_independent.epsilon:g}."
        )
    crosscheck = report.crosscheck
    if crosscheck is not None:
        known = [
            f"{value:g} ({words})"
            for words, value in (
                ("by RDP", crosscheck.rdp_epsilon),
                ("exactly", crosscheck.exact_epsilon),
                ("basic", crosscheck.basic_epsilon),
                ("advanced", crosscheck.advanced_epsilon),
            )
            if value is not None
        ]
        if known:
            yield (
                "A textbook composition of the same noise, which any accountant can repeat, gives "
                f"epsilon {' and '.join(known)}. {crosscheck.compared}"
            )


def _to_whom(report: Report) -> Iterator[str]:
    yield report.adjacency
    whole = "each record" if report.external else "all that one teacher was trained on"
    yield (
        f"So what is protected is {whole}, against everybody who sees what was released, whatever "
        "else they know and however they compute."
    )
    for group in report.groups:
        yield f"Group {group.group}: epsilon {group.epsilon:g} at delta {group.delta:g}."


def _assumptions(report: Report) -> Iterator[str]:
    if not _claimed(report):
        return
    most = max(int(done["mechanism"].get("teachers_per_record", 1)) for done in report.rounds)
    if report.groups:
        yield "A record trained teachers of one group only, and no more of them than groups say."
    elif most == 1:
        yield "No record trained two teachers: their data are disjoint."
    else:
        yield f"No record trained more than {most} teachers."
    yield "A teacher was trained on its own data alone, and on no other private records."
    yield "The queries, the classes and the number of teachers are public: no record shaped them."
    yield (
        "The settings were fixed before the votes were looked at, and no other result of these "
        "votes decided whether or how this run was made."
    )
    if any(done["mechanism"]["name"] == MechanismName.INTERACTIVE for done in report.rounds):
        yield "The student's predictions are public, or made from labels that are paid for."
    yield (
        "The noise was drawn by pate from the system's random numbers and was seen by nobody; "
        "the votes and the ledger stayed secret."
    )
    if report.external:
        yield "The external parts are as their files state them; see the statement external."


def _exactly(report: Report) -> Iterator[str]:
    for reading in report.statements:
        if reading.holds:
            yield f"Statement {reading.id}: {reading.text}"
    for reading in report.statements:
        if not reading.holds:
            yield f"Not claimed, {reading.id}: {reading.text}"


def _void(report: Report) -> Iterator[str]:
    if not _claimed(report):
        return
    yield (
        "another run on votes of the same teachers, or of others with the same records, is left "
        "out of the total: each costs its own epsilon again;"
    )
    yield "labels were drawn several times and the best of them kept;"
    yield "something else of the votes is shown: counts, costs, a plot, the ledger, the noise."


def _publishable(report: Report) -> Iterator[str]:
    if not _claimed(report):
        yield "Neither the labels nor this report as a promise: nothing is claimed for them."
        return
    labels = report.labels
    if labels is None:
        yield "This report, and the labels it pays for."
    else:
        where = "" if labels.parts is None else f" in {labels.parts} parts"
        yield (
            f"This report, and its labels: {labels.bytes} bytes of {labels.format}{where}, SHA-256 "
            f"{labels.sha256}."
        )
    yield "Not the votes, not the ledger, not the output of cost and smooth-sensitivity."
