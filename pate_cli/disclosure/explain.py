"""A report in plain words: what is promised, to whom, on what it rests, what was not checked.

Every sentence is made of numbers that were checked first (`disclosure.verification`). A report that
does not hold gets one sentence that says so, and none of its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import PurePath
from typing import IO, Any, Final

import numpy as np
from numpy.typing import NDArray

from pate_cli.core.errors import quoted
from pate_cli.core.said import Line, Said
from pate_cli.core.words import MechanismName
from pate_cli.disclosure.figures import factor, in_a_thousand, pair, shown, verdict
from pate_cli.disclosure.guarantee import RECORD, premise_of, teachers_per_record, unit_of
from pate_cli.disclosure.page import Section, page_of
from pate_cli.disclosure.report import Report
from pate_cli.disclosure.settings import Settings
from pate_cli.disclosure.verification import FAILED, OPEN, PROMISE, Check
from pate_cli.files.existing import PAGE, Replaces
from pate_cli.files.results import Result

# Facts about votes and records; the other parameters of a mechanism are its noise.
_SHAPE: Final = frozenset(
    {"teachers", "classes", "teachers_per_record", "votes_together", "prior_weight"}
)

_WAYS: Final = ("by RDP", "exactly", "by basic composition", "by advanced composition")


@dataclass(frozen=True, repr=False)
class Explanation(Result):
    """The words of a report, in titled sections; as public as the report.

    `pate.explain` returns one. Print its sections, or save it as a page (.html), which somebody can
    read, print and sign.

    Attributes:
        sections: titles with their sentences, in order.
        report: what they are about.
        promised: whether the report promises anything; if not, its page has nothing to sign.
    """

    sections: tuple[Section, ...]
    report: Report
    promised: bool

    @property
    def releasable(self) -> bool:
        """True: it is made of a public report alone."""
        return True

    def to_dict(self) -> dict[str, Any]:
        """Return the sections, ready for JSON."""
        return {"sections": [asdict(section) for section in self.sections]}

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return a table with a row for every sentence: title, text."""
        rows = np.array(list(self.preview()))
        return {"title": rows[:, 0], "text": rows[:, 1]}

    def said(self) -> Said:
        """Yield the titles with their sentences."""
        for number, section in enumerate(self.sections):
            if number:
                yield Line("")
            yield Line(section.title, "bold")
            for text in section.texts:
                yield Line(text, hangs=True)

    def preview(self) -> Iterator[tuple[str, str]]:
        """Yield every sentence with its title; all are shown, because they are there to be read."""
        for section in self.sections:
            yield from ((section.title, text) for text in section.texts)

    def to_html(self) -> str:
        """Return the page: the same sections, the figures, and lines to sign a promise on."""
        return page_of(self.sections, self.report, promised=self.promised)

    def write(self, file: IO[bytes], path: str | PathLike[str]) -> None:
        """Write the content of a file named `path`: the page if it ends in .html or .htm."""
        if _is_page(path):
            file.write(self.to_html().encode())
        else:
            super().write(file, path)

    def _replaces(self, path: str) -> Replaces:
        """Return which files of this name make way for it under `force`."""
        return PAGE if _is_page(path) else super()._replaces(path)

    def headline(self) -> str:
        """Return the promise, or that there is none."""
        return self.sections[0].texts[0]


def _is_page(path: str | PathLike[str]) -> bool:
    return PurePath(path).suffix.lower() in (".html", ".htm")


def explanation_of(report: Report, checks: Sequence[Check]) -> Explanation:
    """Return a report in words.

    Args:
        report: written by anybody.
        checks: what `checks_of` found of it. If one failed, nothing is said in the report's words.
    """
    failed = [each.name for each in checks if each.outcome == FAILED and each.name != PROMISE]
    promised = report.private and report.sound and not failed
    if failed:
        found = [("Nothing is promised", _forged(failed))]
    elif not promised:
        found = [
            ("Nothing is promised", _nothing(report)),
            ("Warnings", (text for text in report.warnings if text not in report.summary)),
            ("What was done", _done(report)),
        ]
    else:
        found = [
            ("What is promised", _promised(report)),
            ("Warnings", iter(report.warnings)),
            ("What was done", _done(report)),
            ("Who is protected", _protected(report)),
            ("What it rests on", _premises(report)),
            ("What it does not cover", _not_covered(report)),
            ("What was not checked", _not_checked(report, checks)),
            ("What may be published", _publishable(report)),
            ("Exactly", _exactly(report)),
        ]
    sections = (Section(title, tuple(texts)) for title, texts in found)
    return Explanation(tuple(each for each in sections if each.texts), report, promised)


def _forged(failed: Sequence[str]) -> Iterator[str]:
    yield (
        f"This report does not hold: {', '.join(failed)}. What it says does not follow from its "
        "own settings: somebody changed it, or it was not written by pate."
    )
    yield "Do not rely on any number or sentence in it. pate verify shows what is wrong."


def _nothing(report: Report) -> Iterator[str]:
    yield report.summary
    yield "Publish neither the labels nor this report as anything private."
    if not report.private:
        yield "For labels that protect somebody, run it again without a seed."


def _promised(report: Report) -> Iterator[str]:
    spent, kind = report.spent, report.epsilon_kind
    yield report.summary
    if spent is None or spent.count == 1 or report.total:
        yield f"That is {verdict(report.epsilon, report.delta, kind)}."
    yield from _likened(report)
    for group in report.groups:
        stated = pair(group.epsilon, group.delta)
        yield f"For training records of group {quoted(group.group)}: {stated}."
    if kind == "upper":
        worst = shown(report.data_independent.epsilon)
        yield f"Whatever the votes, epsilon is at most {worst}{premise_of(report)}."
    yield f"It covers {report.covers}."
    if spent is not None and report.claims("total"):
        if spent.count > 1 and not report.total:
            yield f"The total is {verdict(spent.epsilon, spent.delta)}."
        sums = f"epsilon {shown(spent.sum_epsilon)} at delta {shown(spent.sum_delta)}"
        yield f"However the runs were chosen, together they cost {sums}."
    if report.crosscheck is not None and not report.refused:
        compared, *numbers = vars(report.crosscheck).values()
        ways = [f"{shown(one)} ({way})" for way, one in zip(_WAYS, numbers, strict=True) if one]
        if ways:
            told = " and ".join(ways)
            yield f"For the labels alone, a textbook accountant gives epsilon {told}. {compared}"


def _likened(report: Report) -> Iterator[str]:
    """Yield what ε means in terms of chances: P[S] ≤ e^ε P'[S] + δ for every event S."""
    times, thousand = factor(report.epsilon), in_a_thousand(report.epsilon, report.delta)
    if times is None:
        return
    versus = "with one teacher's data as with any other data in its place"
    if unit_of(report) == RECORD:
        versus = "with one training record as with any other in its place"
    most = f"at most e^{shown(report.epsilon)} = {times} times as likely {versus}"
    upper = report.epsilon_kind == "upper"
    if report.refused:
        yield f"A refusal is {most}."
        return
    event = "a release with so small an epsilon" if upper else "the release"
    yield f"Whatever follows from {event} is {most}, plus delta = {shown(report.delta)}."
    if thousand is not None and not upper:
        yield f"So a chance of 1 in 1,000 becomes at most {thousand} in 1,000."


def _done(report: Report) -> Iterator[str]:
    began = "" if report.time is None else f", begun {report.time}"
    name = "" if report.run is None else f" (run {report.run}{began})"
    if report.refused:
        yield f"{report.queries} {report.rows} were tested, and none was labelled{name}."
    else:
        yield f"{report.answers} of {report.queries} {report.rows} were labelled{name}."
    yield from dict.fromkeys(map(_voted, report.rounds))
    for number, done in enumerate(report.rounds, 1):
        where = "" if len(report.rounds) == 1 else f" in round {number}"
        if done.prior is not None:
            yield (
                f"A public prior voted as well{where}: {done.prior.weight} votes for each of its "
                f"guesses, on {done.prior.guesses} of {done.queries} {report.rows}. The guesses "
                f"have SHA-256 {done.prior.sha256}."
            )
        if done.rule is not None:
            more = f", up to {done.rule.most} if few are answered"
            yield (
                f"Queries were asked one by one{where}: {done.rule.asks} may be asked in any "
                f"case{more if done.rule.most > done.rule.asks else ''}. Epsilon pays for all of "
                "them, asked or not."
            )
    yield f"Written by pate {report.tool}."


def _voted(done: Settings) -> str:
    """Return who voted, and with what noise."""
    mechanism, votes = done.mechanism, done.mechanism["teachers"]
    numbers = ", ".join(
        f"{name} {value:.12g}"
        for name, value in mechanism.items()
        if isinstance(value, int | float) and name not in _SHAPE
    )
    teachers = sum(group.teachers for group in done.groups) or votes
    who = f"{teachers} teachers" + ("" if teachers == votes else f" with {votes} votes")
    if not done.groups and done.votes_together and done.teachers_per_record > 1:
        who = f"Teachers with {votes} votes"  # the report does not say how many teachers
    classes = mechanism.get("classes")
    among = "for names that nobody had listed" if classes is None else f"among {classes} classes"
    return f"{who} voted {among}. The mechanism {mechanism['name']} added noise ({numbers})."


def _protected(report: Report) -> Iterator[str]:
    yield report.adjacency
    yield (
        f"So the release protects {unit_of(report)}, against whoever sees it, whatever else they "
        "know or compute."
    )


def _premises(report: Report) -> Iterator[str]:
    most, spent = teachers_per_record(report), report.spent
    if report.groups:
        yield (
            "Each training record reached teachers of one group only, at most as many as groups "
            "states."
        )
    elif most == 1:
        yield "No training record reached two teachers."
    else:
        yield f"No training record reached more than {most} teachers."
    yield "Each teacher was trained on its own data, and on no other private data."
    listed = ", the classes" if any("classes" in each.mechanism for each in report.rounds) else ""
    if any(done.rule for done in report.rounds):
        yield (
            f"Queries and guesses{listed} came from what is public and from answers that are paid "
            "for. No private data shaped them otherwise."
        )
    else:
        yield f"No private data shaped the queries{listed} or the number of teachers."
    yield (
        "The settings were fixed before anybody looked at the votes, and no other result of these "
        "votes decided whether or how this run was made."
    )
    if spent is not None and spent.count > 1:
        yield (
            "For the total: no run and no setting was chosen after seeing earlier results, and the "
            "record lists every run."
        )
    if any(done.mechanism["name"] == MechanismName.INTERACTIVE for done in report.rounds):
        yield "The student's predictions are public, or made from labels that are paid for."
    yield "The noise came from the system's random numbers, and nobody saw it."
    yield (
        "Whoever runs pate sees all votes, and whoever trains a teacher sees its data. Both are "
        "trusted, and kept the votes and the ledger secret."
    )
    if report.prior is not None:
        yield report.prior.presupposed
    if report.external:
        yield "The external parts are as their files state them; see the statement external."


def _not_covered(report: Report) -> Iterator[str]:
    if report.spent is None:
        yield "Earlier runs on these teachers: no record was kept."
    yield (
        "Runs that are not in the total, on these teachers or on others with the same records: "
        "each costs its own epsilon and delta."
    )
    yield "Anything else that shows the votes: counts, costs, a plot, the ledger, the noise."


def _not_checked(report: Report, checks: Sequence[Check]) -> Iterator[str]:
    yield from (
        f"{each.name[:1].upper()}{each.name[1:]}: {each.detail}."
        for each in checks
        if each.outcome == OPEN
    )
    if not report.refused:
        yield "The labels: whether they are those of this report, and were made with its settings."
    labels = "" if report.labels is None else f" labels.{report.labels.format}"
    prior = "" if report.prior is None else " --prior guesses"
    yield f"To check what can be checked, run: pate verify report.json{labels}{prior}"


def _publishable(report: Report) -> Iterator[str]:
    # As the file of the report has it.
    yield f"This report, SHA-256 {hashlib.sha256(report.to_json().encode()).hexdigest()}."
    labels = report.labels
    if labels is not None:
        yield f"Its labels: {labels.bytes} bytes of {labels.format}, SHA-256 {labels.sha256}."
    elif not report.refused:
        yield "The labels that it pays for."
    yield "Never the votes, the ledger, or what pate cost and pate smooth-sensitivity print."


def _exactly(report: Report) -> Iterator[str]:
    for reading in report.statements:
        yield f"Statement {reading.id}{'' if reading.holds else ', not claimed'}: {reading.text}"
