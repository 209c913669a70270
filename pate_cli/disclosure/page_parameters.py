"""The parameters of a report in the vocabulary of NIST SP 800-226, as its page shows them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pate_cli.core.errors import shortened
from pate_cli.disclosure.figures import shown, tabled
from pate_cli.disclosure.guarantee import TOTAL
from pate_cli.disclosure.markup import Markup, element
from pate_cli.disclosure.report import Report
from pate_cli.disclosure.told import Told, few

_METHODS: Final = {
    "renyi": "Rényi differential privacy",
    "gaussian-dp": "Gaussian differential privacy",
    "pure-dp": "pure differential privacy",
    "basic": "basic composition",
    "advanced": "advanced composition",
    "optimal": "optimal composition",
    "joint": "curves of Rényi costs and (ε, δ)'s together",
    "one": "one run",
}
_REPLACED: Final = "One replaced, as said above: how many teachers there are is public."
_TRUSTED: Final = (
    "Central: whoever runs pate sees every vote, and whoever trains a teacher sees its data. Both "
    "are trusted."
)
_MOST_PARTS: Final = 6
_LONGEST: Final = 240


def parameters(told: Told) -> Markup:
    """The table."""
    rows = [
        element(
            "tr",
            element("th", name, scope="row"),
            element("td", *(element("p", cell) for cell in cells)),
        )
        for name, cells in _facts(told)
        if cells
    ]
    return element(
        "section",
        element("h2", "Parameters"),
        element(
            "table",
            element("caption", "In the vocabulary of NIST SP 800-226"),
            element("tbody", *rows),
            class_="parameters",
        ),
        class_="long",
    )


def _facts(told: Told) -> Iterator[tuple[str, list[str]]]:
    """Name and lines of every parameter."""
    report, none = told.report, ["none that is claimed"]
    yield "Unit of privacy", [told.unit] if told.relied_on else none
    yield "Neighbouring relation", [_REPLACED if told.relied_on else report.adjacency]
    if told.relied_on:
        yield "Privacy parameter ε", [_epsilon(told)]
        yield "δ", [_delta(told)]
        yield "Data dependence", [" ".join(_dependence(told))]
    else:
        yield "Privacy parameter ε", none
        yield "δ", none
    yield "Mechanism", few(told.mechanisms, _MOST_PARTS)
    yield "Composition", [*_composition(report), *told.textbook] if told.relied_on else []
    yield "Released", [*_released(report)]
    yield "External parts", few([*_external(report)], _MOST_PARTS)
    yield "Trust model", [_TRUSTED]


def _epsilon(told: Told) -> str:
    spent = told.account
    return f"{shown(told.report.epsilon)}, {told.whose}" + (
        _together(told, None if spent is None else spent.epsilon)
    )


def _delta(told: Told) -> str:
    report, within, spent = told.report, "", told.account
    failure = report.sanitized.delta_failure
    if report.epsilon_kind == "upper" and failure is not None:
        within = f", {shown(failure)} of it for a sanitized ε too low"
    total = None if spent is None else spent.delta
    return f"{shown(report.delta)}{within}{_together(told, total)}"


def _together(told: Told, total: float | None) -> str:
    """What is added of all runs."""
    if told.report.epsilon_kind == TOTAL:
        return ""
    if told.report.spent is None:
        return "; all runs: not tracked"
    return f"; all runs: {'nothing is claimed' if total is None else tabled(total)}"


def _for_all_votes(told: Told) -> str:
    epsilon = shown(told.report.data_independent.epsilon)
    return f"Whatever the votes, at most {epsilon}{told.premise}."


def _dependence(told: Told) -> Iterator[str]:
    report = told.report
    if report.epsilon_kind == "upper":
        yield "Ex-post: ε was computed from these votes and sanitized. It is no ε for all votes."
        if report.claims("all-votes"):
            yield _for_all_votes(told)
    elif report.epsilon_kind == TOTAL:
        yield f"None, but that a refusal counts for what it cost: for all votes{told.premise}."
    else:
        yield f"None: for all votes{told.premise}."
    holding = ", ".join(reading.id for reading in report.statements if reading.holds)
    yield f"Statements that hold: {holding}."


def _composition(report: Report) -> Iterator[str]:
    public, tested = report.data_independent, report.tested
    order, method = public.order, _METHODS.get(public.method, public.method)
    if tested is not None:
        count = len(tested.orders)
        yield (
            f"Of the queries: {_METHODS['renyi']} at {count} order{'s' if count > 1 else ''} fixed "
            f"beforehand, by the bound {tested.bound}; tested against the target."
        )
    else:
        if report.epsilon_kind == "upper":
            order, method = report.sanitized.order, _METHODS["renyi"]
        where = "" if order is None else f" at order {order:g}"
        yield f"Of the queries: {method}{where}."
    if len(report.rounds) > 1:
        yield f"Of {len(report.rounds)} rounds, added up in this ε."
    if report.earlier_draws:
        count = len(report.earlier_draws)
        yield f"Of {count} earlier release{'s' if count > 1 else ''}, added up in this ε."


def _released(report: Report) -> Iterator[str]:
    yield f"{report.answers} answers of at most {report.max_answers}"
    names = report.label_names
    if names is None and report.label_set is not None:
        names = report.label_set.names
    if names is not None:
        yield shortened(f"{len(names)} names of labels: {', '.join(names[:100])}", _LONGEST)


def _external(report: Report) -> Iterator[str]:
    for part in report.external:
        cost = "a curve" if part.epsilon is None else f"ε {tabled(part.epsilon)}"
        named = shortened(part.covers or "not named", _LONGEST)
        yield f"“{named}”, in its owner's words: {cost}, δ {tabled(part.delta)}"
