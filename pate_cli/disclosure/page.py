"""A report on one page of HTML: the sections of `explain`, with a table of figures.

The page stands by itself: no script, nothing from elsewhere; light and dark, on a phone and on
paper. Every text goes through `_said`, which escapes it, so no text becomes markup.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from string import Template
from typing import Final

from pate_cli.core.errors import printable
from pate_cli.disclosure.figures import guesses, shown
from pate_cli.disclosure.guarantee import CHOSEN, premise_of
from pate_cli.disclosure.report import Report

_PAGE: Final = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>$title</title>
<style>
$style</style>
</head>
<body>
<main class="$kind">
<p class="eyebrow">Differential privacy of released labels</p>
$sections
</main>
</body>
</html>
""")
_SIGNATURE: Final = """<section class="signature">
<h2>Signed</h2>
<div><h3>Checked with pate verify</h3><p>Name</p><p>Date</p><p>Signature</p></div>
<div><h3>May be handed out</h3><p>Name</p><p>Date</p><p>Signature</p></div>
</section>"""
_HOLDS: Final = {
    "worst-case": "whatever the votes",
    "target": "whatever the votes; stated in advance",
    "refusal": "whatever the votes; the refusal alone",
    "upper": "for these votes, sanitized",
}
_BEFOREHAND: Final = f"whatever the votes, {CHOSEN}"


@dataclass(frozen=True)
class Section:
    """A title and the sentences under it, all of them printable."""

    title: str
    texts: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "texts", tuple(map(printable, self.texts)))


def page_of(sections: Sequence[Section], report: Report, *, promised: bool) -> str:
    """Return the page, whole.

    Args:
        sections: what is said, in order; the title of the first becomes that of the page.
        report: the one whose figures it shows.
        promised: whether there is a promise to sign; without one, no number of it is shown.
    """
    first, *others = sections
    parts = [_section(first, "h1", _figures(report) if promised else "")]
    parts += [_section(each, "h2") for each in others]
    style = resources.files("pate_cli.disclosure").joinpath("page.css").read_text(encoding="utf-8")
    return _PAGE.substitute(
        title=_said(first.title),
        style=style,
        kind="promise" if promised else "none",
        sections="\n".join([*parts, *([_SIGNATURE] if promised else [])]),
    )


def _section(section: Section, head: str, table: str = "") -> str:
    name = section.title.lower().replace(" ", "-")
    said = "\n".join(f"<li>{_said(text)}</li>" for text in section.texts)
    return (
        f'<section class="{_said(name)}">\n<{head}>{_said(section.title)}</{head}>\n'
        f"<ul>\n{said}\n</ul>\n{table}</section>"
    )


def _figures(report: Report) -> str:
    """Return the (ε, δ) of this run and of all runs, how often a guess is right, and when."""
    rows, spent = list[tuple[str, float, float, str]](), report.spent
    if not report.total:
        premise = premise_of(report) if report.epsilon_kind == "worst-case" else ""
        holds = f"{_HOLDS[report.epsilon_kind]}{premise}"
        rows.append(("This run", report.epsilon, report.delta, holds))
    if spent is not None and report.claims("total"):
        rows += [
            ("All runs", spent.epsilon, spent.delta, _BEFOREHAND),
            ("All runs", spent.sum_epsilon, spent.sum_delta, "however they were chosen"),
        ]
    heads = ("", "ε", "δ", "A guess is right", "Holds")
    head = "".join(f'<th scope="col">{_said(name)}</th>' for name in heads)
    body = "\n".join(
        f'<tr><th scope="row">{name}</th><td>{shown(epsilon)}</td><td>{shown(delta)}</td>'
        f"<td>{guesses(epsilon, delta)}</td><td>{_said(holds)}</td></tr>"
        for name, epsilon, delta, holds in rows
    )
    return f'<table class="figures">\n<tr>{head}</tr>\n{body}\n</table>\n'


def _said(text: str) -> str:
    # First what no letter is: it could break a line, turn the direction of letters, or be no UTF-8.
    return html.escape(printable(text), quote=True)
