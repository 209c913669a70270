"""Texts for people: the explanation of a report, an entry of a register, the summary of a run.

Every sentence of an explanation is made from numbers that `disclosure.verification` has checked. If
a check of a report failed, the explanation says so, and repeats no sentence of the report. A
terminal, a notebook and an HTML page show equal sentences. The summary of a run (`summary_of`)
describes a report that pate has just made, without checking it again. An entry of a register
(`registry_entry`) has the numbers of a report in another form.
"""

from __future__ import annotations

import hashlib
import html
import json
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import resources
from os import PathLike
from pathlib import PurePath
from string import Template
from typing import IO, Any, Final

import numpy as np
from numpy.typing import NDArray

from pate_cli.core.errors import UsageError, printable, quoted
from pate_cli.core.said import Line, Pairs, Said
from pate_cli.core.words import MechanismName
from pate_cli.disclosure.cost import nats, pair, shown
from pate_cli.disclosure.guarantee import (
    TOTAL,
    against_a_guess,
    caveat,
    everything,
    guesses_of,
    in_a_thousand,
    premise_of,
    promise,
    sentence,
    validity,
    verdict,
    votes_of,
    votings,
)
from pate_cli.disclosure.report import Report
from pate_cli.disclosure.settings import Settings
from pate_cli.disclosure.verification import OPEN, Check, false_in
from pate_cli.files.protected import PAGE, Replaces
from pate_cli.files.results import Result

# Parameters of a mechanism that describe votes and records; its other parameters are its noise.
_SHAPE: Final = frozenset(
    {"name", "teachers", "classes", "teachers_per_record", "votes_together", "prior_weight"}
)
_NOTHING: Final = "Nothing is promised"
_HEADING: Final = "Differential privacy of released labels"
_WAYS: Final = ("by RDP", "exactly", "by basic composition", "by advanced composition")
_SIGNATURE: Final = """<section class="signature">
<h2>Signed</h2>
<div><h3>Checked with pate verify</h3><p>Name</p><p>Date</p><p>Signature</p></div>
<div><h3>May be handed out</h3><p>Name</p><p>Date</p><p>Signature</p></div>
</section>"""


@dataclass(frozen=True)
class Section:
    """One section of an explanation: a title, and the sentences under the title."""

    title: str
    texts: tuple[str, ...]


@dataclass(frozen=True, repr=False)
class Explanation(Result):
    """A report in plain words, in sections with titles; as public as the report.

    `pate.explain` returns an explanation. Print the explanation, or save it as a page (.html)
    that people can read, print and sign.

    Attributes:
        sections: the sections in order, each with a title and sentences.
        promised: whether the report promises anything; without a promise the page has no line to
            sign.
        title: the title that the caller gave; empty without one.
        failed: names of the checks that failed; with a failed check the explanation repeats nothing
            of the report.
    """

    sections: tuple[Section, ...]
    promised: bool
    title: str = ""
    failed: tuple[str, ...] = ()

    @property
    def releasable(self) -> bool:
        """Return True, because an explanation only depends on a public report."""
        return True

    def to_dict(self) -> dict[str, Any]:
        """Return the sections, ready for JSON."""
        titled = {"title": self.title} if self.title else {}
        return titled | {"sections": [asdict(section) for section in self.sections]}

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return a table with one row per sentence: the title of its section, and its text."""
        rows = [(section.title, text) for section in self.sections for text in section.texts]
        title, text = np.array(rows).T
        return {"title": title, "text": text}

    def said(self) -> Said:
        """Yield the titles with their sentences."""
        if self.title:
            yield Line(self.title, "bold", whole=True)
        for number, section in enumerate(self.sections):
            if number or self.title:
                yield Line("")
            yield Line(section.title, "bold")
            for text in section.texts:
                yield Line(text, hangs=True)

    def to_html(self) -> str:
        """Return the explanation as an HTML page, with lines to sign if the report has a guarantee.

        The page has no scripts and needs no other file. The page has light and dark colours, and is
        made for screens, phones and paper. All texts are escaped.
        """
        page = resources.files("pate_cli.disclosure").joinpath("page.html")
        return Template(page.read_text(encoding="utf-8")).substitute(
            title=html.escape(self.title or self.sections[0].title),
            heading=html.escape(self.title or _HEADING),
            kind="promise" if self.promised else "none",
            sections="\n".join(map(_as_html, self.sections)),
            signature=_SIGNATURE if self.promised else "",
        )

    def write(self, file: IO[bytes], path: str | PathLike[str]) -> None:
        """Write the explanation for a file named `path`; .html and .htm get an HTML page."""
        if _is_page(path):
            file.write(self.to_html().encode())
        else:
            super().write(file, path)

    def _replaces(self, path: str) -> Replaces:
        """Return which existing file `force` may replace; an HTML page may replace only a page."""
        return PAGE if _is_page(path) else super()._replaces(path)

    def headline(self) -> str:
        """Return the first sentence, which has the guarantee, or says that there is none."""
        return self.sections[0].texts[0]


def _is_page(path: str | PathLike[str]) -> bool:
    return PurePath(path).suffix.lower() in (".html", ".htm")


def _as_html(section: Section) -> str:
    """Return a section as HTML, with escaped texts."""
    texts = "\n".join(f"<li>{html.escape(text)}</li>" for text in section.texts)
    name = section.title.lower().replace(" ", "-")
    return f'<section class="{name}">\n<h2>{section.title}</h2>\n<ul>\n{texts}\n</ul>\n</section>'


def explanation_of(
    report: Report, checks: Sequence[Check], *, title: str | None = None, unit: str | None = None
) -> Explanation:
    """Return a report in plain words, in sections with titles.

    Args:
        report: the report to explain.
        checks: the checks of the report, from `checks_of`. If a check failed, the explanation
            repeats no sentence of the report.
        title: a title of the caller's own; None without one.
        unit: what is protected, in the caller's own words; None if the caller does not say it.
    """
    failed = tuple(each.name for each in false_in(checks))
    promised = report.claimed and not failed
    found: list[tuple[str, Iterable[str]]]
    if failed:
        forged = sentence("forged", failed=", ".join(failed))
        found = [(_NOTHING, [forged, sentence("forged-beware")])]
    else:
        nothing = [report.summary, sentence("nothing-beware")]
        found = [
            ("What is promised", _promised(report)) if promised else (_NOTHING, nothing),
            ("Warnings", (text for text in report.warnings if text not in report.summary)),
            ("What was done", _done(report)),
        ]
    if promised:
        found += [
            ("Who is protected", _protected(report, unit)),
            ("What it rests on", _premises(report)),
            ("What it does not cover", _not_covered(report)),
            ("What was not checked", _not_checked(report, checks)),
            ("What may be published", _publishable(report)),
            ("Exactly", _exactly(report)),
        ]
    sections = (Section(title, tuple(map(printable, texts))) for title, texts in found)
    shown = tuple(each for each in sections if each.texts)
    return Explanation(shown, promised, printable(title or ""), failed)


def _promised(report: Report) -> Iterator[str]:
    epsilon, delta, kind = everything(report)
    spent, often = report.spent, in_a_thousand(epsilon, delta)
    yield report.summary
    gives = "gives-total" if kind == TOTAL else "gives"
    yield sentence(gives, verdict=verdict(*against_a_guess(report)))
    if kind in ("worst-case", "target") and often is not None:
        one = "training record" if report.by_record else "teacher's data"
        yield sentence("thousand", one=one, often=often)
    if report.record_epsilon is not None:
        told = {"epsilon": shown(report.record_epsilon), "delta": shown(report.delta)}
        yield sentence("record", **told)
        yield from caveat(report, "by-record") if report.total or report.refused else ()
    for group in report.groups:
        said = pair(group.epsilon, group.delta)
        yield sentence("by-group", group=quoted(group.group), said=said)
    if report.epsilon_kind == "upper":
        worst = shown(report.data_independent.epsilon)
        yield sentence("upper", worst=worst, premise=premise_of(report))
    yield sentence("covers", covers=report.covers)
    if spent is not None and report.claims("sum"):
        sums = {"epsilon": shown(spent.sum_epsilon), "delta": shown(spent.sum_delta)}
        yield sentence("however-disjoint" if spent.disjoint else "however", **sums)
        yield from caveat(report, "sum")
    if report.crosscheck is not None and not report.refused:
        numbers = vars(report.crosscheck).values()
        ways = [f"{shown(one)} ({way})" for way, one in zip(_WAYS, numbers, strict=True) if one]
        if ways:
            yield sentence("textbook", ways=" and ".join(ways))


def _done(report: Report) -> Iterator[str]:
    began = "" if report.time is None else f", begun {report.time}"
    told = {"answers": report.answers, "queries": report.queries, "rows": report.rows}
    run = "" if report.run is None else f" (run {report.run}{began})"
    yield sentence("labelled", run=run, **told)
    yield from done_in(report)


def done_in(report: Report) -> Iterator[str]:
    """Yield a sentence on the teachers, mechanism and noise of each round, then pate's version."""
    for number, done in enumerate(report.rounds, 1):
        who = "Teachers" if len(report.rounds) == 1 else f"Round {number}: teachers"
        yield _round(done, report.rows, who)
    yield sentence("tool", tool=report.tool)


def _round(done: Settings, rows: str, who: str) -> str:
    """Return the sentence about one round: its teachers, its mechanism, its noise, its queries."""
    mechanism, prior, rule = done.mechanism, done.prior, done.rule
    noise = ", ".join(
        f"{name} {value:.12g}"
        for name, value in mechanism.items()
        if isinstance(value, int | float) and name not in _SHAPE
    )
    classes = mechanism.get("classes")
    among = "for names that nobody had listed" if classes is None else f"among {classes} classes"
    told = {"teachers": mechanism["teachers"], "mechanism": mechanism["name"], "noise": noise}
    found = [sentence("round", who=who, among=among, queries=done.queries, rows=rows, **told)]
    if prior is not None:
        found.append(sentence("round-prior", **vars(prior)))
    if rule is not None:
        more = f", up to {rule.most} if few are answered" if rule.most > rule.asks else ""
        found.append(sentence("round-session", asks=rule.asks, more=more))
    return " ".join(found)


def _protected(report: Report, named: str | None) -> Iterator[str]:
    unit = "each training record" if report.by_record else "all that one teacher was trained on"
    yield report.adjacency
    yield sentence("unit", unit=unit)
    if named:
        yield sentence("unit-named", named=named)


def _premises(report: Report) -> Iterator[str]:
    most, rounds = report.teachers_reached, report.rounds
    classes = ", the classes" if any("classes" in done.mechanism for done in rounds) else ""
    training, disjoint = report.training, "; ".join(report.disjoint)
    voting = votings(report.all_settings)
    student = any(done.mechanism["name"] == MechanismName.INTERACTIVE for done in rounds)
    for name, there in (
        ("groups" if report.groups else "teachers", True),
        ("training", training is not None),
        ("randomness", training is not None),
        ("own-data", True),
        ("few-claimed", any(each.claimed for each in voting)),
        ("few-assigned", any(each.assigned for each in voting)),
        ("few-alone", bool(voting)),
        ("queries", True),
        ("settings", True),
        ("total", len(report.runs) > 1),
        ("disjoint", bool(disjoint)),
        ("student", student),
        ("noise", True),
        ("trust", True),
    ):
        if there:
            told = {"most": most, "s": "s" * (most > 1), "classes": classes, "disjoint": disjoint}
            yield sentence(f"rests-{name}", training=training, **told)


def _not_covered(report: Report) -> Iterator[str]:
    if report.spent is None:
        yield sentence("not-earlier")
    yield sentence("not-others")
    yield sentence("not-else")


def _not_checked(report: Report, checks: Sequence[Check]) -> Iterator[str]:
    for each in checks:
        if each.outcome == OPEN:
            yield f"{each.name[:1].upper()}{each.name[1:]}: {each.detail}."
    if not report.refused:
        yield sentence("unchecked-labels")
    yield sentence("unchecked-verify")


def _publishable(report: Report) -> Iterator[str]:
    # This is the hash of the file that `Report.save` writes.
    yield sentence("publish-report", sha256=hashlib.sha256(report.to_json().encode()).hexdigest())
    if report.labels is not None:
        yield sentence("publish-labels", **vars(report.labels))
    elif not report.refused:
        yield sentence("publish-others")
    yield sentence("publish-never")


def _exactly(report: Report) -> Iterator[str]:
    for reading in report.statements:
        name = "exactly" if reading.holds else "exactly-unclaimed"
        yield sentence(name, id=reading.id, text=reading.text)


# --- the summary for a person ------------------------------------------------------------------


def summary_of(
    report: Report,
    *,
    publish: Sequence[str],
    secret: Sequence[str],
    check: Sequence[str] = (),
    records: Sequence[str] = (),
    rows: int | None = None,
) -> Pairs:
    """Return what was released, the meaning of ε, and what to do with the files.

    Args:
        report: the report of the release.
        publish: names of the files to publish, as the user wrote them.
        secret: names of the files to keep secret.
        check: the arguments for `pate verify`: the report and the labels.
        records: names of the record files that add up the costs of this run and of earlier runs.
        rows: the number of rows of the votes; None if it is not known.
    """
    found = [
        *_released(report, rows),
        ("publish" if report.claimed else "written", ", ".join(publish)),
        ("keep secret", ", ".join(secret)),
    ]
    if records or report.claimed:
        none = "none: no record adds up the costs of this run and of earlier runs"
        found.append(("record", ", ".join(records) or none))
    if check:
        found.append(("check it", shlex.join(["pate", "verify", *check])))
    return Pairs(found)


def not_asked(report: Report, rows: int) -> str | None:
    """Return a phrase with the number of rows that were not asked; None if all were asked."""
    left = rows - report.queries
    if left <= 0:
        return None
    return f"the first {report.queries} {report.rows}; the {left} after them were not asked"


def _released(report: Report, rows: int | None) -> Iterator[tuple[str, str]]:
    left = None if rows is None else not_asked(report, rows)
    if left is not None:
        yield "asked", left
    yield "answered", f"{report.answers} of {report.queries} {report.rows}"
    yield "epsilon", promise(report).removeprefix("epsilon ")
    if report.epsilon_kind == "upper" and report.claimed:
        worst = nats(report.data_independent.epsilon)
        yield "worst case", f"{worst}; {sentence('whatever')}{premise_of(report)}"
    if report.record_epsilon is not None and report.claimed:
        yield "one record", sentence("one-record", epsilon=nats(report.record_epsilon))
    if len({own.epsilon for own in report.groups}) > 1:
        least, *_, most = sorted(report.groups, key=lambda own: own.epsilon)
        ends = (f"{nats(own.epsilon)} for {own.group}" for own in (least, most))
        yield "by group", f"from {' to '.join(ends)}"
    yield from guesses_of(report.rounds)
    yield from votes_of(report.rounds)
    if not report.claimed:
        yield "privacy", report.summary
        return
    epsilon, delta, kind = everything(report)
    if report.spent is not None and kind != report.epsilon_kind:
        runs = f"the {report.spent.count} runs in the record"
        when = validity(report, TOTAL)
        yield "in all", f"{nats(epsilon)} at delta {shown(delta)} for {runs}; {when}"
    yield "privacy", verdict(*against_a_guess(report))


# --- the public register of deployments -----------------------------------------------------------
# The register (registry.opendp.org) has one YAML file for each deployment, and refuses fields that
# its schema does not know. JSON text is also valid YAML, so pate writes an entry as JSON. The file
# registry.json, beside this module, is a template with all fields. If a report does not have the
# content of a field, the field stays blank, and the person who runs the deployment fills it in.


def registry_entry(report: Report, explanation: Explanation, *, unit: str | None = None) -> str:
    """Return the entry of a report as a JSON text, with "" in fields that stay blank. Public.

    The ε of the entry is valid for all vote files. The entry never has a sanitized ε, or the
    smaller ε that a failed release test costs, because such an ε is not a differential privacy
    guarantee of the deployment.

    Args:
        report: the report from which the entry takes its numbers.
        explanation: the explanation of the report, which shows that its numbers were checked; the
            title of the explanation is the name of the deployment.
        unit: what is protected, in the caller's words; None for a teacher or a training record.

    Raises:
        UsageError: the report has no guarantee, or a check of its numbers failed.
    """
    if not explanation.promised:
        raise UsageError(f"a register cannot list this report: {explanation.headline()}")
    tested, releases = report.tested, report.runs if report.total else report.rounds
    told = {
        "title": explanation.title,
        "labels": sentence(
            "registry-labels", answers=report.answers, queries=report.queries, rows=report.rows
        ),
        "unit": unit or ("one training record" if report.by_record else "one teacher"),
        "adjacency": report.adjacency,
        "epsilon": report.data_independent.epsilon if tested is None else tested.epsilon,
        "summary": report.summary,
        "trust": sentence("rests-trust"),
        "releases": "Many releases" if len(releases) > 1 else "One release",
        "access": "Interactive" if any(done.rule for done in report.rounds) else "Non-interactive",
        "mechanisms": " ".join([*done_in(report), sentence("rests-noise")]),
    }
    form = resources.files("pate_cli.disclosure").joinpath("registry.json")
    # YAML 1.1 reads 1e-05 as a text, and 1.0e-05 as a number.
    delta = re.sub(r"^(\d+)e", r"\1.0e", json.dumps(report.delta))
    texts = {name: _text(value) for name, value in told.items()}
    return Template(form.read_text(encoding="utf-8")).substitute(texts, delta=delta)


def _text(value: Any) -> str:
    """Return a value as JSON, with escapes for letters that YAML would refuse or change."""
    found = json.dumps(value, ensure_ascii=False)
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in found)


def blanks(entry: Any, path: str = "") -> Iterator[str]:
    """Yield the names of the blank fields of a decoded entry, such as `outer.inner`."""
    if entry == "":
        yield path
    for name, inner in entry.items() if isinstance(entry, dict) else ():
        yield from blanks(inner, f"{path}.{name}" if path else name)
    for inner in entry if isinstance(entry, list) else ():
        yield from blanks(inner, path)
