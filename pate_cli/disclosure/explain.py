"""A report in plain words: what was promised, to whom, on what it rests, what it leaves out.

Everything said is read off the public report, so the words may be published with it. They are ours:
what a stranger's report says in sentences is not passed on as a promise.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from os import PathLike
from pathlib import PurePath
from typing import IO, Any, Final

import numpy as np
from numpy.typing import NDArray

from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import PateError, ReportError, printable
from pate_cli.core.formulas import refuse_escapes
from pate_cli.core.label_set import rows_of
from pate_cli.core.words import MechanismName
from pate_cli.disclosure.figures import factor, in_a_thousand, shown
from pate_cli.disclosure.guarantee import FIXED, worded
from pate_cli.disclosure.page import page
from pate_cli.disclosure.reader import read_report
from pate_cli.disclosure.report import Report
from pate_cli.disclosure.told import Told
from pate_cli.disclosure.total import Spent
from pate_cli.disclosure.verdict import verdict
from pate_cli.files.existing import PAGE, Replaces
from pate_cli.files.results import Result
from pate_cli.mechanisms import mechanism_from_parameters

# Of a mechanism, what is said of the votes and of the records and not of the noise.
_SHAPE: Final = frozenset(
    {"teachers", "classes", "teachers_per_record", "votes_together", "prior_weight"}
)
_SANITIZED: Final = "sanitized.epsilon"
_PAGES: Final = (".html", ".htm")


@dataclass(frozen=True)
class Section:
    """A heading, and what stands under it: paragraphs, or the points of a list; printable."""

    title: str
    texts: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "texts", tuple(map(printable, self.texts)))


@dataclass(frozen=True, repr=False)
class Explanation(Result):
    """What a report says, in words; public as the report is.

    Attributes:
        sections: in order.
        report: with the words that its facts are worth.
        sha256: of the report as its own file has it.
    """

    sections: tuple[Section, ...]
    report: Report
    sha256: str

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

    def to_html(self) -> str:
        """One page by itself, for whoever must sign that labels may be handed out."""
        return page(
            Told(
                report=self.report,
                sections={section.title: section.texts for section in self.sections},
                mechanisms=_voters(self.report),
                textbook=tuple(_textbook(self.report)),
                unit=_protected(self.report),
                sha256=self.sha256,
            )
        )

    def write(
        self, file: IO[bytes], path: str | PathLike[str], *, escape_formulas: bool = False
    ) -> None:
        """Write the content of a file named `path`; of .html it is the page."""
        if PurePath(path).suffix.lower() not in _PAGES:
            super().write(file, path, escape_formulas=escape_formulas)
            return
        if escape_formulas:
            refuse_escapes("HTML")
        file.write(self.to_html().encode())

    def _replaces(self, path: str) -> Replaces:
        """Return which files of this name make way for it under `force`."""
        return PAGE if PurePath(path).suffix.lower() in _PAGES else super()._replaces(path)

    def preview(self) -> Iterator[tuple[object, ...]]:
        """All of it: it is read, not looked at."""
        for section in self.sections:
            for place, text in enumerate(section.texts):
                yield ("" if place else section.title, text)

    def headline(self) -> str:
        """How the promise begins, or that there is none."""
        promised = (section for section in self.sections if section.title == "Promised")
        return next(promised, self.sections[0]).texts[0]


def explain(report: Report | str | PathLike[str]) -> Explanation:
    """What a report promises, to whom and on what conditions, in plain sentences.

    Use it before a report is published, or to understand somebody else's.

        >>> done = pate.aggregate("sample_votes/demo.parquet", max_queries=300)
        >>> [section.title for section in pate.explain(done.report).sections][:4]
        ['What was done', 'Promised', 'To whom', 'It rests on']
        >>> pate.explain(done.report).save("page.html")  # to be read, printed and signed

    Args:
        report: as `aggregate` or `release` made it, or its file, by path or address; "-" is
            standard input.

    Raises:
        ReportError: no report in the file, or one of parameters that no run has.
    """
    if not isinstance(report, Report):
        report = read_report(report).report
    sha256 = hashlib.sha256(report.to_json().encode()).hexdigest()
    report, others = _in_our_words(report)
    named = (
        ("Nothing is promised", _seeded(report)),
        ("What was done", itertools.chain(_done(report), others)),
        ("Promised", _promised(report)),
        ("To whom", _to_whom(report)),
        ("It rests on", _assumptions(report)),
        ("Not covered", _not_covered(report)),
        ("To be published", _publishable(report)),
        ("Exactly", _exactly(report)),
        ("Warnings", iter(report.warnings)),
    )
    found = [Section(title, tuple(texts)) for title, texts in named]
    said = tuple(section for section in found if section.texts)
    return Explanation(said if report.private else said[:1], report, sha256)


def _in_our_words(report: Report) -> tuple[Report, tuple[str, ...]]:
    """The report, with what its facts are worth; and what is to be said of its own words."""
    try:
        for done in report.rounds:
            mechanism_from_parameters(done.mechanism)
        ours = worded(report)
    except PateError as error:
        raise ReportError(f"no run has the parameters of the report: {error}") from None
    if ours == report:
        return ours, ()
    return ours, (
        "Its own words were changed: these words are not ours. What follows is said anew of its "
        "numbers, which pate verify checks.",
    )


def _claimed(report: Report) -> bool:
    """Whether anything is promised at all, if not by the headline."""
    return report.private and any(reading.holds for reading in report.statements)


def _refused(report: Report) -> bool:
    return report.tested is not None and not report.tested.passed


def _most_teachers(report: Report) -> int:
    """How many teachers of its group, if there are groups, one record may have trained."""
    if report.groups:
        return max(group.teachers_per_record for group in report.groups)
    mechanisms = [done.mechanism for done in report.rounds]
    # Votes that move together are those of one teacher.
    return max(
        1 if mechanism.get("votes_together") else int(mechanism.get("teachers_per_record", 1))
        for mechanism in mechanisms
    )


def _by_record(report: Report) -> bool:
    """Whether one record is protected, and not all that one teacher was trained on."""
    return bool(report.external) or _most_teachers(report) > 1


def _protected(report: Report) -> str:
    return "each record" if _by_record(report) else "all that one teacher was trained on"


def _seeded(report: Report) -> Iterator[str]:
    if not report.private:
        yield report.summary
        yield (
            "Publish neither the labels nor this report as anything private. For labels that "
            "protect somebody, run it again without a seed."
        )


def _done(report: Report) -> Iterator[str]:
    when = "" if report.time is None else f", begun {report.time}"
    name = "" if report.run is None else f" (run {report.run}{when})"
    each = report.rows
    if _refused(report):
        yield f"{report.queries} {each} were tested and none was labelled{name}."
    else:
        several = "" if len(report.rounds) == 1 else f" in {len(report.rounds)} rounds"
        yield f"{report.answers} of {report.queries} {each} were labelled{several}{name}."
    yield from _voters(report)
    yield from _guessed(report)
    yield from _one_by_one(report)
    yield f"Written by pate {report.tool}."


def _voters(report: Report) -> tuple[str, ...]:
    """Who voted, and with what noise; rounds that have the same say it once."""
    return tuple(dict.fromkeys(_voted(report, done.mechanism) for done in report.rounds))


def _voted(report: Report, mechanism: Mapping[str, Any]) -> str:
    numbers = ", ".join(
        f"{name} {value:.12g}"
        for name, value in mechanism.items()
        if isinstance(value, int | float) and name not in _SHAPE
    )
    votes = mechanism["teachers"]
    voted = f"{votes} teachers"
    if report.groups:
        teachers = sum(group.teachers for group in report.groups)
        voted = f"{teachers} teachers" + ("" if teachers == votes else f" with {votes} votes")
    elif mechanism.get("votes_together") and mechanism.get("teachers_per_record", 1) > 1:
        voted = f"Teachers with {votes} votes"  # of whom the report has no number
    classes = mechanism.get("classes")
    among = "for names that nobody had listed" if classes is None else f"among {classes} classes"
    return f"{voted} voted {among}, with noise of the mechanism {mechanism['name']} ({numbers})."


def _guessed(report: Report) -> Iterator[str]:
    """The prior of every round that has one."""
    for number, done in enumerate(report.rounds, 1):
        prior = done.prior
        if prior is not None:
            where = "" if len(report.rounds) == 1 else f", in round {number}"
            own = "Its guesses have" if done.rule else "Its file has"
            yield (
                f"A public prior voted, too{where}: {prior.weight} votes for its guess, where "
                f"it had one, on {prior.guesses} of {done.queries} "
                f"{rows_of(report.label_set)}. {own} SHA-256 {prior.sha256}."
            )


def _one_by_one(report: Report) -> Iterator[str]:
    """The rule of every session."""
    for rule in (done.rule for done in report.rounds):
        if rule is not None:
            more = ""
            if rule.beyond is not None:
                more = f", and up to {rule.most} where few of them are answered"
            yield (
                f"Queries were asked one by one: {rule.asks} may be in any case{more}, and epsilon "
                "pays for all of them, asked or not."
            )


def _promised(report: Report) -> Iterator[str]:
    yield report.summary
    if not _claimed(report):
        return
    epsilon, public = report.epsilon, report.data_independent.epsilon
    spent = report.spent
    alone = spent is None or spent.count == 1
    if report.sound:
        if alone:
            yield f"That is {verdict(epsilon, report.delta, report.epsilon_kind)}."
        yield f"In other words: {_likened(report)}."
    yield f"It covers {report.covers}."
    # A run of which nothing is claimed leaves nothing to claim of all together.
    if spent is not None and not alone and report.claims("total"):
        yield _together(spent)
    if epsilon != public and report.tested is None and report.claims("all-votes"):
        several = len(report.rounds) > 1 or report.external
        yield f"Whatever the votes, epsilon is at most {shown(public)}" + (
            f", if {FIXED}." if several else "."
        )
    yield from _textbook(report)


def _textbook(report: Report) -> Iterator[str]:
    """What any accountant can repeat, beside what is promised."""
    crosscheck = report.crosscheck
    if crosscheck is not None and not _refused(report):
        known = [
            f"{shown(value)} ({words})"
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
                "For the labels alone a textbook composition, which any accountant can repeat, "
                f"gives epsilon {' and '.join(known)}. {crosscheck.compared}"
            )


def _together(spent: Spent) -> str:
    """What all runs of the record cost, and on which reading."""
    total = f"epsilon {shown(spent.epsilon)} at delta {shown(spent.delta)}"
    said = f"All {spent.count} runs in the record cost {total} together"
    said += f": that is {verdict(spent.epsilon, spent.delta, 'worst-case')}"
    sharper = (spent.epsilon, spent.delta) != (spent.sum_epsilon, spent.sum_delta)
    if sharper and spent.sum_epsilon is not None and spent.sum_delta is not None:
        said += (
            f". If a run was chosen by what earlier ones released, epsilon "
            f"{shown(spent.sum_epsilon)} at delta {shown(spent.sum_delta)}"
        )
    return said + "."


def _likened(report: Report) -> str:
    """What the headline is in terms of chances: P[S] ≤ e^ε P'[S] + δ, for whatever S."""
    epsilon, delta = report.epsilon, report.delta
    one, other = "one teacher's data", "any other data in their place"
    if _by_record(report):
        one, other = "one record", "any other record in its place"
    most = f"at most e^{shown(epsilon)} = {factor(epsilon)} times"
    if _refused(report):
        return f"a refusal is {most} as likely with {one} as with {other}"
    chances = f"its chance with {one} is {most} its chance with {other}, plus delta = "
    chances += shown(delta)
    if report.epsilon_kind == "upper":
        return f"whatever may come of what was released with so small an epsilon, {chances}"
    thousand = in_a_thousand(epsilon, delta)
    often = "may always happen" if thousand is None else f"happens at most {thousand} times"
    return (
        f"whatever may come of what was released, {chances}; what happens 1 time in 1,000 with "
        f"either {often} with the other"
    )


def _to_whom(report: Report) -> Iterator[str]:
    yield report.adjacency
    if not _claimed(report):
        return
    yield (
        f"So what is protected is {_protected(report)}, against whoever sees what was released, "
        "whatever else they know or compute."
    )
    for group in report.groups:
        yield (
            f"Group {group.group}: epsilon {shown(group.epsilon)} at delta {shown(group.delta)}."
        )


def _assumptions(report: Report) -> Iterator[str]:
    if not _claimed(report):
        return
    most = _most_teachers(report)
    if report.groups:
        yield "A record trained teachers of one group only, and no more of them than groups say."
    elif most == 1:
        yield "No record trained two teachers: their data are disjoint."
    else:
        yield f"No record trained more than {most} teachers."
    yield "A teacher was trained on its own data alone, and on no other private records."
    one_by_one = any(done.rule for done in report.rounds)
    listed = any("classes" in done.mechanism for done in report.rounds)
    if one_by_one:
        known = "classes and the number of teachers are" if listed else "number of teachers is"
        yield (
            f"The {known} public, and queries and guesses followed from what is public and from "
            "answers that are paid for: no record shaped them otherwise."
        )
    else:
        known = ", the classes" if listed else ""
        yield f"The queries{known} and the number of teachers are public: no record shaped them."
    yield (
        "The settings were fixed before the votes were looked at, and no other result of these "
        "votes decided whether or how this run was made."
    )
    if report.spent is not None and report.spent.count > 1:
        yield (
            "For the total: which runs there were, and their settings, did not follow from what "
            "earlier ones released; and the record tells of all of them."
        )
    if any(done.mechanism["name"] == MechanismName.INTERACTIVE for done in report.rounds):
        yield "The student's predictions are public, or made from labels that are paid for."
    yield (
        "The noise was drawn by pate from the system's random numbers and was seen by nobody; "
        "the votes and the ledger stayed secret."
    )
    if report.prior is not None:
        yield report.prior.presupposed
    if report.external:
        yield "The external parts are as their files state them; see the statement external."


def _exactly(report: Report) -> Iterator[str]:
    for reading in report.statements:
        if reading.holds:
            yield f"Statement {reading.id}: {reading.text}"
    drawn = report.sanitized.epsilon is not None
    for reading in report.statements:
        # Where nothing is sanitized, nobody would read anything into it.
        if not reading.holds and (drawn or _SANITIZED not in reading.text):
            yield f"Not claimed, {reading.id}: {reading.text}"


def _not_covered(report: Report) -> Iterator[str]:
    if not _claimed(report):
        return
    yield (
        "Other runs on votes of the same teachers, or of others with the same records, unless they "
        "are in the total: each costs its own epsilon and delta."
    )
    yield "Labels drawn several times, of which the best were kept."
    yield "Whatever else of the votes is shown: counts, costs, a plot, the ledger, the noise."


def _publishable(report: Report) -> Iterator[str]:
    if not _claimed(report):
        yield "Neither the labels nor this report as a promise: nothing is claimed for them."
        return
    labels = report.labels
    if labels is None:
        yield "This report." if _refused(report) else "This report, and the labels it pays for."
    else:
        yield (
            f"This report, and its labels: {labels.bytes} bytes of {labels.format}, SHA-256 "
            f"{labels.sha256}."
        )
    yield "Not the votes, not the ledger, not the output of cost and smooth-sensitivity."
