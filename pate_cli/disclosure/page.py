"""A public report as one page of HTML, for whoever must sign that data may be handed out.

It stands by itself: no script, nothing from elsewhere; light and dark, on a phone and on two sheets
of paper. What is promised is said by `explain`; here are its order, its figures and its tables.
Where nothing can be relied on, the page says so first and shows no ε.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import resources
from typing import Final

from pate_cli.core.words import LabelFormat
from pate_cli.disclosure.figures import shown
from pate_cli.disclosure.guarantee import TOTAL, claimed_gap
from pate_cli.disclosure.markup import Markup, element, joined
from pate_cli.disclosure.page_parameters import parameters
from pate_cli.disclosure.page_runs import runs
from pate_cli.disclosure.report import Report
from pate_cli.disclosure.told import Told, few

# Nothing is fetched and nothing runs, whatever a text was made to look like.
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"


def page(told: Told) -> str:
    """The page, whole."""
    sections = _to_sign(told) if told.relied_on else _not_to_sign(told)
    style = resources.files("pate_cli.disclosure").joinpath("page.css").read_text(encoding="utf-8")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"{element('title', _title(told))}\n{element('style', Markup(style))}\n</head>\n"
        f"{element('body', element('main', *sections))}\n</html>\n"
    )


def _to_sign(told: Told) -> list[Markup]:
    return [
        _promise(told),
        _warnings(told),
        _in_words(told),
        _who(told),
        runs(told),
        _listed(
            "What it rests on", told, "It rests on", "Where one of these fails, all of it is void:"
        ),
        _listed("What it does not cover", told, "Not covered"),
        _check(told),
        parameters(told),
        _exactly(told),
        _signature(),
    ]


def _not_to_sign(told: Told) -> list[Markup]:
    return [
        _no_promise(told),
        _warnings(told),
        _listed("To be published", told, "To be published"),
        _check(told),
        parameters(told),
    ]


def _title(told: Told) -> str:
    return "Privacy statement" if told.relied_on else "Nothing is promised"


# --- what is promised ---------------------------------------------------------------------------


def _head(told: Told, kind: str) -> Markup:
    done = [text for text in told.texts("What was done") if text not in told.mechanisms]
    return element(
        "header",
        element("p", "Differential privacy of released labels", class_="eyebrow"),
        element("h1", _title(told), class_=kind),
        element("p", *_spaced(few(done)), class_="deck"),
    )


def _promise(told: Told) -> Markup:
    report, refused = told.report, told.report.epsilon_kind == "refusal"
    figures = [
        _figure("ε", shown(report.epsilon), told.whose),
        _figure("δ", shown(report.delta), "spent with it" if refused else "added to every chance"),
    ]
    if told.account is not None and told.account.count > 1 and report.epsilon_kind != TOTAL:
        total = f"all {told.account.count} runs together"
        figures.append(_figure("ε", shown(told.account.epsilon), total))
    return element(
        "section",
        _head(told, "promise"),
        element("p", report.summary, class_="lead"),
        element("dl", *figures, class_="figures"),
        class_="first",
    )


def _in_words(told: Told) -> Markup:
    """What is promised, but for what leads the page or is for accountants."""
    aside = (told.report.summary, *told.textbook)
    texts = [text for text in told.texts("Promised") if text not in aside]
    return element(
        "section", element("h2", "What that means"), *(element("p", text) for text in texts)
    )


def _no_promise(told: Told) -> Markup:
    """What stands in the way, first, and no number."""
    texts = told.texts("Nothing is promised") or (_reason(told.report),)
    return element(
        "section",
        _head(told, "none"),
        *(element("p", text, class_="lead" if not place else None)
          for place, text in enumerate(texts)),
        element("p", "There is nothing to sign here: pate verify will say of this report that it "
                "does not hold."),
        class_="first",
    )  # fmt: skip


def _reason(report: Report) -> str:
    """Why nothing is promised, without the numbers that a summary may repeat."""
    if report.private and claimed_gap(report) is None:
        return "The epsilon of this report repeats the published analysis and is no bound."
    return report.summary


def _figure(name: str, value: str, words: str) -> Markup:
    return element(
        "div",
        element("dt", name),
        element("dd", element("span", value, class_="value"), element("span", words)),
    )


def _warnings(told: Told) -> Markup:
    """As the report has them: they are not checked."""
    warnings = told.texts("Warnings")
    if not warnings:
        return joined()
    return element(
        "section",
        element("h2", "Warnings"),
        *(element("p", text) for text in warnings),
        class_="warnings long",
    )


def _who(told: Told) -> Markup:
    return element(
        "section",
        element("h2", "Who is protected, and against whom"),
        *(element("p", text) for text in few(told.texts("To whom"))),
    )


# --- on what, and exactly -------------------------------------------------------------------------


def _listed(heading: str, told: Told, title: str, before: str = "") -> Markup:
    texts = told.texts(title)
    if not texts:
        return joined()
    return element(
        "section",
        element("h2", heading),
        *([element("p", before)] if before else []),
        element("ul", *(element("li", text) for text in texts)),
        class_="long" if before else None,
    )


def _check(told: Told) -> Markup:
    """How to hold the report against its labels, and this page against the report."""
    report, labels = told.report, told.report.labels
    suffix = "parquet" if labels is None else LabelFormat(labels.format).value
    given = "" if labels is None else f" labels.{suffix}"
    guessed = " --prior guesses" if report.prior is not None else ""
    hashes = [] if labels is None else [("SHA-256 of the labels", labels.sha256)]
    hashes += [("SHA-256 of the report", told.sha256)]
    # The hash has a line of its own.
    publish = [
        f"{text.partition(', SHA-256 ')[0].removesuffix('.')}."
        for text in told.texts("To be published")
        if told.relied_on
    ]
    return element(
        "section",
        element("h2", "What to publish, and how to check it" if publish else "How to check it"),
        *(element("p", text) for text in publish),
        element(
            "dl",
            *(element("div", element("dt", name), element("dd", element("code", value)))
              for name, value in hashes),
            class_="hashes",
        ),
        element("p", "This page repeats the numbers of the report and checks none. This does:"),
        element("pre", element("code", f"pate verify report.json{given}{guessed}")),
        element("p", "It ends with 0 if everything that can be checked holds, and names what "
                "nobody can check from outside; with 10 if anything does not hold."),
    )  # fmt: skip


def _exactly(told: Told) -> Markup:
    return element(
        "section",
        element("h2", "Exactly"),
        *(element("p", text) for text in told.texts("Exactly")),
        class_="long small",
    )


def _signature() -> Markup:
    signed = [
        element(
            "div",
            element("h3", who),
            *(element("p", element("span", line), class_="line")
              for line in ("Name", "Date", "Signature")),
        )
        for who in ("Checked with pate verify", "May be handed out")
    ]  # fmt: skip
    return element(
        "section", element("h2", "Signed"), element("div", *signed, class_="signed"),
        class_="signature",
    )  # fmt: skip


# --- texts ---------------------------------------------------------------------------------------


def _spaced(texts: Sequence[str]) -> Iterator[str]:
    for place, text in enumerate(texts):
        yield f" {text}" if place else text
