"""This run and all runs on the same votes, as the page of a report shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pate_cli.core.errors import shortened
from pate_cli.disclosure.figures import shown
from pate_cli.disclosure.markup import Markup, element
from pate_cli.disclosure.page_picture import guesses, running_total
from pate_cli.disclosure.page_total import Total, number, number_in, time_of, total_of
from pate_cli.disclosure.told import Told
from pate_cli.disclosure.verdict import percent_right

_MOST_RUNS: Final = 6
_NO_DELTA: Final = 5e-324


def runs(told: Told) -> Markup:
    """This run, the total of all runs, pictures of both, and the last runs by name."""
    report, total = told.report, total_of(told.report)
    sums = [("This run", report.epsilon, report.delta, told.whose)]
    facts = [("Earlier runs", "not tracked")] if total is None else []
    pictures, listed = [], []
    if total is not None:
        sums += _sums(total)
        facts += [] if total.budget is None else [("Budget of the record", shown(total.budget))]
        here = total.place_of(report.run)
        drawn = running_total(total, here=here)
        pictures += [] if drawn is None else [("Total ε over time", drawn)]
        listed += [_table_of_runs(total, here)] if total.runs else []
    bars = [(name, _percent(epsilon, delta)) for name, epsilon, delta, _ in sums]
    if report.epsilon_kind == "upper":  # a sanitized bound speaks of no other runs
        bars[0] = (f"{bars[0][0]}, of those with so small an ε", bars[0][1])
    caption = "How often a guess at even odds, whether a given record was used, is right at most"
    pictures = [(caption, guesses(bars)), *pictures]
    return element(
        "section",
        element("h2", "This run, and all runs"),
        _table_of_sums(sums, facts),
        element(
            "div",
            *(element("figure", element("figcaption", words), picture)
              for words, picture in pictures),
            class_="pictures",
        ),
        *listed,
    )  # fmt: skip


def _percent(epsilon: float, delta: float) -> float:
    """How often a guess is right at most; a total's δ may be none, or worth nothing."""
    return 100.0 if delta >= 1.0 else percent_right(epsilon, max(delta, _NO_DELTA))


def _sums(total: Total) -> Iterator[tuple[str, float, float, str]]:
    """The totals, each with what it presupposes."""
    whole = (total.epsilon, total.delta)
    if total.sum_epsilon is None or total.sum_delta is None:
        yield "All runs", *whole, ""
        return
    chosen = "however they were chosen"
    if whole == (total.sum_epsilon, total.sum_delta):
        yield "All runs", *whole, chosen
        return
    yield "All runs", *whole, "if no settings followed from what earlier runs released"
    yield "Plain sum", total.sum_epsilon, total.sum_delta, chosen


def _table_of_sums(
    sums: Sequence[tuple[str, float, float, str]], facts: Sequence[tuple[str, str]]
) -> Markup:
    rows = [
        (name, _cell(number(epsilon)), _cell(number(delta)), element("td", when))
        for name, epsilon, delta, when in sums
    ]
    wide = [(name, element("td", text, colspan=3)) for name, text in facts]
    heads = ("", "ε", "δ", "Holds")
    return element(
        "table",
        element("thead", element("tr", *(element("th", head, scope="col") for head in heads))),
        element(
            "tbody",
            *(
                element("tr", element("th", name, scope="row"), *cells)
                for name, *cells in (*rows, *wide)
            ),
        ),
        class_="sums",
    )


def _cell(number: str) -> Markup:
    return element("td", number, class_="number")


def _table_of_runs(total: Total, here: int | None) -> Markup:
    """The last runs and this one."""
    count = len(total.runs)
    wanted = sorted({*range(max(0, count - _MOST_RUNS), count), *([] if here is None else [here])})
    rows, before = [], -1
    for place in wanted:
        if place > before + 1:
            left = place - before - 1
            rows.append(
                element(
                    "tr", element("td", f"… {left} more, in the report", colspan=5), class_="gap"
                )
            )
        rows.append(_row_of_run(total.runs[place], ours=place == here))
        before = place
    which = ", the last ones" if count > len(wanted) else ""
    heads = ("Begun (UTC)", "Run", "ε", "δ", "Total ε")
    return element(
        "table",
        element("caption", f"Runs in the record{which}"),
        element("thead", element("tr", *(element("th", head, scope="col") for head in heads))),
        element("tbody", *rows),
        class_="runs",
    )


def _row_of_run(run: Mapping[str, Any], *, ours: bool) -> Markup:
    time = time_of(run)
    costs = (number_in(run, name) for name in ("epsilon", "delta", "total_epsilon"))
    return element(
        "tr",
        element("td", time.strftime("%Y-%m-%d %H:%M") if time else "–"),
        element("th", _named(run) + (": this run" if ours else ""), scope="row"),
        *(_cell(number(cost)) for cost in costs),
        class_="ours" if ours else None,
    )


def _named(run: Mapping[str, Any]) -> str:
    """What a run was, in a few words."""
    words = [str(run.get(name)) for name in ("kind", "outcome") if run.get(name) is not None]
    if run.get("mechanism") is not None:
        words.append(str(run["mechanism"]))
    if run.get("answers") is not None and run.get("queries") is not None:
        words.append(f"{run['answers']} of {run['queries']}")
    if run.get("name") is not None:
        words.append(shortened(str(run["name"])))
    return ", ".join(words)
