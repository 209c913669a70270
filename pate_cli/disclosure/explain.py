"""A report in plain words: what is promised, to whom, on what it rests, what was not checked.

Every sentence is made of numbers that were checked first (`disclosure.verification`). A report that
does not hold gets one sentence that says so, and none of its own. A terminal, a notebook and a page
of HTML show the same sentences.
"""

from __future__ import annotations

import hashlib
import html
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import resources
from os import PathLike
from pathlib import PurePath
from string import Template
from typing import IO, Any, Final

import numpy as np
from numpy.typing import NDArray

from pate_cli.core.errors import printable, quoted
from pate_cli.core.said import Line, Said
from pate_cli.core.words import MechanismName
from pate_cli.disclosure.figures import in_a_thousand, pair, shown, verdict
from pate_cli.disclosure.guarantee import (
    TOTAL,
    by_record,
    everything,
    premise_of,
    teachers_reached,
)
from pate_cli.disclosure.report import Report
from pate_cli.disclosure.settings import Settings
from pate_cli.disclosure.verification import FAILED, OPEN, PROMISE, Check
from pate_cli.files.protected import PAGE, Replaces
from pate_cli.files.results import Result

# Facts about votes and records; the other parameters of a mechanism are its noise.
_SHAPE: Final = frozenset(
    {"name", "teachers", "classes", "teachers_per_record", "votes_together", "prior_weight"}
)
_NOTHING: Final = "Nothing is promised"
_WAYS: Final = ("by RDP", "exactly", "by basic composition", "by advanced composition")
_SIGNATURE: Final = """<section class="signature">
<h2>Signed</h2>
<div><h3>Checked with pate verify</h3><p>Name</p><p>Date</p><p>Signature</p></div>
<div><h3>May be handed out</h3><p>Name</p><p>Date</p><p>Signature</p></div>
</section>"""


@dataclass(frozen=True)
class Section:
    """A title and the sentences under it, all of them printable."""

    title: str
    texts: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "texts", tuple(map(printable, self.texts)))


@dataclass(frozen=True, repr=False)
class Explanation(Result):
    """The words of a report, in titled sections; as public as the report.

    `pate.explain` returns one. Print its sections, or save it as a page (.html), which somebody can
    read, print and sign.

    Attributes:
        sections: titles with their sentences, in order.
        promised: whether the report promises anything; if not, its page has nothing to sign.
    """

    sections: tuple[Section, ...]
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
        rows = [(section.title, text) for section in self.sections for text in section.texts]
        title, text = np.array(rows).T
        return {"title": title, "text": text}

    def said(self) -> Said:
        """Yield the titles with their sentences."""
        for number, section in enumerate(self.sections):
            if number:
                yield Line("")
            yield Line(section.title, "bold")
            for text in section.texts:
                yield Line(text, hangs=True)

    def to_html(self) -> str:
        """Return the page: one file without a script, and with lines to sign a promise on.

        It stands by itself, light and dark, on a phone and on paper; no text becomes markup.
        """
        page = resources.files("pate_cli.disclosure").joinpath("page.html")
        return Template(page.read_text(encoding="utf-8")).substitute(
            title=self.sections[0].title,
            kind="promise" if self.promised else "none",
            sections="\n".join(map(_as_html, self.sections)),
            signature=_SIGNATURE if self.promised else "",
        )

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


def _as_html(section: Section) -> str:
    """Return a section of the page, with everything escaped."""
    texts = "\n".join(f"<li>{html.escape(text)}</li>" for text in section.texts)
    name = section.title.lower().replace(" ", "-")
    return f'<section class="{name}">\n<h2>{section.title}</h2>\n<ul>\n{texts}\n</ul>\n</section>'


def explanation_of(report: Report, checks: Sequence[Check]) -> Explanation:
    """Return a report in words.

    Args:
        report: written by anybody.
        checks: what `checks_of` found of it. If one failed, nothing is said in the report's words.
    """
    failed = [each.name for each in checks if each.outcome == FAILED and each.name != PROMISE]
    promised = report.claimed and not failed
    if failed:
        found = [(_NOTHING, _forged(failed))]
    else:
        found = [
            ("What is promised", _promised(report)) if promised else (_NOTHING, _nothing(report)),
            ("Warnings", (text for text in report.warnings if text not in report.summary)),
            ("What was done", _done(report)),
        ]
    if promised:
        found += [
            ("Who is protected", _protected(report)),
            ("What it rests on", _premises(report)),
            ("What it does not cover", _not_covered(report)),
            ("What was not checked", _not_checked(report, checks)),
            ("What may be published", _publishable(report)),
            ("Exactly", _exactly(report)),
        ]
    sections = (Section(title, tuple(texts)) for title, texts in found)
    return Explanation(tuple(each for each in sections if each.texts), promised)


def _forged(failed: Sequence[str]) -> Iterator[str]:
    yield (
        f"This report does not hold: {', '.join(failed)}. What it says does not follow from its "
        "own settings: somebody changed it, or it was not written by pate."
    )
    yield "Do not rely on any number or sentence in it. pate verify shows what is wrong."


def _nothing(report: Report) -> Iterator[str]:
    yield report.summary
    yield "Publish neither the labels nor this report as anything private."


def _promised(report: Report) -> Iterator[str]:
    epsilon, delta, kind = everything(report)
    spent, often = report.spent, in_a_thousand(epsilon, delta)
    yield report.summary
    who = "All runs together give" if kind == TOTAL else "This gives"
    yield f"{who} {verdict(epsilon, delta, kind)}."
    if kind in ("worst-case", "target") and often is not None:
        one = "training record" if by_record(report) else "teacher's data"
        yield f"What is 1 in 1,000 without one {one} is at most {often} in 1,000 with it."
    for group in report.groups:
        stated = pair(group.epsilon, group.delta)
        yield f"For training records of group {quoted(group.group)}: {stated}."
    if report.epsilon_kind == "upper":
        worst = shown(report.data_independent.epsilon)
        yield f"Whatever the votes, epsilon is at most {worst}{premise_of(report)}."
    yield f"It covers {report.covers}."
    if spent is not None and report.claims("sum"):
        sums = f"epsilon {shown(spent.sum_epsilon)} at delta {shown(spent.sum_delta)}"
        yield f"However the runs were chosen, together they cost {sums}."
    if report.crosscheck is not None and not report.refused:
        numbers = vars(report.crosscheck).values()
        ways = [f"{shown(one)} ({way})" for way, one in zip(_WAYS, numbers, strict=True) if one]
        if ways:
            yield f"For the labels alone, a textbook accountant gives epsilon {' and '.join(ways)}."


def _done(report: Report) -> Iterator[str]:
    began = "" if report.time is None else f", begun {report.time}"
    name = "" if report.run is None else f" (run {report.run}{began})"
    yield f"{report.answers} of {report.queries} {report.rows} were labelled{name}."
    for number, done in enumerate(report.rounds, 1):
        yield _round(done, report.rows, "" if len(report.rounds) == 1 else f"Round {number}: ")
    yield f"Written by pate {report.tool}."


def _round(done: Settings, rows: str, head: str) -> str:
    """Return what was asked, of how many votes and with what noise."""
    mechanism, prior, rule = done.mechanism, done.prior, done.rule
    noise = ", ".join(
        f"{name} {value:.12g}"
        for name, value in mechanism.items()
        if isinstance(value, int | float) and name not in _SHAPE
    )
    classes = mechanism.get("classes")
    among = "for names that nobody had listed" if classes is None else f"among {classes} classes"
    text = (
        f"{head}teachers had up to {mechanism['teachers']} votes {among} on each of {done.queries} "
        f"{rows}. The mechanism {mechanism['name']} added noise ({noise})."
    )
    if prior is not None:
        text += (
            f" A public prior had {prior.weight} votes for each of {prior.guesses} guesses, whose "
            f"SHA-256 is {prior.sha256}."
        )
    if rule is not None:
        more = f", up to {rule.most} if few are answered" if rule.most > rule.asks else ""
        text += (
            f" Queries were asked one by one: {rule.asks} may be asked in any case{more}. Epsilon "
            "pays for all of them, asked or not."
        )
    return text[0].upper() + text[1:]


def _protected(report: Report) -> Iterator[str]:
    unit = "each training record" if by_record(report) else "all that one teacher was trained on"
    yield report.adjacency
    yield f"So the release protects {unit}, against whoever sees it, whatever else they know."


def _premises(report: Report) -> Iterator[str]:
    most, rounds, spent = teachers_reached(report), report.rounds, report.spent
    if report.groups:
        yield "Each training record reached one group alone, and no more of it than groups states."
    else:
        yield f"No training record reached more than {most} teacher{'s' * (most > 1)}."
    yield "Each teacher was trained on its own data, and on no other private data."
    classes = ", the classes" if any("classes" in done.mechanism for done in rounds) else ""
    yield (
        f"No private data shaped the queries{classes} or the number of teachers, except through "
        "answers that are paid for."
    )
    yield (
        "The settings were fixed before anybody looked at the votes, and no other result of these "
        "votes decided whether or how this run was made."
    )
    if spent is not None and spent.count > 1:
        yield (
            "For the total: no run and no setting was chosen after seeing earlier results, and the "
            "record lists every run."
        )
    if any(done.mechanism["name"] == MechanismName.INTERACTIVE for done in rounds):
        yield "The student's predictions are public, or made from labels that are paid for."
    yield "The noise came from the system's random numbers, and nobody saw it."
    yield (
        "Whoever runs pate sees all votes, and whoever trains a teacher sees its data. Both are "
        "trusted, and kept the votes and the ledger secret."
    )


def _not_covered(report: Report) -> Iterator[str]:
    if report.spent is None:
        yield "Earlier runs on these teachers: no record was kept."
    yield (
        "Runs that are not in the total, on these teachers or on others with the same records: "
        "each costs its own epsilon and delta."
    )
    yield "Anything else that shows the votes: counts, costs, a plot, the ledger, the noise."


def _not_checked(report: Report, checks: Sequence[Check]) -> Iterator[str]:
    for each in checks:
        if each.outcome == OPEN:
            yield f"{each.name[:1].upper()}{each.name[1:]}: {each.detail}."
    if not report.refused:
        yield "The labels: whether they are those of this report, and were made with its settings."
    yield "pate verify compares labels, guesses and record with the report."


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
