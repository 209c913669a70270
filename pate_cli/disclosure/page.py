"""A report on one page of HTML: the sections of `explain`, with figures and tables.

The page stands by itself: no script, nothing from elsewhere; light and dark, on a phone and on
paper. Every text goes through `_said`, which escapes it, so no text becomes markup.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from string import Template
from typing import Final

from pate_cli.core.errors import printable, shortened
from pate_cli.disclosure.figures import guesses, shown
from pate_cli.disclosure.guarantee import CHOSEN, TOTAL, premise_of, unit_of
from pate_cli.disclosure.report import Report
from pate_cli.disclosure.runs import Run

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
    TOTAL: f"whatever the votes, {CHOSEN}",
}
_MOST_RUNS: Final = 12


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
        report: what its tables are made of.
        promised: whether there is a promise to sign; without one, no number of it is shown.
    """
    tables = {}
    if promised:
        tables = {
            "What is promised": _figures(report),
            "What was done": _runs(report),
            "Exactly": _parameters(report),
        }
    parts = [_section(each, tables.get(each.title, "")) for each in sections]
    parts[0] = parts[0].replace("h2>", "h1>")
    style = resources.files("pate_cli.disclosure").joinpath("page.css").read_text(encoding="utf-8")
    return _PAGE.substitute(
        title=_said(sections[0].title),
        style=style,
        kind="promise" if promised else "none",
        sections="\n".join([*parts, *([_SIGNATURE] if promised else [])]),
    )


def _section(section: Section, table: str) -> str:
    name = section.title.lower().replace(" ", "-")
    said = "\n".join(f"<li>{_said(text)}</li>" for text in section.texts)
    return (
        f'<section class="{_said(name)}">\n<h2>{_said(section.title)}</h2>\n'
        f"<ul>\n{said}\n</ul>\n{table}</section>"
    )


def _figures(report: Report) -> str:
    """Return the (ε, δ) of this run and of all runs, how often a guess is right, and when."""
    kind, spent = report.epsilon_kind, report.spent
    premise = premise_of(report) if kind == "worst-case" else ""
    rows = [("This run", report.epsilon, report.delta, f"{_HOLDS.get(kind, '')}{premise}")]
    if spent is not None and report.claims("total"):
        rows = [] if kind == TOTAL else rows
        rows.append(("All runs", spent.epsilon, spent.delta, _HOLDS[TOTAL]))
        if spent.sum_epsilon is not None and spent.sum_delta is not None:
            rows.append(
                ("All runs", spent.sum_epsilon, spent.sum_delta, "however they were chosen")
            )
    return _table(
        "figures",
        ("", "ε", "δ", "A guess is right", "Holds"),
        [
            (name, shown(epsilon), shown(delta), guesses(epsilon, delta), holds)
            for name, epsilon, delta, holds in rows
        ],
    )


def _runs(report: Report) -> str:
    """Return the last runs of the record."""
    spent = report.spent
    if spent is None or not (spent.count == 1 or report.claims("total")):
        return ""
    rows = [
        (
            run.time or "–",
            _named(run) + (": this run" if run.id == report.run else ""),
            *map(shown, (run.counted, run.delta, run.total_epsilon)),
        )
        for run in spent.runs[-_MOST_RUNS:]
    ]
    if spent.count > _MOST_RUNS:
        rows.insert(0, ("", f"{spent.count - _MOST_RUNS} before, in the report", "", "", ""))
    return _table("runs", ("Begun (UTC)", "Run", "ε", "δ", "Total ε"), rows)


def _named(run: Run) -> str:
    """Return what a run was, in a few words."""
    words = [run.kind.value, run.outcome.value]
    if run.settings is not None:
        words.append(str(run.settings.mechanism.get("name", "")))
        if run.answers is not None:
            words.append(f"{run.answers} of {run.settings.queries}")
    if run.external is not None:
        words += [shortened(name) for name in (run.external.name, run.external.covers) if name]
    return ", ".join(words)


def _parameters(report: Report) -> str:
    """Return the parameters of a report by the names of NIST SP 800-226."""
    worst, drawn, upper = report.data_independent, report.sanitized, report.epsilon_kind == "upper"
    order = drawn.order if upper else worst.order
    composed = "renyi" if upper or report.tested is not None else worst.method
    mechanisms = dict.fromkeys(str(each.mechanism["name"]) for each in report.rounds)
    rows = [
        ("Unit of privacy", unit_of(report)),
        ("Neighbouring relation", "replace-one"),
        ("Privacy parameter ε", shown(report.epsilon)),
        ("δ", shown(report.delta)),
        ("Data dependence", "ex-post, sanitized" if upper else "none"),
        ("Mechanism", ", ".join(mechanisms)),
        ("Composition", composed if order is None else f"{composed}, order {order:g}"),
        ("Released", f"{report.answers} answers of at most {report.max_answers}"),
        ("Trust model", "central"),
    ]
    return _table("parameters", ("NIST SP 800-226", ""), rows)


def _table(kind: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    def cells(row: Sequence[str]) -> Iterator[str]:
        yield f'<th scope="row">{_said(row[0])}</th>'
        yield from (f"<td>{_said(cell)}</td>" for cell in row[1:])

    head = "".join(f'<th scope="col">{_said(name)}</th>' for name in heads)
    body = "\n".join(f"<tr>{''.join(cells(row))}</tr>" for row in rows)
    return f'<table class="{kind}">\n<tr>{head}</tr>\n{body}\n</table>\n'


def _said(text: str) -> str:
    # First what no letter is: it could break a line, turn the direction of letters, or be no UTF-8.
    return html.escape(printable(text), quote=True)
